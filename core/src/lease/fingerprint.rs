//! What an elector is, apart from when and by which names: two that would decide alike from here on
//! hash alike.

use core::hash::{Hash as _, Hasher};
use core::ops::Deref;

use super::{Base, Claim, Config, Elector, State};
use crate::store::{OpId, Version};
use crate::time::{Now, Stamp};
use crate::token::{Lineage, Nonce};

/// A name that is drawn or given, and means nothing but equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// Of an acquisition, a write.
    Nonce(Nonce),
    /// Of a history of terms.
    Lineage(Lineage),
    /// Of one state of the key.
    Version(Version),
    /// Of the request in flight.
    Op(OpId),
}

impl<C: Deref<Target = Config>> Elector<C> {
    /// Feeds the state to `hasher`, as seen from `now`: instants relative to it, the past as such,
    /// names through `rename`, and nothing that no later step can read. The salt is left out: it
    /// decides names and jitter only. The configuration is left out as well.
    pub fn fingerprint<H: Hasher>(
        &self,
        now: Now,
        rename: &mut impl FnMut(Id) -> u64,
        hasher: &mut H,
    ) {
        self.state.hash(hasher);
        if self.state == State::Stopped {
            return;
        }
        self.facts.hash(hasher);
        self.failures.min(16).hash(hasher);
        now.mono.since(self.last).hash(hasher);
        self.due.since(now.mono).hash(hasher);
        if self.has_span() {
            self.until.since(now.mono).hash(hasher);
        }
        (self.state == State::Standby && self.by_age).hash(hasher);

        self.known.hash(hasher);
        if self.known {
            rename(Id::Lineage(self.lineage)).hash(hasher);
        }
        self.floor.hash(hasher);
        if let Some(Base { version, term, nonce, attempt, kind }) = self.base {
            rename(Id::Version(version)).hash(hasher);
            (term, kind).hash(hasher);
            rename(Id::Nonce(nonce)).hash(hasher);
            rename(Id::Nonce(attempt)).hash(hasher);
        }
        if let Some(Claim { term, nonce }) = self.claim {
            term.hash(hasher);
            rename(Id::Nonce(nonce)).hash(hasher);
        }
        if self.holds() && !self.facts.over {
            self.age(self.backing, now).hash(hasher);
        }
        for (attempt, sent) in self.attempts.iter() {
            rename(Id::Nonce(attempt)).hash(hasher);
            self.age(sent, now).hash(hasher);
        }
        if let Some(flight) = self.flight {
            rename(Id::Op(OpId(self.ops))).hash(hasher);
            flight.purpose.hash(hasher);
            flight.sent.after(self.config.timing.attempt_ns).since(now.mono).hash(hasher);
        }
    }

    /// Whether `until` means anything.
    fn has_span(&self) -> bool {
        match self.state {
            State::Standby => !self.by_age,
            State::Sealing => true,
            State::Draining => self.facts.renewing,
            _ => false,
        }
    }

    /// How far either clock has gone since a stamp; none where its validity is past.
    fn age(&self, stamp: Stamp, now: Now) -> Option<(u64, Option<i128>)> {
        let valid = stamp.elapsed_ns(now) < self.config.valid_ns;
        valid.then(|| (now.mono.since(stamp.mono()), stamp.wall_since_ns(now)))
    }
}
