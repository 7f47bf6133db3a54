//! The lease: who may act, decided by one machine per lease and process.
//!
//! [`Elector::step`] takes one input and answers with at most one request to the store, at most
//! one event, and when to call again. Inside a step: the clock is judged first, then the input
//! changes facts, then one transition that was due may speak. A transition that would need a
//! second event waits for the next step ([`Wake::Now`]); events are never queued, so none is
//! ever stale. Request and wake are derived from the state by one function each.

mod attempts;
mod candidate;
mod config;
mod due;
mod entropy;
mod fingerprint;
mod holder;
mod request;
mod step;
mod table;

#[cfg(test)]
mod tests;

use core::ops::Deref;

pub use config::{Authority, Config};
pub use fingerprint::Id;
pub use table::{Cause, State, TABLE, next};

use crate::label::Label;
use crate::observe::{Event, How, Reason};
use crate::planted::planted;
use crate::record::Kind;
use crate::store::{Entry, OpId, Outcome, Request, Version};
use crate::time::{Mono, Now, Stamp};
use crate::token::{Lineage, Nonce, Term, Token};
use attempts::Attempts;
use entropy::Entropy;

/// What a host tells an [`Elector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// A request has ended.
    Done {
        /// Which.
        op: OpId,
        /// How.
        outcome: Outcome<'a>,
        /// 64 fresh bits from the operating system, never from a pool in memory.
        salt: u64,
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
        /// last wish counts, until the record is written.
        to: Option<Label<'a>>,
    },
    /// Give the lease up and never campaign again.
    Stop,
    /// The host learned of a clock jump, a resumed image, a migration.
    Disrupted,
    /// Somebody saw the record change, and perhaps what it became: a record and its version as
    /// the store gave them. A hint that is lost, late or repeated costs time and nothing else.
    Hint(Option<Entry<'a>>),
    /// While nothing is held: an operator's word that this token belongs to this lease. Its
    /// lineage and term become the ones known, and a store fault that blocked is over. Where the
    /// record is gone, [`operator::init`](crate::operator::init) is what mends it.
    Adopt(Token),
}

/// The answer to one input.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// To be performed and answered with [`Input::Done`]. One at a time.
    pub request: Option<Request>,
    /// When to call again at the latest.
    pub wake: Wake,
    /// To be acted on before the next call.
    pub event: Option<Event<'a>>,
}

/// When a machine wants its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once: a transition is due.
    Now,
    /// With [`Input::Tick`] at this instant, or earlier.
    At(Mono),
    /// Only when there is an input.
    Idle,
}

/// One candidate for one lease. `C` points to the [`Config`] that the electors of a process
/// share: `&'static Config`, `Rc<Config>`, `Arc<Config>`.
///
/// It holds no text, no clock and no socket; it is never saved and never restored, since
/// authority is not copied.
///
/// ```
/// use leasehold_core::label::{Label, Name};
/// use leasehold_core::lease::{Authority, Config, Elector, Input, Step};
/// use leasehold_core::observe::Event;
/// use leasehold_core::record::{self, MAX_LEN};
/// use leasehold_core::store::{Body, Entry, Outcome, Version};
/// use leasehold_core::time::{Clocks, Drift, Mono, Now};
/// use leasehold_core::timing::Timing;
/// use leasehold_core::token::Nonce;
///
/// let timing = Timing::from_ttl(10_000, 500_000_000, 100_000_000, Drift::DEFAULT);
/// let clocks = Clocks { wall: false, resolution_ns: 1 };
/// let holder = Label::new("web-1").unwrap();
/// let config = Config::new(Nonce(1), holder, timing, Authority::LocalObservation, clocks);
/// let config = config.unwrap();
/// let mut now = Now { mono: Mono(1), wall_ns: None }; // a real host reads its clock
/// let mut elector = Elector::new(&config, now, 0x5a17); // and draws its salt
///
/// let mut key: Vec<u8> = Vec::new(); // a store with one key, which keeps nothing
/// let mut writes = 0u8;
/// let mut input = Input::Tick;
/// while !elector.may_start(now) {
///     now.mono = now.mono.after(1_000_000);
///     let Step { request, event, .. } = elector.step(now, input);
///     // The answer to a request may ask again at once.
///     input = match (request, event) {
///         (Some(request), _) => {
///             let version = Version::new(&[writes]).unwrap();
///             let outcome = match request.body {
///                 Body::Read if writes == 0 => Outcome::Absent,
///                 Body::Read => Outcome::Entry(Entry {
///                     record: record::decode_named("job", &key),
///                     version,
///                     age_ns: None,
///                 }),
///                 Body::Write { expect, .. } if expect != (writes > 0).then_some(version) => {
///                     Outcome::Conflict
///                 }
///                 Body::Write { draft, .. } => {
///                     let record = draft.record(Name::new("job").unwrap(), holder, None);
///                     key = record::encode(&record, &mut [0; MAX_LEN]).unwrap().to_vec();
///                     writes += 1;
///                     Outcome::Applied(Version::new(&[writes]).unwrap())
///                 }
///             };
///             Input::Done { op: request.op, outcome, salt: 0x5a18 }
///         }
///         (None, Some(Event::Elected { token })) => Input::Sealed(token), // seal first
///         _ => Input::Tick,
///     };
/// }
/// assert_eq!(elector.token().unwrap().term.get(), 1);
/// ```
#[derive(Debug)]
pub struct Elector<C> {
    config: C,
    state: State,
    last: Mono,
    entropy: Entropy,
    /// Whether `lineage` has been seen in the store, rather than drawn for a record to create.
    known: bool,
    lineage: Lineage,
    /// The highest term of this lineage that this instance knows.
    floor: u64,
    /// The record that the next write is conditional on; none: the key is absent.
    base: Option<Base>,
    /// When the state's own span is over. Standby: `base` is free, unless it changes. Sealing: its
    /// budget. Draining: the budget of its renewals.
    until: Mono,
    /// Standby: `until` follows from the store's clock, so that only a read can say so.
    by_age: bool,
    /// The acquisition that is tried or held.
    claim: Option<Claim>,
    /// While a term is held: the stamp of the attempt that backs it; what every deadline is
    /// measured from.
    backing: Stamp,
    attempts: Attempts,
    flight: Option<Flight>,
    ops: u32,
    /// No request before this.
    due: Mono,
    failures: u8,
    facts: Facts,
}

/// A record as far as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Base {
    version: Version,
    term: Term,
    nonce: Nonce,
    attempt: Nonce,
    kind: Kind,
}

/// One acquisition: drawn once per campaign and base version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    term: Term,
    nonce: Nonce,
}

/// A request in flight, or one that has just ended. Its id is the last one drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    purpose: Purpose,
    sent: Mono,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Read,
    Campaign,
    Renew,
    /// And how the term ends, if it is applied.
    Release(How),
}

/// What is so, and what has been told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Facts {
    told: Option<Told>,
    /// The release will be an offer, to the one whom the host knows.
    heir: bool,
    /// The term is lost at once: nothing may even finish.
    lost: Option<Reason>,
    /// Why the term in `Draining` or `Releasing` ended.
    ended_by: Option<Reason>,
    /// How the term in `Releasing` ended, once it has.
    how: Option<How>,
    /// A write's outcome is unknown: the next request is a read.
    doubt: bool,
    sealed: bool,
    drained: bool,
    /// The work outlasted the drain budget.
    overdrawn: bool,
    /// `Draining`: renewals go on.
    renewing: bool,
    /// `Releasing`: one write at most.
    once: bool,
    /// The term was announced as `Elected`.
    announced: bool,
    /// A fence's floor is above our own term: our own record may be campaigned on.
    climb: bool,
    late: bool,
    late_told: bool,
    /// Standby: the owner has proved that it is alive.
    alive: bool,
    /// Standby: the record changed while a read of it was in flight. Holding: a hint has been
    /// followed since the last confirmed renewal.
    hinted: bool,
    /// `valid_until` has passed by either clock, and for good, whatever a wall clock shows later.
    over: bool,
    down: bool,
    down_told: bool,
    fault: Option<FaultKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    Resign,
    Stop,
}

/// A fault without its numbers, to say each once per change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FaultKind {
    Gone,
    Malformed,
    Newer,
    Foreign,
    WentBack,
    TooFar,
    Exhausted,
}

impl<C: Deref<Target = Config>> Elector<C> {
    /// A candidate that knows nothing. `salt`: 64 fresh bits from the operating system.
    pub fn new(config: C, now: Now, salt: u64) -> Self {
        Self {
            config,
            state: State::Observing,
            last: now.mono,
            entropy: Entropy::new(salt),
            known: false,
            lineage: Lineage(0),
            floor: 0,
            base: None,
            until: now.mono,
            by_age: false,
            claim: None,
            backing: Stamp::of(now),
            attempts: Attempts::EMPTY,
            flight: None,
            ops: 0,
            due: now.mono,
            failures: 0,
            facts: Facts::default(),
        }
    }

    /// What a copied memory image would be. For simulators, which have to show that a copy does no
    /// harm and have to try one state in several ways; a host has no use for it, since authority
    /// is not copied.
    #[doc(hidden)]
    #[must_use]
    pub fn image(&self) -> Self
    where
        C: Clone,
    {
        Self { config: self.config.clone(), ..*self }
    }

    /// What it was told at construction.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the machine is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The token of the term, from `Elected` to `Ended`.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        if self.holds() && self.facts.announced { self.own_token() } else { None }
    }

    /// Whether work may start: leading, and before `stop_at`. No IO; a hung store delays nothing.
    #[must_use]
    pub fn may_start(&self, now: Now) -> bool {
        self.state == State::Leading
            && self.facts.lost.is_none()
            && self.left_ns(
                now,
                planted!(StartsUntilValid: self.config.valid_ns => self.config.stop_ns),
            ) > 0
    }

    /// Whether started work may still finish: leading or draining, and before `valid_until`. Never
    /// for a term that ended before it led: its resources may not be sealed.
    #[must_use]
    pub fn may_finish(&self, now: Now) -> bool {
        matches!(self.state, State::Leading | State::Draining)
            && self.facts.sealed
            && self.facts.lost.is_none()
            && self.facts.ended_by.is_none_or(Reason::is_gentle)
            && self.left_ns(now, self.config.valid_ns) > 0
    }

    /// Nanoseconds until `stop_at`; 0 where nothing may start.
    #[must_use]
    pub fn remaining_ns(&self, now: Now) -> u64 {
        if self.may_start(now) { self.left_ns(now, self.config.stop_ns) } else { 0 }
    }

    /// When nothing may start any more, as seen from `now`: not later than `now` once the term is
    /// being ended. None where nothing is held.
    #[must_use]
    pub fn stop_at(&self, now: Now) -> Option<Mono> {
        let ending = matches!(self.state, State::Draining | State::Releasing);
        let left_ns = if ending { 0 } else { self.left_ns(now, self.config.stop_ns) };
        self.holds().then_some(now.mono.after(left_ns))
    }

    /// When nothing may finish any more, as seen from `now`; none where nothing is held.
    #[must_use]
    pub fn valid_until(&self, now: Now) -> Option<Mono> {
        self.holds().then_some(now.mono.after(self.left_ns(now, self.config.valid_ns)))
    }

    fn holds(&self) -> bool {
        matches!(self.state, State::Sealing | State::Leading | State::Draining | State::Releasing)
    }

    fn own_token(&self) -> Option<Token> {
        let claim = self.claim?;
        Some(Token { lineage: self.lineage, term: claim.term, nonce: claim.nonce })
    }

    /// What is left of a span that began with the attempt that backs the term; 0 for a sample
    /// that would disrupt it.
    fn left_ns(&self, now: Now, span_ns: u64) -> u64 {
        if self.holds() && !self.facts.over && !self.is_disruption(now) {
            span_ns.saturating_sub(planted!(HolderIgnoresClock: 0 => self.backing.elapsed_ns(now)))
        } else {
            0
        }
    }

    /// A clock that went back, or lost the wall that was declared.
    fn is_disruption(&self, now: Now) -> bool {
        now.mono < self.last || (self.config.clocks.wall && now.wall_ns.is_none())
    }

    fn go(&mut self, cause: Cause) {
        let to = next(self.state, cause);
        debug_assert!(to.is_some(), "no row for {:?} in {:?}", cause, self.state);
        #[cfg(test)]
        tests::visit(self.state, cause);
        self.state = to.unwrap_or(self.state);
    }
}
