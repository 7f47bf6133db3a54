//! The swarm, for people and for machines.

use std::io::{IsTerminal as _, Write as _};
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leasehold_sim::swarm::{Beyond, Regime};
use leasehold_sim::world::Count;
use leasehold_sim::{Decision, Flaw, Invariant, Report, Source, run};

const HELP: &str = "\
Attacks leasehold's elector and fence in virtual time.

Usage:
  sim run [--seeds N] [--from S] [--json]   many worlds; exit code 1 if anything promised fails
  sim seed S [--beyond B] [--flaw F] [--drift N] [--margins]
                                            one world, told in full
  sim layers [--seeds N] [--json]           layers left out one by one, and broken assumptions
  sim mutants [--seeds N] [--json]          planted bugs; those of the core are in builds with
                                            RUSTFLAGS=\"--cfg planted\" only, which want a target
                                            folder of their own
";

/// A line for whoever reads; one who has stopped reading is no reason to stop.
macro_rules! say {
    ($($text:tt)*) => { let _ = writeln!(std::io::stdout(), $($text)*); };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if matches!(arguments.first().map(String::as_str), Some("help" | "-h" | "--help")) {
        say!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match Command::parse(&arguments) {
        Ok(command) => command.run(),
        Err(wrong) => {
            eprint!("{wrong}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

struct Command {
    verb: String,
    seeds: Option<u64>,
    from: u64,
    json: bool,
    regime: Option<Regime>,
}

impl Command {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut rest = arguments.iter();
        let verb = rest.next().ok_or("say what to do")?.clone();
        let mut command = Self { verb, seeds: None, from: 0, json: false, regime: None };
        let number = |text: Option<&String>| {
            let text = text.ok_or("a number is missing")?;
            text.parse().map_err(|_| format!("{text} is not a number"))
        };
        if command.verb == "seed" {
            command.from = number(rest.next())?;
        }
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--seeds" => match number(rest.next())? {
                    0 => return Err("--seeds 0 would show nothing".to_owned()),
                    seeds => command.seeds = Some(seeds),
                },
                "--from" => command.from = number(rest.next())?,
                "--json" => command.json = true,
                option if command.verb == "seed" => {
                    let regime = command.regime.get_or_insert(Regime::WITHIN);
                    parse_regime(regime, option, &mut rest)?;
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        // `mutants` takes five ranges.
        let seeds = command.seeds.unwrap_or(100_000).saturating_mul(5);
        if command.from.checked_add(seeds).is_none() {
            return Err("--from and --seeds go beyond 2^64-1".to_owned());
        }
        Ok(command)
    }

    fn run(&self) -> ExitCode {
        let fine = match self.verb.as_str() {
            "run" => self.swarm(),
            "seed" => tell(self.from, self.regime.unwrap_or(Regime::of(self.from))),
            "layers" => self.layers(),
            "mutants" => self.mutants(),
            other => {
                eprint!("there is no {other}\n\n{HELP}");
                return ExitCode::from(2);
            }
        };
        if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn swarm(&self) -> bool {
        let began = Instant::now();
        let seeds = self.seeds.unwrap_or(10_000);
        let total = Tally::of(self.from, seeds, Regime::of, |tally| tally.failed.len() >= 10);
        let took = began.elapsed().as_millis().max(1);
        let rate = u128::from(total.seeds) * 1_000 / took;
        let hours = total.count.time_ns / 3_600_000_000_000;
        if let Some(failed) = total.failed.iter().min() {
            tell(*failed, Regime::of(*failed));
        }
        for seed in &total.failed {
            let (setup, source) = Regime::of(*seed).world(*seed);
            let what: Vec<_> = run(setup, source).failures().map(|one| one.invariant).collect();
            let options = options(Regime::of(*seed));
            eprintln!("failed: {what:?}, again: cargo xtask sim seed {seed}{options}");
        }
        if self.json {
            say!(
                "{{\"seeds\":{},\"from\":{},\"failed\":{},\"ms\":{took},\"seeds_per_s\":{rate},\
                 \"events\":{},\"virtual_hours\":{hours},\"elected\":{},\"accepted\":{},\
                 \"refused\":{},\"broken\":{},\"excused\":{}}}",
                total.seeds,
                self.from,
                total.failed.len(),
                total.count.events,
                total.count.elected,
                total.count.accepted,
                total.count.refused,
                total.broken,
                total.excused,
            );
        } else {
            say!(
                "{} seeds in {}.{:03} s ({rate}/s), {hours} virtual hours, {} events, {} terms, \
                 {} effects accepted and {} refused",
                total.seeds,
                took / 1_000,
                took % 1_000,
                total.count.events,
                total.count.elected,
                total.count.accepted,
                total.count.refused,
            );
            say!(
                "{} seeds broke an assumption, and in {} of them what assumes it failed",
                total.broken,
                total.excused
            );
            say!("{} seeds failed", total.failed.len());
            if total.seeds < seeds {
                say!("stopped early: {} of {seeds} seeds were run", total.seeds);
            }
        }
        total.failed.is_empty()
    }

    /// What each layer is for, and what each assumption.
    fn layers(&self) -> bool {
        let seeds = self.seeds.unwrap_or(2_000);
        let within = Regime::WITHIN;
        let margins = Regime { margins: true, ..within };
        let mut rows = vec![
            ("everything on".to_owned(), within, true),
            ("nothing but margins, drift at its bound".to_owned(), margins, true),
            ("drift at 4 times its bound".to_owned(), Regime { drift_times: 4, ..margins }, true),
        ];
        for flaw in Flaw::LAYERS {
            let fenced = *flaw != Flaw::NoFence;
            rows.push((flaw.name().to_owned(), Regime { flaw: Some(*flaw), ..within }, fenced));
        }
        for beyond in Beyond::ALL {
            rows.push((beyond.name().to_owned(), Regime { beyond: Some(*beyond), ..within }, true));
        }
        let mut fine = true;
        for (name, regime, fenced) in rows {
            let total = Tally::of(self.from, seeds, |_| regime, |_| false);
            let of = |invariant| total.by_invariant(invariant);
            let (exclusivity, fencing) = (of(Invariant::Exclusivity), of(Invariant::Fencing));
            let gap = of(Invariant::Gap);
            let promised = regime.flaw.is_none();
            let failed = if promised { total.failed.len() } else { 0 };
            fine &= failed == 0 && (fencing == 0 || !fenced);
            if self.json {
                say!(
                    "{{\"layers\":\"{name}\",\"seeds\":{seeds},\"exclusivity\":{exclusivity},\
                     \"fencing\":{fencing},\"gap\":{gap},\"failed\":{failed}}}"
                );
            } else {
                say!(
                    "{name:40} of {seeds} seeds: exclusivity fails in {exclusivity}, fencing in \
                     {fencing}, the gap in {gap}; unexcused {failed}"
                );
            }
            if failed > 0
                && let Some(seed) = total.failed.iter().min()
            {
                tell(*seed, regime);
            }
        }
        fine
    }

    fn mutants(&self) -> bool {
        let most = self.seeds.unwrap_or(2_000);
        let mut fine = true;
        for flaw in Flaw::BUGS {
            let regime = |seed| Regime { flaw: Some(*flaw), ..Regime::of(seed) };
            fine &= self.hunt(flaw.name(), flaw_breaks(*flaw), most, regime);
        }
        fine & self.core_mutants(most)
    }

    #[cfg(planted)]
    fn core_mutants(&self, most: u64) -> bool {
        use leasehold_core::planted::Bug;
        let mut fine = true;
        for bug in Bug::ALL {
            Bug::plant(Some(*bug));
            fine &= self.hunt(bug.name(), bug_breaks(*bug), most, Regime::of);
        }
        Bug::plant(None);
        fine
    }

    #[cfg(not(planted))]
    fn core_mutants(&self, _: u64) -> bool {
        eprintln!(
            "this build's core has no bugs planted: `cargo xtask sim mutants` makes one that has"
        );
        false
    }

    /// Looks for a bug in disjoint ranges of seeds.
    fn hunt(
        &self,
        name: &str,
        meant: Invariant,
        most: u64,
        regime: impl Fn(u64) -> Regime + Sync,
    ) -> bool {
        const RANGES: u64 = 5;
        let meets = |seed: u64| {
            let (setup, source) = regime(seed).world(seed);
            run(setup, source).failures().any(|failure| failure.invariant == meant)
        };
        let first_in = |range: u64| {
            let from = self.from + range * most;
            let first = (from..from + most).find(|seed| meets(*seed));
            first.map(|seed| seed - from + 1)
        };
        let mut needed: Vec<Option<u64>> = std::thread::scope(|scope| {
            let hunts: Vec<_> =
                (0..RANGES).map(|range| scope.spawn(move || first_in(range))).collect();
            hunts.into_iter().map(|hunt| hunt.join().ok().flatten()).collect()
        });
        needed.sort_by_key(|needed| needed.unwrap_or(u64::MAX));
        let caught = needed.iter().flatten().count();
        let median = needed.get(needed.len() / 2).copied().flatten();
        let median = median.map_or("-".to_owned(), |median| median.to_string());
        let worst = needed.last().copied().flatten();
        let worst = worst.map_or("-".to_owned(), |worst| worst.to_string());
        if self.json {
            say!(
                "{{\"bug\":\"{name}\",\"invariant\":\"{meant:?}\",\"caught\":{caught},\
                 \"ranges\":{RANGES},\"median_seeds\":\"{median}\",\"worst_seeds\":\"{worst}\"}}"
            );
        } else {
            say!(
                "{name:28} {meant:18?} caught in {caught} of {RANGES} ranges, after {median} \
                 seeds (median), {worst} (worst)"
            );
        }
        caught as u64 == RANGES
    }
}

/// What a bug outside the core has to be caught by.
const fn flaw_breaks(flaw: Flaw) -> Invariant {
    match flaw {
        Flaw::NoFence | Flaw::ResourceForgetsFloor => Invariant::Fencing,
        Flaw::NoSeal | Flaw::HostSealsLater => Invariant::Gap,
        Flaw::HostSendsUnasked => Invariant::EffectInTime,
        Flaw::StoreIgnoresConditions => Invariant::TermsGrow,
        // The electors themselves notice.
        Flaw::StoreReadsStale => Invariant::FalseAlarm,
        Flaw::NoGuard | Flaw::NoDrain | Flaw::StoreLosesLastWrite | Flaw::HostRemembersLeading => {
            Invariant::Exclusivity
        }
    }
}

/// What a bug in the core has to be caught by.
#[cfg(planted)]
const fn bug_breaks(bug: leasehold_core::planted::Bug) -> Invariant {
    use leasehold_core::planted::Bug;
    match bug {
        Bug::DeadlineFromAcknowledgement | Bug::TimeOutConfirms => Invariant::Deadline,
        Bug::StartsUntilValid => Invariant::Start,
        Bug::LateAcknowledgementRevives => Invariant::OverForGood,
        Bug::NoDriftMargin
        | Bug::HolderIgnoresClock
        | Bug::WallIsNoWitness
        | Bug::WindowOutlivesChange
        | Bug::WindowFromRequest => Invariant::Exclusivity,
        Bug::DisruptionIgnored => Invariant::Disruption,
        Bug::WindowRestartsAtRead => Invariant::Liveness,
        Bug::TermNotRaised => Invariant::TermsAreWonOnce,
        Bug::FloorForgotten => Invariant::Climb,
        Bug::LateElection => Invariant::Announcement,
        Bug::LeadsUnsealed => Invariant::Gap,
        Bug::ReleasedUndrained => Invariant::ReleasedAfterWork,
        Bug::TwinTrusted => Invariant::Twin,
        Bug::EndedUnsaid => Invariant::OneEnd,
        Bug::FenceIgnoresNonce | Bug::FenceIgnoresTerm | Bug::SealLowersFloor => Invariant::Fencing,
    }
}

/// What many runs came to.
#[derive(Default)]
struct Tally {
    seeds: u64,
    count: Count,
    failed: Vec<u64>,
    broken: u64,
    excused: u64,
    violated: Vec<(Invariant, u64)>,
}

impl Tally {
    /// Runs seeds on all cores, until there are no more or `enough`.
    fn of(
        from: u64,
        seeds: u64,
        regime: impl Fn(u64) -> Regime + Sync,
        enough: impl Fn(&Self) -> bool + Sync,
    ) -> Self {
        const CHUNK: u64 = 50;
        let total = Mutex::new(Self::default());
        let next = AtomicU64::new(0);
        let over = AtomicBool::new(false);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let began = Instant::now();
        let shows = std::io::stderr().is_terminal();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                        if first >= seeds {
                            break;
                        }
                        let mut part = Self::default();
                        for seed in from + first..from + seeds.min(first + CHUNK) {
                            let (setup, source) = regime(seed).world(seed);
                            part.add(seed, &run(setup, source));
                        }
                        if let Ok(mut total) = total.lock() {
                            total.merge(part);
                            over.fetch_or(enough(&total), Ordering::Relaxed);
                            if shows {
                                total.show(began.elapsed(), seeds);
                            }
                        }
                    }
                });
            }
        });
        if shows {
            eprintln!();
        }
        total.into_inner().unwrap_or_default()
    }

    fn add(&mut self, seed: u64, report: &Report) {
        self.seeds += 1;
        self.count.add(&report.count);
        self.broken += u64::from(report.broken);
        self.excused += u64::from(report.violations.iter().any(|violation| violation.excused));
        if report.failures().next().is_some() {
            self.failed.push(seed);
        }
        for violation in &report.violations {
            self.note(violation.invariant, 1);
        }
    }

    fn note(&mut self, invariant: Invariant, runs: u64) {
        match self.violated.iter_mut().find(|(known, _)| *known == invariant) {
            Some((_, known)) => *known += runs,
            None => self.violated.push((invariant, runs)),
        }
    }

    fn by_invariant(&self, invariant: Invariant) -> u64 {
        self.violated.iter().find(|(known, _)| *known == invariant).map_or(0, |(_, runs)| *runs)
    }

    fn merge(&mut self, part: Self) {
        self.seeds += part.seeds;
        self.count.add(&part.count);
        self.broken += part.broken;
        self.excused += part.excused;
        self.failed.extend(part.failed);
        for (invariant, runs) in part.violated {
            self.note(invariant, runs);
        }
    }

    fn show(&self, took: Duration, seeds: u64) {
        let rate = u128::from(self.seeds) * 1_000 / took.as_millis().max(1);
        eprint!("\r{} of {seeds} seeds, {rate}/s, {} failed ", self.seeds, self.failed.len());
    }
}

/// One option of `sim seed`.
fn parse_regime<'a>(
    regime: &mut Regime,
    option: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    if option == "--margins" {
        regime.margins = true;
        return Ok(());
    }
    let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
    let unknown = || {
        let beyond: Vec<_> = Beyond::ALL.iter().map(|one| one.name()).collect();
        let flaws: Vec<_> = Flaw::LAYERS.iter().chain(Flaw::BUGS).map(|one| one.name()).collect();
        let (beyond, flaws) = (beyond.join(" "), flaws.join(" "));
        format!(
            "{option} {value} is unknown\n  --beyond takes one of {beyond}\n  --flaw takes one of \
             {flaws}\n  --drift takes how many times the declared bound clocks may drift"
        )
    };
    match option {
        "--beyond" => {
            let mut all = Beyond::ALL.iter();
            regime.beyond = Some(*all.find(|one| one.name() == value).ok_or_else(unknown)?);
        }
        "--flaw" => {
            let mut all = Flaw::LAYERS.iter().chain(Flaw::BUGS);
            regime.flaw = Some(*all.find(|one| one.name() == value).ok_or_else(unknown)?);
        }
        "--drift" => regime.drift_times = value.parse().map_err(|_| unknown())?,
        _ => return Err(format!("unknown argument {option}")),
    }
    Ok(())
}

/// The arguments that give a regime again.
fn options(regime: Regime) -> String {
    let mut options = String::new();
    if let Some(beyond) = regime.beyond {
        options += &format!(" --beyond {}", beyond.name());
    }
    if let Some(flaw) = regime.flaw {
        options += &format!(" --flaw {}", flaw.name());
    }
    if regime.drift_times > 1 {
        options += &format!(" --drift {}", regime.drift_times);
    }
    if regime.margins {
        options += " --margins";
    }
    options
}

/// One seed in full; whether all is well.
fn tell(seed: u64, regime: Regime) -> bool {
    let (setup, source) = regime.world(seed);
    let replayed = setup.clone();
    let report = run(setup, source);
    say!("seed {seed}, {regime:?}");
    for violation in &report.violations {
        let at_ns = violation.at_ns;
        say!(
            "  {:?} does not hold at {}.{:09} s on node {}{}",
            violation.invariant,
            at_ns / 1_000_000_000,
            at_ns % 1_000_000_000,
            violation.node,
            if violation.excused { ", and was not promised any more" } else { "" }
        );
    }
    for (number, node) in replayed.nodes.iter().enumerate() {
        say!("  node {number}: {node:?}");
    }
    // What was decided before the last of them, in order; a message's fate has no time of its own.
    let until_ns = report.violations.iter().map(|one| one.at_ns).max().unwrap_or(u64::MAX);
    let mut decisions = report.tape.0.clone();
    decisions.retain(|one| !matches!(one, Decision::Fault(at_ns, _) if *at_ns > until_ns));
    decisions.sort_by_key(|one| match one {
        Decision::Fault(at_ns, _) => *at_ns,
        Decision::Fate(..) => u64::MAX,
    });
    for decision in &decisions {
        say!("  {decision:?}");
    }
    let again = run(replayed, Source::Tape(report.tape.clone()));
    say!("  trace {:016x}, from the tape alone {:016x}", report.trace, again.trace);
    say!("  {:?}", report.count);
    say!("again: cargo xtask sim seed {seed}{}", options(regime));
    report.failures().next().is_none()
}
