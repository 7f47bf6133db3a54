//! From a path to an open database: what is looked at, created and refused on the way.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{self, Path};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, OptionalExtension, TransactionBehavior};

use super::Options;
use super::database::Database;
use super::files::{Files, Identity};
use super::filesystem::{Disk, disk};
use crate::store::OpenError;

/// The version of the part `kv` that this code reads and writes.
const VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS leasehold_schema (part TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS leasehold_kv (
        key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, written INTEGER NOT NULL, boot TEXT NOT NULL
    ) STRICT;
    INSERT INTO leasehold_schema (part, version) VALUES ('kv', 1) ON CONFLICT DO NOTHING;
";

/// How long an opening waits for others, who may be creating the same file at this moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens the database at `path` and makes sure of everything that a [`Database`] relies on.
pub(super) fn open(path: &Path, options: &Options) -> Result<Database, OpenError> {
    let path = &path::absolute(path).map_err(|error| unreachable(path, &error))?;
    let disk = suitable_disk(path, options)?;
    create_if_missing(path)?;
    let canonical = fs::canonicalize(path).map_err(|error| unreachable(path, &error))?;
    let opened = Identity::at(path).map_err(|error| unreachable(path, &error))?;
    let mut connection = connect(&canonical, options).map_err(|error| explain(path, &error))?;
    if connection.is_readonly(MAIN_DB).map_err(|error| explain(path, &error))? {
        return Err(OpenError::Unreachable(format!(
            "{} is read-only for this user; give write permission on it",
            path.display()
        )));
    }
    prepare(&mut connection, path)?;
    let files = Files::of(path, &canonical).map_err(|error| unreachable(path, &error))?;
    if files.database() != opened {
        return Err(OpenError::Unreachable(format!(
            "{} was replaced while it was opened; try again",
            path.display()
        )));
    }
    Ok(Database { connection, files, disk, busy: options.busy })
}

/// The file system of the file, or of the directory it is to be created in.
fn suitable_disk(path: &Path, options: &Options) -> Result<Disk, OpenError> {
    let directory = path.parent().unwrap_or(path);
    let disk = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return refused(path, "is a directory; name a file in it, such as leases.db");
        }
        Ok(metadata) if !metadata.is_file() => {
            return refused(path, "is no regular file; name another");
        }
        Ok(_) => disk(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => disk(directory),
        Err(error) => Err(error),
    };
    match disk {
        Ok(Disk::Shared(kind)) if !options.unsafe_filesystem => refused(
            path,
            &format!(
                "is on {kind}, where SQLite's locks do not hold; use a disk of this machine, or a database server for \
                 several machines (?unsafe-filesystem accepts it at your own risk)"
            ),
        ),
        Ok(disk) => Ok(disk),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::Unreachable(format!(
                "the directory {} does not exist; create it, or name another file",
                directory.display()
            )))
        }
        Err(error) => Err(unreachable(path, &error)),
    }
}

/// Creates the file, for this user only. SQLite itself would follow the umask, and is never allowed
/// to create: a database that vanished must not come back empty.
fn create_if_missing(path: &Path) -> Result<(), OpenError> {
    /// To close a file drops all locks this process has on it, also those that SQLite took on
    /// another thread in the meantime; so nobody opens while somebody creates.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    match new.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(unreachable(path, &error))
        }
        _ => Ok(()),
    }
}

fn connect(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy)?;
    Ok(connection)
}

/// Nothing is written before the file has been found to be a database of no newer schema.
fn prepare(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let known = patiently(|| schema_version(connection)).map_err(|error| explain(path, &error))?;
    suitable_version(known, path)?;
    patiently(|| sync_every_commit(connection)).map_err(|error| explain(path, &error))?;
    let mode = patiently(|| {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
    });
    let mode: String = mode.map_err(|error| explain(path, &error))?;
    if mode != "wal" {
        return refused(path, "cannot have a write-ahead log on this file system; use another one");
    }
    if known.is_none() {
        patiently(|| create_schema(connection)).map_err(|error| explain(path, &error))?;
    }
    // Also the first transaction in the log, which is what creates the files beside the database.
    let version =
        patiently(|| schema_version(connection)).map_err(|error| explain(path, &error))?;
    suitable_version(version, path)?;
    match connection.prepare("SELECT key, value, written, boot FROM leasehold_kv") {
        Ok(_) => Ok(()),
        Err(error) => {
            refused(path, &format!("has no table leasehold_kv to use ({error}); name another file"))
        }
    }
}

/// A term that a power cut takes back is a second holder.
fn sync_every_commit(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)
}

fn schema_version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let table =
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'leasehold_schema'";
    if connection.query_row(table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let version = "SELECT version FROM leasehold_schema WHERE part = 'kv'";
    connection.query_row(version, [], |row| row.get(0)).optional()
}

fn suitable_version(version: Option<i64>, path: &Path) -> Result<(), OpenError> {
    match version {
        None | Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => refused(
            path,
            &format!(
                "was written by a newer leasehold (schema {newer}, this one knows {VERSION}); update this program"
            ),
        ),
        Some(other) => refused(
            path,
            &format!("has the impossible schema version {other}; restore leasehold_schema"),
        ),
    }
}

fn create_schema(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.commit()
}

/// Tries again while others hold the file: SQLite does not wait by itself where two connections
/// change the journal mode, or recover, at the same time.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if busy(&error) && begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn refused<T>(path: &Path, why: &str) -> Result<T, OpenError> {
    Err(OpenError::Refused(format!("{} {why}", path.display())))
}

fn unreachable(path: &Path, error: &io::Error) -> OpenError {
    OpenError::Unreachable(format!("{} cannot be opened: {error}", path.display()))
}

fn explain(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Refused(format!(
            "{path} is no SQLite database, and was left as it is; name another file"
        )),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Refused(format!(
            "{path} is damaged ({error}), and was left as it is; restore it or name another file"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Unreachable(
            format!("{path} stayed locked by another program; end its transaction and try again"),
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::Unreachable(format!(
                "{path} cannot be opened ({error}); give this user write permission on it, its -wal and -shm, and its directory"
            ))
        }
        Some(ErrorCode::DiskFull) => {
            OpenError::Unreachable(format!("the disk of {path} is full; free some space on it"))
        }
        _ => OpenError::Unreachable(format!("{path} cannot be opened: {error}")),
    }
}
