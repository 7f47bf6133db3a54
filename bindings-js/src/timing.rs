//! The timing over words, in the order of the fields of the core's types.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Display;

use leasehold_core::lease::Authority;
use leasehold_core::time::Drift;
use leasehold_core::timing::{self, Budget, Misuse, Plan, Refusal, Timing};
use wasm_bindgen::prelude::*;

use crate::words::unexpected;

#[wasm_bindgen]
extern "C" {
    /// What a refusal throws: the message is the core's, constraint and nearest are for programs.
    type RangeError;

    #[wasm_bindgen(constructor)]
    fn new(message: &str) -> RangeError;
    #[wasm_bindgen(method, setter)]
    fn set_constraint(this: &RangeError, constraint: &str);
    #[wasm_bindgen(method, setter)]
    fn set_nearest(this: &RangeError, nearest: Option<u64>);
}

/// The words of a plan for the words of a budget. `error_ns`: the store's clock decides, and this
/// bounds its error; none: local observation does.
#[wasm_bindgen]
pub fn derive(budget: &[u64], error_ns: Option<u64>) -> Result<Vec<u64>, JsValue> {
    let &[
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated,
        standbys,
        drift_ppm,
        resolution_ns,
    ] = budget
    else {
        return Err(unexpected("a budget").into());
    };
    let budget = Budget {
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated: narrow(tolerated)?,
        standbys: narrow(standbys)?,
        drift: drift(drift_ppm)?,
        resolution_ns,
        authority: authority(error_ns),
    };
    timing::derive(&budget).map(of_plan).map_err(|refusal| refusal_error(&refusal))
}

/// The words of a timing from a ttl and what it has to leave room for; unchecked.
#[wasm_bindgen(js_name = fromTtl)]
pub fn from_ttl(
    ttl_ms: u32,
    drain_ns: u64,
    guard_ns: u64,
    drift_ppm: u32,
) -> Result<Vec<u64>, JsValue> {
    let drift = drift(drift_ppm.into())?;
    Ok(of_timing(Timing::from_ttl(ttl_ms, drain_ns, guard_ns, drift)).into())
}

/// Refuses the words of a timing that do not work together, and gives those of its plan.
#[wasm_bindgen]
pub fn check(
    timing: &[u64],
    resolution_ns: u64,
    error_ns: Option<u64>,
    standbys: u32,
) -> Result<Vec<u64>, JsValue> {
    let timing = self::timing(timing)?;
    timing.check(resolution_ns).map_err(|misuse| misuse_error(&misuse))?;
    Ok(of_plan(Plan::of(timing, authority(error_ns), standbys)))
}

pub(crate) fn timing(words: &[u64]) -> Result<Timing, JsValue> {
    let &[
        ttl_ms,
        renew_ns,
        attempt_ns,
        tolerated,
        pause_ns,
        drain_ns,
        guard_ns,
        poll_ns,
        retry_ns,
        seal_within_ns,
        grace_ms,
        sit_out_ns,
        drift_ppm,
    ] = words
    else {
        return Err(unexpected("a timing").into());
    };
    Ok(Timing {
        ttl_ms: narrow(ttl_ms)?,
        renew_ns,
        attempt_ns,
        tolerated: narrow(tolerated)?,
        pause_ns,
        drain_ns,
        guard_ns,
        poll_ns,
        retry_ns,
        seal_within_ns,
        grace_ms: narrow(grace_ms)?,
        sit_out_ns,
        drift: drift(drift_ppm)?,
    })
}

fn of_timing(timing: Timing) -> [u64; 13] {
    [
        timing.ttl_ms.into(),
        timing.renew_ns,
        timing.attempt_ns,
        timing.tolerated.into(),
        timing.pause_ns,
        timing.drain_ns,
        timing.guard_ns,
        timing.poll_ns,
        timing.retry_ns,
        timing.seal_within_ns,
        timing.grace_ms.into(),
        timing.sit_out_ns,
        timing.drift.ppm().into(),
    ]
}

/// The timing, then what follows from it.
fn of_plan(plan: Plan) -> Vec<u64> {
    let mut words = Vec::from(of_timing(plan.timing));
    words.extend([
        plan.takeover_ns,
        plan.self_fence_ns,
        plan.pause_ns,
        plan.lost_renewals,
        plan.holder_per_hour,
        plan.standbys_per_hour,
    ]);
    words
}

pub(crate) fn authority(error_ns: Option<u64>) -> Authority {
    error_ns.map_or(Authority::LocalObservation, |error_ns| Authority::StoreClock { error_ns })
}

fn drift(ppm: u64) -> Result<Drift, JsValue> {
    let drift = u32::try_from(ppm).ok().and_then(Drift::from_ppm);
    drift.ok_or_else(|| JsError::new("a drift is 0 to 999 999 parts per million").into())
}

fn narrow(word: u64) -> Result<u32, JsValue> {
    word.try_into().map_err(|_| JsError::new("a number that must be below 2^32 is not").into())
}

/// The variant's name and its one field, if it has one.
macro_rules! constraint {
    ($refusal:expr, $type:ident { $($name:ident $({ $nearest:ident })?,)+ }) => {
        match *$refusal {
            $($type::$name $({ $nearest })? => {
                (stringify!($name), <[u64]>::first(&[$($nearest.into())?]).copied())
            })+
        }
    };
}

pub(crate) fn misuse_error(misuse: &Misuse) -> JsValue {
    let (constraint, nearest) = constraint!(misuse, Misuse {
        Ttl,
        Tolerated,
        Attempt { attempt_ns },
        Guard { guard_ns },
        Renewal { renew_ns },
        TooShort { ttl_ms },
        Poll { poll_ns },
        Retry,
        SealWithin,
        Grace { grace_ms },
        SitOut { sit_out_ns },
    });
    error(misuse, constraint, nearest)
}

fn refusal_error(refusal: &Refusal) -> JsValue {
    let (constraint, nearest) = constraint!(refusal, Refusal {
        TooFewTolerated { least },
        Resolution { most_ns },
        TooManyTolerated { most },
        Operation { most_ns },
        Standbys { most },
        Pause { most_ns },
        Drain { most_ns },
        Detection { least_ns },
    });
    error(refusal, constraint, nearest)
}

fn error(message: &impl Display, constraint: &str, nearest: Option<u64>) -> JsValue {
    let error = RangeError::new(&format!("{message}"));
    error.set_constraint(constraint);
    error.set_nearest(nearest);
    error.into()
}
