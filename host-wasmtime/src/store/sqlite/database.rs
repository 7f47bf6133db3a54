//! The two operations, as SQLite transactions, and what SQLite's errors mean for their outcome.

use std::borrow::Cow;
use std::slice;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension, ffi, params};
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

/// What one caller wants to be done if it can be done whole.
pub(super) struct Request {
    pub(super) checks: Vec<Check>,
    pub(super) writes: Vec<Write>,
}

/// Why an operation came to nothing; it has not been applied and will not be.
pub(super) enum Trouble {
    /// The store is there no more, or no longer whole.
    Gone(String),
    /// The store could not do it now.
    Unavailable(String),
}

impl From<Trouble> for Read {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Gone(why) => Self::Gone(why),
            Trouble::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<Trouble> for Transact {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Gone(why) => Self::Gone(why),
            Trouble::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<Trouble> for List {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Gone(why) => Self::Gone(why),
            Trouble::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl Database {
    /// Reads one key, in a transaction of its own.
    pub(super) fn read(&self, key: &str) -> Read {
        self.try_read(key).unwrap_or_else(Read::from)
    }

    /// Checks and writes each request as one atomic step, in their order, and commits them together:
    /// what a commit costs is paid once. No other writer can enter meanwhile.
    pub(super) fn transact(&self, requests: &[Request]) -> Vec<Transact> {
        match self.try_transact(requests) {
            Ok(answers) => answers,
            Err(Failed::All(trouble)) => vec![trouble.into(); requests.len()],
            // One of them failed, and everything was undone. The others must not suffer for it.
            Err(Failed::One(trouble)) => match requests {
                [_] => vec![trouble.into()],
                _ => requests.iter().flat_map(|one| self.transact(slice::from_ref(one))).collect(),
            },
        }
    }

    /// Lists keys, in a transaction of its own.
    pub(super) fn list(&self, prefix: &str) -> List {
        self.try_list(prefix).unwrap_or_else(List::from)
    }

    fn try_read(&self, key: &str) -> Result<Read, Trouble> {
        self.files.verify()?;
        let row = self.row(key).map_err(|error| self.trouble(&error))?;
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
            let key = |row: &rusqlite::Row<'_>| Ok(bytes(row.get_ref(0)?).into_owned());
            let keys = statement.query_map([prefix], key)?;
            keys.map(|key| Ok(String::from_utf8_lossy(&key?).into_owned())).collect()
        };
        self.files.verify()?;
        let keys = keys().map_err(|error| self.trouble(&error))?;
        self.files.verify()?;
        Ok(List::Keys(keys))
    }

    fn row(&self, key: &str) -> rusqlite::Result<Option<(Vec<u8>, Stamp)>> {
        let select = "SELECT value, written, boot FROM leasehold_kv WHERE key = ?";
        self.connection
            .prepare_cached(select)?
            .query_row([key], |row| {
                Ok((bytes(row.get_ref(0)?).into_owned(), stamp(row.get_ref(1)?, row.get_ref(2)?)))
            })
            .optional()
    }

    fn try_transact(&self, requests: &[Request]) -> Result<Vec<Transact>, Failed> {
        self.files.verify().map_err(Failed::All)?;
        self.execute("BEGIN IMMEDIATE").map_err(|error| Failed::All(self.trouble(&error)))?;
        let stamp = Moment::now().stamp();
        let answers: rusqlite::Result<Vec<Transact>> =
            requests.iter().map(|request| self.put_if(request, &stamp)).collect();
        let committed = answers.is_ok().then(|| self.execute("COMMIT"));
        // Some errors end the transaction by themselves.
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
        let mut answers = answers.map_err(|error| Failed::One(self.trouble(&error)))?;
        if let Some(Err(error)) = committed {
            // SQLite cannot undo every commit that failed: frames that reached the log whole, and
            // no further, may come back with the recovery after a crash.
            return Ok(vec![Transact::Unknown(self.explain(&error)); requests.len()]);
        }
        if let Err(trouble) = self.files.verify() {
            let lost = match trouble {
                Trouble::Gone(why) => Transact::Gone(why),
                Trouble::Unavailable(why) => Transact::Unknown(why),
            };
            let applied = |answer: &&mut Transact| matches!(answer, Transact::Applied(_));
            answers.iter_mut().filter(applied).for_each(|answer| answer.clone_from(&lost));
        }
        Ok(answers)
    }

    /// Inside a transaction: writes all of the request if its checks hold, else nothing.
    fn put_if(&self, request: &Request, stamp: &Stamp) -> rusqlite::Result<Transact> {
        let Request { checks, writes } = request;
        if let Some(write) = writes.iter().find(|write| str::from_utf8(&write.value).is_err()) {
            let why = format!("the value for {} is not UTF-8; stores keep text", write.key);
            return Ok(Transact::Unavailable(why));
        }
        for check in checks {
            if !self.holds(check)? {
                return Ok(Transact::Conflict);
            }
        }
        for write in writes {
            self.put(write, stamp)?;
        }
        Ok(Transact::Applied(writes.iter().map(|write| version(&write.value)).collect()))
    }

    fn holds(&self, check: &Check) -> rusqlite::Result<bool> {
        let select = "SELECT value FROM leasehold_kv WHERE key = ?";
        let mut select = self.connection.prepare_cached(select)?;
        let mut rows = select.query([&check.key])?;
        Ok(match (rows.next()?, check.expect) {
            (None, Expect::Absent) => true,
            (Some(row), Expect::Version(expected)) => version(&bytes(row.get_ref(0)?)) == expected,
            _ => false,
        })
    }

    /// Writes over whatever is there. The write lock is held since the start of the transaction, so
    /// what the checks saw still is.
    fn put(&self, Write { key, value }: &Write, stamp: &Stamp) -> rusqlite::Result<()> {
        const UPDATE: &str =
            "UPDATE leasehold_kv SET value = ?2, written = ?3, boot = ?4 WHERE key = ?1";
        const INSERT: &str =
            "INSERT INTO leasehold_kv (key, value, written, boot) VALUES (?1, ?2, ?3, ?4)";
        let value = ToSqlOutput::Borrowed(ValueRef::Text(value));
        let row = params![key, value, stamp.written_ms, stamp.boot];
        let changed = match self.connection.prepare_cached(UPDATE)?.execute(row)? {
            0 => self.connection.prepare_cached(INSERT)?.execute(row)?,
            changed => changed,
        };
        if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
    }

    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
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

/// Nothing of any request has been applied.
enum Failed {
    /// All for the same reason.
    All(Trouble),
    /// One of them; nobody knows about the others.
    One(Trouble),
}

/// The bytes of a value, also of one that was put there by hand.
fn bytes(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.into(),
        ValueRef::Integer(number) => number.to_string().into_bytes().into(),
        ValueRef::Real(number) => number.to_string().into_bytes().into(),
        ValueRef::Null => Cow::default(),
    }
}

/// A stamp as stored; what no writer of this schema stores is an unknown stamp.
fn stamp(written: ValueRef<'_>, boot: ValueRef<'_>) -> Stamp {
    match (written.as_i64(), boot.as_str()) {
        (Ok(written_ms), Ok(boot)) => Stamp { written_ms, boot: boot.to_owned() },
        _ => Stamp::UNKNOWN,
    }
}

/// The nonce in every value makes the value, and so its digest, unique in the key's life.
fn version(value: &[u8]) -> Version {
    Version::new(&Sha256::digest(value))
        .expect("a digest of 32 bytes is shorter than the limit of 40")
}
