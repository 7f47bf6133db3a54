//! Whether a database has one name.
//!
//! SQLite keeps the log and the lock memory beside the name that a file was opened under. One file
//! under two names has two of each, and whoever came by one name sees nothing of what is written by
//! the other: two holders. Symbolic links and mounted directories do no harm, since they lead to
//! the same name in the end.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

/// What is wrong with the file at `path`, a path without symbolic links, in words that follow its
/// name; none: it has one name.
///
/// To ask about the mount when a file is opened is enough: a file gets into another directory by a
/// mount only there, where every later opening is refused. A hard link is asked about around every
/// operation too, see [`second_link`].
pub(crate) fn second_name(path: &Path) -> io::Result<Option<&'static str>> {
    Ok(second_link(&fs::metadata(path)?).or_else(|| {
        mounts::is_mount_point(path).then_some(
            "is mounted as a single file, and the log beside this name is not the log of the others; mount its \
             directory instead",
        )
    }))
}

/// The same for hard links alone.
///
/// An opening by either name is refused while there are two. But a name may be exchanged for
/// another and back while nobody looks: moved, opened by others under the new name, and linked to
/// the old one again, which leads its holder to the right file. Where an operation counts only if
/// its name was the only one before and after it, that holder and those others cannot both go on.
#[cfg(unix)]
pub(super) fn second_link(metadata: &Metadata) -> Option<&'static str> {
    (std::os::unix::fs::MetadataExt::nlink(metadata) > 1).then_some(
        "has a second name (hard link), and every name has a log of its own; remove the other names",
    )
}

/// Other systems do not tell.
#[cfg(not(unix))]
pub(super) fn second_link(_: &Metadata) -> Option<&'static str> {
    None
}

#[cfg(target_os = "linux")]
mod mounts {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

    pub(super) fn is_mount_point(path: &Path) -> bool {
        let directory = path.parent().unwrap_or(path);
        match (mount_id(path), mount_id(directory)) {
            (Some(file), Some(directory)) => file != directory,
            // Without /proc, too, nobody tells; such a place has no store clock either.
            _ => {
                fs::read("/proc/self/mountinfo").is_ok_and(|mountinfo| is_listed(path, &mountinfo))
            }
        }
    }

    /// None before Linux 5.8.
    fn mount_id(path: &Path) -> Option<u64> {
        let known = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        (known.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(known.stx_mnt_id)
    }

    /// The fifth field of a line is the mount point.
    pub(super) fn is_listed(path: &Path, mountinfo: &[u8]) -> bool {
        mountinfo
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
            .any(|mount_point| unescaped(mount_point) == path)
    }

    /// The kernel writes what would end a field or a line as a backslash and three octal digits.
    fn unescaped(field: &[u8]) -> PathBuf {
        let mut parts = field.split(|byte| *byte == b'\\');
        let mut path = parts.next().unwrap_or_default().to_vec();
        for part in parts {
            let digits = part.get(..3).and_then(|digits| str::from_utf8(digits).ok());
            path.extend(digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()));
            path.extend(part.iter().skip(3));
        }
        OsString::from_vec(path).into()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_mount_point_is_found_in_the_kernels_list() {
            let mountinfo = b"25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                77 25 8:1 /srv/leases.db /x/my\\040leases\\134.db rw - ext4 /dev/sda1 rw\n";
            assert!(is_listed(Path::new("/x/my leases\\.db"), mountinfo));
            for other in ["/x/my\\040leases\\134.db", "/srv/leases.db", "/x", "8:1", "rw", ""] {
                assert!(!is_listed(Path::new(other), mountinfo), "{other}");
            }
        }

        #[test]
        fn the_kernel_tells_the_mounts_apart() {
            assert!(is_mount_point(Path::new("/proc")));
            assert!(!is_mount_point(Path::new("/proc/self/mountinfo")));
        }
    }
}

/// Only Linux mounts single files.
#[cfg(not(target_os = "linux"))]
mod mounts {
    pub(super) fn is_mount_point(_: &std::path::Path) -> bool {
        false
    }
}
