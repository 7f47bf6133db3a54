//! The clock that deadlines are told in, and waiting for an instant of it.

use leasehold_core::time::Mono;
use rustix::event::PollFd;
use rustix::io;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// CLOCK_BOOTTIME, which counts while the machine sleeps. macOS calls that CLOCK_MONOTONIC.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The present instant.
pub(crate) fn now() -> Mono {
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Mono(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        // Both fit: u64::MAX nanoseconds are 1.8e10 seconds.
        tv_sec: (nanoseconds / 1_000_000_000) as _,
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}

/// Wakes a poll at an instant, also when the machine slept past it: the timeout of `poll` itself
/// does not count sleep.
#[cfg(target_os = "linux")]
pub(super) struct Alarm(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Alarm {
    /// An alarm that is not set.
    pub(super) fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?))
    }

    /// Waits until one of `fds` has news or the instant has come.
    pub(super) fn wait<'fd>(&'fd self, mut fds: Vec<PollFd<'fd>>, until: Mono) -> io::Result<()> {
        use rustix::event::{PollFlags, poll};
        use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
        let setting = Itimerspec {
            it_interval: timespec(0),
            // Zero would mean never.
            it_value: timespec(until.0.max(1)),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
        fds.push(PollFd::new(&self.0, PollFlags::IN));
        poll(&mut fds, None).map(drop)
    }
}

/// Wakes a poll at an instant.
#[cfg(not(target_os = "linux"))]
pub(super) struct Alarm;

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// An alarm that is not set.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits until one of `fds` has news or the instant has come.
    pub(super) fn wait<'fd>(&'fd self, mut fds: Vec<PollFd<'fd>>, until: Mono) -> io::Result<()> {
        // Looks at the clock once a second: the timeout need not count the machine's sleep.
        let nanoseconds = until.since(now()).min(1_000_000_000);
        rustix::event::poll(&mut fds, Some(&timespec(nanoseconds))).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::time::MILLISECOND_NS;

    use super::*;

    #[test]
    fn an_alarm_wakes_at_its_instant_and_at_once_for_one_that_is_past() {
        let alarm = Alarm::new().unwrap();
        let start = now();
        alarm.wait(Vec::new(), start.after(20 * MILLISECOND_NS)).unwrap();
        assert!(now() >= start.after(20 * MILLISECOND_NS));
        for past in [Mono(0), Mono(1), start] {
            alarm.wait(Vec::new(), past).unwrap();
        }
    }
}
