//! The store of a case: one linearizable key, changed by candidates and by anybody's hand.

use serde_json::{Map, Value};

use super::{Entry, NAME, Outcome};
use crate::json::{self, decimal, text};
use leasehold_core::store::Version;
use leasehold_core::time::MILLISECOND_NS;

/// The keys of a record, in the order of its bytes, and what a vector may leave out.
const FIELDS: [(&str, &str); 16] = [
    ("format", "1"),
    ("name", NAME),
    ("lineage", ""),
    ("term", ""),
    ("nonce", ""),
    ("state", "held"),
    ("holder", "rival"),
    ("instance", "00000000000000bb"),
    ("ttl_ms", "10000"),
    ("attempt", "0000000000000022"),
    ("to", ""),
    ("ask_id", ""),
    ("ask_to", ""),
    ("at", ""),
    ("expires_by", ""),
    ("note", ""),
];

/// The keys whose values stand in records without quotes.
const NUMBERS: [&str; 2] = ["format", "ttl_ms"];

/// A change that no candidate made.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Put(Vec<u8>),
    Patch(Map<String, Value>),
    Delete,
    /// Remembers the present state.
    Keep,
    /// Puts the remembered state back, as a new write.
    Restore,
}

/// What the store says of the entry's age.
#[derive(Clone, Copy, Debug)]
pub(super) enum Age {
    None,
    Exact,
    /// The store knows that the writer is dead.
    Dead,
}

#[derive(Debug, Default)]
pub(super) struct Key {
    held: Option<Written>,
    writes: u64,
    kept: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Written {
    value: Vec<u8>,
    version: u64,
    at_ms: u64,
}

impl Key {
    pub(super) fn edit(&mut self, at_ms: u64, edit: &Edit) {
        match edit {
            Edit::Put(value) => self.put(at_ms, value.clone()),
            Edit::Patch(changes) => self.put(at_ms, self.patched(changes)),
            Edit::Delete => self.held = None,
            Edit::Keep => self.kept = self.held.as_ref().map(|held| held.value.clone()),
            Edit::Restore => match self.kept.clone() {
                Some(value) => self.put(at_ms, value),
                None => self.held = None,
            },
        }
    }

    pub(super) fn read(&self, at_ms: u64, age: Age) -> Outcome {
        self.entry(at_ms, age).map_or(Outcome::Absent, Outcome::Entry)
    }

    pub(super) fn entry(&self, at_ms: u64, age: Age) -> Option<Entry> {
        let held = self.held.as_ref()?;
        let age_ns = match age {
            Age::None => None,
            Age::Exact => Some((at_ms - held.at_ms) * MILLISECOND_NS),
            Age::Dead => Some(u64::MAX),
        };
        Some(Entry { value: held.value.clone(), version: version(held.version), age_ns })
    }

    pub(super) fn write(&mut self, at_ms: u64, expect: Option<Version>, value: Vec<u8>) -> Outcome {
        if self.held.as_ref().map(|held| version(held.version)) != expect {
            return Outcome::Conflict;
        }
        self.put(at_ms, value);
        Outcome::Applied(version(self.writes))
    }

    /// The bytes as they would be with some fields changed.
    pub(super) fn patched(&self, changes: &Map<String, Value>) -> Vec<u8> {
        let held = self.held.as_ref().expect("a record to patch");
        let mut fields: Map<String, Value> =
            serde_json::from_slice(&held.value).expect("a record to patch");
        fields.extend(changes.clone());
        bytes(&fields)
    }

    fn put(&mut self, at_ms: u64, value: Vec<u8>) {
        self.writes += 1;
        self.held = Some(Written { value, version: self.writes, at_ms });
    }
}

pub(super) fn version(writes: u64) -> Version {
    Version::new(&writes.to_be_bytes()).expect("eight bytes")
}

/// A record's bytes from its fields. They are put together here and not by the core's encoder, so
/// that vectors can hold what no encoder writes.
pub(super) fn bytes(fields: &Map<String, Value>) -> Vec<u8> {
    let parts: Vec<String> = FIELDS
        .iter()
        .map(|&(key, default)| {
            let value = fields.get(key).map_or_else(|| default.to_owned(), plain);
            let quote = if NUMBERS.contains(&key) { "" } else { "\"" };
            format!("\"{key}\":{quote}{value}{quote}")
        })
        .collect();
    format!("{{{}}}", parts.join(",")).into_bytes()
}

/// The fields of a record as vectors spell them: `token` stands for three.
pub(super) fn fields(spelled: &Value) -> Map<String, Value> {
    let mut allowed: Vec<&str> = FIELDS.iter().map(|field| field.0).collect();
    allowed.push("token");
    let mut fields = json::object(spelled, &allowed).clone();
    if let Some(token) = fields.remove("token") {
        let token = json::token(&token).to_string();
        for (key, part) in ["lineage", "term", "nonce"].into_iter().zip(token.split('/')) {
            fields.insert(key.to_owned(), part.into());
        }
    }
    if let Some(term) = fields.get("term") {
        decimal(term);
    }
    fields
}

fn plain(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { text(value).to_owned() }
}
