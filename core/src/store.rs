//! The storage contract, as the machines see it: what they ask for and what may come back.

use crate::label::{Label, Name, Note};
use crate::record::{Kind, LeaseRecord, RecordFault, State};
use crate::time::Mono;
use crate::token::{Nonce, Token};

/// What names one state of one key, unique in the key's whole life. Opaque; at most
/// [`Version::MAX_LEN`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl Version {
    /// No version is longer, in bytes.
    pub const MAX_LEN: usize = 40;

    /// A version from the store's bytes; none if there are too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut version = Self { bytes: [0; Self::MAX_LEN], len: u8::try_from(bytes.len()).ok()? };
        version
            .bytes
            .get_mut(..bytes.len())?
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Some(version)
    }

    /// The store's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl core::fmt::Debug for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Names a request; an answer counts only for the request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

/// One operation on the lease's own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the answer.
    pub op: OpId,
    /// After this the machine counts the answer as [`Outcome::Unknown`] by itself; a store need
    /// not try longer.
    pub deadline: Mono,
    /// What to do.
    pub body: Body,
}

/// What a request does. The core never lists keys and never deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Read the record, linearizably.
    Read,
    /// Write the record if the key is still as `expect` says; never resent by an adapter.
    Write {
        /// The version that the key must have; none: the key must be absent.
        expect: Option<Version>,
        /// What to write.
        draft: Draft,
    },
}

/// The part of a [`LeaseRecord`] that a machine decides. The texts for people are added where it
/// is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Of this acquisition.
    pub token: Token,
    /// Whether this write holds the lease, offers it or releases it.
    pub kind: Kind,
    /// Of this process.
    pub instance: Nonce,
    /// Milliseconds: the ttl, or an offer's grace.
    pub ttl_ms: u32,
    /// Fresh in every write.
    pub attempt: Nonce,
    /// Wall time, milliseconds since 1970, rounded down.
    pub at_ms: Option<u64>,
}

impl Draft {
    /// The whole record. `to`: whom an offer is made to, as last named by the host's own
    /// [`Resign`](crate::lease::Input::Resign) or by
    /// [`Demoted`](crate::observe::Event::Demoted).
    #[must_use]
    pub fn record<'a>(
        &self,
        name: Name<'a>,
        holder: Label<'a>,
        to: Option<Label<'a>>,
    ) -> LeaseRecord<'a> {
        LeaseRecord {
            name,
            token: self.token,
            state: match self.kind {
                Kind::Held => State::Held { ask: None },
                Kind::Offered => State::Offered { to, note: Note::EMPTY },
                Kind::Released => State::Released { note: Note::EMPTY },
            },
            holder,
            instance: self.instance,
            ttl_ms: self.ttl_ms,
            attempt: self.attempt,
            at_ms: self.at_ms,
            expires_by_ms: None,
        }
    }
}

/// How an operation ended. Reads and writes share it; an answer of the wrong kind counts as
/// [`Outcome::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Read: there is no such key.
    Absent,
    /// Read: what the key holds.
    Entry(Entry<'a>),
    /// Write: done and durable; the key's new version.
    Applied(Version),
    /// Write: the check failed, nothing was written.
    Conflict,
    /// Write: not applied, ask again.
    Undecided,
    /// No byte of the request left.
    Unavailable,
    /// May be applied, or may still be applied.
    Unknown,
    /// The store that this process knew is there no more (its file was deleted or replaced).
    Gone,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The record, or why it is none.
    pub record: Result<LeaseRecord<'a>, RecordFault>,
    /// What a conditional write has to name.
    pub version: Version,
    /// Age of the entry by the store's own clock, in nanoseconds, from a stamp that the store
    /// set in the write itself; `u64::MAX` where the store knows that its writer is dead.
    pub age_ns: Option<u64>,
}
