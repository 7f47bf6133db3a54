//! One step: the clock, then the input as facts, then what follows.

use core::ops::Deref;

use super::{Cause, Config, Elector, Flight, Input, Purpose, State, Step, Told, Wake};
use crate::observe::{Event, How, Reason, StoreFault};
use crate::planted::planted;
use crate::store::{OpId, Outcome};
use crate::time::{Mono, Now};
use crate::token::Token;

impl<C: Deref<Target = Config>> Elector<C> {
    /// Takes one input at one sample of the clocks, and gives one answer.
    pub fn step<'a>(&mut self, now: Now, input: Input<'a>) -> Step<'a> {
        self.judge_clock(now, matches!(input, Input::Disrupted));
        let overdue = self.overdue(now).and_then(|due| self.carry_out(now, due));
        let said = self.take(now, input);
        if overdue.is_some() && matches!(said, Some(Event::StoreFault(_))) {
            // One event a step: the next read will say it.
            self.facts.fault = None;
        }
        self.time_out(now);
        let event = overdue.or(said).or_else(|| self.advance(now));
        let request = self.request(now);
        let wake = if self.due_transition(now).is_some() { Wake::Now } else { self.wake(now) };
        Step { request, wake, event }
    }

    /// Time before input.
    fn judge_clock(&mut self, now: Now, disrupted: bool) {
        let disrupted = planted!(DisruptionIgnored: false => disrupted || self.is_disruption(now));
        self.last = now.mono;
        let over = self.holds() && self.left_ns(now, self.config.valid_ns) == 0;
        self.facts.over |= planted!(LateAcknowledgementRevives: false => over);
        if disrupted {
            self.disrupt(now);
        }
    }

    /// Stamps and windows from before count no more, and nothing is released.
    fn disrupt(&mut self, now: Now) {
        self.flight = None;
        // Not at once: a clock that is broken for long would ask the store without a pause. A stay
        // away goes on, as far as a clock that jumped still tells.
        let soon = now.mono.after(self.config.timing.retry_ns);
        let latest = now.mono.after(self.config.timing.sit_out_ns);
        let stays = self.state == State::Observing;
        self.due = if stays { self.due.max(soon).min(latest) } else { soon };
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
                if self.state == State::Draining && !self.facts.drained && mine(token) {
                    self.facts.drained = true;
                    self.facts.overdrawn = self.facts.renewing && self.until <= now.mono;
                }
                None
            }
            Input::Resign { to } => {
                if self.holds() || matches!(self.state, State::Campaigning | State::Confirming) {
                    self.facts.told = self.facts.told.or(Some(Told::Resign));
                    self.facts.heir = to.is_some();
                }
                None
            }
            Input::Stop => {
                self.facts.told = Some(Told::Stop);
                None
            }
            Input::Hint(entry) => {
                self.hint(now, entry);
                None
            }
            Input::Adopt(token) => {
                self.adopt(now, token);
                None
            }
        }
    }

    fn done<'a>(&mut self, now: Now, flight: Flight, outcome: Outcome<'a>) -> Option<Event<'a>> {
        match (flight.purpose, outcome) {
            (Purpose::Read, Outcome::Absent | Outcome::Entry(_) | Outcome::Gone) => {
                // A store that is read but does not write is as good as down to a campaign.
                self.facts.down &= self.state == State::Confirming;
                self.failures = 0;
                match self.state {
                    State::Confirming => self.reread_campaign(now, outcome),
                    _ if self.holds() => self.reread_hold(now, flight, outcome),
                    _ => self.observe(now, outcome),
                }
            }
            (
                Purpose::Campaign | Purpose::Renew | Purpose::Release(_),
                Outcome::Applied(version),
            ) => {
                self.facts.down = false;
                self.failures = 0;
                let (attempt, sent) = self.attempts.last()?;
                match flight.purpose {
                    Purpose::Campaign => self.won(now, version, attempt, sent),
                    Purpose::Renew => self.confirmed(now, version, attempt, sent),
                    Purpose::Release(how) => {
                        self.facts.how = Some(how);
                        None
                    }
                    Purpose::Read => None,
                }
            }
            (Purpose::Campaign | Purpose::Renew | Purpose::Release(_), Outcome::Gone) => {
                if self.holds() {
                    self.lose(Reason::RecordGone);
                    None
                } else {
                    self.blocked(now, StoreFault::RecordGone)
                }
            }
            (
                Purpose::Campaign | Purpose::Renew | Purpose::Release(_),
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
            planted!(TimeOutConfirms: {
                self.backing = self.attempts.last().map_or(self.backing, |last| last.1);
            } => {});
            self.failed(now, now.mono, flight.purpose != Purpose::Read);
        }
    }

    /// A request that did not do what it was for: when to ask next, and whether to read first.
    /// A holder tries again without back-off, a candidate with.
    pub(super) fn failed(&mut self, now: Now, holder_due: Mono, doubt: bool) {
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
}
