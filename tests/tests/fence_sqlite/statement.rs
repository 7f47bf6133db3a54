//! Vectors as SQL: an operation is a statement, an answer is a verdict.

use leasehold_core::fence::{Advance, Digest, FenceRow, StepRow};
use leasehold_core::guard;
use leasehold_core::token::Token;
use leasehold_tests::fence_vectors::{self, Observed, Operation, State, Verdict};
use serde_json::{Value, json};

use crate::engine::Answer;

#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) arguments: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str, arguments: impl Into<Vec<Value>>) -> Self {
        Self { sql, arguments: arguments.into() }
    }
}

pub(crate) fn store(resource: &str, state: &State) -> Vec<Statement> {
    let row = state.row.map(|row| {
        let FenceRow { lineage, floor, nonce, retired, seq } = row;
        let (lineage, nonce) =
            if floor == 0 { Default::default() } else { (lineage.to_string(), nonce.to_string()) };
        Statement::new(
            "INSERT INTO leasehold_fence(resource, lineage, floor, nonce, retired, seq) VALUES (?, ?, ?, ?, ?, ?)",
            [json!(resource), json!(lineage), json!(floor), json!(nonce), json!(u8::from(retired)), json!(seq)],
        )
    });
    let steps = state.steps.iter().map(|(step, row)| {
        let StepRow { op_digest, seq, cancelled } = *row;
        Statement::new(
            "INSERT INTO leasehold_step(resource, step, op_digest, seq, cancelled) VALUES (?, ?, ?, ?, ?)",
            [json!(resource), json!(step), hex(op_digest), json!(seq), json!(u8::from(cancelled))],
        )
    });
    row.into_iter().chain(steps).collect()
}

pub(crate) fn request(resource: &str, operation: &Operation) -> Statement {
    let text = |token: &Token| json!(token.to_string());
    let proven = |advance: &Advance| json!(u8::from(*advance == Advance::Proven));
    match operation {
        Operation::Seal { token, advance } => Statement::new(
            "INSERT INTO leasehold_seal(resource, token, proven) VALUES (?, ?, ?)",
            [json!(resource), text(token), proven(advance)],
        ),
        Operation::Write { token, step, digest } => {
            admit(resource, &text(token), &json!(step), &hex(*digest))
        }
        Operation::Read { token, advance } => Statement::new(
            "INSERT INTO leasehold_read(resource, token, proven) VALUES (?, ?, ?)",
            [json!(resource), text(token), proven(advance)],
        ),
        Operation::Cancel { token, step } => cancel(resource, &text(token), &json!(step)),
        Operation::Retire { token } => Statement::new(
            "INSERT INTO leasehold_retire(resource, token) VALUES (?, ?)",
            [json!(resource), text(token)],
        ),
        Operation::Recover { token } => Statement::new(
            "INSERT INTO leasehold_recover(resource, token) VALUES (?, ?)",
            [json!(resource), text(token)],
        ),
        Operation::Adopt { token } => Statement::new(
            "INSERT INTO leasehold_adopt(resource, token) VALUES (?, ?)",
            [json!(resource), text(token)],
        ),
    }
}

pub(crate) fn cancel(resource: &str, token: &Value, step: &Value) -> Statement {
    Statement::new(
        "INSERT INTO leasehold_cancel(resource, token, step) VALUES (?, ?, ?)",
        [json!(resource), token.clone(), step.clone()],
    )
}

pub(crate) fn admit(resource: &str, token: &Value, step: &Value, digest: &Value) -> Statement {
    Statement::new(
        "INSERT INTO leasehold_admit(resource, token, step, digest) VALUES (?, ?, ?, ?)",
        [json!(resource), token.clone(), step.clone(), digest.clone()],
    )
}

fn hex(digest: Option<Digest>) -> Value {
    json!(digest.map_or_else(String::new, |digest| digest.to_string()))
}

pub(crate) fn stored(resource: &str) -> Statement {
    Statement::new(
        "SELECT json_object( \
           'row', (SELECT json_array(token, CAST(seq AS TEXT), retired) FROM leasehold_floor WHERE resource = ?1), \
           'steps', (SELECT json_group_array(json_array(step, op_digest, CAST(seq AS TEXT), cancelled, effect_digest)) \
                     FROM leasehold_step WHERE resource = ?1))",
        [json!(resource)],
    )
}

/// A verdict with its numbers, which SQL leaves in the rows.
pub(crate) fn observe(
    operation: &Operation,
    answer: &Answer,
    before: &State,
    stored: &Option<String>,
) -> Observed {
    let state = state(stored.as_ref().expect("one row"));
    let verdict = match answer {
        Ok(_) => success(operation, before, &state),
        Err(error) => {
            let name = error.strip_prefix(guard::MESSAGE_PREFIX);
            let name = name.unwrap_or_else(|| panic!("not a verdict: {error}"));
            refusal(operation, name, &state)
        }
    };
    Observed { verdict, state }
}

/// What a statement without an error did, by the rows before and after it.
fn success(operation: &Operation, before: &State, after: &State) -> Verdict {
    let (was, is) = (before.row.expect("a row before"), after.row.expect("a row"));
    let last_seq = || ("last_seq", is.seq.to_string());
    let moved = |name| Verdict::new(name, &[("prev_floor", was.floor.to_string()), last_seq()]);
    let already_sealed = || Verdict::new("AlreadySealed", &[last_seq()]);
    let numbered = |name| Verdict::new(name, &[("seq", is.seq.to_string())]);
    let same_token = (was.lineage, was.floor, was.nonce) == (is.lineage, is.floor, is.nonce);
    match operation {
        Operation::Seal { .. } | Operation::Read { .. } | Operation::Adopt { .. } if same_token => {
            already_sealed()
        }
        Operation::Seal { .. } | Operation::Read { .. } => moved("Sealed"),
        Operation::Adopt { .. } => moved("Adopted"),
        Operation::Recover { .. } if same_token => {
            Verdict::new("Kept", &[("floor", is.floor.to_string())])
        }
        Operation::Recover { .. } => moved("Recovered"),
        Operation::Write { .. } => numbered("Apply"),
        Operation::Cancel { .. } => numbered("Tombstoned"),
        Operation::Retire { .. } if was.retired => Verdict::new("AlreadyRetired", &[]),
        Operation::Retire { .. } => Verdict::new("Retired", &[]),
    }
}

fn refusal(operation: &Operation, name: &str, state: &State) -> Verdict {
    let floor = state.row.map_or(0, |row| row.floor);
    match (name, operation) {
        (
            "AlreadyApplied",
            Operation::Write { token, step, .. } | Operation::Cancel { token, step },
        ) => {
            let stale_holder = ("stale_holder", (token.term.get() < floor).to_string());
            Verdict::new(name, &[("seq", state.steps[step].seq.to_string()), stale_holder])
        }
        ("Gone" | "Fenced" | "Collision" | "NotSealed", _) => {
            Verdict::new(name, &[("floor", floor.to_string())])
        }
        _ => Verdict::new(name, &[]),
    }
}

fn state(stored: &str) -> State {
    let nested = |value: &Value| match value {
        Value::String(text) => serde_json::from_str(text).expect("nested JSON"),
        other => other.clone(),
    };
    let stored: Value = serde_json::from_str(stored).expect("JSON");
    let row = nested(&stored["row"]);
    let steps = nested(&stored["steps"]);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| text(value).parse().expect("a number");
    State {
        row: (!row.is_null())
            .then(|| fence_vectors::row(&text(&row[0]), number(&row[1]), row[2] == 1)),
        steps: steps
            .as_array()
            .expect("steps")
            .iter()
            .map(|step| {
                assert_eq!(step[4], "", "the guard knows no effect digest");
                let op_digest = fence_vectors::digest(&text(&step[1]));
                (
                    text(&step[0]),
                    StepRow { op_digest, seq: number(&step[2]), cancelled: step[3] == 1 },
                )
            })
            .collect(),
    }
}
