//! Seeds: within the assumptions everything holds, beyond them fencing does, and a run is its tape.

use leasehold_sim::swarm::{Beyond, Regime};
use leasehold_sim::{Flaw, Invariant, Report, Source, Tape, World, run};

fn report(regime: Regime, seed: u64) -> Report {
    let (setup, source) = regime.world(seed);
    run(setup, source)
}

fn runs(regime: Regime, seeds: u64) -> impl Iterator<Item = (u64, Report)> {
    (0..seeds).map(move |seed| (seed, report(regime, seed)))
}

/// How many of the runs violate an invariant, excused or not.
fn violated(regime: Regime, seeds: u64, invariant: Invariant) -> usize {
    let found = |report: &Report| report.violations.iter().any(|one| one.invariant == invariant);
    runs(regime, seeds).filter(|(_, report)| found(report)).count()
}

#[test]
fn everything_that_is_promised_holds() {
    for seed in 0..2_000 {
        let failures: Vec<_> = report(Regime::of(seed), seed).failures().copied().collect();
        assert_eq!(failures, [], "sim seed {seed}");
    }
}

#[test]
fn within_the_assumptions_nothing_is_excused() {
    for (seed, report) in runs(Regime::WITHIN, 300) {
        assert_eq!((report.violations, report.broken), (Vec::new(), false), "sim seed {seed}");
    }
}

#[test]
fn beyond_the_assumptions_exclusivity_fails_and_fencing_does_not() {
    for beyond in [Beyond::Twins, Beyond::WallSetBack, Beyond::Frozen, Beyond::ForcedNow] {
        let regime = Regime { beyond: Some(beyond), ..Regime::WITHIN };
        assert!(violated(regime, 300, Invariant::Exclusivity) > 0, "{beyond:?}");
        assert_eq!(violated(regime, 300, Invariant::Fencing), 0, "{beyond:?}");
    }
}

#[test]
fn at_four_times_the_declared_drift_exclusivity_fails_and_fencing_does_not() {
    let regime = Regime { drift_times: 4, margins: true, ..Regime::WITHIN };
    assert!(violated(regime, 300, Invariant::Exclusivity) > 0);
    assert_eq!(violated(regime, 300, Invariant::Fencing), 0);
}

#[test]
fn a_layer_that_is_left_out_is_missed() {
    for (flaw, missed) in [
        (Flaw::NoFence, Invariant::Fencing),
        (Flaw::NoDrain, Invariant::Exclusivity),
        (Flaw::NoSeal, Invariant::Gap),
    ] {
        let regime = Regime { flaw: Some(flaw), ..Regime::WITHIN };
        assert!(violated(regime, 300, missed) > 0, "{flaw:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..100 {
        assert_eq!(report(Regime::of(seed), seed), report(Regime::of(seed), seed));
    }
}

#[test]
fn a_tape_is_the_run_that_recorded_it() {
    for seed in 0..200 {
        let (setup, source) = Regime::of(seed).world(seed);
        let recorded = run(setup.clone(), source);
        let replayed = run(setup, Source::Tape(recorded.tape.clone()));
        assert_eq!(replayed, recorded, "sim seed {seed}");
    }
}

#[test]
fn a_world_that_is_cloned_goes_on_as_the_original_does() {
    for seed in 0..50 {
        let (setup, source) = Regime::of(seed).world(seed);
        let mut original = World::new(setup, source);
        for _ in 0..200 {
            original.advance();
        }
        let mut copy = original.clone();
        while original.advance() {}
        while copy.advance() {}
        assert_eq!(copy.report(), original.report(), "sim seed {seed}");
    }
}

#[test]
fn in_a_world_where_nothing_happens_somebody_leads_without_a_break() {
    for seed in 0..50 {
        let (setup, _) = Regime::WITHIN.world(seed);
        let report = run(setup, Source::Tape(Tape::default()));
        assert_eq!(report.violations, []);
        assert_eq!((report.count.elected, report.count.refused), (1, 0), "sim seed {seed}");
    }
}
