//! Offers, wishes for a hand-off, hints, force, adoption.

use super::rig::*;
use super::*;
use crate::label::Note;
use crate::observe::{How, Reason};
use crate::operator::{self, Signature};
use crate::record::{Ask, State as RecordState};

fn label(text: &'static str) -> Label<'static> {
    Label::new(text).unwrap()
}

fn offered(term: u64, to: Option<&'static str>, note: &'static str) -> Key {
    let mut key = Key::default();
    let state = RecordState::Offered { to: to.map(label), note: Note::new(note).unwrap() };
    key.put(&rival(term, state));
    key
}

/// Somebody else writes into the record that is there.
fn rewrite(key: &mut Key, change: impl for<'a> Fn(LeaseRecord<'a>) -> LeaseRecord<'a>) {
    let mut changed = Key { value: None, writes: key.writes };
    changed.put(&change(key.record()));
    *key = changed;
}

fn entry(key: &Key) -> Entry<'_> {
    match key.read(None) {
        Outcome::Entry(entry) => entry,
        _ => panic!("no entry"),
    }
}

fn signature() -> Signature<'static> {
    Signature {
        holder: label("forced:ops"),
        instance: Nonce(0xcccc),
        attempt: Nonce(0x33),
        at_ms: None,
    }
}

fn ask_for(rig: &mut Rig, to: &'static str) {
    let ask = Ask { id: Nonce(5), to: label(to) };
    rewrite(&mut rig.key, |record| operator::ask(&record, ask).unwrap());
}

#[test]
fn a_resignation_in_favour_of_somebody_is_an_offer_with_a_grace() {
    let mut rig = Rig::leading();
    assert_eq!(
        demoted(rig.input(Input::Resign { to: Some(label("web-2")) })),
        Some(Reason::Resigned)
    );
    rig.drained();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Offered, .. })));
    let record = rig.key.record();
    assert_eq!(record.state, RecordState::Offered { to: Some(label("web-2")), note: Note::EMPTY });
    assert_eq!(record.ttl_ms, timing().grace_ms);
    assert_eq!(rig.wake, Wake::At(rig.now.mono.after(timing().sit_out_ns)), "and it stays away");
}

#[test]
fn the_last_wish_counts() {
    let mut rig = Rig::leading();
    rig.input(Input::Resign { to: Some(label("web-2")) });
    rig.input(Input::Resign { to: None });
    rig.drained();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Released, .. })));
    assert_eq!(rig.key.record().state, RELEASED);
}

#[test]
fn an_offer_in_doubt_is_read_again_and_found() {
    let mut rig = Rig::leading();
    rig.input(Input::Resign { to: Some(label("web-2")) });
    rig.drained();
    let request = rig.request.unwrap();
    rig.perform(&request);
    rig.fail(Outcome::Unknown);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Ended { how: How::Offered, .. })));
}

#[test]
fn the_one_named_takes_an_offer_at_once_and_all_others_wait_out_its_grace() {
    for name in ["us", "000000000000aaaa"] {
        let mut rig = Rig::new(offered(7, Some(name), ""));
        rig.tick();
        rig.answer(1);
        assert_eq!(rig.elector.state(), State::Campaigning, "{name}");
        assert_eq!(drafted(&rig.request.unwrap()).token.term.get(), 8);
    }
    for to in [Some("web-9"), None] {
        let mut rig = Rig::new(offered(7, to, ""));
        rig.tick();
        let seen = rig.now.mono.after(MS);
        assert!(matches!(rig.answer(1), Some(Event::Standby { alive: false, .. })));
        rig.run_while(|state| state == State::Standby);
        assert!(rig.now.mono.since(seen) >= Drift::DEFAULT.stretch_ns(u64::from(TTL_MS) * MS));
    }
}

#[test]
fn a_wish_in_the_record_ends_the_term_by_an_offer() {
    let mut rig = Rig::leading();
    rig.next_request();
    ask_for(&mut rig, "web-2");
    assert!(matches!(rig.answer(1), Some(Event::RenewalLate { .. })), "the renewal conflicts");
    assert!(rig.may_start(), "a conflict alone is no loss");
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Asked));
    assert!(!rig.may_start() && rig.may_finish());
    rig.drained();
    rig.answer(1);
    assert_eq!(
        rig.key.record().state,
        RecordState::Offered { to: Some(label("web-2")), note: Note::EMPTY }
    );
}

#[test]
fn a_wish_for_ourselves_is_cleared_by_the_next_renewal() {
    for name in ["us", "000000000000aaaa"] {
        let mut rig = Rig::leading();
        rig.next_request();
        let ask = Ask { id: Nonce(5), to: label(name) };
        rewrite(&mut rig.key, |record| LeaseRecord {
            state: RecordState::Held { ask: Some(ask) },
            ..record
        });
        rig.answer(1);
        rig.next_request();
        assert_eq!(rig.answer(1), None);
        rig.next_request();
        assert!(matches!(rig.answer(1), Some(Event::Renewed { .. })));
        assert_eq!(rig.key.record().state, HELD);
    }
}

#[test]
fn a_wish_found_with_an_unconfirmed_renewal_counts_too() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    rig.perform(&request);
    ask_for(&mut rig, "web-2");
    rig.fail(Outcome::Unknown);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Asked));
}

#[test]
fn a_wish_that_comes_while_the_work_drains_changes_nothing() {
    let mut rig = Rig::leading();
    let request = rig.next_request();
    rig.perform(&request);
    ask_for(&mut rig, "web-3");
    rig.fail(Outcome::Unknown);
    rig.next_request();
    rig.input(Input::Resign { to: Some(label("web-2")) });
    assert!(matches!(rig.answer(1), Some(Event::Renewed { .. })), "found and passed over");
    rig.drained();
    while rig.request.is_some() {
        rig.answer(1);
    }
    let offered = RecordState::Offered { to: Some(label("web-2")), note: Note::EMPTY };
    assert_eq!(rig.key.record().state, offered);
}

#[test]
fn a_successor_without_a_reason_is_a_rival_not_force() {
    let mut rig = Rig::leading();
    rig.next_request();
    rewrite(&mut rig.key, |record| LeaseRecord {
        token: Token { term: Term::new(2).unwrap(), ..record.token },
        state: RELEASED,
        ..record
    });
    rig.answer(1);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::RivalSeen));
}

#[test]
fn force_ends_the_holder_and_keeps_everyone_waiting_for_the_old_ttl() {
    let mut rig = Rig::leading();
    let before = rig.key.record().token;
    rig.next_request();
    let reason = Note::new("stuck since noon").unwrap();
    rewrite(&mut rig.key, |record| {
        operator::force(&record, signature(), Nonce(9), reason).unwrap()
    });
    rig.answer(1);
    rig.next_request();
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Forced));
    assert!(!rig.may_start() && !rig.may_finish());
    let record = rig.key.record();
    assert_eq!(record.token.term.get(), before.term.get() + 1);
    assert_eq!((record.ttl_ms, record.token.lineage), (TTL_MS, before.lineage));
    let text = rig.key.text();
    rig.drained();
    assert_eq!(rig.key.text(), text, "what is not ours is not released");
}

#[test]
fn what_was_forced_can_be_waived_by_the_same_operator_only() {
    let key = held_by_rival(3);
    let reason = Note::new("stuck").unwrap();
    let forced = operator::force(&key.record(), signature(), Nonce(9), reason).unwrap();
    let free = operator::waive(&forced, signature()).unwrap();
    assert_eq!(free.state, RecordState::Released { note: reason });
    assert_eq!(free.token, forced.token);
    let other = Signature { instance: Nonce(1), ..signature() };
    assert_eq!(operator::waive(&forced, other), Err(operator::Refusal::NotForced));
    assert_eq!(operator::waive(&key.record(), signature()), Err(operator::Refusal::NotForced));
}

#[test]
fn what_an_operator_cannot_mean_is_refused() {
    use operator::Refusal;
    let held = held_by_rival(3);
    let free = rival(3, RELEASED);
    let reason = Note::new("stuck").unwrap();
    let ask = |to| Ask { id: Nonce(5), to: label(to) };
    assert_eq!(operator::ask(&free, ask("web-2")), Err(Refusal::NotHeld));
    assert_eq!(operator::ask(&held.record(), ask("rival")), Err(Refusal::AlreadyHolds));
    assert_eq!(operator::ask(&held.record(), ask("000000000000bbbb")), Err(Refusal::AlreadyHolds));
    assert_eq!(operator::force(&free, signature(), Nonce(9), reason), Err(Refusal::AlreadyFree));
    assert_eq!(
        operator::force(&held.record(), signature(), Nonce(9), Note::EMPTY),
        Err(Refusal::NoReason)
    );
    let last = rival(Term::LAST.get(), HELD);
    assert_eq!(operator::force(&last, signature(), Nonce(9), reason), Err(Refusal::Exhausted));
}

#[test]
fn a_hint_of_a_free_record_is_campaigned_on_without_a_read() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    rewrite(&mut rig.key, |record| LeaseRecord { state: RELEASED, ..record });
    let key = rig.key.clone();
    rig.input(Input::Hint(Some(entry(&key))));
    assert_eq!(drafted(&rig.request.unwrap()).token.term.get(), 8);
    assert!(matches!(rig.answer(1), Some(Event::Elected { .. })));
}

#[test]
fn a_stale_hint_costs_a_conflict_and_no_more() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let mut stale = rig.key.clone();
    rewrite(&mut stale, |record| LeaseRecord { state: RELEASED, ..record });
    rewrite(&mut rig.key, |record| record);
    rewrite(&mut rig.key, |record| LeaseRecord { attempt: Nonce(0x23), ..record });
    rig.input(Input::Hint(Some(entry(&stale))));
    rig.answer(1);
    rig.next_request();
    rig.answer(1);
    assert_eq!(rig.elector.state(), State::Standby);
    assert_eq!(rig.key.record().holder, label("rival"));
}

#[test]
fn a_hint_never_raises_a_fault() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    for change in [
        LeaseRecord {
            token: Token { lineage: Lineage(1), ..rival(7, HELD).token },
            ..rival(7, RELEASED)
        },
        rival(6, RELEASED),
        rival(Term::LAST.get(), RELEASED),
    ] {
        let mut other = rig.key.clone();
        rewrite(&mut other, |record| LeaseRecord {
            token: change.token,
            state: change.state,
            ..record
        });
        assert_eq!(rig.input(Input::Hint(Some(entry(&other)))), None);
        assert_eq!(rig.elector.state(), State::Standby);
        let request = rig.request.take().expect("a hint is a reason to look");
        assert_eq!(request.body, Body::Read);
        rig.reply(&request);
    }
    let broken = Entry { record: decode(b"{"), version: Key::version(1), age_ns: None };
    assert_eq!(rig.input(Input::Hint(Some(broken))), None);
}

#[test]
fn a_flood_of_hints_is_no_flood_of_reads() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    for _ in 0..20 {
        rig.input(Input::Hint(None));
        let request = rig.request.take().expect("a read at once");
        for _ in 0..10 {
            rig.input(Input::Hint(None));
            assert_eq!(rig.request, None, "one at a time");
        }
        rig.reply(&request);
        assert_eq!(rig.wake, Wake::At(rig.now.mono.after(timing().retry_ns)), "and one more");
        rig.until_wake();
        rig.answer(0);
    }
}

#[test]
fn a_leader_looks_when_a_hint_shows_a_rival_or_a_wish_and_not_at_its_own_echo() {
    let mut rig = Rig::leading();
    let own = rig.key.clone();
    rig.input(Input::Hint(Some(entry(&own))));
    rig.input(Input::Hint(None));
    assert_eq!(rig.request, None);
    ask_for(&mut rig, "web-2");
    let asked = rig.key.clone();
    rig.input(Input::Hint(Some(entry(&asked))));
    assert_eq!(rig.request.map(|request| request.body), Some(Body::Read));
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Asked));
}

#[test]
fn a_hint_does_not_shorten_the_time_away_after_a_resignation() {
    let mut rig = Rig::leading();
    rig.input(Input::Resign { to: None });
    rig.drained();
    rig.answer(1);
    let key = rig.key.clone();
    rig.input(Input::Hint(Some(entry(&key))));
    assert_eq!((rig.request, rig.elector.state()), (None, State::Observing));
}

#[test]
fn adopting_a_token_ends_a_fault_that_blocks() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    rig.key.writes += 1;
    rig.key.put(&rival(3, HELD));
    rig.next_request();
    rig.answer(1);
    rig.next_request();
    rig.answer(1);
    rig.drained();
    rig.next_request();
    let foreign = StoreFault::ForeignLineage { known: token.lineage, found: Lineage(0x77) };
    assert_eq!(rig.answer(1), Some(Event::StoreFault(foreign)));
    let adopted = Token { term: Term::new(40).unwrap(), ..rig.key.record().token };
    rig.input(Input::Adopt(adopted));
    assert!(matches!(rig.answer(1), Some(Event::Standby { .. })));
    rig.run_while(|state| state != State::Campaigning);
    assert_eq!(drafted(&rig.next_request()).token.term.get(), 41, "above the floor adopted");
}

#[test]
fn adopting_while_holding_changes_nothing() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    rig.input(Input::Adopt(Token { lineage: Lineage(1), ..token }));
    assert_eq!(rig.elector.token(), Some(token));
    assert!(rig.may_start());
}

#[test]
fn a_lost_record_is_replaced_by_a_tombstone_above_which_the_next_term_is() {
    let mut rig = Rig::new(Key::default());
    let after = Token { term: Term::new(12).unwrap(), ..rival(1, HELD).token };
    rig.input(Input::Adopt(after));
    assert_eq!(rig.answer(1), Some(Event::StoreFault(StoreFault::RecordGone)));
    rig.key.put(&operator::init(Name::new("job").unwrap(), after, signature(), TTL_MS));
    rig.next_request();
    rig.answer(1);
    let token = drafted(&rig.next_request()).token;
    assert_eq!((token.lineage, token.term.get()), (after.lineage, 13));
}

#[test]
fn a_wish_that_came_before_the_election_was_known_is_heard() {
    let mut rig = Rig::new(Key::default());
    rig.tick();
    rig.answer(1);
    let request = rig.request.take().unwrap();
    rig.perform(&request);
    ask_for(&mut rig, "web-2");
    rig.request = Some(request);
    rig.fail(Outcome::Unknown);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Elected { .. })));
    rig.input(Input::Sealed(rig.elector.token().unwrap()));
    assert_eq!(demoted(rig.answer(1)), Some(Reason::Asked));
}

#[test]
fn hints_of_whatever_do_not_keep_a_leader_from_renewing() {
    let mut rig = Rig::leading();
    let mut stale = Key::default();
    stale.put(&rival(1, HELD));
    let end = rig.now.mono.after(60_000 * MS);
    while rig.now.mono < end {
        rig.input(Input::Hint(Some(entry(&stale))));
        if rig.request.is_some() {
            rig.answer(1);
        }
        rig.pass(100);
    }
    assert!(rig.may_start());
}

#[test]
fn a_hint_from_nowhere_blocks_nobody() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let mut wrong = rig.key.clone();
    rewrite(&mut wrong, |record| LeaseRecord {
        token: Token { term: Term::new(5_000_000).unwrap(), ..record.token },
        state: RELEASED,
        ..record
    });
    rig.input(Input::Hint(Some(entry(&wrong))));
    rig.run_while(|state| state != State::Sealing);
    assert_eq!(rig.elector.token().unwrap().term.get(), 8);
}

#[test]
fn a_hint_that_contradicts_what_was_read_at_its_version_is_not_acted_on() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let version = entry(&rig.key).version;
    let lie = Entry { record: Ok(rival(7, RELEASED)), version, age_ns: None };
    rig.input(Input::Hint(Some(lie)));
    assert_eq!(rig.elector.state(), State::Standby);
    assert_eq!(rig.request.map(|request| request.body), Some(Body::Read));
}
