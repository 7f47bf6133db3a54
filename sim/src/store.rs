//! One key of a linearizable store: the record's bytes, and every state it ever had, to restore
//! from.

use alloc::rc::Rc;
use alloc::vec::Vec;

use leasehold_core::label::{Label, Name};
use leasehold_core::record::{self, LeaseRecord};
use leasehold_core::store::{Draft, Entry, Outcome, Version};
use leasehold_core::token::Token;

use crate::clock::Clock;
use crate::flaw::Flaw;

/// The lease that everybody wants.
pub(crate) const NAME: &str = "job";

/// How far a replica is behind.
const LAG_NS: u64 = 3 * crate::SECOND_NS;

#[derive(Clone, Debug)]
pub(crate) struct Store {
    clock: Clock,
    flaw: Option<Flaw>,
    key: Option<Value>,
    before: Vec<Option<Value>>,
    /// The last version that was given out, as the store knows.
    versions: u64,
    /// The last version that ever was.
    highest: u64,
}

/// One state of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    bytes: Rc<[u8]>,
    version: u64,
    /// By the store's clock, rounded up.
    written_ns: u64,
}

/// What was read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    value: Option<Value>,
    age_ns: u64,
}

impl Store {
    pub(crate) const fn new(clock: Clock, flaw: Option<Flaw>) -> Self {
        Self { clock, flaw, key: None, before: Vec::new(), versions: 0, highest: 0 }
    }

    pub(crate) fn read(&self, at_ns: u64) -> Reading {
        let is_young = self.reading(at_ns, self.key.clone()).age_ns < LAG_NS;
        let lags = self.flaw == Some(Flaw::StoreReadsStale) && is_young;
        let value = if lags { self.previous() } else { self.key.clone() };
        self.reading(at_ns, value)
    }

    /// The key before its last change.
    pub(crate) fn read_previous(&self, at_ns: u64) -> Reading {
        self.reading(at_ns, self.previous())
    }

    /// The token in the record.
    pub(crate) fn token(&self) -> Option<Token> {
        let record = record::decode_named(NAME, &self.key.as_ref()?.bytes).ok()?;
        Some(record.token)
    }

    /// Whether the key still has the version that a write depends on.
    pub(crate) fn write(
        &mut self,
        at_ns: u64,
        expect: Option<Version>,
        record: &LeaseRecord<'_>,
    ) -> Outcome<'static> {
        let is = self.key.as_ref().map(|value| version(value.version));
        if is != expect && self.flaw != Some(Flaw::StoreIgnoresConditions) {
            return Outcome::Conflict;
        }
        Outcome::Applied(self.put(at_ns, record))
    }

    /// Writes without a condition, as nobody should.
    pub(crate) fn put(&mut self, at_ns: u64, record: &LeaseRecord<'_>) -> Version {
        let mut buffer = [0; record::MAX_LEN];
        let bytes = record::encode(record, &mut buffer).unwrap_or_default();
        self.put_bytes(at_ns, bytes)
    }

    /// What is there is no record any more.
    pub(crate) fn spoil(&mut self, at_ns: u64) {
        if let Some(value) = self.key.clone() {
            let spoilt: Vec<u8> = value.bytes.iter().copied().chain(*b"\n").collect();
            self.put_bytes(at_ns, &spoilt);
        }
    }

    pub(crate) fn delete(&mut self) {
        let gone = self.key.take();
        self.before.push(gone);
    }

    /// The state so many writes ago is the state again.
    pub(crate) fn restore(&mut self, back: u8, repeats: bool) {
        for _ in 0..back {
            let Some(before) = self.before.pop() else { break };
            self.key = before;
        }
        if repeats {
            self.versions = self.key.as_ref().map_or(0, |value| value.version);
        } else if let Some(value) = &mut self.key {
            self.versions += 1;
            value.version = self.versions;
        }
    }

    pub(crate) fn fail_over(&mut self) {
        if self.flaw == Some(Flaw::StoreLosesLastWrite) {
            self.restore(1, false);
        }
    }

    /// From now on no version is given out again.
    pub(crate) fn never_repeat(&mut self) {
        self.versions = self.versions.max(self.highest);
    }

    fn put_bytes(&mut self, at_ns: u64, bytes: &[u8]) -> Version {
        self.versions += 1;
        self.highest = self.highest.max(self.versions);
        let written_ns = self.clock.now(at_ns).mono.0 + 1;
        let value = Value { bytes: Rc::from(bytes), version: self.versions, written_ns };
        let before = self.key.replace(value);
        self.before.push(before);
        version(self.versions)
    }

    fn previous(&self) -> Option<Value> {
        self.before.last().cloned().flatten()
    }

    fn reading(&self, at_ns: u64, value: Option<Value>) -> Reading {
        let now_ns = self.clock.now(at_ns).mono.0;
        let age_ns = value.as_ref().map_or(0, |value| now_ns.saturating_sub(value.written_ns));
        Reading { value, age_ns }
    }
}

impl Reading {
    pub(crate) fn record(&self) -> Option<LeaseRecord<'_>> {
        record::decode_named(NAME, &self.value.as_ref()?.bytes).ok()
    }

    /// Something that is no record.
    pub(crate) fn is_spoilt(&self) -> bool {
        self.value.is_some() && self.record().is_none()
    }

    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let value = self.value.as_ref()?;
        Some(Entry {
            record: record::decode_named(NAME, &value.bytes),
            version: version(value.version),
            age_ns: Some(self.age_ns),
        })
    }

    pub(crate) fn outcome(&self) -> Outcome<'_> {
        self.entry().map_or(Outcome::Absent, Outcome::Entry)
    }
}

pub(crate) fn name() -> Name<'static> {
    Name::new(NAME).unwrap_or_else(|_| unreachable!("a constant"))
}

/// A draft with the texts that its host adds.
pub(crate) fn complete<'a>(
    draft: &Draft,
    holder: Label<'a>,
    to: Option<Label<'a>>,
) -> LeaseRecord<'a> {
    draft.record(name(), holder, to)
}

fn version(number: u64) -> Version {
    Version::new(&number.to_be_bytes()).unwrap_or_else(|| unreachable!("eight bytes"))
}
