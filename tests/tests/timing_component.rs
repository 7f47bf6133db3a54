//! The timing's vectors through the component.

use leasehold_core::lease::Authority;
use leasehold_core::time::Drift;
use leasehold_core::timing::{Budget, Misuse, Plan, Refusal, Timing};
use leasehold_tests::timing_vectors::{self, Rules};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use bindings::Protocol;
use bindings::exports::leasehold::protocol::timing as wit;
use bindings::leasehold::protocol::types;

mod bindings {
    wasmtime::component::bindgen!({ path: "../host-wasmtime/wit", world: "protocol" });
}

#[test]
fn the_component_answers_as_the_vectors_demand() {
    let engine = Engine::default();
    let component = Component::new(&engine, leasehold_host::COMPONENT).unwrap();
    let mut linker = Linker::new(&engine);
    // The rules have no use for a clock or a store.
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let mut store = Store::new(&engine, ());
    let protocol = Protocol::instantiate(&mut store, &component, &linker).unwrap();
    timing_vectors::check(&mut Guest { protocol, store }, &timing_vectors::load());
}

struct Guest {
    protocol: Protocol,
    store: Store<()>,
}

impl Rules for Guest {
    fn derive(&mut self, budget: &Budget) -> Result<Plan, Refusal> {
        let rules = self.protocol.leasehold_protocol_timing();
        let answer = rules.call_derive(&mut self.store, to_budget(budget)).unwrap().unwrap();
        answer.map(from_plan).map_err(from_refusal)
    }

    fn check(&mut self, timing: &Timing, resolution_ns: u64) -> Result<(), Misuse> {
        let rules = self.protocol.leasehold_protocol_timing();
        let answer = rules.call_check(&mut self.store, to_timing(timing), resolution_ns);
        answer.unwrap().map_err(from_misuse)
    }
}

fn to_budget(budget: &Budget) -> wit::Budget {
    let Budget {
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated,
        standbys,
        drift,
        resolution_ns,
        authority,
    } = *budget;
    let authority = match authority {
        Authority::LocalObservation => types::Authority::LocalObservation,
        Authority::StoreClock { error_ns } => types::Authority::StoreClock(error_ns),
    };
    wit::Budget {
        detection_ns,
        p50_ns,
        p99_ns,
        pause_ns,
        drain_ns,
        tolerated,
        standbys,
        drift_ppm: drift.ppm(),
        resolution_ns,
        authority,
    }
}

fn to_timing(timing: &Timing) -> types::Timing {
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
    } = *timing;
    types::Timing {
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

fn from_timing(timing: types::Timing) -> Timing {
    let types::Timing {
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
    Timing {
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
        drift: Drift::from_ppm(drift_ppm).unwrap(),
    }
}

fn from_plan(plan: wit::Plan) -> Plan {
    let wit::Plan {
        timing,
        takeover_ns,
        self_fence_ns,
        pause_ns,
        lost_renewals,
        holder_per_hour,
        standbys_per_hour,
    } = plan;
    Plan {
        timing: from_timing(timing),
        takeover_ns,
        self_fence_ns,
        pause_ns,
        lost_renewals,
        holder_per_hour,
        standbys_per_hour,
    }
}

fn from_refusal(refusal: wit::Refusal) -> Refusal {
    match refusal {
        wit::Refusal::TooFewTolerated(least) => Refusal::TooFewTolerated { least },
        wit::Refusal::Resolution(most_ns) => Refusal::Resolution { most_ns },
        wit::Refusal::TooManyTolerated(most) => Refusal::TooManyTolerated { most },
        wit::Refusal::Operation(most_ns) => Refusal::Operation { most_ns },
        wit::Refusal::Standbys(most) => Refusal::Standbys { most },
        wit::Refusal::Pause(most_ns) => Refusal::Pause { most_ns },
        wit::Refusal::Drain(most_ns) => Refusal::Drain { most_ns },
        wit::Refusal::Detection(least_ns) => Refusal::Detection { least_ns },
    }
}

fn from_misuse(misuse: types::Misuse) -> Misuse {
    match misuse {
        types::Misuse::Ttl => Misuse::Ttl,
        types::Misuse::Tolerated => Misuse::Tolerated,
        types::Misuse::Attempt(attempt_ns) => Misuse::Attempt { attempt_ns },
        types::Misuse::Guard(guard_ns) => Misuse::Guard { guard_ns },
        types::Misuse::Renewal(renew_ns) => Misuse::Renewal { renew_ns },
        types::Misuse::TooShort(ttl_ms) => Misuse::TooShort { ttl_ms },
        types::Misuse::Poll(poll_ns) => Misuse::Poll { poll_ns },
        types::Misuse::Retry => Misuse::Retry,
        types::Misuse::SealWithin => Misuse::SealWithin,
        types::Misuse::Grace(grace_ms) => Misuse::Grace { grace_ms },
        types::Misuse::SitOut(sit_out_ns) => Misuse::SitOut { sit_out_ns },
        other => panic!("no misuse of a timing: {other:?}"),
    }
}
