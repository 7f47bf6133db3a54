//! What a SQLite store refuses to open, what it says, and that it leaves it as it was.
//! On Linux, the only system with the boot clock and with namespaces.
#![cfg(target_os = "linux")]

mod store_support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use leasehold_host::store::{self, Expect, Found, OpenError, Sqlite, SqliteOptions};
use store_support::{beside, by_hand, directory, must_put, must_read, open, respect_permissions};
use tempfile::TempDir;

#[test]
fn a_missing_directory_is_named_and_not_created() {
    let directory = directory();
    let path = directory.path().join("no/such/leases.db");
    assert_missing(&path, "no/such does not exist; create it");
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
    symlink(directory.path().join("nowhere.db"), &link).unwrap();
    assert_missing(&link, "nowhere.db, and nothing is there; remove the link");
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
fn an_older_schema_than_the_first_is_refused() {
    let directory = directory();
    let zero = directory.path().join("zero.db");
    by_hand(&zero)
        .execute_batch("CREATE TABLE leasehold_schema (part, version); INSERT INTO leasehold_schema VALUES ('kv', 0)")
        .unwrap();
    assert_refused(&zero, "impossible schema version 0");
}

#[test]
fn a_schema_version_that_is_no_number_is_refused() {
    for version in ["'one'", "NULL", "1.5", "x'31'", "CAST(x'ff' AS TEXT)"] {
        assert_left_alone(
            &format!(
                "CREATE TABLE leasehold_schema (part, version);
                 INSERT INTO leasehold_schema VALUES ('kv', {version});"
            ),
            "has a schema version that is no whole number; restore leasehold_schema",
        );
    }
}

#[test]
fn what_others_keep_under_the_names_of_the_tables_is_left_alone() {
    let no_table = "has no table leasehold_kv to use";
    assert_left_alone("CREATE TABLE leasehold_kv (k, v)", no_table);
    assert_left_alone("CREATE TABLE LEASEHOLD_KV (k, v)", no_table);
    assert_left_alone(
        "CREATE VIEW leasehold_kv AS SELECT 1 AS key, 2 AS value, 3 AS written, 4 AS boot",
        no_table,
    );
    assert_left_alone("CREATE TABLE t (x); CREATE INDEX leasehold_kv ON t (x)", no_table);
    assert_left_alone(
        "CREATE TABLE leasehold_schema (part, version); INSERT INTO leasehold_schema VALUES ('kv', 1)",
        no_table,
    );
    assert_left_alone(
        "CREATE TABLE leasehold_schema (name)",
        "has tables that are not as leasehold makes them",
    );
}

#[test]
fn a_file_with_a_second_name_is_refused_by_either_and_open_again_without_it() {
    let directory = directory();
    let (one, other) = (directory.path().join("one.db"), directory.path().join("other.db"));
    drop(open(&one).unwrap());
    fs::hard_link(&one, &other).unwrap();
    let link = directory.path().join("link.db");
    symlink(&other, &link).unwrap();
    for name in [&one, &other, &link] {
        assert_refused(name, "has a second name (hard link)");
        assert!(matches!(Sqlite::find(name, SqliteOptions::default()), Err(OpenError::Refused(_))));
    }
    assert!(!beside(&other, "-wal").exists());
    fs::remove_file(&one).unwrap();
    open(&other).unwrap();
}

#[test]
fn links_and_mounts_of_directories_and_links_to_the_file_lead_to_one_store() {
    const NAME: &str = "links_and_mounts_of_directories_and_links_to_the_file_lead_to_one_store";
    let Some(directory) =
        in_mounts(NAME, "mkdir \"$0/x\" \"$0/m\" && mount --bind \"$0/x\" \"$0/m\"")
    else {
        return;
    };
    symlink(directory.join("x"), directory.join("d")).unwrap();
    symlink("x/leases.db", directory.join("leases.db")).unwrap();
    let stores = ["x/leases.db", "m/leases.db", "d/leases.db", "leases.db"]
        .map(|name| open(&directory.join(name)).unwrap());
    must_put(&stores[0], "lease/a", Expect::Absent, "1");
    for store in &stores {
        assert_eq!(must_read(store, "lease/a").0, "1");
    }
}

/// As `docker run -v ./leases.db:/x/leases.db` does it.
#[test]
fn a_file_that_is_mounted_by_itself_is_refused() {
    const NAME: &str = "a_file_that_is_mounted_by_itself_is_refused";
    let Some(directory) =
        in_mounts(NAME, "cd \"$0\" && touch leases.db other.db && mount --bind leases.db other.db")
    else {
        return;
    };
    let (leases, other) = (directory.join("leases.db"), directory.join("other.db"));
    let store = open(&leases).unwrap();
    must_put(&store, "lease/a", Expect::Absent, "1");
    symlink("other.db", directory.join("link.db")).unwrap();
    for name in [&other, &directory.join("link.db")] {
        assert_refused(name, "is mounted as a single file");
    }
    assert!(!beside(&other, "-wal").exists());
    assert_eq!(must_read(&store, "lease/a").0, "1");
}

#[test]
fn to_ask_what_is_there_creates_and_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    let url = path.display().to_string();
    assert_eq!(store::find(&url), Ok(Found::Nothing));
    assert!(matches!(store::find("./no/such/leases.db"), Err(OpenError::Missing(_))));
    assert!(!path.exists());

    fs::write(&path, b"").unwrap();
    assert_eq!(store::find(&url), Ok(Found::Nothing));
    by_hand(&path).execute_batch("CREATE TABLE payment (id)").unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(store::find(&url), Ok(Found::Other));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let store = open(&path).unwrap();
    assert_eq!(store::find(&url), Ok(Found::Store));
    must_put(&store, "lease/a", Expect::Absent, "1");
    drop(store);
    assert_eq!(store::find(&url), Ok(Found::Store));
    fs::write(&path, b"name,term\n".repeat(100)).unwrap();
    assert!(matches!(store::find(&url), Err(OpenError::Refused(_))));
    assert!(matches!(store::find("memory:"), Err(OpenError::Url(_))));
}

/// The test runs itself in a directory with such a name.
#[test]
fn a_working_directory_whose_name_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStrExt;
    const NAME: &str = "a_working_directory_whose_name_is_not_utf8_is_named";
    if std::env::var_os("LEASEHOLD_TEST_CHILD").is_some() {
        for url in ["sqlite:leases.db", "./leases.db"] {
            let why = store::absolute(url).unwrap_err().to_string();
            assert!(why.contains("is not UTF-8"), "{why}");
        }
        assert_eq!(store::absolute("/x/leases.db").unwrap(), "/x/leases.db");
        return;
    }
    let directory = directory();
    let odd = directory.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&odd).unwrap();
    succeed(itself(NAME).current_dir(odd).env("LEASEHOLD_TEST_CHILD", "1"));
}

/// The test runs itself with as few descriptors as may be, and gives one more at a time.
#[test]
fn too_many_open_files_are_never_taken_for_missing_permission() {
    const NAME: &str = "too_many_open_files_are_never_taken_for_missing_permission";
    if let Some(path) = std::env::var_os("LEASEHOLD_TEST_STORE") {
        let mut kept = Vec::new();
        while let Ok(file) = fs::File::open("/") {
            kept.push(file);
        }
        let mut refusals = 0;
        loop {
            match Sqlite::open(path.as_ref(), SqliteOptions::default()) {
                Ok(_) => break,
                Err(error) => {
                    let why = error.to_string();
                    assert!(why.contains("too many files are open"), "{why}");
                    refusals += 1;
                }
            }
            kept.pop().unwrap();
        }
        assert!(refusals > 0);
        return;
    }
    let directory = directory();
    let mut child = Command::new("sh");
    child.args(["-c", "ulimit -n 40; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", NAME]).env("LEASEHOLD_TEST_STORE", directory.path().join("leases.db"));
    succeed(&mut child);
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
    assert_unreachable(&path, "stayed locked by another connection for 5000 ms; end the long");
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

/// This test alone, as another process.
fn itself(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]);
    command
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Runs the test `name` again in a mount namespace, once `script` has run on a directory of its
/// own. That directory, to the inner run.
fn in_mounts(name: &str, script: &str) -> Option<PathBuf> {
    if let Some(directory) = std::env::var_os("LEASEHOLD_TEST_MOUNTS") {
        return Some(directory.into());
    }
    let directory = directory();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &format!("{script} && exec \"$@\"")]);
    command.arg(directory.path()).arg(std::env::current_exe().unwrap()).args(["--exact", name]);
    succeed(command.env("LEASEHOLD_TEST_MOUNTS", directory.path()));
    None
}

/// A database made by `sql` is refused, and every byte of it stays.
fn assert_left_alone(sql: &str, expected: &str) {
    let directory = directory();
    let path = directory.path().join("leases.db");
    by_hand(&path).execute_batch(sql).unwrap();
    let before = fs::read(&path).unwrap();
    assert_refused(&path, expected);
    assert!(fs::read(&path).unwrap() == before, "{sql}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{sql}");
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

fn assert_missing(path: &Path, expected: &str) {
    match open(path) {
        Err(OpenError::Missing(why)) => assert!(why.contains(expected), "{why}"),
        other => panic!("{other:?}"),
    }
}
