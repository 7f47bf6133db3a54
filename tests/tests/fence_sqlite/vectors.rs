//! The vectors through every program.

use std::collections::BTreeSet;
use std::path::Path;

use leasehold_core::fence::{
    AdoptVerdict, CancelVerdict, RecoverVerdict, RetireVerdict, SealVerdict, WriteVerdict,
};
use leasehold_core::guard;
use leasehold_tests::fence_vectors::{self, Case, Observed};

use crate::database::Database;
use crate::engine::{Engine, in_python, in_rusqlite, in_shell};
use crate::statement::{observe, request, store, stored};

#[test]
fn the_guard_gives_what_the_vectors_demand_in_rusqlite() {
    demand("rusqlite", in_rusqlite);
}

#[test]
fn the_guard_gives_what_the_vectors_demand_in_the_sqlite3_shell() {
    demand("sqlite3", in_shell);
}

#[test]
fn the_guard_gives_what_the_vectors_demand_in_python() {
    demand("python3", in_python);
}

#[test]
fn the_guard_gives_what_the_vectors_demand_in_a_database_of_utf_16() {
    for engine in [in_rusqlite, in_shell, in_python] as [Engine; 3] {
        let database = Database::new();
        database.open().execute_batch("PRAGMA encoding = 'UTF-16'; CREATE TABLE first(x)").unwrap();
        demand_of(&database, "UTF-16", engine);
    }
}

fn demand(program: &str, engine: Engine) {
    demand_of(&Database::new(), program, engine);
}

fn demand_of(database: &Database, program: &str, engine: Engine) {
    database.apply();
    let vectors = fence_vectors::load();
    fence_vectors::check(program, &vectors.cases, &run(engine, &database.path, &vectors.cases));
}

#[test]
fn the_text_refuses_with_the_verdicts_of_the_rules_and_no_others() {
    let raised = |name: &str| -> BTreeSet<&str> {
        let text = guard::SQLITE
            .split(&format!("CREATE TRIGGER IF NOT EXISTS {name} "))
            .nth(1)
            .expect("the trigger");
        let text = text.split("\nEND;").next().expect("its end");
        let literals: Vec<_> = text.split("RAISE(ABORT, 'leasehold: ").skip(1).collect();
        assert_eq!(
            literals.len(),
            text.matches("RAISE(").count(),
            "anything but ABORT leaves the effect standing"
        );
        literals.iter().map(|rest| rest.split("')").next().expect("a name")).collect()
    };
    type Names = &'static [&'static str];
    let verbs: [(&str, Names, Names, Names); 7] = [
        ("seal", SealVerdict::NAMES, &["Sealed", "AlreadySealed"], &[]),
        ("read", SealVerdict::NAMES, &["Sealed", "AlreadySealed"], &[]),
        ("admit", WriteVerdict::NAMES, &["Apply"], &["BadStep", "BadDigest"]),
        ("cancel", CancelVerdict::NAMES, &["Tombstoned"], &["BadStep"]),
        ("retire", RetireVerdict::NAMES, &["Retired", "AlreadyRetired"], &[]),
        ("recover", RecoverVerdict::NAMES, &["Recovered", "Kept"], &[]),
        ("adopt", AdoptVerdict::NAMES, &["Adopted", "AlreadySealed"], &[]),
    ];
    assert_eq!(guard::SQLITE.matches("INSTEAD OF INSERT").count(), verbs.len());
    for (verb, names, admitted, arguments) in verbs {
        let refusing = names.iter().filter(|name| !admitted.contains(name));
        let expected = refusing.chain(arguments).chain(&["BadToken"]).copied().collect();
        assert_eq!(raised(&format!("leasehold_{verb}_rules")), expected, "{verb}");
    }
}

/// All cases in one run of the engine, each on a resource of its own.
fn run(engine: Engine, database: &Path, cases: &[Case]) -> Vec<Vec<Observed>> {
    let mut script = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let resource = format!("case-{number}");
        script.extend(store(&resource, &case.start));
        for (operation, _) in &case.operations {
            script.extend([request(&resource, operation), stored(&resource)]);
        }
    }
    let mut answers = engine(database, &script).into_iter();
    cases
        .iter()
        .map(|case| {
            for _ in store("", &case.start) {
                answers.next().expect("an answer").expect("the start is stored");
            }
            let mut before = case.start.clone();
            case.operations
                .iter()
                .map(|(operation, _)| {
                    let answer = answers.next().expect("an answer");
                    let stored = answers.next().expect("an answer").expect("what is stored");
                    let observed = observe(operation, &answer, &before, &stored);
                    before = observed.state.clone();
                    observed
                })
                .collect()
        })
        .collect()
}
