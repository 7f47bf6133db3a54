//! The `timing` interface: the core's derivation.

use leasehold_core::timing::{self, Budget, Plan, Refusal};

use crate::bindings::exports::leasehold::protocol::timing as wit;
use crate::bindings::leasehold::protocol::types::{Misuse, Timing};
use crate::{alone, values};

impl wit::Guest for crate::Guest {
    fn derive(budget: wit::Budget) -> Result<Result<wit::Plan, wit::Refusal>, Misuse> {
        alone(|| Ok(timing::derive(&core_budget(budget)?).map(wit_plan).map_err(wit_refusal)))
    }

    fn check(timing: Timing, resolution_ns: u64) -> Result<(), Misuse> {
        alone(|| values::timing(timing)?.check(resolution_ns).map_err(values::wit_misuse))
    }
}

fn core_budget(budget: wit::Budget) -> Result<Budget, Misuse> {
    let wit::Budget {
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated,
        standbys,
        drift_ppm,
        resolution_ns,
        authority,
    } = budget;
    Ok(Budget {
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated,
        standbys,
        drift: values::drift(drift_ppm)?,
        resolution_ns,
        authority: values::authority(authority),
    })
}

fn wit_plan(plan: Plan) -> wit::Plan {
    let Plan {
        timing,
        takeover_ns,
        self_fence_ns,
        pause_ns,
        lost_renewals,
        holder_per_hour,
        standbys_per_hour,
    } = plan;
    wit::Plan {
        timing: values::wit_timing(timing),
        takeover_ns,
        self_fence_ns,
        pause_ns,
        lost_renewals,
        holder_per_hour,
        standbys_per_hour,
    }
}

fn wit_refusal(refusal: Refusal) -> wit::Refusal {
    match refusal {
        Refusal::TooFewTolerated { least } => wit::Refusal::TooFewTolerated(least),
        Refusal::Resolution { most_ns } => wit::Refusal::Resolution(most_ns),
        Refusal::TooManyTolerated { most } => wit::Refusal::TooManyTolerated(most),
        Refusal::Operation { most_ns } => wit::Refusal::Operation(most_ns),
        Refusal::Standbys { most } => wit::Refusal::Standbys(most),
        Refusal::Pause { most_ns } => wit::Refusal::Pause(most_ns),
        Refusal::Drain { most_ns } => wit::Refusal::Drain(most_ns),
        Refusal::Detection { least_ns } => wit::Refusal::Detection(least_ns),
    }
}
