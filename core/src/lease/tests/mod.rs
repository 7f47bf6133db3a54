//! The elector, step by step in virtual time, and along every row of its table.

mod campaigning;
mod fingerprint;
mod handing_over;
mod holding;
mod rig;
mod table;

use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::label::{Label, Name};
use crate::observe::StoreFault;
use crate::record::{LeaseRecord, MAX_LEN, decode, encode};
use crate::store::{Body, Draft};
use crate::time::{Clocks, Drift, MILLISECOND_NS};
use crate::timing::Timing;

std::thread_local! {
    static VISITED: RefCell<BTreeSet<(State, Cause)>> = const { RefCell::new(BTreeSet::new()) };
}

pub(super) fn visit(from: State, cause: Cause) {
    VISITED.with_borrow_mut(|visited| {
        visited.insert((from, cause));
    });
}

fn visited() -> BTreeSet<(State, Cause)> {
    VISITED.with_borrow(Clone::clone)
}

const MS: u64 = MILLISECOND_NS;
const TTL_MS: u32 = 10_000;

fn timing() -> Timing {
    Timing { drain_ns: 500 * MS, ..Timing::from_ttl(TTL_MS, 500 * MS, 100 * MS, Drift::DEFAULT) }
}

fn clocks() -> Clocks {
    Clocks { wall: true, resolution_ns: MS }
}

fn config(instance: u64, timing: Timing, authority: Authority) -> &'static Config {
    let us = Label::new("us").unwrap();
    Box::leak(Box::new(Config::new(Nonce(instance), us, timing, authority, clocks()).unwrap()))
}

/// What a real store would keep: the bytes, and a version that never repeats.
#[derive(Clone, Debug, Default)]
struct Key {
    value: Option<(Vec<u8>, u64)>,
    writes: u64,
}

impl Key {
    fn version(number: u64) -> Version {
        Version::new(&number.to_be_bytes()).unwrap()
    }

    fn read(&self, age_ns: Option<u64>) -> Outcome<'_> {
        match &self.value {
            None => Outcome::Absent,
            Some((bytes, version)) => Outcome::Entry(Entry {
                record: decode(bytes),
                version: Self::version(*version),
                age_ns,
            }),
        }
    }

    fn write(
        &mut self,
        expect: Option<Version>,
        draft: &Draft,
        holder: &str,
        to: Option<&str>,
    ) -> Outcome<'static> {
        if self.value.as_ref().map(|(_, version)| Self::version(*version)) != expect {
            return Outcome::Conflict;
        }
        let to = to.map(|to| Label::new(to).unwrap());
        let record = draft.record(Name::new("job").unwrap(), Label::new(holder).unwrap(), to);
        self.put(&record);
        Outcome::Applied(Self::version(self.writes))
    }

    fn put(&mut self, record: &LeaseRecord<'_>) {
        let mut buffer = [0; MAX_LEN];
        self.writes += 1;
        self.value = Some((encode(record, &mut buffer).unwrap().to_vec(), self.writes));
    }

    fn record(&self) -> LeaseRecord<'_> {
        decode(&self.value.as_ref().unwrap().0).unwrap()
    }

    fn text(&self) -> String {
        core::str::from_utf8(&self.value.as_ref().unwrap().0).unwrap().to_string()
    }
}

#[test]
fn the_table_has_one_row_a_cell_and_reaches_every_state() {
    let cells: BTreeSet<(State, Cause)> = TABLE.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(cells.len(), TABLE.len());
    let reached: BTreeSet<State> = TABLE.iter().map(|row| row.2).collect();
    assert_eq!(reached.len(), 9);
}

#[test]
fn an_elector_stays_small() {
    assert!(size_of::<Elector<&Config>>() <= 320, "{}", size_of::<Elector<&Config>>());
}
