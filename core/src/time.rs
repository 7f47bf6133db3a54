//! Integer time and drift arithmetic. All instants and spans are nanoseconds in `u64`.

use core::num::NonZeroU64;

use crate::planted::planted;

/// One millisecond in nanoseconds.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// An instant on the host's monotonic clock, in nanoseconds from an origin that only this host
/// knows. Counts through suspend where the platform can (`CLOCK_BOOTTIME` on Linux); never
/// compared between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The instant `span_ns` later; the end of time where the sum does not fit.
    #[must_use]
    pub const fn after(self, span_ns: u64) -> Self {
        Self(self.0.saturating_add(span_ns))
    }

    /// Nanoseconds from `earlier` to here; 0 where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One sample of the host's clocks, taken after the input has arrived and before any request of
/// the step leaves. A sample is used for one input only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock.
    pub mono: Mono,
    /// The wall clock, nanoseconds since 1970-01-01 UTC: a second witness of time asleep, and
    /// the date in records. Never compared between hosts.
    pub wall_ns: Option<u64>,
}

/// What a host's clocks can do, declared once. A wall clock that goes missing later counts as
/// [`Input::Disrupted`](crate::lease::Input::Disrupted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Whether every [`Now`] carries `wall_ns`.
    pub wall: bool,
    /// The coarsest step of either clock, in nanoseconds.
    pub resolution_ns: u64,
}

/// Both clocks at one moment: what a span is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    mono: Mono,
    wall_ns: Option<NonZeroU64>,
}

impl Stamp {
    pub(crate) const ZERO: Self = Self { mono: Mono(0), wall_ns: None };

    /// The stamp of a sample.
    #[must_use]
    pub const fn of(now: Now) -> Self {
        let wall_ns = match now.wall_ns {
            // A nanosecond late, which every guard covers: 0 stands for no clock.
            Some(0) => Some(NonZeroU64::MIN),
            Some(wall_ns) => NonZeroU64::new(wall_ns),
            None => None,
        };
        Self { mono: now.mono, wall_ns }
    }

    /// The monotonic part.
    #[must_use]
    pub const fn mono(self) -> Mono {
        self.mono
    }

    /// What the wall clock alone says, negative where it was set back; none without it.
    pub(crate) fn wall_since_ns(self, now: Now) -> Option<i128> {
        Some(i128::from(now.wall_ns?) - i128::from(self.wall_ns?.get()))
    }

    /// Nanoseconds that have passed for the holder: the larger of what the two clocks saw, so
    /// that time asleep which either of them saw counts. A wall clock set back counts as 0.
    #[must_use]
    pub fn elapsed_ns(self, now: Now) -> u64 {
        let mono = now.mono.since(self.mono);
        match (self.wall_ns, planted!(WallIsNoWitness: None => now.wall_ns)) {
            (Some(then), Some(wall_ns)) => mono.max(wall_ns.saturating_sub(then.get())),
            _ => mono,
        }
    }
}

/// The declared bound on a clock's rate, `rho`: in every true interval `d` the clock advances
/// between `(1-rho)d` and `(1+rho)d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    ppm: u32,
}

impl Drift {
    const MILLION: u128 = 1_000_000;

    /// 1 %: far beyond any honest quartz, so that a virtual machine's clock fits as well.
    pub const DEFAULT: Self = Self { ppm: 10_000 };

    /// A bound in parts per million, below one million.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm < 1_000_000 { Some(Self { ppm }) } else { None }
    }

    /// Parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.ppm
    }

    /// `span_ns * (1-rho)`, rounded down: what a holder may count on.
    #[must_use]
    pub const fn shrink_ns(self, span_ns: u64) -> u64 {
        let scaled = span_ns as u128 * self.kept_ppm() / Self::MILLION;
        scaled as u64
    }

    /// `span_ns * (1+rho)`, rounded up: what an observer has to wait.
    #[must_use]
    pub const fn stretch_ns(self, span_ns: u64) -> u64 {
        let scaled = (span_ns as u128 * (Self::MILLION + self.ppm as u128)).div_ceil(Self::MILLION);
        if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
    }

    /// The shortest span of which [`Drift::shrink_ns`] leaves `span_ns`.
    pub(crate) const fn unshrink_ns(self, span_ns: u64) -> u64 {
        let scaled = (span_ns as u128 * Self::MILLION).div_ceil(self.kept_ppm());
        if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
    }

    /// `1-rho`, in parts per million: in a form that even the compiler sees is never 0.
    const fn kept_ppm(self) -> u128 {
        999_999u32.saturating_sub(self.ppm) as u128 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(mono: u64, wall_ns: u64) -> Now {
        Now { mono: Mono(mono), wall_ns: Some(wall_ns) }
    }

    #[test]
    fn the_holder_rounds_down_and_the_observer_up() {
        let drift = Drift::DEFAULT;
        assert_eq!(drift.shrink_ns(101), 99);
        assert_eq!(drift.stretch_ns(101), 103);
        assert_eq!(drift.stretch_ns(u64::MAX), u64::MAX);
        assert_eq!(drift.shrink_ns(u64::MAX), 18_262_276_632_972_456_098);
        assert_eq!(Drift::from_ppm(1_000_000), None);
    }

    #[test]
    fn a_span_that_was_unshrunk_shrinks_to_what_was_asked() {
        for ppm in [0, 1, 10_000, 333_333, 999_999] {
            let drift = Drift::from_ppm(ppm).unwrap();
            for span_ns in [0, 1, 2, 99, 1_000_003, 15_000_000_001] {
                let longer_ns = drift.unshrink_ns(span_ns);
                assert!(drift.shrink_ns(longer_ns) >= span_ns, "{span_ns} at {ppm}");
                assert!(longer_ns == 0 || drift.shrink_ns(longer_ns - 1) < span_ns);
            }
        }
        assert_eq!(Drift::DEFAULT.unshrink_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn time_asleep_that_either_clock_saw_is_elapsed_time() {
        let stamp = Stamp::of(now(100, 5_000));
        assert_eq!(stamp.elapsed_ns(now(130, 5_010)), 30);
        assert_eq!(stamp.elapsed_ns(now(110, 5_400)), 400);
    }

    #[test]
    fn a_wall_clock_set_back_counts_as_nothing() {
        let stamp = Stamp::of(now(100, 5_000));
        assert_eq!(stamp.elapsed_ns(now(130, 20)), 30);
    }

    #[test]
    fn a_wall_clock_at_its_origin_is_a_witness_too() {
        assert_eq!(Stamp::of(now(100, 0)).elapsed_ns(now(110, 5_000)), 4_999);
    }

    #[test]
    fn a_stamp_is_two_words() {
        assert_eq!(size_of::<Stamp>(), 16);
    }
}
