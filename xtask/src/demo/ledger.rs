//! The payments database as the demo sees it: what was paid, what was refused, and by whom.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::Outcome;

/// Nothing here keeps an invoice from being paid twice or late: the fence has to.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE invoice (id TEXT PRIMARY KEY);
    CREATE TABLE payment (
        id INTEGER PRIMARY KEY, invoice TEXT, term INTEGER, holder TEXT, paid_ns INTEGER
    ) STRICT;
    CREATE TABLE refusal (
        id INTEGER PRIMARY KEY, invoice TEXT, term INTEGER, holder TEXT, verdict TEXT,
        at_ns INTEGER
    ) STRICT;
    CREATE TABLE job (
        id INTEGER PRIMARY KEY, term INTEGER, holder TEXT, token TEXT, pid INTEGER,
        started_ns INTEGER
    ) STRICT;
";

pub(crate) struct Ledger(Connection);

/// A command that ran under the lease. All times are CLOCK_BOOTTIME, in nanoseconds.
pub(crate) struct Job {
    pub(crate) term: i64,
    pub(crate) holder: String,
    pub(crate) token: String,
    pub(crate) pid: i32,
    pub(crate) started_ns: i64,
}

pub(crate) struct Payment {
    pub(crate) invoice: String,
    pub(crate) term: i64,
    pub(crate) paid_ns: i64,
}

pub(crate) struct Refusal {
    pub(crate) invoice: String,
    pub(crate) term: i64,
    pub(crate) holder: String,
    pub(crate) verdict: String,
    pub(crate) at_ns: i64,
}

impl Ledger {
    /// A new ledger of `invoices` open invoices, with the fence's tables.
    pub(crate) fn create(path: &Path, invoices: u32, fence_sql: &str) -> Outcome<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(fence_sql)?;
        for number in 1..=invoices {
            connection.execute("INSERT INTO invoice VALUES (?)", [invoice(number)])?;
        }
        Ok(Self(connection))
    }

    /// The first job of a larger term than `term`.
    pub(crate) fn job_after(&self, term: i64) -> Outcome<Option<Job>> {
        let select = "SELECT term, holder, token, pid, started_ns FROM job
                      WHERE term > ? ORDER BY id LIMIT 1";
        Ok(self.0.query_row(select, [term], job).optional()?)
    }

    pub(crate) fn refusal_of(&self, term: i64) -> Outcome<Option<Refusal>> {
        Ok(self.refusals()?.into_iter().find(|refusal| refusal.term == term))
    }

    pub(crate) fn payments_of(&self, term: i64) -> Outcome<i64> {
        self.number("SELECT count(*) FROM payment WHERE term = ?", [term])
    }

    pub(crate) fn missing_payments(&self) -> Outcome<i64> {
        self.number(
            "SELECT count(*) FROM invoice WHERE id NOT IN (SELECT invoice FROM payment)",
            [],
        )
    }

    pub(crate) fn jobs(&self) -> Outcome<Vec<Job>> {
        self.rows("SELECT term, holder, token, pid, started_ns FROM job ORDER BY id", job)
    }

    /// In the order in which they were committed.
    pub(crate) fn payments(&self) -> Outcome<Vec<Payment>> {
        self.rows("SELECT invoice, term, paid_ns FROM payment ORDER BY id", |row| {
            Ok(Payment { invoice: row.get(0)?, term: row.get(1)?, paid_ns: row.get(2)? })
        })
    }

    pub(crate) fn refusals(&self) -> Outcome<Vec<Refusal>> {
        self.rows("SELECT invoice, term, holder, verdict, at_ns FROM refusal ORDER BY id", |row| {
            Ok(Refusal {
                invoice: row.get(0)?,
                term: row.get(1)?,
                holder: row.get(2)?,
                verdict: row.get(3)?,
                at_ns: row.get(4)?,
            })
        })
    }

    fn number(&self, select: &str, parameters: impl rusqlite::Params) -> Outcome<i64> {
        Ok(self.0.query_row(select, parameters, |row| row.get(0))?)
    }

    fn rows<T>(&self, select: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Outcome<Vec<T>> {
        Ok(self.0.prepare(select)?.query_map([], read)?.collect::<Result<_, _>>()?)
    }
}

/// Whether nobody is inside a write transaction on this database.
pub(crate) fn is_free(database: &Path) -> Outcome<bool> {
    let connection = Connection::open(database)?;
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok())
}

/// The name of an invoice; it is also the step that the fence remembers.
pub(crate) fn invoice(number: u32) -> String {
    format!("invoice-{number}")
}

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        term: row.get(0)?,
        holder: row.get(1)?,
        token: row.get(2)?,
        pid: row.get(3)?,
        started_ns: row.get(4)?,
    })
}
