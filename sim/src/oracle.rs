//! The judge: named invariants, checked in true time at every event, on every node, frozen ones
//! too.
//!
//! An overlap needs no check between events. Whoever may act gets the right to in an event, and
//! loses it at the latest when its clock says so; two who may act at one instant may both act at
//! the event at which the later of them began.

use alloc::vec::Vec;

use leasehold_core::lease::{Input, State, Step, Wake};
use leasehold_core::observe::Event;
use leasehold_core::record;
use leasehold_core::store::{Body, Outcome, Request};
use leasehold_core::time::{Mono, Now};
use leasehold_core::token::{Nonce, Token};

use crate::node::Process;
use crate::trace::Trace;

/// What has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// At one true instant at most one node may act, or is acting.
    Exclusivity,
    /// The resource accepts no effect below a floor that it acknowledged; accepted terms never
    /// fall; no two holders write under one term.
    Fencing,
    /// Nothing may start before its token has been sealed, and no effect of an earlier token is
    /// accepted once something may.
    Gap,
    /// No term of a lineage is won twice.
    TermsAreWonOnce,
    /// A record's term only grows.
    TermsGrow,
    /// Exactly one `Ended` for every `Elected`, and not before the work has ended.
    OneEnd,
    /// Nobody writes or releases anything of a term, or calls it ended, while its work may be
    /// running.
    ReleasedAfterWork,
    /// The deadline is never later than the sending of a write that was applied, plus the ttl less
    /// margins.
    Deadline,
    /// Nothing may start from `stop_at` on, at whatever instant the host asks.
    Start,
    /// What may not start or finish any more, never may again under that token.
    OverForGood,
    /// A term that is over before it is confirmed is not announced.
    Announcement,
    /// Every request has a deadline in the future, and is the only one.
    Requests,
    /// Before the wake, a tick does nothing.
    Wake,
    /// A machine does not spin.
    Progress,
    /// An effect leaves while its holder may finish work.
    EffectInTime,
    /// Nothing may finish after a disruption.
    Disruption,
    /// No term is won at or below a floor that the instance was told of.
    Climb,
    /// Whoever reads its own token with a write that it did not make, stops at once.
    Twin,
    /// Nobody speaks of a broken store that is not broken.
    FalseAlarm,
    /// Once the faults are over, somebody leads in time.
    Liveness,
    /// Whoever is told to stop says in time that it has.
    Stopping,
}

/// What an invariant needs to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: it holds whatever clocks, stores and operators do.
    Unconditional,
    /// Clocks within their bound, a store that is linearizable, durable and left alone, no memory
    /// image that runs twice, nobody who waived exclusivity.
    Assuming,
}

impl Invariant {
    /// What it needs.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Exclusivity | Self::TermsAreWonOnce | Self::TermsGrow | Self::FalseAlarm => {
                Kind::Assuming
            }
            _ => Kind::Unconditional,
        }
    }
}

/// An invariant that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// True time, in nanoseconds.
    pub at_ns: u64,
    /// The node at which it was found.
    pub node: u8,
    /// What it assumes had been broken before: nothing that was promised failed.
    pub excused: bool,
}

/// What the judge remembers of the world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    /// The first of each invariant, excused or not.
    pub(crate) found: Vec<Violation>,
    /// What exclusivity assumes does not hold any more.
    pub(crate) broken: bool,
    /// The instances that won, in order.
    won: Vec<(Token, Nonce)>,
    sealed: Vec<Token>,
    floor: Option<Token>,
    accepted: Option<Token>,
    /// The highest token under which something might start.
    led: Option<Token>,
    /// The attempts that hold the lease and were applied.
    applied: Vec<Nonce>,
    /// The tokens that held the lease in the store.
    held: Vec<Token>,
}

impl Judge {
    pub(crate) fn new(broken: bool) -> Self {
        Self { broken, ..Self::default() }
    }

    pub(crate) fn object(&mut self, invariant: Invariant, at_ns: u64, node: u8) {
        if self.found.iter().any(|violation| violation.invariant == invariant) {
            return;
        }
        let excused = self.broken && invariant.kind() == Kind::Assuming;
        self.found.push(Violation { invariant, at_ns, node, excused });
    }

    /// A write that holds the lease was applied; `before`: the token in the record until then.
    pub(crate) fn written(
        &mut self,
        at_ns: u64,
        node: u8,
        (token, attempt): (Token, Nonce),
        before: Option<Token>,
    ) {
        self.applied.push(attempt);
        if !self.held.contains(&token) {
            self.held.push(token);
        }
        let fell = before.is_some_and(|before| {
            before != token && (before.lineage != token.lineage || before.term >= token.term)
        });
        if fell {
            self.object(Invariant::TermsGrow, at_ns, node);
        }
    }

    pub(crate) fn was_applied(&self, attempt: Nonce) -> bool {
        self.applied.iter().rev().any(|applied| *applied == attempt)
    }

    pub(crate) fn elected(&mut self, at_ns: u64, node: u8, token: Token, instance: Nonce) {
        let same_term = |won: &Token| won.lineage == token.lineage && won.term == token.term;
        if self.won.iter().any(|(won, by)| same_term(won) && (*won, *by) != (token, instance)) {
            self.object(Invariant::TermsAreWonOnce, at_ns, node);
        }
        self.won.push((token, instance));
    }

    pub(crate) fn sealed(&mut self, token: Token) {
        self.sealed.push(token);
        if self.floor.is_none_or(|floor| is_below(floor, token)) {
            self.floor = Some(token);
        }
    }

    /// Something may start under this token.
    pub(crate) fn leads(&mut self, at_ns: u64, node: u8, token: Token) {
        if self.led == Some(token) {
            return;
        }
        if !self.sealed.contains(&token) {
            self.object(Invariant::Gap, at_ns, node);
        }
        if self.led.is_none_or(|led| !is_below(token, led)) {
            self.led = Some(token);
        }
    }

    pub(crate) fn accepted(&mut self, at_ns: u64, node: u8, token: Token) {
        let stale = |known: &Token| {
            known.lineage != token.lineage
                || is_below(token, *known)
                || (known.term == token.term && known.nonce != token.nonce)
        };
        if self.floor.as_ref().is_some_and(stale) || self.accepted.as_ref().is_some_and(stale) {
            self.object(Invariant::Fencing, at_ns, node);
        }
        if self.led.is_some_and(|led| is_below(token, led)) {
            self.object(Invariant::Gap, at_ns, node);
        }
        self.accepted = Some(token);
    }

    /// The last token of the resource's history.
    pub(crate) fn last_token(&self) -> Option<Token> {
        let lineage = self.floor.as_ref().or(self.held.first())?.lineage;
        let of_it = self.held.iter().filter(|token| token.lineage == lineage);
        of_it.max_by_key(|token| token.term).copied()
    }

    /// One step of an elector, seen from outside.
    pub(crate) fn stepped(
        &mut self,
        at_ns: u64,
        node: u8,
        process: &mut Process,
        now: Now,
        (before, input, step): (&Stepped, &Input<'_>, &Step<'_>),
    ) {
        let mut object = |invariant| self.object(invariant, at_ns, node);
        let elector = &process.elector;
        let (may_start, may_finish) = (elector.may_start(now), elector.may_finish(now));

        let resumed_start = before.state == State::Leading && !before.may_start && may_start;
        let resumed_finish = before.is_working() && !before.may_finish && may_finish;
        if elector.token() == before.token && (resumed_start || resumed_finish) {
            object(Invariant::OverForGood);
        }
        if *input == Input::Disrupted && (may_start || may_finish) {
            object(Invariant::Disruption);
        }
        if before.sees_a_twin(process, input) && (may_start || may_finish) {
            object(Invariant::Twin);
        }
        if matches!(step.event, Some(Event::StoreFault(_))) {
            object(Invariant::FalseAlarm);
        }
        if !is_quiet_before(process, now, step.wake) {
            object(Invariant::Wake);
        }
        let memory = &mut process.memory;
        memory.busy = match memory.busy {
            (at, steps) if at == at_ns => (at, steps + 1),
            _ => (at_ns, 0),
        };
        if memory.busy.1 > MOST_STEPS {
            object(Invariant::Progress);
        }
        self.spoken(at_ns, node, process, now, step.event);
        self.asked(at_ns, node, process, now, (input, step));
        self.deadline(at_ns, node, process, now);
    }

    fn spoken(
        &mut self,
        at_ns: u64,
        node: u8,
        process: &mut Process,
        now: Now,
        event: Option<Event<'_>>,
    ) {
        let Process { elector, memory, .. } = process;
        match event {
            Some(Event::Elected { token }) => {
                self.elected(at_ns, node, token, elector.config().instance());
                if memory.term.replace(token).is_some() {
                    self.object(Invariant::OneEnd, at_ns, node);
                }
                memory.drained = false;
                if elector.stop_at(now).is_none_or(|stop_at| stop_at <= now.mono) {
                    self.object(Invariant::Announcement, at_ns, node);
                }
                let refused =
                    |floor: Token| floor.lineage == token.lineage && floor.term >= token.term;
                if memory.told_floor.is_some_and(refused) {
                    self.object(Invariant::Climb, at_ns, node);
                }
            }
            Some(Event::Ended { token, .. }) => {
                if memory.term.take() != Some(token) {
                    self.object(Invariant::OneEnd, at_ns, node);
                }
                if !memory.drained {
                    self.object(Invariant::ReleasedAfterWork, at_ns, node);
                }
            }
            _ => {}
        }
        if elector.token() != memory.term {
            self.object(Invariant::OneEnd, at_ns, node);
            memory.term = elector.token();
        }
    }

    fn asked(
        &mut self,
        at_ns: u64,
        node: u8,
        process: &mut Process,
        now: Now,
        (input, step): (&Input<'_>, &Step<'_>),
    ) {
        let memory = &mut process.memory;
        let answered = |op| matches!(input, Input::Done { op: done, .. } if *done == op);
        memory.in_flight.take_if(|(op, deadline)| answered(*op) || *deadline <= now.mono);
        // What a machine learns by other ways, or no longer needs, it waits for no more.
        let gave_up = matches!(input, Input::Hint(_) | Input::Adopt(_) | Input::Disrupted)
            || matches!(step.event, Some(Event::Ended { .. } | Event::Stopped));
        if gave_up {
            memory.in_flight = None;
        }
        let Some(Request { op, deadline, body }) = step.request else { return };
        let drained = memory.drained || memory.term.is_none();
        if let Body::Write { draft, .. } = body {
            memory.sent.push((draft.attempt, now.mono));
            if draft.kind != record::Kind::Held && !drained {
                self.object(Invariant::ReleasedAfterWork, at_ns, node);
            }
        }
        if deadline <= now.mono || memory.in_flight.replace((op, deadline)).is_some() {
            self.object(Invariant::Requests, at_ns, node);
        }
    }

    fn deadline(&mut self, at_ns: u64, node: u8, process: &Process, now: Now) {
        let elector = &process.elector;
        let Some(until) = elector.valid_until(now).filter(|until| *until > now.mono) else {
            return;
        };
        let valid_ns = elector.config().timing().valid_ns();
        let mut latest_first = process.memory.sent.iter().rev();
        let backed = latest_first
            .any(|(attempt, sent)| sent.after(valid_ns) >= until && self.was_applied(*attempt));
        if !backed {
            self.object(Invariant::Deadline, at_ns, node);
        }
    }

    pub(crate) fn saw_two_lineages(&self) -> bool {
        self.held.windows(2).any(|pair| matches!(pair, [a, b] if a.lineage != b.lineage))
    }

    pub(crate) fn hash(&self, trace: &mut Trace) {
        for violation in &self.found {
            trace.number(violation.invariant as u64);
            trace.number(violation.at_ns);
        }
    }
}

/// No machine takes more steps at one instant.
const MOST_STEPS: u32 = 64;

/// A machine as it was before a step.
pub(crate) struct Stepped {
    state: State,
    token: Option<Token>,
    may_start: bool,
    may_finish: bool,
}

impl Stepped {
    pub(crate) fn before(process: &Process, now: Now) -> Self {
        let elector = &process.elector;
        Self {
            state: elector.state(),
            token: elector.token(),
            may_start: elector.may_start(now),
            may_finish: elector.may_finish(now),
        }
    }

    fn is_working(&self) -> bool {
        matches!(self.state, State::Leading | State::Draining)
    }

    /// Whether the answer in flight shows its token with a write that this process did not make.
    fn sees_a_twin(&self, process: &Process, input: &Input<'_>) -> bool {
        let Input::Done { op, outcome: Outcome::Entry(entry), .. } = input else { return false };
        let counts = process.memory.in_flight.is_some_and(|(in_flight, _)| in_flight == *op);
        let Some(record) = entry.record.ok().filter(|_| counts && self.is_working()) else {
            return false;
        };
        Some(record.token) == self.token
            && !process.memory.sent.iter().any(|(attempt, _)| *attempt == record.attempt)
    }
}

/// Whether a tick just before the wake would do nothing.
fn is_quiet_before(process: &Process, now: Now, wake: Wake) -> bool {
    const LONG_NS: u64 = 3_600 * crate::SECOND_NS;
    let wait_ns = match wake {
        Wake::Now => return true,
        Wake::At(Mono(0)) => 0,
        Wake::At(at) => Mono(at.0 - 1).since(now.mono),
        Wake::Idle => LONG_NS,
    };
    if wait_ns == 0 {
        return true;
    }
    let just_before = Now {
        mono: now.mono.after(wait_ns),
        wall_ns: now.wall_ns.map(|wall_ns| wall_ns.saturating_add(wait_ns)),
    };
    let step = process.elector.image().step(just_before, Input::Tick);
    step.request.is_none() && step.event.is_none()
}

fn is_below(token: Token, other: Token) -> bool {
    token.lineage == other.lineage && token.term < other.term
}
