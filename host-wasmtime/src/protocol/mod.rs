//! What the driver speaks to: the core's electors over plain owned values, linked in
//! ([`Native`]) or inside wasmtime ([`Component`]). The same inputs give the same steps and the
//! same bytes either way.

mod component;
mod entropy;
mod native;

use std::fmt;

pub use component::{Component, Engine, EngineError};
pub use entropy::{Entropy, NoEntropy, OsEntropy};
use leasehold_core::label::{BadText, Label, Name};
use leasehold_core::lease::{Authority, Config, State, Wake};
use leasehold_core::observe::{self, How, Reason, StoreFault};
use leasehold_core::store::{OpId, Version};
use leasehold_core::time::{Clocks, Mono};
use leasehold_core::timing::{self, Timing};
use leasehold_core::token::{Nonce, Token};
pub use native::Native;

/// Electors, addressed by number, with a clock and a source of salt inside. Every call is short
/// and does no IO. The clock is sampled inside of each call.
///
/// A protocol that answered [`Dead`] is of no more use: its leases run out by themselves, and
/// whoever needs them opens them anew in a fresh protocol.
pub trait Protocol: sealed::Sealed + Send {
    /// A new candidate. Its number is never used again in this protocol.
    ///
    /// # Errors
    /// [`OpenError::Misuse`] leaves everything as it was.
    fn open(&mut self, options: &Open) -> Result<LeaseId, OpenError>;

    /// Forgets a candidate, whatever it holds. Calls on a closed lease are the driver's mistake
    /// and answer [`Dead`], as do those on a lease that never was.
    ///
    /// # Errors
    /// [`Dead`].
    fn close(&mut self, lease: LeaseId) -> Result<(), Dead>;

    /// Takes one input and gives one answer.
    ///
    /// # Errors
    /// [`Dead`].
    fn step(&mut self, lease: LeaseId, input: Input) -> Result<Step, Dead>;

    /// What may be done under the lease at this moment.
    ///
    /// # Errors
    /// [`Dead`].
    fn status(&mut self, lease: LeaseId) -> Result<Status, Dead>;
}

mod sealed {
    /// Steps are comparable between the two protocols of this crate only.
    pub trait Sealed {}
    impl Sealed for super::Native {}
    impl Sealed for super::Component {}
}

/// Addresses one candidate in one [`Protocol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u32);

/// What a candidate is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The lease's name; a `/` stands only in names that the library composes.
    pub name: String,
    /// Who holds it, for people.
    pub holder: String,
    /// Drawn at every start of a process.
    pub instance: Nonce,
    /// The spans of the lease.
    pub timing: Timing,
    /// Whose word ends another party's lease.
    pub authority: Authority,
    /// What the protocol's clock can do.
    pub clocks: Clocks,
}

impl Open {
    /// Checks everything, as both protocols do.
    fn check(&self) -> Result<Config, Misuse> {
        Name::new(&self.name).map_err(Misuse::Name)?;
        let holder = Label::new(&self.holder).map_err(Misuse::Holder)?;
        Config::new(self.instance, holder, self.timing, self.authority, self.clocks)
            .map_err(Misuse::Timing)
    }
}

/// What the driver tells a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A request has ended.
    Done {
        /// Which.
        op: OpId,
        /// How.
        outcome: Outcome,
    },
    /// Every resource of the lease is sealed with this token.
    Sealed(Token),
    /// A resource refused this token.
    SealRefused {
        /// The refused token.
        token: Token,
        /// From `Fenced` and `Collision` of the token's own lineage only: the fence's floor.
        floor: Option<u64>,
    },
    /// The work of this token has ended.
    Drained(Token),
    /// Give the lease up once, and stay away for a while.
    Resign {
        /// Label or instance of the one to offer it to; none: it is released to everyone. The
        /// last wish counts. No label: the driver's mistake.
        to: Option<String>,
    },
    /// Give the lease up and never campaign again.
    Stop,
    /// The host learned of a clock jump, a resumed image, a migration.
    Disrupted,
    /// Somebody saw the key change, and perhaps what it became.
    Hint(Option<Entry>),
    /// While nothing is held: an operator's word that this token belongs to this lease.
    Adopt(Token),
}

/// How an operation of the store ended, in the store's own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Read: there is no such key.
    Absent,
    /// Read: what the key holds.
    Entry(Entry),
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
    /// The store that this process knew is there no more.
    Gone,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bytes, exactly as they are kept.
    pub value: Vec<u8>,
    /// What a conditional write has to name.
    pub version: Version,
    /// Age by the store's own clock, in nanoseconds; `u64::MAX` where the store knows that the
    /// writer is dead.
    pub age_ns: Option<u64>,
}

/// The answer to one input.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// To be performed and answered with [`Input::Done`]. One at a time.
    pub request: Option<Request>,
    /// When to call again at the latest.
    pub wake: Wake,
    /// To be acted on before the next call.
    pub event: Option<Event>,
}

/// One operation on the lease's own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the answer.
    pub op: OpId,
    /// After this the candidate counts the answer as [`Outcome::Unknown`] by itself.
    pub deadline: Mono,
    /// `lease/NAME`.
    pub key: String,
    /// What to do.
    pub body: Body,
}

/// What a request does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Read the key, linearizably.
    Read,
    /// Write the key if it is still as `expect` says. Never resent.
    Write {
        /// The version that the key must have; none: the key must be absent.
        expect: Option<Version>,
        /// The record's canonical bytes.
        value: Vec<u8>,
    },
}

/// What may be done under a lease, and until when: all from one sample of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where the candidate is.
    pub state: State,
    /// The token of the term, from `Elected` to `Ended`.
    pub token: Option<Token>,
    /// Whether work may start.
    pub may_start: bool,
    /// Whether started work may still finish.
    pub may_finish: bool,
    /// Nanoseconds until `stop_at`; 0 where nothing may start.
    pub remaining_ns: u64,
    /// When nothing may start any more; none where nothing is held.
    pub stop_at: Option<Mono>,
    /// When nothing may finish any more; none where nothing is held.
    pub valid_until: Option<Mono>,
}

/// What a step has to say: the core's [`Event`](observe::Event) with its texts owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody else holds the lease.
    Standby {
        /// Who.
        owner: Owner,
        /// Proved alive: by a renewal that was seen, or by the store's own clock.
        alive: bool,
    },
    /// The lease is ours; nothing may start yet. To be answered with [`Input::Sealed`] or
    /// [`Input::SealRefused`].
    Elected {
        /// Larger than every token of this lease before it.
        token: Token,
    },
    /// Work may start.
    Leading {
        /// The token that was sealed.
        token: Token,
        /// Nothing may start from here on, unless a renewal moves it.
        stop_at: Mono,
    },
    /// A renewal was confirmed.
    Renewed {
        /// The new `stop_at`.
        until: Mono,
    },
    /// A renewal failed or stayed unanswered; the lease still holds.
    RenewalLate {
        /// As long as no renewal is confirmed.
        stop_at: Mono,
    },
    /// This token never starts anything again. To be answered with [`Input::Drained`].
    Demoted {
        /// Of the term that ends.
        token: Token,
        /// Why.
        reason: Reason,
        /// Whom the lease will be offered to, if the record asked for that.
        to: Option<String>,
    },
    /// The term is over; exactly one per `Elected`.
    Ended {
        /// Of the term that ended.
        token: Token,
        /// How.
        how: How,
    },
    /// While nothing is held: the store does not answer.
    StoreDown,
    /// It answers again.
    StoreUp,
    /// The store or somebody with access to it broke the contract; said once per change.
    StoreFault(StoreFault),
    /// The wish to stop was carried out; nothing follows.
    Stopped,
}

/// Who a record says holds the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// For people; may repeat.
    pub holder: String,
    /// The process.
    pub instance: Nonce,
    /// Its token.
    pub token: Token,
}

impl From<observe::Event<'_>> for Event {
    fn from(event: observe::Event<'_>) -> Self {
        match event {
            observe::Event::Standby { owner, alive } => Self::Standby {
                owner: Owner {
                    holder: owner.holder.as_str().to_owned(),
                    instance: owner.instance,
                    token: owner.token,
                },
                alive,
            },
            observe::Event::Elected { token } => Self::Elected { token },
            observe::Event::Leading { token, stop_at } => Self::Leading { token, stop_at },
            observe::Event::Renewed { until } => Self::Renewed { until },
            observe::Event::RenewalLate { stop_at } => Self::RenewalLate { stop_at },
            observe::Event::Demoted { token, reason, to } => {
                Self::Demoted { token, reason, to: to.map(|to| to.as_str().to_owned()) }
            }
            observe::Event::Ended { token, how } => Self::Ended { token, how },
            observe::Event::StoreDown => Self::StoreDown,
            observe::Event::StoreUp => Self::StoreUp,
            observe::Event::StoreFault(fault) => Self::StoreFault(fault),
            observe::Event::Stopped => Self::Stopped,
        }
    }
}

/// Why a candidate could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The caller's mistake.
    Misuse(Misuse),
    /// The protocol's end.
    Dead(Dead),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Dead(dead) => dead.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Misuse> for OpenError {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<Dead> for OpenError {
    fn from(dead: Dead) -> Self {
        Self::Dead(dead)
    }
}

/// Options that no candidate can be opened with; the text says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The name is outside its alphabet or length.
    Name(BadText),
    /// The holder's label is outside its alphabet or length.
    Holder(BadText),
    /// The spans do not fit together.
    Timing(timing::Misuse),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(bad) | Self::Holder(bad) => bad.fmt(f),
            Self::Timing(misuse) => misuse.fmt(f),
        }
    }
}

impl std::error::Error for Misuse {}

/// The end of a protocol and of all that it held; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead(String);

impl Dead {
    pub(crate) fn because(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }

    fn no_lease(lease: LeaseId) -> Self {
        Self(format!("the driver called lease {}, which is not open", lease.0))
    }

    fn no_number_left() -> Self {
        Self("2^32-1 leases were opened, and no number is used twice".to_owned())
    }
}

impl fmt::Display for Dead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the protocol ended, and its leases are lost: {}", self.0)
    }
}

impl std::error::Error for Dead {}
