//! What a typed caller cannot send is refused before any rule is asked.

use leasehold_tests::fence_vectors;
use serde_json::{Value, json};

use crate::database::{Database, refusal, token};
use crate::engine::{Engine, in_python, in_rusqlite, in_shell};
use crate::statement::{Statement, admit};

#[test]
fn what_is_no_token_is_refused_as_such_in_every_program() {
    let not_tokens = fence_vectors::load().not_tokens;
    let texts = not_tokens.iter().map(|token| json!(token));
    let others = [json!(null), json!(5), json!(5.5)];
    refused_everywhere("BadToken", texts.chain(others), |token| {
        [
            Statement::new(
                "INSERT INTO leasehold_seal VALUES (?, ?, ?)",
                [json!("r"), token.clone(), json!(0)],
            ),
            admit("r", token, &json!(""), &json!("")),
            admit("missing", token, &json!(""), &json!("")),
        ]
    });
}

#[test]
fn what_is_no_step_is_refused_as_such_in_every_program() {
    refused_everywhere("BadStep", [json!(null), json!(5.5)], |step| {
        [admit("r", &token(5), step, &json!(""))]
    });
}

#[test]
fn what_is_no_digest_is_refused_as_such_in_every_program() {
    let digest = "d".repeat(64);
    let texts =
        ["d", &digest[1..], &digest.to_uppercase(), &digest.replace('d', "g"), &digest.repeat(2)];
    let nuls = [format!("{digest}\0"), format!("{}\0", &digest[1..]), "\0".to_owned()];
    let others = [json!(null), json!(5)];
    let digests = texts
        .iter()
        .map(|text| json!(text))
        .chain(nuls.iter().map(|text| json!(text)))
        .chain(others);
    refused_everywhere("BadDigest", digests, |digest| [admit("r", &token(5), &json!("s"), digest)]);
    refused_everywhere("BadDigest", [json!(digest)], |digest| {
        [admit("r", &token(5), &json!(""), digest)]
    });
}

/// Every value, put into every statement, is refused by every program, and nothing is stored.
fn refused_everywhere<const N: usize>(
    name: &str,
    values: impl IntoIterator<Item = Value>,
    statements: impl Fn(&Value) -> [Statement; N],
) {
    let values: Vec<_> = values.into_iter().collect();
    let script: Vec<_> = values.iter().flat_map(statements).collect();
    for engine in [in_rusqlite, in_shell, in_python] as [Engine; 3] {
        let database = Database::sealed_at(5);
        let before = database.dump();
        for (statement, answer) in script.iter().zip(engine(&database.path, &script)) {
            assert_eq!(answer, Err(format!("leasehold: {name}")), "{statement:?}");
        }
        assert_eq!(database.dump(), before);
    }
}

#[test]
fn a_blob_is_neither_token_nor_step_nor_digest() {
    let database = Database::sealed_at(5);
    let connection = database.open();
    let refusal = |sql: &str| refusal(connection.execute_batch(sql));
    let token = token(5);
    let token = token.as_str().unwrap();
    assert_eq!(
        refusal(&format!("INSERT INTO leasehold_seal VALUES ('r', CAST('{token}' AS BLOB), 0)")),
        "BadToken"
    );
    assert_eq!(
        refusal(&format!(
            "INSERT INTO leasehold_admit VALUES ('r', CAST('{token}' AS BLOB), '', '')"
        )),
        "BadToken"
    );
    assert_eq!(
        refusal(&format!("INSERT INTO leasehold_admit VALUES ('r', '{token}', x'00', '')")),
        "BadStep"
    );
    assert_eq!(
        refusal(&format!("INSERT INTO leasehold_admit VALUES ('r', '{token}', 's', x'')")),
        "BadDigest"
    );
}

#[test]
fn a_number_names_the_same_step_as_its_digits() {
    let database = Database::sealed_at(5);
    let script =
        [json!(42), json!("42"), json!(42)].map(|step| admit("r", &token(5), &step, &json!("")));
    let answers = in_rusqlite(&database.path, &script);
    let again = || Err("leasehold: AlreadyApplied".to_owned());
    assert_eq!(answers, [Ok(None), again(), again()]);
}

#[test]
fn a_seal_counts_as_proven_by_one_and_nothing_else() {
    let far = token(5_000_000);
    for unproven in [json!(0), json!(null), json!(2), json!("1"), json!("yes"), json!(-1)] {
        let database = Database::sealed_at(5);
        let seal = Statement::new(
            "INSERT INTO leasehold_seal VALUES (?, ?, ?)",
            [json!("r"), far.clone(), unproven.clone()],
        );
        assert_eq!(
            in_rusqlite(&database.path, &[seal]),
            [Err("leasehold: Implausible".to_owned())],
            "{unproven}"
        );
    }
}
