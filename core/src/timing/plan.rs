//! What a timing does, for whoever has to agree to it.

use core::fmt;

use super::Timing;
use super::span::{AtLeast, AtMost, of_ms};
use crate::lease::Authority;
use crate::time::MILLISECOND_NS;

/// A timing and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The spans.
    pub timing: Timing,
    /// The longest time from the last sign of a holder that died to the next one elected, in
    /// nanoseconds.
    pub takeover_ns: u64,
    /// From the send stamp of the last confirmed renewal to the end of new work, should no
    /// further one be confirmed; in nanoseconds of the holder's clock.
    pub self_fence_ns: u64,
    /// The longest pause that costs nothing, even with `timing.tolerated` renewals lost, in
    /// nanoseconds.
    pub pause_ns: u64,
    /// Lost renewals in a row that cost nothing, even with a pause of `timing.pause_ns`.
    pub lost_renewals: u64,
    /// Store operations of the holder: at most, while none fails.
    pub holder_per_hour: u64,
    /// Store operations of all standbys together: at most, while none fails.
    pub standbys_per_hour: u64,
}

impl Plan {
    const HOUR_NS: u64 = 3_600_000 * MILLISECOND_NS;

    /// Explains a timing that passes [`Timing::check`].
    #[must_use]
    pub fn of(timing: Timing, authority: Authority, standbys: u32) -> Self {
        let slack_ns = timing.latest_renewal_ns().saturating_sub(timing.renew_ns);
        let lost = slack_ns.checked_div(timing.attempt_ns.saturating_mul(2)).unwrap_or(0);
        // A renewal is due up to a tenth early, a poll up to a half: they must not fall in step.
        let renew_ns = timing.renew_ns - timing.renew_ns / 10;
        let poll_ns = timing.poll_ns - timing.poll_ns / 2;
        Self {
            timing,
            takeover_ns: timing.takeover_ns(authority),
            self_fence_ns: timing.valid_ns().saturating_sub(timing.drain_ns),
            pause_ns: timing.pause_ns.saturating_add(slack_ns),
            lost_renewals: u64::from(timing.tolerated).saturating_add(lost),
            holder_per_hour: Self::HOUR_NS.div_ceil(renew_ns.max(1)),
            standbys_per_hour: Self::HOUR_NS
                .div_ceil(poll_ns.max(1))
                .saturating_mul(u64::from(standbys)),
        }
    }
}

impl fmt::Display for Plan {
    /// One line for each promise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timing { ttl_ms, renew_ns, attempt_ns, tolerated, pause_ns, drain_ns, .. } =
            self.timing;
        writeln!(
            f,
            "a ttl of {}, renewed every {}, each attempt within {}",
            of_ms(ttl_ms.into()),
            AtMost(renew_ns),
            AtMost(attempt_ns)
        )?;
        writeln!(f, "a dead holder is replaced within {}", AtLeast(self.takeover_ns))?;
        let lost = self.lost_renewals;
        write!(f, "{lost} lost renewals in a row, each repeated at once, cost nothing")?;
        if pause_ns > 0 {
            write!(f, ", even with a pause of {}", AtMost(pause_ns))?;
        }
        writeln!(f)?;
        if self.pause_ns > 0 {
            let pause = AtMost(self.pause_ns);
            writeln!(f, "a pause of {pause} costs nothing, even with {tolerated} lost renewals")?;
        }
        writeln!(
            f,
            "cut off from the store, a holder starts nothing after {}, and has {} to end its work",
            AtMost(self.self_fence_ns),
            AtMost(drain_ns)
        )?;
        write!(
            f,
            "store operations per hour: {} of the holder, {} of the standbys",
            self.holder_per_hour, self.standbys_per_hour
        )
    }
}
