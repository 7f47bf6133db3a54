//! The cases as data.

use std::collections::BTreeMap;

use leasehold_core::lease::Authority;
use leasehold_core::time::{Drift, MILLISECOND_NS};
use leasehold_core::timing::Timing;
use leasehold_core::token::{Nonce, Token};
use serde_json::{Map, Value};

use super::key::{self, Age, Edit};
use super::{Entry, FILE, Outcome};
use crate::json::{decimal, hex, list, number, object, only, optional_text, small, text, token};

/// Several candidates, one key, and a sequence of steps in true time.
#[derive(Debug)]
pub struct Case {
    /// What the case shows.
    pub name: String,
    /// The public report that the sequence comes from.
    pub source: String,
    /// The digest of all that the candidates answer.
    pub digest: String,
    pub(super) candidates: BTreeMap<String, Candidate>,
    pub(super) start: Option<Vec<u8>>,
    pub(super) steps: Vec<Step>,
}

/// Who takes part.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// For people.
    pub holder: String,
    /// The process.
    pub instance: Nonce,
    /// Its spans.
    pub timing: Timing,
    /// Whose word ends another party's lease.
    pub authority: Authority,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) at_ms: u64,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// A candidate is told something, and must answer as the case says.
    Tell { who: String, told: Told, gives: Gives },
    /// A candidate is only asked.
    Ask { who: String, may: May },
    /// The store performs a candidate's request.
    Perform { who: String, op: Option<u32>, age: Option<Age> },
    /// Somebody else changes the store.
    Edit(Edit),
    /// A candidate's clocks jump.
    Clock { who: String, mono_ms: i64, wall_ms: i64 },
}

/// An input, as far as it is known before the case runs.
#[derive(Debug)]
pub(super) enum Told {
    Tick,
    Answer { op: Option<u32>, outcome: Performed },
    Sealed,
    SealRefused { floor: Option<u64> },
    Drained,
    Resign { to: Option<String> },
    Stop,
    Disrupted,
    Hint(Hint),
    Adopt(Token),
}

#[derive(Debug)]
pub(super) enum Performed {
    /// What the store said when it performed the request.
    Kept,
    /// Whatever the store did.
    As(Outcome),
}

#[derive(Debug)]
pub(super) enum Hint {
    Nothing,
    Key,
    Patched(Map<String, Value>),
    Other(Entry),
}

/// What a candidate must answer.
#[derive(Debug)]
pub(super) struct Gives {
    pub(super) event: Value,
    pub(super) request: Value,
    pub(super) wake: Option<Value>,
    pub(super) may: May,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct May {
    pub(super) start: Option<bool>,
    pub(super) finish: Option<bool>,
}

/// The cases of `tests/vectors/lease.json`.
///
/// # Panics
/// Where the file is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load() -> Vec<Case> {
    load_from(FILE)
}

/// The cases of a text.
///
/// # Panics
/// Where it is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load_from(file: &str) -> Vec<Case> {
    let file: Value = serde_json::from_str(file).expect("JSON");
    let timings: BTreeMap<&str, Timing> = file["timings"]
        .as_object()
        .expect("timings")
        .iter()
        .map(|(name, spelled)| (name.as_str(), timing(spelled)))
        .collect();
    list(&file["cases"]).map(|spelled| case(spelled, &timings)).collect()
}

/// A timing with every span in milliseconds.
fn timing(spelled: &Value) -> Timing {
    let span_ns = |key: &str| number(&spelled[key]) * MILLISECOND_NS;
    Timing {
        ttl_ms: small(&spelled["ttl_ms"]),
        renew_ns: span_ns("renew_ms"),
        attempt_ns: span_ns("attempt_ms"),
        tolerated: small(&spelled["tolerated"]),
        pause_ns: span_ns("pause_ms"),
        drain_ns: span_ns("drain_ms"),
        guard_ns: span_ns("guard_ms"),
        poll_ns: span_ns("poll_ms"),
        retry_ns: span_ns("retry_ms"),
        seal_within_ns: span_ns("seal_within_ms"),
        grace_ms: small(&spelled["grace_ms"]),
        sit_out_ns: span_ns("sit_out_ms"),
        drift: Drift::from_ppm(small(&spelled["drift_ppm"])).expect("a drift below one million"),
    }
}

fn case(spelled: &Value, timings: &BTreeMap<&str, Timing>) -> Case {
    object(spelled, &["name", "source", "machines", "start", "steps", "bytes"]);
    let machines = spelled["machines"].as_object().expect("machines");
    let candidates = machines.iter().map(|(who, spelled)| {
        object(spelled, &["holder", "instance", "timing", "authority"]);
        let candidate = Candidate {
            holder: text(&spelled["holder"]).to_owned(),
            instance: Nonce(hex(&spelled["instance"])),
            timing: timings[text(&spelled["timing"])],
            authority: authority(&spelled["authority"]),
        };
        (who.clone(), candidate)
    });
    let steps: Vec<Step> = list(&spelled["steps"]).map(step).collect();
    assert!(steps.is_sorted_by_key(|step| step.at_ms), "time goes back in {}", spelled["name"]);
    Case {
        name: text(&spelled["name"]).to_owned(),
        source: text(&spelled["source"]).to_owned(),
        digest: text(&spelled["bytes"]).to_owned(),
        candidates: candidates.collect(),
        start: (!spelled["start"].is_null()).then(|| record(&spelled["start"])),
        steps,
    }
}

fn authority(spelled: &Value) -> Authority {
    if spelled == "local" {
        return Authority::LocalObservation;
    }
    object(spelled, &["store_clock_error_ms"]);
    let error_ns = number(&spelled["store_clock_error_ms"]) * MILLISECOND_NS;
    Authority::StoreClock { error_ns }
}

fn step(spelled: &Value) -> Step {
    let has = |key| spelled.get(key).is_some();
    let who = || text(&spelled["who"]).to_owned();
    let op = || has("op").then(|| small(&spelled["op"]));
    let keys = |keys| object(spelled, keys);
    let action = if has("input") {
        keys(&["at_ms", "who", "input", "gives"]);
        Action::Tell { who: who(), told: told(&spelled["input"]), gives: gives(&spelled["gives"]) }
    } else if has("answer") {
        keys(&["at_ms", "who", "answer", "op", "gives"]);
        let told = Told::Answer { op: op(), outcome: performed(text(&spelled["answer"])) };
        Action::Tell { who: who(), told, gives: gives(&spelled["gives"]) }
    } else if has("perform") {
        keys(&["at_ms", "who", "perform", "op", "age"]);
        assert_eq!(spelled["perform"], true);
        Action::Perform { who: who(), op: op(), age: age(&spelled["age"]) }
    } else if has("store") {
        keys(&["at_ms", "store"]);
        Action::Edit(edit(&spelled["store"]))
    } else if has("clock") {
        keys(&["at_ms", "who", "clock"]);
        let clock = object(&spelled["clock"], &["mono_ms", "wall_ms"]);
        let shift =
            |key| clock.get(key).map_or(0, |shift| shift.as_i64().expect("whole milliseconds"));
        Action::Clock { who: who(), mono_ms: shift("mono_ms"), wall_ms: shift("wall_ms") }
    } else {
        keys(&["at_ms", "who", "ask"]);
        object(&spelled["ask"], &["may_start", "may_finish"]);
        Action::Ask { who: who(), may: may(&spelled["ask"]) }
    };
    Step { at_ms: number(&spelled["at_ms"]), action }
}

fn told(spelled: &Value) -> Told {
    if let Some(word) = spelled.as_str() {
        return match word {
            "tick" => Told::Tick,
            "resign" => Told::Resign { to: None },
            "stop" => Told::Stop,
            "disrupted" => Told::Disrupted,
            "sealed" => Told::Sealed,
            "drained" => Told::Drained,
            _ => panic!("no such input: {word}"),
        };
    }
    match only(spelled) {
        ("resign", to) => Told::Resign { to: Some(text(to).to_owned()) },
        ("seal_refused", floor) => {
            Told::SealRefused { floor: (!floor.is_null()).then(|| decimal(floor)) }
        }
        ("hint", hint) => Told::Hint(self::hint(hint)),
        ("adopt", adopted) => Told::Adopt(token(adopted)),
        (word, _) => panic!("no such input: {word}"),
    }
}

fn hint(spelled: &Value) -> Hint {
    let other = |value| Hint::Other(Entry { value, version: key::version(0), age_ns: None });
    if spelled == "nothing" {
        Hint::Nothing
    } else if spelled == "key" {
        Hint::Key
    } else if let Some(patch) = spelled.get("patch") {
        Hint::Patched(key::fields(patch))
    } else if let Some(bytes) = spelled.get("bytes") {
        other(text(bytes).into())
    } else {
        other(record(spelled))
    }
}

fn performed(word: &str) -> Performed {
    Performed::As(match word {
        "performed" => return Performed::Kept,
        "absent" => Outcome::Absent,
        "conflict" => Outcome::Conflict,
        "undecided" => Outcome::Undecided,
        "unavailable" => Outcome::Unavailable,
        "unknown" => Outcome::Unknown,
        "gone" => Outcome::Gone,
        _ => panic!("no such answer: {word}"),
    })
}

fn age(spelled: &Value) -> Option<Age> {
    match optional_text(spelled) {
        "" => None,
        "none" => Some(Age::None),
        "dead" => Some(Age::Dead),
        word => panic!("no such age: {word}"),
    }
}

fn edit(spelled: &Value) -> Edit {
    match spelled.as_str() {
        Some("delete") => return Edit::Delete,
        Some("keep") => return Edit::Keep,
        Some("restore") => return Edit::Restore,
        _ => {}
    }
    match only(spelled) {
        ("put", fields) => Edit::Put(record(fields)),
        ("patch", fields) => Edit::Patch(key::fields(fields)),
        ("bytes", bytes) => Edit::Put(text(bytes).into()),
        (word, _) => panic!("no such change: {word}"),
    }
}

fn record(spelled: &Value) -> Vec<u8> {
    assert!(spelled.get("token").is_some(), "a record without a token: {spelled}");
    key::bytes(&key::fields(spelled))
}

fn gives(spelled: &Value) -> Gives {
    let keys = object(spelled, &["event", "request", "wake_ms", "may_start", "may_finish"]);
    assert!(keys.contains_key("event") && keys.contains_key("request"), "{spelled}");
    Gives {
        event: spelled["event"].clone(),
        request: spelled["request"].clone(),
        wake: keys.get("wake_ms").cloned(),
        may: may(spelled),
    }
}

fn may(spelled: &Value) -> May {
    let answer = |key: &str| spelled.get(key).map(|may| may.as_bool().expect("true or false"));
    May { start: answer("may_start"), finish: answer("may_finish") }
}
