//! What a timing promises, and that every refusal names a value that passes, exactly.

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
