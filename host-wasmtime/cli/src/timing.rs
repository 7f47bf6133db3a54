//! `leasehold timing`: what a ttl does, and which ttl keeps a budget.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::lease::Authority;
use leasehold_core::record::MAX_TTL_MS;
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS};
use leasehold_core::timing::{Budget, Misuse, Plan, Span, Timing, derive};
use leasehold_host::Options;
use leasehold_host::clock::{Clock as _, SystemClock};
use leasehold_host::store::Sqlite;
use serde_json::{Value, json};

use crate::exit::{Failure, print};
use crate::options;
use crate::run::KILL_BUDGET;
use crate::spans::nanoseconds;

pub(crate) fn timing(options: &options::Timing) -> Result<ExitCode, Failure> {
    let run = Run {
        clocks: SystemClock.clocks(),
        authority: Sqlite::capabilities_here().authority(),
        grace: options.grace,
        standbys: options.standbys,
    };
    if let (Some(p50), Some(p99)) = (options.p50, options.p99)
        && p50 > p99
    {
        return Err(Failure::configuration(format!(
            "--p50 {} is over --p99 {}: if 99 of 100 operations take no longer than --p99, half of \
             them do not either; give the median as --p50, or leave it out",
            span(p50),
            span(p99)
        )));
    }
    match (options.detect, options.p99) {
        (Some(detect), Some(p99)) => {
            keep(&run, &run.budget(options, detect, p99), options.json)?;
        }
        _ => explain(&run, options.ttl, options.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What `run` does with a ttl.
fn explain(run: &Run, ttl: Duration, json: bool) -> Result<(), Failure> {
    let timing = run.timing(ttl);
    timing.check(run.clocks.resolution_ns).map_err(refused)?;
    let plan = run.plan(timing);
    if json {
        return print(json!({"run": run.line(&plan)}));
    }
    print(format!("{}\n{}", run.command(&plan), indented(&plan)))
}

/// The spans of a budget, and the ttl by which `run` keeps it.
fn keep(run: &Run, budget: &Budget, json: bool) -> Result<(), Failure> {
    let derived = derive(budget).map_err(|refusal| {
        Failure::configuration(format!("--detect: {refusal} ({})", drain_in_words()))
    })?;
    let kept = run.longest_ttl(budget).map(|timing| run.plan(timing));
    if json {
        let kept = kept.as_ref().map(|plan| run.line(plan));
        return print(json!({"derived": spans(&derived), "run": kept}));
    }
    let command = match &kept {
        Some(plan) => format!("{}\n{}", run.command(plan), indented(plan)),
        None => format!(
            "no ttl of `run` keeps this budget, since it makes all spans from the ttl: {}, or \
             embed the library with the spans below",
            run.remedy(budget)
        ),
    };
    print(format!("{command}\nderived from the budget, for the library\n{}", indented(&derived)))
}

/// `run` takes no such ttl and grace.
pub(crate) fn refused(misuse: Misuse) -> Failure {
    Failure::configuration(format!("--ttl and --grace: {misuse} ({})", drain_in_words()))
}

/// What `run` makes of its options on this machine.
struct Run {
    clocks: Clocks,
    authority: Authority,
    grace: Duration,
    standbys: u32,
}

impl Run {
    fn drain(&self) -> Duration {
        self.grace.saturating_add(KILL_BUDGET)
    }

    fn timing(&self, ttl: Duration) -> Timing {
        Options { ttl, drain: self.drain(), ..Options::new("") }.timing(self.clocks)
    }

    fn plan(&self, timing: Timing) -> Plan {
        Plan::of(timing, self.authority, self.standbys)
    }

    fn budget(&self, options: &options::Timing, detect: Duration, p99: Duration) -> Budget {
        Budget {
            detection_ns: nanoseconds(detect),
            p50_ns: nanoseconds(options.p50.unwrap_or(p99)),
            p99_ns: nanoseconds(p99),
            pause_ns: nanoseconds(options.pause.unwrap_or_default()),
            drain_ns: nanoseconds(self.drain()),
            tolerated: options.tolerate.unwrap_or(2),
            standbys: self.standbys,
            drift: Drift::DEFAULT,
            resolution_ns: self.clocks.resolution_ns,
            authority: self.authority,
        }
    }

    /// The longest ttl that replaces a dead holder in time, in whole seconds where they do, if it
    /// has room for the rest of the budget: no shorter one has more.
    fn longest_ttl(&self, budget: &Budget) -> Option<Timing> {
        let in_time = |timing: &Timing| timing.takeover_ns(budget.authority) <= budget.detection_ns;
        // What is too short even for the grace is not too long.
        let longest_ms = self.longest(|timing| !self.works(timing) || in_time(timing));
        let choices = [longest_ms / 1000 * 1000, longest_ms].map(|ttl_ms| self.of(ttl_ms));
        choices.into_iter().find(|timing| in_time(timing) && self.has_room(timing, budget))
    }

    /// The shortest target of detection with which some ttl keeps the rest of the budget, in
    /// nanoseconds.
    fn least_detection_ns(&self, budget: &Budget) -> Option<u64> {
        let too_short_ms = self.longest(|timing| !self.has_room(timing, budget));
        let shortest = self.of(too_short_ms.saturating_add(1));
        self.has_room(&shortest, budget).then(|| shortest.takeover_ns(budget.authority))
    }

    /// Whether a timing has room for all of a budget but its target of detection.
    fn has_room(&self, timing: &Timing, budget: &Budget) -> bool {
        let queue_ns = budget.p50_ns.saturating_mul(u64::from(budget.standbys).saturating_add(1));
        let (tolerated, pause_ns) = (budget.tolerated, budget.pause_ns);
        self.works(timing)
            && timing.attempt_ns >= budget.p99_ns.max(queue_ns)
            && self.works(&Timing { tolerated, pause_ns, ..*timing })
    }

    fn works(&self, timing: &Timing) -> bool {
        timing.check(self.clocks.resolution_ns).is_ok()
    }

    /// The longest ttl that fits, of those of which none fits after one that does not; 0 for none.
    fn longest(&self, fits: impl Fn(&Timing) -> bool) -> u32 {
        (0..u32::BITS).rev().fold(0, |longest_ms, bit| {
            let longer_ms = longest_ms | 1 << bit;
            let fits = longer_ms <= MAX_TTL_MS && fits(&self.of(longer_ms));
            if fits { longer_ms } else { longest_ms }
        })
    }

    fn of(&self, ttl_ms: u32) -> Timing {
        self.timing(Duration::from_millis(ttl_ms.into()))
    }

    fn remedy(&self, budget: &Budget) -> String {
        match self.least_detection_ns(budget) {
            Some(least_ns) => {
                let least_ms = least_ns.div_ceil(MILLISECOND_NS);
                format!("plan for --detect {} or more", span(Duration::from_millis(least_ms)))
            }
            None => "plan for a faster store or fewer lost renewals".to_owned(),
        }
    }

    fn command(&self, plan: &Plan) -> String {
        let ttl = Duration::from_millis(plan.timing.ttl_ms.into());
        format!("leasehold run --ttl {} --grace {}", span(ttl), span(self.grace))
    }

    fn line(&self, plan: &Plan) -> Value {
        let mut line = spans(plan);
        line["options"] = self.command(plan).replace("leasehold run ", "").into();
        line
    }
}

fn drain_in_words() -> String {
    format!("the drain is --grace, 3s by default, and {} for the kill", span(KILL_BUDGET))
}

fn indented(plan: &Plan) -> String {
    plan.to_string().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn spans(plan: &Plan) -> Value {
    let Plan { timing, .. } = plan;
    json!({
        "ttl_ms": timing.ttl_ms,
        "renew_ns": timing.renew_ns,
        "attempt_ns": timing.attempt_ns,
        "tolerated": timing.tolerated,
        "pause_ns": timing.pause_ns,
        "drain_ns": timing.drain_ns,
        "guard_ns": timing.guard_ns,
        "poll_ns": timing.poll_ns,
        "retry_ns": timing.retry_ns,
        "seal_within_ns": timing.seal_within_ns,
        "offer_grace_ms": timing.grace_ms,
        "sit_out_ns": timing.sit_out_ns,
        "drift_ppm": timing.drift.ppm(),
        "takeover_ns": plan.takeover_ns,
        "self_fence_ns": plan.self_fence_ns,
        "longest_pause_ns": plan.pause_ns,
        "lost_renewals": plan.lost_renewals,
        "holder_per_hour": plan.holder_per_hour,
        "standbys_per_hour": plan.standbys_per_hour,
    })
}

/// As a shell takes it: one word.
fn span(span: Duration) -> Span {
    Span(nanoseconds(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn run(grace_ms: u64) -> Run {
        Run {
            clocks: Clocks { wall: true, resolution_ns: 1 },
            authority: Authority::StoreClock { error_ns: MS },
            grace: Duration::from_millis(grace_ms),
            standbys: 1,
        }
    }

    #[test]
    fn no_longer_ttl_keeps_the_budget_and_one_that_does_is_found() {
        let mut found = 0;
        for (grace_ms, detection_ms, p99_ms, pause_ms, tolerated) in [
            (3_000, 30_000, 50, 0, 2),
            (3_000, 30_000, 50, 5_000, 2),
            (3_000, 50_000, 50, 2_000, 5),
            (3_000, 5_000, 5, 0, 2),
            (3_000, 4_900, 1, 0, 2),
            (0, 1_000, 1, 0, 2),
            (100, 2_000, 60, 0, 2),
            (100, 40_000, 2_000, 0, 2),
            (100, 40_000, 1_500, 0, 3),
            (10_000, 12_000, 10, 0, 2),
        ] {
            let run = run(grace_ms);
            let budget = Budget {
                detection_ns: detection_ms * MS,
                p50_ns: MS,
                p99_ns: p99_ms * MS,
                pause_ns: pause_ms * MS,
                drain_ns: nanoseconds(run.drain()),
                tolerated,
                standbys: 1,
                drift: Drift::DEFAULT,
                resolution_ns: 1,
                authority: run.authority,
            };
            let keeps = |ttl_ms: &u64| {
                let timing = run.timing(Duration::from_millis(*ttl_ms));
                timing.takeover_ns(run.authority) <= budget.detection_ns
                    && run.has_room(&timing, &budget)
            };
            let longest_ms = (1..=detection_ms).rev().find(keeps);
            let chosen_ms = run.longest_ttl(&budget).map(|timing| u64::from(timing.ttl_ms));
            let whole = longest_ms.map(|ms| ms / 1000 * 1000).filter(keeps);
            assert_eq!(chosen_ms, whole.or(longest_ms), "{budget:?}");
            found += u32::from(chosen_ms.is_some());

            let detection_ns = run.least_detection_ns(&budget).unwrap();
            let least = Budget { detection_ns, ..budget };
            assert!(run.longest_ttl(&least).is_some(), "{least:?}");
            let less = Budget { detection_ns: detection_ns - 1, ..budget };
            assert!(run.longest_ttl(&less).is_none(), "{less:?}");
        }
        assert_eq!(found, 8, "both sides are tried");
    }

    #[test]
    fn a_span_is_one_word_that_is_read_as_the_same() {
        let spans = [0, 7, 250 * MS, 1_500 * MS, 636_021 * MS, 28_800_000 * MS, 1_000_000_007];
        for duration in spans.map(Duration::from_nanos) {
            assert_eq!(humantime::parse_duration(&span(duration).to_string()), Ok(duration));
        }
    }
}
