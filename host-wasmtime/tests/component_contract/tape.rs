//! One tape of inputs for the core linked in and for the component: equal steps, equal bytes.
//!
//! Four candidates for two leases and a store that mostly behaves, so that terms come and go; in
//! between everything that a store, a fence, a clock or a clumsy driver may say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leasehold_core::lease::{Authority, State, Wake};
use leasehold_core::store::{OpId, Version};
use leasehold_core::time::{Mono, Now};
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use leasehold_host::clock::Clock as _;
use leasehold_host::protocol::{
    Body, Component, Engine, Entry, Event, Input, LeaseId, Native, Open, Outcome, Protocol, Request,
};

use crate::support::{Dice, MS, Salts, TestClock, options};

const SEEDS: u64 = 24;
const STEPS: u32 = 2_500;

#[test]
fn the_same_tape_gives_the_same_steps_and_the_same_bytes() {
    let engine = Engine::new(None).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut world = World::new(&engine, seed);
        for _ in 0..STEPS {
            world.turn();
        }
        seen.append(&mut world.seen);
    }
    for name in [
        "Observing",
        "Standby",
        "Campaigning",
        "Confirming",
        "Sealing",
        "Leading",
        "Draining",
        "Releasing",
        "Stopped",
        "event Standby",
        "event Elected",
        "event Leading",
        "event Renewed",
        "event RenewalLate",
        "event Demoted",
        "event Ended",
        "event StoreDown",
        "event StoreUp",
        "event StoreFault",
        "event Stopped",
    ] {
        assert!(seen.contains(name), "the tapes never show {name}: {seen:?}");
    }
}

struct World {
    seed: u64,
    turn: u32,
    dice: Dice,
    clock: Arc<TestClock>,
    native: Native,
    component: Component,
    candidates: Vec<Candidate>,
    store: BTreeMap<String, Row>,
    versions: u64,
    seen: BTreeSet<String>,
}

struct Candidate {
    lease: LeaseId,
    open: Open,
    wake: Wake,
    request: Option<Request>,
    /// Of the term that it was last told of.
    token: Option<Token>,
    /// What a good driver would say next.
    owed: Option<Input>,
}

#[derive(Clone)]
struct Row {
    value: Vec<u8>,
    version: Version,
    written: Mono,
}

impl World {
    fn new(engine: &Engine, seed: u64) -> Self {
        let clock = TestClock::new();
        let salts = || Salts::new(seed << 32);
        let native = Native::new(clock.clone(), salts());
        let component = Component::new(engine, clock.clone(), salts()).unwrap();
        let mut world = Self {
            seed,
            turn: 0,
            dice: Dice::new(seed << 32),
            clock,
            native,
            component,
            candidates: Vec::new(),
            store: BTreeMap::new(),
            versions: 0,
            seen: BTreeSet::new(),
        };
        for (name, holder) in [
            ("settlement", "one"),
            ("settlement", "two"),
            ("shards/2/0", "one"),
            ("shards/2/0", "x@y:1"),
        ] {
            let mut open = options(name, holder);
            open.instance = Nonce(world.dice.draw());
            if seed % 2 == 1 {
                open.authority = Authority::StoreClock { error_ns: 10 * MS };
            }
            let candidate = world.candidate(open);
            world.candidates.push(candidate);
        }
        world
    }

    fn candidate(&mut self, open: Open) -> Candidate {
        let lease = self.native.open(&open).unwrap();
        assert_eq!(self.component.open(&open).unwrap(), lease);
        Candidate { lease, open, wake: Wake::Now, request: None, token: None, owed: None }
    }

    /// One decision: mostly what is due, sometimes anything.
    fn turn(&mut self) {
        self.turn += 1;
        if self.clock.now().wall_ns.is_none() {
            let wall_ns = Some(1_796_000_000_000 * MS);
            self.clock.set(Now { wall_ns, ..self.clock.now() });
        }
        if self.dice.one_in(400) {
            self.tamper();
        }
        let (chosen, input) =
            if self.dice.one_in(12) { self.anything() } else { self.whatever_is_due() };
        self.step(chosen, input);
        if self.candidates[chosen].wake == Wake::Idle || self.dice.one_in(600) {
            self.reopen(chosen);
        }
    }

    fn whatever_is_due(&mut self) -> (usize, Input) {
        let chosen = self.dice.below(self.candidates.len() as u64) as usize;
        if let Some(owed) = self.candidates[chosen].owed.take() {
            return (chosen, owed);
        }
        if self.dice.below(4) > 0
            && let Some(request) = self.candidates[chosen].request.take()
        {
            let span_ns = self.dice.below(20) * MS;
            self.clock.advance(span_ns);
            let outcome = self.perform(&request);
            return (chosen, Input::Done { op: request.op, outcome });
        }
        let (chosen, wake) = self
            .candidates
            .iter()
            .enumerate()
            .map(|(at, candidate)| (at, candidate.wake))
            .min_by_key(|(_, wake)| match wake {
                Wake::Now => Mono(0),
                Wake::At(at) => *at,
                Wake::Idle => Mono(u64::MAX),
            })
            .unwrap();
        if let Wake::At(at) = wake {
            let late_ns = if self.dice.one_in(30) { self.dice.below(4_000) * MS } else { 0 };
            self.clock.advance(at.since(self.clock.now().mono) + late_ns);
        }
        (chosen, Input::Tick)
    }

    /// Something that no plan provides for.
    fn anything(&mut self) -> (usize, Input) {
        let chosen = self.dice.below(self.candidates.len() as u64) as usize;
        let token = match self.candidates[chosen].token {
            Some(token) if !self.dice.one_in(4) => token,
            _ => self.token(),
        };
        let input = match self.dice.below(22) {
            0..=4 => Input::Tick,
            5..=10 => {
                let op = match &self.candidates[chosen].request {
                    Some(request) if !self.dice.one_in(4) => request.op,
                    _ => OpId(self.dice.below(50) as u32),
                };
                Input::Done { op, outcome: self.outcome(chosen) }
            }
            11 => Input::Sealed(token),
            12 | 13 => {
                let floor = self.dice.one_in(2).then(|| self.number());
                Input::SealRefused { token, floor }
            }
            14 | 15 => Input::Drained(token),
            16 => {
                let names = ["one", "x@y:1", "nobody"];
                let to = names.get(self.dice.below(4) as usize).map(|to| (*to).to_owned());
                Input::Resign { to }
            }
            17 if self.dice.one_in(4) => Input::Stop,
            18 if self.dice.one_in(3) => Input::Disrupted,
            19 if self.dice.one_in(2) => Input::Hint(match self.outcome(chosen) {
                Outcome::Entry(entry) => Some(entry),
                _ => None,
            }),
            20 if self.dice.one_in(4) => Input::Adopt(token),
            _ => {
                self.bend_the_clock();
                Input::Tick
            }
        };
        (chosen, input)
    }

    fn step(&mut self, chosen: usize, input: Input) {
        let lease = self.candidates[chosen].lease;
        let said = format!("seed {}, turn {}, {lease:?}, {input:?}", self.seed, self.turn);
        let step = self.native.step(lease, input.clone()).unwrap();
        assert_eq!(self.component.step(lease, input).unwrap(), step, "{said}");
        let status = self.native.status(lease).unwrap();
        assert_eq!(self.component.status(lease).unwrap(), status, "{said}");

        self.seen.insert(format!("{:?}", status.state));
        let candidate = &mut self.candidates[chosen];
        candidate.wake = step.wake;
        if step.request.is_some() {
            candidate.request = step.request;
        }
        if let Some(event) = &step.event {
            let name = format!("{event:?}");
            let name = name.split([' ', '(']).next().unwrap_or_default();
            self.seen.insert(format!("event {name}"));
        }
        match step.event {
            Some(Event::Elected { token }) => {
                candidate.token = Some(token);
                candidate.owed = Some(Input::Sealed(token));
            }
            Some(Event::Demoted { token, .. }) => candidate.owed = Some(Input::Drained(token)),
            _ => {}
        }
        assert!(status.state != State::Stopped || status.token.is_none(), "{said}");
    }

    fn reopen(&mut self, chosen: usize) {
        let Candidate { lease, open, .. } = self.candidates.swap_remove(chosen);
        self.native.close(lease).unwrap();
        self.component.close(lease).unwrap();
        let candidate = self.candidate(open);
        self.candidates.push(candidate);
    }

    /// The store: honest, but for now and then.
    fn perform(&mut self, request: &Request) -> Outcome {
        let silent = self.dice.below(30);
        if silent == 0 {
            return Outcome::Unavailable;
        }
        let now = self.clock.now().mono;
        let row = self.store.get(&request.key);
        let outcome = match &request.body {
            Body::Read => row.map_or(Outcome::Absent, |row| {
                Outcome::Entry(Entry {
                    value: row.value.clone(),
                    version: row.version,
                    age_ns: (self.seed % 2 == 1).then(|| now.since(row.written)),
                })
            }),
            Body::Write { expect, .. } if *expect != row.map(|row| row.version) => {
                Outcome::Conflict
            }
            Body::Write { value, .. } => {
                let version = self.version();
                let row = Row { value: value.clone(), version, written: now };
                self.store.insert(request.key.clone(), row);
                Outcome::Applied(version)
            }
        };
        // Performed or not, the answer may be lost.
        if silent == 1 { Outcome::Unknown } else { outcome }
    }

    /// Somebody edits the store.
    fn tamper(&mut self) {
        let keys: Vec<String> = self.store.keys().cloned().collect();
        let Some(key) = keys.get(self.dice.below(3) as usize) else { return };
        if self.dice.one_in(4) {
            self.store.remove(key);
        } else {
            let value = self.value();
            let version = self.version();
            let written = self.clock.now().mono;
            self.store.insert(key.clone(), Row { value, version, written });
        }
    }

    fn bend_the_clock(&mut self) {
        let now = self.clock.now();
        let span_ns = self.dice.below(3_000) * MS;
        self.clock.set(match self.dice.below(5) {
            0 => Now { mono: Mono(now.mono.0.saturating_sub(span_ns)), ..now },
            1 => Now { wall_ns: now.wall_ns.map(|wall| wall + span_ns), ..now },
            2 => Now { wall_ns: now.wall_ns.map(|wall| wall - span_ns), ..now },
            3 => Now { wall_ns: None, ..now },
            _ => Now { mono: now.mono.after(span_ns), wall_ns: Some(u64::MAX >> 1) },
        });
    }

    fn outcome(&mut self, chosen: usize) -> Outcome {
        match self.dice.below(10) {
            0 => Outcome::Absent,
            1 => Outcome::Applied(self.version()),
            2 => Outcome::Conflict,
            3 => Outcome::Undecided,
            4 => Outcome::Unavailable,
            5 => Outcome::Unknown,
            6 if self.dice.one_in(2) => Outcome::Gone,
            7 if self.dice.one_in(2) => match self.candidates[chosen].request.clone() {
                Some(request) => self.perform(&request),
                None => Outcome::Unknown,
            },
            _ => Outcome::Entry(Entry {
                value: self.value(),
                version: self.version(),
                age_ns: self.dice.one_in(2).then(|| self.number()),
            }),
        }
    }

    /// Bytes that may be a record.
    fn value(&mut self) -> Vec<u8> {
        let known = self.dice.below(self.store.len().max(1) as u64) as usize;
        let mut value =
            self.store.values().nth(known).map_or_else(Vec::new, |row| row.value.clone());
        match self.dice.below(8) {
            0 => value.clear(),
            1 => value.push(b'\n'),
            2 => value = br#"{"format":2,"name":"settlement"}"#.to_vec(),
            3 => value.resize(3_000, b' '),
            4 => value.truncate(self.dice.below(400) as usize),
            5 => value.fill_with(|| self.dice.draw() as u8),
            6 => {
                let at = self.dice.below(value.len().max(1) as u64) as usize;
                if let Some(byte) = value.get_mut(at) {
                    *byte = b"0123456789abcdef\"\x00\xff"[self.dice.below(19) as usize];
                }
            }
            _ => {}
        }
        value
    }

    fn version(&mut self) -> Version {
        self.versions += 1;
        let mut bytes = [0; Version::MAX_LEN];
        let length = 8 + self.dice.below(33) as usize;
        bytes[..8].copy_from_slice(&self.versions.to_be_bytes());
        Version::new(&bytes[..length]).unwrap()
    }

    fn token(&mut self) -> Token {
        Token {
            lineage: Lineage((u128::from(self.dice.draw()) << 64) | u128::from(self.dice.draw())),
            term: Term::new(self.number()).unwrap_or(Term::LAST),
            nonce: Nonce(self.dice.draw()),
        }
    }

    /// Small, huge, or in between.
    fn number(&mut self) -> u64 {
        match self.dice.below(4) {
            0 => self.dice.below(10),
            1 => u64::MAX - self.dice.below(3),
            2 => Term::LAST.get() - 1 + self.dice.below(3),
            _ => self.dice.draw() >> self.dice.below(64),
        }
    }
}
