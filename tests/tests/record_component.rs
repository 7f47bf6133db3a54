//! The record's vectors through the component, as its host sees it: bytes that a read brings are a
//! record, or a fault that is named.

use std::sync::Arc;

use leasehold_core::label::Name;
use leasehold_core::lease::Authority;
use leasehold_core::observe::StoreFault;
use leasehold_core::record::{self, LeaseRecord, MAX_LEN, RecordFault};
use leasehold_core::store::Version;
use leasehold_core::time::Drift;
use leasehold_core::timing::Timing;
use leasehold_core::token::Nonce;
use leasehold_host::clock::{Clock as _, SystemClock};
use leasehold_host::protocol::{
    Component, Engine, Entry, Event, Input, Open, OsEntropy, Outcome, Protocol as _,
};
use leasehold_tests::record_vectors;

#[test]
fn bytes_of_a_record_are_one_and_all_others_are_a_fault_that_is_named() {
    let engine = Engine::new(None).unwrap();
    let clock = Arc::new(SystemClock);
    let mut component = Component::new(&engine, clock, Arc::new(OsEntropy)).unwrap();
    let mut fault_in = |name: &str, bytes: &[u8]| {
        let lease = component.open(&open(name)).unwrap();
        let read = component.step(lease, Input::Tick).unwrap().request.expect("a read");
        let entry =
            Entry { value: bytes.to_vec(), version: Version::new(b"1").unwrap(), age_ns: None };
        let outcome = Outcome::Entry(entry);
        let step = component.step(lease, Input::Done { op: read.op, outcome }).unwrap();
        match step.event {
            Some(Event::StoreFault(StoreFault::Malformed { offset })) => {
                Some(RecordFault::Malformed { offset })
            }
            Some(Event::StoreFault(StoreFault::Newer { format })) => {
                Some(RecordFault::Newer { format })
            }
            _ => None,
        }
    };
    let vectors = record_vectors::load();
    for written in vectors.records {
        let record = written.fields.record();
        let title = &written.fields.title;
        assert_eq!(fault_in(record.name.as_str(), &written.bytes), None, "{title}");
        let other = encoded(&LeaseRecord { name: Name::new("another").unwrap(), ..record });
        let misplaced = fault_in(record.name.as_str(), &other);
        assert!(matches!(misplaced, Some(RecordFault::Malformed { .. })), "{title}");
    }
    for refused in vectors.refused {
        let name = refused.under.as_deref().unwrap_or("settlement");
        assert_eq!(fault_in(name, &refused.bytes), Some(refused.fault), "{}", refused.name);
    }
}

fn open(name: &str) -> Open {
    Open {
        name: name.to_owned(),
        holder: "web-1".to_owned(),
        instance: Nonce(1),
        timing: Timing::from_ttl(10_000, 0, 100_000_000, Drift::DEFAULT),
        authority: Authority::LocalObservation,
        clocks: SystemClock.clocks(),
    }
}

fn encoded(record: &LeaseRecord<'_>) -> Vec<u8> {
    record::encode(record, &mut [0; MAX_LEN]).unwrap().to_vec()
}
