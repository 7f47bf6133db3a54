//! One node: its clocks, its links, and a process with an elector and the work it leads.

use alloc::rc::Rc;
use alloc::vec::Vec;

use leasehold_core::label::Label;
use leasehold_core::lease::{Config, Elector, Wake};
use leasehold_core::store::OpId;
use leasehold_core::time::{Mono, Now, Stamp};
use leasehold_core::token::{Nonce, Token};

use crate::clock::Clock;

/// No world has more nodes, twins included.
pub(crate) const MAX_NODES: u8 = 8;

const HOLDERS: [&str; MAX_NODES as usize] =
    ["node-0", "node-1", "node-2", "node-3", "node-4", "node-5", "node-6", "node-7"];

/// What a node's records say to people.
pub(crate) fn holder(node: u8) -> Label<'static> {
    let text = HOLDERS.get(usize::from(node)).copied().unwrap_or("node");
    Label::new(text).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Which node's label it is.
pub(crate) fn of_holder(label: Label<'_>) -> Option<u8> {
    (0..MAX_NODES).find(|node| holder(*node) == label)
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) clock: Clock,
    /// Whose setup it has: its own, or a twin's original's.
    pub(crate) origin: u8,
    /// Counts the starts of the process.
    pub(crate) life: u16,
    /// None: it is down.
    pub(crate) process: Option<Process>,
    /// Until then nothing of the process runs.
    pub(crate) frozen_until: u64,
    /// Until then the computer sleeps.
    pub(crate) asleep_until: u64,
    pub(crate) requests_cut_until: u64,
    pub(crate) answers_cut_until: u64,
    /// Which wake-up call is the one that counts.
    pub(crate) alarm: u64,
    /// Under which token a process that died was working.
    pub(crate) worked: Option<Token>,
}

impl Node {
    pub(crate) const fn new(clock: Clock, origin: u8) -> Self {
        Self {
            clock,
            origin,
            life: 0,
            process: None,
            frozen_until: 0,
            asleep_until: 0,
            requests_cut_until: 0,
            answers_cut_until: 0,
            alarm: 0,
            worked: None,
        }
    }

    pub(crate) const fn is_frozen(&self, at_ns: u64) -> bool {
        self.frozen_until > at_ns
    }

    /// The token under which it may act at this true instant, by its own clock, or is acting.
    pub(crate) fn acts(&self, at_ns: u64) -> Option<Token> {
        let process = self.process.as_ref()?;
        let token = process.work.map(|work| work.token).or_else(|| process.elector.token())?;
        let now = self.clock.now(at_ns);
        let works = || process.work.is_some_and(|work| work.runs(now));
        let acts = process.elector.may_start(now)
            || process.elector.may_finish(now)
            || (!self.is_frozen(at_ns) && works());
        acts.then_some(token)
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) elector: Elector<Rc<Config>>,
    pub(crate) wake: Wake,
    /// Whom the lease is to be offered to.
    pub(crate) heir: Option<u8>,
    pub(crate) work: Option<Work>,
    pub(crate) salts: u64,
    pub(crate) seals: u32,
    pub(crate) effects: u32,
    pub(crate) drains: u32,
    pub(crate) memory: Memory,
}

/// What the judge remembers of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Elected and not ended.
    pub(crate) term: Option<Token>,
    /// Its work has ended.
    pub(crate) drained: bool,
    /// The writes it sent, and when.
    pub(crate) sent: Vec<(Nonce, Mono)>,
    pub(crate) in_flight: Option<(OpId, Mono)>,
    pub(crate) told_floor: Option<Token>,
    pub(crate) told_to_stop: bool,
    /// Steps at one instant.
    pub(crate) busy: (u64, u32),
}

impl Process {
    /// Whether it says that work may start although `stop_at` has passed, by whichever write
    /// could back its term.
    pub(crate) fn starts_too_late(&self, now: Now) -> bool {
        let timing = self.elector.config().timing();
        let start_ns = timing.valid_ns().saturating_sub(timing.drain_ns);
        let backed = |(_, sent): &(Nonce, Mono)| now.mono < sent.after(start_ns);
        self.elector.may_start(now) && !self.memory.sent.iter().rev().any(backed)
    }
}

/// The work of one term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) token: Token,
    pub(crate) since: Stamp,
    pub(crate) left_ns: u64,
}

impl Work {
    pub(crate) fn until(token: Token, now: Now, end: Mono) -> Self {
        Self { token, since: Stamp::of(now), left_ns: end.since(now.mono) }
    }

    /// Whether it runs; it stops by itself.
    pub(crate) fn runs(&self, now: Now) -> bool {
        self.since.elapsed_ns(now) < self.left_ns
    }
}

impl Process {
    pub(crate) fn new(elector: Elector<Rc<Config>>) -> Self {
        Self {
            elector,
            wake: Wake::Now,
            heir: None,
            work: None,
            salts: 0,
            seals: 0,
            effects: 0,
            drains: 0,
            memory: Memory::default(),
        }
    }
}

/// The memory image, as it is.
impl Clone for Process {
    fn clone(&self) -> Self {
        Self { elector: self.elector.image(), memory: self.memory.clone(), ..*self }
    }
}
