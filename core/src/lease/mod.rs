//! The lease: who may act, decided by one machine per lease and process.
//!
//! [`Elector::step`] takes one input and answers with at most one request to the store, at most
//! one event, and when to call again. Inside a step: the clock is judged first, then the input
//! changes facts, then one transition that was due may speak. A transition that would need a
//! second event waits for the next step ([`Wake::Now`]); events are never queued, so none is
//! ever stale. Request and wake are derived from the state by one function each.

mod candidate;
mod config;
mod entropy;
mod holder;
mod table;

#[cfg(test)]
mod tests;

use core::ops::Deref;

pub use config::{Authority, Config, Misuse, Timing};
pub use table::{Cause, State, TABLE, next};

use crate::observe::{Event, How, Reason, StoreFault};
use crate::record::Kind;
use crate::store::{Body, Draft, OpId, Outcome, Request, Version};
use crate::time::{Mono, Now, Stamp};
use crate::token::{Lineage, Nonce, Term, Token};
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
    Resign,
    /// Give the lease up and never campaign again.
    Stop,
    /// The host learned of a clock jump, a resumed image, a migration.
    Disrupted,
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
    /// Whether `base` has been watched since `seen`; otherwise the next read starts a new window.
    watched: bool,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Read,
    Campaign,
    Renew,
    Release,
}

/// The writes sent since the last confirmed one: which attempts would prove that one of them was
/// applied. The oldest is forgotten first, which can only end a lease early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempts([(Nonce, Stamp); 4]);

impl Attempts {
    /// No attempt has nonce 0.
    const NONE: (Nonce, Stamp) = (Nonce(0), Stamp::ZERO);
    const EMPTY: Self = Self([Self::NONE; 4]);

    fn push(&mut self, attempt: Nonce, sent: Stamp) {
        let [_, second, third, fourth] = self.0;
        self.0 = [second, third, fourth, (attempt, sent)];
    }

    fn drop_last(&mut self) {
        let [first, second, third, _] = self.0;
        self.0 = [Self::NONE, first, second, third];
    }

    fn sent(&self, attempt: Nonce) -> Option<Stamp> {
        self.0.iter().find(|known| known.0 == attempt && **known != Self::NONE).map(|known| known.1)
    }

    fn last(&self) -> Option<(Nonce, Stamp)> {
        Some(self.0[3]).filter(|last| *last != Self::NONE)
    }
}

/// What is so, and what has been told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Facts {
    told: Option<Told>,
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
    down: bool,
    down_told: bool,
    fault: Option<FaultKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Resign,
    Stop,
}

/// A fault without its numbers, to say each once per change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    Gone,
    Unreadable,
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
            watched: false,
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

    /// Takes one input at one sample of the clocks, and gives one answer.
    pub fn step<'a>(&mut self, now: Now, input: Input<'a>) -> Step<'a> {
        self.judge_clock(now, matches!(input, Input::Disrupted));
        let overdue = self.overdue(now).and_then(|due| self.carry_out(now, due));
        let said = self.take(now, input);
        self.time_out(now);
        let event = overdue.or(said).or_else(|| self.advance(now));
        let request = self.request(now);
        let wake = if self.due_transition(now).is_some() { Wake::Now } else { self.wake(now) };
        Step { request, wake, event }
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
            && self.left_ns(now, self.config.stop_ns) > 0
    }

    /// Whether started work may still finish: leading or draining, and before `valid_until`.
    #[must_use]
    pub fn may_finish(&self, now: Now) -> bool {
        matches!(self.state, State::Leading | State::Draining)
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
    /// older than the last one.
    fn left_ns(&self, now: Now, span_ns: u64) -> u64 {
        if self.holds() && now.mono >= self.last {
            span_ns.saturating_sub(self.backing.elapsed_ns(now))
        } else {
            0
        }
    }

    fn go(&mut self, cause: Cause) {
        let to = next(self.state, cause);
        debug_assert!(to.is_some(), "no row for {:?} in {:?}", cause, self.state);
        #[cfg(test)]
        tests::visit(self.state, cause);
        self.state = to.unwrap_or(self.state);
    }

    /// Time before input: a clock that went back, or lost its declared wall, disrupts.
    fn judge_clock(&mut self, now: Now, disrupted: bool) {
        let went_back = now.mono < self.last || (self.config.clocks.wall && now.wall_ns.is_none());
        self.last = now.mono;
        if went_back || disrupted {
            self.disrupt(now);
        }
    }

    /// Stamps and windows from before count no more, and nothing is released.
    fn disrupt(&mut self, now: Now) {
        self.flight = None;
        self.watched = false;
        self.due = now.mono;
        match self.state {
            State::Sealing | State::Leading | State::Draining => self.lose(Reason::Disrupted),
            State::Releasing => self.facts.how = Some(How::Lost),
            State::Standby | State::Campaigning | State::Confirming => self.unsettle(),
            State::Observing | State::Stopped => {}
        }
    }

    /// Facts from the input. Only what must name something of the input speaks here.
    fn take<'a>(&mut self, now: Now, input: Input<'a>) -> Option<Event<'a>> {
        let mine = |token: Token| self.own_token() == Some(token);
        match input {
            Input::Tick | Input::Disrupted => None,
            Input::Done { op, outcome, salt } => {
                self.entropy.absorb(salt);
                let flight = self.flight.take_if(|_| op == OpId(self.ops))?;
                self.done(now, flight, outcome)
            }
            Input::Sealed(token) => {
                self.facts.sealed |= self.state == State::Sealing && mine(token);
                None
            }
            Input::SealRefused { token, floor } => {
                if mine(token) {
                    self.seal_refused(floor);
                }
                None
            }
            Input::Drained(token) => {
                self.facts.drained |= self.state == State::Draining && mine(token);
                None
            }
            Input::Resign => {
                self.told(Told::Resign);
                None
            }
            Input::Stop => {
                self.told(Told::Stop);
                None
            }
        }
    }

    fn told(&mut self, told: Told) {
        let undecided =
            matches!(self.state, State::Campaigning | State::Confirming) || self.holds();
        match told {
            Told::Stop => self.facts.told = Some(Told::Stop),
            Told::Resign if undecided && self.facts.told.is_none() => {
                self.facts.told = Some(Told::Resign);
            }
            Told::Resign => {}
        }
    }

    fn done<'a>(&mut self, now: Now, flight: Flight, outcome: Outcome<'a>) -> Option<Event<'a>> {
        match (flight.purpose, outcome) {
            (Purpose::Read, Outcome::Absent | Outcome::Entry { .. } | Outcome::Gone) => {
                self.facts.down = false;
                self.failures = 0;
                match self.state {
                    State::Confirming => self.reread_campaign(now, outcome),
                    _ if self.holds() => self.reread_hold(now, flight, outcome),
                    _ => self.observe(now, outcome),
                }
            }
            (Purpose::Campaign | Purpose::Renew | Purpose::Release, Outcome::Applied(version)) => {
                self.facts.down = false;
                self.failures = 0;
                let (attempt, sent) = self.attempts.last()?;
                match flight.purpose {
                    Purpose::Campaign => self.won(now, version, attempt, sent),
                    Purpose::Renew => self.confirmed(now, version, attempt, sent),
                    Purpose::Release | Purpose::Read => {
                        self.facts.how = Some(How::Released);
                        None
                    }
                }
            }
            (Purpose::Campaign | Purpose::Renew | Purpose::Release, Outcome::Gone) => {
                if self.holds() {
                    self.lose(Reason::RecordGone);
                    None
                } else {
                    self.unsettle();
                    self.fault(StoreFault::RecordGone)
                }
            }
            (
                Purpose::Campaign | Purpose::Renew | Purpose::Release,
                Outcome::Conflict | Outcome::Undecided,
            ) => {
                self.facts.down = false;
                self.failed(now, flight.sent.after(self.config.timing.attempt_ns), true);
                None
            }
            (purpose, Outcome::Unavailable) => {
                if purpose != Purpose::Read {
                    self.attempts.drop_last();
                }
                self.facts.down = true;
                self.failed(
                    now,
                    flight.sent.after(self.config.timing.attempt_ns),
                    purpose == Purpose::Campaign,
                );
                None
            }
            (purpose, _) => {
                self.facts.down = true;
                self.failed(
                    now,
                    flight.sent.after(self.config.timing.attempt_ns),
                    purpose != Purpose::Read,
                );
                None
            }
        }
    }

    /// A request past its deadline is `Unknown` by the machine's own clock.
    fn time_out(&mut self, now: Now) {
        let attempt_ns = self.config.timing.attempt_ns;
        if let Some(flight) =
            self.flight.take_if(|flight| flight.sent.after(attempt_ns) <= now.mono)
        {
            self.facts.down = true;
            self.failed(now, now.mono, flight.purpose != Purpose::Read);
        }
    }

    /// A request that did not do what it was for: when to ask next, and whether to read first.
    /// A holder tries again without back-off, a candidate with.
    fn failed(&mut self, now: Now, holder_due: Mono, doubt: bool) {
        self.failures = self.failures.saturating_add(1);
        if self.holds() {
            self.facts.doubt |= doubt;
            self.facts.late |= matches!(self.state, State::Sealing | State::Leading);
            if self.state == State::Releasing && self.facts.once {
                self.facts.how = Some(How::Expired);
            }
            self.due = now.mono.max(holder_due);
        } else {
            if self.state == State::Campaigning && doubt {
                self.go(Cause::InDoubt);
            }
            self.due = now.mono.after(self.back_off_ns());
        }
    }

    /// What is due by the clock alone, judged before the input.
    fn overdue(&self, now: Now) -> Option<Due> {
        match self.state {
            State::Sealing | State::Leading => match self.facts.lost {
                Some(reason) => Some(Due::Demote(reason)),
                None if self.left_ns(now, self.config.stop_ns) == 0 => {
                    Some(Due::Demote(Reason::DeadlinePassed))
                }
                None if self.state == State::Sealing && self.until <= now.mono => {
                    Some(Due::Demote(Reason::SealFailed))
                }
                None => None,
            },
            State::Releasing => match self.facts.how {
                Some(how) => Some(Due::End(how)),
                None if !self.facts.once && self.left_ns(now, self.config.valid_ns) == 0 => {
                    Some(Due::End(How::Expired))
                }
                None => None,
            },
            _ => None,
        }
    }

    /// The one transition that is due and needs no input, in the order in which they speak.
    fn due_transition(&self, now: Now) -> Option<Due> {
        self.overdue(now).or(match self.state {
            State::Sealing | State::Leading if self.facts.told == Some(Told::Stop) => {
                Some(Due::Demote(Reason::Stopped))
            }
            State::Sealing | State::Leading if self.facts.told.is_some() => {
                Some(Due::Demote(Reason::Resigned))
            }
            State::Sealing if self.facts.sealed => Some(Due::Lead),
            State::Leading if self.facts.late && !self.facts.late_told => Some(Due::TellLate),
            State::Draining if self.facts.drained && self.may_release() => Some(Due::Release),
            State::Draining if self.facts.drained => Some(Due::End(How::Lost)),
            State::Standby if self.flight.is_none() && !self.by_age && self.until <= now.mono => {
                Some(Due::Campaign)
            }
            State::Observing | State::Standby if self.facts.told == Some(Told::Stop) => {
                Some(Due::Stop)
            }
            State::Campaigning if self.facts.told.is_some() && self.flight.is_none() => {
                Some(if self.facts.told == Some(Told::Stop) { Due::Stop } else { Due::Forget })
            }
            State::Confirming if self.facts.told.is_some() && self.campaign_has_run_out(now) => {
                Some(Due::Forget)
            }
            _ if self.state != State::Stopped
                && !self.holds()
                && self.facts.down != self.facts.down_told =>
            {
                Some(Due::TellStore)
            }
            _ => None,
        })
    }

    /// Carries out due transitions until one of them speaks.
    fn advance<'a>(&mut self, now: Now) -> Option<Event<'a>> {
        while let Some(due) = self.due_transition(now) {
            let event = self.carry_out(now, due);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn carry_out<'a>(&mut self, now: Now, due: Due) -> Option<Event<'a>> {
        match due {
            Due::Demote(reason) => self.demote(now, reason),
            Due::Lead => self.lead(now),
            Due::TellLate => {
                self.facts.late_told = true;
                Some(Event::RenewalLate { stop_at: self.stop_at(now)? })
            }
            Due::Release => {
                self.start_release(now);
                None
            }
            Due::End(how) => self.end(now, how),
            Due::Campaign => self.campaign(now),
            Due::Forget => {
                self.unsettle();
                None
            }
            Due::Stop => {
                self.go(Cause::Stop);
                self.flight = None;
                Some(Event::Stopped)
            }
            Due::TellStore => {
                self.facts.down_told = self.facts.down;
                Some(if self.facts.down { Event::StoreDown } else { Event::StoreUp })
            }
        }
    }

    /// A fault is said once per change, and again after it was gone.
    fn fault<'a>(&mut self, fault: StoreFault) -> Option<Event<'a>> {
        let kind = match fault {
            StoreFault::RecordGone => FaultKind::Gone,
            StoreFault::Malformed { .. } | StoreFault::Newer { .. } => FaultKind::Unreadable,
            StoreFault::ForeignLineage { .. } => FaultKind::Foreign,
            StoreFault::WentBack { .. } => FaultKind::WentBack,
            StoreFault::BeyondMaxAdvance { .. } => FaultKind::TooFar,
            StoreFault::Exhausted => FaultKind::Exhausted,
        };
        let news = self.facts.fault.replace(kind) != Some(kind);
        news.then_some(Event::StoreFault(fault))
    }

    /// The one request that the state calls for, if it is due and none is in flight.
    fn request(&mut self, now: Now) -> Option<Request> {
        if self.flight.is_some() || self.due > now.mono {
            return None;
        }
        let purpose = self.purpose(now)?;
        let body = if purpose == Purpose::Read { Body::Read } else { self.write(now, purpose)? };
        self.ops = self.ops.wrapping_add(1);
        let op = OpId(self.ops);
        let deadline = now.mono.after(self.config.timing.attempt_ns);
        self.flight = Some(Flight { purpose, sent: now.mono });
        Some(Request { op, deadline, body })
    }

    fn purpose(&self, now: Now) -> Option<Purpose> {
        match self.state {
            State::Observing | State::Standby | State::Confirming => Some(Purpose::Read),
            State::Campaigning => Some(Purpose::Campaign),
            State::Sealing | State::Leading if self.facts.doubt => Some(Purpose::Read),
            State::Sealing | State::Leading => Some(Purpose::Renew),
            State::Draining if !self.still_renewing(now) => None,
            State::Draining if self.facts.doubt => Some(Purpose::Read),
            State::Draining => Some(Purpose::Renew),
            State::Releasing if self.facts.doubt => Some(Purpose::Read),
            State::Releasing => Some(Purpose::Release),
            State::Stopped => None,
        }
    }

    fn write(&mut self, now: Now, purpose: Purpose) -> Option<Body> {
        let token = self.own_token()?;
        let attempt = Nonce(self.entropy.draw());
        self.attempts.push(attempt, Stamp::of(now));
        let draft = Draft {
            token,
            released: purpose == Purpose::Release,
            instance: self.config.instance,
            ttl_ms: self.config.timing.ttl_ms,
            attempt,
            at_ms: now.wall_ns.map(|wall_ns| wall_ns / crate::time::MILLISECOND_NS),
        };
        Some(Body::Write { expect: self.base.map(|base| base.version), draft })
    }

    /// The earliest instant at which anything changes without an input.
    fn wake(&self, now: Now) -> Wake {
        let flight = self.flight.map(|flight| flight.sent.after(self.config.timing.attempt_ns));
        let request = self.purpose(now).filter(|_| self.flight.is_none()).map(|_| self.due);
        let deadline = match self.state {
            State::Sealing => self.stop_at(now).map(|stop_at| stop_at.min(self.until)),
            State::Leading => self.stop_at(now),
            State::Draining if self.still_renewing(now) => Some(self.until),
            State::Draining | State::Releasing => {
                self.valid_until(now).filter(|end| *end > now.mono)
            }
            State::Standby if self.flight.is_none() && !self.by_age => Some(self.until),
            State::Confirming if self.facts.told.is_some() => self.campaign_runs_out(now),
            _ => None,
        };
        match [flight, request, deadline].into_iter().flatten().min() {
            Some(at) => Wake::At(at),
            None => Wake::Idle,
        }
    }

    /// The next wait after a failure: doubling, at most the poll period, jittered.
    fn back_off_ns(&mut self) -> u64 {
        let Timing { retry_ns, poll_ns, .. } = self.config.timing;
        let doubled = retry_ns.saturating_mul(1 << self.failures.min(16));
        self.entropy.spread(doubled.min(poll_ns))
    }
}

/// A transition that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Demote(Reason),
    Lead,
    TellLate,
    Release,
    End(How),
    Campaign,
    Forget,
    Stop,
    TellStore,
}
