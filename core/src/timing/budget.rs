//! A timing from what it has to achieve.

use core::fmt;

use super::misuse::HELD;
use super::span::{AtLeast, AtMost};
use super::{Plan, Timing};
use crate::lease::Authority;
use crate::record::MAX_TTL_MS;
use crate::time::{Drift, MILLISECOND_NS};

/// What a lease has to achieve, and where it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// A holder that died is replaced within this, from its last sign to the next one elected, in
    /// nanoseconds.
    pub detection_ns: u64,
    /// The median of one store operation, from the farthest place that uses it, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th percentile of the same; one below the median counts as the median.
    pub p99_ns: u64,
    /// A pause of the process that is to cost nothing, in nanoseconds.
    pub pause_ns: u64,
    /// What ending the work takes, in nanoseconds.
    pub drain_ns: u64,
    /// Lost renewals in a row that are to cost nothing; at least 2.
    pub tolerated: u32,
    /// How many other candidates watch the lease.
    pub standbys: u32,
    /// The bound on every party's clock rate.
    pub drift: Drift,
    /// The coarsest step of any party's clocks, in nanoseconds.
    pub resolution_ns: u64,
    /// Whose word decides that a lease is over.
    pub authority: Authority,
}

/// The spans for a budget.
///
/// - The **attempt** is the store's p99, and no less than the median of everybody's operations
///   one after another: when a holder dies all standbys swap at once, on one key, and an attempt
///   that timed out in that queue would be asked about again and make it longer.
/// - The **guard** is two readings of the coarsest clock, and one attempt for the effect that was
///   just allowed to arrive.
/// - The **poll** is an eighth of the target, at most 2 s, and shorter where the ttl needs it;
///   never less than an attempt.
/// - The **ttl** is the longest that the target leaves. The target says how long a dead holder may
///   go unnoticed; a shorter ttl would be more renewals with less margin, for a speed that nobody
///   asked for.
/// - The **renewal** is due after a third of the ttl, so that the rest of it serves lost renewals
///   and pauses beyond those of the budget; sooner where the budget needs it, and never sooner
///   than four attempts. The drain gets what it asked for: more would only end work earlier.
///
/// Whatever this returns passes [`Timing::check`].
///
/// # Errors
/// [`Refusal`] names the first constraint that fails, in the order of its variants, and the
/// nearest budget that satisfies it.
pub fn derive(budget: &Budget) -> Result<Plan, Refusal> {
    let shortest = budget.shortest()?;
    let takeover = |timing: Timing| timing.takeover_ns(budget.authority);
    let least_ns = takeover(shortest);
    let Some(spare_ns) = budget.detection_ns.checked_sub(least_ns) else {
        return Err(Refusal::Detection { least_ns });
    };
    let poll_ns = (budget.detection_ns / 8)
        .min(Timing::LONGEST_POLL_NS)
        .min(shortest.poll_ns.saturating_add(spare_ns))
        .max(shortest.poll_ns);
    let polled = Timing { poll_ns, ..shortest };
    let ttl_ms = longest(shortest.ttl_ms, MAX_TTL_MS, |ttl_ms| {
        takeover(Timing { ttl_ms, ..polled }) <= budget.detection_ns
    });
    let timing = Timing { ttl_ms, ..polled }.completed();
    Ok(Plan::of(timing, budget.authority, budget.standbys))
}

impl Budget {
    /// The shortest ttl and poll that keep everything but the detection target. What the longest
    /// ttl can hold is given out item by item, so that a refusal names the one that is too large.
    fn shortest(&self) -> Result<Timing, Refusal> {
        if self.tolerated < Timing::TOLERATED {
            return Err(Refusal::TooFewTolerated { least: Timing::TOLERATED });
        }
        let longest_ns = self.drift.shrink_ns(Timing::LONGEST_TTL_NS);
        let fewest_ns = attempts(Timing::TOLERATED) * Timing::SHORTEST_ATTEMPT_NS;
        let most_ns = longest_ns.saturating_sub(fewest_ns) / 2;
        if self.resolution_ns > most_ns {
            return Err(Refusal::Resolution { most_ns });
        }
        let readings_ns = self.resolution_ns.saturating_mul(2);
        let room_ns = longest_ns.saturating_sub(readings_ns);

        let most_attempts = room_ns / Timing::SHORTEST_ATTEMPT_NS;
        if attempts(self.tolerated) > most_attempts {
            let most = most_attempts.saturating_sub(attempts(0)) / 2;
            return Err(Refusal::TooManyTolerated { most: most as u32 });
        }
        let most_ns = room_ns / attempts(self.tolerated).max(1);
        let slow_ns = self.p99_ns.max(self.p50_ns);
        if slow_ns > most_ns {
            return Err(Refusal::Operation { most_ns });
        }
        let queue_ns = self.p50_ns.saturating_mul(u64::from(self.standbys) + 1);
        if queue_ns > most_ns {
            let most = most_ns.checked_div(self.p50_ns).unwrap_or(0).saturating_sub(1);
            return Err(Refusal::Standbys { most: most as u32 });
        }
        let attempt_ns = slow_ns.max(queue_ns).max(Timing::SHORTEST_ATTEMPT_NS);
        let room_ns = room_ns.saturating_sub(attempts(self.tolerated).saturating_mul(attempt_ns));

        let Some(left_ns) = room_ns.checked_sub(self.pause_ns) else {
            return Err(Refusal::Pause { most_ns: room_ns });
        };
        let Some(spare_ns) = left_ns.checked_sub(self.drain_ns) else {
            return Err(Refusal::Drain { most_ns: left_ns });
        };
        let needed_ns = longest_ns.saturating_sub(spare_ns);
        let ttl_ms = self.drift.unshrink_ns(needed_ns).div_ceil(MILLISECOND_NS);
        Ok(Timing {
            ttl_ms: ttl_ms as u32,
            renew_ns: 0,
            attempt_ns,
            tolerated: self.tolerated,
            pause_ns: self.pause_ns,
            drain_ns: self.drain_ns,
            guard_ns: readings_ns + attempt_ns,
            poll_ns: attempt_ns,
            retry_ns: attempt_ns,
            seal_within_ns: 0,
            grace_ms: 0,
            sit_out_ns: 0,
            drift: self.drift,
        })
    }
}

/// How many attempts the ttl has to hold: four before a renewal, two for each lost one, one for
/// the one that works, one in the guard.
const fn attempts(tolerated: u32) -> u64 {
    4 + 2 * tolerated as u64 + 1 + 1
}

/// The largest number up to `high` that fits, if `low` does and none does after one that does
/// not.
fn longest(mut low: u32, mut high: u32, fits: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low.midpoint(high);
        let above = middle.saturating_add(1);
        if fits(above) {
            low = above;
        } else {
            high = middle;
        }
    }
    low
}

/// Why there is no timing for a budget: the first constraint that fails, and the nearest budget
/// that satisfies it. All but the last say what even the longest ttl, one day, has no room for,
/// each after the ones before it and with the least of those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Fewer than two lost renewals are to be tolerated.
    TooFewTolerated {
        /// The least that passes.
        least: u32,
    },
    /// The clocks are too coarse.
    Resolution {
        /// The coarsest that passes, in nanoseconds.
        most_ns: u64,
    },
    /// Too many lost renewals are to be tolerated.
    TooManyTolerated {
        /// The most that passes.
        most: u32,
    },
    /// One store operation takes too long, in the median or at the 99th percentile.
    Operation {
        /// The longest that passes, in nanoseconds.
        most_ns: u64,
    },
    /// So many standbys queue at the store that an attempt takes too long.
    Standbys {
        /// The most that passes.
        most: u32,
    },
    /// The pause is too long.
    Pause {
        /// The longest that passes, in nanoseconds.
        most_ns: u64,
    },
    /// The drain is too long.
    Drain {
        /// The longest that passes, in nanoseconds.
        most_ns: u64,
    },
    /// A dead holder cannot be replaced that soon.
    Detection {
        /// The shortest target that passes, in nanoseconds.
        least_ns: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = "the longest ttl (one day)";
        match *self {
            Self::TooFewTolerated { least } => {
                write!(f, "at least {least} lost renewals must be tolerated")
            }
            Self::Resolution { most_ns } => write!(
                f,
                "the clocks are too coarse for {longest}: use clocks with steps of {} or less",
                AtMost(most_ns)
            ),
            Self::TooManyTolerated { most } => write!(
                f,
                "{longest} has no room for so many lost renewals: tolerate {most} or fewer"
            ),
            Self::Operation { most_ns } => write!(
                f,
                "the store is too slow for {longest}: use one that answers within {}, or tolerate \
                 fewer lost renewals",
                AtMost(most_ns)
            ),
            Self::Standbys { most } => write!(
                f,
                "the swaps of so many standbys queue for too long: use {most} or fewer, or a \
                 faster store"
            ),
            Self::Pause { most_ns } => write!(
                f,
                "{longest} has no room for such a pause: plan for {} or less",
                AtMost(most_ns)
            ),
            Self::Drain { most_ns } => write!(
                f,
                "{longest} has no room for such a drain: end the work within {}",
                AtMost(most_ns)
            ),
            Self::Detection { least_ns } => write!(
                f,
                "the detection target is too short: {HELD} need {} or more; use that, or plan for \
                 shorter pauses, a shorter drain, a faster store",
                AtLeast(least_ns)
            ),
        }
    }
}

impl core::error::Error for Refusal {}
