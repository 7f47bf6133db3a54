//! The lease's vectors: loaded once, run against anything that claims to be a candidate.
//!
//! A claimant implements [`Machine`]; [`run`] plays the store, the clocks and the host of a case,
//! and stops at the first answer that the case does not allow.

mod case;
mod key;
mod run;

use leasehold_core::lease::State;
use leasehold_core::store::Version;
use leasehold_core::time::Now;
use leasehold_core::token::Token;

pub use case::{Candidate, Case, load, load_from};
pub use run::{Run, run};

/// The text of `tests/vectors/lease.json`.
pub const FILE: &str = include_str!("../vectors/lease.json");

/// The one lease of all cases.
pub const NAME: &str = "job";

/// One candidate for the lease, of whatever make.
pub trait Machine {
    /// Takes one input at one sample of the clocks.
    fn step(&mut self, now: Now, input: &Input) -> Answer;

    /// What may be done at a sample, without an input.
    fn status(&mut self, now: Now) -> Status;
}

/// What a host tells a candidate: an input of the core with the bytes that a store returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A request has ended.
    Done {
        /// Which.
        op: u32,
        /// How.
        outcome: Outcome,
        /// Fresh bits; in vectors a counter.
        salt: u64,
    },
    /// Every resource is sealed.
    Sealed(Token),
    /// A resource refused the token.
    SealRefused {
        /// The refused token.
        token: Token,
        /// The fence's floor, if it was one of the token's own lineage.
        floor: Option<u64>,
    },
    /// The work has ended.
    Drained(Token),
    /// Give the lease up once.
    Resign {
        /// Whom to offer it to; none: everyone.
        to: Option<String>,
    },
    /// Give the lease up for good.
    Stop,
    /// The host learned of a clock jump.
    Disrupted,
    /// The record is said to have changed.
    Hint(Option<Entry>),
    /// An operator vouches for a token.
    Adopt(Token),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Read: there is no such key.
    Absent,
    /// Read: what the key holds.
    Entry(Entry),
    /// Write: done; the new version.
    Applied(Version),
    /// Write: the key was not as expected.
    Conflict,
    /// Write: not applied, ask again.
    Undecided,
    /// No byte of the request left.
    Unavailable,
    /// May be applied, or may still be.
    Unknown,
    /// The store that was known is there no more.
    Gone,
}

/// What a store returns of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The bytes.
    pub value: Vec<u8>,
    /// Names this state of the key.
    pub version: Version,
    /// By the store's clock, in nanoseconds.
    pub age_ns: Option<u64>,
}

/// What a candidate answers to one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The core's step, as `leasehold_core::wire` writes it.
    pub message: Vec<u8>,
    /// The record to write, where the step asks for a write.
    pub value: Option<Vec<u8>>,
}

/// What a candidate says of itself at one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where it is.
    pub state: State,
    /// Whether work may start.
    pub may_start: bool,
    /// Whether started work may still finish.
    pub may_finish: bool,
}
