//! The lease's vectors against the core itself, and the vectors against their own promise.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{self, Config, Elector, TABLE};
use leasehold_core::observe::Event;
use leasehold_core::record;
use leasehold_core::store::{self, Body, OpId};
use leasehold_core::time::{Clocks, MILLISECOND_NS, Now};
use leasehold_core::wire;
use leasehold_tests::lease_vectors::{
    self, Answer, Candidate, Case, Entry, FILE, Input, Machine, NAME, Outcome, Run, Status,
};

/// The core with the least of a host: it keeps whom an offer is for, and writes the record.
struct Native {
    elector: Elector<Arc<Config>>,
    heir: Option<String>,
}

impl Native {
    fn open(candidate: &Candidate, now: Now) -> Self {
        let Candidate { holder, instance, timing, authority } = candidate;
        let clocks = Clocks { wall: true, resolution_ns: MILLISECOND_NS };
        let holder = Label::new(holder).unwrap();
        let config = Config::new(*instance, holder, *timing, *authority, clocks).unwrap();
        Self { elector: Elector::new(Arc::new(config), now, 1), heir: None }
    }
}

impl Machine for Native {
    fn step(&mut self, now: Now, input: &Input) -> Answer {
        if let Input::Resign { to } = input {
            self.heir.clone_from(to);
        }
        let step = self.elector.step(now, to_core(input));
        if let Some(Event::Demoted { to: Some(to), .. }) = step.event {
            self.heir = Some(to.to_string());
        }
        let draft = step.request.and_then(|request| match request.body {
            Body::Write { draft, .. } => Some(draft),
            Body::Read => None,
        });
        let value = draft.map(|draft| {
            let heir = self.heir.as_deref().map(|to| Label::new(to).unwrap());
            let holder = self.elector.config().holder();
            let record = draft.record(Name::new(NAME).unwrap(), holder, heir);
            record::encode(&record, &mut [0; record::MAX_LEN]).unwrap().to_vec()
        });
        let message = wire::encode_step(&step, &mut [0; wire::MAX_LEN]).unwrap().to_vec();
        Answer { message, value }
    }

    fn status(&mut self, now: Now) -> Status {
        Status {
            state: self.elector.state(),
            may_start: self.elector.may_start(now),
            may_finish: self.elector.may_finish(now),
        }
    }
}

fn to_core(input: &Input) -> lease::Input<'_> {
    match input {
        Input::Tick => lease::Input::Tick,
        Input::Done { op, outcome, salt } => {
            lease::Input::Done { op: OpId(*op), outcome: to_outcome(outcome), salt: *salt }
        }
        Input::Sealed(token) => lease::Input::Sealed(*token),
        Input::SealRefused { token, floor } => {
            lease::Input::SealRefused { token: *token, floor: *floor }
        }
        Input::Drained(token) => lease::Input::Drained(*token),
        Input::Resign { to } => {
            lease::Input::Resign { to: to.as_deref().map(|to| Label::new(to).unwrap()) }
        }
        Input::Stop => lease::Input::Stop,
        Input::Disrupted => lease::Input::Disrupted,
        Input::Hint(entry) => lease::Input::Hint(entry.as_ref().map(to_entry)),
        Input::Adopt(token) => lease::Input::Adopt(*token),
    }
}

fn to_outcome(outcome: &Outcome) -> store::Outcome<'_> {
    match outcome {
        Outcome::Absent => store::Outcome::Absent,
        Outcome::Entry(entry) => store::Outcome::Entry(to_entry(entry)),
        Outcome::Applied(version) => store::Outcome::Applied(*version),
        Outcome::Conflict => store::Outcome::Conflict,
        Outcome::Undecided => store::Outcome::Undecided,
        Outcome::Unavailable => store::Outcome::Unavailable,
        Outcome::Unknown => store::Outcome::Unknown,
        Outcome::Gone => store::Outcome::Gone,
    }
}

fn to_entry(entry: &Entry) -> store::Entry<'_> {
    store::Entry {
        record: record::decode_named(NAME, &entry.value),
        version: entry.version,
        age_ns: entry.age_ns,
    }
}

#[test]
fn the_core_answers_as_the_vectors_demand() {
    let cases = lease_vectors::load();
    let runs = run_all(&cases);
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        return bless(&cases, &runs);
    }
    for (case, run) in cases.iter().zip(&runs) {
        assert_eq!(case.digest, run.digest, "{}: the messages have other bytes", case.name);
    }
}

/// Writes the digests that came into the file, and nothing else.
fn bless(cases: &[Case], runs: &[Run]) {
    const KEY: &str = "\n      \"bytes\": \"";
    let parts: Vec<&str> = FILE.split(KEY).collect();
    assert_eq!(parts.len(), cases.len() + 1, "each case has its digest on a line of its own");
    let mut blessed = parts[0].to_owned();
    for ((case, run), rest) in cases.iter().zip(runs).zip(&parts[1..]) {
        blessed += &format!("{KEY}{}{}", run.digest, &rest[case.digest.len()..]);
    }
    fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/lease.json"), blessed).unwrap();
}

fn run_all(cases: &[Case]) -> Vec<Run> {
    let mut faults = String::new();
    let runs = cases.iter().filter_map(|case| {
        lease_vectors::run(case, Native::open).map_err(|fault| faults += &format!("\n{fault}")).ok()
    });
    let runs = runs.collect();
    assert!(faults.is_empty(), "the core answers otherwise:{faults}");
    runs
}

#[test]
fn the_vectors_take_every_row_of_the_transition_table() {
    let runs = run_all(&lease_vectors::load());
    let taken: BTreeSet<_> = runs.iter().flat_map(|run| &run.moves).copied().collect();
    let rows = TABLE.iter().map(|(from, _, to)| (*from, *to));
    let missing: Vec<_> = rows.filter(|row| !taken.contains(row)).collect();
    assert_eq!(missing, []);
}

#[test]
fn the_vectors_show_every_input_outcome_event_reason_end_and_fault() {
    let all = [
        "input Tick Done Sealed SealRefused Drained Resign Stop Disrupted Hint Adopt",
        "outcome Absent Entry Applied Conflict Undecided Unavailable Unknown Gone",
        "event Standby Elected Leading Renewed RenewalLate Demoted Ended StoreDown StoreUp",
        "event StoreFault Stopped",
        "reason DeadlinePassed RivalSeen Forced RecordGone Refused SealFailed Twin Disrupted",
        "reason Resigned Asked Stopped",
        "how Released Offered Expired DrainTimeout Lost",
        "fault RecordGone Malformed Newer ForeignLineage WentBack BeyondMaxAdvance Exhausted",
    ];
    let all = all.iter().flat_map(|line| {
        let (kind, names) = line.split_once(' ').unwrap();
        names.split(' ').map(move |name| format!("{kind} {name}"))
    });
    let runs = run_all(&lease_vectors::load());
    let shown: BTreeSet<_> = runs.into_iter().flat_map(|run| run.shown).collect();
    assert_eq!(shown, all.collect());
}

#[test]
fn every_case_has_a_name_of_its_own_and_a_source() {
    let cases = lease_vectors::load();
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.iter().all(|case| !case.source.is_empty()));
}

/// Each kind of demand once, turned into another.
#[test]
fn a_vector_that_demands_something_else_fails() {
    let turned = [
        (r#""event": {"elected": {}}"#, r#""event": null"#),
        (r#""event": null"#, r#""event": {"stopped": {}}"#),
        (r#""alive": true"#, r#""alive": false"#),
        (r#""holder": "web-1", "alive""#, r#""holder": "web-9", "alive""#),
        (r#""how": "Released""#, r#""how": "Expired""#),
        (r#""reason": "Twin""#, r#""reason": "RivalSeen""#),
        (r#""name": "WentBack""#, r#""name": "RecordGone""#),
        (r#""stop_at_ms": 9301"#, r#""stop_at_ms": 9302"#),
        (r#""until_ms": 12301"#, r#""until_ms": 12300"#),
        (r#""request": "read""#, r#""request": null"#),
        (r#""request": null"#, r#""request": "read""#),
        (
            r#""request": {"write": "held", "term": "8"}"#,
            r#""request": {"write": "held", "term": "9"}"#,
        ),
        (r#""write": "offered""#, r#""write": "released""#),
        (r#""to": "web-2""#, r#""to": "web-3""#),
        (r#""wake_ms": "idle""#, r#""wake_ms": "now""#),
        (r#""may_start": true"#, r#""may_start": false"#),
        (r#""may_finish": false"#, r#""may_finish": true"#),
    ];
    for (demand, opposite) in turned {
        let (before, after) = FILE.split_once(demand).unwrap();
        let cases = lease_vectors::load_from(&format!("{before}{opposite}{after}"));
        let failed = cases.iter().filter(|case| lease_vectors::run(case, Native::open).is_err());
        assert_eq!(failed.count(), 1, "{demand} as {opposite}");
    }
}
