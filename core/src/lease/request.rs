//! Request and wake, each derived from the state by one function, so that they cannot disagree.

use core::ops::Deref;

use super::{Config, Elector, Flight, Purpose, State, Wake};
use crate::observe::How;
use crate::record::Kind;
use crate::store::{Body, Draft, OpId, Request};
use crate::time::{MILLISECOND_NS, Now, Stamp};
use crate::timing::Timing;
use crate::token::Nonce;

impl<C: Deref<Target = Config>> Elector<C> {
    /// The one request that the state calls for, if it is due and none is in flight.
    pub(super) fn request(&mut self, now: Now) -> Option<Request> {
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
            State::Releasing if self.facts.heir => Some(Purpose::Release(How::Offered)),
            State::Releasing => Some(Purpose::Release(How::Released)),
            State::Stopped => None,
        }
    }

    fn write(&mut self, now: Now, purpose: Purpose) -> Option<Body> {
        let token = self.own_token()?;
        let attempt = Nonce(self.entropy.draw());
        self.attempts.push(attempt, Stamp::of(now));
        let Timing { ttl_ms, grace_ms, .. } = self.config.timing;
        let (kind, ttl_ms) = match purpose {
            Purpose::Release(How::Offered) => (Kind::Offered, grace_ms),
            Purpose::Release(_) => (Kind::Released, ttl_ms),
            _ => (Kind::Held, ttl_ms),
        };
        let draft = Draft {
            token,
            kind,
            instance: self.config.instance,
            ttl_ms,
            attempt,
            at_ms: now.wall_ns.map(|wall_ns| wall_ns / MILLISECOND_NS),
        };
        Some(Body::Write { expect: self.base.map(|base| base.version), draft })
    }

    /// The earliest instant at which anything changes without an input.
    pub(super) fn wake(&self, now: Now) -> Wake {
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
    pub(super) fn back_off_ns(&mut self) -> u64 {
        let Timing { retry_ns, poll_ns, .. } = self.config.timing;
        let doubled = retry_ns.saturating_mul(1 << self.failures.min(16));
        self.entropy.spread(doubled.min(poll_ns))
    }
}
