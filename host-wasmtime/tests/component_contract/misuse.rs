//! Wrong arguments are answered, and the instance goes on.

use crate::guest::wit::{
    Done, Entry, Input, Lineage, Misuse, Options, Outcome, Refusal, Timing, Token, Wake,
};
use crate::guest::{Call, fence, fresh, options};

const TOKEN: Token = Token { lineage: Lineage { high: 0, low: 1 }, term: 1, nonce: 1 };

fn with(change: impl FnOnce(&mut Timing)) -> Options {
    let mut options = options("settlement");
    change(&mut options.timing);
    options
}

#[test]
fn options_that_do_not_fit_are_refused_by_name() {
    let (protocol, mut store) = fresh();
    let elector = protocol.leasehold_protocol_elector();
    let mut label = options("settlement");
    label.holder = "two words".to_owned();
    let mut coarse = options("settlement");
    coarse.clocks.resolution_ns = u64::MAX;
    for (wrong, misuse) in [
        (options(""), Misuse::Name),
        (options("two words"), Misuse::Name),
        (options(&"n".repeat(129)), Misuse::Name),
        (options("gr\u{fc}n"), Misuse::Name),
        (label, Misuse::Holder),
        (with(|timing| timing.ttl_ms = 0), Misuse::Ttl),
        (with(|timing| timing.ttl_ms = 86_400_001), Misuse::Ttl),
        (with(|timing| timing.drift_ppm = 1_000_000), Misuse::Drift),
        (with(|timing| timing.tolerated = 1), Misuse::Tolerated),
        (with(|timing| timing.renew_ns = 1), Misuse::Renewal(800_000_000)),
        (coarse, Misuse::Guard(u64::MAX)),
        (with(|timing| timing.attempt_ns = 0), Misuse::Attempt(1_000_000)),
        (with(|timing| timing.retry_ns = 0), Misuse::Retry),
        (with(|timing| timing.seal_within_ns = 0), Misuse::SealWithin),
        (with(|timing| timing.poll_ns = 0), Misuse::Poll(1)),
    ] {
        let answer = elector.call_open(&mut store, &wrong).unwrap().unwrap_err();
        assert_eq!(format!("{answer:?}"), format!("{misuse:?}"), "{wrong:?}");
    }
    for wrong in [
        with(|timing| timing.drain_ns = u64::MAX),
        with(|timing| timing.pause_ns = u64::MAX),
        with(|timing| timing.tolerated = u32::MAX),
    ] {
        let answer = elector.call_open(&mut store, &wrong).unwrap().unwrap_err();
        assert!(matches!(answer, Misuse::TooShort(_)), "{answer:?} for {wrong:?}");
    }
    assert_eq!(elector.call_open(&mut store, &options("settlement")).unwrap().unwrap(), 1);
}

#[test]
fn numbers_that_were_never_given_and_those_of_closed_leases_are_misuse() {
    let (protocol, mut store) = fresh();
    let elector = protocol.leasehold_protocol_elector();
    let first = elector.call_open(&mut store, &options("settlement")).unwrap().unwrap();
    elector.call_close(&mut store, first).unwrap().unwrap();
    let second = elector.call_open(&mut store, &options("settlement")).unwrap().unwrap();
    assert_ne!(first, second, "a number was used twice");
    for lease in [0, first, second + 1, u32::MAX] {
        for input in [Input::Tick, Input::Stop, Input::Done(done(1, Outcome::Absent))] {
            let answer = elector.call_step(&mut store, lease, &input).unwrap();
            assert!(matches!(answer, Err(Misuse::NoLease)), "{answer:?}");
        }
        assert!(matches!(elector.call_query(&mut store, lease).unwrap(), Err(Misuse::NoLease)));
        assert!(matches!(elector.call_close(&mut store, lease).unwrap(), Err(Misuse::NoLease)));
    }
    assert_eq!(store.data().calls, [], "a misuse asked for something");
    assert!(elector.call_step(&mut store, second, &Input::Tick).unwrap().is_ok());
}

#[test]
fn a_bad_value_in_a_step_is_misuse_and_changes_nothing() {
    let (protocol, mut store) = fresh();
    let elector = protocol.leasehold_protocol_elector();
    let lease = elector.call_open(&mut store, &options("settlement")).unwrap().unwrap();
    elector.call_step(&mut store, lease, &Input::Tick).unwrap().unwrap();
    let Some(Call::Read { op, key, .. }) = store.data().calls.first().cloned() else {
        panic!("the first step reads: {:?}", store.data().calls)
    };
    assert_eq!(key, "lease/settlement");

    let no_term = Token { term: 0, ..TOKEN };
    let past_the_last = Token { term: 1 << 63, ..TOKEN };
    let long = vec![0; 41];
    let entry = Entry { value: Vec::new(), version: long.clone(), age_ns: None };
    for (input, misuse) in [
        (Input::Sealed(no_term), Misuse::Term),
        (Input::Drained(past_the_last), Misuse::Term),
        (Input::SealRefused(Refusal { token: no_term, floor: None }), Misuse::Term),
        (Input::Adopt(no_term), Misuse::Term),
        (Input::Resign(Some("two words".to_owned())), Misuse::Label),
        (Input::Hint(Some(entry.clone())), Misuse::Version),
        (Input::Done(done(op, Outcome::Applied(long))), Misuse::Version),
        (Input::Done(done(op, Outcome::Entry(entry))), Misuse::Version),
    ] {
        let answer = elector.call_step(&mut store, lease, &input).unwrap().unwrap_err();
        assert_eq!(format!("{answer:?}"), format!("{misuse:?}"), "{input:?}");
    }
    assert_eq!(store.data().calls.len(), 1);

    // The request is still the one in flight: its answer counts.
    elector.call_step(&mut store, lease, &Input::Done(done(op, Outcome::Absent))).unwrap().unwrap();
    assert!(matches!(store.data().calls.last(), Some(Call::Transact { expect: None, .. })));
}

#[test]
fn answers_to_requests_that_never_were_do_no_harm() {
    let (protocol, mut store) = fresh();
    let elector = protocol.leasehold_protocol_elector();
    let lease = elector.call_open(&mut store, &options("settlement")).unwrap().unwrap();
    for op in [0, 7, u32::MAX] {
        let input = Input::Done(done(op, Outcome::Applied(vec![1])));
        let wake = elector.call_step(&mut store, lease, &input).unwrap().unwrap();
        assert!(matches!(wake, Wake::At(_)), "{wake:?}");
    }
    assert_eq!(store.data().calls.len(), 1, "{:?}", store.data().calls);
}

#[test]
fn values_that_no_fence_has_are_misuse() {
    let (protocol, mut store) = fresh();
    let rules = protocol.leasehold_protocol_fence();
    let no_term = Token { term: 0, ..TOKEN };
    let proven = fence::Advance::Proven;
    for answer in [
        rules.call_seal(&mut store, None, no_term, proven).unwrap().err(),
        rules.call_read(&mut store, None, no_term, proven).unwrap().err(),
        rules.call_admit(&mut store, None, None, no_term, None).unwrap().err(),
        rules.call_cancel(&mut store, None, None, no_term).unwrap().err(),
        rules.call_retire(&mut store, None, no_term).unwrap().err(),
        rules.call_recover(&mut store, None, no_term).unwrap().err(),
        rules.call_adopt(&mut store, None, no_term).unwrap().err(),
    ] {
        assert!(matches!(answer, Some(Misuse::Term)), "{answer:?}");
    }
    for length in [0, 31, 33] {
        let digest = vec![0; length];
        let answer = rules.call_admit(&mut store, None, None, TOKEN, Some(&digest)).unwrap();
        assert!(matches!(answer, Err(Misuse::Digest)), "{answer:?}");
        let known = fence::StepRow { op_digest: Some(digest), seq: 1, cancelled: false };
        let answer = rules.call_admit(&mut store, None, Some(&known), TOKEN, None).unwrap();
        assert!(matches!(answer, Err(Misuse::Digest)), "{answer:?}");
        let answer = rules.call_cancel(&mut store, None, Some(&known), TOKEN).unwrap();
        assert!(matches!(answer, Err(Misuse::Digest)), "{answer:?}");
    }
    assert!(rules.call_seal(&mut store, None, TOKEN, proven).unwrap().is_ok());
}

fn done(op: u32, outcome: Outcome) -> Done {
    Done { op, outcome }
}
