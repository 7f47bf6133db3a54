//! One node's clocks as functions of true time: piecewise linear, with whatever a computer's
//! clocks do to people.

use leasehold_core::time::{Mono, Now};

/// A rate of 1, in parts per billion.
const ONE: i128 = 1_000_000_000;

/// A monotonic and a wall clock on one oscillator. They are anchored where anything changes, and
/// linear from there on.
#[derive(Clone, Debug)]
pub struct Clock {
    at_ns: u64,
    mono_ns: u64,
    /// None: this computer has no wall clock.
    wall_ns: Option<u64>,
    rate_ppb: i64,
    resolution_ns: u64,
    in_suspend: InSuspend,
    state: Power,
}

/// What the monotonic clock does while the computer sleeps. The wall clock runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InSuspend {
    /// It counts, as `CLOCK_BOOTTIME` does.
    Counts,
    /// It stops, as `CLOCK_MONOTONIC` does.
    Stops,
}

/// What drives the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Both run.
    Awake,
    /// The computer sleeps.
    Suspended,
    /// The virtual machine is frozen, both clocks with it.
    Frozen,
}

impl Clock {
    /// A clock that reads `mono_ns` and `wall_ns` at true time 0, advances `rate_ppb` parts per
    /// billion faster than true time (90 % at most, either way), and shows multiples of
    /// `resolution_ns` (at least 1).
    #[must_use]
    pub const fn new(
        mono_ns: u64,
        wall_ns: Option<u64>,
        rate_ppb: i64,
        resolution_ns: u64,
        in_suspend: InSuspend,
    ) -> Self {
        Self {
            at_ns: 0,
            mono_ns,
            wall_ns,
            rate_ppb: bounded(rate_ppb),
            resolution_ns: if resolution_ns == 0 { 1 } else { resolution_ns },
            in_suspend,
            state: Power::Awake,
        }
    }

    /// What it shows at a true time that is not before its last change.
    #[must_use]
    pub fn now(&self, at_ns: u64) -> Now {
        let (mono_ns, wall_ns) = self.run_to(at_ns);
        let shown = |ns: u64| ns - ns % self.resolution_ns;
        Now { mono: Mono(shown(mono_ns)), wall_ns: wall_ns.map(shown) }
    }

    /// The first true time, not before `at_ns`, at which it shows `mono` or more; none while it
    /// stands still before that.
    #[must_use]
    pub fn when(&self, at_ns: u64, mono: Mono) -> Option<u64> {
        if self.now(at_ns).mono >= mono {
            return Some(at_ns);
        }
        if self.stands() {
            return None;
        }
        let shown_from = mono.0.checked_next_multiple_of(self.resolution_ns)?;
        let ahead = i128::from(shown_from) - i128::from(self.mono_ns);
        let rate = ONE + i128::from(self.rate_ppb);
        let span = u64::try_from((ahead * ONE + rate - 1) / rate).ok()?;
        self.at_ns.checked_add(span)
    }

    /// From here on it advances so much faster than true time.
    pub fn set_rate(&mut self, at_ns: u64, rate_ppb: i64) {
        self.anchor(at_ns);
        self.rate_ppb = bounded(rate_ppb);
    }

    /// Sets the wall clock forth or back.
    pub fn step_wall(&mut self, at_ns: u64, by_ns: i64) {
        self.anchor(at_ns);
        self.wall_ns = self.wall_ns.map(|wall_ns| wall_ns.saturating_add_signed(by_ns));
    }

    /// Sets the monotonic clock back, as a migration to another computer may.
    pub fn set_mono_back(&mut self, at_ns: u64, by_ns: u64) {
        self.anchor(at_ns);
        self.mono_ns = self.mono_ns.saturating_sub(by_ns);
    }

    /// Puts the computer to sleep, or wakes it.
    pub fn set_power(&mut self, at_ns: u64, state: Power) {
        self.anchor(at_ns);
        self.state = state;
    }

    fn stands(&self) -> bool {
        match self.state {
            Power::Awake => false,
            Power::Suspended => self.in_suspend == InSuspend::Stops,
            Power::Frozen => true,
        }
    }

    fn anchor(&mut self, at_ns: u64) {
        (self.mono_ns, self.wall_ns) = self.run_to(at_ns);
        self.at_ns = at_ns;
    }

    fn run_to(&self, at_ns: u64) -> (u64, Option<u64>) {
        let awake_ns = i128::from(at_ns.saturating_sub(self.at_ns));
        let ran = awake_ns * (ONE + i128::from(self.rate_ppb)) / ONE;
        let ran_ns = u64::try_from(ran).unwrap_or(u64::MAX);
        let mono_ns = if self.stands() { 0 } else { ran_ns };
        let wall_ns = if self.state == Power::Frozen { 0 } else { ran_ns };
        (
            self.mono_ns.saturating_add(mono_ns),
            self.wall_ns.map(|wall| wall.saturating_add(wall_ns)),
        )
    }
}

/// No clock stands still by its rate, or goes back.
const fn bounded(rate_ppb: i64) -> i64 {
    const MOST: i64 = 900_000_000;
    if rate_ppb > MOST {
        MOST
    } else if rate_ppb < -MOST {
        -MOST
    } else {
        rate_ppb
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(rate_ppb: i64, resolution_ns: u64) -> Clock {
        Clock::new(1_000_007, Some(5_000_000_000), rate_ppb, resolution_ns, InSuspend::Stops)
    }

    #[test]
    fn the_instant_of_a_reading_is_the_first_that_shows_it() {
        for rate_ppb in [-400_000_000, -10_000_000, -1, 0, 1, 10_000_000] {
            for resolution_ns in [1, 1_000, 1_000_000] {
                let clock = clock(rate_ppb, resolution_ns);
                for mono in [1_000_008, 1_234_567, 1_000_000_000, 77_777_777_777] {
                    let at = clock.when(0, Mono(mono)).expect("it runs");
                    assert!(clock.now(at).mono >= Mono(mono));
                    assert!(at == 0 || clock.now(at - 1).mono < Mono(mono));
                }
            }
        }
    }

    #[test]
    fn asleep_the_monotonic_clock_stands_and_the_wall_clock_runs() {
        let mut clock = clock(0, 1);
        let before = clock.now(100);
        clock.set_power(100, Power::Suspended);
        let asleep = clock.now(1_100);
        assert_eq!(asleep.mono, before.mono);
        assert_eq!(asleep.wall_ns, before.wall_ns.map(|wall| wall + 1_000));
        assert_eq!(clock.when(1_100, before.mono.after(1)), None);
        clock.set_power(1_100, Power::Awake);
        assert_eq!(clock.when(1_100, before.mono.after(1)), Some(1_101));
    }

    #[test]
    fn a_step_moves_the_wall_clock_only() {
        let mut clock = clock(0, 1);
        let before = clock.now(100);
        clock.step_wall(100, -50);
        assert_eq!(clock.now(100).mono, before.mono);
        assert_eq!(clock.now(100).wall_ns, before.wall_ns.map(|wall| wall - 50));
    }

    #[test]
    fn a_rate_holds_from_where_it_is_set() {
        let mut clock = clock(0, 1);
        clock.set_rate(1_000, 500_000_000);
        assert_eq!(clock.now(3_000).mono.since(clock.now(1_000).mono), 3_000);
    }
}
