//! The fence's vectors: loaded once, run by anything that claims to be a fence.
//!
//! A runner turns cases into [`Observed`] answers, one per operation; [`check`] compares.

use std::collections::BTreeMap;
use std::fmt::Debug;

use leasehold_core::fence::{self, Admitted, Advance, Digest, FenceRow, StepRow};
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
    /// Admit a read.
    Read {
        /// Whose read.
        token: Token,
        /// How far its seal may go.
        advance: Advance,
    },
    /// Rule a step out.
    Cancel {
        /// Whose cancellation.
        token: Token,
        /// The step; never empty.
        step: String,
    },
    /// Close the resource.
    Retire {
        /// Under which token.
        token: Token,
    },
    /// Mend a restored resource.
    Recover {
        /// The token in the lease's record.
        token: Token,
    },
    /// Bind the resource to a lease.
    Adopt {
        /// The lease's token.
        token: Token,
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

impl Operation {
    /// The verb, as vectors spell it.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Seal { .. } => "seal",
            Self::Write { .. } => "write",
            Self::Read { .. } => "read",
            Self::Cancel { .. } => "cancel",
            Self::Retire { .. } => "retire",
            Self::Recover { .. } => "recover",
            Self::Adopt { .. } => "adopt",
        }
    }
}

impl State {
    /// Performs one operation as a host does: read the rows, ask the rule, store the rows.
    pub fn perform(&mut self, operation: &Operation) -> Verdict {
        let row = self.row.as_ref();
        match operation {
            Operation::Seal { token, advance } => self.moved(fence::seal(row, *token, *advance)),
            Operation::Read { token, advance } => self.moved(fence::read(row, *token, *advance)),
            Operation::Retire { token } => self.moved(fence::retire(row, *token)),
            Operation::Recover { token } => self.moved(fence::recover(row, *token)),
            Operation::Adopt { token } => self.moved(fence::adopt(row, *token)),
            Operation::Write { token, step, digest } => {
                let known = self.steps.get(step);
                self.wrote(step, fence::admit(row, known, *token, *digest))
            }
            Operation::Cancel { token, step } => {
                let known = self.steps.get(step);
                self.wrote(step, fence::cancel(row, known, *token))
            }
        }
    }

    fn moved(&mut self, (verdict, next): (impl Debug, Option<FenceRow>)) -> Verdict {
        self.row = next.or(self.row);
        Verdict::of(&verdict)
    }

    fn wrote(
        &mut self,
        step: &str,
        (verdict, admitted): (impl Debug, Option<Admitted>),
    ) -> Verdict {
        if let Some(admitted) = admitted {
            self.store(step, admitted);
        }
        Verdict::of(&verdict)
    }

    /// Stores the rows of a write or a tombstone; a write without a step has no second row.
    pub fn store(&mut self, step: &str, admitted: Admitted) {
        self.row = Some(admitted.row);
        if !step.is_empty() {
            self.steps.insert(step.to_owned(), admitted.step);
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

    /// One of the rules' verdicts, all of which are a name, and perhaps fields of one word.
    ///
    /// # Panics
    /// Where it is not.
    #[must_use]
    pub fn of(verdict: &impl Debug) -> Self {
        let text = format!("{verdict:?}");
        let (name, fields) = text.split_once(" { ").unwrap_or((&text, ""));
        let fields = fields.trim_end_matches(" }").split(", ").filter(|field| !field.is_empty());
        let fields = fields.map(|field| {
            let (name, value) = field.split_once(": ").expect("a field");
            (name.to_owned(), value.to_owned())
        });
        Self { name: name.to_owned(), fields: fields.collect() }
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
        if let Some((step, row)) = stored_step(&operation, &verdict) {
            steps.insert(step, row);
        }
        (operation, Observed { verdict, state: State { row, steps: steps.clone() } })
    });
    Case { name: text(&case["name"]).to_owned(), operations: operations.collect(), start }
}

/// What the two verdicts that store a step have stored.
fn stored_step(operation: &Operation, verdict: &Verdict) -> Option<(String, StepRow)> {
    let (step, op_digest, cancelled) = match (operation, verdict.name.as_str()) {
        (Operation::Write { step, digest, .. }, "Apply") if !step.is_empty() => {
            (step, *digest, false)
        }
        (Operation::Cancel { step, .. }, "Tombstoned") => (step, None, true),
        _ => return None,
    };
    let seq = verdict.fields["seq"].parse().expect("a number");
    Some((step.clone(), StepRow { op_digest, seq, cancelled }))
}

fn operation(operation: &Value) -> Operation {
    const VERBS: [&str; 7] = ["seal", "write", "read", "cancel", "retire", "recover", "adopt"];
    let given = VERBS.iter().find_map(|verb| Some((*verb, operation[*verb].as_str()?)));
    let (verb, token) = given.unwrap_or_else(|| panic!("no verb: {operation}"));
    let token = long_token(token).parse().expect("a token");
    let advance = if operation["proven"] == true { Advance::Proven } else { Advance::default() };
    let step = || text(&operation["step"]).to_owned();
    match verb {
        "seal" => Operation::Seal { token, advance },
        "read" => Operation::Read { token, advance },
        "cancel" => Operation::Cancel { token, step: step() },
        "retire" => Operation::Retire { token },
        "recover" => Operation::Recover { token },
        "adopt" => Operation::Adopt { token },
        _ => Operation::Write {
            token,
            step: step(),
            digest: digest(&text(&operation["digest"]).repeat(64)),
        },
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
