//! Whether the files that SQLite holds open are still the ones that others find.
//!
//! SQLite writes on into a file that was deleted or replaced, and reports success, while whoever
//! opens the path next starts a history of its own: two holders. The same goes for the log and the
//! lock memory beside it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::database::Trouble;
use super::names::second_link;

/// The database's file and SQLite's two files beside it, as they were when it was opened.
#[derive(Debug)]
pub(super) struct Files {
    /// The first is the database, under the name that was asked for.
    known: [(PathBuf, Identity); 3],
}

impl Files {
    /// The files of the database at `path`, which SQLite has open under the name `canonical`. The
    /// log and the lock memory exist from the first transaction to the close of the last connection.
    pub(super) fn of(path: &Path, canonical: &Path) -> io::Result<Self> {
        let beside = |suffix: &str| {
            let mut name = canonical.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let known = |path: PathBuf| Identity::at(&path).map(|identity| (path, identity));
        Ok(Self {
            known: [known(path.to_owned())?, known(beside("-wal"))?, known(beside("-shm"))?],
        })
    }

    /// The database, under the name that was asked for.
    pub(super) fn path(&self) -> &Path {
        let [(path, _), ..] = &self.known;
        path
    }

    /// Which file the database is.
    pub(super) fn database(&self) -> Identity {
        let [(_, identity), ..] = self.known;
        identity
    }

    /// Fails unless every path still leads to the file that is open, and the database holds anything
    /// and has no second name. Such a name is an obstacle that may go away, not a loss.
    pub(super) fn verify(&self) -> Result<(), Trouble> {
        let [database, log, locks] = &self.known;
        let metadata = examine(database)?;
        if metadata.len() == 0 {
            return Err(gone(self.path(), "was emptied"));
        }
        if let Some(why) = second_link(&metadata) {
            return Err(Trouble::Unavailable(format!("{} {why}", self.path().display())));
        }
        examine(log)?;
        examine(locks)?;
        Ok(())
    }
}

fn examine((path, known): &(PathBuf, Identity)) -> Result<Metadata, Trouble> {
    let metadata = fs::metadata(path).map_err(|error| missing(path, &error))?;
    if Identity::of(&metadata) == *known { Ok(metadata) } else { Err(gone(path, "was replaced")) }
}

fn missing(path: &Path, error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            gone(path, "was deleted or moved")
        }
        _ => Trouble::Unavailable(format!("{} cannot be examined: {error}", path.display())),
    }
}

fn gone(path: &Path, what: &str) -> Trouble {
    Trouble::Gone(format!(
        "{} {what} while it was in use, so its leases count no more; stop whoever uses it, then start anew",
        path.display()
    ))
}

/// Device and inode of a file. While SQLite has the file open, no other file gets the same pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity([u64; 2]);

impl Identity {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self([metadata.dev(), metadata.ino()])
    }

    /// Windows neither deletes nor replaces a file that SQLite has open.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self([0; 2])
    }
}
