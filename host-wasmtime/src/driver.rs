//! The one task that drives every lease of an instance: a heap of wakes, and one channel of
//! completions and commands. No task, timer or buffer per lease; only a request in flight has a
//! task of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use leasehold_core::lease::Wake;
use leasehold_core::observe::Reason;
use leasehold_core::store::OpId;
use leasehold_core::time::{Mono, Stamp};
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Timer};
use crate::protocol::{
    self, Body, Dead, Entry, Event, Input, LeaseId, Open, Outcome, Protocol, Request, Status, Step,
};
use crate::store::{Check, Expect, Read, Store, Transact, Write};

/// Ticks and messages are served in turn, at most so many of one kind in a row: neither a herd of
/// due leases nor a flood of answers starves the other.
const IN_A_ROW: usize = 64;

/// Makes a protocol; called again after one has died.
pub(crate) type Factory = Box<dyn FnMut() -> Result<Box<dyn Protocol>, String> + Send>;

/// What a candidate is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// What happened.
    pub event: Event,
    /// When it happened, or a little before: what the spans in `status` are counted from.
    pub at: Stamp,
    /// What may be done, sampled with the event.
    pub status: Status,
    /// The store's last complaint, in words, while it has one.
    pub trouble: Option<String>,
}

pub(crate) enum Message {
    Open {
        options: Open,
        reply: oneshot::Sender<Result<Opened, protocol::OpenError>>,
    },
    Input {
        lease: Handle,
        input: Input,
    },
    Status {
        lease: Handle,
        reply: oneshot::Sender<Option<Status>>,
    },
    Trouble {
        lease: Handle,
        reply: oneshot::Sender<Option<String>>,
    },
    /// Nobody listens any more: give the lease up in order, then forget it.
    Abandon {
        lease: Handle,
    },
}

struct Completion {
    lease: Handle,
    op: OpId,
    outcome: Outcome,
    trouble: Option<String>,
}

pub(crate) struct Opened {
    pub(crate) lease: Handle,
    pub(crate) updates: mpsc::UnboundedReceiver<Result<Update, Dead>>,
}

/// A lease of one life of the protocol: numbers begin anew in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    life: u32,
    id: LeaseId,
}

struct Driven {
    listener: Option<mpsc::UnboundedSender<Result<Update, Dead>>>,
    wake: Option<Mono>,
    trouble: Option<String>,
}

pub(crate) struct Driver {
    factory: Factory,
    protocol: Option<Box<dyn Protocol>>,
    life: u32,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    messages: mpsc::UnboundedReceiver<Message>,
    completions: mpsc::UnboundedReceiver<Completion>,
    /// For the tasks that carry answers back.
    answers: mpsc::UnboundedSender<Completion>,
    leases: BTreeMap<Handle, Driven>,
    wakes: BinaryHeap<Reverse<(Mono, Handle)>>,
}

impl Driver {
    pub(crate) fn new(
        factory: Factory,
        protocol: Box<dyn Protocol>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> (Self, mpsc::UnboundedSender<Message>) {
        let (sender, messages) = mpsc::unbounded_channel();
        let (answers, completions) = mpsc::unbounded_channel();
        let driver = Self {
            factory,
            protocol: Some(protocol),
            life: 0,
            store,
            clock,
            messages,
            completions,
            answers,
            leases: BTreeMap::new(),
            wakes: BinaryHeap::new(),
        };
        (driver, sender)
    }

    /// Runs until every handle is dropped and every abandoned lease has been given up.
    pub(crate) async fn run(mut self, mut timer: Timer) {
        let mut open = true;
        while open || !self.leases.is_empty() {
            let mut busy = false;
            for _ in 0..IN_A_ROW {
                let Some(lease) = self.next_due() else { break };
                self.step(lease, Input::Tick);
                busy = true;
            }
            for _ in 0..IN_A_ROW {
                let Ok(completion) = self.completions.try_recv() else { break };
                self.complete(completion);
                busy = true;
            }
            for _ in 0..IN_A_ROW {
                let Ok(message) = self.messages.try_recv() else { break };
                self.serve(message);
                busy = true;
            }
            if busy {
                tokio::task::yield_now().await;
                continue;
            }
            let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
            tokio::select! {
                message = self.messages.recv(), if open => match message {
                    Some(message) => self.serve(message),
                    None => open = false,
                },
                Some(completion) = self.completions.recv() => self.complete(completion),
                _ = timer.sleep_until(wake.unwrap_or(Mono(u64::MAX))), if wake.is_some() => {}
            }
        }
    }

    fn next_due(&mut self) -> Option<Handle> {
        let now = self.clock.now().mono;
        while let Some(Reverse((at, lease))) = self.wakes.peek().copied() {
            let current = self.leases.get(&lease).is_some_and(|driven| driven.wake == Some(at));
            if current && at > now {
                return None;
            }
            self.wakes.pop();
            if current {
                return Some(lease);
            }
        }
        None
    }

    fn serve(&mut self, message: Message) {
        match message {
            Message::Open { options, reply } => {
                let opened = self.open(&options);
                // Whoever asked and went away has no use for the lease.
                if let Err(Ok(unwanted)) = reply.send(opened) {
                    self.abandon(unwanted.lease);
                }
            }
            Message::Input { lease, input } => self.step(lease, input),
            Message::Status { lease, reply } => {
                let status = self.protocol.as_mut().filter(|_| self.leases.contains_key(&lease));
                let status = status.and_then(|protocol| protocol.status(lease.id).ok());
                let _ = reply.send(status);
            }
            Message::Trouble { lease, reply } => {
                let driven = self.leases.get(&lease);
                let _ = reply.send(driven.and_then(|driven| driven.trouble.clone()));
            }
            Message::Abandon { lease } => self.abandon(lease),
        }
    }

    fn complete(&mut self, Completion { lease, op, outcome, trouble }: Completion) {
        if let Some(driven) = self.leases.get_mut(&lease) {
            driven.trouble = trouble;
        }
        self.step(lease, Input::Done { op, outcome });
    }

    fn open(&mut self, options: &Open) -> Result<Opened, protocol::OpenError> {
        if self.protocol.is_none() {
            self.protocol = Some((self.factory)().map_err(Dead::because)?);
            self.life += 1;
        }
        let Some(protocol) = self.protocol.as_mut() else {
            return Err(Dead::because("there is none").into());
        };
        let id = match protocol.open(options) {
            Ok(id) => id,
            Err(protocol::OpenError::Dead(dead)) => {
                self.die(&dead);
                return Err(dead.into());
            }
            Err(misuse) => return Err(misuse),
        };
        let lease = Handle { life: self.life, id };
        let (listener, updates) = mpsc::unbounded_channel();
        self.leases.insert(lease, Driven { listener: Some(listener), wake: None, trouble: None });
        self.step(lease, Input::Tick);
        Ok(Opened { lease, updates })
    }

    /// Stops a lease for good. Nobody works under it any more, so the driver answers for the host.
    fn abandon(&mut self, lease: Handle) {
        let Some(driven) = self.leases.get_mut(&lease) else { return };
        driven.listener = None;
        self.step(lease, Input::Stop);
        let token = self.status(lease).and_then(|status| status.token);
        if let Some(token) = token {
            self.step(lease, Input::Drained(token));
        }
    }

    fn status(&mut self, lease: Handle) -> Option<Status> {
        self.leases.get(&lease)?;
        self.protocol.as_mut()?.status(lease.id).ok()
    }

    fn step(&mut self, lease: Handle, input: Input) {
        if !self.leases.contains_key(&lease) {
            return;
        }
        let Some(protocol) = self.protocol.as_mut() else { return };
        let at = Stamp::of(self.clock.now());
        let stepped =
            protocol.step(lease.id, input).and_then(|step| Ok((step, protocol.status(lease.id)?)));
        match stepped {
            Ok((step, status)) => self.follow(lease, at, step, status),
            Err(dead) => self.die(&dead),
        }
    }

    fn follow(&mut self, lease: Handle, at: Stamp, step: Step, status: Status) {
        let Some(driven) = self.leases.get_mut(&lease) else { return };
        driven.wake = match step.wake {
            Wake::Now => Some(Mono(0)),
            Wake::At(at) => Some(at),
            Wake::Idle => None,
        };
        if let Some(at) = driven.wake {
            self.wakes.push(Reverse((at, lease)));
        }
        let stopped = step.event == Some(Event::Stopped);
        let demoted = match &step.event {
            Some(Event::Demoted { token, .. }) => Some(*token),
            _ => None,
        };
        if let (Some(event), Some(listener)) = (step.event, &driven.listener) {
            // A listener that went away abandons the lease by itself.
            let _ =
                listener.send(Ok(Update { event, at, status, trouble: driven.trouble.clone() }));
        }
        let unheard = driven.listener.is_none();
        if let Some(request) = step.request {
            self.perform(lease, request);
        }
        if stopped {
            self.leases.remove(&lease);
            if let Some(Err(dead)) = self.protocol.as_mut().map(|protocol| protocol.close(lease.id))
            {
                self.die(&dead);
            }
        } else if let Some(token) = demoted.filter(|_| unheard) {
            self.step(lease, Input::Drained(token));
        }
    }

    /// The instance is gone, and with it every lease that it held: each is told, none is restored.
    fn die(&mut self, dead: &Dead) {
        self.protocol = None;
        self.wakes.clear();
        for driven in std::mem::take(&mut self.leases).into_values() {
            if let Some(listener) = driven.listener {
                let _ = listener.send(Err(dead.clone()));
            }
        }
    }

    fn perform(&self, lease: Handle, Request { op, key, body, .. }: Request) {
        let answers = self.answers.clone();
        match body {
            Body::Read => {
                let answer = self.store.read(&key);
                tokio::spawn(async move {
                    let (outcome, trouble) = read_outcome(answer.await);
                    let _ = answers.send(Completion { lease, op, outcome, trouble });
                });
            }
            Body::Write { expect, value } => {
                let expect = expect.map_or(Expect::Absent, Expect::Version);
                let check = Check { key: key.clone(), expect };
                let answer = self.store.transact(vec![check], vec![Write { key, value }]);
                tokio::spawn(async move {
                    let (outcome, trouble) = transact_outcome(answer.await);
                    let _ = answers.send(Completion { lease, op, outcome, trouble });
                });
            }
        }
    }
}

fn read_outcome(read: Read) -> (Outcome, Option<String>) {
    match read {
        Read::Absent => (Outcome::Absent, None),
        Read::Entry { value, version, age_ns } => {
            (Outcome::Entry(Entry { value, version, age_ns }), None)
        }
        Read::Unavailable(why) => (Outcome::Unavailable, Some(why)),
        Read::Unknown(why) => (Outcome::Unknown, Some(why)),
        Read::Gone(why) => (Outcome::Gone, Some(why)),
    }
}

fn transact_outcome(transact: Transact) -> (Outcome, Option<String>) {
    match transact {
        Transact::Applied(versions) => match versions.as_slice() {
            [version] => (Outcome::Applied(*version), None),
            _ => (
                Outcome::Unknown,
                Some("the store answered for another number of writes".to_owned()),
            ),
        },
        Transact::Conflict => (Outcome::Conflict, None),
        Transact::Undecided(why) => (Outcome::Undecided, Some(why)),
        Transact::Unavailable(why) => (Outcome::Unavailable, Some(why)),
        Transact::Unknown(why) => (Outcome::Unknown, Some(why)),
        Transact::Gone(why) => (Outcome::Gone, Some(why)),
    }
}

/// Why work under a lease was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The candidate says why.
    Demoted(Reason),
    /// The instance that held the lease died.
    Dead(Dead),
}

impl Lost {
    /// Whether work may still finish until `valid_until`.
    #[must_use]
    pub fn is_gentle(&self) -> bool {
        matches!(self, Self::Demoted(reason) if reason.is_gentle())
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Demoted(reason) => reason.fmt(f),
            Self::Dead(dead) => dead.fmt(f),
        }
    }
}
