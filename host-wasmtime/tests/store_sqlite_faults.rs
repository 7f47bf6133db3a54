//! A SQLite store under faults: locks, files that vanish, a full disk, killed writers.
//! On Linux, the only system with the boot clock and with namespaces.
#![cfg(target_os = "linux")]

mod store_support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use leasehold_host::store::{Expect, Read, Sqlite, SqliteOptions, Store, Transact, Write};
use store_support::{
    Fixture, beside, by_hand, check, directory, fixture, must_put, must_read, open, put, read,
    wait, write,
};

#[test]
fn a_locked_store_is_unavailable_within_the_bound_and_unwritten() {
    let fixture = fixture();
    let store = Sqlite::open(
        &fixture.path,
        SqliteOptions { busy: Duration::from_millis(50), ..Default::default() },
    )
    .unwrap();
    let other = by_hand(&fixture.path);
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let outcome = put(&store, "lease/a", Expect::Absent, "1");
    let took = begun.elapsed();
    assert!(
        matches!(&outcome, Transact::Unavailable(why) if why.contains("stayed locked")),
        "{outcome:?}"
    );
    assert!((50..1000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(read(&store, "lease/a"), Read::Absent, "a reader waits for no writer");
    other.execute_batch("COMMIT").unwrap();
    must_put(&store, "lease/a", Expect::Absent, "1");
}

#[test]
fn a_deleted_file_is_gone_and_not_created_again() {
    assert_gone("was deleted or moved", |fixture| fs::remove_file(&fixture.path).unwrap());
    let fixture = fixture();
    fs::remove_file(&fixture.path).unwrap();
    read(&fixture.store, "lease/a");
    assert!(!fixture.path.exists());
}

#[test]
fn a_file_that_another_was_moved_over_is_gone_and_the_other_untouched() {
    let other = directory();
    let replacement = other.path().join("leases.db");
    by_hand(&replacement)
        .execute_batch("CREATE TABLE history (x); INSERT INTO history VALUES (7)")
        .unwrap();
    let before = fs::read(&replacement).unwrap();
    let fixture = holding();
    fs::rename(&replacement, &fixture.path).unwrap();
    assert_is_gone(&fixture.store, "was replaced");
    assert_eq!(fs::read(&fixture.path).unwrap(), before);
}

#[test]
fn a_deleted_and_newly_created_store_is_gone_for_the_old_holder_only() {
    let fixture = holding();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(beside(&fixture.path, suffix)).unwrap();
    }
    let new = open(&fixture.path).unwrap();
    must_put(&new, "lease/a", Expect::Absent, "a new history");
    assert_is_gone(&fixture.store, "was replaced");
    assert_eq!(must_read(&new, "lease/a").0, "a new history");
}

#[test]
fn a_store_without_its_log_or_its_lock_memory_is_gone() {
    assert_gone("-wal was deleted or moved", |fixture| {
        fs::remove_file(beside(&fixture.path, "-wal")).unwrap();
    });
    assert_gone("-shm was deleted or moved", |fixture| {
        fs::remove_file(beside(&fixture.path, "-shm")).unwrap();
    });
}

#[test]
fn an_emptied_file_is_gone() {
    // By another process: to open and close the file in this one would drop the store's locks.
    assert_gone("was emptied", |fixture| {
        assert!(
            Command::new("truncate")
                .args(["-s", "0"])
                .arg(&fixture.path)
                .status()
                .unwrap()
                .success()
        );
    });
}

#[test]
fn a_link_that_leads_elsewhere_now_is_gone() {
    let directory = directory();
    let (one, other) = (directory.path().join("one.db"), directory.path().join("other.db"));
    let link = directory.path().join("leases.db");
    drop((open(&one).unwrap(), open(&other).unwrap()));
    std::os::unix::fs::symlink(&one, &link).unwrap();
    let store = open(&link).unwrap();
    must_put(&store, "lease/a", Expect::Absent, "1");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert_is_gone(&store, "was replaced");
}

#[test]
fn a_store_whose_table_was_dropped_is_gone() {
    assert_gone("no such table", |fixture| {
        by_hand(&fixture.path).execute_batch("DROP TABLE leasehold_kv").unwrap();
    });
}

#[test]
fn a_store_whose_table_was_altered_is_gone() {
    assert_gone("no such column", |fixture| {
        by_hand(&fixture.path)
            .execute_batch("ALTER TABLE leasehold_kv RENAME COLUMN boot TO boots; ALTER TABLE leasehold_kv RENAME COLUMN value TO worth")
            .unwrap();
    });
}

#[test]
fn a_write_that_ends_in_a_deleted_file_is_not_applied() {
    let fixture = holding();
    let other = by_hand(&fixture.path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = fixture.store.transact(vec![], vec![write("lease/a", "2")]);
    thread::sleep(Duration::from_millis(60)); // the write has seen the file, and waits for the lock
    fs::remove_file(&fixture.path).unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    let outcome = wait(answer);
    assert!(matches!(outcome, Transact::Gone(_)), "{outcome:?}");
}

#[test]
fn a_file_that_was_moved_back_is_the_same_store() {
    let fixture = holding();
    let away = beside(&fixture.path, ".away");
    fs::rename(&fixture.path, &away).unwrap();
    assert_is_gone(&fixture.store, "was deleted or moved");
    fs::rename(&away, &fixture.path).unwrap();
    assert_eq!(must_read(&fixture.store, "lease/a").0, "1");
}

#[test]
fn a_second_name_stops_the_store_while_it_is_there() {
    let fixture = holding();
    let second = beside(&fixture.path, ".second");
    fs::hard_link(&fixture.path, &second).unwrap();
    let expected = "has a second name (hard link)";
    let found = read(&fixture.store, "lease/a");
    assert!(matches!(&found, Read::Unavailable(why) if why.contains(expected)), "{found:?}");
    let outcome = put(&fixture.store, "lease/b", Expect::Absent, "1");
    assert!(
        matches!(&outcome, Transact::Unavailable(why) if why.contains(expected)),
        "{outcome:?}"
    );
    fs::remove_file(&second).unwrap();
    assert_eq!(must_read(&fixture.store, "lease/a").0, "1");
}

/// The holder does not look in between. The test runs itself as the other process.
#[test]
fn after_an_exchange_of_names_and_back_not_both_go_on() {
    const NAME: &str = "after_an_exchange_of_names_and_back_not_both_go_on";
    let is_stopped = |store: &Sqlite| {
        let outcome = put(store, "lease/b", Expect::Absent, "1");
        assert!(matches!(outcome, Transact::Unavailable(_)), "{outcome:?}");
    };
    if let Some(path) = std::env::var_os("LEASEHOLD_TEST_STORE") {
        let second = beside(path.as_ref(), ".second");
        fs::rename(&path, &second).unwrap();
        let store = open(&second).unwrap();
        fs::hard_link(&second, &path).unwrap();
        return is_stopped(&store);
    }
    let fixture = holding();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env("LEASEHOLD_TEST_STORE", &fixture.path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    is_stopped(&fixture.store);
}

/// SQLite would delete the log by its name, which is another's now.
#[test]
fn a_lost_store_that_is_closed_leaves_the_files_of_others_alone() {
    let fixture = holding();
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(beside(&fixture.path, suffix)).unwrap();
    }
    let script = "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (7);";
    let output = Command::new("sqlite3").arg(&fixture.path).arg(script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = fs::read(beside(&fixture.path, "-wal")).unwrap();
    let Fixture { store, path, directory: _directory } = fixture;
    drop(store);
    assert!(fs::read(beside(&path, "-wal")).unwrap() == log);
    let theirs: i64 =
        by_hand(&path).query_row("SELECT x FROM theirs", [], |row| row.get(0)).unwrap();
    assert_eq!(theirs, 7);
}

/// The test runs itself in a mount namespace, on a file system of 256 KiB.
#[test]
fn a_full_disk_loses_nothing_that_was_applied() {
    const NAME: &str = "a_full_disk_loses_nothing_that_was_applied";
    if let Some(disk) = std::env::var_os("LEASEHOLD_TEST_DISK") {
        return fill(Path::new(&disk));
    }
    let directory = directory();
    let script = "mount -t tmpfs -o size=256k none \"$0\" && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .args([directory.path().as_os_str(), std::env::current_exe().unwrap().as_os_str()])
        .args(["--exact", NAME])
        .env("LEASEHOLD_TEST_DISK", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn fill(disk: &Path) {
    let path = disk.join("leases.db");
    let store = open(&path).unwrap();
    let ballast = "x".repeat(2000);
    let mut applied = 0;
    let refusal = loop {
        let outcome = wait(store.transact(
            vec![],
            vec![
                write("lease/a", &format!("{applied}")),
                write(&format!("ballast/{applied}"), &ballast),
            ],
        ));
        match outcome {
            Transact::Applied(_) => applied += 1,
            other => break other,
        }
        assert!(applied < 1000, "the disk is not full");
    };
    // Where it was the commit that failed, the store cannot know.
    assert!(
        matches!(&refusal, Transact::Unavailable(why) | Transact::Unknown(why) if why.contains("full")),
        "{refusal:?}"
    );
    let last = (applied - 1).to_string();
    assert_eq!(must_read(&store, "lease/a").0, last);
    drop(store);
    assert_eq!(must_read(&open(&path).unwrap(), "lease/a").0, last);
}

/// The test runs itself as the writer.
#[test]
fn a_killed_writer_leaves_whole_transactions_and_all_that_it_was_told_are_applied() {
    const NAME: &str =
        "a_killed_writer_leaves_whole_transactions_and_all_that_it_was_told_are_applied";
    if let Some(path) = std::env::var_os("LEASEHOLD_TEST_STORE") {
        write_without_end(Path::new(&path));
    }
    let directory = directory();
    let path = directory.path().join("leases.db");
    let mut told = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env("LEASEHOLD_TEST_STORE", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        lines.by_ref().find(|line| line.starts_with("applied ")).expect("the writer wrote nothing");
        thread::sleep(Duration::from_millis(7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        told = lines
            .filter_map(|line| line.strip_prefix("applied ")?.parse().ok())
            .last()
            .unwrap_or(told);

        let store = open(&path).unwrap();
        let (one, other) = (must_read(&store, "one").0, must_read(&store, "other").0);
        assert_eq!(one, other);
        assert!(one.parse::<u64>().unwrap() >= told, "{one} of {told}");
        let sound: String =
            by_hand(&path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
    assert!(told > 0);
}

fn write_without_end(path: &Path) -> ! {
    let store = open(path).unwrap();
    loop {
        let count = match read(&store, "one") {
            Read::Absent => 0,
            Read::Entry { value, .. } => String::from_utf8(value).unwrap().parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        let next = (count + 1).to_string();
        let outcome =
            wait(store.transact(vec![], vec![write("one", &next), write("other", &next)]));
        assert!(matches!(outcome, Transact::Applied(_)), "{outcome:?}");
        println!("applied {next}");
    }
}

/// A store with an entry, as a holder has it.
fn holding() -> Fixture {
    let fixture = fixture();
    must_put(&fixture.store, "lease/a", Expect::Absent, "1");
    fixture
}

fn assert_gone(why: &str, fault: impl FnOnce(&Fixture)) {
    let fixture = holding();
    fault(&fixture);
    assert_is_gone(&fixture.store, why);
}

/// Neither a read nor a write gets through, however often.
fn assert_is_gone(store: &dyn Store, expected: &str) {
    for _ in 0..2 {
        let Read::Gone(why) = read(store, "lease/a") else {
            panic!("{:?}", read(store, "lease/a"))
        };
        assert!(why.contains(expected), "{why}");
        let write = Write { key: "lease/a".to_owned(), value: b"2".to_vec() };
        let outcome = wait(store.transact(vec![check("lease/b", Expect::Absent)], vec![write]));
        assert!(matches!(&outcome, Transact::Gone(why) if why.contains(expected)), "{outcome:?}");
    }
}
