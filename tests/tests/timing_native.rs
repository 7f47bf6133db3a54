//! The timing's vectors against the rules themselves, and the vectors against their own promise.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use leasehold_core::timing::{self, Budget, Misuse, Plan, Refusal, Timing};
use leasehold_tests::timing_vectors::{self, FILE, Rules};

struct Native;

impl Rules for Native {
    fn derive(&mut self, budget: &Budget) -> Result<Plan, Refusal> {
        timing::derive(budget)
    }

    fn check(&mut self, timing: &Timing, resolution_ns: u64) -> Result<(), Misuse> {
        timing.check(resolution_ns)
    }
}

#[test]
fn the_rules_answer_as_the_vectors_demand() {
    timing_vectors::check(&mut Native, &timing_vectors::load());
}

#[test]
fn the_vectors_show_every_refusal() {
    let vectors = timing_vectors::load();
    let name = |debug: String| debug.split(' ').next().unwrap_or_default().to_owned();
    let refusals: BTreeSet<_> = vectors
        .budgets
        .iter()
        .filter_map(|derived| derived.gives.err())
        .map(|refusal| name(format!("{refusal:?}")))
        .collect();
    let all =
        "TooFewTolerated Resolution TooManyTolerated Operation Standbys Pause Drain Detection";
    assert_eq!(refusals, all.split(' ').map(str::to_owned).collect());

    let misuses: BTreeSet<_> = vectors
        .timings
        .iter()
        .filter_map(|judged| judged.gives.err())
        .map(|misuse| name(format!("{misuse:?}")))
        .collect();
    let all = "Ttl Tolerated Attempt Guard Renewal TooShort Poll Retry SealWithin Grace SitOut";
    assert_eq!(misuses, all.split(' ').map(str::to_owned).collect());
}

#[test]
fn what_is_derived_is_accepted() {
    for derived in timing_vectors::load().budgets {
        if let Ok(plan) = derived.gives {
            let resolution_ns = derived.budget.resolution_ns;
            assert_eq!(plan.timing.check(resolution_ns), Ok(()), "{}", derived.name);
        }
    }
}

#[test]
fn a_vector_that_demands_something_else_fails() {
    for (demand, other) in [
        (r#""least_ns": 4302000000"#, r#""least_ns": 4302000001"#),
        (r#""lost_renewals": 18"#, r#""lost_renewals": 19"#),
        (r#""accepted": true"#, r#""misuse": {"Ttl": {}}"#),
        (r#"{"Guard": {"guard_ns": 2000000}}"#, r#"{"Guard": {"guard_ns": 2000001}}"#),
    ] {
        let (before, after) = FILE.split_once(demand).unwrap();
        let vectors = timing_vectors::load_from(&format!("{before}{other}{after}"));
        let checked = catch_unwind(|| timing_vectors::check(&mut Native, &vectors));
        assert!(checked.is_err(), "{demand} as {other}");
    }
}
