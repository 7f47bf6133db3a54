//! Questions to a store under probe, and what its answers mean for a trial.

use crate::store::{Check, Expect, Read, Store, Transact, Version, Write};

/// Why a trial came to no good end.
pub(super) enum Stop {
    /// What the store did.
    Broken(String),
    /// What is missing, and what follows.
    Warning(&'static str, &'static str),
    /// Why it was not tried.
    NotTried(&'static str),
    /// The store is there no more.
    Gone(String),
    /// The store could not be asked.
    Ended(String),
}

/// How often the store is asked for what it surely did not do.
pub(super) const PATIENCE: u32 = 10;

/// What a key holds.
pub(super) struct Entry {
    pub(super) value: Vec<u8>,
    pub(super) version: Version,
    pub(super) age_ns: Option<u64>,
}

impl Entry {
    /// Its age aside, which goes on.
    pub(super) fn is_at(&self, version: Version, value: &[u8]) -> bool {
        self.version == version && self.value == value
    }
}

/// How one of two racing writes ended.
pub(super) enum Race {
    Won(Version),
    Lost,
    /// The store did not get to it.
    Missed(String),
}

pub(super) fn applied(outcome: Transact) -> Result<Race, Stop> {
    match outcome {
        Transact::Applied(versions) => sole(versions).map(|[version]| Race::Won(version)),
        Transact::Conflict => Ok(Race::Lost),
        Transact::Undecided(why) | Transact::Unavailable(why) => Ok(Race::Missed(why)),
        Transact::Unknown(why) => Err(Stop::Ended(why)),
        Transact::Gone(why) => Err(Stop::Gone(why)),
    }
}

/// The new versions; none: it was refused. What was surely not applied is asked for again.
pub(super) async fn transact<const N: usize>(
    through: &dyn Store,
    checks: &[Check],
    writes: &[Write],
) -> Result<Option<[Version; N]>, Stop> {
    let mut asked = 0;
    loop {
        asked += 1;
        match through.transact(checks.to_vec(), writes.to_vec()).await {
            Transact::Applied(versions) => return sole(versions).map(Some),
            Transact::Conflict => return Ok(None),
            Transact::Undecided(_) | Transact::Unavailable(_) if asked < PATIENCE => {}
            Transact::Undecided(why) | Transact::Unavailable(why) | Transact::Unknown(why) => {
                return Err(Stop::Ended(why));
            }
            Transact::Gone(why) => return Err(Stop::Gone(why)),
        }
    }
}

/// One version for each write.
fn sole<const N: usize>(versions: Vec<Version>) -> Result<[Version; N], Stop> {
    versions.try_into().map_err(|versions: Vec<Version>| {
        Stop::Broken(format!("the store gave {} versions for {N} writes", versions.len()))
    })
}

pub(super) async fn read(through: &dyn Store, key: &str) -> Result<Option<Entry>, Stop> {
    let mut asked = 0;
    loop {
        asked += 1;
        match through.read(key).await {
            Read::Absent => return Ok(None),
            Read::Entry { value, version, age_ns } => {
                return Ok(Some(Entry { value, version, age_ns }));
            }
            Read::Unavailable(_) if asked < PATIENCE => {}
            Read::Unavailable(why) | Read::Unknown(why) => return Err(Stop::Ended(why)),
            Read::Gone(why) => return Err(Stop::Gone(why)),
        }
    }
}

/// A key that was written before.
pub(super) async fn entry(through: &dyn Store, key: &str) -> Result<Entry, Stop> {
    match read(through, key).await? {
        Some(entry) => Ok(entry),
        None => broken("a key that was written is absent"),
    }
}

/// What a write of `key` has to expect.
pub(super) async fn present(through: &dyn Store, key: &str) -> Result<Expect, Stop> {
    let found = read(through, key).await?;
    Ok(found.map_or(Expect::Absent, |entry| Expect::Version(entry.version)))
}

pub(super) fn check(key: &str, expect: Expect) -> Check {
    Check { key: key.to_owned(), expect }
}

pub(super) fn write(key: &str, value: &[u8]) -> Write {
    Write { key: key.to_owned(), value: value.to_vec() }
}

pub(super) fn ensure(holds: bool, otherwise: impl ToString) -> Result<(), Stop> {
    if holds { Ok(()) } else { broken(otherwise) }
}

pub(super) fn broken<T>(saw: impl ToString) -> Result<T, Stop> {
    Err(Stop::Broken(saw.to_string()))
}
