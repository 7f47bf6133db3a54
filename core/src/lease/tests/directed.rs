//! One elector on a rig whose store and clocks do exactly as told.

use super::*;
use crate::record::State as RecordState;

struct Rig {
    elector: Elector<&'static Config>,
    key: Key,
    now: Now,
    salt: u64,
    request: Option<Request>,
    written: Outcome<'static>,
    wake: Wake,
}

/// An event without what it borrows.
fn plain(event: Option<Event<'_>>) -> Option<Event<'static>> {
    event.map(|event| match event {
        Event::Standby { owner, alive } => {
            let holder = Label::new("rival").unwrap();
            Event::Standby { owner: crate::observe::Owner { holder, ..owner }, alive }
        }
        Event::Elected { token } => Event::Elected { token },
        Event::Leading { token, stop_at } => Event::Leading { token, stop_at },
        Event::Renewed { until } => Event::Renewed { until },
        Event::RenewalLate { stop_at } => Event::RenewalLate { stop_at },
        Event::Demoted { token, reason } => Event::Demoted { token, reason },
        Event::Ended { token, how } => Event::Ended { token, how },
        Event::StoreDown => Event::StoreDown,
        Event::StoreUp => Event::StoreUp,
        Event::StoreFault(fault) => Event::StoreFault(fault),
        Event::Stopped => Event::Stopped,
    })
}

impl Rig {
    fn new(key: Key) -> Self {
        Self::with(key, Authority::LocalObservation)
    }

    fn with(key: Key, authority: Authority) -> Self {
        let now = Now { mono: Mono(1_000 * MS), wall_ns: Some(1_796_065_445_123 * MS) };
        let elector = Elector::new(config(0xaaaa, timing(), authority), now, 1);
        Self {
            elector,
            key,
            now,
            salt: 1,
            request: None,
            written: Outcome::Unknown,
            wake: Wake::Now,
        }
    }

    fn leading() -> Self {
        let mut rig = Self::new(Key::default());
        rig.lead();
        rig
    }

    /// From nothing to leading, with a store that answers at once.
    fn lead(&mut self) -> Token {
        self.input(Input::Tick);
        self.run_while(|state| state != State::Sealing);
        let token = self.elector.token().unwrap();
        let event = self.input(Input::Sealed(token));
        assert!(matches!(event, Some(Event::Leading { .. })), "{event:?}");
        token
    }

    /// Runs on with a store that answers within a millisecond.
    fn run_while(&mut self, in_state: impl Fn(State) -> bool) {
        while in_state(self.elector.state()) {
            if self.request.is_some() {
                self.answer(1);
            } else {
                self.until_wake();
            }
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now = Now {
            mono: self.now.mono.after(ms * MS),
            wall_ns: self.now.wall_ns.map(|wall| wall + ms * MS),
        };
    }

    fn input(&mut self, input: Input<'_>) -> Option<Event<'static>> {
        let step = self.elector.step(self.now, input);
        self.request = step.request.or(self.request);
        self.wake = step.wake;
        plain(step.event)
    }

    fn tick(&mut self) -> Option<Event<'static>> {
        self.input(Input::Tick)
    }

    fn until_wake(&mut self) -> Option<Event<'static>> {
        let at = match self.wake {
            Wake::At(at) => at,
            Wake::Now => self.now.mono,
            Wake::Idle => panic!("idle in {:?}", self.elector.state()),
        };
        let ns = at.since(self.now.mono);
        self.now =
            Now { mono: self.now.mono.after(ns), wall_ns: self.now.wall_ns.map(|wall| wall + ns) };
        self.tick()
    }

    /// The store performs the request; the answer takes `ms`.
    fn answer(&mut self, ms: u64) -> Option<Event<'static>> {
        let request = self.request.take().expect("a request");
        self.perform(&request);
        self.pass(ms);
        self.reply(&request)
    }

    /// Performs the request and keeps what the store would have said.
    fn perform(&mut self, request: &Request) {
        if let Body::Write { expect, draft } = &request.body {
            self.written = self.key.write(*expect, draft, "us");
        }
    }

    fn reply(&mut self, request: &Request) -> Option<Event<'static>> {
        self.salt += 1;
        let key = self.key.clone();
        let outcome = match request.body {
            Body::Read => key.read(None),
            Body::Write { .. } => self.written,
        };
        self.input(Input::Done { op: request.op, outcome, salt: self.salt })
    }

    fn fail(&mut self, outcome: Outcome<'_>) -> Option<Event<'static>> {
        let request = self.request.take().expect("a request");
        self.salt += 1;
        self.input(Input::Done { op: request.op, outcome, salt: self.salt })
    }

    /// Ticks until the next request is there.
    fn next_request(&mut self) -> Request {
        while self.request.is_none() {
            self.until_wake();
        }
        self.request.unwrap()
    }

    fn may_start(&self) -> bool {
        self.elector.may_start(self.now)
    }

    fn may_finish(&self) -> bool {
        self.elector.may_finish(self.now)
    }

    fn drained(&mut self) -> Option<Event<'static>> {
        let token = self.elector.token().unwrap();
        self.input(Input::Drained(token))
    }
}

fn rival(term: u64, state: RecordState<'static>) -> LeaseRecord<'static> {
    LeaseRecord {
        name: Name::new("job").unwrap(),
        token: Token { lineage: Lineage(0x77), term: Term::new(term).unwrap(), nonce: Nonce(0x11) },
        state,
        holder: Label::new("rival").unwrap(),
        instance: Nonce(0xbbbb),
        ttl_ms: TTL_MS,
        attempt: Nonce(0x22),
        at_ms: None,
        expires_by_ms: None,
    }
}

const HELD: RecordState<'static> = RecordState::Held { ask: None };
const RELEASED: RecordState<'static> = RecordState::Released { note: crate::label::Note::EMPTY };

fn held_by_rival(term: u64) -> Key {
    let mut key = Key::default();
    key.put(&rival(term, HELD));
    key
}

fn demoted(event: Option<Event<'_>>) -> Option<Reason> {
    match event {
        Some(Event::Demoted { reason, .. }) => Some(reason),
        _ => None,
    }
}

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
    rig.input(Input::Resign);
    assert_eq!(rig.elector.remaining_ns(rig.now), 0);
    assert_eq!(rig.elector.stop_at(rig.now), Some(rig.now.mono));
}

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
fn an_asker_is_no_rival_and_no_twin() {
    let mut rig = Rig::leading();
    let token = rig.elector.token().unwrap();
    rig.next_request();
    let ask = crate::record::Ask { id: Nonce(5), to: Label::new("web-2").unwrap() };
    let asked = {
        let record = rig.key.record();
        let mut other = Key { value: None, writes: rig.key.writes };
        other.put(&LeaseRecord { state: RecordState::Held { ask: Some(ask) }, ..record });
        other
    };
    rig.key = asked;
    assert!(!matches!(rig.answer(1), Some(Event::Demoted { .. })), "the write conflicts");
    rig.next_request();
    rig.answer(1);
    rig.next_request();
    assert!(matches!(rig.answer(1), Some(Event::Renewed { .. })));
    assert_eq!(
        (rig.elector.token(), rig.key.record().state),
        (Some(token), HELD),
        "the next renewal clears the wish"
    );
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
    assert_eq!(demoted(rig.input(Input::Resign)), Some(Reason::Resigned));
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
    let ask = crate::record::Ask { id: Nonce(5), to: Label::new("web-2").unwrap() };
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
    rig.input(Input::Resign);
    let valid_until = rig.elector.valid_until(rig.now).unwrap();
    assert!(matches!(rig.reply(&request), Some(Event::Renewed { .. })));
    assert!(rig.elector.valid_until(rig.now).unwrap() > valid_until);
    assert!(rig.elector.stop_at(rig.now).unwrap() <= rig.now.mono);
    assert!(!rig.may_start() && rig.may_finish());
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

/// A rig whose window on a rival's record is over: its campaign is on its way.
fn campaigning_on_a_silent_record() -> (Rig, Request) {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.run_while(|state| state != State::Campaigning);
    let request = rig.next_request();
    rig.request = None;
    (rig, request)
}

fn drafted(request: &Request) -> Draft {
    match request.body {
        Body::Write { draft, .. } => draft,
        Body::Read => panic!("a read"),
    }
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
    let ask = crate::record::Ask { id: Nonce(5), to: Label::new("web-2").unwrap() };
    rig.key.put(&rival(7, RecordState::Held { ask: Some(ask) }));
    rig.run_while(|state| state != State::Sealing);
    let (first, token) = (drafted(&lost).token, rig.elector.token().unwrap());
    assert_eq!((token.lineage, token.term), (first.lineage, first.term));
    assert_ne!(token.nonce, first.nonce);
}

#[test]
fn a_wish_to_resign_is_over_with_the_campaign_it_was_for() {
    let (mut rig, _) = campaigning_on_a_silent_record();
    rig.input(Input::Resign);
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
