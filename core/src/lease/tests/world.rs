//! Several electors, one store, and everything that goes wrong between them, judged in true time
//! that none of them can see.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const SECOND: u64 = 1_000 * MS;
const NODES: usize = 3;
/// Faults end here; afterwards somebody has to lead.
const HEALED: u64 = 120 * SECOND;
const END: u64 = 180 * SECOND;

/// A seed's decisions: a counter, hashed. The same seed is the same run.
struct Dice(Entropy);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0.draw() % most.max(1)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What a world may do to its nodes.
#[derive(Clone, Copy)]
struct Faults {
    /// Clock rates are drawn from -ppm to +ppm.
    drift_ppm: u64,
    suspends: bool,
}

struct Node {
    elector: Elector<&'static Config>,
    instance: u64,
    rate_ppm: i64,
    offset: u64,
    /// True time that the monotonic clock slept through, before the last nap.
    slept: u64,
    /// The last nap, from and to.
    nap: (u64, u64),
    frozen_until: u64,
    wake: u64,
    elected: BTreeSet<u64>,
    ended: BTreeSet<u64>,
    /// The host's work runs, and has to be over by then.
    working_until: Option<Mono>,
}

impl Node {
    /// Whether it may act, or its work still runs; asleep, the work sleeps too.
    fn acts(&self, at: u64) -> bool {
        let now = self.now(at);
        let awake = !(self.nap.0..=self.nap.1).contains(&at);
        self.elector.may_finish(now)
            || (awake && self.working_until.is_some_and(|end| now.mono < end))
    }

    fn now(&self, at: u64) -> Now {
        let napped = at.clamp(self.nap.0, self.nap.1) - self.nap.0;
        let awake = i128::from(at - self.slept - napped);
        let run = awake + awake * i128::from(self.rate_ppm) / 1_000_000;
        let mono = Mono(self.offset + u64::try_from(run).unwrap());
        Now { mono, wall_ns: Some(1_796_065_445_123 * MS + at) }
    }

    /// True time at which the clock will show `mono`, unless it sleeps.
    fn when(&self, at: u64, mono: Mono) -> u64 {
        let ahead = i128::from(mono.since(self.now(at).mono));
        at + u64::try_from(ahead * 1_000_000 / i128::from(1_000_000 + self.rate_ppm)).unwrap() + 1
    }
}

enum Happening {
    Wake(usize),
    Store { node: usize, life: u64, request: Request, answer_lost: bool },
    Answer { node: usize, life: u64, op: OpId, answer: Answer },
    Host { node: usize, life: u64, input: Input<'static> },
}

enum Answer {
    Read(Key),
    Wrote(Outcome<'static>),
}

struct World {
    at: u64,
    dice: Dice,
    faults: Faults,
    nodes: Vec<Node>,
    key: Key,
    events: BTreeMap<(u64, u64), Happening>,
    serial: u64,
    lives: u64,
    highest_term: u64,
    overlaps: u64,
    leading_at_end: bool,
}

impl World {
    fn new(seed: u64, faults: Faults, timing: Timing) -> Self {
        let mut world = Self {
            at: SECOND,
            dice: Dice(Entropy::new(seed)),
            faults,
            nodes: Vec::new(),
            key: Key::default(),
            events: BTreeMap::new(),
            serial: 0,
            lives: 0,
            highest_term: 0,
            overlaps: 0,
            leading_at_end: false,
        };
        for node in 0..NODES {
            let fresh = world.start(timing);
            world.nodes.push(fresh);
            world.schedule(world.at, Happening::Wake(node));
        }
        world
    }

    fn start(&mut self, timing: Timing) -> Node {
        self.lives += 1;
        let instance = self.lives;
        let span = 2 * self.faults.drift_ppm + 1;
        let rate_ppm = match self.dice.below(3) {
            0 => -i64::try_from(self.faults.drift_ppm).unwrap(),
            1 => i64::try_from(self.faults.drift_ppm).unwrap(),
            _ => {
                i64::try_from(self.dice.below(span)).unwrap()
                    - i64::try_from(self.faults.drift_ppm).unwrap()
            }
        };
        let offset = self.dice.below(1_000) * SECOND;
        let config = config(instance, timing, Authority::LocalObservation);
        let salt = self.dice.0.draw();
        let mut node = Node {
            elector: Elector::new(config, Now { mono: Mono(0), wall_ns: Some(1) }, salt),
            instance,
            rate_ppm,
            offset,
            slept: 0,
            nap: (0, 0),
            frozen_until: 0,
            wake: self.at,
            elected: BTreeSet::new(),
            ended: BTreeSet::new(),
            working_until: None,
        };
        node.elector = Elector::new(config, node.now(self.at), salt);
        node
    }

    fn schedule(&mut self, at: u64, happening: Happening) {
        self.serial += 1;
        self.events.insert((at, self.serial), happening);
    }

    fn hostile(&self) -> bool {
        self.at < HEALED
    }

    fn run(&mut self, timing: Timing) {
        while let Some(((at, _), happening)) = self.events.pop_first() {
            if at > END {
                break;
            }
            self.at = self.at.max(at);
            self.happen(happening, timing);
            self.judge();
        }
        let now = self.at;
        self.leading_at_end = self.nodes.iter().any(|node| node.elector.may_start(node.now(now)));
    }

    fn happen(&mut self, happening: Happening, timing: Timing) {
        let node = match &happening {
            Happening::Wake(node) | Happening::Store { node, .. } => *node,
            Happening::Answer { node, .. } | Happening::Host { node, .. } => *node,
        };
        if !matches!(happening, Happening::Store { .. }) && self.nodes[node].frozen_until > self.at
        {
            let thawed = self.nodes[node].frozen_until;
            self.schedule(thawed, happening);
            return;
        }
        match happening {
            Happening::Wake(node) => {
                if self.nodes[node].wake <= self.at {
                    self.step(node, Input::Tick, timing);
                }
            }
            Happening::Store { node, life, request, answer_lost } => {
                let answer = match &request.body {
                    Body::Read => Answer::Read(self.key.clone()),
                    Body::Write { expect, draft } => {
                        Answer::Wrote(self.key.write(*expect, draft, "node"))
                    }
                };
                if !answer_lost {
                    let back = self.at + self.delay();
                    self.schedule(back, Happening::Answer { node, life, op: request.op, answer });
                }
            }
            Happening::Answer { node, life, op, answer } => {
                if self.nodes[node].instance == life {
                    let salt = self.dice.0.draw();
                    let outcome = match &answer {
                        Answer::Read(key) => key.read(None),
                        Answer::Wrote(outcome) => *outcome,
                    };
                    self.step(node, Input::Done { op, outcome, salt }, timing);
                }
            }
            Happening::Host { node, life, input } => {
                if self.nodes[node].instance == life {
                    self.step(node, input, timing);
                }
            }
        }
    }

    fn step(&mut self, index: usize, input: Input<'_>, timing: Timing) {
        let (at, node) = (self.at, &mut self.nodes[index]);
        let life = node.instance;
        let step = node.elector.step(node.now(at), input);
        match (step.event, input) {
            (Some(Event::Leading { .. }), _) => {
                node.working_until = node.elector.valid_until(node.now(at));
            }
            (Some(Event::Demoted { reason, .. }), _) if !reason.is_gentle() => {
                node.working_until = None;
            }
            (_, Input::Drained(_)) => node.working_until = None,
            _ if node.working_until.is_some() && node.elector.state() != State::Releasing => {
                node.working_until = node.elector.valid_until(node.now(at));
            }
            _ => {}
        }
        assert!(
            step.event.is_none()
                || step.wake != Wake::Now
                || !matches!(input, Input::Tick)
                || step.request.is_none(),
            "a request beside a pending transition"
        );
        match step.wake {
            Wake::Now => node.wake = at,
            Wake::At(mono) => node.wake = node.when(at, mono),
            Wake::Idle => node.wake = u64::MAX,
        }
        let (wake, late) = (node.wake, at);
        if let Some(event) = step.event {
            match event {
                Event::Elected { token } => {
                    assert!(node.elected.insert(token.term.get()), "a term twice in one node");
                    assert!(token.term.get() > self.highest_term, "terms only grow");
                    self.highest_term = token.term.get();
                    let sealed = late + self.dice.below(300 * MS);
                    self.schedule(
                        sealed,
                        Happening::Host { node: index, life, input: Input::Sealed(token) },
                    );
                }
                Event::Demoted { token, .. } => {
                    let drained = late + self.dice.below(timing.drain_ns * 2);
                    self.schedule(
                        drained,
                        Happening::Host { node: index, life, input: Input::Drained(token) },
                    );
                }
                Event::Ended { token, .. } => {
                    assert!(node.ended.insert(token.term.get()), "ended twice");
                    assert!(node.elected.contains(&token.term.get()), "ended without election");
                }
                Event::StoreFault(fault) => panic!("false fault {fault:?}"),
                Event::Stopped => panic!("nobody asked"),
                _ => {}
            }
        }
        if wake != u64::MAX {
            self.schedule(wake.max(at), Happening::Wake(index));
        }
        if let Some(request) = step.request {
            assert!(
                request.deadline > self.nodes[index].now(at).mono,
                "every request has a deadline"
            );
            self.send(index, life, request);
        }
        if self.hostile() {
            self.disturb(index, timing);
        }
    }

    fn send(&mut self, node: usize, life: u64, request: Request) {
        let lost = self.hostile() && self.dice.one_in(8);
        if lost {
            return;
        }
        let answer_lost = self.hostile() && self.dice.one_in(8);
        let there = self.at + self.delay();
        self.schedule(there, Happening::Store { node, life, request, answer_lost });
    }

    fn delay(&mut self) -> u64 {
        match self.dice.below(40) {
            0 if self.hostile() => self.dice.below(30 * SECOND),
            1..=3 if self.hostile() => self.dice.below(3 * SECOND),
            _ => MS + self.dice.below(40 * MS),
        }
    }

    fn disturb(&mut self, index: usize, timing: Timing) {
        let at = self.at;
        match self.dice.below(160) {
            0 => self.nodes[index].frozen_until = at + self.dice.below(25 * SECOND),
            1 if self.faults.suspends && self.nodes[index].frozen_until <= at => {
                let asleep = self.dice.below(20 * SECOND);
                let node = &mut self.nodes[index];
                node.frozen_until = at + asleep;
                node.slept += node.nap.1 - node.nap.0;
                node.nap = (at, at + asleep);
            }
            2 => {
                let fresh = self.start(timing);
                self.nodes[index] = fresh;
                let up = at + self.dice.below(2 * SECOND);
                self.nodes[index].wake = up;
                self.schedule(up, Happening::Wake(index));
            }
            3 => self.schedule(
                at,
                Happening::Host {
                    node: index,
                    life: self.nodes[index].instance,
                    input: Input::Resign { to: None },
                },
            ),
            4 => self.schedule(
                at,
                Happening::Host {
                    node: index,
                    life: self.nodes[index].instance,
                    input: Input::Disrupted,
                },
            ),
            _ => {}
        }
    }

    /// At every step, every node, frozen ones too.
    fn judge(&mut self) {
        let at = self.at;
        self.overlaps += u64::from(self.nodes.iter().filter(|node| node.acts(at)).count() > 1);
    }
}

fn run(seed: u64, faults: Faults, timing: Timing) -> World {
    let mut world = World::new(seed, faults, timing);
    world.run(timing);
    world
}

/// Margins and nothing else: no drain, the least guard, and a drift large enough to matter.
fn margins_only() -> Timing {
    let drift = Drift::from_ppm(100_000).unwrap();
    Timing { drain_ns: 0, ..Timing::from_ttl(TTL_MS, 0, 2 * MS, drift) }
}

const WITHIN: Faults = Faults { drift_ppm: 10_000, suspends: true };

#[test]
fn at_most_one_may_act_at_any_true_instant_and_somebody_leads_in_the_end() {
    for seed in 0..600 {
        let world = run(seed, WITHIN, timing());
        assert_eq!(world.overlaps, 0, "seed {seed}");
        assert!(world.leading_at_end, "nobody leads after the faults have ended, seed {seed}");
    }
    let rows: BTreeSet<(State, Cause)> = TABLE.iter().map(|row| (row.0, row.1)).collect();
    let stops: BTreeSet<(State, Cause)> =
        rows.iter().copied().filter(|row| row.1 == Cause::Stop).collect();
    assert_eq!(
        rows.difference(&visited()).copied().collect::<BTreeSet<_>>(),
        stops,
        "every row but stopping is visited"
    );
}

#[test]
fn without_a_drain_budget_the_margins_alone_keep_holders_apart() {
    let faults = Faults { drift_ppm: 100_000, suspends: true };
    for seed in 0..600 {
        assert_eq!(run(seed, faults, margins_only()).overlaps, 0, "seed {seed}");
    }
}

#[test]
fn beyond_the_declared_drift_exclusivity_is_not_claimed_and_the_judge_sees_it() {
    let faults = Faults { drift_ppm: 400_000, suspends: false };
    let overlaps: u64 = (0..300).map(|seed| run(seed, faults, margins_only()).overlaps).sum();
    assert!(overlaps > 0, "a judge that never objects proves nothing");
}

#[test]
fn one_seed_is_one_run() {
    let trace = |seed| {
        let world = run(seed, WITHIN, timing());
        (world.serial, world.highest_term, world.key.text())
    };
    for seed in 0..20 {
        assert_eq!(trace(seed), trace(seed));
    }
}
