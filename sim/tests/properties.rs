//! Decisions by chance, one property at a time; what fails is shrunk to a short tape.

use leasehold_sim::decision::{Hinted, Kind, Service};
use leasehold_sim::swarm::Regime;
use leasehold_sim::{
    Decision, Fate, Fault, Invariant, Message, Report, SECOND_NS, Setup, Source, World, run,
};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

const HOSTILE_NS: u64 = 60 * SECOND_NS;

fn span() -> impl Strategy<Value = u64> {
    prop_oneof![0..50_000_000u64, 0..5 * SECOND_NS, 0..20 * SECOND_NS]
}

fn node() -> impl Strategy<Value = u8> {
    0..4u8
}

fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![
        4 => Just(Kind::Request),
        1 => Just(Kind::Seal),
        2 => Just(Kind::Effect),
        1 => Just(Kind::Drain),
    ];
    (kind, node(), 0..3u16, 1..40u32).prop_map(|(kind, node, life, number)| Message {
        kind,
        node,
        life,
        number,
    })
}

fn fate() -> impl Strategy<Value = Fate> {
    let service = prop_oneof![
        4 => Just(Service::Performed),
        1 => Just(Service::Unavailable),
        1 => Just(Service::Undecided),
        1 => Just(Service::Conflict),
        1 => Just(Service::Unknown),
    ];
    let pause = prop_oneof![3 => Just(0), 1 => span()];
    let way = || weighted(0.8, span());
    (pause, way(), service, way(), weighted(0.2, span())).prop_map(
        |(pause_ns, there_ns, service, back_ns, again_ns)| Fate {
            pause_ns,
            there_ns,
            service,
            back_ns,
            again_ns,
        },
    )
}

/// What exclusivity has to bear.
fn bearable() -> impl Strategy<Value = Fault> {
    let hinted = prop_oneof![Just(Hinted::Nothing), Just(Hinted::Fresh), Just(Hinted::Stale)];
    prop_oneof![
        3 => (node(), span()).prop_map(|(node, for_ns)| Fault::Pause { node, for_ns }),
        3 => (node(), span()).prop_map(|(node, for_ns)| Fault::Suspend { node, for_ns }),
        2 => (node(), span()).prop_map(|(node, down_ns)| Fault::Crash { node, down_ns }),
        1 => (node(), span())
            .prop_map(|(node, by)| Fault::StepWall { node, by_ns: by.cast_signed() }),
        2 => (node(), -10_000_000..=10_000_000i64)
            .prop_map(|(node, ppb)| Fault::Rate { node, ppb }),
        1 => (node(), span()).prop_map(|(node, back_ns)| Fault::Migrate { node, back_ns }),
        3 => (node(), any::<bool>(), any::<bool>(), span()).prop_map(
            |(node, requests, answers, for_ns)| Fault::Cut { node, requests, answers, for_ns }
        ),
        1 => node().prop_map(|to| Fault::Ask { to }),
        1 => Just(Fault::Force { now: false }),
        2 => (node(), weighted(0.5, node())).prop_map(|(node, to)| Fault::Resign { node, to }),
        1 => node().prop_map(|node| Fault::Stop { node }),
        2 => (node(), hinted).prop_map(|(node, content)| Fault::Hint { node, content }),
        1 => (span(), span()).prop_map(|(by_ns, for_ns)| Fault::Slow { by_ns, for_ns }),
        1 => (1..4u8).prop_map(|back| Fault::RestoreResource { back }),
    ]
}

fn restored() -> impl Strategy<Value = Fault> {
    (1..20u8, any::<bool>()).prop_map(|(back, repeats)| Fault::Restore { back, repeats })
}

/// What only fencing has to bear.
fn unbearable() -> impl Strategy<Value = Fault> {
    prop_oneof![
        node().prop_map(|node| Fault::Twin { node }),
        (node(), span()).prop_map(|(node, for_ns)| Fault::Freeze { node, for_ns }),
        (node(), span()).prop_map(|(node, by)| Fault::StepWall { node, by_ns: -by.cast_signed() }),
        restored(),
        Just(Fault::Delete),
        Just(Fault::Spoil),
        Just(Fault::Force { now: true }),
    ]
}

fn decisions(fault: impl Strategy<Value = Fault>) -> impl Strategy<Value = Vec<Decision>> {
    let fault = (0..HOSTILE_NS, fault).prop_map(|(at_ns, fault)| Decision::Fault(at_ns, fault));
    let fate = (message(), fate()).prop_map(|(message, fate)| Decision::Fate(message, fate));
    vec(prop_oneof![1 => fault, 2 => fate], 0..60)
}

/// Worlds of every kind, each with decisions.
fn worlds(fault: impl Strategy<Value = Fault>) -> impl Strategy<Value = (Setup, Vec<Decision>)> {
    (any::<u64>(), any::<bool>(), decisions(fault)).prop_map(|(seed, margins, decisions)| {
        let (setup, _) = Regime { margins, ..Regime::WITHIN }.world(seed);
        (setup, decisions)
    })
}

fn holds(report: &Report, invariants: &[Invariant]) -> Result<(), TestCaseError> {
    let failure = report.failures().find(|failure| invariants.contains(&failure.invariant));
    prop_assert_eq!(failure, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn at_most_one_may_act_at_any_true_instant((setup, decisions) in worlds(bearable())) {
        let report = run(setup, decisions.into());
        prop_assert!(!report.broken);
        holds(&report, &[Invariant::Exclusivity])?;
    }

    #[test]
    fn a_late_acknowledgement_never_moves_the_deadline((setup, decisions) in worlds(bearable())) {
        holds(&run(setup, decisions.into()), &[Invariant::Deadline, Invariant::OverForGood])?;
    }

    #[test]
    fn terms_only_grow((setup, decisions) in worlds(bearable())) {
        let report = run(setup, decisions.into());
        holds(&report, &[Invariant::TermsGrow, Invariant::TermsAreWonOnce])?;
    }

    #[test]
    fn every_request_has_a_deadline_and_is_the_only_one(
        (setup, decisions) in worlds(prop_oneof![bearable(), unbearable()])
    ) {
        holds(&run(setup, decisions.into()), &[Invariant::Requests])?;
    }

    #[test]
    fn no_wake_is_later_than_pending_work(
        (setup, decisions) in worlds(prop_oneof![bearable(), unbearable()])
    ) {
        holds(&run(setup, decisions.into()), &[Invariant::Wake, Invariant::Progress])?;
    }

    #[test]
    fn every_term_ends_once_and_after_its_work(
        (setup, decisions) in worlds(prop_oneof![bearable(), unbearable()])
    ) {
        holds(
            &run(setup, decisions.into()),
            &[Invariant::OneEnd, Invariant::ReleasedAfterWork],
        )?;
    }

    #[test]
    fn no_stale_effect_is_accepted_whatever_happens(
        (setup, decisions) in worlds(prop_oneof![bearable(), unbearable()])
    ) {
        holds(&run(setup, decisions.into()), &[Invariant::Fencing, Invariant::Gap])?;
    }

    #[test]
    fn after_the_faults_somebody_leads_in_time_and_whoever_was_to_stop_has(
        (setup, decisions) in worlds(bearable())
    ) {
        let report = run(setup, decisions.into());
        holds(&report, &[Invariant::Liveness, Invariant::Stopping])?;
    }

    #[test]
    fn nobody_cries_wolf((setup, decisions) in worlds(bearable())) {
        holds(&run(setup, decisions.into()), &[Invariant::FalseAlarm])?;
    }

    #[test]
    fn a_restored_store_heals_above_the_floor_of_the_fence(
        (setup, decisions) in worlds(prop_oneof![4 => bearable(), 1 => restored()])
    ) {
        let report = run(setup, decisions.into());
        holds(&report, &[Invariant::Climb, Invariant::Fencing, Invariant::Liveness])?;
    }

    #[test]
    fn of_two_copies_of_a_holder_one_ends(
        (seed, node, twin_ns, decisions) in
            (any::<u64>(), node(), SECOND_NS..10 * SECOND_NS, decisions(bearable()))
    ) {
        let (setup, _) = Regime::WITHIN.world(seed);
        let mut decisions = decisions;
        decisions.push(Decision::Fault(twin_ns, Fault::Twin { node }));
        let longest_ms = setup.nodes.iter().map(|node| node.timing.ttl_ms).max().unwrap_or(0);
        // Until they have had an answer each, with its salt, copies write under the same names and
        // take each other's writes for their own. That may renew what they hold once.
        let over_ns = twin_ns + 2 * u64::from(longest_ms) * 1_000_000;
        let mut world = World::new(setup, Source::from(decisions));
        while world.advance() {
            let tokens: Vec<_> = world.acting().map(|(_, token)| token).collect();
            let shared = matches!(tokens[..], [one, other] if one == other);
            prop_assert!(!shared || world.at_ns() < over_ns);
        }
    }

    #[test]
    fn a_tape_gives_the_same_run_again(
        (setup, decisions) in worlds(prop_oneof![bearable(), unbearable()])
    ) {
        let first = run(setup.clone(), Source::from(decisions));
        let again = run(setup, Source::Tape(first.tape.clone()));
        prop_assert_eq!(again, first);
    }
}
