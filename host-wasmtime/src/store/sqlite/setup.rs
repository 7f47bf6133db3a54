//! From a path to an open database: what is looked at, created and refused on the way.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior};

use super::database::Database;
use super::files::{Files, Identity};
use super::filesystem::{Disk, disk};
use super::names::second_name;
use super::schema::{self, Part};
use super::{Options, advice};
use crate::store::{Found, OpenError};

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
    let opened = Identity::at(path).map_err(|error| unreachable(path, &error))?;
    let canonical = the_one_name(path)?;
    let mut connection = connect(&canonical, options).map_err(|error| explain(path, &error))?;
    if connection.is_readonly(MAIN_DB).map_err(|error| explain(path, &error))? {
        return Err(OpenError::Unreachable(format!(
            "{} is read-only for this user; give write permission on it, or mount its disk writable",
            path.display()
        )));
    }
    prepare(&mut connection, path, options)?;
    let files = Files::of(path, &canonical).map_err(|error| unreachable(path, &error))?;
    if files.database() != opened {
        return Err(OpenError::Unreachable(format!(
            "{} was replaced while it was opened; try again",
            path.display()
        )));
    }
    Ok(Database { connection, files, disk, busy: options.busy })
}

/// What is at `path`. It is left as it is.
pub(super) fn find(path: &Path, options: &Options) -> Result<Found, OpenError> {
    let path = &path::absolute(path).map_err(|error| unreachable(path, &error))?;
    suitable_disk(path, options)?;
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unreachable(path, &error)),
        Ok(_) => {}
    }
    let canonical = the_one_name(path)?;
    let connection = connect(&canonical, options).map_err(|error| explain(path, &error))?;
    if look(&connection, path)?.table {
        return Ok(Found::Store);
    }
    let is_empty =
        patiently(|| schema::is_empty(&connection)).map_err(|error| explain(path, &error))?;
    Ok(if is_empty { Found::Nothing } else { Found::Other })
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => {
                return Err(OpenError::Missing(format!(
                    "{} is a link to {}, and nothing is there; remove the link, or create what it leads to",
                    path.display(),
                    target.display()
                )));
            }
            Err(_) => disk(directory),
        },
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::Missing(format!(
            "the directory {} does not exist; create it, or name another file",
            directory.display()
        ))),
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

/// The path without symbolic links, under which SQLite keeps its two files beside the database.
fn the_one_name(path: &Path) -> Result<PathBuf, OpenError> {
    let canonical = fs::canonicalize(path).map_err(|error| unreachable(path, &error))?;
    match second_name(&canonical).map_err(|error| unreachable(path, &error))? {
        Some(why) => refused(path, why),
        None => Ok(canonical),
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

/// Nothing is written before all that is there has been found fit.
fn prepare(connection: &mut Connection, path: &Path, options: &Options) -> Result<(), OpenError> {
    let found = look(connection, path)?;
    let synchronous = if options.unsafe_no_sync { "OFF" } else { "FULL" };
    patiently(|| synchronize(connection, synchronous)).map_err(|error| explain(path, &error))?;
    let mode = patiently(|| {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
    });
    let mode: String = mode.map_err(|error| explain(path, &error))?;
    if mode != "wal" {
        return refused(path, "cannot have a write-ahead log on this file system; use another one");
    }
    if !found.schema {
        patiently(|| create_schema(connection)).map_err(|error| explain(path, &error))?;
    }
    // Also the first transaction in the log, which is what creates the files beside the database.
    look(connection, path).map(drop)
}

/// What a database has of a store.
struct Parts {
    schema: bool,
    table: bool,
}

/// Reads only. Fails where something else stands in the store's place.
fn look(connection: &Connection, path: &Path) -> Result<Parts, OpenError> {
    let version =
        patiently(|| Part::of(connection, "kv")).map_err(|error| explain(path, &error))?;
    version.suits(VERSION).or_else(|why| refused(path, &why))?;
    let table = patiently(|| schema::has(connection, "leasehold_kv"))
        .map_err(|error| explain(path, &error))?;
    let found = Parts { schema: version != Part::Absent, table };
    if found.schema || found.table {
        let insert = "INSERT INTO leasehold_kv (key, value, written, boot) VALUES (?, ?, ?, ?)";
        match patiently(|| connection.prepare(insert)) {
            Ok(_) => {}
            Err(error) if advice::code(&error) == Some(ErrorCode::Unknown) => {
                let why = format!("has no table leasehold_kv to use ({error}); name another file");
                return refused(path, &why);
            }
            Err(error) => return Err(explain(path, &error)),
        }
    }
    Ok(found)
}

/// A term that a power cut takes back is a second holder, hence FULL unless the user takes the risk.
fn synchronize(connection: &Connection, synchronous: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)
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
    matches!(advice::code(error), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn refused<T>(path: &Path, why: &str) -> Result<T, OpenError> {
    Err(OpenError::Refused(format!("{} {why}", path.display())))
}

fn unreachable(path: &Path, error: &io::Error) -> OpenError {
    OpenError::Unreachable(advice::explain_io(path.display(), error))
}

fn explain(path: &Path, error: &rusqlite::Error) -> OpenError {
    let why = advice::explain(path.display(), error, PATIENCE);
    match advice::code(error) {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            OpenError::Refused(why)
        }
        _ => OpenError::Unreachable(why),
    }
}
