//! The vectors against the rules themselves, and the vectors against their own promise.

use std::collections::BTreeSet;

use leasehold_core::fence::{SealVerdict, WriteVerdict};
use leasehold_core::token::{NotAToken, Token};
use leasehold_tests::fence_vectors::{self, Case, Observed, Operation};

#[test]
fn the_rules_give_what_the_vectors_demand() {
    let cases = fence_vectors::load().cases;
    let observed: Vec<_> = cases.iter().map(perform).collect();
    fence_vectors::check("rules", &cases, &observed);
}

fn perform(case: &Case) -> Vec<Observed> {
    let mut state = case.start.clone();
    let mut observe =
        |operation| Observed { verdict: state.perform(operation), state: state.clone() };
    case.operations.iter().map(|(operation, _)| observe(operation)).collect()
}

#[test]
fn the_vectors_show_every_verdict() {
    let (mut seals, mut writes) = (BTreeSet::new(), BTreeSet::new());
    let cases = fence_vectors::load().cases;
    for (operation, expected) in cases.iter().flat_map(|case| &case.operations) {
        match operation {
            Operation::Seal { .. } => seals.insert(expected.verdict.name.as_str()),
            Operation::Write { .. } => writes.insert(expected.verdict.name.as_str()),
        };
    }
    assert_eq!(seals, BTreeSet::from_iter(SealVerdict::NAMES.iter().copied()));
    assert_eq!(writes, BTreeSet::from_iter(WriteVerdict::NAMES.iter().copied()));
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let cases = fence_vectors::load().cases;
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn what_is_no_token_is_not_read_as_one() {
    for text in fence_vectors::load().not_tokens {
        assert_eq!(text.parse::<Token>(), Err(NotAToken), "{text:?}");
    }
}
