//! The lease's vectors through the shipped host: the component in wasmtime, with scripted clocks
//! and salt, and the core linked in. Equal bytes on either way, and as the core alone gives them.

use std::sync::{Arc, Mutex};

use leasehold_core::label::Label;
use leasehold_core::lease;
use leasehold_core::observe;
use leasehold_core::record;
use leasehold_core::store::{self, Draft, OpId};
use leasehold_core::time::{Clocks, MILLISECOND_NS, Now};
use leasehold_core::wire;
use leasehold_host::clock::Clock;
use leasehold_host::protocol::{
    self, Body, Component, Engine, Entropy, LeaseId, Native, NoEntropy, Open, Protocol, Request,
    Step,
};
use leasehold_tests::lease_vectors::{
    self, Answer, Candidate, Entry, Input, Machine, NAME, Outcome, Status,
};

#[test]
fn the_component_answers_as_the_vectors_demand() {
    let engine = Engine::new(None).unwrap();
    run(|script| Component::new(&engine, script.clone(), script).unwrap());
}

#[test]
fn the_linked_protocol_answers_as_the_vectors_demand() {
    run(|script| Native::new(script.clone(), script));
}

fn run<P: Protocol>(protocol: impl Fn(Arc<Script>) -> P) {
    for case in lease_vectors::load() {
        let open = |candidate: &Candidate, now| Hosted::open(&protocol, candidate, now);
        let run = lease_vectors::run(&case, open).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(case.digest, run.digest, "{}: the messages have other bytes", case.name);
    }
}

/// What the protocol finds when it looks at its clock, and when it asks for salt.
struct Script(Mutex<(Now, u64)>);

impl Script {
    fn set(&self, now: Now) {
        self.0.lock().unwrap().0 = now;
    }
}

impl Clock for Script {
    fn now(&self) -> Now {
        self.0.lock().unwrap().0
    }

    fn clocks(&self) -> Clocks {
        Clocks { wall: true, resolution_ns: MILLISECOND_NS }
    }
}

impl Entropy for Script {
    fn salt(&self) -> Result<u64, NoEntropy> {
        Ok(self.0.lock().unwrap().1)
    }
}

/// One candidate, alone in its protocol.
struct Hosted<P> {
    script: Arc<Script>,
    protocol: P,
    lease: LeaseId,
}

impl<P: Protocol> Hosted<P> {
    fn open(protocol: impl Fn(Arc<Script>) -> P, candidate: &Candidate, now: Now) -> Self {
        let script = Arc::new(Script(Mutex::new((now, 1))));
        let mut protocol = protocol(script.clone());
        let Candidate { holder, instance, timing, authority } = candidate.clone();
        let open = Open {
            name: NAME.to_owned(),
            holder,
            instance,
            timing,
            authority,
            clocks: script.clocks(),
        };
        let lease = protocol.open(&open).unwrap();
        Self { script, protocol, lease }
    }
}

impl<P: Protocol> Machine for Hosted<P> {
    fn step(&mut self, now: Now, input: &Input) -> Answer {
        self.script.set(now);
        if let Input::Done { salt, .. } = input {
            self.script.0.lock().unwrap().1 = *salt;
        }
        let Step { request, wake, event } =
            self.protocol.step(self.lease, to_host(input.clone())).unwrap();
        let step = lease::Step {
            request: request.as_ref().map(from_request),
            wake,
            event: event.as_ref().map(from_event),
        };
        let message = wire::encode_step(&step, &mut [0; wire::MAX_LEN]).unwrap().to_vec();
        let value = request.and_then(|request| match request.body {
            Body::Read => None,
            Body::Write { value, .. } => Some(value),
        });
        Answer { message, value }
    }

    fn status(&mut self, now: Now) -> Status {
        self.script.set(now);
        let protocol::Status { state, may_start, may_finish, .. } =
            self.protocol.status(self.lease).unwrap();
        Status { state, may_start, may_finish }
    }
}

fn to_host(input: Input) -> protocol::Input {
    match input {
        Input::Tick => protocol::Input::Tick,
        Input::Done { op, outcome, .. } => {
            protocol::Input::Done { op: OpId(op), outcome: to_outcome(outcome) }
        }
        Input::Sealed(token) => protocol::Input::Sealed(token),
        Input::SealRefused { token, floor } => protocol::Input::SealRefused { token, floor },
        Input::Drained(token) => protocol::Input::Drained(token),
        Input::Resign { to } => protocol::Input::Resign { to },
        Input::Stop => protocol::Input::Stop,
        Input::Disrupted => protocol::Input::Disrupted,
        Input::Hint(entry) => protocol::Input::Hint(entry.map(to_entry)),
        Input::Adopt(token) => protocol::Input::Adopt(token),
    }
}

fn to_outcome(outcome: Outcome) -> protocol::Outcome {
    match outcome {
        Outcome::Absent => protocol::Outcome::Absent,
        Outcome::Entry(entry) => protocol::Outcome::Entry(to_entry(entry)),
        Outcome::Applied(version) => protocol::Outcome::Applied(version),
        Outcome::Conflict => protocol::Outcome::Conflict,
        Outcome::Undecided => protocol::Outcome::Undecided,
        Outcome::Unavailable => protocol::Outcome::Unavailable,
        Outcome::Unknown => protocol::Outcome::Unknown,
        Outcome::Gone => protocol::Outcome::Gone,
    }
}

fn to_entry(Entry { value, version, age_ns }: Entry) -> protocol::Entry {
    protocol::Entry { value, version, age_ns }
}

/// The request as the core made it: what a host was given to write says what was drafted.
fn from_request(request: &Request) -> store::Request {
    let body = match &request.body {
        Body::Read => store::Body::Read,
        Body::Write { expect, value } => {
            let record = record::decode_named(NAME, value).unwrap();
            let draft = Draft {
                token: record.token,
                kind: record.state.kind(),
                instance: record.instance,
                ttl_ms: record.ttl_ms,
                attempt: record.attempt,
                at_ms: record.at_ms,
            };
            store::Body::Write { expect: *expect, draft }
        }
    };
    assert_eq!(request.key, format!("lease/{NAME}"));
    store::Request { op: request.op, deadline: request.deadline, body }
}

fn from_event(event: &protocol::Event) -> observe::Event<'_> {
    use observe::Event as E;
    use protocol::Event as P;
    let label = |text| Label::new(text).unwrap();
    match event {
        P::Standby { owner: protocol::Owner { holder, instance, token }, alive } => {
            let holder = label(holder);
            let owner = observe::Owner { holder, instance: *instance, token: *token };
            E::Standby { owner, alive: *alive }
        }
        P::Elected { token } => E::Elected { token: *token },
        P::Leading { token, stop_at } => E::Leading { token: *token, stop_at: *stop_at },
        P::Renewed { until } => E::Renewed { until: *until },
        P::RenewalLate { stop_at } => E::RenewalLate { stop_at: *stop_at },
        P::Demoted { token, reason, to } => {
            let to = to.as_deref().map(label);
            E::Demoted { token: *token, reason: *reason, to }
        }
        P::Ended { token, how } => E::Ended { token: *token, how: *how },
        P::StoreDown => E::StoreDown,
        P::StoreUp => E::StoreUp,
        P::StoreFault(fault) => E::StoreFault(*fault),
        P::Stopped => E::Stopped,
    }
}
