//! What a candidate does until it holds the lease, or does not.

use super::rig::*;
use super::*;
use crate::record::{Ask, State as RecordState};

#[test]
fn a_term_that_was_never_announced_has_no_token() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.input(Input::Stop);
    rig.answer(1);
    assert_eq!(rig.elector.state(), State::Releasing);
    assert_eq!(rig.elector.token(), None);
}

#[test]
fn nothing_starts_before_every_resource_is_sealed() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    let event = rig.answer(1);
    let Some(Event::Elected { token }) = event else { panic!("{event:?}") };
    assert!(!rig.may_start() && !rig.may_finish());
    let other = Token { nonce: Nonce(1), ..token };
    assert_eq!(rig.input(Input::Sealed(other)), None);
    assert!(!rig.may_start());
    assert!(matches!(rig.input(Input::Sealed(token)), Some(Event::Leading { .. })));
}

#[test]
fn sealing_past_its_budget_gives_the_lease_up_and_stays_away() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.answer(1);
    let started = rig.now.mono;
    let reason = loop {
        if let Some(reason) = demoted(rig.until_wake()) {
            break reason;
        }
        if rig.request.is_some() {
            rig.answer(1);
        }
    };
    assert_eq!(reason, Reason::SealFailed);
    assert!(rig.now.mono.since(started) <= 5_001 * MS);
    rig.drained();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })));
    let ended = rig.now.mono;
    rig.next_request();
    assert!(rig.now.mono.since(ended) >= u64::from(TTL_MS) * MS);
}

#[test]
fn a_refused_seal_without_a_floor_is_released_at_once() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.answer(1);
    let token = rig.elector.token().unwrap();
    assert_eq!(
        demoted(rig.input(Input::SealRefused { token, floor: None })),
        Some(Reason::SealFailed)
    );
    assert!(!rig.may_finish());
    rig.drained();
    rig.answer(1);
    assert_eq!(rig.key.record().state, RELEASED);
}

#[test]
fn a_fence_above_the_record_is_climbed_without_waiting_a_window() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.answer(1);
    let token = rig.elector.token().unwrap();
    assert_eq!(
        demoted(rig.input(Input::SealRefused { token, floor: Some(41) })),
        Some(Reason::Refused)
    );
    let from = rig.now.mono;
    assert!(matches!(rig.drained(), Some(Event::Ended { how: How::Lost, .. })));
    let above = rig.lead();
    assert_eq!(above.term, Term::new(42).unwrap());
    assert_eq!(above.lineage, token.lineage);
    assert!(rig.now.mono.since(from) < 1_000 * MS);
}

#[test]
fn the_last_term_is_never_wrapped() {
    let mut key = Key::default();
    key.put(&LeaseRecord {
        token: Token { term: Term::LAST, ..rival(1, RELEASED).token },
        ..rival(1, RELEASED)
    });
    let mut rig = Rig::new(key.clone());
    rig.tick();
    assert_eq!(rig.answer(1), Some(Event::StoreFault(StoreFault::Exhausted)));
    rig.next_request();
    assert_eq!(rig.answer(1), None, "said once");
    assert_eq!(rig.key.text(), key.text());
}

#[test]
fn a_live_record_is_watched_for_its_whole_window_and_then_taken() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    let first = rig.answer(1);
    assert!(matches!(first, Some(Event::Standby { alive: false, .. })), "{first:?}");
    let seen = rig.now.mono;
    let won = loop {
        let event = if rig.request.is_some() { rig.answer(1) } else { rig.until_wake() };
        if let Some(Event::Elected { token }) = event {
            break token;
        }
    };
    assert_eq!(won.term, Term::new(8).unwrap());
    assert_eq!(won.lineage, Lineage(0x77));
    assert!(rig.now.mono.since(seen) >= Drift::DEFAULT.stretch_ns(u64::from(TTL_MS) * MS));
}

#[test]
fn a_renewal_that_is_seen_starts_the_window_anew_and_proves_life() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    rig.pass(9_000);
    rig.tick();
    let record = LeaseRecord { attempt: Nonce(0x33), ..rival(7, HELD) };
    rig.key.put(&record);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Standby { alive: true, .. })));
    let seen = rig.now.mono;
    rig.run_while(|state| state == State::Standby);
    assert!(rig.now.mono.since(seen) >= 10_000 * MS);
}

#[test]
fn an_asker_starts_no_window_anew() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let seen = rig.now.mono;
    rig.pass(9_000);
    rig.tick();
    let ask = Ask { id: Nonce(5), to: Label::new("web-2").unwrap() };
    rig.key.put(&rival(7, RecordState::Held { ask: Some(ask) }));
    rig.run_while(|state| state == State::Standby);
    assert!(rig.now.mono.since(seen) < 11_000 * MS);
    rig.run_while(|state| state != State::Sealing);
    assert_eq!(rig.key.record().token.term, Term::new(8).unwrap());
}

#[test]
fn an_observer_whose_clock_jumped_watches_a_whole_window_again() {
    for disrupt in [true, false] {
        let mut rig = Rig::new(held_by_rival(7));
        rig.tick();
        rig.answer(1);
        if disrupt {
            rig.pass(1_000_000);
            rig.input(Input::Disrupted);
        } else {
            rig.now.mono = Mono(5);
            rig.tick();
        }
        let from = rig.now.mono;
        rig.run_while(|state| state != State::Campaigning);
        assert!(rig.now.mono.since(from) >= 10_100 * MS, "disrupt: {disrupt}");
    }
}

#[test]
fn the_store_clock_frees_a_dead_holders_record_without_a_window() {
    let error_ns = MS;
    let mut rig = Rig::with(held_by_rival(7), Authority::StoreClock { error_ns });
    rig.tick();
    let window_ns = Drift::DEFAULT.stretch_ns(u64::from(TTL_MS) * MS) + error_ns;
    let request = rig.request.take().unwrap();
    let key = rig.key.clone();
    let event =
        rig.input(Input::Done { op: request.op, outcome: key.read(Some(window_ns - 1)), salt: 3 });
    assert!(matches!(event, Some(Event::Standby { alive: true, .. })));
    let request = rig.next_request();
    assert!(matches!(request.body, Body::Read), "only a read can say that it is over");
    rig.request = None;
    rig.input(Input::Done { op: request.op, outcome: key.read(Some(window_ns)), salt: 4 });
    assert_eq!(rig.elector.state(), State::Campaigning);
}

#[test]
fn the_store_is_asked_again_when_its_clock_will_free_the_record() {
    let mut rig = Rig::with(held_by_rival(7), Authority::StoreClock { error_ns: MS });
    rig.tick();
    let request = rig.request.take().unwrap();
    let over_ns = Drift::DEFAULT.stretch_ns(u64::from(TTL_MS) * MS) + MS;
    let key = rig.key.clone();
    let from = rig.now.mono;
    let nearly = key.read(Some(over_ns - 700 * MS));
    rig.input(Input::Done { op: request.op, outcome: nearly, salt: 3 });
    rig.next_request();
    assert_eq!(rig.now.mono.since(from), 700 * MS);
}

#[test]
fn wishes_make_an_entry_young_and_postpone_nothing() {
    let mut rig = Rig::with(held_by_rival(7), Authority::StoreClock { error_ns: MS });
    rig.tick();
    let over_ns = Drift::DEFAULT.stretch_ns(u64::from(TTL_MS) * MS) + MS;
    let from = rig.now.mono;
    let mut asks = 0;
    while rig.elector.state() != State::Campaigning {
        let request = rig.next_request();
        rig.request = None;
        asks += 1;
        let id = Nonce(asks);
        let ask = Some(Ask { id, to: Label::new("web-9").unwrap() });
        let mut key = rig.key.clone();
        key.put(&rival(7, RecordState::Held { ask }));
        rig.input(Input::Done { op: request.op, outcome: key.read(Some(0)), salt: asks });
        assert!(rig.now.mono.since(from) <= over_ns + 1_000 * MS, "asked {asks} times");
    }
    assert!(asks > 2 && rig.now.mono.since(from) >= over_ns, "asked {asks} times");
}

#[test]
fn an_owner_is_named_again_after_a_disruption() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    rig.input(Input::Disrupted);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Standby { alive: false, .. })));
}

#[test]
fn a_window_by_the_store_clock_is_not_finished_by_our_own() {
    let mut rig = Rig::with(held_by_rival(7), Authority::StoreClock { error_ns: MS });
    rig.tick();
    let request = rig.request.take().unwrap();
    let key = rig.key.clone();
    let nearly_over = key.read(Some(10_000 * MS));
    rig.input(Input::Done { op: request.op, outcome: nearly_over, salt: 3 });
    rig.next_request();
    rig.answer(1);
    let from = rig.now.mono;
    rig.run_while(|state| state == State::Standby);
    assert!(
        rig.now.mono.since(from) >= 10_000 * MS,
        "an entry that lost its age is observed from then on"
    );
}

#[test]
fn an_entry_without_an_age_is_observed() {
    let mut rig = Rig::with(held_by_rival(7), Authority::StoreClock { error_ns: MS });
    rig.tick();
    assert!(matches!(rig.answer(1), Some(Event::Standby { alive: false, .. })));
}

#[test]
fn a_released_record_is_taken_at_once_above_its_term() {
    let mut key = Key::default();
    key.put(&rival(7, RELEASED));
    let mut rig = Rig::new(key);
    rig.tick();
    rig.answer(1);
    assert!(matches!(rig.answer(1), Some(Event::Elected { token }) if token.term.get() == 8));
}

#[test]
fn an_offer_to_somebody_else_is_watched_for_its_grace() {
    let mut key = Key::default();
    let note = crate::label::Note::EMPTY;
    key.put(&LeaseRecord {
        ttl_ms: 500,
        ..rival(7, RecordState::Offered { to: Some(Label::new("web-2").unwrap()), note })
    });
    let mut rig = Rig::new(key);
    rig.tick();
    rig.answer(1);
    assert_eq!(rig.elector.state(), State::Standby);
    let seen = rig.now.mono;
    rig.run_while(|state| state == State::Standby);
    assert!((505 * MS..600 * MS).contains(&rig.now.mono.since(seen)));
}

#[test]
fn a_campaign_without_an_answer_is_confirmed_from_its_own_stamp() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    let request = rig.request.unwrap();
    let sent = rig.now.mono;
    rig.perform(&request);
    rig.request = None;
    rig.until_wake();
    assert_eq!(rig.elector.state(), State::Confirming);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Elected { .. })));
    assert_eq!(rig.elector.valid_until(rig.now).unwrap().since(sent), rig.elector.config.valid_ns);
}

#[test]
fn all_attempts_of_one_campaign_on_one_version_carry_one_token() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    let first = rig.request.take().unwrap();
    rig.until_wake();
    rig.next_request();
    rig.answer(1);
    let second = rig.next_request();
    let token = |request: &Request| match &request.body {
        Body::Write { draft, .. } => draft.token,
        Body::Read => panic!("a read"),
    };
    assert_eq!(token(&first), token(&second));
    rig.perform(&first);
    rig.request = None;
    rig.perform(&second);
    rig.reply(&second);
    rig.next_request();
    assert!(
        matches!(rig.answer(1), Some(Event::Elected { .. })),
        "the first one landed late, and is ours"
    );
}

#[test]
fn a_campaign_that_never_arrived_is_sent_again_without_another_window() {
    let (mut rig, lost) = campaigning_on_a_silent_record();
    let from = rig.now.mono;
    rig.run_while(|state| state != State::Sealing);
    assert!(rig.now.mono.since(from) < 5_000 * MS);
    assert_eq!(
        rig.elector.token(),
        Some(drafted(&lost).token),
        "one campaign, one version, one token"
    );
}

#[test]
fn a_campaign_on_another_version_draws_another_token() {
    let (mut rig, lost) = campaigning_on_a_silent_record();
    let ask = Ask { id: Nonce(5), to: Label::new("web-2").unwrap() };
    rig.key.put(&rival(7, RecordState::Held { ask: Some(ask) }));
    rig.run_while(|state| state != State::Sealing);
    let (first, token) = (drafted(&lost).token, rig.elector.token().unwrap());
    assert_eq!((token.lineage, token.term), (first.lineage, first.term));
    assert_ne!(token.nonce, first.nonce);
}

#[test]
fn a_wish_to_resign_is_over_with_the_campaign_it_was_for() {
    let (mut rig, _) = campaigning_on_a_silent_record();
    rig.input(Input::Resign { to: None });
    rig.key.put(&LeaseRecord { attempt: Nonce(0x33), ..rival(7, HELD) });
    rig.run_while(|state| state != State::Standby);
    rig.run_while(|state| !matches!(state, State::Sealing | State::Releasing));
    assert_eq!(rig.elector.state(), State::Sealing);
}

#[test]
fn a_campaign_in_doubt_is_followed_after_a_stop_until_it_has_run_out() {
    let (mut rig, lost) = campaigning_on_a_silent_record();
    let sent = rig.now.mono;
    rig.until_wake();
    assert_eq!(rig.elector.state(), State::Confirming);
    rig.input(Input::Stop);
    while rig.elector.state() != State::Stopped {
        assert!(rig.now.mono.since(sent) <= rig.elector.config.valid_ns);
        if rig.request.is_some() {
            rig.fail(Outcome::Unavailable);
        } else {
            rig.until_wake();
        }
    }
    assert_eq!(rig.now.mono.since(sent), rig.elector.config.valid_ns);

    let (mut rig, found) = campaigning_on_a_silent_record();
    rig.until_wake();
    rig.input(Input::Stop);
    rig.perform(&found);
    rig.run_while(|state| state != State::Stopped);
    assert_eq!(rig.key.record().state, RELEASED, "what it took it gives back");
    assert_eq!(drafted(&lost).token.term, rig.key.record().token.term);
}

#[test]
fn a_campaign_confirmed_past_its_own_deadline_is_never_announced() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    let request = rig.request.take().unwrap();
    rig.perform(&request);
    rig.until_wake();
    rig.next_request();
    rig.pass(1);
    rig.fail(Outcome::Unknown);
    rig.pass(20_000);
    rig.next_request();
    let announced = |event: Option<Event<'_>>| {
        matches!(event, Some(Event::Elected { .. } | Event::Ended { .. }))
    };
    assert!(!announced(rig.answer(1)));
    assert_eq!(rig.elector.state(), State::Releasing);
    assert!(!announced(rig.answer(1)));
    assert_eq!(rig.key.record().state, RELEASED);
    assert_eq!(rig.lead().term, Term::new(2).unwrap());
}

#[test]
fn stopping_during_a_campaign_releases_what_it_won() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.input(Input::Stop);
    assert_eq!(rig.answer(1), None);
    assert_eq!(rig.elector.state(), State::Releasing);
    rig.answer(1);
    assert_eq!(rig.key.record().state, RELEASED);
    while rig.elector.state() != State::Stopped {
        rig.until_wake();
    }
}

#[test]
fn stopping_while_nothing_is_held_stops_at_once() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    assert_eq!(rig.input(Input::Stop), Some(Event::Stopped));
    assert_eq!(rig.wake, Wake::Idle);
    assert_eq!(rig.input(Input::Tick), None);
}

#[test]
fn the_loser_of_a_race_stands_by() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.key.put(&rival(1, HELD));
    rig.answer(1);
    assert_eq!(rig.elector.state(), State::Confirming, "a conflict alone is no rival");
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Standby { .. })));
    assert_eq!(rig.key.record().token, rival(1, HELD).token);
}

#[test]
fn what_is_no_record_is_a_fault_and_never_overwritten() {
    for (bytes, fault) in [
        (&b"{\"format\":2,"[..], StoreFault::Newer { format: 2 }),
        (&b"hello"[..], StoreFault::Malformed { offset: 0 }),
    ] {
        let key = Key { value: Some((bytes.to_vec(), 1)), writes: 1 };
        let mut rig = Rig::new(key);
        rig.tick();
        assert_eq!(rig.answer(1), Some(Event::StoreFault(fault)));
        for _ in 0..5 {
            rig.next_request();
            assert_eq!(rig.answer(1), None, "said once");
        }
        assert_eq!(rig.key.value.as_ref().unwrap().0, bytes);
        rig.key = held_by_rival(3);
        rig.next_request();
        assert!(matches!(rig.answer(1), Some(Event::Standby { .. })), "a good read ends it");
    }
}

#[test]
fn another_lineage_under_a_known_record_blocks() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let other = LeaseRecord {
        token: Token { lineage: Lineage(0x88), ..rival(1, RELEASED).token },
        ..rival(1, RELEASED)
    };
    rig.key.put(&other);
    let text = rig.key.text();
    rig.next_request();
    let fault = StoreFault::ForeignLineage { known: Lineage(0x77), found: Lineage(0x88) };
    assert_eq!(rig.answer(1), Some(Event::StoreFault(fault)));
    rig.next_request();
    rig.answer(1);
    assert_eq!(rig.key.text(), text);
}

#[test]
fn a_store_that_went_back_is_reported_and_outgrown() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    rig.key.put(&rival(3, RELEASED));
    rig.next_request();
    assert_eq!(rig.answer(1), Some(Event::StoreFault(StoreFault::WentBack { floor: 7, found: 3 })));
    assert!(matches!(rig.answer(1), Some(Event::Elected { token }) if token.term.get() == 8));
}

#[test]
fn a_rival_in_a_store_that_went_back_is_named_first() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    rig.key.put(&rival(3, HELD));
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Standby { alive: true, .. })));
    rig.next_request();
    let fault = StoreFault::WentBack { floor: 7, found: 3 };
    assert_eq!(rig.answer(1), Some(Event::StoreFault(fault)));
    rig.next_request();
    assert_eq!(rig.answer(1), None, "said once");
}

#[test]
fn a_store_that_is_read_but_not_written_is_down_once() {
    let mut rig = Rig::new(Key::default());
    let mut said = Vec::new();
    rig.tick();
    for _ in 0..40 {
        let event = match rig.request.map(|request| request.body) {
            Some(Body::Write { .. }) => rig.fail(Outcome::Unavailable),
            Some(Body::Read) => rig.answer(1),
            None => rig.until_wake(),
        };
        said.extend(event);
    }
    assert_eq!(said, [Event::StoreDown]);
    rig.lead();
}

#[test]
fn an_unreachable_store_is_said_once_and_when_it_is_back() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    assert_eq!(rig.fail(Outcome::Unavailable), Some(Event::StoreDown));
    rig.next_request();
    assert_eq!(rig.fail(Outcome::Unavailable), None);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Standby { .. })));
    assert_eq!(rig.wake, Wake::Now, "a second event waits for the next step");
    assert_eq!(rig.until_wake(), Some(Event::StoreUp));
}

#[test]
fn what_was_won_after_a_wish_to_stop_is_released_until_that_works() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    rig.input(Input::Stop);
    rig.answer(1);
    rig.fail(Outcome::Undecided);
    while rig.elector.state() != State::Stopped {
        if rig.request.is_some() {
            rig.answer(1);
        } else {
            rig.until_wake();
        }
    }
    assert_eq!(rig.key.record().state, RELEASED);
}
