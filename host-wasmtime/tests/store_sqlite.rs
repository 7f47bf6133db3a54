//! A SQLite store in good health: what it keeps, how old it says that is, whom it lets in.
//! On Linux, the only system with the boot clock and with namespaces.
#![cfg(target_os = "linux")]

mod store_support;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use leasehold_host::store::{self, Expect, Read, Sqlite, SqliteOptions, Store, Transact, Write};
use store_support::{
    Fixture, beside, by_hand, check, directory, fixture, must_put, must_read, open, put, read,
    wait, write,
};

#[test]
fn a_url_opens_the_file_that_it_names() {
    let directory = directory();
    let path = directory.path().join("leases of mine.db");
    let url = format!("sqlite:{}", path.display().to_string().replace(' ', "%20"));
    must_put(&*store::open(&url).unwrap(), "lease/a", Expect::Absent, "1");
    assert_eq!(must_read(&open(&path).unwrap(), "lease/a").0, "1");
}

#[test]
fn a_new_store_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = fixture();
    for suffix in ["", "-wal", "-shm"] {
        let mode = fs::metadata(beside(&fixture.path, suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
}

#[test]
fn a_store_vouches_for_its_clock_on_linux() {
    let capabilities = fixture().store.capabilities();
    assert!(capabilities.linearizable && capabilities.multi_key && !capabilities.watch);
    assert_eq!(capabilities.store_clock_error_ns, Some(1_000_000));
}

#[test]
fn an_entry_grows_older_from_its_write_and_younger_by_the_next() {
    let fixture = fixture();
    let version = must_put(&fixture.store, "lease/a", Expect::Absent, "1");
    thread::sleep(Duration::from_millis(60));
    let other = open(&fixture.path).unwrap();
    let aged = age(&other, "lease/a").unwrap();
    assert!((58_000_000..10_000_000_000).contains(&aged), "{aged} ns");
    must_put(&fixture.store, "lease/a", Expect::Version(version), "2");
    assert!(age(&other, "lease/a").unwrap() < aged);
}

#[test]
fn the_writer_of_an_entry_of_another_boot_is_dead() {
    let fixture = fixture();
    let (here, _) = stamped(&fixture, |boot| {
        format!("00000000-1111-4222-8333-444444444444/{}", namespace(boot))
    });
    assert_eq!(here, if on_tmpfs(&fixture.path) { None } else { Some(u64::MAX) });
}

#[test]
fn an_entry_of_another_time_namespace_or_of_an_unknown_boot_has_no_age() {
    let fixture = fixture();
    let (age, boot) = stamped(&fixture, |boot| boot.replace("time:[", "time:[9"));
    assert_eq!((age, boot.is_empty()), (None, false));
    assert_eq!(stamped(&fixture, |_| String::new()).0, None);
    assert_eq!(stamped(&fixture, |_| "yesterday".to_owned()).0, None);
}

#[test]
fn a_value_edited_by_hand_comes_back_as_its_bytes_and_under_another_version() {
    let fixture = fixture();
    let version = must_put(&fixture.store, "lease/a", Expect::Absent, "mine");
    for (sql, bytes) in [
        ("'yours '", &b"yours "[..]),
        ("CAST(x'ff00c3' AS TEXT)", &[0xFF, 0, 0xC3]),
        ("''", b""),
        ("42", b"42"),
    ] {
        by_hand(&fixture.path)
            .execute(&format!("UPDATE leasehold_kv SET value = {sql}"), [])
            .unwrap();
        let Read::Entry { value, version: edited, .. } = read(&fixture.store, "lease/a") else {
            panic!("{sql}")
        };
        assert_eq!(value, bytes);
        assert_eq!(
            put(&fixture.store, "lease/a", Expect::Version(version), "mine again"),
            Transact::Conflict
        );
        must_put(&fixture.store, "lease/b", Expect::Absent, "a base");
        assert_eq!(
            put(&fixture.store, "lease/b", Expect::Version(edited), "x"),
            Transact::Conflict
        );
        by_hand(&fixture.path)
            .execute("DELETE FROM leasehold_kv WHERE key = 'lease/b'", [])
            .unwrap();
    }
}

#[test]
fn a_blob_in_a_table_made_by_hand_is_bytes_too() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    by_hand(&path)
        .execute_batch(
            "CREATE TABLE leasehold_kv (key PRIMARY KEY, value, written, boot);
             INSERT INTO leasehold_kv VALUES ('lease/a', x'fe01', 'long ago', NULL);",
        )
        .unwrap();
    let Read::Entry { value, age_ns, .. } = read(&open(&path).unwrap(), "lease/a") else {
        panic!("no entry")
    };
    assert_eq!((value, age_ns), (vec![0xFE, 1], None));
}

#[test]
fn an_existing_database_keeps_its_other_tables() {
    let directory = directory();
    let path = directory.path().join("payments.db");
    by_hand(&path)
        .execute_batch("CREATE TABLE payment (id); INSERT INTO payment VALUES (7)")
        .unwrap();
    must_put(&open(&path).unwrap(), "lease/a", Expect::Absent, "1");
    let kept: i64 =
        by_hand(&path).query_row("SELECT id FROM payment", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 7);
}

#[test]
fn a_store_that_was_dropped_is_one_file_with_everything_asked_for_in_it() {
    let Fixture { store, path, directory } = fixture();
    let answers: Vec<_> = (0..20)
        .map(|key| store.transact(vec![], vec![write(&format!("lease/{key}"), "1")]))
        .collect();
    drop(store);
    for suffix in ["-wal", "-shm"] {
        assert!(!beside(&path, suffix).exists(), "{suffix}");
    }
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let kept: i64 = by_hand(&copy)
        .query_row("SELECT count(*) FROM leasehold_kv", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 20);
    for answer in answers {
        assert!(matches!(wait(answer), Transact::Applied(_)));
    }
}

#[tokio::test]
async fn a_store_may_be_dropped_by_a_task() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    let store = open(&path).unwrap();
    store.transact(vec![], vec![write("lease/a", "1")]).await;
    tokio::spawn(async move { drop(store) }).await.unwrap();
    assert!(!beside(&path, "-wal").exists());
}

#[test]
fn a_store_that_does_not_close_keeps_nobody_longer_than_a_second() {
    let Fixture { store, path, directory: _directory } = fixture();
    let other = by_hand(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = store.transact(vec![], vec![write("lease/a", "1")]);
    let begun = Instant::now();
    drop(store);
    assert!((1000..3000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(wait(answer), Transact::Applied(_)));
}

#[test]
fn debians_sqlite3_reads_the_store_while_it_is_open() {
    let fixture = fixture();
    must_put(&fixture.store, "lease/a", Expect::Absent, "1");
    let output = Command::new("sqlite3")
        .arg(&fixture.path)
        .arg("SELECT key, value, written > 0, length(boot) > 36 FROM leasehold_kv; SELECT * FROM leasehold_schema")
        .output()
        .expect("sqlite3 is missing; install it");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "lease/a|1|1|1\nkv|1\n");
}

/// The test runs itself as the other processes.
#[test]
fn processes_that_open_a_new_file_at_once_share_one_history() {
    const NAME: &str = "processes_that_open_a_new_file_at_once_share_one_history";
    const PROCESSES: usize = 6;
    const ENTRIES: usize = 10;
    if let Some(path) = std::env::var_os("LEASEHOLD_TEST_STORE") {
        let store = open(path.as_ref()).unwrap();
        return (0..ENTRIES).for_each(|_| append(&store));
    }
    let directory = directory();
    let path = directory.path().join("leases.db");
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", NAME])
                .env("LEASEHOLD_TEST_STORE", &path)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (log, _) = must_read(&open(&path).unwrap(), "log");
    assert_eq!(log.lines().count(), PROCESSES * ENTRIES);
}

#[test]
fn requests_that_wait_together_share_a_commit() {
    const FRAME: u64 = 24 + 4096;
    let fixture = fixture();
    let log = beside(&fixture.path, "-wal");
    let before = log.metadata().unwrap().len();
    let other = by_hand(&fixture.path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answers: Vec<_> = (0..40)
        .map(|number| fixture.store.transact(vec![], vec![write("lease/a", &number.to_string())]))
        .collect();
    other.execute_batch("ROLLBACK").unwrap();
    for answer in answers {
        let outcome = wait(answer);
        assert!(matches!(outcome, Transact::Applied(_)), "{outcome:?}");
    }
    // The first may have been on its way alone. One commit alone is a frame at least.
    let frames = (log.metadata().unwrap().len() - before) / FRAME;
    assert!(frames < 10, "{frames}");
    assert_eq!(must_read(&fixture.store, "lease/a").0, "39");
}

#[test]
fn requests_that_wait_together_are_answered_each_by_itself() {
    let fixture = fixture();
    let other = by_hand(&fixture.path);
    other
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON leasehold_kv WHEN new.key = 'lease/bad'
             BEGIN SELECT RAISE (ABORT, 'by hand'); END;
             BEGIN IMMEDIATE",
        )
        .unwrap();
    let ask = |keys: &[&str]| {
        let checks = keys.iter().map(|key| check(key, Expect::Absent)).collect();
        fixture.store.transact(checks, keys.iter().map(|key| write(key, "1")).collect())
    };
    let not_text = Write { key: "lease/text".to_owned(), value: vec![0xFF] };
    let answers = [
        ask(&["lease/a"]),
        ask(&["lease/a"]),
        fixture.store.transact(vec![], vec![not_text]),
        ask(&["lease/b", "lease/bad"]),
        ask(&["lease/c"]),
    ];
    other.execute_batch("ROLLBACK").unwrap();
    let outcomes = answers.map(wait);
    assert!(
        matches!(
            &outcomes,
            [
                Transact::Applied(_),
                Transact::Conflict,
                Transact::Unavailable(not_text),
                Transact::Unavailable(refused),
                Transact::Applied(_),
            ] if not_text.contains("not UTF-8") && refused.contains("by hand")
        ),
        "{outcomes:?}"
    );
    assert_eq!(must_read(&fixture.store, "lease/a").0, "1");
    assert_eq!(read(&fixture.store, "lease/b"), Read::Absent, "half a request was written");
    assert_eq!(must_read(&fixture.store, "lease/c").0, "1");
}

#[test]
fn a_store_that_leaves_the_disk_to_the_kernel_vouches_for_nothing() {
    let fixture = fixture();
    assert!(fixture.store.capabilities().linearizable);
    let options = SqliteOptions { unsafe_no_sync: true, ..Default::default() };
    let unsynced = Sqlite::open(&fixture.path, options).unwrap();
    assert!(!unsynced.capabilities().linearizable);
    must_put(&unsynced, "lease/a", Expect::Absent, "1");
    assert_eq!(must_read(&fixture.store, "lease/a").0, "1");
}

fn append(store: &dyn Store) {
    loop {
        let (log, expect) = match read(store, "log") {
            Read::Absent => (String::new(), Expect::Absent),
            Read::Entry { value, version, .. } => {
                (String::from_utf8(value).unwrap(), Expect::Version(version))
            }
            other => panic!("{other:?}"),
        };
        let longer = format!("{log}{}\n", std::process::id());
        match wait(store.transact(vec![check("log", expect)], vec![write("log", &longer)])) {
            Transact::Applied(_) => return,
            Transact::Conflict | Transact::Unavailable(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn age(store: &dyn Store, key: &str) -> Option<u64> {
    match read(store, key) {
        Read::Entry { age_ns, .. } => age_ns,
        other => panic!("{other:?}"),
    }
}

/// The age of an entry whose stamp's boot was edited, and that boot.
fn stamped(fixture: &Fixture, edit: impl Fn(&str) -> String) -> (Option<u64>, String) {
    wait(fixture.store.transact(vec![], vec![write("lease/a", "1")]));
    let connection = by_hand(&fixture.path);
    let boot: String =
        connection.query_row("SELECT boot FROM leasehold_kv", [], |row| row.get(0)).unwrap();
    connection.execute("UPDATE leasehold_kv SET boot = ?", [edit(&boot)]).unwrap();
    (age(&fixture.store, "lease/a"), boot)
}

fn namespace(boot: &str) -> &str {
    boot.split_once('/').unwrap().1
}

fn on_tmpfs(path: &std::path::Path) -> bool {
    rustix::fs::statfs(path).unwrap().f_type == 0x0102_1994
}
