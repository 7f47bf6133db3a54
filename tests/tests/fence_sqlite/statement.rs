//! Vectors as SQL: an operation is a statement, an answer is a verdict.

use leasehold_core::fence::{Advance, Digest, FenceRow, StepRow};
use leasehold_core::guard;
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
    match operation {
        Operation::Seal { token, advance } => Statement::new(
            "INSERT INTO leasehold_seal(resource, token, proven) VALUES (?, ?, ?)",
            [
                json!(resource),
                json!(token.to_string()),
                json!(u8::from(*advance == Advance::Proven)),
            ],
        ),
        Operation::Write { token, step, digest } => {
            admit(resource, &json!(token.to_string()), &json!(step), &hex(*digest))
        }
    }
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
    let row = state.row.unwrap_or(FenceRow::NEW);
    let refused = answer.as_ref().err().map(|error| {
        error
            .strip_prefix(guard::MESSAGE_PREFIX)
            .unwrap_or_else(|| panic!("not a verdict: {error}"))
    });
    let floor = || vec![("floor", row.floor.to_string())];
    let (name, fields) = match (operation, refused) {
        (Operation::Seal { .. }, None) => {
            let prev_floor = before.row.expect("a row was sealed").floor;
            let last_seq = ("last_seq", row.seq.to_string());
            if row.floor == prev_floor {
                ("AlreadySealed", vec![last_seq])
            } else {
                ("Sealed", vec![("prev_floor", prev_floor.to_string()), last_seq])
            }
        }
        (Operation::Write { .. }, None) => ("Apply", vec![("seq", row.seq.to_string())]),
        (Operation::Write { token, step, .. }, Some("AlreadyApplied")) => {
            let stale_holder = token.term.get() < row.floor;
            let fields = vec![
                ("seq", state.steps[step].seq.to_string()),
                ("stale_holder", stale_holder.to_string()),
            ];
            ("AlreadyApplied", fields)
        }
        (_, Some(name @ ("Gone" | "Fenced" | "Collision" | "NotSealed"))) => (name, floor()),
        (_, Some(name)) => (name, vec![]),
    };
    Observed { verdict: Verdict::new(name, &fields), state }
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
