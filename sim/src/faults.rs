//! What a fault does, and how everything goes well again.

use leasehold_core::label::{Label, Note};
use leasehold_core::lease::State;
use leasehold_core::operator::{self, Signature};
use leasehold_core::record::Ask;
use leasehold_core::token::{Nonce, Term, Token};

use crate::SECOND_NS;
use crate::clock::Power;
use crate::decision::{Fault, Hinted};
use crate::node::{self, MAX_NODES, Node, Process};
use crate::random::{Stream, draw};
use crate::store;
use crate::world::{Doing, Happening, Slow, World};

impl World {
    pub(crate) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Pause { node, for_ns } => self.freeze(node, for_ns),
            Fault::Suspend { node, for_ns } => self.sleep(node, for_ns, Power::Suspended),
            Fault::Freeze { node, for_ns } => {
                self.judge.broken = true;
                self.sleep(node, for_ns, Power::Frozen);
            }
            Fault::Crash { node, down_ns } => self.crash(node, self.until_healed(down_ns)),
            Fault::StepWall { node, by_ns } => {
                let at_ns = self.at_ns;
                self.judge.broken |= by_ns < 0 && self.stops_asleep(node);
                self.change_clock(node, |node| node.clock.step_wall(at_ns, by_ns));
            }
            Fault::Rate { node, ppb } => {
                let at_ns = self.at_ns;
                let bound_ppb = u64::from(self.setup.drift.ppm()) * 1_000;
                self.judge.broken |= ppb.unsigned_abs() > bound_ppb;
                self.change_clock(node, |node| node.clock.set_rate(at_ns, ppb));
            }
            Fault::Migrate { node, back_ns } => self.migrate(node, back_ns),
            Fault::Cut { node, requests, answers, for_ns } => {
                let until_ns = self.at_ns + self.until_healed(for_ns);
                let Some(node) = self.nodes.get_mut(usize::from(node)) else { return };
                if requests {
                    node.requests_cut_until = node.requests_cut_until.max(until_ns);
                }
                if answers {
                    node.answers_cut_until = node.answers_cut_until.max(until_ns);
                }
            }
            Fault::Restore { back, repeats } => {
                self.judge.broken = true;
                self.store.restore(back, repeats);
            }
            Fault::FailOver => self.store.fail_over(),
            Fault::Delete => {
                self.judge.broken = true;
                self.store.delete();
            }
            Fault::Spoil => {
                self.judge.broken = true;
                self.store.spoil(self.at_ns);
            }
            Fault::Ask { to } => self.ask(to),
            Fault::Force { now } => self.force(now),
            Fault::Resign { node, to } => self.tell(node, Doing::Resign(to)),
            Fault::Stop { node } => self.tell(node, Doing::Stop),
            Fault::Hint { node, content } => {
                let reading = match content {
                    Hinted::Nothing => None,
                    Hinted::Fresh => Some(self.store.read(self.at_ns)),
                    Hinted::Stale => Some(self.store.read_previous(self.at_ns)),
                };
                self.tell(node, Doing::Hint(reading));
            }
            Fault::Twin { node } => self.twin(node),
            Fault::Slow { by_ns, for_ns } => {
                self.slow = Slow { until_ns: self.at_ns + self.until_healed(for_ns), by_ns };
            }
            Fault::RestoreResource { back } => {
                let reading = self.store.read(self.at_ns);
                // What is recovered from a record that was rolled back itself is not recovered.
                if let Some(record) = reading.record().filter(|_| !self.judge.broken) {
                    self.resource.restore(back, record.token);
                }
            }
        }
    }

    /// The faults are over. What an operator has to mend is mended.
    pub(crate) fn heal(&mut self) {
        for node in 0..self.nodes.len() as u8 {
            self.change_clock(node, |_| {});
        }
        self.store.never_repeat();
        let reading = self.store.read(self.at_ns);
        let Some(after) = self.last_token() else {
            // Nobody ever held it: nothing is lost with what is there.
            if reading.is_spoilt() {
                self.store.delete();
            }
            return;
        };
        let is_sound = reading.record().is_some_and(|one| one.token.lineage == after.lineage);
        if !is_sound {
            self.restore_record(after);
        }
        if !is_sound || self.judge.saw_two_lineages() {
            self.adopt_everywhere(after);
        }
    }

    /// `leasehold init NAME --after TOKEN`.
    fn restore_record(&mut self, after: Token) {
        let ttl_ms = self.setup.nodes.first().map_or(1, |node| node.timing.ttl_ms);
        let record = operator::init(store::name(), after, self.signature(), ttl_ms);
        self.store.put(self.at_ns, &record);
    }

    fn adopt_everywhere(&mut self, after: Token) {
        for node in 0..self.nodes.len() as u8 {
            // Whoever holds something does not listen until it has lost that.
            for wait_ns in [0, 2 * SECOND_NS, 6 * SECOND_NS, 12 * SECOND_NS, 20 * SECOND_NS] {
                let life = self.life(node);
                self.after(wait_ns, Happening::Process { node, life, doing: Doing::Adopt(after) });
            }
        }
    }

    /// What an operator knows of the resource's history of terms.
    fn last_token(&self) -> Option<Token> {
        let won = self.judge.last_token()?;
        let row = self.resource.row();
        let floor =
            Term::new(row.floor).filter(|floor| row.lineage == won.lineage && *floor > won.term);
        Some(Token { term: floor.unwrap_or(won.term), ..won })
    }

    pub(crate) fn resume(&mut self, node: u8) {
        let at_ns = self.at_ns;
        self.change_clock(node, |node| {
            if node.asleep_until <= at_ns {
                node.clock.set_power(at_ns, Power::Awake);
            }
        });
    }

    pub(crate) fn freeze(&mut self, node: u8, for_ns: u64) {
        let until_ns = self.at_ns + self.until_healed(for_ns);
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            node.frozen_until = node.frozen_until.max(until_ns);
        }
    }

    fn sleep(&mut self, node: u8, for_ns: u64, power: Power) {
        let no_witness =
            self.stops_asleep(node) && self.node_setup(node).is_some_and(|n| !n.has_wall);
        self.judge.broken |= power == Power::Suspended && no_witness;
        self.freeze(node, for_ns);
        let (at_ns, for_ns) = (self.at_ns, self.until_healed(for_ns));
        self.change_clock(node, |node| {
            node.asleep_until = node.asleep_until.max(at_ns + for_ns);
            node.clock.set_power(at_ns, power);
        });
        let until_ns = self.nodes.get(usize::from(node)).map_or(0, |node| node.asleep_until);
        self.schedule(until_ns, Happening::Resume { node });
    }

    fn stops_asleep(&self, node: u8) -> bool {
        self.node_setup(node).is_some_and(|node| node.stops_asleep)
    }

    fn change_clock(&mut self, node: u8, change: impl FnOnce(&mut Node)) {
        if let Some(state) = self.nodes.get_mut(usize::from(node)) {
            change(state);
            self.arm(node);
        }
    }

    fn crash(&mut self, node: u8, down_ns: u64) {
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        let Some(process) = state.process.take() else { return };
        state.worked = process.work.map(|work| work.token);
        state.life += 1;
        let life = state.life;
        self.after(down_ns, Happening::Start { node, life });
    }

    fn migrate(&mut self, node: u8, back_ns: u64) {
        let at_ns = self.at_ns;
        let Some(state) = self.nodes.get_mut(usize::from(node)) else { return };
        if !state.is_frozen(at_ns) {
            state.clock.set_mono_back(at_ns, back_ns);
            self.process(node, self.life(node), Doing::Disrupted);
        }
    }

    fn twin(&mut self, node: u8) {
        let Some(original) = self.nodes.get(usize::from(node)) else { return };
        let Some(process) = original.process.clone() else { return };
        if self.nodes.len() >= usize::from(MAX_NODES) || original.is_frozen(self.at_ns) {
            return;
        }
        self.judge.broken = true;
        let twin = self.nodes.len() as u8;
        let mut state = Node::new(original.clock.clone(), original.origin);
        state.life = original.life;
        let (life, process) = (state.life, state.process.insert(process));
        let doing = process.begun();
        self.nodes.push(state);
        self.arm(twin);
        for doing in doing.into_iter().flatten() {
            self.after(SECOND_NS / 10, Happening::Process { node: twin, life, doing });
        }
    }

    fn ask(&mut self, to: u8) {
        let id = Nonce(self.operator_draw());
        let reading = self.store.read(self.at_ns);
        let asked =
            reading.record().map(|record| operator::ask(&record, Ask { id, to: node::holder(to) }));
        if let Some(Ok(record)) = asked {
            self.store.put(self.at_ns, &record);
        }
    }

    fn force(&mut self, now: bool) {
        let (signature, nonce) = (self.signature(), Nonce(self.operator_draw()));
        let Ok(reason) = Note::new("stuck") else { return };
        let reading = self.store.read(self.at_ns);
        let forced =
            reading.record().map(|record| operator::force(&record, signature, nonce, reason));
        let Some(Ok(forced)) = forced else { return };
        self.store.put(self.at_ns, &forced);
        if now {
            self.judge.broken = true;
            if let Ok(freed) = operator::waive(&forced, signature) {
                self.store.put(self.at_ns, &freed);
            }
        }
    }

    fn signature(&mut self) -> Signature<'static> {
        Signature {
            holder: Label::new("forced:operator").unwrap_or_else(|_| node::holder(0)),
            instance: Nonce(self.operator_draw()),
            attempt: Nonce(self.operator_draw()),
            at_ms: None,
        }
    }

    fn operator_draw(&mut self) -> u64 {
        self.operator_draws += 1;
        draw(self.setup.seed, Stream::Operator, 0, self.operator_draws)
    }

    fn tell(&mut self, node: u8, doing: Doing) {
        let life = self.life(node);
        self.after(0, Happening::Process { node, life, doing });
    }

    pub(crate) fn life(&self, node: u8) -> u16 {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.life)
    }
}

impl Process {
    /// What a copy of this process goes on with by itself.
    fn begun(&self) -> [Option<Doing>; 2] {
        let token = self.elector.token();
        let state = self.elector.state();
        [
            token.filter(|_| state == State::Leading).map(Doing::Work),
            token.filter(|_| state == State::Draining).map(Doing::Drained),
        ]
    }
}
