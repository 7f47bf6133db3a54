//! Random sequences, in SQL and by the rules.

use leasehold_core::fence::{Advance, Digest, FenceRow, StepRow};
use leasehold_core::guard;
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use leasehold_tests::fence_vectors::{Observed, Operation, State};
use proptest::prelude::*;
use rusqlite::Connection;

use crate::engine::execute;
use crate::statement::{observe, request, store, stored};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_guard_and_the_rules_never_differ(start in any_state(), operations in prop::collection::vec(any_operation(), 1..40)) {
        let database = Connection::open_in_memory().unwrap();
        database.execute_batch(guard::SQLITE).unwrap();
        for statement in store("r", &start) {
            execute(&database, &statement).unwrap();
        }
        let mut state = start;
        for operation in &operations {
            let before = state.clone();
            let verdict = state.perform(operation);
            let answer = execute(&database, &request("r", operation));
            let stored = execute(&database, &stored("r")).unwrap();
            let observed = observe(operation, &answer, &before, &stored);
            prop_assert_eq!(&observed, &Observed { verdict, state: state.clone() }, "{:?} on {:?}", operation, before);

            if let (Operation::Write { token, .. }, "Apply") = (operation, observed.verdict.name.as_str()) {
                let floor = before.row.expect("a row").floor;
                prop_assert!(token.term.get() >= floor, "a stale write was accepted");
            }
            if let (Some(was), Some(is)) = (before.row, state.row) {
                prop_assert!(is.lineage != was.lineage || is.floor >= was.floor, "a floor was lowered");
                prop_assert!(is.retired || !was.retired, "a retired resource was opened");
            }
        }
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let reaching = || (any_token(), prop_oneof![Just(Advance::default()), Just(Advance::Proven)]);
    let seal = reaching().prop_map(|(token, advance)| Operation::Seal { token, advance });
    let read = reaching().prop_map(|(token, advance)| Operation::Read { token, advance });
    let cancel = (any_token(), prop_oneof![Just("s"), Just("t"), Just("it's \u{652f}")])
        .prop_map(|(token, step)| Operation::Cancel { token, step: step.to_owned() });
    let retire = any_token().prop_map(|token| Operation::Retire { token });
    let recover = any_token().prop_map(|token| Operation::Recover { token });
    let adopt = any_token().prop_map(|token| Operation::Adopt { token });
    let step = prop_oneof![Just(""), Just("s"), Just("t"), Just("it's \u{652f}")];
    let write =
        (any_token(), step, any_digest()).prop_map(|(token, step, digest)| Operation::Write {
            token,
            step: step.to_owned(),
            // A digest without a step is refused as an argument before any rule is asked.
            digest: digest.filter(|_| !step.is_empty()),
        });
    prop_oneof![4 => seal, 12 => write, 2 => read, 4 => cancel, 1 => retire, 2 => recover, 1 => adopt]
}

fn any_token() -> impl Strategy<Value = Token> {
    (0..8u128, any_term(), 0..2u64).prop_map(|(lineage, term, nonce)| Token {
        lineage: Lineage(u128::from(lineage == 0)),
        term,
        nonce: Nonce(nonce),
    })
}

fn any_term() -> impl Strategy<Value = Term> {
    let around = |term: u64| (term - 2)..=(term + 2);
    prop_oneof![8 => 1..6u64, 1 => around(1_000_003), 1 => (Term::LAST.get() - 1)..=Term::LAST.get()]
        .prop_map(|term| Term::new(term).unwrap())
}

fn any_digest() -> impl Strategy<Value = Option<Digest>> {
    prop::option::of((0..2u8).prop_map(|byte| Digest([byte; 32])))
}

fn any_state() -> impl Strategy<Value = State> {
    let seq = prop_oneof![3 => 0..5u64, 1 => (Term::LAST.get() - 3)..=Term::LAST.get()];
    let row = (prop::option::weighted(0.8, any_token()), prop::bool::weighted(0.1), seq).prop_map(
        |(token, retired, seq)| {
            let new = FenceRow { retired, seq, ..FenceRow::NEW };
            token.map_or(new, |Token { lineage, term, nonce }| FenceRow {
                lineage,
                floor: term.get(),
                nonce,
                ..new
            })
        },
    );
    let step = (any_digest(), prop::bool::weighted(0.3))
        .prop_map(|(op_digest, cancelled)| StepRow { op_digest, seq: 0, cancelled });
    (prop::option::weighted(0.95, row), prop::option::weighted(0.3, step)).prop_map(
        |(row, step)| State {
            row,
            steps: step.map(|step| ("t".to_owned(), step)).into_iter().collect(),
        },
    )
}
