//! Databases in folders of their own.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_core::guard;
use rusqlite::{Connection, ErrorCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::engine::{shell, success};

/// The documented table that admits its own rows, and one that does not.
pub(crate) const TABLES: &str = "
    CREATE TABLE payment(invoice INTEGER PRIMARY KEY, amount INTEGER NOT NULL, token TEXT NOT NULL) STRICT;
    CREATE TRIGGER payment_is_fenced AFTER INSERT ON payment BEGIN
      INSERT INTO leasehold_admit(resource, token, step, digest) VALUES ('r', NEW.token, NEW.invoice, '');
    END;
    CREATE TABLE bare(invoice INTEGER PRIMARY KEY) STRICT;";

pub(crate) struct Database {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Database {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        Self { path: folder.path().join("payments.db"), _folder: folder }
    }

    /// With the resource `r`, sealed at a term.
    pub(crate) fn sealed_at(term: i64) -> Self {
        let database = Self::new();
        database.apply();
        database.create_and_seal(term);
        database
    }

    pub(crate) fn with_tables() -> Self {
        let database = Self::sealed_at(5);
        database.open().execute_batch(TABLES).unwrap();
        database
    }

    pub(crate) fn apply(&self) {
        self.open().execute_batch(guard::SQLITE).unwrap();
    }

    pub(crate) fn create_and_seal(&self, term: i64) {
        let connection = self.open();
        connection
            .execute(
                "INSERT INTO leasehold_fence(resource) VALUES ('r') ON CONFLICT DO NOTHING",
                [],
            )
            .unwrap();
        seal(&connection, term).unwrap();
    }

    pub(crate) fn open(&self) -> Connection {
        open(&self.path)
    }

    pub(crate) fn open_in(&self, journal: &str) -> Connection {
        let connection = self.open();
        connection.pragma_update(None, "journal_mode", journal).unwrap();
        connection
    }

    pub(crate) fn count(&self, table: &str) -> i64 {
        self.open()
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap()
    }

    pub(crate) fn seq(&self) -> i64 {
        self.open().query_row("SELECT seq FROM leasehold_floor", [], |row| row.get(0)).unwrap()
    }

    /// Schema and rows as the shell, the oldest program here, reads them.
    pub(crate) fn dump(&self) -> Vec<String> {
        let output = shell(&self.path, &["-bail"], ".dump");
        success(&output);
        let dump = String::from_utf8(output.stdout).expect("UTF-8");
        let frame = ["PRAGMA foreign_keys=OFF;", "BEGIN TRANSACTION;", "COMMIT;"];
        dump.lines().filter(|line| !frame.contains(line)).map(str::to_owned).collect()
    }
}

pub(crate) fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection
}

pub(crate) fn token(term: i64) -> Value {
    json!(format!("{}/{term}/{}", "a".repeat(32), "1".repeat(16)))
}

pub(crate) fn refusal<T: Debug>(result: rusqlite::Result<T>) -> String {
    let message = error_message(&result.expect_err("a refusal"));
    message
        .strip_prefix(guard::MESSAGE_PREFIX)
        .unwrap_or_else(|| panic!("not a verdict: {message}"))
        .to_owned()
}

pub(crate) fn is_busy<T: Debug>(result: &rusqlite::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

pub(crate) fn seal(connection: &Connection, term: i64) -> rusqlite::Result<usize> {
    connection
        .execute("INSERT INTO leasehold_seal VALUES ('r', ?, 0)", [token(term).as_str().unwrap()])
}

pub(crate) fn admit(connection: &Connection, term: i64) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT INTO leasehold_admit VALUES ('r', ?, '', '')",
        [token(term).as_str().unwrap()],
    )
}

pub(crate) fn error_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}
