//! When an entry was written, by the kernel's own clock, and how old that makes it.
//!
//! All processes on one file share one kernel, and its boot clock counts through suspend. A stamp
//! says which boot and which time namespace its number belongs to; from another one it says nothing,
//! except that an earlier kernel's processes are dead.

/// A stamp as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Milliseconds since the boot, rounded up.
    pub(super) written_ms: i64,
    /// `<boot id>/<time namespace>`; empty if unknown, which equals nothing.
    pub(super) boot: String,
}

impl Stamp {
    pub(super) const UNKNOWN: Self = Self { written_ms: 0, boot: String::new() };
}

/// The boot clock at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    ns: u64,
    /// The clock's own step, at least the millisecond of a stamp.
    resolution_ms: u64,
    boot: String,
}

/// What the clock of this kernel may be off by, in nanoseconds: its resolution. None where no stamp
/// can be given.
pub(super) fn clock_error_ns() -> Option<u64> {
    let now = Moment::now();
    (!now.boot.is_empty()).then(|| now.resolution_ms.saturating_mul(NS_PER_MS))
}

impl Moment {
    /// The stamp of a write at this moment.
    pub(super) fn stamp(&self) -> Stamp {
        if self.boot.is_empty() {
            return Stamp::UNKNOWN;
        }
        let steps = self.ns.div_ceil(self.resolution_ms.saturating_mul(NS_PER_MS));
        match i64::try_from(steps.saturating_mul(self.resolution_ms)) {
            Ok(written_ms) => Stamp { written_ms, boot: self.boot.clone() },
            Err(_) => Stamp::UNKNOWN,
        }
    }

    /// The age of an entry at this moment, in nanoseconds, rounded down; none where the stamp does
    /// not tell. `outlives_kernels`: the entry lies on a disk of this machine alone, so that whoever
    /// wrote it on another boot is dead.
    pub(super) fn age_ns(&self, entry: &Stamp, outlives_kernels: bool) -> Option<u64> {
        let (mine, _) = split(&self.boot)?;
        let (theirs, _) = split(&entry.boot)?;
        if mine != theirs {
            return outlives_kernels.then_some(u64::MAX);
        }
        if self.boot != entry.boot {
            return None;
        }
        let written_ms = u64::try_from(entry.written_ms).ok()?;
        let steps = self.ns / self.resolution_ms.saturating_mul(NS_PER_MS);
        let now_ms = steps.saturating_mul(self.resolution_ms);
        Some(now_ms.saturating_sub(written_ms).saturating_mul(NS_PER_MS))
    }
}

const NS_PER_MS: u64 = 1_000_000;

/// Boot id and time namespace, if both are there and the boot id is one.
fn split(boot: &str) -> Option<(&str, &str)> {
    let (id, namespace) = boot.split_once('/')?;
    let uuid = id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (uuid && !namespace.is_empty()).then_some((id, namespace))
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::fs::File;
    use std::io::Read as _;
    use std::path::Path;

    use rustix::fs::{PROC_SUPER_MAGIC, fstatfs, readlink};
    use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

    use super::{Moment, NS_PER_MS, split};

    impl Moment {
        /// Now. All of it is asked of the kernel each time: a process may be moved to another one.
        pub(in super::super) fn now() -> Self {
            Self {
                ns: ns(clock_gettime(ClockId::Boottime)),
                resolution_ms: ns(clock_getres(ClockId::Boottime)).div_ceil(NS_PER_MS).max(1),
                boot: boot(Path::new("/proc/sys/kernel/random/boot_id")),
            }
        }
    }

    /// Empty unless the kernel itself says it. systemd-nspawn and LXC mount a boot id of the
    /// container's own over the kernel's: by it, the living on the same kernel would pass for dead.
    pub(super) fn boot(boot_id: &Path) -> String {
        kernels_own(boot_id)
            .and_then(|id| {
                let namespace = readlink("/proc/self/ns/time", Vec::with_capacity(64)).ok()?;
                let boot = [id.trim(), "/", namespace.to_str().ok()?].concat();
                split(&boot).is_some().then_some(boot)
            })
            .unwrap_or_default()
    }

    /// What a file of the kernel says, in one read: it is asked at every write.
    fn kernels_own(path: &Path) -> Option<String> {
        let mut file = File::open(path).ok()?;
        if fstatfs(&file).ok()?.f_type != PROC_SUPER_MAGIC {
            return None;
        }
        let mut text = vec![0; 64];
        let length = file.read(&mut text).ok()?;
        text.truncate(length);
        String::from_utf8(text).ok()
    }

    /// Zero for what is before the boot.
    fn ns(time: Timespec) -> u64 {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    }
}

#[cfg(not(target_os = "linux"))]
impl Moment {
    /// No other system has both a boot clock and a name for the boot.
    pub(super) fn now() -> Self {
        Self { ns: 0, resolution_ms: 1, boot: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "2d418ff7-eb37-4eb5-a54a-7c42b861116d/time:[4026531834]";
    const OTHER_NAMESPACE: &str = "2d418ff7-eb37-4eb5-a54a-7c42b861116d/time:[4026532211]";
    const OTHER_BOOT: &str = "00000000-1111-4222-8333-444444444444/time:[4026531834]";

    fn at(ns: u64, resolution_ms: u64) -> Moment {
        Moment { ns, resolution_ms, boot: BOOT.to_owned() }
    }

    fn written(written_ms: i64, boot: &str) -> Stamp {
        Stamp { written_ms, boot: boot.to_owned() }
    }

    #[test]
    fn a_stamp_is_rounded_up_to_the_clocks_resolution() {
        assert_eq!(at(7_000_000, 1).stamp(), written(7, BOOT));
        assert_eq!(at(7_000_001, 1).stamp(), written(8, BOOT));
        assert_eq!(at(7_000_001, 10).stamp(), written(10, BOOT));
    }

    #[test]
    fn an_age_is_rounded_down_and_never_negative() {
        assert_eq!(at(17_999_999, 1).age_ns(&written(7, BOOT), true), Some(10_000_000));
        assert_eq!(at(19_999_999, 10).age_ns(&written(7, BOOT), true), Some(3_000_000));
        assert_eq!(at(7_000_001, 1).age_ns(&at(7_000_001, 1).stamp(), true), Some(0));
        assert_eq!(at(0, 1).age_ns(&written(i64::MAX, BOOT), true), Some(0));
    }

    #[test]
    fn an_entry_of_another_boot_on_a_disk_of_this_machine_has_a_dead_writer() {
        assert_eq!(at(1, 1).age_ns(&written(7, OTHER_BOOT), true), Some(u64::MAX));
        assert_eq!(at(1, 1).age_ns(&written(7, OTHER_BOOT), false), None);
    }

    #[test]
    fn an_unknown_boot_or_another_time_namespace_gives_no_age() {
        for boot in
            ["", "/", "x/time:[1]", "2d418ff7-eb37-4eb5-a54a-7c42b861116d/", OTHER_NAMESPACE]
        {
            assert_eq!(at(1_000_000_000, 1).age_ns(&written(7, boot), true), None, "{boot:?}");
        }
        let unknown = Moment { boot: String::new(), ..at(1_000_000_000, 1) };
        assert_eq!(unknown.age_ns(&written(7, BOOT), true), None);
        assert_eq!(unknown.stamp(), Stamp::UNKNOWN);
    }

    #[test]
    fn a_stamp_edited_to_before_the_boot_gives_no_age() {
        assert_eq!(at(1_000_000_000, 1).age_ns(&written(-1, BOOT), true), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_id_that_is_not_the_kernels_own_is_unknown() {
        let forged = std::env::temp_dir().join(format!("leasehold-boot-id-{}", std::process::id()));
        std::fs::write(&forged, "00000000-1111-4222-8333-444444444444\n").unwrap();
        assert_eq!(kernel::boot(&forged), "");
        std::fs::remove_file(&forged).unwrap();
    }
}
