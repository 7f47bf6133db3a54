//! The timing's vectors: budgets with their plans or refusals, and timings made by hand.
//!
//! A claimant implements [`Rules`]; [`check`] compares.

use leasehold_core::lease::Authority;
use leasehold_core::time::Drift;
use leasehold_core::timing::{Budget, Misuse, Plan, Refusal, Timing};
use serde_json::Value;

use crate::json::{list, number, object, only, small, text};

/// The text of `tests/vectors/timing.json`.
pub const FILE: &str = include_str!("../vectors/timing.json");

/// Whatever derives and judges timings.
pub trait Rules {
    /// The spans for a budget.
    fn derive(&mut self, budget: &Budget) -> Result<Plan, Refusal>;

    /// Whether spans work together.
    fn check(&mut self, timing: &Timing, resolution_ns: u64) -> Result<(), Misuse>;
}

/// All of it.
#[derive(Debug)]
pub struct Vectors {
    /// What a lease has to achieve.
    pub budgets: Vec<Derived>,
    /// Spans made by hand.
    pub timings: Vec<Judged>,
}

/// A budget, and what has to come of it.
#[derive(Debug)]
pub struct Derived {
    /// What it shows.
    pub name: String,
    /// What is asked for.
    pub budget: Budget,
    /// The answer.
    pub gives: Result<Plan, Refusal>,
}

/// A timing, and whether it is accepted.
#[derive(Debug)]
pub struct Judged {
    /// What it shows.
    pub name: String,
    /// The spans.
    pub timing: Timing,
    /// The coarsest step of a clock.
    pub resolution_ns: u64,
    /// The answer.
    pub gives: Result<(), Misuse>,
}

/// Compares what `rules` answer with what the vectors demand.
///
/// # Panics
/// At the first difference; the message names the vector.
pub fn check(rules: &mut impl Rules, vectors: &Vectors) {
    for Derived { name, budget, gives } in &vectors.budgets {
        assert_eq!(rules.derive(budget), *gives, "{name}");
    }
    for Judged { name, timing, resolution_ns, gives } in &vectors.timings {
        assert_eq!(rules.check(timing, *resolution_ns), *gives, "{name}");
    }
}

/// The vectors.
///
/// # Panics
/// Where the file is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load() -> Vectors {
    load_from(FILE)
}

/// The vectors of a text.
///
/// # Panics
/// Where it is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load_from(file: &str) -> Vectors {
    let file: Value = serde_json::from_str(file).expect("JSON");
    object(&file, &["budgets", "timings"]);
    Vectors {
        budgets: list(&file["budgets"]).map(derived).collect(),
        timings: list(&file["timings"]).map(judged).collect(),
    }
}

fn derived(spelled: &Value) -> Derived {
    let keys = object(spelled, &["name", "budget", "plan", "refusal"]);
    let gives = match keys.get("refusal") {
        Some(refusal) => Err(self::refusal(refusal)),
        None => Ok(plan(&spelled["plan"])),
    };
    Derived { name: text(&spelled["name"]).to_owned(), budget: budget(&spelled["budget"]), gives }
}

fn judged(spelled: &Value) -> Judged {
    let keys = object(spelled, &["name", "timing", "resolution_ns", "accepted", "misuse"]);
    let gives = match keys.get("misuse") {
        Some(misuse) => Err(self::misuse(misuse)),
        None => {
            assert_eq!(spelled["accepted"], true, "{spelled}");
            Ok(())
        }
    };
    Judged {
        name: text(&spelled["name"]).to_owned(),
        timing: timing(&spelled["timing"]),
        resolution_ns: span(&spelled["resolution_ns"]),
        gives,
    }
}

fn budget(spelled: &Value) -> Budget {
    let authority = match &spelled["authority"] {
        local if local == "local" => Authority::LocalObservation,
        clock => Authority::StoreClock { error_ns: span(&clock["store_clock_error_ns"]) },
    };
    Budget {
        detection_ns: span(&spelled["detection_ns"]),
        p50_ns: span(&spelled["p50_ns"]),
        p99_ns: span(&spelled["p99_ns"]),
        pause_ns: span(&spelled["pause_ns"]),
        drain_ns: span(&spelled["drain_ns"]),
        tolerated: small(&spelled["tolerated"]),
        standbys: small(&spelled["standbys"]),
        drift: drift(spelled),
        resolution_ns: span(&spelled["resolution_ns"]),
        authority,
    }
}

fn plan(spelled: &Value) -> Plan {
    Plan {
        timing: timing(&spelled["timing"]),
        takeover_ns: span(&spelled["takeover_ns"]),
        self_fence_ns: span(&spelled["self_fence_ns"]),
        pause_ns: span(&spelled["pause_ns"]),
        lost_renewals: span(&spelled["lost_renewals"]),
        holder_per_hour: span(&spelled["holder_per_hour"]),
        standbys_per_hour: span(&spelled["standbys_per_hour"]),
    }
}

fn timing(spelled: &Value) -> Timing {
    Timing {
        ttl_ms: small(&spelled["ttl_ms"]),
        renew_ns: span(&spelled["renew_ns"]),
        attempt_ns: span(&spelled["attempt_ns"]),
        tolerated: small(&spelled["tolerated"]),
        pause_ns: span(&spelled["pause_ns"]),
        drain_ns: span(&spelled["drain_ns"]),
        guard_ns: span(&spelled["guard_ns"]),
        poll_ns: span(&spelled["poll_ns"]),
        retry_ns: span(&spelled["retry_ns"]),
        seal_within_ns: span(&spelled["seal_within_ns"]),
        grace_ms: small(&spelled["grace_ms"]),
        sit_out_ns: span(&spelled["sit_out_ns"]),
        drift: drift(spelled),
    }
}

fn drift(spelled: &Value) -> Drift {
    Drift::from_ppm(small(&spelled["drift_ppm"])).expect("a drift below one million")
}

fn refusal(spelled: &Value) -> Refusal {
    match only(spelled) {
        ("TooFewTolerated", nearest) => {
            Refusal::TooFewTolerated { least: small(&nearest["least"]) }
        }
        ("Resolution", nearest) => Refusal::Resolution { most_ns: span(&nearest["most_ns"]) },
        ("TooManyTolerated", nearest) => {
            Refusal::TooManyTolerated { most: small(&nearest["most"]) }
        }
        ("Operation", nearest) => Refusal::Operation { most_ns: span(&nearest["most_ns"]) },
        ("Standbys", nearest) => Refusal::Standbys { most: small(&nearest["most"]) },
        ("Pause", nearest) => Refusal::Pause { most_ns: span(&nearest["most_ns"]) },
        ("Drain", nearest) => Refusal::Drain { most_ns: span(&nearest["most_ns"]) },
        ("Detection", nearest) => Refusal::Detection { least_ns: span(&nearest["least_ns"]) },
        (word, _) => panic!("no such refusal: {word}"),
    }
}

fn misuse(spelled: &Value) -> Misuse {
    match only(spelled) {
        ("Ttl", _) => Misuse::Ttl,
        ("Tolerated", _) => Misuse::Tolerated,
        ("Attempt", nearest) => Misuse::Attempt { attempt_ns: span(&nearest["attempt_ns"]) },
        ("Guard", nearest) => Misuse::Guard { guard_ns: span(&nearest["guard_ns"]) },
        ("Renewal", nearest) => Misuse::Renewal { renew_ns: span(&nearest["renew_ns"]) },
        ("TooShort", nearest) => Misuse::TooShort { ttl_ms: span(&nearest["ttl_ms"]) },
        ("Poll", nearest) => Misuse::Poll { poll_ns: span(&nearest["poll_ns"]) },
        ("Retry", _) => Misuse::Retry,
        ("SealWithin", _) => Misuse::SealWithin,
        ("Grace", nearest) => Misuse::Grace { grace_ms: span(&nearest["grace_ms"]) },
        ("SitOut", nearest) => Misuse::SitOut { sit_out_ns: span(&nearest["sit_out_ns"]) },
        (word, _) => panic!("no such misuse: {word}"),
    }
}

/// A number, or a decimal text from 2^53 on, which not every language's JSON keeps.
fn span(spelled: &Value) -> u64 {
    match spelled.as_str() {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("not a decimal number: {text}")),
        None => number(spelled),
    }
}
