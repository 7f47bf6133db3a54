//! The values of the contract as those of the core, checked, and back.

use alloc::borrow::ToOwned as _;

use leasehold_core::label::Label;
use leasehold_core::lease::{Authority, Config, State, Wake};
use leasehold_core::observe::{Event, How, Owner, Reason, StoreFault};
use leasehold_core::store::Version;
use leasehold_core::time::{Clocks, Drift, Mono, Now};
use leasehold_core::timing::{self, Timing};
use leasehold_core::token::{Lineage, Nonce, Term, Token};

use crate::bindings::leasehold::protocol::types as wit;

pub(crate) fn now(sample: wit::Sample) -> Now {
    Now { mono: Mono(sample.mono), wall_ns: sample.wall_ns }
}

pub(crate) fn config(options: &wit::Options) -> Result<Config, wit::Misuse> {
    let holder = Label::new(&options.holder).map_err(|_| wit::Misuse::Holder)?;
    let timing = timing(options.timing)?;
    let wit::Clocks { wall, resolution_ns } = options.clocks;
    let clocks = Clocks { wall, resolution_ns };
    Config::new(Nonce(options.instance), holder, timing, authority(options.authority), clocks)
        .map_err(wit_misuse)
}

pub(crate) fn timing(timing: wit::Timing) -> Result<Timing, wit::Misuse> {
    let wit::Timing {
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
    } = timing;
    Ok(Timing {
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
        drift: drift(drift_ppm)?,
    })
}

pub(crate) fn wit_timing(timing: Timing) -> wit::Timing {
    let Timing {
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
        drift,
    } = timing;
    wit::Timing {
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
        drift_ppm: drift.ppm(),
    }
}

pub(crate) fn drift(ppm: u32) -> Result<Drift, wit::Misuse> {
    Drift::from_ppm(ppm).ok_or(wit::Misuse::Drift)
}

pub(crate) fn authority(authority: wit::Authority) -> Authority {
    match authority {
        wit::Authority::LocalObservation => Authority::LocalObservation,
        wit::Authority::StoreClock(error_ns) => Authority::StoreClock { error_ns },
    }
}

pub(crate) fn wit_misuse(misuse: timing::Misuse) -> wit::Misuse {
    use timing::Misuse;
    match misuse {
        Misuse::Ttl => wit::Misuse::Ttl,
        Misuse::Tolerated => wit::Misuse::Tolerated,
        Misuse::Attempt { attempt_ns } => wit::Misuse::Attempt(attempt_ns),
        Misuse::Guard { guard_ns } => wit::Misuse::Guard(guard_ns),
        Misuse::Renewal { renew_ns } => wit::Misuse::Renewal(renew_ns),
        Misuse::TooShort { ttl_ms } => wit::Misuse::TooShort(ttl_ms),
        Misuse::Poll { poll_ns } => wit::Misuse::Poll(poll_ns),
        Misuse::Retry => wit::Misuse::Retry,
        Misuse::SealWithin => wit::Misuse::SealWithin,
        Misuse::Grace { grace_ms } => wit::Misuse::Grace(grace_ms),
        Misuse::SitOut { sit_out_ns } => wit::Misuse::SitOut(sit_out_ns),
    }
}

pub(crate) fn label(text: &str) -> Result<Label<'_>, wit::Misuse> {
    Label::new(text).map_err(|_| wit::Misuse::Label)
}

pub(crate) fn version(bytes: &[u8]) -> Result<Version, wit::Misuse> {
    Version::new(bytes).ok_or(wit::Misuse::Version)
}

pub(crate) fn token(token: wit::Token) -> Result<Token, wit::Misuse> {
    Ok(Token {
        lineage: lineage(token.lineage),
        term: Term::new(token.term).ok_or(wit::Misuse::Term)?,
        nonce: Nonce(token.nonce),
    })
}

pub(crate) fn lineage(lineage: wit::Lineage) -> Lineage {
    Lineage((u128::from(lineage.high) << 64) | u128::from(lineage.low))
}

pub(crate) fn wit_token(token: Token) -> wit::Token {
    wit::Token { lineage: wit_lineage(token.lineage), term: token.term.get(), nonce: token.nonce.0 }
}

pub(crate) fn wit_lineage(lineage: Lineage) -> wit::Lineage {
    wit::Lineage { high: (lineage.0 >> 64) as u64, low: lineage.0 as u64 }
}

pub(crate) fn wit_wake(wake: Wake) -> wit::Wake {
    match wake {
        Wake::Now => wit::Wake::Now,
        Wake::At(Mono(at)) => wit::Wake::At(at),
        Wake::Idle => wit::Wake::Idle,
    }
}

pub(crate) fn wit_state(state: State) -> wit::State {
    match state {
        State::Observing => wit::State::Observing,
        State::Standby => wit::State::Standby,
        State::Campaigning => wit::State::Campaigning,
        State::Confirming => wit::State::Confirming,
        State::Sealing => wit::State::Sealing,
        State::Leading => wit::State::Leading,
        State::Draining => wit::State::Draining,
        State::Releasing => wit::State::Releasing,
        State::Stopped => wit::State::Stopped,
    }
}

pub(crate) fn wit_event(event: Event<'_>) -> wit::Event {
    match event {
        Event::Standby { owner, alive } => wit::Event::Standby(standby(owner, alive)),
        Event::Elected { token } => wit::Event::Elected(wit_token(token)),
        Event::Leading { token, stop_at } => {
            wit::Event::Leading(wit::Leading { token: wit_token(token), stop_at: stop_at.0 })
        }
        Event::Renewed { until } => wit::Event::Renewed(until.0),
        Event::RenewalLate { stop_at } => wit::Event::RenewalLate(stop_at.0),
        Event::Demoted { token, reason, to } => wit::Event::Demoted(wit::Demoted {
            token: wit_token(token),
            reason: wit_reason(reason),
            to: to.map(|to| to.as_str().to_owned()),
        }),
        Event::Ended { token, how } => {
            wit::Event::Ended(wit::Ended { token: wit_token(token), how: wit_how(how) })
        }
        Event::StoreDown => wit::Event::StoreDown,
        Event::StoreUp => wit::Event::StoreUp,
        Event::StoreFault(fault) => wit::Event::StoreFault(wit_fault(fault)),
        Event::Stopped => wit::Event::Stopped,
    }
}

fn standby(owner: Owner<'_>, alive: bool) -> wit::Standby {
    wit::Standby {
        holder: owner.holder.as_str().to_owned(),
        instance: owner.instance.0,
        token: wit_token(owner.token),
        alive,
    }
}

fn wit_reason(reason: Reason) -> wit::Reason {
    match reason {
        Reason::DeadlinePassed => wit::Reason::DeadlinePassed,
        Reason::RivalSeen => wit::Reason::RivalSeen,
        Reason::Forced => wit::Reason::Forced,
        Reason::RecordGone => wit::Reason::RecordGone,
        Reason::Refused => wit::Reason::Refused,
        Reason::SealFailed => wit::Reason::SealFailed,
        Reason::Twin => wit::Reason::Twin,
        Reason::Disrupted => wit::Reason::Disrupted,
        Reason::Resigned => wit::Reason::Resigned,
        Reason::Asked => wit::Reason::Asked,
        Reason::Stopped => wit::Reason::Stopped,
    }
}

fn wit_how(how: How) -> wit::How {
    match how {
        How::Released => wit::How::Released,
        How::Offered => wit::How::Offered,
        How::Expired => wit::How::Expired,
        How::DrainTimeout => wit::How::DrainTimeout,
        How::Lost => wit::How::Lost,
    }
}

fn wit_fault(fault: StoreFault) -> wit::StoreFault {
    match fault {
        StoreFault::RecordGone => wit::StoreFault::RecordGone,
        StoreFault::Malformed { offset } => wit::StoreFault::Malformed(offset as u64),
        StoreFault::Newer { format } => wit::StoreFault::Newer(format),
        StoreFault::ForeignLineage { known, found } => {
            wit::StoreFault::ForeignLineage(wit::ForeignLineage {
                known: wit_lineage(known),
                found: wit_lineage(found),
            })
        }
        StoreFault::WentBack { floor, found } => {
            wit::StoreFault::WentBack(wit::Gap { floor, found })
        }
        StoreFault::BeyondMaxAdvance { floor, found } => {
            wit::StoreFault::BeyondMaxAdvance(wit::Gap { floor, found })
        }
        StoreFault::Exhausted => wit::StoreFault::Exhausted,
    }
}
