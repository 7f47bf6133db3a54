//! What an elector is told once: its timing, checked before anything starts.

use core::fmt;

use crate::record::MAX_TTL_MS;
use crate::time::{Clocks, Drift, MILLISECOND_NS};
use crate::token::Nonce;

/// Whose word decides that another party's lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// This instance's own monotonic clock: the record has not changed for its ttl, stretched by
    /// the drift, since this instance first saw it.
    LocalObservation,
    /// The store's clock: the age that the store itself computed in the read reaches the ttl,
    /// stretched by the drift, plus `error_ns`. An entry without an age falls back to
    /// [`Authority::LocalObservation`].
    StoreClock {
        /// Bounds every step of that clock, and the difference between servers that may take over
        /// from one another, in nanoseconds. There is no default.
        error_ns: u64,
    },
}

/// The spans of a lease, all in nanoseconds but `ttl_ms`.
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
    /// How long this instance stays away after resigning or failing to seal.
    pub sit_out_ns: u64,
    /// The bound on every party's clock rate.
    pub drift: Drift,
}

impl Timing {
    /// The longest attempt that [`Timing::from_ttl`] asks for.
    const LONGEST_ATTEMPT_NS: u64 = 2_000 * MILLISECOND_NS;
    /// However long the ttl: a lease that was given up does not wait long for the next holder.
    const LONGEST_POLL_NS: u64 = 2_000 * MILLISECOND_NS;
    const LONGEST_RETRY_NS: u64 = 500 * MILLISECOND_NS;
    const LONGEST_SIT_OUT_NS: u64 = 60_000 * MILLISECOND_NS;
    /// Lost renewals that [`Timing::from_ttl`] leaves room for.
    const TOLERATED: u32 = 2;

    /// Everything from a ttl and the drain and guard it has to leave room for, with two lost
    /// renewals tolerated. [`Config::new`] refuses what does not fit.
    #[must_use]
    pub fn from_ttl(ttl_ms: u32, drain_ns: u64, guard_ns: u64, drift: Drift) -> Self {
        let ttl_ns = u64::from(ttl_ms) * MILLISECOND_NS;
        let room_ns = drift.shrink_ns(ttl_ns).saturating_sub(drain_ns.saturating_add(guard_ns));
        let pause_ns = room_ns / 10;
        let attempt_ns = ((room_ns - pause_ns) / (4 + 2 * u64::from(Self::TOLERATED) + 1))
            .min(Self::LONGEST_ATTEMPT_NS);
        let latest_ns =
            (room_ns - pause_ns).saturating_sub((2 * u64::from(Self::TOLERATED) + 1) * attempt_ns);
        Self {
            ttl_ms,
            renew_ns: (ttl_ns / 3).max(4 * attempt_ns).min(latest_ns),
            attempt_ns,
            tolerated: Self::TOLERATED,
            pause_ns,
            drain_ns,
            guard_ns,
            poll_ns: (ttl_ns / 3).min(Self::LONGEST_POLL_NS),
            retry_ns: (ttl_ns / 50).clamp(1, Self::LONGEST_RETRY_NS),
            seal_within_ns: ttl_ns / 2,
            sit_out_ns: ttl_ns.min(Self::LONGEST_SIT_OUT_NS),
            drift,
        }
    }
}

/// A checked [`Timing`] with its spans computed, and what else the electors of one process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub(super) instance: Nonce,
    pub(super) timing: Timing,
    pub(super) authority: Authority,
    pub(super) clocks: Clocks,
    pub(super) valid_ns: u64,
    pub(super) stop_ns: u64,
}

impl Config {
    /// Checks a timing. `instance` is drawn at every start of a process.
    ///
    /// # Errors
    /// [`Misuse`] names the first constraint that fails and a value that passes.
    pub fn new(
        instance: Nonce,
        timing: Timing,
        authority: Authority,
        clocks: Clocks,
    ) -> Result<Self, Misuse> {
        let Timing {
            ttl_ms, renew_ns, attempt_ns, tolerated, pause_ns, drain_ns, guard_ns, ..
        } = timing;
        if !(1..=MAX_TTL_MS).contains(&ttl_ms) {
            return Err(Misuse::Ttl);
        }
        if attempt_ns < MILLISECOND_NS
            || timing.poll_ns == 0
            || timing.retry_ns == 0
            || timing.seal_within_ns == 0
        {
            return Err(Misuse::TooShort { ttl_ms: least_ttl_ms(&timing) });
        }
        if tolerated < 2 {
            return Err(Misuse::Tolerated);
        }
        if guard_ns < clocks.resolution_ns.saturating_mul(2) {
            return Err(Misuse::Guard { guard_ns: clocks.resolution_ns.saturating_mul(2) });
        }
        if renew_ns < attempt_ns.saturating_mul(4) {
            return Err(Misuse::Renewal { renew_ns: attempt_ns.saturating_mul(4) });
        }
        let valid_ns =
            timing.drift.shrink_ns(u64::from(ttl_ms) * MILLISECOND_NS).saturating_sub(guard_ns);
        let needed_ns = retries_ns(&timing)
            .saturating_add(renew_ns)
            .saturating_add(pause_ns)
            .saturating_add(drain_ns);
        if needed_ns > valid_ns {
            return Err(Misuse::TooShort { ttl_ms: least_ttl_ms(&timing) });
        }
        Ok(Self {
            instance,
            timing,
            authority,
            clocks,
            valid_ns,
            stop_ns: valid_ns.saturating_sub(drain_ns),
        })
    }

    /// The timing that was checked.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }
}

/// What `tolerated` lost renewals cost, each its time-out and its re-read, and the one that works.
fn retries_ns(timing: &Timing) -> u64 {
    timing.attempt_ns.saturating_mul(2 * u64::from(timing.tolerated) + 1)
}

/// A ttl with room for the drain, the guard and attempts of 100 ms, which a busy disk keeps.
fn least_ttl_ms(timing: &Timing) -> u64 {
    let attempt_ns = timing.attempt_ns.max(100 * MILLISECOND_NS);
    let rounds = 2 * u64::from(timing.tolerated) + 1 + 4;
    let needed_ns = attempt_ns
        .saturating_mul(rounds)
        .saturating_add(timing.pause_ns)
        .saturating_add(timing.drain_ns)
        .saturating_add(timing.guard_ns);
    timing.drift.unshrink_ns(needed_ns).div_ceil(MILLISECOND_NS)
}

/// The caller's mistake, found at construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `ttl_ms` outside 1 to 86 400 000.
    Ttl,
    /// Renewals, pause, drain and guard do not fit into the ttl:
    /// `renew + (2*tolerated+1)*attempt + pause + drain + guard <= ttl*(1-rho)`.
    TooShort {
        /// A ttl that fits, in milliseconds.
        ttl_ms: u64,
    },
    /// `renew_ns < 4*attempt_ns`.
    Renewal {
        /// The least that passes, in nanoseconds.
        renew_ns: u64,
    },
    /// `tolerated < 2`.
    Tolerated,
    /// The guard does not cover two readings of the coarsest clock.
    Guard {
        /// The least that passes, in nanoseconds.
        guard_ns: u64,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ttl => write!(f, "the ttl must be 1 ms to {MAX_TTL_MS} ms (one day)"),
            Self::TooShort { ttl_ms } if *ttl_ms > u64::from(MAX_TTL_MS) => f.write_str(
                "the drain does not fit into the longest ttl (one day): use a shorter one",
            ),
            Self::TooShort { ttl_ms } => write!(
                f,
                "the ttl is too short for its renewals, drain and guard: use {ttl_ms} ms or more, or \
                 a shorter drain"
            ),
            Self::Renewal { renew_ns } => write!(
                f,
                "renewals must be at least four attempts apart: {} ms or more",
                renew_ns.div_ceil(MILLISECOND_NS)
            ),
            Self::Tolerated => f.write_str("at least 2 lost renewals must be tolerated"),
            Self::Guard { guard_ns } => write!(
                f,
                "the guard must cover two readings of the coarsest clock: {} ms or more",
                guard_ns.div_ceil(MILLISECOND_NS)
            ),
        }
    }
}

impl core::error::Error for Misuse {}
