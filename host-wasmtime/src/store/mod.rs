//! Where lease records are kept: the contract of a store, and the stores that come with the crate.
//!
//! A store knows two operations, [`Store::read`] and the conditional [`Store::transact`], and says
//! through [`Capabilities`] what it vouches for. It knows nothing of leases: keys and values are
//! what the machines make of them. [`Store::list`] is for people who look at it.

mod finding;
mod memory;
mod probe;
pub(crate) mod sqlite;
mod url;

use std::fmt;
use std::future::ready;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

pub use finding::{Finding, Outcome};
use leasehold_core::lease::Authority;
pub use leasehold_core::store::Version;
pub use memory::Memory;
pub use probe::{Report, Verdict, probe};
pub use sqlite::{Options as SqliteOptions, Sqlite};

/// An answer on its way. Dropping it cancels nothing: what was asked may still be applied.
pub type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A place that keeps values under keys, with conditional writes.
///
/// A request leaves, at the earliest, when the method is called: whoever needs a time before that
/// samples its clock before the call. Neither method blocks. A store never resends a write.
pub trait Store: Send + Sync + 'static {
    /// What this store vouches for. Fixed for the life of the value.
    fn capabilities(&self) -> Capabilities;

    /// Reads one key. Linearizable where the store says so.
    fn read(&self, key: &str) -> Answer<Read>;

    /// Writes all of `writes` if all of `checks` hold, else nothing, as one atomic step. A key that
    /// is written without a check is written whatever it holds.
    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact>;

    /// The keys that begin with `prefix`, in the order of their bytes. For people who look at a
    /// store: no lease is decided by it, so that a store need not be able to.
    fn list(&self, prefix: &str) -> Answer<List> {
        let _ = prefix;
        Box::pin(ready(List::Unsupported))
    }

    /// What the store's engine knows about itself, for [`probe`]. Nothing is written.
    fn inspect(&self) -> Answer<Vec<Finding>> {
        Box::pin(ready(Vec::new()))
    }
}

/// What a store vouches for; whatever needs more is refused at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Reads and writes are linearizable, and an applied write is durable.
    pub linearizable: bool,
    /// One transaction may check and write several keys.
    pub multi_key: bool,
    /// The store tells an entry's age by a clock of its own, with at most this error, in
    /// nanoseconds.
    pub store_clock_error_ns: Option<u64>,
    /// The store tells of changes without being asked.
    pub watch: bool,
}

impl Capabilities {
    /// Whose word decides that a lease in such a store is over.
    #[must_use]
    pub fn authority(&self) -> Authority {
        match self.store_clock_error_ns {
            Some(error_ns) => Authority::StoreClock { error_ns },
            None => Authority::LocalObservation,
        }
    }
}

/// What a read found. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// There is no such key.
    Absent,
    /// What the key holds.
    Entry {
        /// The bytes, exactly as they are kept.
        value: Vec<u8>,
        /// What a conditional write has to name.
        version: Version,
        /// Time since the write, in nanoseconds, by the store's own clock and rounded down;
        /// `u64::MAX` where the store knows that the writer is dead; none where it cannot tell.
        age_ns: Option<u64>,
    },
    /// The store could not be asked.
    Unavailable(String),
    /// The answer was lost.
    Unknown(String),
    /// The store that was opened is there no more, or is no longer whole. What stands in its place
    /// proves nothing.
    Gone(String),
}

/// What a listing found. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// The keys, in the order of their bytes.
    Keys(Vec<String>),
    /// This store cannot list its keys.
    Unsupported,
    /// The store could not be asked, or its answer was lost.
    Unavailable(String),
    /// The store that was opened is there no more, or is no longer whole.
    Gone(String),
}

/// What one key has to be for a transaction to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The key.
    pub key: String,
    /// What it has to be.
    pub expect: Expect,
}

/// The state that a [`Check`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such key.
    Absent,
    /// The key is at this version.
    Version(Version),
}

/// A new value for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The bytes to keep: UTF-8. A value that differs from every earlier value of the key, so that
    /// it may serve as the version.
    pub value: Vec<u8>,
}

/// How a transaction ended. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transact {
    /// Applied, and durable: the new versions, one a write, in their order.
    Applied(Vec<Version>),
    /// A check failed; nothing was written.
    Conflict,
    /// Not applied; ask again.
    Undecided(String),
    /// Not applied, and never will be: nothing of it was handed to the store, or all was undone.
    Unavailable(String),
    /// May be applied, or may still be applied.
    Unknown(String),
    /// The store that was opened is there no more, or is no longer whole. Whatever was written to
    /// it counts for nobody.
    Gone(String),
}

/// Opens the store that `url` names; blocks for as long as the opening takes, at most a few seconds.
///
/// - `sqlite:PATH`, also `sqlite:///ABSOLUTE/PATH`: a file on this machine, see [`Sqlite`]. `%XX` is
///   decoded. `?unsafe-filesystem` accepts a network or FUSE file system.
/// - `/PATH`, `./PATH`, `../PATH`: the same, the path taken literally. A name without a slash in
///   front needs the scheme.
///
/// # Errors
/// [`OpenError`] says whose fault it is and what to do. Nothing is ever deleted or overwritten to
/// recover.
pub fn open(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    let url::Location { path, options } = url::parse(url)?;
    Ok(Arc::new(Sqlite::open(&path, options)?))
}

/// What is where `url` names a store. Nothing is created or changed, as [`open`] would do.
///
/// # Errors
/// [`OpenError`], for what [`open`] would not open either.
pub fn find(url: &str) -> Result<Found, OpenError> {
    let url::Location { path, options } = url::parse(url)?;
    Sqlite::find(&path, options)
}

/// What is where a store may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet: [`open`] creates a store.
    Nothing,
    /// A database of something else: [`open`] adds a store's tables to it.
    Other,
    /// A store.
    Store,
}

/// The same store by a name that leads to it from every working directory.
///
/// # Errors
/// [`OpenError::Url`], also where the working directory's own name is not UTF-8;
/// [`OpenError::Unreachable`] where there is no working directory any more.
pub fn absolute(url: &str) -> Result<String, OpenError> {
    url::absolute(url)
}

/// The file that a `sqlite:` URL or a path names, read as [`open`] reads it.
///
/// # Errors
/// [`OpenError::Url`].
pub fn sqlite_path(url: &str) -> Result<PathBuf, OpenError> {
    Ok(url::parse(url)?.path)
}

/// Why a store could not be opened. Each text says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The URL names no store.
    Url(String),
    /// What is there must not be used as a store.
    Refused(String),
    /// The directory that the file is to be in is not there, or what a link leads to.
    Missing(String),
    /// The store cannot be reached at present, or not by this user.
    Unreachable(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) | Self::Refused(why) | Self::Missing(why) | Self::Unreachable(why) => {
                f.write_str(why)
            }
        }
    }
}

impl std::error::Error for OpenError {}
