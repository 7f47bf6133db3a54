//! The spans of a lease: derived from what it has to achieve, from a ttl, or made by hand; and
//! what they have to satisfy.
//!
//! With `a` the time-out of one attempt, `r` the renewal period, `k` lost renewals, a pause `p`,
//! a drain `d`, a guard `g`, the poll `q`, the error `e` of the store's clock, the drift `rho`:
//!
//! ```text
//! r >= 4a                                      a renewal has room to be doubted and confirmed
//! r + (2k+1)a + p + d + g <= ttl*(1-rho)       k lost renewals and a pause cost nothing
//! ttl*(1+rho)/(1-rho) + e + q + 2a <= T        a dead holder is replaced within T
//! ```
//!
//! [`Timing::check`] judges the first two, and that the rest is no nonsense; [`derive()`] also
//! keeps the third, and says what the result does in a [`Plan`].
//!
//! The holder's spans are rounded down, the observer's up. What is longer than `u64` holds, 584
//! years, counts as that.

mod budget;
mod misuse;
mod plan;
mod span;
#[cfg(test)]
mod tests;

pub use budget::{Budget, Refusal, derive};
pub use misuse::Misuse;
pub use plan::Plan;
pub use span::Span;

use crate::lease::Authority;
use crate::record::MAX_TTL_MS;
use crate::time::{Drift, MILLISECOND_NS};

/// The spans of a lease, in nanoseconds but for the two that stand in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others believe this holder without a renewal, in milliseconds; it stands in the
    /// record.
    pub ttl_ms: u32,
    /// From the send stamp of the confirmed attempt to the next renewal.
    pub renew_ns: u64,
    /// How long one request may take; at least the store's p99.
    pub attempt_ns: u64,
    /// Lost renewals in a row that cost nothing; at least 2.
    pub tolerated: u32,
    /// A pause of the process that costs nothing.
    pub pause_ns: u64,
    /// What ending the work takes: `stop_at` is that much before `valid_until`.
    pub drain_ns: u64,
    /// Covers the coarsest clock of any party and the time from a question to its effect.
    pub guard_ns: u64,
    /// How often a candidate looks at the record.
    pub poll_ns: u64,
    /// The shortest wait of a candidate after a failure; doubles up to `poll_ns`.
    pub retry_ns: u64,
    /// How long sealing may take before the lease is given up.
    pub seal_within_ns: u64,
    /// How long an offer is kept for the one it is made to, in milliseconds; it stands in the
    /// offered record. Time for that one to poll, read and swap.
    pub grace_ms: u32,
    /// How long this instance stays away after resigning or failing to seal: longer than the
    /// grace, on any two clocks, so that another may try.
    pub sit_out_ns: u64,
    /// The bound on every party's clock rate.
    pub drift: Drift,
}

impl Timing {
    /// No attempt is shorter: spans in records are in milliseconds.
    const SHORTEST_ATTEMPT_NS: u64 = MILLISECOND_NS;
    /// What a ttl without room for any attempt is measured by: a busy disk keeps it.
    const FAIR_ATTEMPT_NS: u64 = 100 * MILLISECOND_NS;
    /// The longest attempt that [`Timing::from_ttl`] asks for.
    const LONGEST_ATTEMPT_NS: u64 = 2_000 * MILLISECOND_NS;
    /// However long the ttl: a lease that was given up does not wait long for the next holder.
    const LONGEST_POLL_NS: u64 = 2_000 * MILLISECOND_NS;
    const LONGEST_RETRY_NS: u64 = 500 * MILLISECOND_NS;
    const LONGEST_GRACE_NS: u64 = 15_000 * MILLISECOND_NS;
    const LONGEST_SIT_OUT_NS: u64 = 60_000 * MILLISECOND_NS;
    const LONGEST_TTL_NS: u64 = MAX_TTL_MS as u64 * MILLISECOND_NS;
    /// The fewest lost renewals to leave room for.
    const TOLERATED: u32 = 2;

    /// Everything from a ttl and the drain and guard it has to leave room for, with two lost
    /// renewals tolerated. [`Timing::check`] refuses what does not fit.
    #[must_use]
    pub fn from_ttl(ttl_ms: u32, drain_ns: u64, guard_ns: u64, drift: Drift) -> Self {
        let ttl_ns = milliseconds(ttl_ms);
        let room_ns = drift.shrink_ns(ttl_ns).saturating_sub(drain_ns.saturating_add(guard_ns));
        let pause_ns = room_ns / 10;
        let attempts = 4 + 2 * u64::from(Self::TOLERATED) + 1;
        let attempt_ns = match (room_ns - pause_ns) / attempts {
            0..Self::SHORTEST_ATTEMPT_NS => Self::FAIR_ATTEMPT_NS,
            attempt_ns => attempt_ns.min(Self::LONGEST_ATTEMPT_NS),
        };
        Self {
            ttl_ms,
            renew_ns: 0,
            attempt_ns,
            tolerated: Self::TOLERATED,
            pause_ns,
            drain_ns,
            guard_ns,
            poll_ns: (ttl_ns / 3).min(Self::LONGEST_POLL_NS),
            retry_ns: (ttl_ns / 50).clamp(1, Self::LONGEST_RETRY_NS),
            seal_within_ns: 0,
            grace_ms: 0,
            sit_out_ns: 0,
            drift,
        }
        .completed()
    }

    /// Fills in what follows from the ttl, the attempt, the poll and the budgets.
    fn completed(self) -> Self {
        let ttl_ns = milliseconds(self.ttl_ms);
        let poll_ns = self.poll_ns.min(self.longest_poll_ns()).max(1);
        let grace_ns = (ttl_ns / 3 * 2).min(Self::LONGEST_GRACE_NS);
        let grace_ms = (grace_ns / MILLISECOND_NS)
            .max(Self { poll_ns, ..self }.least_grace_ms())
            .min(u64::from(MAX_TTL_MS)) as u32;
        Self {
            // What it leaves of the room serves more lost renewals, or a longer pause.
            renew_ns: (ttl_ns / 3).min(self.latest_renewal_ns()).max(self.least_renewal_ns()),
            poll_ns,
            seal_within_ns: (ttl_ns / 2).max(1),
            grace_ms,
            sit_out_ns: ttl_ns
                .min(Self::LONGEST_SIT_OUT_NS)
                .max(Self { grace_ms, ..self }.least_sit_out_ns()),
            ..self
        }
    }

    /// Whether these spans work together, on clocks whose coarsest step is `resolution_ns`.
    ///
    /// # Errors
    /// [`Misuse`] names the first constraint that fails, in the order of its variants, and the
    /// nearest value that passes.
    pub fn check(&self, resolution_ns: u64) -> Result<(), Misuse> {
        if !(1..=MAX_TTL_MS).contains(&self.ttl_ms) {
            return Err(Misuse::Ttl);
        }
        if self.tolerated < Self::TOLERATED {
            return Err(Misuse::Tolerated);
        }
        if self.attempt_ns < Self::SHORTEST_ATTEMPT_NS {
            return Err(Misuse::Attempt { attempt_ns: Self::SHORTEST_ATTEMPT_NS });
        }
        let readings_ns = resolution_ns.saturating_mul(2);
        if self.guard_ns < readings_ns {
            return Err(Misuse::Guard { guard_ns: readings_ns });
        }
        if self.renew_ns < self.least_renewal_ns() {
            return Err(Misuse::Renewal { renew_ns: self.least_renewal_ns() });
        }
        let needed_ns = self.renew_ns.saturating_add(self.reserved_ns());
        if self.drift.shrink_ns(milliseconds(self.ttl_ms)) < needed_ns {
            let ttl_ms = self.drift.unshrink_ns(needed_ns).div_ceil(MILLISECOND_NS);
            return Err(Misuse::TooShort { ttl_ms });
        }
        let poll_ns = self.poll_ns.min(self.longest_poll_ns()).max(1);
        if self.poll_ns != poll_ns {
            return Err(Misuse::Poll { poll_ns });
        }
        if self.retry_ns == 0 {
            return Err(Misuse::Retry);
        }
        if self.seal_within_ns == 0 {
            return Err(Misuse::SealWithin);
        }
        let grace_ms =
            u64::from(self.grace_ms).max(self.least_grace_ms()).min(u64::from(MAX_TTL_MS));
        if u64::from(self.grace_ms) != grace_ms {
            return Err(Misuse::Grace { grace_ms });
        }
        if self.sit_out_ns < self.least_sit_out_ns() {
            return Err(Misuse::SitOut { sit_out_ns: self.least_sit_out_ns() });
        }
        Ok(())
    }

    /// How long after the send stamp of a confirmed attempt started work may finish, by the
    /// holder's clock: `ttl*(1-rho) - guard`.
    #[must_use]
    pub const fn valid_ns(&self) -> u64 {
        self.drift.shrink_ns(milliseconds(self.ttl_ms)).saturating_sub(self.guard_ns)
    }

    /// The longest time from the last sign of a holder that died to the next one elected:
    /// `ttl*(1+rho)/(1-rho) + e + poll + 2*attempt`. The sign is seen a poll and a read late, the
    /// window is waited out on the slowest clock, and one swap takes the lease.
    #[must_use]
    pub const fn takeover_ns(&self, authority: Authority) -> u64 {
        let window_ns = self.drift.stretch_ns(milliseconds(self.ttl_ms));
        let error_ns = match authority {
            Authority::LocalObservation => 0,
            Authority::StoreClock { error_ns } => error_ns,
        };
        self.drift
            .unshrink_ns(window_ns)
            .saturating_add(error_ns)
            .saturating_add(self.poll_ns)
            .saturating_add(self.attempt_ns.saturating_mul(2))
    }

    const fn least_renewal_ns(&self) -> u64 {
        self.attempt_ns.saturating_mul(4)
    }

    /// The longest renewal period that still fits into the ttl.
    fn latest_renewal_ns(&self) -> u64 {
        self.drift.shrink_ns(milliseconds(self.ttl_ms)).saturating_sub(self.reserved_ns())
    }

    /// What has to follow a renewal that is due: the lost ones, each its time-out and its
    /// re-read, the one that works, the pause, the drain, the guard.
    fn reserved_ns(&self) -> u64 {
        self.attempt_ns
            .saturating_mul(2 * u64::from(self.tolerated) + 1)
            .saturating_add(self.pause_ns)
            .saturating_add(self.drain_ns)
            .saturating_add(self.guard_ns)
    }

    /// The poll that the longest grace has room for.
    const fn longest_poll_ns(&self) -> u64 {
        let grace_ns = self.drift.shrink_ns(Self::LONGEST_TTL_NS);
        grace_ns.saturating_sub(self.attempt_ns.saturating_mul(2))
    }

    /// On the slowest clock a poll, a read and a swap end within the grace.
    fn least_grace_ms(&self) -> u64 {
        let taken_ns = self.poll_ns.saturating_add(self.attempt_ns.saturating_mul(2));
        self.drift.unshrink_ns(taken_ns).div_ceil(MILLISECOND_NS).max(1)
    }

    /// `sit_out*(1-rho) > grace*(1+rho)`.
    const fn least_sit_out_ns(&self) -> u64 {
        let window_ns = self.drift.stretch_ns(milliseconds(self.grace_ms));
        self.drift.unshrink_ns(window_ns.saturating_add(1))
    }
}

const fn milliseconds(span_ms: u32) -> u64 {
    span_ms as u64 * MILLISECOND_NS
}
