//! A store in this process's memory, for programs' own tests: an in-process lock is no lease.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Answer, Capabilities, Check, Expect, List, Read, Store, Transact, Version, Write};

/// A linearizable map in memory; clones share it. It keeps no ages and no promise beyond the
/// process.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: Arc<Mutex<Entries>>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn locked<T>(&self, operation: impl FnOnce(&mut Entries) -> T) -> T {
        // Every operation leaves the map whole, also one that panics.
        operation(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            linearizable: true,
            multi_key: true,
            store_clock_error_ns: None,
            watch: false,
        }
    }

    fn read(&self, key: &str) -> Answer<Read> {
        Box::pin(ready(self.locked(|entries| entries.read(key))))
    }

    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact> {
        Box::pin(ready(self.locked(|entries| entries.transact(&checks, writes))))
    }

    fn list(&self, prefix: &str) -> Answer<List> {
        Box::pin(ready(List::Keys(self.locked(|entries| entries.keys(prefix)))))
    }
}

#[derive(Debug, Default)]
struct Entries {
    values: BTreeMap<String, (Vec<u8>, Version)>,
    /// Counts the writes of all keys, so that no version ever comes back.
    writes: u128,
}

impl Entries {
    fn read(&self, key: &str) -> Read {
        match self.values.get(key) {
            Some((value, version)) => {
                Read::Entry { value: value.clone(), version: *version, age_ns: None }
            }
            None => Read::Absent,
        }
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        self.values.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    fn transact(&mut self, checks: &[Check], writes: Vec<Write>) -> Transact {
        if let Some(write) = writes.iter().find(|write| str::from_utf8(&write.value).is_err()) {
            return Transact::Unavailable(format!(
                "the value for {} is not UTF-8; stores keep text",
                write.key
            ));
        }
        if !checks.iter().all(|check| self.holds(check)) {
            return Transact::Conflict;
        }
        Transact::Applied(writes.into_iter().map(|write| self.put(write)).collect())
    }

    fn holds(&self, check: &Check) -> bool {
        match (self.values.get(&check.key), check.expect) {
            (None, Expect::Absent) => true,
            (Some((_, version)), Expect::Version(expected)) => *version == expected,
            _ => false,
        }
    }

    fn put(&mut self, Write { key, value }: Write) -> Version {
        self.writes += 1;
        let version = Version::new(&self.writes.to_be_bytes()).expect("16 bytes are fewer than 40");
        self.values.insert(key, (value, version));
        version
    }
}
