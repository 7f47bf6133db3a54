//! Holding: seal, renew, stop in time, drain, release.

use core::ops::Deref;

use super::{Attempts, Cause, Config, Elector, Facts, Flight, State, Told};
use crate::fence::MAX_ADVANCE;
use crate::label::Label;
use crate::observe::{Event, How, Reason};
use crate::planted::planted;
use crate::record::{self, Kind};
use crate::store::{Entry, Outcome, Version};
use crate::time::{Now, Stamp};
use crate::token::Nonce;

impl<C: Deref<Target = Config>> Elector<C> {
    /// A renewal is in the store. Its deadline counts from the stamp of the attempt, taken before
    /// the request left: a late acknowledgement never extends the lease by its lateness.
    pub(super) fn confirmed<'a>(
        &mut self,
        now: Now,
        version: Version,
        attempt: Nonce,
        sent: Stamp,
    ) -> Option<Event<'a>> {
        if let Some(base) = &mut self.base {
            (base.version, base.attempt) = (version, attempt);
        }
        self.attempts = Attempts::EMPTY;
        self.facts.doubt = false;
        (self.facts.late, self.facts.late_told) = (false, false);
        self.facts.hinted = false;
        if self.facts.over {
            return None;
        }
        self.backing = planted!(DeadlineFromAcknowledgement: Stamp::of(now) => sent);
        self.renew_after(sent);
        if self.state == State::Releasing {
            self.due = now.mono;
            return None;
        }
        let ended = self.facts.lost.or(self.facts.ended_by.filter(|reason| !reason.is_gentle()));
        if ended.is_some() {
            return None;
        }
        Some(Event::Renewed { until: self.stop_at(now)? })
    }

    pub(super) fn renew_after(&mut self, sent: Stamp) {
        let renew_ns = self.entropy.trim(self.config.timing.renew_ns, 10);
        self.due = sent.mono().after(renew_ns);
    }

    /// A read while holding, which is always one after a doubt.
    pub(super) fn reread_hold<'a>(
        &mut self,
        now: Now,
        flight: Flight,
        outcome: Outcome<'a>,
    ) -> Option<Event<'a>> {
        let again = flight.sent.after(self.config.timing.attempt_ns);
        let (record, version) = match outcome {
            Outcome::Entry(Entry { record: Ok(record), version, .. }) => (record, version),
            Outcome::Entry(Entry { record: Err(fault), .. }) => {
                self.failed(now, again, true);
                return self.fault(fault.into());
            }
            _ => {
                self.lose(Reason::RecordGone);
                return None;
            }
        };
        self.facts.fault = None;
        if self.own_token() != Some(record.token) {
            if record.token.lineage == self.lineage {
                self.floor = self.floor.max(record.token.term.get());
            }
            let by_force = record.state.kind() != Kind::Held && record.state.note().is_some();
            self.lose(if by_force { Reason::Forced } else { Reason::RivalSeen });
            return None;
        }
        let by_me = record.instance == self.config.instance;
        let sent = self.attempts.sent(record.attempt).filter(|_| by_me);
        let said = match (record.state.kind(), sent) {
            (Kind::Held, Some(sent)) => self.confirmed(now, version, record.attempt, sent),
            (Kind::Held, None)
                if by_me && self.base.is_some_and(|base| base.attempt == record.attempt) =>
            {
                self.nothing_applied(version);
                self.due = now.mono.max(again);
                None
            }
            (Kind::Released, Some(_)) if self.state == State::Releasing => {
                self.facts.how = Some(How::Released);
                None
            }
            (Kind::Offered, Some(_)) if self.state == State::Releasing => {
                self.facts.how = Some(How::Offered);
                None
            }
            _ => {
                planted!(TwinTrusted: {} => self.lose(Reason::Twin));
                None
            }
        };
        match record.state {
            record::State::Held { ask: Some(ask) } => self.asked(now, ask.to).or(said),
            _ => said,
        }
    }

    /// The record asks for a hand-off. A wish that names this instance is cleared by the next
    /// renewal, as every wish is.
    fn asked<'a>(&mut self, now: Now, to: Label<'a>) -> Option<Event<'a>> {
        let leads = matches!(self.state, State::Sealing | State::Leading);
        if !leads || self.facts.lost.is_some() || self.is_me(to) {
            return None;
        }
        self.facts.told = self.facts.told.or(Some(Told::Resign));
        self.facts.heir = true;
        self.demote(now, Reason::Asked, Some(to))
    }

    /// The record shows the last confirmed write. If only its version is new, an asker wrote, and
    /// the attempts on the old version are dead.
    fn nothing_applied(&mut self, version: Version) {
        self.facts.doubt = false;
        if let Some(base) = self.base.as_mut().filter(|base| base.version != version) {
            base.version = version;
            self.attempts = Attempts::EMPTY;
        }
    }

    /// The term is lost at once: nothing may start or finish from here on.
    pub(super) fn lose(&mut self, reason: Reason) {
        if self.state == State::Releasing {
            self.facts.how = Some(How::Lost);
        } else {
            // What forbids a release outweighs what allows it.
            self.facts.lost =
                self.facts.lost.filter(|lost| *lost != Reason::SealFailed).or(Some(reason));
        }
    }

    /// A fence refused the token. With a floor the record may be campaigned on above it; without
    /// one the lease is given up, so that another may try.
    pub(super) fn seal_refused(&mut self, floor: Option<u64>) {
        if !matches!(self.state, State::Sealing | State::Leading | State::Draining) {
            return;
        }
        let Some(floor) = floor else { return self.lose(Reason::SealFailed) };
        self.floor = planted!(FloorForgotten: self.floor => self.floor.max(floor));
        let own_term = self.claim.map_or(0, |claim| claim.term.get());
        if floor > own_term.saturating_add(MAX_ADVANCE) {
            // Out of reach: the next read says so, and others need not wait for it.
            return self.lose(Reason::SealFailed);
        }
        self.facts.climb = true;
        self.lose(Reason::Refused);
    }

    pub(super) fn lead<'a>(&mut self, now: Now) -> Option<Event<'a>> {
        self.go(Cause::Sealed);
        Some(Event::Leading { token: self.own_token()?, stop_at: self.stop_at(now)? })
    }

    pub(super) fn demote<'a>(
        &mut self,
        now: Now,
        reason: Reason,
        to: Option<Label<'a>>,
    ) -> Option<Event<'a>> {
        self.go(Cause::Demoted);
        self.facts.ended_by = Some(reason);
        self.facts.renewing = matches!(reason, Reason::Resigned | Reason::Asked | Reason::Stopped);
        self.until = now.mono.after(self.config.timing.drain_ns);
        Some(Event::Demoted { token: self.own_token()?, reason, to })
    }

    /// Renewals go on while the work drains on request, for at most the drain budget.
    pub(super) fn still_renewing(&self, now: Now) -> bool {
        self.facts.renewing
            && self.facts.lost.is_none()
            && now.mono < self.until
            && self.left_ns(now, self.config.valid_ns) > 0
    }

    /// Only what the record may still show as ours is released, and after a twin or a disruption
    /// nothing is.
    pub(super) fn may_release(&self) -> bool {
        self.facts.lost.is_none_or(|reason| reason == Reason::SealFailed)
    }

    pub(super) fn start_release(&mut self, now: Now) {
        self.go(Cause::Drained);
        self.facts.once = self.left_ns(now, self.config.valid_ns) == 0;
        self.due = now.mono;
    }

    pub(super) fn end<'a>(&mut self, now: Now, how: How) -> Option<Event<'a>> {
        let token = self.own_token().filter(|_| self.facts.announced);
        let how = match how {
            How::Expired if self.facts.overdrawn => How::DrainTimeout,
            how => how,
        };
        self.go(Cause::Ended);
        let gave_up = self.facts.told == Some(Told::Resign)
            || self.facts.ended_by == Some(Reason::SealFailed);
        let wait_ns = if gave_up {
            self.config.timing.sit_out_ns
        } else if self.facts.climb {
            0
        } else {
            self.back_off_ns()
        };
        self.due = now.mono.after(wait_ns);
        self.claim = None;
        self.flight = None;
        self.attempts = Attempts::EMPTY;
        self.facts = Facts {
            told: self.facts.told.filter(|told| *told == Told::Stop),
            climb: self.facts.climb,
            down: self.facts.down,
            down_told: self.facts.down_told,
            fault: self.facts.fault,
            ..Facts::default()
        };
        planted!(EndedUnsaid: None => Some(Event::Ended { token: token?, how }))
    }
}
