//! What a typed caller cannot send is refused before any rule is asked.

use leasehold_tests::fence_vectors;
use serde_json::{Value, json};

use crate::database::{Database, refusal, token};
use crate::engine::{Engine, in_python, in_rusqlite, in_shell};
use crate::statement::{Statement, admit, cancel};

#[test]
fn what_is_no_token_is_refused_as_such_in_every_program() {
    let not_tokens = fence_vectors::load().not_tokens;
    let texts = not_tokens.iter().map(|token| json!(token));
    let others = [json!(null), json!(5), json!(5.5)];
    refused_everywhere("BadToken", texts.chain(others), |token| {
        let (r, proven) = (json!("r"), json!(0));
        [
            Statement::new(
                "INSERT INTO leasehold_seal VALUES (?, ?, ?)",
                [r.clone(), token.clone(), proven.clone()],
            ),
            Statement::new(
                "INSERT INTO leasehold_read VALUES (?, ?, ?)",
                [r.clone(), token.clone(), proven],
            ),
            Statement::new(
                "INSERT INTO leasehold_retire VALUES (?, ?)",
                [r.clone(), token.clone()],
            ),
            Statement::new(
                "INSERT INTO leasehold_recover VALUES (?, ?)",
                [r.clone(), token.clone()],
            ),
            Statement::new("INSERT INTO leasehold_adopt VALUES (?, ?)", [r, token.clone()]),
            admit("r", token, &json!(""), &json!("")),
            admit("missing", token, &json!(""), &json!("")),
            cancel("r", token, &json!("s")),
            cancel("missing", token, &json!("s")),
        ]
    });
}

#[test]
fn what_is_no_step_is_refused_as_such_in_every_program() {
    refused_everywhere("BadStep", [json!(null), json!(5.5)], |step| {
        [admit("r", &token(5), step, &json!("")), cancel("r", &token(5), step)]
    });
    // A write may go without a name; a cancellation has nothing else to go by.
    refused_everywhere("BadStep", [json!("")], |step| [cancel("r", &token(5), step)]);
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
    let blob = format!("CAST('{token}' AS BLOB)");
    for (insert, name) in [
        (format!("leasehold_seal VALUES ('r', {blob}, 0)"), "BadToken"),
        (format!("leasehold_read VALUES ('r', {blob}, 0)"), "BadToken"),
        (format!("leasehold_admit VALUES ('r', {blob}, '', '')"), "BadToken"),
        (format!("leasehold_cancel VALUES ('r', {blob}, 's')"), "BadToken"),
        (format!("leasehold_retire VALUES ('r', {blob})"), "BadToken"),
        (format!("leasehold_recover VALUES ('r', {blob})"), "BadToken"),
        (format!("leasehold_adopt VALUES ('r', {blob})"), "BadToken"),
        (format!("leasehold_admit VALUES ('r', '{token}', x'00', '')"), "BadStep"),
        (format!("leasehold_cancel VALUES ('r', '{token}', x'00')"), "BadStep"),
        (format!("leasehold_cancel VALUES ('r', '{token}', x'')"), "BadStep"),
        (format!("leasehold_admit VALUES ('r', '{token}', 's', x'')"), "BadDigest"),
    ] {
        assert_eq!(refusal(&format!("INSERT INTO {insert}")), name, "{insert}");
    }
}

#[test]
fn a_number_names_the_same_step_as_its_digits() {
    let database = Database::sealed_at(5);
    let script =
        [json!(42), json!("42"), json!(42)].map(|step| admit("r", &token(5), &step, &json!("")));
    let answers = in_rusqlite(&database.path, &script);
    let again = || Err("leasehold: AlreadyApplied".to_owned());
    assert_eq!(answers, [Ok(None), again(), again()]);

    let script = [json!(43), json!("43")].map(|step| cancel("r", &token(5), &step));
    let answers = in_rusqlite(&database.path, &script);
    assert_eq!(answers, [Ok(None), Err("leasehold: Cancelled".to_owned())]);
}

#[test]
fn a_seal_counts_as_proven_by_one_and_nothing_else() {
    let far = token(5_000_000);
    for unproven in [json!(0), json!(null), json!(2), json!("1"), json!("yes"), json!(-1)] {
        let database = Database::sealed_at(5);
        let script = [
            "INSERT INTO leasehold_seal VALUES (?, ?, ?)",
            "INSERT INTO leasehold_read VALUES (?, ?, ?)",
        ]
        .map(|sql| Statement::new(sql, [json!("r"), far.clone(), unproven.clone()]));
        let implausible = || Err("leasehold: Implausible".to_owned());
        assert_eq!(
            in_rusqlite(&database.path, &script),
            [implausible(), implausible()],
            "{unproven}"
        );
    }
}
