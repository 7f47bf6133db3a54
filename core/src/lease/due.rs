//! Transitions that are due by the clock or by what is known, without an input of their own.

use core::ops::Deref;

use super::{Cause, Config, Elector, FaultKind, State, Told};
use crate::observe::{Event, How, Reason, StoreFault};
use crate::planted::planted;
use crate::time::Now;

/// A transition that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Demote(Reason),
    Lose(Reason),
    Lead,
    TellLate,
    Release,
    End(How),
    Campaign,
    Forget,
    Stop,
    TellStore,
}

impl<C: Deref<Target = Config>> Elector<C> {
    /// What is due by the clock alone, judged before the input.
    pub(super) fn overdue(&self, now: Now) -> Option<Due> {
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
            State::Draining => match (self.facts.lost, self.facts.ended_by) {
                (Some(lost), Some(ended_by)) if ended_by.is_gentle() => Some(Due::Lose(lost)),
                _ => None,
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
    pub(super) fn due_transition(&self, now: Now) -> Option<Due> {
        self.overdue(now).or(match self.state {
            State::Sealing | State::Leading if self.facts.told == Some(Told::Stop) => {
                Some(Due::Demote(Reason::Stopped))
            }
            State::Sealing | State::Leading if self.facts.told.is_some() => {
                Some(Due::Demote(Reason::Resigned))
            }
            State::Sealing if planted!(LeadsUnsealed: true => self.facts.sealed) => Some(Due::Lead),
            State::Leading if self.facts.late && !self.facts.late_told => Some(Due::TellLate),
            State::Draining if planted!(ReleasedUndrained: true => self.facts.drained) => {
                Some(if self.may_release() { Due::Release } else { Due::End(How::Lost) })
            }
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
    pub(super) fn advance<'a>(&mut self, now: Now) -> Option<Event<'a>> {
        while let Some(due) = self.due_transition(now) {
            let event = self.carry_out(now, due);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    pub(super) fn carry_out<'a>(&mut self, now: Now, due: Due) -> Option<Event<'a>> {
        match due {
            Due::Demote(reason) => self.demote(now, reason, None),
            Due::Lose(reason) => {
                self.facts.ended_by = Some(reason);
                Some(Event::Demoted { token: self.own_token()?, reason, to: None })
            }
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
                self.due = now.mono.after(self.config.timing.sit_out_ns);
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
    pub(super) fn fault<'a>(&mut self, fault: StoreFault) -> Option<Event<'a>> {
        let kind = match fault {
            StoreFault::RecordGone => FaultKind::Gone,
            StoreFault::Malformed { .. } => FaultKind::Malformed,
            StoreFault::Newer { .. } => FaultKind::Newer,
            StoreFault::ForeignLineage { .. } => FaultKind::Foreign,
            StoreFault::WentBack { .. } => FaultKind::WentBack,
            StoreFault::BeyondMaxAdvance { .. } => FaultKind::TooFar,
            StoreFault::Exhausted => FaultKind::Exhausted,
        };
        let news = self.facts.fault.replace(kind) != Some(kind);
        news.then_some(Event::StoreFault(fault))
    }
}
