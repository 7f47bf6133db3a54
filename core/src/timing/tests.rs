//! What a timing promises, and that every refusal names a value that passes, exactly.

use std::collections::BTreeSet;
use std::string::ToString;

use super::*;

const MS: u64 = MILLISECOND_NS;

fn by_ttl(ttl_ms: u32, drain_ms: u64) -> Timing {
    Timing::from_ttl(ttl_ms, drain_ms * MS, 100 * MS, Drift::DEFAULT)
}

fn check(timing: Timing) -> Result<(), Misuse> {
    timing.check(MS)
}

#[test]
fn a_ttl_with_room_for_its_drain_is_enough_to_know() {
    for ttl_ms in [1_000, 3_000, 15_000, 60_000, 3_600_000, MAX_TTL_MS] {
        assert_eq!(check(by_ttl(ttl_ms, u64::from(ttl_ms) / 4)), Ok(()), "{ttl_ms}");
    }
    assert_eq!(check(by_ttl(0, 0)), Err(Misuse::Ttl));
    assert_eq!(check(by_ttl(MAX_TTL_MS + 1, 0)), Err(Misuse::Ttl));
}

#[test]
fn a_ttl_too_short_for_its_drain_is_refused_with_one_that_does() {
    for (ttl_ms, drain_ms) in [(3_000, 5_000), (1, 0), (105, 0), (60_000, 3_000_000)] {
        let Err(Misuse::TooShort { ttl_ms }) = check(by_ttl(ttl_ms, drain_ms)) else {
            panic!("{drain_ms} ms of drain in {ttl_ms} ms")
        };
        let longer = by_ttl(u32::try_from(ttl_ms).unwrap(), drain_ms);
        assert_eq!(check(longer), Ok(()), "{ttl_ms} ms was promised to do");
    }
}

#[test]
fn an_offer_outlives_a_poll_and_two_attempts_and_ends_before_the_offering_returns() {
    for ppm in [0, 10_000, 500_000, 999_000] {
        let drift = Drift::from_ppm(ppm).unwrap();
        for ttl_ms in [1_000, 10_000, 600_000, MAX_TTL_MS] {
            let timing = Timing::from_ttl(ttl_ms, 0, 0, drift);
            let grace_ns = milliseconds(timing.grace_ms);
            assert!(drift.shrink_ns(grace_ns) >= timing.poll_ns + 2 * timing.attempt_ns);
            assert!(drift.shrink_ns(timing.sit_out_ns) > drift.stretch_ns(grace_ns));
        }
    }
    assert_eq!(by_ttl(9_000, 0).grace_ms, 6_000, "two thirds of the ttl");
    assert_eq!(by_ttl(60_000, 0).grace_ms, 15_000, "at most 15 s");
    assert_eq!(by_ttl(600_000, 0).sit_out_ns, 60_000 * MS, "at most a minute");
}

#[test]
fn the_wildest_clocks_are_polled_within_the_longest_grace() {
    let timing = Timing::from_ttl(MAX_TTL_MS, 0, 0, Drift::from_ppm(999_999).unwrap());
    assert_eq!(timing.grace_ms, MAX_TTL_MS);
    assert_eq!(timing.check(0), Ok(()));
}

#[test]
fn hand_made_settings_are_refused_with_the_least_that_passes() {
    let good = by_ttl(10_000, 500);
    assert_eq!(check(Timing { tolerated: 1, ..good }), Err(Misuse::Tolerated));
    assert_eq!(
        check(Timing { attempt_ns: MS - 1, ..good }),
        Err(Misuse::Attempt { attempt_ns: MS })
    );
    assert_eq!(check(Timing { guard_ns: MS, ..good }), Err(Misuse::Guard { guard_ns: 2 * MS }));
    let renew_ns = 4 * good.attempt_ns;
    assert_eq!(check(Timing { renew_ns: 0, ..good }), Err(Misuse::Renewal { renew_ns }));
    assert_eq!(check(Timing { poll_ns: 0, ..good }), Err(Misuse::Poll { poll_ns: 1 }));
    assert_eq!(check(Timing { retry_ns: 0, ..good }), Err(Misuse::Retry));
    assert_eq!(check(Timing { seal_within_ns: 0, ..good }), Err(Misuse::SealWithin));
    let hasty = Timing { poll_ns: 2_000 * MS, attempt_ns: 500 * MS, grace_ms: 1, ..good };
    assert_eq!(check(hasty), Err(Misuse::Grace { grace_ms: 3_031 }));
    let day = Timing { grace_ms: u32::MAX, ..good };
    assert_eq!(check(day), Err(Misuse::Grace { grace_ms: u64::from(MAX_TTL_MS) }));
    let even = Timing { drift: Drift::from_ppm(0).unwrap(), sit_out_ns: 6_000 * MS, ..good };
    assert_eq!(
        check(Timing { grace_ms: 6_000, ..even }),
        Err(Misuse::SitOut { sit_out_ns: 6_000 * MS + 1 })
    );
}

/// SplitMix64, of which every number is as likely to be short as long.
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn span(&mut self) -> u64 {
        match self.below(40) {
            0 => 0,
            1 => u64::MAX,
            _ => {
                let bits = self.bits();
                bits >> self.below(64)
            }
        }
    }

    fn count(&mut self) -> u32 {
        (self.span() >> 32) as u32
    }

    fn drift(&mut self) -> Drift {
        let ppm = match self.below(3) {
            0 => 10_000,
            1 => self.below(1_000_000) as u32,
            _ => 999_999 - (self.below(1_000_000) as u32).isqrt(),
        };
        Drift::from_ppm(ppm).unwrap()
    }

    fn authority(&mut self) -> Authority {
        match self.below(2) {
            0 => Authority::LocalObservation,
            _ => Authority::StoreClock { error_ns: self.span() },
        }
    }

    fn budget(&mut self) -> Budget {
        let mut budget = Budget {
            detection_ns: self.below(200_000) * MS,
            p50_ns: self.below(50) * MS,
            p99_ns: self.below(500) * MS,
            pause_ns: self.below(5_000) * MS,
            drain_ns: self.below(5_000) * MS,
            tolerated: 2 + self.below(3) as u32,
            standbys: self.below(6) as u32,
            drift: self.drift(),
            resolution_ns: self.below(20) * MS,
            authority: self.authority(),
        };
        for _ in 0..self.below(4) {
            match self.below(8) {
                0 => budget.detection_ns = self.span(),
                1 => budget.p50_ns = self.span(),
                2 => budget.p99_ns = self.span(),
                3 => budget.pause_ns = self.span(),
                4 => budget.drain_ns = self.span(),
                5 => budget.tolerated = self.count(),
                6 => budget.standbys = self.count(),
                _ => budget.resolution_ns = self.span(),
            }
        }
        budget
    }

    fn timing(&mut self) -> Timing {
        let ttl_ms = 1 + self.below(u64::from(MAX_TTL_MS)) as u32;
        let mut timing = Timing::from_ttl(ttl_ms, 0, self.below(50) * MS, self.drift());
        for _ in 0..1 + self.below(3) {
            match self.below(11) {
                0 => timing.ttl_ms = self.count(),
                1 => timing.renew_ns = self.span(),
                2 => timing.attempt_ns = self.span(),
                3 => timing.tolerated = self.count(),
                4 => timing.pause_ns = self.span(),
                5 => timing.drain_ns = self.span(),
                6 => timing.guard_ns = self.span(),
                7 => timing.poll_ns = self.span(),
                8 => timing.retry_ns = self.span() >> 60,
                9 => timing.seal_within_ns = self.span() >> 60,
                _ => (timing.grace_ms, timing.sit_out_ns) = (self.count(), self.span()),
            }
        }
        timing
    }
}

/// The place of a misuse in the order of the checks, and the timing with the nearest value that
/// passes, or with the one next to that on the side of what was refused.
fn mended(timing: Timing, misuse: Misuse, beside: bool) -> (u8, Timing) {
    let by = u64::from(beside);
    let nearest = |was: u64, nearest: u64| if was < nearest { nearest - by } else { nearest + by };
    let short = |span: u64| u32::try_from(span).unwrap_or(u32::MAX);
    match misuse {
        Misuse::Ttl if timing.ttl_ms == 0 => (0, Timing { ttl_ms: 1 - short(by), ..timing }),
        Misuse::Ttl => (0, Timing { ttl_ms: MAX_TTL_MS + short(by), ..timing }),
        Misuse::Tolerated => (1, Timing { tolerated: 2 - short(by), ..timing }),
        Misuse::Attempt { attempt_ns } => (2, Timing { attempt_ns: attempt_ns - by, ..timing }),
        Misuse::Guard { guard_ns } => (3, Timing { guard_ns: guard_ns - by, ..timing }),
        Misuse::Renewal { renew_ns } => (4, Timing { renew_ns: renew_ns - by, ..timing }),
        Misuse::TooShort { ttl_ms } => (5, Timing { ttl_ms: short(ttl_ms - by), ..timing }),
        Misuse::Poll { poll_ns } => {
            (6, Timing { poll_ns: nearest(timing.poll_ns, poll_ns), ..timing })
        }
        Misuse::Retry => (7, Timing { retry_ns: 1 - by, ..timing }),
        Misuse::SealWithin => (8, Timing { seal_within_ns: 1 - by, ..timing }),
        Misuse::Grace { grace_ms } => {
            let grace_ms = short(nearest(u64::from(timing.grace_ms), grace_ms));
            (9, Timing { grace_ms, ..timing })
        }
        Misuse::SitOut { sit_out_ns } => (10, Timing { sit_out_ns: sit_out_ns - by, ..timing }),
    }
}

#[test]
fn the_value_that_a_misuse_names_passes_and_its_neighbour_does_not() {
    let mut draws = Draws(1);
    let mut seen = BTreeSet::new();
    for _ in 0..200_000 {
        let (timing, resolution_ns) = (draws.timing(), draws.span() >> 24);
        let Err(misuse) = timing.check(resolution_ns) else { continue };
        if matches!(misuse, Misuse::TooShort { ttl_ms } if ttl_ms > u64::from(MAX_TTL_MS)) {
            let day = Timing { ttl_ms: MAX_TTL_MS, ..timing };
            assert_eq!(day.check(resolution_ns), Err(misuse), "no ttl does for {timing:?}");
            continue;
        }
        let (order, passing) = mended(timing, misuse, false);
        if let Err(next) = passing.check(resolution_ns) {
            assert!(mended(passing, next, false).0 > order, "{misuse:?}, {next:?}: {timing:?}");
        }
        let (_, failing) = mended(timing, misuse, true);
        assert_eq!(failing.check(resolution_ns), Err(misuse), "{timing:?}");
        seen.insert(order);
    }
    assert_eq!(seen, (0..=10).collect());
}

/// As [`mended`], for a budget.
fn afforded(budget: Budget, refusal: Refusal, beside: bool) -> (u8, Budget) {
    let by = u64::from(beside);
    let one = u32::from(beside);
    match refusal {
        Refusal::TooFewTolerated { least } => (0, Budget { tolerated: least - one, ..budget }),
        Refusal::Resolution { most_ns } => (1, Budget { resolution_ns: most_ns + by, ..budget }),
        Refusal::TooManyTolerated { most } => (2, Budget { tolerated: most + one, ..budget }),
        Refusal::Operation { most_ns } => {
            let [p50_ns, p99_ns] = [budget.p50_ns, budget.p99_ns].map(|ns| ns.min(most_ns + by));
            (3, Budget { p50_ns, p99_ns, ..budget })
        }
        Refusal::Standbys { most } => (4, Budget { standbys: most + one, ..budget }),
        Refusal::Pause { most_ns } => (5, Budget { pause_ns: most_ns + by, ..budget }),
        Refusal::Drain { most_ns } => (6, Budget { drain_ns: most_ns + by, ..budget }),
        Refusal::Detection { least_ns } => (7, Budget { detection_ns: least_ns - by, ..budget }),
    }
}

#[test]
fn the_budget_that_a_refusal_names_passes_and_its_neighbour_does_not() {
    let mut draws = Draws(2);
    let mut seen = BTreeSet::new();
    for _ in 0..200_000 {
        let budget = draws.budget();
        let Err(refusal) = derive(&budget) else { continue };
        let (order, passing) = afforded(budget, refusal, false);
        if let Err(next) = derive(&passing) {
            assert!(afforded(passing, next, false).0 > order, "{refusal:?}, {next:?}: {budget:?}");
        }
        let (_, failing) = afforded(budget, refusal, true);
        assert_eq!(derive(&failing), Err(refusal), "{budget:?}");
        seen.insert(order);
    }
    assert_eq!(seen, (0..=7).collect());
}

#[test]
fn what_is_derived_passes_the_check_and_keeps_its_budget() {
    let mut draws = Draws(3);
    let mut derived = 0;
    for _ in 0..200_000 {
        let budget = draws.budget();
        let Ok(plan) = derive(&budget) else { continue };
        let timing = plan.timing;
        assert_eq!(timing.check(budget.resolution_ns), Ok(()), "{budget:?}");
        assert!(plan.takeover_ns <= budget.detection_ns, "{budget:?}");
        assert!(timing.attempt_ns >= budget.p99_ns);
        let queue_ns = u128::from(budget.p50_ns) * (u128::from(budget.standbys) + 1);
        assert!(u128::from(timing.attempt_ns) >= queue_ns, "{budget:?}");
        assert_eq!(timing.pause_ns, budget.pause_ns);
        assert_eq!(timing.drain_ns, budget.drain_ns);
        assert_eq!(timing.tolerated, budget.tolerated);
        let longer = Timing { ttl_ms: timing.ttl_ms + 1, ..timing };
        assert!(
            timing.ttl_ms == MAX_TTL_MS
                || longer.takeover_ns(budget.authority) > budget.detection_ns,
            "{budget:?}"
        );
        derived += 1;
    }
    assert!(derived > 20_000, "{derived}");
}

#[test]
fn what_a_plan_tolerates_just_fits() {
    let mut draws = Draws(4);
    for _ in 0..50_000 {
        let budget = draws.budget();
        let Ok(plan) = derive(&budget) else { continue };
        let fits = |timing: Timing| timing.check(budget.resolution_ns) == Ok(());
        let paused = |pause_ns| Timing { pause_ns, ..plan.timing };
        assert!(fits(paused(plan.pause_ns)) && !fits(paused(plan.pause_ns + 1)), "{budget:?}");
        let lost = u32::try_from(plan.lost_renewals).unwrap();
        let losing = |tolerated| Timing { tolerated, ..plan.timing };
        assert!(fits(losing(lost)) && !fits(losing(lost + 1)), "{budget:?}");
    }
}

/// Two regions: 100 ms at the 99th percentile, and clocks that are right, for round figures.
const REGIONS: Budget = Budget {
    detection_ns: 12_000 * MS,
    p50_ns: 10 * MS,
    p99_ns: 100 * MS,
    pause_ns: 1_000 * MS,
    drain_ns: 2_000 * MS,
    tolerated: 2,
    standbys: 2,
    drift: Drift::from_ppm(0).unwrap(),
    resolution_ns: MS,
    authority: Authority::LocalObservation,
};

#[test]
fn a_detection_target_becomes_the_longest_ttl_that_keeps_it() {
    let plan = derive(&REGIONS).unwrap();
    let timing = plan.timing;
    assert_eq!(timing.attempt_ns, 100 * MS);
    assert_eq!(timing.guard_ns, 102 * MS, "two readings and an attempt");
    assert_eq!(timing.poll_ns, 1_500 * MS);
    assert_eq!(timing.ttl_ms, 12_000 - 1_500 - 200);
    assert_eq!(plan.takeover_ns, REGIONS.detection_ns);
    assert_eq!(timing.renew_ns, 10_300 * MS / 3);
    assert_eq!(plan.self_fence_ns, (10_300 - 102 - 2_000) * MS);
    assert_eq!(plan.pause_ns, (10_300 - 102 - 2_000 - 500) * MS - timing.renew_ns);
    assert_eq!(plan.lost_renewals, 18);
    assert_eq!(plan.holder_per_hour, 1_166, "every 3.09 s at most");
    assert_eq!(plan.standbys_per_hour, 9_600, "two of them, every 0.75 s at most");
}

#[test]
fn candidates_look_every_two_seconds_however_long_the_target_but_no_faster_than_they_can() {
    let hour = Budget { detection_ns: 3_600_000 * MS, ..REGIONS };
    assert_eq!(derive(&hour).unwrap().timing.poll_ns, 2_000 * MS);
    let slow = Budget { p99_ns: 3_000 * MS, ..hour };
    assert_eq!(derive(&slow).unwrap().timing.poll_ns, 3_000 * MS);
}

#[test]
fn the_error_of_a_store_clock_comes_out_of_the_ttl() {
    let authority = Authority::StoreClock { error_ns: 300 * MS };
    let plan = derive(&Budget { authority, ..REGIONS }).unwrap();
    assert_eq!(plan.timing.ttl_ms, 12_000 - 300 - 1_500 - 200);
}

#[test]
fn an_attempt_has_room_for_a_burst_of_everybody() {
    let plan = derive(&Budget { standbys: 19, ..REGIONS }).unwrap();
    assert_eq!(plan.timing.attempt_ns, 200 * MS, "20 parties, 10 ms each");
}

#[test]
fn a_target_that_cannot_be_met_is_refused_with_the_shortest_that_can() {
    let refusal = derive(&Budget { detection_ns: 4_000 * MS, ..REGIONS }).unwrap_err();
    // Nine attempts, the pause, the drain, the guard; then poll, read and swap.
    let least_ns = (900 + 1_000 + 2_000 + 102 + 300) * MS;
    assert_eq!(refusal, Refusal::Detection { least_ns });
    assert_eq!(
        refusal.to_string(),
        "the detection target is too short: renewals, pauses, the end of the work (drain) and the \
         margin for clocks (guard) need 4.302s or more; use that, or plan for shorter pauses, a \
         shorter drain, a faster store"
    );
    let tight = derive(&Budget { detection_ns: least_ns, ..REGIONS }).unwrap();
    assert_eq!(tight.timing.ttl_ms, 4_002);
    assert_eq!(tight.pause_ns, REGIONS.pause_ns);
    assert_eq!(tight.lost_renewals, 2);
}

#[test]
fn refusals_tell_people_spans_that_pass() {
    let text = |misuse: Misuse| misuse.to_string();
    assert!(text(Misuse::Renewal { renew_ns: 4 * MS + 1 }).ends_with("apart: 5ms or more"));
    assert!(text(Misuse::Poll { poll_ns: 1 }).contains("every 1ns or so"));
    assert!(text(Misuse::TooShort { ttl_ms: 86_400_001 }).contains("shorter drain"));
    let most = Refusal::Drain { most_ns: 5 * MS - 1 };
    assert!(most.to_string().ends_with("within 4ms"));
}

#[test]
fn a_plan_says_its_promises_in_words() {
    let plan = derive(&REGIONS).unwrap();
    assert_eq!(
        plan.to_string(),
        "a ttl of 10.3s, renewed every 3.433s, each attempt within 100ms\n\
         a dead holder is replaced within 12s\n\
         18 lost renewals in a row, each repeated at once, cost nothing, even with a pause of 1s\n\
         a pause of 4.264s costs nothing, even with 2 lost renewals\n\
         cut off from the store, a holder starts nothing after 8.198s, and has 2s to end its work\n\
         store operations per hour: 1166 of the holder, 9600 of the standbys"
    );
    let no_pause = derive(&Budget { pause_ns: 0, ..REGIONS }).unwrap().to_string();
    assert_eq!(no_pause.matches("a pause of ").count(), 1, "{no_pause}");
}

#[test]
fn a_span_is_one_exact_word() {
    for (ns, word) in [
        (0, "0s"),
        (7, "7ns"),
        (1_500_000, "1500000ns"),
        (250 * MS, "250ms"),
        (1_050 * MS, "1.05s"),
        (15_000 * MS, "15s"),
        (636_021 * MS, "636.021s"),
        (1_000_000_007, "1.000000007s"),
        (28_800_000 * MS, "8h"),
        (u64::MAX, "18446744073.709551615s"),
    ] {
        assert_eq!(Span(ns).to_string(), word);
    }
}
