//! Why a timing is refused.

use core::fmt;

use super::span::{AtLeast, AtMost, Span, of_ms};
use crate::record::MAX_TTL_MS;

/// The caller's mistake, found at construction: the first constraint that fails, and the nearest
/// value that satisfies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `ttl_ms` outside 1 to 86 400 000.
    Ttl,
    /// `tolerated < 2`.
    Tolerated,
    /// One attempt is too short.
    Attempt {
        /// The least that passes, in nanoseconds.
        attempt_ns: u64,
    },
    /// The guard does not cover two readings of the coarsest clock.
    Guard {
        /// The least that passes, in nanoseconds.
        guard_ns: u64,
    },
    /// `renew < 4*attempt`.
    Renewal {
        /// The least that passes, in nanoseconds.
        renew_ns: u64,
    },
    /// Renewals, pause, drain and guard do not fit into the ttl:
    /// `renew + (2*tolerated+1)*attempt + pause + drain + guard <= ttl*(1-rho)`.
    TooShort {
        /// The least that they fit into, in milliseconds; perhaps more than a ttl may be.
        ttl_ms: u64,
    },
    /// The poll is 0, or no grace has room for it: `poll + 2*attempt <= grace*(1-rho)`.
    Poll {
        /// The nearest that passes, in nanoseconds.
        poll_ns: u64,
    },
    /// `retry_ns` is 0.
    Retry,
    /// `seal_within_ns` is 0.
    SealWithin,
    /// The grace has no room for `poll + 2*attempt <= grace*(1-rho)`, or is over a day.
    Grace {
        /// The nearest that passes, in milliseconds.
        grace_ms: u64,
    },
    /// Others would not get their turn: `sit_out*(1-rho) > grace*(1+rho)`.
    SitOut {
        /// The least that passes, in nanoseconds.
        sit_out_ns: u64,
    },
}

/// What a ttl has to hold.
pub(super) const HELD: &str =
    "renewals, pauses, the end of the work (drain) and the margin for clocks (guard)";
const LONGEST: Span = of_ms(MAX_TTL_MS as u64);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ttl => write!(f, "the ttl must be 1ms to {LONGEST}"),
            Self::Tolerated => f.write_str("at least 2 lost renewals must be tolerated"),
            Self::Attempt { attempt_ns } => write!(
                f,
                "one attempt must be given the store's p99, and never less than {}",
                AtLeast(attempt_ns)
            ),
            Self::Guard { guard_ns } => write!(
                f,
                "the guard must cover two readings of the coarsest clock: {} or more",
                AtLeast(guard_ns)
            ),
            Self::Renewal { renew_ns } => write!(
                f,
                "renewals must be at least four attempts apart: {} or more",
                AtLeast(renew_ns)
            ),
            Self::TooShort { ttl_ms } if ttl_ms > u64::from(MAX_TTL_MS) => write!(
                f,
                "{HELD} need a ttl of {}, and {LONGEST} is the longest: use a shorter drain, or \
                 shorter renewals and pauses",
                of_ms(ttl_ms)
            ),
            Self::TooShort { ttl_ms } => write!(
                f,
                "the ttl is too short: {HELD} need {} or more; use that, or a shorter drain",
                of_ms(ttl_ms)
            ),
            Self::Poll { poll_ns } => write!(
                f,
                "a candidate must look at the record every {} or so: neither without a pause nor \
                 too rarely to take up an offer",
                AtMost(poll_ns)
            ),
            Self::Retry => f.write_str("the wait after a failure must be more than 0"),
            Self::SealWithin => f.write_str("sealing must be given more than 0"),
            Self::Grace { grace_ms } => write!(
                f,
                "an offer must be kept for a poll and two attempts, and a day at most: use a grace \
                 of {}",
                of_ms(grace_ms)
            ),
            Self::SitOut { sit_out_ns } => write!(
                f,
                "an instance that gave up must stay away for longer than an offer is kept: {} or \
                 more",
                AtLeast(sit_out_ns)
            ),
        }
    }
}

impl core::error::Error for Misuse {}
