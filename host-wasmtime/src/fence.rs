//! The fence of a resource in a SQLite database: created, sealed and looked at by the host;
//! recovered, bound to another lease and closed by an operator. Writes are admitted by the guard's
//! SQL in the writer's own transaction, never here.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::fence::{AdoptVerdict, RecoverVerdict, RetireVerdict, SealVerdict};
use leasehold_core::guard::{MESSAGE_PREFIX, SQLITE};
use leasehold_core::token::Token;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, ToSql, Transaction,
    TransactionBehavior, params,
};

use crate::store;
use crate::store::sqlite::advice::{code, explain, explain_io};
use crate::store::sqlite::names::second_name;
use crate::store::sqlite::schema::Part;

/// The version of the part `fence` that the guard's SQL makes, and this code works on.
const VERSION: i64 = 1;

/// How long somebody else's transaction may keep a seal waiting.
const BUSY: Duration = Duration::from_secs(2);

/// One resource: `STORE#RESOURCE`, where STORE is written as for [`store::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    store: String,
    name: String,
}

/// What the database keeps of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceState {
    /// The term of the last seal; 0: never sealed.
    pub floor: u64,
    /// The token of the last seal; none: never sealed.
    pub token: Option<Token>,
    /// Writes accepted so far.
    pub seq: u64,
    /// Closed for good.
    pub retired: bool,
}

impl Resource {
    /// The resource `name` of the database that `store` names.
    ///
    /// # Errors
    /// [`FenceError::Misuse`]: the store names no file, or the name is empty, over-long, or cannot
    /// stand in `STORE#RESOURCE` and on one line of output.
    pub fn new(store: &str, name: &str) -> Result<Self, FenceError> {
        store::sqlite_path(store).map_err(|error| FenceError::Misuse(error.to_string()))?;
        if !(1..=128).contains(&name.len()) {
            return Err(FenceError::Misuse("a resource's name has 1 to 128 bytes".to_owned()));
        }
        if name.contains(|letter: char| letter == '#' || letter.is_control()) {
            return Err(FenceError::Misuse(format!(
                "the resource {name:?} cannot be named in STORE#RESOURCE: choose a name without # and control \
                 characters"
            )));
        }
        Ok(Self { store: store.to_owned(), name: name.to_owned() })
    }

    /// From `STORE#RESOURCE`.
    ///
    /// # Errors
    /// As for [`Resource::new`].
    pub fn parse(text: &str) -> Result<Self, FenceError> {
        let (store, name) = text.rsplit_once('#').ok_or_else(|| {
            FenceError::Misuse(format!(
                "{text:?} names no resource: write STORE#RESOURCE, like sqlite:payments.db#payments"
            ))
        })?;
        Self::new(store, name)
    }

    /// Creates the resource, never sealed, unless it is there; says whether it was created.
    ///
    /// # Errors
    /// [`FenceError`].
    pub fn init(&self) -> Result<bool, FenceError> {
        let mut connection = self.connect()?;
        let transaction = self.begin(&mut connection)?;
        self.suits(&transaction)?;
        let insert = "INSERT INTO leasehold_fence(resource) VALUES (?) ON CONFLICT DO NOTHING";
        let created = transaction
            .execute_batch(SQLITE)
            .and_then(|()| transaction.execute(insert, [&self.name]))
            .map_err(|error| self.failed(&error))?;
        transaction.commit().map_err(|error| self.failed(&error))?;
        Ok(created == 1)
    }

    /// Seals the resource: from then on no earlier token writes. `proven`: the token was found in
    /// its lease's record, so that it may be any distance above the floor.
    ///
    /// # Errors
    /// [`FenceError`] where the database gave no verdict; nothing was sealed then.
    pub fn seal(&self, token: Token, proven: bool) -> Result<SealVerdict, FenceError> {
        let insert = "INSERT INTO leasehold_seal(resource, token, proven) VALUES (?, ?, ?)";
        let decided = self.decide(insert, params![self.name, token.to_string(), proven])?;
        let Some(Decided { before, guard }) = decided else { return Ok(SealVerdict::NoResource) };
        let (floor, last_seq) = (before.floor, before.seq);
        Ok(match guard {
            Ok(()) if before.token == Some(token) => SealVerdict::AlreadySealed { last_seq },
            Ok(()) => SealVerdict::Sealed { prev_floor: floor, last_seq },
            Err(error) => match refusal(&error) {
                Some("Gone") => SealVerdict::Gone { floor },
                Some("ForeignLineage") => SealVerdict::ForeignLineage,
                Some("Fenced") => SealVerdict::Fenced { floor },
                Some("Collision") => SealVerdict::Collision { floor },
                Some("Implausible") => SealVerdict::Implausible,
                _ => return Err(self.failed(&error)),
            },
        })
    }

    /// After the database was restored from a copy, before anyone writes: raises the floor to
    /// `record`, the token in the lease's record by a linearizable read that began after the
    /// restore. A floor that is not below it stays.
    ///
    /// # Errors
    /// [`FenceError`] where the database gave no verdict; nothing was changed then.
    pub fn recover(&self, record: Token) -> Result<RecoverVerdict, FenceError> {
        let insert = "INSERT INTO leasehold_recover(resource, token) VALUES (?, ?)";
        let decided = self.decide(insert, params![self.name, record.to_string()])?;
        let Some(Decided { before, guard }) = decided else {
            return Ok(RecoverVerdict::NoResource);
        };
        let (floor, last_seq) = (before.floor, before.seq);
        Ok(match guard {
            Ok(()) if record.term.get() <= floor => RecoverVerdict::Kept { floor },
            Ok(()) => RecoverVerdict::Recovered { prev_floor: floor, last_seq },
            Err(error) => match refusal(&error) {
                Some("Gone") => RecoverVerdict::Gone { floor },
                Some("ForeignLineage") => RecoverVerdict::ForeignLineage,
                _ => return Err(self.failed(&error)),
            },
        })
    }

    /// Binds the resource to the lease of `token`, whichever lease it obeyed: an operator's
    /// decision, never a program's. Returns the token that had sealed it before, too; none: it was
    /// never sealed, or it is not there.
    ///
    /// # Errors
    /// [`FenceError`] where the database gave no verdict; nothing was changed then.
    pub fn adopt(&self, token: Token) -> Result<(AdoptVerdict, Option<Token>), FenceError> {
        let insert = "INSERT INTO leasehold_adopt(resource, token) VALUES (?, ?)";
        let decided = self.decide(insert, params![self.name, token.to_string()])?;
        let Some(Decided { before, guard }) = decided else {
            return Ok((AdoptVerdict::NoResource, None));
        };
        let (floor, last_seq) = (before.floor, before.seq);
        let verdict = match guard {
            Ok(()) if before.token == Some(token) => AdoptVerdict::AlreadySealed { last_seq },
            Ok(()) => AdoptVerdict::Adopted { prev_floor: floor, last_seq },
            Err(error) => match refusal(&error) {
                Some("Gone") => AdoptVerdict::Gone { floor },
                Some("Fenced") => AdoptVerdict::Fenced { floor },
                Some("Collision") => AdoptVerdict::Collision { floor },
                _ => return Err(self.failed(&error)),
            },
        };
        Ok((verdict, before.token))
    }

    /// Closes the resource for good, under the token that sealed it. It keeps its floor and its
    /// steps, which answer what comes late.
    ///
    /// # Errors
    /// [`FenceError`] where the database gave no verdict; nothing was changed then.
    pub fn retire(&self, token: Token) -> Result<RetireVerdict, FenceError> {
        let insert = "INSERT INTO leasehold_retire(resource, token) VALUES (?, ?)";
        let decided = self.decide(insert, params![self.name, token.to_string()])?;
        let Some(Decided { before, guard }) = decided else { return Ok(RetireVerdict::NoResource) };
        let floor = before.floor;
        Ok(match guard {
            Ok(()) if before.retired => RetireVerdict::AlreadyRetired,
            Ok(()) => RetireVerdict::Retired,
            Err(error) => match refusal(&error) {
                Some("NotSealed") => RetireVerdict::NotSealed { floor },
                Some("ForeignLineage") => RetireVerdict::ForeignLineage,
                Some("Gone") => RetireVerdict::Gone { floor },
                Some("Fenced") => RetireVerdict::Fenced { floor },
                Some("Collision") => RetireVerdict::Collision { floor },
                _ => return Err(self.failed(&error)),
            },
        })
    }

    /// What the database keeps; none: the resource was never created.
    ///
    /// # Errors
    /// [`FenceError`].
    pub fn state(&self) -> Result<Option<ResourceState>, FenceError> {
        let mut connection = self.connect()?;
        // One transaction, so that the version is that of the row.
        let transaction = connection.transaction().map_err(|error| self.failed(&error))?;
        self.read(&transaction)
    }

    /// Puts one row into a verb of the guard, in a transaction that is committed where the guard
    /// allows it. None: there is no such resource.
    fn decide(
        &self,
        insert: &str,
        parameters: &[&dyn ToSql],
    ) -> Result<Option<Decided>, FenceError> {
        let mut connection = self.connect()?;
        let transaction = self.begin(&mut connection)?;
        let Some(before) = self.read(&transaction)? else { return Ok(None) };
        let guard = transaction.execute(insert, parameters).map(drop);
        if guard.is_ok() {
            transaction.commit().map_err(|error| self.failed(&error))?;
        }
        Ok(Some(Decided { before, guard }))
    }

    fn read(&self, connection: &Connection) -> Result<Option<ResourceState>, FenceError> {
        self.suits(connection)?;
        let select = "SELECT floor, token, seq, retired FROM leasehold_floor WHERE resource = ?";
        let row = connection
            .query_row(select, [&self.name], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get(3)?,
                ))
            })
            .optional()
            .map_err(|error| self.failed(&error))?;
        Ok(row.map(|(floor, token, seq, retired)| ResourceState {
            floor: floor.unsigned_abs(),
            token: token.parse().ok(),
            seq: seq.unsigned_abs(),
            retired,
        }))
    }

    /// A newer fence obeys rules that this code does not know.
    fn suits(&self, connection: &Connection) -> Result<(), FenceError> {
        let version = Part::of(connection, "fence").map_err(|error| self.failed(&error))?;
        version
            .suits(VERSION)
            .map_err(|why| FenceError::Misuse(format!("the fence of {} {why}", self.store)))
    }

    /// The database has to be there: a fence in a file that was created by mistake guards nothing.
    /// And it has to have one name: a seal in the log of another name binds no writer.
    fn connect(&self) -> Result<Connection, FenceError> {
        let path = self.path()?;
        let unreachable = |error: &io::Error| FenceError::Database(explain_io(&self.store, error));
        match fs::canonicalize(&path) {
            Ok(canonical) if canonical.is_file() => {
                if let Some(why) = second_name(&canonical).map_err(|error| unreachable(&error))? {
                    return Err(FenceError::Misuse(format!("{} {why}", self.store)));
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unreachable(&error));
            }
            _ => {
                return Err(FenceError::Misuse(format!(
                    "{} is no database file: create the database that is to be fenced first",
                    path.display()
                )));
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&path, flags).map_err(|error| self.failed(&error))?;
        connection.busy_timeout(BUSY).map_err(|error| self.failed(&error))?;
        Ok(connection)
    }

    fn begin<'a>(&self, connection: &'a mut Connection) -> Result<Transaction<'a>, FenceError> {
        connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| self.failed(&error))
    }

    fn path(&self) -> Result<PathBuf, FenceError> {
        store::sqlite_path(&self.store).map_err(|error| FenceError::Misuse(error.to_string()))
    }

    fn failed(&self, error: &rusqlite::Error) -> FenceError {
        if error.to_string().contains("no such table: leasehold_") {
            return FenceError::Misuse(format!(
                "{} has no fence yet: run `leasehold fence init {} {}`",
                self.store, self.store, self.name
            ));
        }
        let why = explain(&self.store, error, BUSY);
        match code(error) {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
                FenceError::Misuse(why)
            }
            _ => FenceError::Database(why),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.store, self.name)
    }
}

/// What a verb found, and what the guard said to it.
struct Decided {
    before: ResourceState,
    guard: rusqlite::Result<()>,
}

/// The verdict's name in a guard's error.
fn refusal(error: &rusqlite::Error) -> Option<&str> {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.strip_prefix(MESSAGE_PREFIX),
        _ => None,
    }
}

/// Why the fence gave no verdict; each text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceError {
    /// The caller's mistake: nothing there, or no fence in it.
    Misuse(String),
    /// The database's own words.
    Database(String),
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Misuse(why) | Self::Database(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for FenceError {}
