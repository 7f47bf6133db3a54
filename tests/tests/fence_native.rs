//! The vectors against the rules themselves, and the vectors against their own promise.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::fence::{
    AdoptVerdict, CancelVerdict, RecoverVerdict, RetireVerdict, SealVerdict, WriteVerdict,
};
use leasehold_core::token::{NotAToken, Token};
use leasehold_tests::fence_vectors::{self, Case, Observed};

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
    let mut shown: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let cases = fence_vectors::load().cases;
    for (operation, expected) in cases.iter().flat_map(|case| &case.operations) {
        shown.entry(operation.verb()).or_default().insert(expected.verdict.name.as_str());
    }
    let all = [
        ("seal", SealVerdict::NAMES),
        ("read", SealVerdict::NAMES),
        ("write", WriteVerdict::NAMES),
        ("cancel", CancelVerdict::NAMES),
        ("retire", RetireVerdict::NAMES),
        ("recover", RecoverVerdict::NAMES),
        ("adopt", AdoptVerdict::NAMES),
    ];
    let all = all.map(|(verb, names)| (verb, names.iter().copied().collect()));
    assert_eq!(shown, BTreeMap::from(all));
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
