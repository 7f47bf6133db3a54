//! What kind of file system a store lies on.

use std::path::Path;

/// What the file system is to the kernels that may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// One kernel at a time, and it outlives kernels: another boot's writers are dead.
    Local,
    /// More than one kernel, or a server in between, where SQLite's locks do not reach.
    Shared(&'static str),
    /// Neither is known.
    Unknown,
}

/// The kind of the file system that holds `path`.
#[cfg(target_os = "linux")]
pub(super) fn disk(path: &Path) -> std::io::Result<Disk> {
    let magic = rustix::fs::statfs(path)?.f_type;
    // Some kernels extend the sign of the 32 bits.
    Ok(kind(magic as u32))
}

/// Only Linux is asked: elsewhere a network file system is the user's to avoid.
#[cfg(not(target_os = "linux"))]
pub(super) fn disk(_: &Path) -> std::io::Result<Disk> {
    Ok(Disk::Unknown)
}

/// By the numbers of Linux's `magic.h` and of the file systems outside its tree. tmpfs is in neither
/// list: it holds no record of an earlier boot.
#[cfg(target_os = "linux")]
fn kind(magic: u32) -> Disk {
    match magic {
        0x0000_EF53 // ext2, ext3, ext4
        | 0x5846_5342 // xfs
        | 0x9123_683E // btrfs
        | 0x2FC1_2FC1 // zfs
        | 0xF2F5_2010 // f2fs
        | 0xCA45_1A4E // bcachefs
        | 0x3153_464A // jfs
        | 0x794C_7630 // overlayfs
        => Disk::Local,
        0x0000_6969 => Disk::Shared("NFS"),
        0x0000_517B | 0xFF53_4D42 | 0xFE53_4D42 => Disk::Shared("SMB"),
        0x6573_5546 => Disk::Shared("FUSE"),
        0x0102_1997 => Disk::Shared("9p"),
        0x00C3_6400 => Disk::Shared("Ceph"),
        0x5346_414F | 0x6B41_4653 => Disk::Shared("AFS"),
        0x7375_7245 => Disk::Shared("Coda"),
        0x0BD0_0BD0 => Disk::Shared("Lustre"),
        0x4750_4653 => Disk::Shared("GPFS"),
        0x0116_1970 => Disk::Shared("GFS2"),
        0x7461_636F => Disk::Shared("OCFS2"),
        0x2003_0528 => Disk::Shared("OrangeFS"),
        0x1983_0326 => Disk::Shared("BeeGFS"),
        0x786F_4256 => Disk::Shared("VirtualBox shared folder"),
        0xBACB_ACBC => Disk::Shared("VMware shared folder"),
        _ => Disk::Unknown,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_and_fuse_file_systems_are_shared() {
        for magic in
            [0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400, 0x5346_414F]
        {
            assert!(matches!(kind(magic), Disk::Shared(_)), "{magic:#x}");
        }
    }

    #[test]
    fn the_disks_of_one_kernel_are_local_and_tmpfs_claims_nothing() {
        for magic in [0xEF53, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1, 0x794C_7630] {
            assert_eq!(kind(magic), Disk::Local, "{magic:#x}");
        }
        assert_eq!(kind(0x0102_1994), Disk::Unknown);
    }

    #[test]
    fn the_process_file_system_is_asked_by_its_path() {
        assert_eq!(disk(Path::new("/proc")).unwrap(), Disk::Unknown);
        assert_eq!(
            disk(Path::new("/no/such/directory")).unwrap_err().kind(),
            std::io::ErrorKind::NotFound
        );
    }
}
