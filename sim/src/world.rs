//! The world: everything that is going to happen, in order of true time, and the nodes, the store
//! and the resource that it happens to.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use leasehold_core::lease::Authority;
use leasehold_core::store::{OpId, Outcome, Request};
use leasehold_core::time::Drift;
use leasehold_core::timing::Timing;
use leasehold_core::token::Token;

use crate::clock::Clock;
use crate::decision::{Decision, Fate, Fault, Message};
use crate::flaw::Flaw;
use crate::node::Node;
use crate::oracle::{Invariant, Judge, Violation};
use crate::resource::Resource;
use crate::store::{Reading, Store};
use crate::tape::{Decider, Source, Tape};
use crate::trace::Trace;

/// What is so before anything happens.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Of what nobody decides: salts, instances, the pace of the work.
    pub seed: u64,
    /// At most eight with their twins.
    pub nodes: Vec<NodeSetup>,
    /// The store's own clock.
    pub store_clock: Clock,
    /// The bound on clock rates that all nodes count on.
    pub drift: Drift,
    /// What is wrong.
    pub flaw: Option<Flaw>,
    /// Some clock runs outside its bound.
    pub beyond_drift: bool,
    /// From then on everything goes well.
    pub healed_ns: u64,
    /// By then somebody has to lead.
    pub end_ns: u64,
}

/// One node before anything happens.
#[derive(Clone, Debug)]
pub struct NodeSetup {
    /// Its clocks.
    pub clock: Clock,
    /// Whether it has a wall clock.
    pub has_wall: bool,
    /// Whether its monotonic clock misses time asleep.
    pub stops_asleep: bool,
    /// The coarsest step that it declares.
    pub resolution_ns: u64,
    /// Its spans.
    pub timing: Timing,
    /// How it judges others.
    pub authority: Authority,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first of each invariant.
    pub violations: Vec<Violation>,
    /// Hash of everything that happened.
    pub trace: u64,
    /// What was decided: with the same [`Setup`] it gives the same run.
    pub tape: Tape,
    /// Whether something that exclusivity assumes was broken.
    pub broken: bool,
    /// How much happened.
    pub count: Count,
}

/// How much happened in a run, or in many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Events.
    pub events: u64,
    /// Virtual time, in nanoseconds.
    pub time_ns: u64,
    /// Terms that were announced.
    pub elected: u64,
    /// Terms under which work could start.
    pub led: u64,
    /// Effects that the resource accepted.
    pub accepted: u64,
    /// Effects that it refused.
    pub refused: u64,
}

/// Runs a world to its end.
#[must_use]
pub fn run(setup: Setup, source: Source) -> Report {
    let mut world = World::new(setup, source);
    while world.advance() {}
    world.report()
}

/// A world at one true instant. A clone goes on as the original does.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) setup: Setup,
    pub(crate) at_ns: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) store: Store,
    pub(crate) resource: Resource,
    pub(crate) slow: Slow,
    pub(crate) judge: Judge,
    pub(crate) count: Count,
    pub(crate) trace: Trace,
    pub(crate) operator_draws: u64,
    decider: Decider,
    queue: BinaryHeap<Reverse<Due>>,
    serial: u64,
    led_since_healed: Option<u64>,
}

/// How long the resource is slower, and by how much.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slow {
    pub(crate) until_ns: u64,
    pub(crate) by_ns: u64,
}

/// Something that is going to happen.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Fault(Fault),
    Heal,
    /// The computer wakes.
    Resume {
        node: u8,
    },
    /// The process starts.
    Start {
        node: u8,
        life: u16,
    },
    /// The elector's own wake.
    Alarm {
        node: u8,
        alarm: u64,
    },
    /// To a process, which may be frozen.
    Process {
        node: u8,
        life: u16,
        doing: Doing,
    },
    /// A request arrives at the store.
    AtStore {
        node: u8,
        life: u16,
        heir: Option<u8>,
        request: Request,
        fate: Fate,
    },
    SealArrives {
        node: u8,
        life: u16,
        token: Token,
        fate: Fate,
    },
    EffectArrives {
        node: u8,
        life: u16,
        token: Token,
        fate: Fate,
    },
}

/// What a process does or hears.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    SendRequest {
        heir: Option<u8>,
        request: Request,
        fate: Fate,
    },
    SendSeal {
        token: Token,
        fate: Fate,
    },
    SendEffect {
        token: Token,
        fate: Fate,
    },
    /// The next effect of this term.
    Work(Token),
    Answer {
        op: OpId,
        reply: Reply,
    },
    Sealed(Token),
    Refused {
        token: Token,
        floor: Option<u64>,
    },
    Drained(Token),
    Resign(Option<u8>),
    Stop,
    Disrupted,
    Hint(Option<Reading>),
    Adopt(Token),
}

/// What the store answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Read(Reading),
    Other(Outcome<'static>),
}

#[derive(Clone, Debug)]
struct Due {
    at_ns: u64,
    serial: u64,
    happening: Happening,
}

impl World {
    /// More events than any run that makes progress has.
    const MOST_EVENTS: u64 = 1_000_000;

    /// A world in which nothing has happened yet.
    #[must_use]
    pub fn new(setup: Setup, source: Source) -> Self {
        let (decider, faults) = Decider::new(source);
        let mut world = Self {
            at_ns: 0,
            nodes: (0..)
                .zip(&setup.nodes)
                .map(|(n, node)| Node::new(node.clock.clone(), n))
                .collect(),
            store: Store::new(setup.store_clock.clone(), setup.flaw),
            resource: Resource::new(setup.flaw),
            slow: Slow::default(),
            judge: Judge::new(setup.beyond_drift),
            count: Count::default(),
            trace: Trace::new(),
            operator_draws: 0,
            decider,
            queue: BinaryHeap::new(),
            serial: 0,
            led_since_healed: None,
            setup,
        };
        for node in 0..world.nodes.len() as u8 {
            world.schedule(0, Happening::Start { node, life: 0 });
        }
        for (at_ns, fault) in faults {
            if at_ns < world.setup.healed_ns {
                world.schedule(at_ns, Happening::Fault(fault));
            }
        }
        // What was under way has arrived by then: an operator mends what stays.
        world.schedule(world.setup.healed_ns + crate::SECOND_NS, Happening::Heal);
        world
    }

    /// Lets the next thing happen; false: the run is over.
    pub fn advance(&mut self) -> bool {
        let Some(Reverse(due)) = self.queue.pop() else { return false };
        let spins = self.count.events > Self::MOST_EVENTS
            || self.judge.found.iter().any(|found| found.invariant == Invariant::Progress);
        if due.at_ns > self.setup.end_ns || spins || self.is_settled() {
            self.queue.clear();
            return false;
        }
        self.at_ns = due.at_ns;
        self.count.events += 1;
        self.happen(due.happening);
        self.judge_all();
        true
    }

    /// True time, in nanoseconds.
    #[must_use]
    pub const fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// The nodes that may act at this true instant, or are acting, and their tokens.
    pub fn acting(&self) -> impl Iterator<Item = (u8, Token)> {
        let nodes = (0u8..).zip(&self.nodes);
        nodes.filter_map(|(node, state)| Some((node, state.acts(self.at_ns)?)))
    }

    /// The run so far.
    #[must_use]
    pub fn report(mut self) -> Report {
        self.judge_the_end();
        let mut trace = self.trace;
        self.judge.hash(&mut trace);
        Report {
            violations: self.judge.found,
            trace: trace.value(),
            tape: self.decider.into_tape(),
            broken: self.judge.broken,
            count: Count { time_ns: self.at_ns, ..self.count },
        }
    }

    /// What a node is made of.
    pub(crate) fn node_setup(&self, node: u8) -> Option<&NodeSetup> {
        let origin = self.nodes.get(usize::from(node))?.origin;
        self.setup.nodes.get(usize::from(origin))
    }

    pub(crate) fn schedule(&mut self, at_ns: u64, happening: Happening) {
        self.serial += 1;
        self.queue.push(Reverse(Due { at_ns, serial: self.serial, happening }));
    }

    pub(crate) fn after(&mut self, span_ns: u64, happening: Happening) {
        self.schedule(self.at_ns.saturating_add(span_ns), happening);
    }

    /// A span that began before everything went well ends there at the latest.
    pub(crate) fn until_healed(&self, span_ns: u64) -> u64 {
        span_ns.min(self.setup.healed_ns.saturating_sub(self.at_ns))
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.at_ns >= self.setup.healed_ns
    }

    pub(crate) fn fate(&mut self, message: Message) -> Fate {
        if self.is_healed() {
            return Fate::WELL;
        }
        let fate = self.decider.fate(message);
        Fate {
            pause_ns: self.until_healed(fate.pause_ns),
            there_ns: fate.there_ns.map(|span_ns| self.until_healed(span_ns)),
            back_ns: fate.back_ns.map(|span_ns| self.until_healed(span_ns)),
            ..fate
        }
    }

    fn happen(&mut self, happening: Happening) {
        let to_process = match &happening {
            Happening::Alarm { node, .. }
            | Happening::Process { node, .. }
            | Happening::Start { node, .. } => self.nodes.get(usize::from(*node)),
            _ => None,
        };
        if let Some(frozen) = to_process.filter(|node| node.is_frozen(self.at_ns)) {
            return self.schedule(frozen.frozen_until, happening);
        }
        match happening {
            Happening::Fault(fault) => self.fault(fault),
            Happening::Heal => self.heal(),
            Happening::Resume { node } => self.resume(node),
            Happening::Start { node, life } => self.start(node, life),
            Happening::Alarm { node, alarm } => self.alarm(node, alarm),
            Happening::Process { node, life, doing } => self.process(node, life, doing),
            Happening::AtStore { node, life, heir, request, fate } => {
                self.at_store(node, life, heir, request, fate);
            }
            Happening::SealArrives { node, life, token, fate } => {
                self.seal_arrives(node, life, token, fate);
            }
            Happening::EffectArrives { node, life, token, fate } => {
                self.effect_arrives(node, life, token, fate);
            }
        }
    }

    /// At one true instant at most one may act.
    fn judge_all(&mut self) {
        let at_ns = self.at_ns;
        let mut somebody = false;
        for (node, state) in (0u8..).zip(&self.nodes) {
            let now = state.clock.now(at_ns);
            if state.process.as_ref().is_some_and(|process| process.starts_too_late(now)) {
                self.judge.object(Invariant::Start, at_ns, node);
            }
            let Some(token) = state.acts(at_ns) else { continue };
            if somebody {
                self.judge.object(Invariant::Exclusivity, at_ns, node);
            }
            self.judge.leads(at_ns, node, token);
            somebody = true;
        }
        if somebody && self.is_healed() {
            self.led_since_healed.get_or_insert(at_ns);
        }
    }

    /// Everything is well again, and has been for a while.
    fn is_settled(&self) -> bool {
        let settled = |since_ns: u64| self.at_ns > since_ns + crate::SECOND_NS;
        self.led_since_healed.is_some_and(settled) && self.not_stopped().is_none()
    }

    fn judge_the_end(&mut self) {
        if self.led_since_healed.is_none() {
            self.judge.object(Invariant::Liveness, self.at_ns, 0);
        }
        if let Some(node) = self.not_stopped() {
            self.judge.object(Invariant::Stopping, self.at_ns, node);
        }
    }

    /// A process that was told to stop and has not.
    fn not_stopped(&self) -> Option<u8> {
        let told = |node: &Node| node.process.as_ref().is_some_and(|one| one.memory.told_to_stop);
        (0u8..).zip(&self.nodes).find(|(_, node)| told(node)).map(|(node, _)| node)
    }
}

impl Count {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.time_ns += other.time_ns;
        self.elected += other.elected;
        self.led += other.led;
        self.accepted += other.accepted;
        self.refused += other.refused;
    }
}

impl Report {
    /// What should have held and did not.
    pub fn failures(&self) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(|violation| !violation.excused)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.serial).cmp(&(other.at_ns, other.serial))
    }
}

/// A tape as a source.
impl From<Vec<Decision>> for Source {
    fn from(decisions: Vec<Decision>) -> Self {
        Self::Tape(Tape(decisions))
    }
}
