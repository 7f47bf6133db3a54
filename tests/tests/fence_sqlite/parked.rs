//! Writers parked between guard and commit, while another connection seals.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::database::{Database, admit, is_busy, open, refusal, seal, token};

const JOURNALS: [&str; 2] = ["WAL", "DELETE"];

#[test]
fn a_seal_waits_for_a_writer_parked_between_guard_and_commit() {
    for journal in JOURNALS {
        let database = Database::with_tables();
        let mut writer = database.open_in(journal);
        let transaction = writer.transaction().unwrap();
        admit_and_pay(&transaction, 5, 1).unwrap();

        let (tell, told) = mpsc::channel();
        let path = database.path.clone();
        let sealer = thread::spawn(move || {
            let connection = open(&path);
            let last_seq = seal_and_count(&connection, 6);
            tell.send(()).unwrap();
            last_seq
        });
        assert!(
            told.recv_timeout(Duration::from_millis(300)).is_err(),
            "{journal}: sealed past a parked writer"
        );

        transaction.commit().unwrap();
        assert_eq!(
            sealer.join().unwrap(),
            1,
            "{journal}: the seal comes after that write and counts it"
        );
        assert_eq!(refusal(admit_and_pay(&writer, 5, 2)), "Fenced", "{journal}");
        assert_eq!(database.count("bare"), 1, "{journal}");
    }
}

#[test]
fn a_seal_without_patience_is_refused_while_a_writer_is_parked() {
    for journal in JOURNALS {
        let database = Database::with_tables();
        let mut writer = database.open_in(journal);
        let sealer = database.open();
        sealer.busy_timeout(Duration::ZERO).unwrap();
        let transaction = writer.transaction().unwrap();
        admit_and_pay(&transaction, 5, 1).unwrap();
        assert!(is_busy(&seal(&sealer, 6)), "{journal}");

        drop(transaction);
        seal(&sealer, 6).unwrap();
        assert_eq!(database.count("bare"), 0, "{journal}: rolled back before the seal");
        assert_eq!(database.seq(), 0, "{journal}");
    }
}

#[test]
fn a_writer_parked_before_its_guard_is_fenced_by_the_seal() {
    for journal in JOURNALS {
        let database = Database::with_tables();
        let mut writer = database.open_in(journal);
        let transaction = writer.transaction().unwrap();
        seal(&database.open(), 6).unwrap();
        assert_eq!(refusal(admit_and_pay(&transaction, 5, 1)), "Fenced", "{journal}");
        transaction.commit().unwrap();
        assert_eq!(database.count("bare"), 0, "{journal}");
    }
}

#[test]
fn a_writer_that_has_read_the_old_floor_cannot_write_by_it() {
    let database = Database::with_tables();
    let mut writer = database.open_in("WAL");
    let transaction = writer.transaction().unwrap();
    assert_eq!(floor(&transaction), 5);
    seal(&database.open(), 6).unwrap();
    assert_eq!(floor(&transaction), 5, "its snapshot is old: that is why reading guards nothing");
    assert!(is_busy(&admit_and_pay(&transaction, 5, 1)));
    assert!(is_busy(&pay(&transaction, 1)), "nor does it write if it ignores the guard's error");
    drop(transaction);
    assert_eq!(refusal(admit_and_pay(&writer, 5, 1)), "Fenced");
    assert_eq!(database.count("bare"), 0);
}

#[test]
fn a_reader_of_the_old_floor_delays_a_seal_in_a_rollback_journal_and_is_then_fenced() {
    let database = Database::with_tables();
    let mut writer = database.open_in("DELETE");
    writer.busy_timeout(Duration::ZERO).unwrap();
    let transaction = writer.transaction().unwrap();
    assert_eq!(floor(&transaction), 5);
    let mut sealer = database.open();
    sealer.busy_timeout(Duration::ZERO).unwrap();
    let sealing = sealer.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    seal(&sealing, 6).unwrap();
    assert!(is_busy(&admit_and_pay(&transaction, 5, 1)), "the sealer holds the lock");
    drop(transaction);
    sealing.commit().unwrap();
    assert_eq!(refusal(admit_and_pay(&writer, 5, 1)), "Fenced");
    assert_eq!(database.count("bare"), 0);
}

#[test]
fn what_a_guarded_read_has_read_stays_until_its_transaction_ends() {
    for journal in JOURNALS {
        let database = Database::with_tables();
        let mut reader = database.open_in(journal);
        let writer = database.open();
        writer.busy_timeout(Duration::ZERO).unwrap();
        let transaction = reader.transaction().unwrap();
        let read = "INSERT INTO leasehold_read VALUES ('r', ?, 0)";
        transaction.execute(read, [token(6).as_str().unwrap()]).unwrap();
        assert!(is_busy(&admit_and_pay(&writer, 5, 1)), "{journal}");
        transaction.commit().unwrap();
        assert_eq!(refusal(admit_and_pay(&writer, 5, 1)), "Fenced", "{journal}: the read sealed");
    }
}

#[test]
fn a_cancellation_waits_for_a_parked_attempt_and_learns_what_became_of_it() {
    let admit = "INSERT INTO leasehold_admit VALUES ('r', ?, 'pay-7', '')";
    let cancel = "INSERT INTO leasehold_cancel VALUES ('r', ?, 'pay-7')";
    let token = token(5);
    let token = token.as_str().unwrap();
    for journal in JOURNALS {
        for commits in [true, false] {
            let database = Database::with_tables();
            let mut writer = database.open_in(journal);
            let canceller = database.open();
            canceller.busy_timeout(Duration::ZERO).unwrap();
            let transaction = writer.transaction().unwrap();
            transaction.execute(admit, [token]).unwrap();
            assert!(is_busy(&canceller.execute(cancel, [token])), "{journal}");
            if commits {
                transaction.commit().unwrap();
                assert_eq!(refusal(canceller.execute(cancel, [token])), "AlreadyApplied");
            } else {
                drop(transaction);
                canceller.execute(cancel, [token]).unwrap();
                assert_eq!(refusal(writer.execute(admit, [token])), "Cancelled", "{journal}");
            }
        }
    }
}

#[test]
fn no_write_follows_a_later_seal_however_writers_and_sealers_race() {
    let database = Database::with_tables();
    database
        .open_in("WAL")
        .execute_batch("CREATE TABLE paid(term INTEGER NOT NULL, n INTEGER PRIMARY KEY)")
        .unwrap();
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let path = database.path.clone();
            thread::spawn(move || {
                for round in 0..25 {
                    let term = 6 + round * 4 + worker;
                    let mut connection = open(&path);
                    // Losing a race for the seal is this test's purpose: the write must lose it, too.
                    let _ = seal(&connection, term);
                    let transaction = connection.transaction().unwrap();
                    if admit(&transaction, term).is_ok() {
                        thread::yield_now();
                        transaction.execute("INSERT INTO paid(term) VALUES (?)", [term]).unwrap();
                        transaction.commit().unwrap();
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    let connection = database.open();
    let back: i64 = connection
        .query_row(
            "SELECT count(*) FROM paid AS a JOIN paid AS b ON a.n < b.n AND a.term > b.term",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(back, 0, "terms went back");
    assert_eq!(database.count("paid"), database.seq());
    assert!(database.seq() > 0);
}

fn admit_and_pay(connection: &Connection, term: i64, invoice: i64) -> rusqlite::Result<usize> {
    admit(connection, term)?;
    pay(connection, invoice)
}

fn pay(connection: &Connection, invoice: i64) -> rusqlite::Result<usize> {
    connection.execute("INSERT INTO bare(invoice) VALUES (?)", [invoice])
}

/// Seals, and gives how many writes had been accepted by then.
fn seal_and_count(connection: &Connection, term: i64) -> i64 {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    seal(connection, term).unwrap();
    let last_seq =
        connection.query_row("SELECT seq FROM leasehold_floor", [], |row| row.get(0)).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    last_seq
}

fn floor(connection: &Connection) -> i64 {
    connection.query_row("SELECT floor FROM leasehold_floor", [], |row| row.get(0)).unwrap()
}
