//! Errors of SQLite and of the system, in words that say what to do.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use rusqlite::ErrorCode;

/// SQLite's primary code, also for what rusqlite keeps apart: an error with a place in the SQL.
pub(crate) fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        _ => error.sqlite_error_code(),
    }
}

/// What went wrong with the database that was named `path`. `waited`: how long for the locks of others.
pub(crate) fn explain(path: impl Display, error: &rusqlite::Error, waited: Duration) -> String {
    match code(error) {
        Some(ErrorCode::NotADatabase) => {
            format!("{path} is no SQLite database, and was left as it is; name another file")
        }
        Some(ErrorCode::DatabaseCorrupt) => format!(
            "{path} is damaged ({error}), and was left as it is; restore it or name another file"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "{path} stayed locked by another connection for {} ms; end the long transaction on it",
            waited.as_millis()
        ),
        Some(ErrorCode::CannotOpen) if descriptors_are_short() => {
            format!("{path} cannot be opened: {TOO_MANY_FILES}")
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!(
                "{path} cannot be opened for writing ({error}); give this user write permission on it, its -wal and \
                 -shm, and its directory"
            )
        }
        Some(ErrorCode::DiskFull) => {
            format!("the disk of {path} is full; free some space on it")
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!(
                "the disk of {path} fails ({error}); look at the limit on a file's size (ulimit -f) and the system's log"
            )
        }
        // SQLite's plain SQL error.
        Some(ErrorCode::Unknown) => format!(
            "{path} has tables that are not as leasehold makes them ({error}); restore them or name another file"
        ),
        _ => format!("{path} cannot be used: {error}"),
    }
}

/// Why the file that was named `path` could not be opened.
pub(crate) fn explain_io(path: impl Display, error: &io::Error) -> String {
    match error.kind() {
        _ if is_shortage(error) => format!("{path} cannot be opened: {TOO_MANY_FILES}"),
        io::ErrorKind::PermissionDenied => format!(
            "{path} cannot be opened: {error}; give this user permission on it and its directory"
        ),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "{path} cannot be opened: {error}; mount its disk writable or name another file"
            )
        }
        _ => format!("{path} cannot be opened: {error}"),
    }
}

const TOO_MANY_FILES: &str = "too many files are open; raise the limit (ulimit -n)";

/// Whether SQLite's "unable to open" comes from this. It does not say so, and may have closed some
/// of its four by now: the database, the log, the lock memory, and their directory during a sync.
fn descriptors_are_short() -> bool {
    let four: io::Result<Vec<_>> = (0..4).map(|_| std::fs::File::open("/")).collect();
    four.is_err_and(|error| is_shortage(&error))
}

#[cfg(unix)]
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
fn is_shortage(_: &io::Error) -> bool {
    false
}
