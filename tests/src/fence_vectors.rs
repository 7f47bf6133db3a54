//! The fence's vectors: loaded once, run by anything that claims to be a fence.
//!
//! A runner turns cases into [`Observed`] answers, one per operation; [`check`] compares.

use std::collections::BTreeMap;

use leasehold_core::fence::{self, Advance, Digest, FenceRow, SealVerdict, StepRow, WriteVerdict};
use leasehold_core::token::Token;
use serde_json::Value;

/// `tests/vectors/fence.json`.
#[derive(Debug)]
pub struct Vectors {
    /// Texts that are no tokens.
    pub not_tokens: Vec<String>,
    /// The sequences.
    pub cases: Vec<Case>,
}

/// One resource, from a stored start through a sequence of operations.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the case shows.
    pub name: String,
    /// What is stored before the first operation.
    pub start: State,
    /// What is done, and what must come of it.
    pub operations: Vec<(Operation, Observed)>,
}

/// What is stored of one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The resource's row; none: never created.
    pub row: Option<FenceRow>,
    /// The rows of its steps.
    pub steps: BTreeMap<String, StepRow>,
}

/// A request to the guard.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Raise the floor.
    Seal {
        /// Whose seal.
        token: Token,
        /// How far it may go.
        advance: Advance,
    },
    /// Admit a write.
    Write {
        /// Whose write.
        token: Token,
        /// Its step; empty: none.
        step: String,
        /// What the step does.
        digest: Option<Digest>,
    },
}

/// A verdict as vectors spell it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The verdict's name.
    pub name: String,
    /// Its fields as text.
    pub fields: BTreeMap<String, String>,
}

/// What came of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The answer.
    pub verdict: Verdict,
    /// What is stored afterwards.
    pub state: State,
}

/// The vectors.
///
/// # Panics
/// Where the file is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load() -> Vectors {
    let file: Value =
        serde_json::from_str(include_str!("../vectors/fence.json")).expect("fence.json is JSON");
    Vectors {
        not_tokens: list(&file["not_tokens"]).map(|token| text(token).to_owned()).collect(),
        cases: list(&file["cases"]).map(case).collect(),
    }
}

/// Compares what a runner observed with what the vectors demand.
///
/// # Panics
/// At the first difference; the message names runner, case and operation.
pub fn check(runner: &str, cases: &[Case], observed: &[Vec<Observed>]) {
    assert_eq!(cases.len(), observed.len(), "{runner}: cases answered");
    for (case, observed) in cases.iter().zip(observed) {
        assert_eq!(
            case.operations.len(),
            observed.len(),
            "{runner}: {}: operations answered",
            case.name
        );
        for (number, ((operation, expected), observed)) in
            case.operations.iter().zip(observed).enumerate()
        {
            assert_eq!(
                expected, observed,
                "{runner}: {}: operation {number}, {operation:?}",
                case.name
            );
        }
    }
}

impl State {
    /// Performs one operation as a host does: read the rows, ask the rule, store the rows.
    pub fn perform(&mut self, operation: &Operation) -> Verdict {
        match operation {
            Operation::Seal { token, advance } => {
                let (verdict, next) = fence::seal(self.row.as_ref(), *token, *advance);
                self.row = next.or(self.row);
                verdict.into()
            }
            Operation::Write { token, step, digest } => {
                let known = self.steps.get(step);
                let (verdict, admitted) = fence::admit(self.row.as_ref(), known, *token, *digest);
                if let Some(admitted) = admitted {
                    self.row = Some(admitted.row);
                    if !step.is_empty() {
                        self.steps.insert(step.clone(), admitted.step);
                    }
                }
                verdict.into()
            }
        }
    }
}

impl Verdict {
    /// A verdict from its parts.
    #[must_use]
    pub fn new(name: &str, fields: &[(&str, String)]) -> Self {
        let fields =
            fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { name: name.to_owned(), fields }
    }
}

impl From<SealVerdict> for Verdict {
    fn from(verdict: SealVerdict) -> Self {
        use SealVerdict::{
            AlreadySealed, Collision, Fenced, ForeignLineage, Gone, Implausible, NoResource, Sealed,
        };
        let fields: &[_] = match verdict {
            NoResource | ForeignLineage | Implausible => &[],
            Gone { floor } | Fenced { floor } | Collision { floor } => {
                &[("floor", floor.to_string())]
            }
            AlreadySealed { last_seq } => &[("last_seq", last_seq.to_string())],
            Sealed { prev_floor, last_seq } => {
                &[("prev_floor", prev_floor.to_string()), ("last_seq", last_seq.to_string())]
            }
        };
        Self::new(verdict.name(), fields)
    }
}

impl From<WriteVerdict> for Verdict {
    fn from(verdict: WriteVerdict) -> Self {
        use WriteVerdict::{
            AlreadyApplied, Apply, Cancelled, Collision, Fenced, ForeignLineage, Full, Gone,
            KeyReuse, NoResource, NotSealed,
        };
        let fields: &[_] = match verdict {
            NoResource | ForeignLineage | Cancelled | KeyReuse | Full => &[],
            NotSealed { floor } | Gone { floor } | Fenced { floor } | Collision { floor } => {
                &[("floor", floor.to_string())]
            }
            AlreadyApplied { seq, stale_holder } => {
                &[("seq", seq.to_string()), ("stale_holder", stale_holder.to_string())]
            }
            Apply { seq } => &[("seq", seq.to_string())],
        };
        Self::new(verdict.name(), fields)
    }
}

/// A resource's row from what databases and vectors store.
///
/// # Panics
/// Where `token` is neither empty nor a token.
#[must_use]
pub fn row(token: &str, seq: u64, retired: bool) -> FenceRow {
    if token.is_empty() {
        return FenceRow { seq, retired, ..FenceRow::NEW };
    }
    let Token { lineage, term, nonce } = token.parse().expect("a stored token");
    FenceRow { lineage, floor: term.get(), nonce, retired, seq }
}

/// A digest from what databases store; empty: none.
///
/// # Panics
/// Where `text` is neither empty nor a digest.
#[must_use]
pub fn digest(text: &str) -> Option<Digest> {
    (!text.is_empty()).then(|| text.parse().expect("a stored digest"))
}

fn case(case: &Value) -> Case {
    let steps = case["steps"].as_object().into_iter().flatten();
    let start = State {
        row: short_row(&case["row"]),
        steps: steps.map(|(step, row)| (step.clone(), step_row(row))).collect(),
    };
    let mut steps = start.steps.clone();
    let operations = list(&case["operations"]).map(|operation| {
        let verdict = verdict(&operation["gives"]);
        let row = short_row(&operation["row"]);
        let operation = self::operation(operation);
        if let Operation::Write { step, digest, .. } = &operation
            && verdict.name == "Apply"
            && !step.is_empty()
        {
            let seq = verdict.fields["seq"].parse().expect("a number");
            steps.insert(step.clone(), StepRow { op_digest: *digest, seq, cancelled: false });
        }
        (operation, Observed { verdict, state: State { row, steps: steps.clone() } })
    });
    Case { name: text(&case["name"]).to_owned(), operations: operations.collect(), start }
}

fn operation(operation: &Value) -> Operation {
    if let Some(token) = operation["seal"].as_str() {
        let advance =
            if operation["proven"] == true { Advance::Proven } else { Advance::default() };
        return Operation::Seal { token: long_token(token).parse().expect("a token"), advance };
    }
    Operation::Write {
        token: long_token(text(&operation["write"])).parse().expect("a token"),
        step: text(&operation["step"]).to_owned(),
        digest: digest(&text(&operation["digest"]).repeat(64)),
    }
}

fn verdict(gives: &Value) -> Verdict {
    let mut fields: BTreeMap<_, _> = gives
        .as_object()
        .expect("a verdict")
        .iter()
        .map(|(name, value)| {
            (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    Verdict { name: fields.remove("verdict").expect("a verdict's name"), fields }
}

fn short_row(stored: &Value) -> Option<FenceRow> {
    (!stored.is_null()).then(|| {
        let retired = stored["retired"].as_bool().expect("retired");
        row(&long_token(text(&stored["token"])), number(&stored["seq"]), retired)
    })
}

fn step_row(stored: &Value) -> StepRow {
    StepRow {
        op_digest: digest(&text(&stored["op_digest"]).repeat(64)),
        seq: number(&stored["seq"]),
        cancelled: stored["cancelled"].as_bool().expect("cancelled"),
    }
}

fn long_token(short: &str) -> String {
    match short.split('/').collect::<Vec<_>>()[..] {
        [lineage, term, nonce] => format!("{}/{term}/{}", lineage.repeat(32), nonce.repeat(16)),
        _ => short.to_owned(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

fn number(value: &Value) -> u64 {
    text(value).parse().expect("a number")
}
