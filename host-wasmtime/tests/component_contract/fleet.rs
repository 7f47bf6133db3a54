//! Many leases, and many steps, in one instance.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::lease::Wake;
use leasehold_core::store::Version;
use leasehold_core::time::Mono;
use leasehold_host::clock::Clock as _;
use leasehold_host::protocol::{
    Body, Component, Engine, Event, Input, LeaseId, Outcome, Protocol, Request,
};

use crate::guest::wit::{Done, Entry, Input as WitInput, Outcome as WitOutcome};
use crate::guest::{Call, fresh, options as wit_options};
use crate::support::{MS, Salts, TestClock, options};

#[test]
fn memory_stays_flat_over_a_hundred_thousand_steps() {
    let (protocol, mut store) = fresh();
    let elector = protocol.leasehold_protocol_elector();
    let mut held = None;
    for round in 0..25_000u64 {
        // A new lease each time: won, renewed, asked, closed.
        let lease = elector.call_open(&mut store, &wit_options("settlement")).unwrap().unwrap();
        let mut answer = WitInput::Tick;
        for _ in 0..4 {
            elector.call_step(&mut store, lease, &answer).unwrap().unwrap();
            answer = match store.data_mut().calls.drain(..).next_back() {
                Some(Call::Read { op, .. }) => {
                    let value = vec![b'x'; (round % 512) as usize];
                    let version = round.to_be_bytes().to_vec();
                    let garbage = Entry { value, version, age_ns: None };
                    let outcome = if round % 2 == 0 {
                        WitOutcome::Absent
                    } else {
                        WitOutcome::Entry(garbage)
                    };
                    WitInput::Done(Done { op, outcome })
                }
                Some(Call::Transact { op, .. }) => {
                    let outcome = WitOutcome::Applied(round.to_be_bytes().to_vec());
                    WitInput::Done(Done { op, outcome })
                }
                _ => WitInput::Tick,
            };
        }
        elector.call_close(&mut store, lease).unwrap().unwrap();
        store.data_mut().mono += MS;
        if round == 5_000 {
            held = Some(store.data().memory_bytes);
        }
    }
    assert_eq!(Some(store.data().memory_bytes), held, "bytes after 20 000 and 100 000 steps");
}

/// One store answer that takes 2.5 s holds up one lease; the others, answered after 3 ms, renew
/// for 10 s.
#[test]
fn a_thousand_leases_lead_beside_one_slow_answer() {
    const SLOW: LeaseId = LeaseId(1);
    let clock = TestClock::new();
    let engine = Engine::new(None).unwrap();
    let mut protocol = Component::new(&engine, clock.clone(), Salts::new(1)).unwrap();
    let mut due = BTreeSet::new();
    let mut answers: BTreeMap<(Mono, LeaseId), Request> = BTreeMap::new();
    let mut renewals: BTreeMap<LeaseId, u32> = BTreeMap::new();
    for number in 1..=1_000 {
        let lease = protocol.open(&options(&format!("lease-{number}"), "tester")).unwrap();
        due.insert((clock.now().mono, lease));
    }
    let end = clock.now().mono.after(10_000 * MS);
    let mut versions = 0u64;
    while clock.now().mono < end {
        let next_due = due.first().map(|(at, _)| *at);
        let next_answer = answers.first_key_value().map(|((at, _), _)| *at);
        let Some(at) = [next_due, next_answer].into_iter().flatten().min() else { break };
        clock.advance(at.since(clock.now().mono));
        let (lease, input) = if next_answer == Some(at) {
            let ((_, lease), request) = answers.pop_first().unwrap();
            versions += 1;
            let outcome = match request.body {
                Body::Read => Outcome::Absent,
                Body::Write { .. } => {
                    Outcome::Applied(Version::new(&versions.to_be_bytes()).unwrap())
                }
            };
            (lease, Input::Done { op: request.op, outcome })
        } else {
            (due.pop_first().unwrap().1, Input::Tick)
        };
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let step = protocol.step(lease, input).unwrap();
            due.retain(|(_, other)| *other != lease);
            match step.wake {
                Wake::Now => drop(due.insert((at, lease))),
                Wake::At(at) => drop(due.insert((at, lease))),
                Wake::Idle => {}
            }
            if let Some(request) = step.request {
                let takes = if lease == SLOW { 2_500 * MS } else { 3 * MS };
                answers.insert((at.after(takes), lease), request);
            }
            match step.event {
                Some(Event::Elected { token }) => next = Some(Input::Sealed(token)),
                Some(Event::Renewed { .. }) => *renewals.entry(lease).or_default() += 1,
                Some(Event::RenewalLate { .. } | Event::Demoted { .. } | Event::Ended { .. })
                    if lease != SLOW =>
                {
                    panic!("{lease:?} missed a deadline at {at:?}")
                }
                _ => {}
            }
        }
    }
    assert!(!renewals.contains_key(&SLOW));
    assert_eq!(renewals.len(), 999);
    assert!(renewals.values().all(|renewed| *renewed >= 5), "{renewals:?}");
}
