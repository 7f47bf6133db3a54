//! What the store tests share: synchronous verbs over a [`Store`].
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_host::store::{
    Answer, Check, Expect, OpenError, Read, Sqlite, SqliteOptions, Store, Transact, Version, Write,
};
use tempfile::TempDir;

pub(crate) fn wait<T>(answer: Answer<T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

pub(crate) fn check(key: &str, expect: Expect) -> Check {
    Check { key: key.to_owned(), expect }
}

pub(crate) fn write(key: &str, value: &str) -> Write {
    Write { key: key.to_owned(), value: value.as_bytes().to_vec() }
}

/// One conditional write of one key.
pub(crate) fn put(store: &dyn Store, key: &str, expect: Expect, value: &str) -> Transact {
    wait(store.transact(vec![check(key, expect)], vec![write(key, value)]))
}

/// The version after a write that has to succeed.
pub(crate) fn must_put(store: &dyn Store, key: &str, expect: Expect, value: &str) -> Version {
    match put(store, key, expect, value) {
        Transact::Applied(versions) => versions[0],
        other => panic!("{key}: {other:?}"),
    }
}

pub(crate) fn read(store: &dyn Store, key: &str) -> Read {
    wait(store.read(key))
}

/// Value and version of a key that has to be there.
pub(crate) fn must_read(store: &dyn Store, key: &str) -> (String, Version) {
    match read(store, key) {
        Read::Entry { value, version, .. } => (String::from_utf8(value).unwrap(), version),
        other => panic!("{key}: {other:?}"),
    }
}

/// A directory in the build's own folder: on a disk, which the system's temporary one may not be.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Opens with a long wait for locks: the machine may be busy with other tests.
pub(crate) fn open(path: &Path) -> Result<Sqlite, OpenError> {
    Sqlite::open(path, SqliteOptions { busy: Duration::from_secs(5), ..Default::default() })
}

/// An open store in a directory of its own.
pub(crate) struct Fixture {
    pub(crate) store: Sqlite,
    pub(crate) path: PathBuf,
    pub(crate) directory: TempDir,
}

pub(crate) fn fixture() -> Fixture {
    let directory = directory();
    let path = directory.path().join("leases.db");
    Fixture { store: open(&path).unwrap(), path, directory }
}

/// Another connection, as another program would have it.
pub(crate) fn by_hand(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// The path of one of SQLite's files beside the database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Permissions bind the superuser too, on this thread, once it has laid down its privileges.
#[cfg(target_os = "linux")]
pub(crate) fn respect_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).unwrap();
}
