//! What a SQLite store refuses to open, what it says, and that it leaves it as it was.
//! On Linux, the only system with the boot clock and with namespaces.
#![cfg(target_os = "linux")]

mod store_support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use leasehold_host::store::{self, OpenError};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use store_support::{beside, by_hand, directory, open};
use tempfile::TempDir;

#[test]
fn a_missing_directory_is_named_and_not_created() {
    let directory = directory();
    let path = directory.path().join("no/such/leases.db");
    assert_unreachable(&path, "no/such does not exist; create it");
    assert!(!directory.path().join("no").exists());
}

#[test]
fn a_path_through_a_file_is_unreachable() {
    let (_directory, path) = file(b"");
    assert_unreachable(&path.join("leases.db"), "Not a directory");
}

#[test]
fn a_directory_a_device_and_a_dangling_link_are_no_stores() {
    let directory = directory();
    assert_refused(directory.path(), "is a directory; name a file in it");
    assert_refused(Path::new("/dev/null"), "is no regular file");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(directory.path().join("nowhere.db"), &link).unwrap();
    assert_unreachable(&link, "link.db cannot be opened");
    assert!(!directory.path().join("nowhere.db").exists());
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let text = b"name,term\nsettlement,7\n".repeat(100);
    let (_directory, path) = file(&text);
    assert_refused(&path, "is no SQLite database, and was left as it is");
    assert_eq!(fs::read(&path).unwrap(), text);
}

#[test]
fn a_damaged_database_is_left_as_it_is() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    by_hand(&path).execute_batch("CREATE TABLE t (x)").unwrap();
    let mut damaged = fs::read(&path).unwrap();
    damaged[100..].fill(0xA5);
    fs::write(&path, &damaged).unwrap();
    assert_refused(&path, "is damaged");
    assert_eq!(fs::read(&path).unwrap(), damaged);
}

#[test]
fn a_newer_schema_is_left_as_it_is() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    by_hand(&path)
        .execute_batch(
            "CREATE TABLE leasehold_schema (part TEXT PRIMARY KEY, version INTEGER);
             INSERT INTO leasehold_schema VALUES ('kv', 2);",
        )
        .unwrap();
    let before = fs::read(&path).unwrap();
    assert_refused(
        &path,
        "was written by a newer leasehold (schema 2, this one knows 1); update this program",
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!beside(&path, "-wal").exists());
}

#[test]
fn an_older_schema_than_the_first_and_a_foreign_table_are_refused() {
    let directory = directory();
    let zero = directory.path().join("zero.db");
    by_hand(&zero)
        .execute_batch("CREATE TABLE leasehold_schema (part, version); INSERT INTO leasehold_schema VALUES ('kv', 0)")
        .unwrap();
    assert_refused(&zero, "impossible schema version 0");
    let foreign = directory.path().join("foreign.db");
    by_hand(&foreign).execute_batch("CREATE TABLE leasehold_kv (k, v)").unwrap();
    assert_refused(&foreign, "has no table leasehold_kv to use");
}

#[test]
fn a_file_and_a_directory_without_write_permission_are_named() {
    use std::os::unix::fs::PermissionsExt;
    respect_permissions();
    let directory = directory();
    let path = directory.path().join("leases.db");
    by_hand(&path).execute_batch("CREATE TABLE t (x)").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert_unreachable(&path, "is read-only for this user; give write permission on it");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o500)).unwrap();
    assert_unreachable(
        &path,
        "give this user write permission on it, its -wal and -shm, and its directory",
    );
    assert_unreachable(&directory.path().join("new.db"), "Permission denied");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_file_that_another_program_keeps_locked_is_unreachable() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    let program = by_hand(&path);
    program.execute_batch("CREATE TABLE t (x); BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    assert_unreachable(&path, "stayed locked by another program");
    assert!((5..8).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    program.execute_batch("COMMIT").unwrap();
    open(&path).unwrap();
}

/// By a bind mount, as in systemd-nspawn and LXC. The test runs itself in a mount namespace.
#[test]
fn in_a_container_with_a_boot_id_of_its_own_there_is_no_store_clock() {
    use leasehold_host::store::Store;
    const NAME: &str = "in_a_container_with_a_boot_id_of_its_own_there_is_no_store_clock";
    let directory = directory();
    if std::env::var_os("LEASEHOLD_TEST_CONTAINER").is_some() {
        let store = open(&directory.path().join("leases.db")).unwrap();
        assert_eq!(store.capabilities().store_clock_error_ns, None);
        return;
    }
    let forged = directory.path().join("boot_id");
    fs::write(&forged, "00000000-1111-4222-8333-444444444444\n").unwrap();
    let script = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .args([forged.as_os_str(), std::env::current_exe().unwrap().as_os_str()])
        .args(["--exact", NAME])
        .env("LEASEHOLD_TEST_CONTAINER", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_url_and_a_path_lead_to_the_same_refusals() {
    let refusal = |url: &str| store::open(url).err().map(|error| error.to_string());
    assert_eq!(refusal("sqlite:/no/such/leases.db"), refusal("/no/such/leases.db"));
    assert!(matches!(store::open("memory:"), Err(OpenError::Url(_))));
}

fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = directory();
    let path = directory.path().join("leases.db");
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn assert_refused(path: &Path, expected: &str) {
    match open(path) {
        Err(OpenError::Refused(why)) => assert!(why.contains(expected), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn assert_unreachable(path: &Path, expected: &str) {
    match open(path) {
        Err(OpenError::Unreachable(why)) => assert!(why.contains(expected), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Permissions bind the superuser too, on this thread, once it has laid down its privileges.
fn respect_permissions() {
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).unwrap();
}
