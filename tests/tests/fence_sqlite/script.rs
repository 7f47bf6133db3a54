//! Scripts that go on after an error.

use leasehold_core::guard;

use crate::database::{Database, TABLES, token};
use crate::engine::{message, shell};

#[test]
fn a_script_that_goes_on_after_a_refusal_pays_and_so_the_head_of_the_text_says_bail() {
    let database = Database::with_tables();
    let script = guarded_script(4);
    let output = shell(&database.path, &[], &script);
    assert!(message(&output).contains("leasehold: Fenced"), "{output:?}");
    assert_eq!(database.count("bare"), 1, "the hazard that the text warns of");
    assert!(guard::SQLITE.contains("sqlite3 -bail"));
}

#[test]
fn a_script_under_bail_pays_nothing_after_a_refusal() {
    for (term, verdict) in [(4, "Fenced"), (6, "NotSealed")] {
        let database = Database::with_tables();
        let output = shell(&database.path, &["-bail"], &guarded_script(term));
        assert!(message(&output).contains(verdict), "{output:?}");
        assert!(!output.status.success());
        assert_eq!(database.count("bare"), 0);
    }
}

#[test]
fn a_retried_script_under_bail_pays_once() {
    let database = Database::with_tables();
    assert!(shell(&database.path, &["-bail"], &guarded_script(5)).status.success());
    let output = shell(&database.path, &["-bail"], &guarded_script(5));
    assert!(message(&output).contains("leasehold: AlreadyApplied"), "{output:?}");
    assert_eq!(database.count("bare"), 1);
}

fn guarded_script(term: i64) -> String {
    let token = token(term);
    let token = token.as_str().unwrap();
    format!(
        "BEGIN IMMEDIATE;
        INSERT INTO leasehold_admit(resource, token, step, digest) VALUES ('r', '{token}', 'invoice-7', '');
        INSERT INTO bare(invoice) VALUES ((SELECT count(*) FROM bare));
        COMMIT;"
    )
}

#[test]
fn a_table_that_admits_its_own_rows_needs_no_bail() {
    let verbs = [
        "INSERT",
        "INSERT OR IGNORE",
        "INSERT OR REPLACE",
        "INSERT OR FAIL",
        "INSERT OR ABORT",
        "INSERT OR ROLLBACK",
        "REPLACE",
    ];
    for verb in verbs {
        let database = Database::with_tables();
        let before = database.dump();
        for term in [4, 6] {
            let output = shell(&database.path, &[], &fenced_script(verb, term));
            assert!(message(&output).contains("leasehold: "), "{verb}: {output:?}");
        }
        assert_eq!(database.count("payment"), 0, "{verb}");
        assert_eq!(database.dump(), before, "{verb}");

        shell(&database.path, &[], &fenced_script(verb, 5));
        shell(&database.path, &[], &fenced_script(verb, 5));
        assert_eq!(database.count("payment"), 2, "{verb}: each row once, its retry never");
        assert_eq!(database.seq(), 2, "{verb}");
    }
}

#[test]
fn a_row_that_was_left_out_does_not_count() {
    let database = Database::with_tables();
    let connection = database.open();
    let pay = |sql: &str| connection.execute(sql, [token(5).as_str().unwrap()]);
    assert_eq!(pay("INSERT INTO payment VALUES (7, 100, ?)"), Ok(1));
    connection.execute("DELETE FROM leasehold_step", []).unwrap();
    assert_eq!(pay("INSERT OR IGNORE INTO payment VALUES (7, 100, ?)"), Ok(0));
    assert_eq!(pay("INSERT INTO payment VALUES (7, 100, ?) ON CONFLICT DO NOTHING"), Ok(0));
    assert_eq!(database.seq(), 1);
}

#[test]
fn the_head_of_the_text_shows_the_table_as_tested() {
    let flat =
        |text: &str| text.replace("\n--", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(guard::SQLITE).replace("'payments'", "'r'");
    let tested = flat(TABLES);
    let tested = tested.split(" CREATE TABLE bare").next().unwrap();
    assert!(shown.contains(tested), "{tested}");
}

fn fenced_script(verb: &str, term: i64) -> String {
    let token = token(term);
    let token = token.as_str().unwrap();
    format!(
        "BEGIN;
        {verb} INTO payment(invoice, amount, token) VALUES (7, 100, '{token}');
        {verb} INTO payment(invoice, amount, token) VALUES (8, 100, '{token}');
        COMMIT;"
    )
}
