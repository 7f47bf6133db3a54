//! What a holder does, and what ends it.

use super::rig::*;
use super::*;

#[test]
fn an_absent_record_is_created_sealed_and_led() {
    let rig = Rig::leading();
    assert!(rig.may_start() && rig.may_finish());
    let record = rig.key.record();
    assert_eq!(Some(record.token), rig.elector.token());
    assert_eq!(
        (record.token.term, record.state, record.instance),
        (Term::FIRST, HELD, Nonce(0xaaaa))
    );
    assert!(rig.key.text().contains("\"at\":\"2026-11-30T19:04:05.12"));
}

#[test]
fn what_remains_is_the_span_to_stop_at_and_nothing_without_leave_to_start() {
    let mut rig = Rig::leading();
    let stop_at = rig.elector.stop_at(rig.now).unwrap();
    assert_eq!(rig.elector.remaining_ns(rig.now), stop_at.since(rig.now.mono));
    assert!(rig.elector.remaining_ns(rig.now) > 1);
    rig.input(Input::Resign { to: None });
    assert_eq!(rig.elector.remaining_ns(rig.now), 0);
    assert_eq!(rig.elector.stop_at(rig.now), Some(rig.now.mono));
}

#[test]
fn only_an_unchanged_record_of_our_own_is_climbed_over() {
    let changed = |attempt: Option<Nonce>, instance: Option<Nonce>| {
        let mut rig = Rig::leading();
        let token = rig.elector.token().unwrap();
        rig.input(Input::SealRefused { token, floor: Some(41) });
        rig.drained();
        let mut other = Key { value: None, writes: rig.key.writes };
        let record = rig.key.record();
        let attempt = attempt.unwrap_or(record.attempt);
        let instance = instance.unwrap_or(record.instance);
        other.put(&LeaseRecord { attempt, instance, ..record });
        rig.key = other;
        rig.next_request();
        rig.answer(1);
        rig.elector.state()
    };
    assert_eq!(changed(None, None), State::Campaigning);
    assert_eq!(changed(Some(Nonce(9)), None), State::Standby);
    assert_eq!(changed(None, Some(Nonce(9))), State::Standby);
}

#[test]
fn a_floor_out_of_reach_is_a_fault_and_no_campaign() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    let event = rig.input(Input::SealRefused { token, floor: Some(2_000_000) });
    assert_eq!(demoted(event), Some(Reason::SealFailed));
    rig.drained();
    rig.answer(1);
    assert_eq!(rig.key.record().state, RELEASED, "others need not wait");
    rig.next_request();
    let event = rig.answer(1);
    assert_eq!(
        event,
        Some(Event::StoreFault(StoreFault::BeyondMaxAdvance { floor: 2_000_000, found: 1 }))
    );
    assert_eq!(rig.elector.state(), State::Observing);
}

#[test]
fn a_late_acknowledgement_never_extends_the_lease() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    let sent = rig.now;
    rig.request = None;
    rig.perform(&request);
    rig.pass(timing().attempt_ns / MS - 1);
    assert!(matches!(rig.reply(&request), Some(Event::Renewed { .. })));
    let ttl_ns =
        Drift::DEFAULT.shrink_ns(u64::from(TTL_MS) * MS) - timing().guard_ns - timing().drain_ns;
    assert_eq!(rig.elector.stop_at(rig.now), Some(sent.mono.after(ttl_ns)));
}

#[test]
fn an_answer_to_another_request_counts_for_nothing() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    let before = rig.elector.stop_at(rig.now);
    let version = Key::version(99);
    let stale = OpId(request.op.0.wrapping_sub(1));
    assert_eq!(
        rig.input(Input::Done { op: stale, outcome: Outcome::Applied(version), salt: 9 }),
        None
    );
    assert_eq!(rig.elector.stop_at(rig.now), before);
}

#[test]
fn an_unanswered_renewal_is_read_back_and_counts_from_its_own_stamp() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    let sent = rig.now.mono;
    rig.perform(&request);
    rig.request = None;
    assert!(
        matches!(rig.until_wake(), Some(Event::RenewalLate { .. })),
        "timed out by its own clock"
    );
    assert!(matches!(rig.next_request().body, Body::Read));
    assert!(matches!(rig.answer(1), Some(Event::Renewed { .. })));
    let valid = rig.elector.valid_until(rig.now).unwrap();
    assert_eq!(valid.since(sent), rig.elector.config.valid_ns);
}

#[test]
fn a_renewal_that_never_arrived_is_sent_again() {
    let mut rig = Rig::leading();
    rig.next_request();
    rig.request = None;
    rig.until_wake();
    rig.next_request();
    assert_eq!(rig.answer(1), None, "nothing applied");
    assert!(matches!(rig.next_request().body, Body::Write { .. }));
    assert!(matches!(rig.answer(1), Some(Event::Renewed { .. })));
}

#[test]
fn two_lost_renewals_in_a_row_are_survived() {
    let mut rig = Rig::leading();
    let mut lost = 0;
    while lost < 2 {
        if matches!(rig.next_request().body, Body::Read) {
            rig.answer(timing().attempt_ns / MS - 1);
        } else {
            lost += 1;
            rig.request = None;
            rig.until_wake();
        }
        assert!(rig.may_start());
    }
    while !matches!(rig.next_request().body, Body::Write { .. }) {
        rig.answer(timing().attempt_ns / MS - 1);
    }
    rig.answer(timing().attempt_ns / MS - 1);
    assert!(rig.may_start());
    assert_eq!(rig.elector.state(), State::Leading);
}

#[test]
fn past_stop_at_nothing_starts_and_work_may_finish_until_valid_until() {
    let mut rig = Rig::leading();
    rig.next_request();
    rig.request = None;
    let mut event = None;
    while demoted(event).is_none() {
        event = rig.until_wake();
        rig.request = None;
    }
    assert_eq!(demoted(event), Some(Reason::DeadlinePassed));
    assert!(!rig.may_start() && rig.may_finish());
    rig.pass(500);
    assert!(!rig.may_finish());
}

#[test]
fn the_clock_is_judged_before_the_input() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    rig.perform(&request);
    rig.pass(u64::from(TTL_MS) * 2);
    assert_eq!(
        demoted(rig.reply(&request)),
        Some(Reason::DeadlinePassed),
        "the acknowledgement came too late"
    );
    assert!(!rig.may_start() && !rig.may_finish());
}

#[test]
fn time_asleep_that_only_the_wall_clock_saw_ends_the_lease() {
    let mut rig = Rig::leading();
    rig.now.wall_ns = rig.now.wall_ns.map(|wall| wall + 3_600_000 * MS);
    assert!(!rig.may_start() && !rig.may_finish());
    assert_eq!(demoted(rig.tick()), Some(Reason::DeadlinePassed));
}

#[test]
fn a_wall_clock_set_back_changes_nothing() {
    let mut rig = Rig::leading();
    rig.now.wall_ns = rig.now.wall_ns.map(|wall| wall - 3_600_000 * MS);
    assert!(rig.may_start());
    assert_eq!(demoted(rig.tick()), None);
}

#[test]
fn a_monotonic_clock_that_goes_back_ends_the_lease_and_releases_nothing() {
    let mut rig = Rig::leading();
    let before = rig.key.text();
    rig.now.mono = Mono(rig.now.mono.0 - 1);
    assert!(!rig.may_start() && !rig.may_finish());
    assert_eq!(demoted(rig.tick()), Some(Reason::Disrupted));
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
    assert_eq!(rig.key.text(), before);
}

#[test]
fn a_wall_clock_that_goes_missing_disrupts() {
    let mut rig = Rig::leading();
    rig.now.wall_ns = None;
    assert!(!rig.may_start() && !rig.may_finish());
    assert_eq!(demoted(rig.tick()), Some(Reason::Disrupted));
}

#[test]
fn a_rival_in_the_record_ends_the_lease_at_once() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    rig.next_request();
    let mut usurped = Key { value: None, writes: 50 };
    usurped.put(&LeaseRecord {
        token: Token { term: Term::new(9).unwrap(), nonce: Nonce(3), ..token },
        ..rival(9, HELD)
    });
    rig.key = usurped;
    rig.answer(1);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::RivalSeen));
    assert!(!rig.may_finish());
    let before = rig.key.text();
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
    rig.next_request();
    rig.answer(1);
    assert_eq!(rig.key.text(), before, "what is not ours is not released");
}

#[test]
fn a_copy_of_our_memory_is_found_and_nothing_is_released() {
    let mut rig = Rig::leading();
    rig.next_request();
    let mut copied = Key { value: None, writes: 50 };
    copied.put(&LeaseRecord { attempt: Nonce(0xdead), ..rig.key.record() });
    rig.key = copied;
    rig.answer(1);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Twin));
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
}

#[test]
fn a_record_that_vanished_ends_the_lease_and_is_not_created_again() {
    let mut rig = Rig::leading();
    rig.next_request();
    rig.key.value = None;
    rig.answer(1);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::RecordGone));
    rig.drained();
    for said in [Some(Event::StoreFault(StoreFault::RecordGone)), None, None] {
        rig.next_request();
        assert_eq!(rig.answer(1), said);
    }
    assert_eq!(rig.key.value, None);
}

#[test]
fn a_store_that_is_gone_ends_the_lease_at_once() {
    let mut rig = Rig::leading();
    rig.next_request();
    assert_eq!(demoted(rig.fail(Outcome::Gone)), Some(Reason::RecordGone));
    assert!(!rig.may_finish());
}

#[test]
fn a_lease_without_a_store_is_stopped_by_its_own_clock() {
    let mut rig = Rig::leading();
    let from = rig.now.mono;
    loop {
        let event = rig.until_wake();
        if demoted(event).is_some() {
            break;
        }
        if rig.request.is_some() {
            rig.fail(Outcome::Unavailable);
        }
    }
    assert!(rig.now.mono.since(from) < u64::from(TTL_MS) * MS);
    assert!(!rig.may_start());
}

#[test]
fn resigning_keeps_renewing_while_the_work_drains_then_releases() {
    let mut rig = Rig::leading();
    assert_eq!(demoted(rig.input(Input::Resign { to: None })), Some(Reason::Resigned));
    assert!(!rig.may_start() && rig.may_finish());
    rig.drained();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })));
    assert_eq!(rig.key.record().state, RELEASED);
    assert_eq!(rig.key.record().token.term, Term::FIRST, "the tombstone keeps the term");
    assert_eq!(rig.lead().term, Term::new(2).unwrap());
}

#[test]
fn nothing_is_campaigned_for_while_earlier_work_is_undrained() {
    let mut rig = Rig::leading();
    rig.next_request();
    rig.request = None;
    while demoted(rig.until_wake()).is_none() {
        rig.request = None;
    }
    rig.pass(1_000_000);
    rig.request = None;
    assert_eq!(rig.tick(), None);
    assert_eq!((rig.request, rig.wake), (None, Wake::Idle));
    let before = rig.key.text();
    rig.drained();
    let request = rig.next_request();
    assert!(matches!(request.body, Body::Read), "in doubt it reads first");
    rig.answer(1);
    rig.next_request();
    assert!(
        matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })),
        "one conditional release"
    );
    assert_ne!(rig.key.text(), before);
}

#[test]
fn a_lost_release_is_read_back() {
    let mut rig = Rig::leading();
    rig.input(Input::Stop);
    rig.drained();
    let request = rig.request.unwrap();
    rig.perform(&request);
    rig.fail(Outcome::Unknown);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })));
    assert_eq!(rig.until_wake(), Some(Event::Stopped));
    assert_eq!(rig.wake, Wake::Idle);
}

#[test]
fn a_release_that_cannot_be_made_is_left_to_expire() {
    let mut rig = Rig::leading();
    rig.input(Input::Stop);
    rig.drained();
    loop {
        let event =
            if rig.request.is_some() { rig.fail(Outcome::Unavailable) } else { rig.until_wake() };
        if let Some(Event::Ended { how, .. }) = event {
            assert_eq!(how, How::Expired);
            break;
        }
    }
}

#[test]
fn a_store_that_fails_at_once_is_not_asked_in_a_spin() {
    for outcome in [Outcome::Unknown, Outcome::Unavailable, Outcome::Undecided, Outcome::Conflict] {
        let mut rig = Rig::leading();
        let from = rig.now.mono;
        let mut requests = 0;
        while rig.elector.state() == State::Leading {
            if rig.request.is_some() {
                requests += 1;
                rig.fail(outcome);
            } else {
                rig.until_wake();
            }
        }
        assert!(requests <= 12, "{requests} requests in {} ns", rig.now.mono.since(from));
    }
}

#[test]
fn a_renewal_acknowledged_while_draining_gives_time_to_finish_but_none_to_start() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    rig.perform(&request);
    rig.request = None;
    rig.input(Input::Resign { to: None });
    let valid_until = rig.elector.valid_until(rig.now).unwrap();
    assert!(matches!(rig.reply(&request), Some(Event::Renewed { .. })));
    assert!(rig.elector.valid_until(rig.now).unwrap() > valid_until);
    assert!(rig.elector.stop_at(rig.now).unwrap() <= rig.now.mono);
    assert!(!rig.may_start() && rig.may_finish());
}

#[test]
fn nothing_may_finish_in_a_term_that_ended_before_it_was_sealed() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.run_while(|state| state != State::Sealing);
    rig.input(Input::Stop);
    rig.run_while(|state| state == State::Sealing);
    assert_eq!(rig.elector.state(), State::Draining);
    assert!(!rig.may_finish());
}

#[test]
fn a_term_that_is_lost_while_its_work_drains_is_told_so() {
    let mut rig = Rig::leading();
    assert_eq!(demoted(rig.input(Input::Resign { to: None })), Some(Reason::Resigned));
    assert!(rig.may_finish());
    assert_eq!(demoted(rig.input(Input::Disrupted)), Some(Reason::Disrupted));
    assert!(!rig.may_finish());
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
    assert_eq!(rig.wake, Wake::At(rig.now.mono.after(timing().sit_out_ns)), "it had resigned");
}

#[test]
fn work_that_outlasts_its_drain_budget_is_named_when_the_term_runs_out() {
    let mut rig = Rig::leading();
    rig.input(Input::Stop);
    rig.pass(30_000);
    rig.tick();
    rig.request = None;
    rig.drained();
    rig.next_request();
    let event = rig.fail(Outcome::Unknown);
    assert!(matches!(event, Some(Event::Ended { how: How::DrainTimeout, .. })), "{event:?}");
}

#[test]
fn a_record_that_was_edited_under_a_leader_is_said_and_ends_the_term_at_its_deadline() {
    let mut rig = Rig::leading();
    rig.next_request();
    rig.fail(Outcome::Unknown);
    rig.key.value = Some((b"{}".to_vec(), 99));
    rig.next_request();
    assert!(matches!(
        rig.answer(1),
        Some(Event::StoreFault(StoreFault::Malformed { .. }) | Event::RenewalLate { .. })
    ));
    assert!(rig.may_start(), "nobody else has it");
    let mut event = None;
    while demoted(event).is_none() {
        event = if rig.request.is_some() { rig.answer(1) } else { rig.until_wake() };
    }
    assert_eq!(demoted(event), Some(Reason::DeadlinePassed));
    assert_eq!(rig.key.text(), "{}", "and nothing is overwritten");
}

#[test]
fn what_was_over_by_a_wall_clock_stays_over_when_that_is_set_back() {
    let mut rig = Rig::leading();
    rig.next_request();
    let wall_ns = rig.now.wall_ns;
    rig.now.wall_ns = wall_ns.map(|wall_ns| wall_ns + 20_000 * MS);
    assert_eq!(demoted(rig.tick()), Some(Reason::DeadlinePassed));
    assert!(!rig.may_finish());
    rig.now.wall_ns = wall_ns;
    assert!(!rig.may_finish());
    assert_eq!(rig.answer(1), None, "a late acknowledgement changes nothing");
    assert!(!rig.may_finish() && !rig.may_start());
}

#[test]
fn nothing_is_released_after_a_disruption_whatever_ended_the_term() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    let event = rig.input(Input::SealRefused { token, floor: None });
    assert_eq!(demoted(event), Some(Reason::SealFailed));
    rig.input(Input::Disrupted);
    rig.request = None;
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
    assert_eq!(rig.request, None);
}

#[test]
fn a_refused_term_is_not_said_to_be_renewed() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    rig.next_request();
    rig.input(Input::SealRefused { token, floor: Some(9) });
    assert_eq!(rig.answer(1), None);
}

#[test]
fn the_end_is_what_was_written_not_what_is_wished_since() {
    let mut rig = Rig::leading();
    rig.input(Input::Resign { to: None });
    rig.drained();
    rig.input(Input::Resign { to: Some(Label::new("web-2").unwrap()) });
    rig.heir = None;
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })));
    assert_eq!(rig.key.record().state, RELEASED);
}

#[test]
fn a_disruption_does_not_shorten_the_time_away() {
    let mut rig = Rig::leading();
    rig.input(Input::Resign { to: None });
    rig.drained();
    rig.answer(1);
    let away_until = rig.wake;
    rig.pass(1);
    rig.input(Input::Disrupted);
    assert_eq!((rig.request, rig.wake), (None, away_until));
}

#[test]
fn while_a_declared_wall_clock_is_missing_the_store_is_left_alone() {
    let mut rig = Rig::new(Key::default());
    let wall_ns = rig.now.wall_ns.take();
    for _ in 0..100 {
        rig.until_wake();
        assert_eq!(rig.request, None);
        assert_eq!(rig.wake, Wake::At(rig.now.mono.after(timing().retry_ns)), "and no spin");
    }
    rig.now.wall_ns = wall_ns;
    rig.lead();
}

#[test]
fn each_fault_of_a_record_is_said_under_a_leader_and_again_after_it_was_mended() {
    let mut rig = Rig::leading();
    let good = rig.key.clone();
    let said = |rig: &mut Rig, value: &[u8]| {
        rig.key.value = Some((value.to_vec(), 99));
        while rig.request.is_none() {
            rig.until_wake();
        }
        match rig.request.unwrap().body {
            Body::Read => rig.answer(1),
            Body::Write { .. } => {
                rig.fail(Outcome::Unknown);
                rig.next_request();
                rig.answer(1)
            }
        }
    };
    let fault = |event| match event {
        Some(Event::StoreFault(fault)) => Some(fault),
        _ => None,
    };
    let newer = Some(StoreFault::Newer { format: 2 });
    let malformed = Some(StoreFault::Malformed { offset: 0 });
    assert_eq!(fault(said(&mut rig, b"")), malformed);
    assert_eq!(fault(said(&mut rig, b"")), None);
    assert_eq!(fault(said(&mut rig, b"{\"format\":2,")), newer);
    rig.key = good;
    rig.next_request();
    rig.answer(1);
    assert_eq!(fault(said(&mut rig, b"")), malformed);
}
