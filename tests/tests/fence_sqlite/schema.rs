//! The text itself: applied once, twice, within a transaction, and over a newer schema.

use std::path::Path;

use leasehold_core::guard;
use rusqlite::ErrorCode;

use crate::database::{Database, admit, open, refusal};
use crate::engine::{message, program, shell, success};

#[test]
fn every_program_applies_the_text_and_finds_it_harmless_when_applied_again() {
    type Apply = fn(&Path);
    let programs: [Apply; 3] = [
        |path| open(path).execute_batch(guard::SQLITE).unwrap(),
        |path| success(&shell(path, &["-bail"], guard::SQLITE)),
        |path| {
            let code =
                "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
            success(&program("python3", &["-c", code, path.to_str().unwrap()], guard::SQLITE));
        },
    ];
    for first in programs {
        for second in programs {
            let database = Database::new();
            first(&database.path);
            database.create_and_seal(5);
            let before = database.dump();
            second(&database.path);
            assert_eq!(database.dump(), before);
        }
    }
}

#[test]
fn the_text_runs_within_a_transaction_and_leaves_it_open() {
    let database = Database::new();
    let mut connection = database.open();
    let transaction = connection.transaction().unwrap();
    transaction.execute_batch(guard::SQLITE).unwrap();
    drop(transaction);
    assert_eq!(database.dump(), Vec::<String>::new());
}

#[test]
fn a_newer_schema_is_refused_and_nothing_is_changed() {
    for bail in [&["-bail"][..], &[]] {
        let database = Database::sealed_at(5);
        // As a later version might leave it: one part renamed, another still there.
        database
            .open()
            .execute_batch("UPDATE leasehold_schema SET version = 2; DROP VIEW leasehold_floor")
            .unwrap();
        let before = database.dump();

        let output = shell(&database.path, bail, guard::SQLITE);
        assert!(message(&output).contains("leasehold: NewerSchema"), "{output:?}");
        assert!(!output.status.success());
        assert_eq!(database.dump(), before);

        let error = database.open().execute_batch(guard::SQLITE).unwrap_err();
        assert!(error.to_string().starts_with("leasehold: NewerSchema"), "{error}");
        assert_eq!(database.dump(), before);
    }
}

#[test]
fn a_newer_schema_without_our_trigger_is_refused_all_the_same() {
    let database = Database::new();
    let foreign =
        "CREATE TABLE leasehold_schema(part TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
        INSERT INTO leasehold_schema VALUES ('fence', 7), ('kv', 1)";
    database.open().execute_batch(foreign).unwrap();
    let before = database.dump();
    let error = database.open().execute_batch(guard::SQLITE).unwrap_err();
    assert!(error.to_string().starts_with("leasehold: NewerSchema"), "{error}");
    assert_eq!(database.dump(), before);
}

#[test]
fn a_row_edited_into_nonsense_is_refused() {
    let database = Database::sealed_at(5);
    let connection = database.open();
    for edit in [
        "floor = -1",
        "floor = 0",
        "floor = 5.5",
        "floor = NULL",
        "lineage = ''",
        "lineage = upper(lineage)",
        "nonce = ''",
        "nonce = nonce || '0'",
        "retired = 2",
        "seq = -1",
        "resource = ''",
        "resource = hex(zeroblob(65))",
    ] {
        let error =
            connection.execute(&format!("UPDATE leasehold_fence SET {edit}"), []).unwrap_err();
        assert_eq!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation),
            "{edit}: {error}"
        );
    }
}

#[test]
fn the_guard_works_where_schemas_are_not_trusted() {
    let database = Database::sealed_at(5);
    let connection = database.open();
    connection
        .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA recursive_triggers = ON")
        .unwrap();
    admit(&connection, 5).unwrap();
    assert_eq!(refusal(admit(&connection, 4)), "Fenced");
}

#[test]
fn reading_a_verb_shows_nothing() {
    let database = Database::sealed_at(5);
    for verb in ["seal", "admit", "read", "cancel", "retire", "recover", "adopt"] {
        assert_eq!(database.count(&format!("leasehold_{verb}")), 0, "{verb}");
    }
}
