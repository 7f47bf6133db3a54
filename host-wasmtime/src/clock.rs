//! The host's clocks, and waiting for an instant of them.

use std::io;
use std::time::SystemTime;

use leasehold_core::time::{Clocks, Mono, Now};

/// Where the samples of a [`Protocol`](crate::protocol::Protocol) come from.
pub trait Clock: Send + Sync {
    /// One sample of all clocks, taken now.
    fn now(&self) -> Now;

    /// What these clocks can do; the same for the life of the value.
    fn clocks(&self) -> Clocks;
}

/// The clocks of the operating system.
///
/// | system | monotonic clock | counts while the machine sleeps |
/// |---|---|---|
/// | Linux, Android, OpenBSD | `CLOCK_BOOTTIME` | yes |
/// | macOS, iOS | `CLOCK_MONOTONIC` | yes |
/// | other Unix | `CLOCK_MONOTONIC` | as that system has it |
/// | Windows | the performance counter, through std | not vouched for |
///
/// The wall clock stands beside it everywhere, so that a holder notices time asleep which the
/// monotonic clock missed, unless the wall clock was set back meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now { mono: system::mono(), wall_ns: wall_ns() }
    }

    fn clocks(&self) -> Clocks {
        Clocks { wall: true, resolution_ns: system::resolution_ns() }
    }
}

/// Nanoseconds since 1970; none before 1970 and after the year 2554, which counts as a disruption.
fn wall_ns() -> Option<u64> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since_1970.as_nanos()).ok()
}

/// Wakes a task at an instant of [`SystemClock`]. One timer serves any number of waits in turn.
///
/// On Linux the kernel's own timer on `CLOCK_BOOTTIME`, since tokio's timers stop while the
/// machine sleeps. Elsewhere tokio's, which look at the clock once a second.
#[derive(Debug)]
pub struct Timer(timer::Timer);

impl Timer {
    /// A timer that is not set. To be called inside a tokio runtime with IO and time enabled.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new() -> io::Result<Self> {
        timer::Timer::new().map(Self)
    }

    /// Returns at `at` or a little later; at once where `at` has passed. Dropping the future
    /// leaves the timer fit for the next wait.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn sleep_until(&mut self, at: Mono) -> io::Result<()> {
        self.0.sleep_until(at).await
    }
}

#[cfg(unix)]
mod system {
    use leasehold_core::time::Mono;
    use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
    pub(super) const MONO: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
    pub(super) const MONO: ClockId = ClockId::Monotonic;

    pub(super) fn mono() -> Mono {
        Mono(nanoseconds(clock_gettime(MONO)))
    }

    pub(super) fn resolution_ns() -> u64 {
        nanoseconds(clock_getres(MONO)).max(nanoseconds(clock_getres(ClockId::Realtime)))
    }

    fn nanoseconds(time: Timespec) -> u64 {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::OnceLock;
    use std::time::Instant;

    use leasehold_core::time::Mono;

    pub(super) fn mono() -> Mono {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let since = ORIGIN.get_or_init(Instant::now).elapsed();
        Mono(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The period of the system's interrupt, which the coarsest of its clocks follow.
    pub(super) fn resolution_ns() -> u64 {
        15_625_000
    }
}

#[cfg(target_os = "linux")]
mod timer {
    use std::io;

    use leasehold_core::time::Mono;
    use rustix::fd::OwnedFd;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[expect(deprecated, reason = "what replaces it is unsafe; an OwnedFd keeps its promise")]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
            AsyncFd::with_interest(timer, Interest::READABLE).map(Self)
        }

        pub(super) async fn sleep_until(&mut self, at: Mono) -> io::Result<()> {
            let setting = Itimerspec { it_interval: timespec(0), it_value: timespec(at.0.max(1)) };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)?;
            loop {
                // What is readable may be left from an earlier wait: setting has emptied it.
                let mut ready = self.0.readable().await?;
                let mut expirations = [0; 8];
                if let Ok(read) =
                    ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?))
                {
                    return read.map(drop);
                }
            }
        }
    }

    /// Zero would mean never; what lies beyond the kernel's range is as good as never.
    fn timespec(nanoseconds: u64) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Duration;

    use leasehold_core::time::Mono;

    use super::{Clock as _, SystemClock};

    #[derive(Debug)]
    pub(super) struct Timer(());

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(()))
        }

        pub(super) async fn sleep_until(&mut self, at: Mono) -> io::Result<()> {
            loop {
                match at.since(SystemClock.now().mono) {
                    0 => return Ok(()),
                    left_ns => {
                        let left = Duration::from_nanos(left_ns).min(Duration::from_secs(1));
                        tokio::time::sleep(left).await;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_system_clock_has_both_clocks_and_goes_on() {
        let (first, second) = (SystemClock.now(), SystemClock.now());
        assert!(first.mono <= second.mono);
        assert!(first.wall_ns.is_some());
        let Clocks { wall, resolution_ns } = SystemClock.clocks();
        assert!(wall);
        assert!(resolution_ns >= 1);
    }

    #[tokio::test]
    async fn a_timer_wakes_at_its_instant_and_not_before() {
        let mut timer = Timer::new().unwrap();
        for milliseconds in [30, 1, 20] {
            let at = SystemClock.now().mono.after(milliseconds * 1_000_000);
            timer.sleep_until(at).await.unwrap();
            assert!(SystemClock.now().mono >= at);
        }
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_wakes_at_once() {
        let mut timer = Timer::new().unwrap();
        let began = Instant::now();
        timer.sleep_until(Mono(0)).await.unwrap();
        timer.sleep_until(SystemClock.now().mono).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_does_not_wake_the_next() {
        let mut timer = Timer::new().unwrap();
        let soon = SystemClock.now().mono.after(2_000_000);
        let _ = tokio::time::timeout(Duration::from_micros(10), timer.sleep_until(soon)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let at = SystemClock.now().mono.after(50_000_000);
        timer.sleep_until(at).await.unwrap();
        assert!(SystemClock.now().mono >= at);
    }

    #[tokio::test]
    async fn the_end_of_time_never_comes() {
        let mut timer = Timer::new().unwrap();
        let never = timer.sleep_until(Mono(u64::MAX));
        assert!(tokio::time::timeout(Duration::from_millis(20), never).await.is_err());
    }
}
