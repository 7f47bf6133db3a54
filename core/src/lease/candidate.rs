//! Not holding: watch the record, take it when it is free, and find out whether that worked.

use core::ops::Deref;

use super::{
    Attempts, Authority, Base, Cause, Claim, Config, Elector, Facts, FaultKind, State, Told,
};
use crate::fence::MAX_ADVANCE;
use crate::label::Label;
use crate::observe::{Event, Owner, StoreFault};
use crate::planted::planted;
use crate::record::{self, Kind, LeaseRecord, RecordFault};
use crate::store::{Entry, Outcome, Version};
use crate::time::{MILLISECOND_NS, Mono, Now, Stamp};
use crate::token::{Lineage, Nonce, Term, Token};

impl<C: Deref<Target = Config>> Elector<C> {
    /// A read in `Observing` or `Standby`.
    pub(super) fn observe<'a>(&mut self, now: Now, outcome: Outcome<'a>) -> Option<Event<'a>> {
        match outcome {
            Outcome::Entry(Entry { record: Ok(record), version, age_ns }) => {
                self.observe_record(now, record, version, age_ns)
            }
            Outcome::Entry(Entry { record: Err(fault), .. }) => self.blocked(now, fault.into()),
            Outcome::Absent if !self.known => {
                self.base = None;
                self.facts.fault = None;
                self.campaign(now)
            }
            _ => self.blocked(now, StoreFault::RecordGone),
        }
    }

    fn observe_record<'a>(
        &mut self,
        now: Now,
        record: LeaseRecord<'a>,
        version: Version,
        age_ns: Option<u64>,
    ) -> Option<Event<'a>> {
        let token = record.token;
        if self.known && token.lineage != self.lineage {
            return self.blocked(
                now,
                StoreFault::ForeignLineage { known: self.lineage, found: token.lineage },
            );
        }
        (self.known, self.lineage) = (true, token.lineage);

        let found = Base::of(&record, version);
        let before = self.base.replace(found);
        // Whatever else happens meanwhile, only `Standby` goes on watching.
        let watched = self.state == State::Standby;
        let unchanged = watched && before.is_some_and(|base| base.same_write(&found));
        let same_owner = watched && before.is_some_and(|base| base.same_token(&found));
        let mine_to_climb = self.facts.climb
            && record.instance == self.config.instance
            && before.is_some_and(|base| base.same_write(&found) && found.kind == Kind::Held);

        // Further back than a campaign could climb, it is the campaign that says so.
        let reach = found.term.get().saturating_add(MAX_ADVANCE);
        let went_back = self.floor > found.term.get() && self.floor <= reach && !mine_to_climb;
        let went_back = went_back
            .then_some(StoreFault::WentBack { floor: self.floor, found: found.term.get() });
        self.floor = self.floor.max(found.term.get());
        if went_back.is_none() {
            // Two are found by the campaign that a good read leads to.
            let lasting = |fault: &FaultKind| match fault {
                FaultKind::TooFar => self.floor > reach,
                FaultKind::Exhausted => self.floor >= Term::LAST.get(),
                _ => false,
            };
            self.facts.fault = self.facts.fault.filter(lasting);
        }

        if self.is_free(&record) || mine_to_climb {
            return self.campaign_over(now, went_back);
        }
        self.facts.climb = false;
        let ttl_ns = u64::from(record.ttl_ms) * MILLISECOND_NS;
        let window_ns =
            planted!(NoDriftMargin: ttl_ns => self.config.timing.drift.stretch_ns(ttl_ns));
        let was_alive = same_owner && self.facts.alive;
        match (self.config.authority, age_ns) {
            (Authority::StoreClock { error_ns }, Some(age_ns)) => {
                let over_ns = window_ns.saturating_add(error_ns);
                // An asker's write makes the entry young, and restarts nothing.
                let asked = matches!(record.state, record::State::Held { ask: Some(_) });
                let goes_on = asked && unchanged && self.by_age;
                if age_ns >= over_ns || (goes_on && now.mono >= self.until) {
                    return self.campaign_over(now, went_back);
                }
                let until = now.mono.after(over_ns - age_ns);
                self.until = if goes_on { self.until.min(until) } else { until };
                self.by_age = true;
                self.facts.alive = found.kind == Kind::Held;
            }
            _ => {
                // A window that began by the store's clock is none of ours.
                let goes_on = planted!(WindowOutlivesChange: same_owner => unchanged);
                if planted!(WindowRestartsAtRead: true => !goes_on || self.by_age) {
                    let early_ns = planted!(WindowFromRequest: self.config.timing.attempt_ns => 0);
                    self.until = now.mono.after(window_ns.saturating_sub(early_ns));
                }
                self.by_age = false;
                let shown = was_alive || (watched && !unchanged);
                self.facts.alive = shown && found.kind == Kind::Held;
            }
        }
        if self.state == State::Observing {
            self.go(Cause::Occupied);
        }
        let poll_ns = self.entropy.spread(self.config.timing.poll_ns);
        self.due = now.mono.after(poll_ns);
        if self.by_age {
            // Not at once again, should the store's clock stand still just before.
            let again = now.mono.after(self.config.timing.retry_ns);
            self.due = self.due.min(self.until.max(again));
        }
        if core::mem::take(&mut self.facts.hinted) {
            // A hint may be younger than this read, so there is one more, after a pause.
            self.due = self.due.min(now.mono.after(self.config.timing.retry_ns));
        }
        let news = !same_owner || (self.facts.alive && !was_alive);
        if news {
            // What else there is to say, the next read will say.
            let owner = Owner { holder: record.holder, instance: record.instance, token };
            return Some(Event::Standby { owner, alive: self.facts.alive });
        }
        self.fault(went_back?)
    }

    /// Released, or offered to this instance: it may be taken at once.
    fn is_free(&self, record: &LeaseRecord<'_>) -> bool {
        match record.state {
            record::State::Held { .. } => false,
            record::State::Offered { to, .. } => to.is_some_and(|to| self.is_me(to)),
            record::State::Released { .. } => true,
        }
    }

    /// Whether a label in the record names this instance, by its holder's label or by itself.
    pub(super) fn is_me(&self, to: Label<'_>) -> bool {
        record::names(to, self.config.holder(), self.config.instance)
    }

    /// The record is said to have changed. What is free may be taken directly, since the write is
    /// conditional on the version; everything else is a reason to look, and never a fault.
    pub(super) fn hint(&mut self, now: Now, entry: Option<Entry<'_>>) {
        let hinted = entry.and_then(|Entry { record, version, .. }| Some((record.ok()?, version)));
        match (self.state, hinted) {
            (State::Standby, Some((record, version))) => {
                let found = Base::of(&record, version);
                let is_newest = record.token.lineage == self.lineage
                    && (self.floor..Term::LAST.get()).contains(&found.term.get())
                    && self.base.is_none_or(|base| base.version != version);
                if is_newest && self.is_free(&record) {
                    self.base = Some(found);
                    self.flight = None;
                    self.campaign(now);
                } else if !self.base.is_some_and(|base| base.same_write(&found)) {
                    self.look_again(now);
                }
            }
            (State::Standby, None) => self.look_again(now),
            (State::Sealing | State::Leading, Some((record, _))) => {
                let asks = matches!(record.state, record::State::Held { ask: Some(_) });
                let is_news = asks || self.own_token() != Some(record.token);
                // One look between two renewals: a look takes a renewal's place.
                if is_news && !self.facts.hinted {
                    self.facts.hinted = true;
                    self.facts.doubt = true;
                    self.due = now.mono;
                }
            }
            _ => {}
        }
    }

    fn look_again(&mut self, now: Now) {
        match self.flight {
            None => self.due = now.mono,
            Some(_) => self.facts.hinted = true,
        }
    }

    /// An operator vouches for a token.
    pub(super) fn adopt(&mut self, now: Now, token: Token) {
        if self.holds() || self.state == State::Stopped {
            return;
        }
        self.flight = None;
        self.unsettle();
        (self.known, self.lineage, self.floor) = (true, token.lineage, token.term.get());
        (self.facts.fault, self.facts.climb) = (None, false);
        self.due = now.mono;
    }

    /// No campaign until a read is good again.
    pub(super) fn blocked<'a>(&mut self, now: Now, fault: StoreFault) -> Option<Event<'a>> {
        self.unsettle();
        self.due = now.mono.after(self.config.timing.poll_ns);
        self.fault(fault)
    }

    /// A campaign says what blocks it; only one that begins leaves room for a report.
    fn campaign_over<'a>(&mut self, now: Now, report: Option<StoreFault>) -> Option<Event<'a>> {
        match self.campaign(now) {
            None if self.state == State::Campaigning => self.fault(report?),
            said => said,
        }
    }

    /// Starts a campaign on `base`: the token is drawn here, once for all its attempts.
    pub(super) fn campaign<'a>(&mut self, now: Now) -> Option<Event<'a>> {
        let known_term = match self.base {
            Some(base) => base.term.get(),
            None => {
                self.lineage = Lineage(self.entropy.draw_wide());
                0
            }
        };
        if self.floor > known_term.saturating_add(MAX_ADVANCE) {
            return self.blocked(
                now,
                StoreFault::BeyondMaxAdvance { floor: self.floor, found: known_term },
            );
        }
        let Some(term) = self
            .floor
            .max(known_term)
            .checked_add(planted!(TermNotRaised: u64::from(known_term == 0) => 1))
            .and_then(Term::new)
        else {
            return self.blocked(now, StoreFault::Exhausted);
        };
        self.claim = Some(Claim { term, nonce: Nonce(self.entropy.draw()) });
        self.attempts = Attempts::EMPTY;
        self.facts.hinted = false;
        self.due = now.mono;
        self.go(Cause::Free);
        None
    }

    /// The re-read after a campaign without a clear answer.
    pub(super) fn reread_campaign<'a>(
        &mut self,
        now: Now,
        outcome: Outcome<'a>,
    ) -> Option<Event<'a>> {
        match (outcome, self.base) {
            (Outcome::Absent, None) => {
                self.go(Cause::Unapplied);
                self.due = now.mono.after(self.back_off_ns());
                None
            }
            (Outcome::Entry(Entry { record: Ok(record), version, age_ns }), base) => {
                let found = Base::of(&record, version);
                let sent = self.attempts.sent(record.attempt);
                let ours = self.own_token() == Some(record.token)
                    && record.instance == self.config.instance;
                match (sent, base) {
                    (Some(sent), _) if ours && found.kind == Kind::Held => {
                        let said = self.won(now, version, record.attempt, sent);
                        let asks = matches!(record.state, record::State::Held { ask: Some(_) });
                        if asks && self.state == State::Sealing {
                            // To be heard at the next read, before a renewal clears it.
                            self.facts.doubt = true;
                            self.due = now.mono;
                        }
                        said
                    }
                    (_, Some(base)) if base.same_write(&found) => {
                        self.base = Some(found);
                        self.go(Cause::Unapplied);
                        if base.version != version {
                            self.redraw();
                        }
                        self.due = now.mono.after(self.back_off_ns());
                        None
                    }
                    _ => {
                        self.unsettle();
                        self.observe_record(now, record, version, age_ns)
                    }
                }
            }
            (outcome, _) => {
                self.unsettle();
                self.observe(now, outcome)
            }
        }
    }

    /// Another base version: the attempts on the old one are dead, and a new token is drawn.
    fn redraw(&mut self) {
        self.attempts = Attempts::EMPTY;
        let nonce = Nonce(self.entropy.draw());
        if let Some(claim) = &mut self.claim {
            claim.nonce = nonce;
        }
    }

    /// The campaign's write is in the store, backed by the stamp of the attempt that did it.
    pub(super) fn won<'a>(
        &mut self,
        now: Now,
        version: Version,
        attempt: Nonce,
        sent: Stamp,
    ) -> Option<Event<'a>> {
        let claim = self.claim?;
        let token = self.own_token()?;
        self.base =
            Some(Base { version, term: claim.term, nonce: claim.nonce, attempt, kind: Kind::Held });
        (self.known, self.floor) = (true, claim.term.get());
        self.backing = sent;
        self.attempts = Attempts::EMPTY;
        self.facts = Facts {
            told: self.facts.told,
            heir: self.facts.heir,
            down: self.facts.down,
            down_told: self.facts.down_told,
            ..Facts::default()
        };
        let late = sent.elapsed_ns(now) >= self.config.stop_ns;
        let in_vain = self.facts.told.is_some() || planted!(LateElection: false => late);
        if in_vain {
            self.facts.once = late;
            self.due = now.mono;
            self.go(Cause::WonInVain);
            return None;
        }
        self.facts.announced = true;
        self.until = now.mono.after(self.config.timing.seal_within_ns);
        self.renew_after(sent);
        self.go(Cause::Won);
        Some(Event::Elected { token })
    }

    /// What was known of the record is void.
    pub(super) fn unsettle(&mut self) {
        self.claim = None;
        self.attempts = Attempts::EMPTY;
        // A wish to resign was for what this might have won.
        self.facts.told = self.facts.told.filter(|told| *told == Told::Stop);
        (self.facts.heir, self.facts.hinted) = (false, false);
        if self.state != State::Observing {
            self.go(Cause::Unsettled);
        }
    }

    /// After a wish to stop: how long a campaign in doubt is followed, to release what it may
    /// have taken. Later it runs out by itself.
    pub(super) fn campaign_runs_out(&self, now: Now) -> Option<Mono> {
        let (_, sent) = self.attempts.last()?;
        Some(now.mono.after(self.config.valid_ns.saturating_sub(sent.elapsed_ns(now))))
    }

    pub(super) fn campaign_has_run_out(&self, now: Now) -> bool {
        self.campaign_runs_out(now).is_none_or(|end| end <= now.mono)
    }
}

impl Base {
    fn of(record: &LeaseRecord<'_>, version: Version) -> Self {
        Self {
            version,
            term: record.token.term,
            nonce: record.token.nonce,
            attempt: record.attempt,
            kind: record.state.kind(),
        }
    }

    /// The same write as far as a window is concerned: a version that changed alone is an asker's.
    pub(super) fn same_write(&self, other: &Self) -> bool {
        self.same_token(other) && self.attempt == other.attempt && self.kind == other.kind
    }

    fn same_token(&self, other: &Self) -> bool {
        self.term == other.term && self.nonce == other.nonce
    }
}

impl From<RecordFault> for StoreFault {
    fn from(fault: RecordFault) -> Self {
        match fault {
            RecordFault::Newer { format } => Self::Newer { format },
            RecordFault::Malformed { offset } => Self::Malformed { offset },
        }
    }
}
