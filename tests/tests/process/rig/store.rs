//! The lease store, looked at and tampered with from outside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_core::record::{self, Kind};
use leasehold_core::token::Token;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::LEASE;

/// A SQLite file.
pub(crate) struct Store {
    path: PathBuf,
}

/// The record of [`LEASE`] and when it was written.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) token: Token,
    pub(crate) kind: Kind,
    /// Rounded up to the millisecond; after the writer's request left.
    pub(crate) written: Duration,
}

impl Row {
    pub(crate) fn term(&self) -> u64 {
        self.token.term.get()
    }
}

impl Store {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.open().execute_batch(sql).unwrap();
    }

    /// None: there never was a record.
    pub(crate) fn row(&self) -> Option<Row> {
        let select = "SELECT value, written FROM leasehold_kv WHERE key = 'lease/' || ?";
        let row: Option<(String, i64)> = self
            .open()
            .query_row(select, [LEASE], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .unwrap();
        row.map(|(value, written_ms)| {
            let record = record::decode(value.as_bytes()).unwrap();
            Row {
                token: record.token,
                kind: record.state.kind(),
                written: Duration::from_millis(written_ms.unsigned_abs()),
            }
        })
    }

    /// The record's bytes, whatever they are.
    pub(crate) fn value(&self) -> Vec<u8> {
        let select = "SELECT CAST(value AS BLOB) FROM leasehold_kv WHERE key = 'lease/' || ?";
        self.open().query_row(select, [LEASE], |row| row.get(0)).unwrap()
    }

    /// Edits the record by hand.
    pub(crate) fn edit(&self, value: &str) {
        let update = "UPDATE leasehold_kv SET value = ? WHERE key = 'lease/' || ?";
        assert_eq!(self.open().execute(update, params![value, LEASE]).unwrap(), 1);
    }

    /// Brings all that is in the log into the file.
    pub(crate) fn checkpoint(&self) {
        self.open().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }

    /// Whether somebody could write now.
    pub(super) fn is_free(&self) -> bool {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
    }
}
