//! One elector on a rig whose store and clocks do exactly as told.

use super::*;
use crate::record::State as RecordState;

pub(super) struct Rig {
    pub(super) elector: Elector<&'static Config>,
    pub(super) key: Key,
    pub(super) now: Now,
    pub(super) salt: u64,
    pub(super) request: Option<Request>,
    pub(super) written: Outcome<'static>,
    pub(super) wake: Wake,
    pub(super) heir: Option<String>,
}

/// An event without what it borrows.
pub(super) fn plain(event: Option<Event<'_>>) -> Option<Event<'static>> {
    event.map(|event| match event {
        Event::Standby { owner, alive } => {
            let holder = Label::new("rival").unwrap();
            Event::Standby { owner: crate::observe::Owner { holder, ..owner }, alive }
        }
        Event::Elected { token } => Event::Elected { token },
        Event::Leading { token, stop_at } => Event::Leading { token, stop_at },
        Event::Renewed { until } => Event::Renewed { until },
        Event::RenewalLate { stop_at } => Event::RenewalLate { stop_at },
        Event::Demoted { token, reason, .. } => Event::Demoted { token, reason, to: None },
        Event::Ended { token, how } => Event::Ended { token, how },
        Event::StoreDown => Event::StoreDown,
        Event::StoreUp => Event::StoreUp,
        Event::StoreFault(fault) => Event::StoreFault(fault),
        Event::Stopped => Event::Stopped,
    })
}

impl Rig {
    pub(super) fn new(key: Key) -> Self {
        Self::with(key, Authority::LocalObservation)
    }

    pub(super) fn with(key: Key, authority: Authority) -> Self {
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
            heir: None,
        }
    }

    pub(super) fn leading() -> Self {
        let mut rig = Self::new(Key::default());
        rig.lead();
        rig
    }

    /// From nothing to leading, with a store that answers at once.
    pub(super) fn lead(&mut self) -> Token {
        self.input(Input::Tick);
        self.run_while(|state| state != State::Sealing);
        let token = self.elector.token().unwrap();
        let event = self.input(Input::Sealed(token));
        assert!(matches!(event, Some(Event::Leading { .. })), "{event:?}");
        token
    }

    /// Runs on with a store that answers within a millisecond.
    pub(super) fn run_while(&mut self, in_state: impl Fn(State) -> bool) {
        while in_state(self.elector.state()) {
            if self.request.is_some() {
                self.answer(1);
            } else {
                self.until_wake();
            }
        }
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now = Now {
            mono: self.now.mono.after(ms * MS),
            wall_ns: self.now.wall_ns.map(|wall| wall + ms * MS),
        };
    }

    pub(super) fn input(&mut self, input: Input<'_>) -> Option<Event<'static>> {
        if let Input::Resign { to } = input {
            self.heir = to.map(|to| to.to_string());
        }
        let step = self.elector.step(self.now, input);
        if let Some(Event::Demoted { to: Some(to), .. }) = step.event {
            self.heir = Some(to.to_string());
        }
        self.request = step.request.or(self.request);
        self.wake = step.wake;
        plain(step.event)
    }

    pub(super) fn tick(&mut self) -> Option<Event<'static>> {
        self.input(Input::Tick)
    }

    pub(super) fn until_wake(&mut self) -> Option<Event<'static>> {
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
    pub(super) fn answer(&mut self, ms: u64) -> Option<Event<'static>> {
        let request = self.request.take().expect("a request");
        self.perform(&request);
        self.pass(ms);
        self.reply(&request)
    }

    /// Performs the request and keeps what the store would have said.
    pub(super) fn perform(&mut self, request: &Request) {
        if let Body::Write { expect, draft } = &request.body {
            self.written = self.key.write(*expect, draft, "us", self.heir.as_deref());
        }
    }

    pub(super) fn reply(&mut self, request: &Request) -> Option<Event<'static>> {
        self.salt += 1;
        let key = self.key.clone();
        let outcome = match request.body {
            Body::Read => key.read(None),
            Body::Write { .. } => self.written,
        };
        self.input(Input::Done { op: request.op, outcome, salt: self.salt })
    }

    pub(super) fn fail(&mut self, outcome: Outcome<'_>) -> Option<Event<'static>> {
        let request = self.request.take().expect("a request");
        self.salt += 1;
        self.input(Input::Done { op: request.op, outcome, salt: self.salt })
    }

    /// Ticks until the next request is there.
    pub(super) fn next_request(&mut self) -> Request {
        while self.request.is_none() {
            self.until_wake();
        }
        self.request.unwrap()
    }

    pub(super) fn may_start(&self) -> bool {
        self.elector.may_start(self.now)
    }

    pub(super) fn may_finish(&self) -> bool {
        self.elector.may_finish(self.now)
    }

    pub(super) fn drained(&mut self) -> Option<Event<'static>> {
        let token = self.elector.token().unwrap();
        self.input(Input::Drained(token))
    }
}

pub(super) fn rival(term: u64, state: RecordState<'static>) -> LeaseRecord<'static> {
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

pub(super) const HELD: RecordState<'static> = RecordState::Held { ask: None };
pub(super) const RELEASED: RecordState<'static> =
    RecordState::Released { note: crate::label::Note::EMPTY };

pub(super) fn held_by_rival(term: u64) -> Key {
    let mut key = Key::default();
    key.put(&rival(term, HELD));
    key
}

pub(super) fn demoted(event: Option<Event<'_>>) -> Option<Reason> {
    match event {
        Some(Event::Demoted { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// A rig whose window on a rival's record is over: its campaign is on its way.
pub(super) fn campaigning_on_a_silent_record() -> (Rig, Request) {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.run_while(|state| state != State::Campaigning);
    let request = rig.next_request();
    rig.request = None;
    (rig, request)
}

pub(super) fn drafted(request: &Request) -> Draft {
    match request.body {
        Body::Write { draft, .. } => draft,
        Body::Read => panic!("a read"),
    }
}
