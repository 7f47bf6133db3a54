//! What a host does around its elector: it sends requests, seals the resource, works while it may,
//! ends the work and says so.

use alloc::rc::Rc;

use leasehold_core::lease::{Config, Elector, Input, State, Wake};
use leasehold_core::observe::{Event, Reason};
use leasehold_core::record;
use leasehold_core::store::{Body, Outcome, Request};
use leasehold_core::time::{Clocks, MILLISECOND_NS, Now, Stamp};
use leasehold_core::token::{Nonce, Term, Token};

use crate::SECOND_NS;
use crate::decision::{Fate, Kind, Message, Service};
use crate::flaw::Flaw;
use crate::node::{self, Process, Work};
use crate::oracle::{Invariant, Stepped};
use crate::random::{Stream, draw};
use crate::resource::Answer;
use crate::store;
use crate::world::{Doing, Happening, Reply, World};

/// What a host has to act on, without what it borrows.
enum Said {
    Elected(Token),
    Leading(Token),
    Demoted { token: Token, reason: Reason, to: Option<u8> },
    Stopped,
}

impl World {
    pub(crate) fn start(&mut self, node: u8, life: u16) {
        let at_ns = self.at_ns;
        let Some(setup) = self.node_setup(node).cloned() else { return };
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        if state.life != life {
            return;
        }
        let identity = u64::from(node) << 16 | u64::from(life);
        let clocks = Clocks { wall: setup.has_wall, resolution_ns: setup.resolution_ns };
        let instance = Nonce(draw(self.setup.seed, Stream::Instance, identity, 0));
        let config =
            Config::new(instance, node::holder(node), setup.timing, setup.authority, clocks);
        let Ok(config) = config else { unreachable!("a setup with a timing that is refused") };
        let salt = draw(self.setup.seed, Stream::Salt, identity, 0);
        let now = state.clock.now(at_ns);
        let mut process = Process::new(Elector::new(Rc::new(config), now, salt));
        if self.setup.flaw == Some(Flaw::HostRemembersLeading) {
            let left_ns = u64::from(setup.timing.ttl_ms) * MILLISECOND_NS;
            process.work = state.worked.map(|token| Work { token, since: Stamp::of(now), left_ns });
        }
        state.process = Some(process);
        self.arm(node);
    }

    pub(crate) fn alarm(&mut self, node: u8, alarm: u64) {
        if self.nodes.get(usize::from(node)).is_some_and(|node| node.alarm == alarm) {
            self.step(node, Input::Tick);
        }
    }

    /// Sets the alarm for the elector's wake, by the node's clock as it is now.
    pub(crate) fn arm(&mut self, node: u8) {
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        state.alarm += 1;
        let at_ns = match state.process.as_ref().map(|process| process.wake) {
            Some(Wake::Now) => Some(self.at_ns),
            Some(Wake::At(mono)) => state.clock.when(self.at_ns, mono),
            Some(Wake::Idle) | None => None,
        };
        let alarm = state.alarm;
        if let Some(at_ns) = at_ns {
            self.schedule(at_ns, Happening::Alarm { node, alarm });
        }
    }

    pub(crate) fn process(&mut self, node: u8, life: u16, doing: Doing) {
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let Some(process) = state.process.as_mut().filter(|_| state.life == life) else { return };
        match doing {
            Doing::SendRequest { heir, request, fate } => {
                self.send_request(node, heir, request, fate);
            }
            Doing::SendSeal { token, fate } => self.send_seal(node, token, fate),
            Doing::SendEffect { token, fate } => self.send_effect(node, token, fate),
            Doing::Work(token) => self.work(node, token),
            Doing::Answer { op, reply } => {
                process.salts += 1;
                let identity = u64::from(node) << 16 | u64::from(life);
                let salt = draw(self.setup.seed, Stream::Salt, identity, process.salts);
                let outcome = match &reply {
                    Reply::Read(reading) => reading.outcome(),
                    Reply::Other(outcome) => *outcome,
                };
                self.step(node, Input::Done { op, outcome, salt });
            }
            Doing::Sealed(token) => self.step(node, Input::Sealed(token)),
            Doing::Refused { token, floor } => {
                let holds = matches!(
                    process.elector.state(),
                    State::Sealing | State::Leading | State::Draining
                );
                if let Some(term) = floor.and_then(Term::new)
                    && holds
                    && process.elector.token() == Some(token)
                {
                    process.memory.told_floor = Some(Token { term, ..token });
                }
                self.step(node, Input::SealRefused { token, floor });
            }
            Doing::Drained(token) => {
                if process.memory.term == Some(token) {
                    process.memory.drained = true;
                }
                if self.setup.flaw != Some(Flaw::NoDrain) {
                    process.work.take_if(|work| work.token == token);
                }
                self.step(node, Input::Drained(token));
            }
            Doing::Resign(to) => {
                process.heir = to;
                self.step(node, Input::Resign { to: to.map(node::holder) });
            }
            Doing::Stop => {
                process.memory.told_to_stop = process.elector.state() != State::Stopped;
                self.step(node, Input::Stop);
            }
            Doing::Disrupted => self.step(node, Input::Disrupted),
            Doing::Hint(reading) => {
                let entry = reading.as_ref().and_then(|reading| reading.entry());
                self.step(node, Input::Hint(entry));
            }
            Doing::Adopt(token) => self.step(node, Input::Adopt(token)),
        }
    }

    fn step(&mut self, node: u8, input: Input<'_>) {
        let at_ns = self.at_ns;
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let Some(process) = state.process.as_mut() else { return };
        let now = state.clock.now(at_ns);
        let before = Stepped::before(process, now);
        let step = process.elector.step(now, input);
        self.trace.number(at_ns);
        self.trace.number(u64::from(node));
        self.trace.step(&step);
        self.judge.stepped(at_ns, node, process, now, (&before, &input, &step));
        process.wake = step.wake;
        let said = match step.event {
            Some(Event::Elected { token }) => Some(Said::Elected(token)),
            Some(Event::Leading { token, .. }) => Some(Said::Leading(token)),
            Some(Event::Demoted { token, reason, to }) => {
                Some(Said::Demoted { token, reason, to: to.and_then(node::of_holder) })
            }
            Some(Event::Stopped) => Some(Said::Stopped),
            _ => None,
        };
        process.follow(now);
        let request = step.request;
        self.arm(node);
        if let Some(said) = said {
            self.hear(node, said);
        }
        if let Some(request) = request {
            self.ask_store(node, request);
        }
    }

    fn hear(&mut self, node: u8, said: Said) {
        let at_ns = self.at_ns;
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let (life, now) = (state.life, state.clock.now(at_ns));
        let Some(process) = state.process.as_mut() else { return };
        match said {
            Said::Elected(token) => {
                self.count.elected += 1;
                process.seals += 1;
                let number = process.seals;
                let fate = self.fate(Message { kind: Kind::Seal, node, life, number });
                if matches!(self.setup.flaw, Some(Flaw::NoSeal | Flaw::HostSealsLater)) {
                    let doing = Doing::Sealed(token);
                    self.after(MILLISECOND_NS, Happening::Process { node, life, doing });
                }
                if self.setup.flaw != Some(Flaw::NoSeal) {
                    self.emit(node, life, fate.pause_ns, Doing::SendSeal { token, fate });
                }
            }
            Said::Leading(token) => {
                self.count.led += 1;
                let end = process.elector.valid_until(now).unwrap_or(now.mono);
                process.work = Some(Work::until(token, now, end));
                let doing = Doing::Work(token);
                self.after(MILLISECOND_NS, Happening::Process { node, life, doing });
            }
            Said::Demoted { token, reason, to } => {
                process.heir = to.or(process.heir);
                process.drains += 1;
                let number = process.drains;
                if !reason.is_gentle() {
                    process.work = None;
                }
                let fate = self.fate(Message { kind: Kind::Drain, node, life, number });
                self.drain(node, life, token, fate);
            }
            Said::Stopped => {
                process.memory.told_to_stop = false;
                state.process = None;
                state.life += 1;
                let life = state.life;
                self.after(self.until_healed(2 * SECOND_NS), Happening::Start { node, life });
            }
        }
    }

    /// The work is told to end. What it does not manage by its deadline it leaves undone.
    fn drain(&mut self, node: u8, life: u16, token: Token, fate: Fate) {
        let at_ns = self.at_ns;
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let now = state.clock.now(at_ns);
        let process = state.process.as_mut();
        let end = process.as_ref().and_then(|process| process.elector.valid_until(now));
        let by_itself = || state.clock.when(at_ns, end?).map(|end_ns| end_ns - at_ns);
        let mut takes_ns = fate.there_ns.or_else(by_itself).unwrap_or(SECOND_NS);
        if self.setup.flaw == Some(Flaw::NoDrain) {
            if let Some(work) = process.and_then(|process| process.work.as_mut()) {
                (work.since, work.left_ns) = (Stamp::of(now), takes_ns);
            }
            takes_ns = 0;
        }
        self.after(takes_ns, Happening::Process { node, life, doing: Doing::Drained(token) });
    }

    /// One effect, if it may start, and the next one later.
    fn work(&mut self, node: u8, token: Token) {
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let (life, now) = (state.life, state.clock.now(self.at_ns));
        let Some(process) = state.process.as_mut() else { return };
        if process.elector.token() != Some(token) || !process.elector.may_start(now) {
            return;
        }
        process.effects += 1;
        let number = process.effects;
        let fate = self.fate(Message { kind: Kind::Effect, node, life, number });
        self.emit(node, life, fate.pause_ns, Doing::SendEffect { token, fate });
        let pace = draw(self.setup.seed, Stream::Work, u64::from(node), u64::from(number));
        let pause_ns = SECOND_NS / 2 + pace % SECOND_NS;
        self.after(pause_ns, Happening::Process { node, life, doing: Doing::Work(token) });
    }

    fn ask_store(&mut self, node: u8, request: Request) {
        let Some(state) = self.nodes.get(usize::from(node)) else { return };
        let life = state.life;
        let heir = state.process.as_ref().and_then(|process| process.heir);
        let fate = self.fate(Message { kind: Kind::Request, node, life, number: request.op.0 });
        self.emit(node, life, fate.pause_ns, Doing::SendRequest { heir, request, fate });
    }

    /// Sends at once, or after a pause that begins here.
    fn emit(&mut self, node: u8, life: u16, pause_ns: u64, doing: Doing) {
        if pause_ns == 0 {
            return self.process(node, life, doing);
        }
        self.freeze(node, pause_ns);
        self.after(0, Happening::Process { node, life, doing });
    }

    fn send_request(&mut self, node: u8, heir: Option<u8>, request: Request, fate: Fate) {
        let Some(state) = self.nodes.get(usize::from(node)) else { return };
        let life = state.life;
        if fate.service == Service::Unavailable {
            let reply = Reply::Other(Outcome::Unavailable);
            return self.answer(node, life, request, fate, reply);
        }
        let Some(there_ns) = fate.there_ns else { return };
        if state.requests_cut_until <= self.at_ns {
            self.after(there_ns, Happening::AtStore { node, life, heir, request, fate });
        }
    }

    pub(crate) fn at_store(
        &mut self,
        node: u8,
        life: u16,
        heir: Option<u8>,
        request: Request,
        fate: Fate,
    ) {
        let refused = match fate.service {
            Service::Undecided => Some(Outcome::Undecided),
            Service::Conflict => Some(Outcome::Conflict),
            _ => None,
        };
        let reply = match (request.body, refused) {
            (Body::Write { .. }, Some(outcome)) => Reply::Other(outcome),
            (Body::Write { expect, draft }, None) => {
                let heir = heir.map(node::holder);
                let before = self.store.token();
                let record = store::complete(&draft, node::holder(node), heir);
                let outcome = self.store.write(self.at_ns, expect, &record);
                if matches!(outcome, Outcome::Applied(_)) && draft.kind == record::Kind::Held {
                    self.judge.written(self.at_ns, node, (draft.token, draft.attempt), before);
                }
                Reply::Other(outcome)
            }
            (Body::Read, _) => Reply::Read(self.store.read(self.at_ns)),
        };
        let reply = match fate.service {
            Service::Unknown => Reply::Other(Outcome::Unknown),
            _ => reply,
        };
        let cut_until = self.nodes.get(usize::from(node)).map_or(0, |node| node.answers_cut_until);
        if cut_until <= self.at_ns {
            self.answer(node, life, request, fate, reply);
        }
    }

    fn answer(&mut self, node: u8, life: u16, request: Request, fate: Fate, reply: Reply) {
        let Some(back_ns) = fate.back_ns else { return };
        let doing = Doing::Answer { op: request.op, reply };
        if let Some(again_ns) = fate.again_ns {
            let doing = doing.clone();
            self.after(back_ns.saturating_add(again_ns), Happening::Process { node, life, doing });
        }
        self.after(back_ns, Happening::Process { node, life, doing });
    }

    fn send_seal(&mut self, node: u8, token: Token, fate: Fate) {
        let (life, slow_ns) = (self.life(node), self.slow_ns());
        if let Some(there_ns) = fate.there_ns {
            self.after(
                there_ns.saturating_add(slow_ns),
                Happening::SealArrives { node, life, token, fate },
            );
        }
    }

    pub(crate) fn seal_arrives(&mut self, node: u8, life: u16, token: Token, fate: Fate) {
        let verdict = self.resource.seal(token);
        if verdict.is_ok() {
            self.judge.sealed(token);
        }
        let Some(back_ns) = fate.back_ns else { return };
        let doing = match verdict {
            Ok(()) => Doing::Sealed(token),
            Err(floor) => Doing::Refused { token, floor },
        };
        self.after(back_ns, Happening::Process { node, life, doing });
    }

    /// An effect that was ready before a pause: a good host asks again before it sends it.
    fn send_effect(&mut self, node: u8, token: Token, fate: Fate) {
        let Some(state) = self.nodes.get(usize::from(node)) else { return };
        let Some(process) = &state.process else { return };
        let now = state.clock.now(self.at_ns);
        let in_time = process.elector.token() == Some(token) && process.elector.may_finish(now);
        if !in_time {
            if self.setup.flaw != Some(Flaw::HostSendsUnasked) {
                return;
            }
            self.judge.object(Invariant::EffectInTime, self.at_ns, node);
        }
        let (life, slow_ns) = (state.life, self.slow_ns());
        if let Some(there_ns) = fate.there_ns {
            self.after(
                there_ns.saturating_add(slow_ns),
                Happening::EffectArrives { node, life, token, fate },
            );
        }
    }

    pub(crate) fn effect_arrives(&mut self, node: u8, life: u16, token: Token, fate: Fate) {
        self.trace.number(self.at_ns);
        match (self.resource.effect(token), fate.back_ns) {
            (Answer::Accepted, _) => {
                self.count.accepted += 1;
                self.judge.accepted(self.at_ns, node, token);
            }
            (Answer::Refused(floor), Some(back_ns)) => {
                self.count.refused += 1;
                let doing = Doing::Refused { token, floor };
                self.after(back_ns, Happening::Process { node, life, doing });
            }
            (Answer::Refused(_), None) => self.count.refused += 1,
        }
    }

    fn slow_ns(&self) -> u64 {
        if self.slow.until_ns > self.at_ns { self.slow.by_ns } else { 0 }
    }
}

impl Process {
    /// The work stops by itself at the deadline, wherever a renewal moves it.
    fn follow(&mut self, now: Now) {
        let Some(work) = &mut self.work else { return };
        let end = self.elector.valid_until(now).filter(|_| self.elector.may_finish(now));
        if let Some(end) = end {
            *work = Work::until(work.token, now, end);
        }
    }
}
