//! The two operations, as SQLite transactions, and what SQLite's errors mean for their outcome.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, TransactionBehavior, ffi, named_params, params,
};
use sha2::{Digest, Sha256};

use super::advice::{code, explain};
use super::files::Files;
use super::filesystem::Disk;
use super::stamp::{Moment, Stamp};
use crate::store::{Check, Expect, List, Read, Transact, Version, Write};

/// One open database: a connection with the schema in place.
pub(super) struct Database {
    pub(super) connection: Connection,
    pub(super) files: Files,
    pub(super) disk: Disk,
    pub(super) busy: Duration,
}

/// Why an operation came to nothing; it has not been applied and will not be.
pub(super) enum Trouble {
    /// The store is there no more, or no longer whole.
    Gone(String),
    /// The store could not do it now.
    Unavailable(String),
}

impl Database {
    /// Reads one key, in a transaction of its own.
    pub(super) fn read(&self, key: &str) -> Read {
        self.try_read(key).unwrap_or_else(|trouble| match trouble {
            Trouble::Gone(why) => Read::Gone(why),
            Trouble::Unavailable(why) => Read::Unavailable(why),
        })
    }

    /// Checks and writes in one transaction, which no other writer can enter.
    pub(super) fn transact(&mut self, checks: &[Check], writes: &[Write]) -> Transact {
        self.try_transact(checks, writes).unwrap_or_else(|trouble| match trouble {
            Trouble::Gone(why) => Transact::Gone(why),
            Trouble::Unavailable(why) => Transact::Unavailable(why),
        })
    }

    /// Lists keys, in a transaction of its own.
    pub(super) fn list(&self, prefix: &str) -> List {
        self.try_list(prefix).unwrap_or_else(|trouble| match trouble {
            Trouble::Gone(why) => List::Gone(why),
            Trouble::Unavailable(why) => List::Unavailable(why),
        })
    }

    fn try_read(&self, key: &str) -> Result<Read, Trouble> {
        self.files.verify()?;
        let row = self
            .connection
            .query_row(
                "SELECT value, written, boot FROM leasehold_kv WHERE key = ?",
                [key],
                |row| Ok((bytes(row.get_ref(0)?), stamp(row.get_ref(1)?, row.get_ref(2)?))),
            )
            .optional()
            .map_err(|error| self.trouble(&error))?;
        let now = Moment::now();
        self.files.verify()?;
        Ok(match row {
            None => Read::Absent,
            Some((value, written)) => Read::Entry {
                version: version(&value),
                age_ns: now.age_ns(&written, self.disk == Disk::Local),
                value,
            },
        })
    }

    fn try_list(&self, prefix: &str) -> Result<List, Trouble> {
        // Not LIKE, to which the letters' case, `_` and `%` would mean something.
        let select =
            "SELECT key FROM leasehold_kv WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key";
        let keys = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(select)?;
            let key = |row: &rusqlite::Row<'_>| Ok(bytes(row.get_ref(0)?));
            let keys = statement.query_map([prefix], key)?;
            keys.map(|key| Ok(String::from_utf8_lossy(&key?).into_owned())).collect()
        };
        self.files.verify()?;
        let keys = keys().map_err(|error| self.trouble(&error))?;
        self.files.verify()?;
        Ok(List::Keys(keys))
    }

    fn try_transact(&mut self, checks: &[Check], writes: &[Write]) -> Result<Transact, Trouble> {
        if let Some(write) = writes.iter().find(|write| str::from_utf8(&write.value).is_err()) {
            let why = format!("the value for {} is not UTF-8; stores keep text", write.key);
            return Err(Trouble::Unavailable(why));
        }
        self.files.verify()?;
        match self.apply(checks, writes) {
            Ok(Applied::Conflict) => Ok(Transact::Conflict),
            // SQLite cannot undo every commit that failed: frames that reached the log whole, and
            // no further, may come back with the recovery after a crash.
            Ok(Applied::Doubt(error)) => Ok(Transact::Unknown(self.explain(&error))),
            Ok(Applied::Done(versions)) => match self.files.verify() {
                Ok(()) => Ok(Transact::Applied(versions)),
                Err(Trouble::Gone(why)) => Ok(Transact::Gone(why)),
                Err(Trouble::Unavailable(why)) => Ok(Transact::Unknown(why)),
            },
            Err(error) => Err(self.trouble(&error)),
        }
    }

    fn apply(&mut self, checks: &[Check], writes: &[Write]) -> rusqlite::Result<Applied> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for check in checks {
            if !holds(&transaction, check)? {
                return Ok(Applied::Conflict);
            }
        }
        let stamp = Moment::now().stamp();
        for write in writes {
            put(&transaction, write, &stamp)?;
        }
        Ok(match transaction.commit() {
            Ok(()) => Applied::Done(writes.iter().map(|write| version(&write.value)).collect()),
            Err(error) => Applied::Doubt(error),
        })
    }

    /// What an error before the commit means; the transaction has been rolled back.
    fn trouble(&self, error: &rusqlite::Error) -> Trouble {
        let moved = error.sqlite_extended_error_code() == Some(ffi::SQLITE_READONLY_DBMOVED);
        match code(error) {
            // A table that is missing is ErrorCode::Unknown, SQLite's plain SQL error.
            Some(ErrorCode::Unknown | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Trouble::Gone(self.explain(error))
            }
            _ if moved => Trouble::Gone(self.explain(error)),
            _ => Trouble::Unavailable(self.explain(error)),
        }
    }

    pub(super) fn explain(&self, error: &rusqlite::Error) -> String {
        let path = self.files.path();
        match code(error) {
            Some(ErrorCode::Unknown | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                format!(
                    "{} is no longer a whole store ({error}); stop whoever uses it before you restore it",
                    path.display()
                )
            }
            _ => explain(path.display(), error, self.busy),
        }
    }
}

impl Drop for Database {
    /// SQLite's last connection to close moves the log into the database and deletes it, by name.
    /// Where the names lead to the files of others, nothing is moved and nothing deleted.
    fn drop(&mut self) {
        if self.files.verify().is_err() {
            let leave = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = self.connection.set_db_config(leave, true);
        }
    }
}

enum Applied {
    Done(Vec<Version>),
    Conflict,
    /// The commit failed.
    Doubt(rusqlite::Error),
}

fn holds(connection: &Connection, check: &Check) -> rusqlite::Result<bool> {
    Ok(match (value(connection, &check.key)?, check.expect) {
        (None, Expect::Absent) => true,
        (Some(value), Expect::Version(expected)) => version(&value) == expected,
        _ => false,
    })
}

/// Writes over the value that this transaction sees. The write lock is held since its start, so
/// the checks still hold; the swap names the old value all the same, as on every other engine.
fn put(connection: &Connection, write: &Write, stamp: &Stamp) -> rusqlite::Result<()> {
    let new = text(&write.value);
    let changed = match value(connection, &write.key)? {
        None => connection.execute(
            "INSERT INTO leasehold_kv (key, value, written, boot) VALUES (?, ?, ?, ?)",
            params![write.key, new, stamp.written_ms, stamp.boot],
        )?,
        Some(old) => connection.execute(
            "UPDATE leasehold_kv SET value = :new, written = :written, boot = :boot WHERE key = :key AND value = :old",
            named_params! {
                ":key": write.key, ":old": text(&old),
                ":new": new, ":written": stamp.written_ms, ":boot": stamp.boot,
            },
        )?,
    };
    if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}

fn value(connection: &Connection, key: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .query_row("SELECT value FROM leasehold_kv WHERE key = ?", [key], |row| {
            Ok(bytes(row.get_ref(0)?))
        })
        .optional()
}

/// The bytes of a value, also of one that was put there by hand.
fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
        ValueRef::Null => Vec::new(),
    }
}

/// A stamp as stored; what no writer of this schema stores is an unknown stamp.
fn stamp(written: ValueRef<'_>, boot: ValueRef<'_>) -> Stamp {
    match (written.as_i64(), boot.as_str()) {
        (Ok(written_ms), Ok(boot)) => Stamp { written_ms, boot: boot.to_owned() },
        _ => Stamp::UNKNOWN,
    }
}

/// Binds bytes as TEXT without asking whether they are UTF-8: an old value may not be.
fn text(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bytes))
}

/// The nonce in every value makes the value, and so its digest, unique in the key's life.
fn version(value: &[u8]) -> Version {
    Version::new(&Sha256::digest(value))
        .expect("a digest of 32 bytes is shorter than the limit of 40")
}
