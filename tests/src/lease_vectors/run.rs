//! One case, played: the clocks, the store and the host of every candidate.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::lease::{Authority, State, Step as Said, Wake};
use leasehold_core::observe::{Event, StoreFault};
use leasehold_core::record;
use leasehold_core::store::{Body, Version};
use leasehold_core::time::{MILLISECOND_NS, Mono, Now};
use leasehold_core::token::Token;
use leasehold_core::wire;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::case::{Action, Candidate, Case, Gives, Hint, May, Performed, Step, Told};
use super::key::{Age, Edit, Key};
use super::{Answer, Entry, Input, Machine, Outcome};

/// The wall clock of every machine at true time 0, in milliseconds since 1970.
const WALL_MS: u64 = 1_796_065_445_123;

/// What a case has shown.
#[derive(Debug, Default)]
pub struct Run {
    /// SHA-256 in hex of all the messages, each after its length in two bytes, big-endian.
    pub digest: String,
    /// The states before and after every input.
    pub moves: BTreeSet<(State, State)>,
    /// The names of all that was told and said: inputs, outcomes, events, reasons and the like.
    pub shown: BTreeSet<String>,
}

/// Plays a case; `open` makes a candidate at a sample of its clocks, with the salt 1.
///
/// # Errors
/// What differs from the case, and at which step.
pub fn run<M: Machine>(case: &Case, open: impl FnMut(&Candidate, Now) -> M) -> Result<Run, String> {
    let mut world = World {
        case,
        open,
        key: Key::default(),
        clocks: BTreeMap::new(),
        hosts: BTreeMap::new(),
        messages: Sha256::new(),
        run: Run::default(),
    };
    if let Some(start) = &case.start {
        world.key.edit(0, &Edit::Put(start.clone()));
    }
    for (number, step) in case.steps.iter().enumerate() {
        world
            .take(step)
            .map_err(|fault| format!("{}\n  step {number}, {step:?}\n  {fault}", case.name))?;
    }
    let digest = world.messages.finalize();
    world.run.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(world.run)
}

struct World<'a, M, F> {
    case: &'a Case,
    open: F,
    key: Key,
    clocks: BTreeMap<&'a str, Clocks>,
    hosts: BTreeMap<&'a str, Host<M>>,
    messages: Sha256,
    run: Run,
}

/// How far a machine's clocks are from true time.
#[derive(Clone, Copy, Default)]
struct Clocks {
    mono_ms: i64,
    wall_ms: i64,
}

struct Host<M> {
    machine: M,
    has_store_clock: bool,
    salt: u64,
    /// As last announced.
    elected: Option<Token>,
    /// The last one drawn.
    op: u32,
    requests: BTreeMap<u32, Request>,
}

struct Request {
    /// For a write: on which version, and what.
    write: Option<(Option<Version>, Vec<u8>)>,
    kept: Option<Outcome>,
}

impl<'a, M: Machine, F: FnMut(&Candidate, Now) -> M> World<'a, M, F> {
    fn take(&mut self, step: &'a Step) -> Result<(), String> {
        match &step.action {
            Action::Edit(edit) => self.key.edit(step.at_ms, edit),
            Action::Clock { who, mono_ms, wall_ms } => {
                let clocks = self.clocks.entry(who).or_default();
                clocks.mono_ms += mono_ms;
                clocks.wall_ms += wall_ms;
            }
            Action::Perform { who, op, age } => self.perform(step.at_ms, who, *op, *age)?,
            Action::Ask { who, may } => self.ask(step.at_ms, who, *may)?,
            Action::Tell { who, told, gives } => self.tell(step.at_ms, who, told, gives)?,
        }
        Ok(())
    }

    fn perform(
        &mut self,
        at_ms: u64,
        who: &str,
        op: Option<u32>,
        age: Option<Age>,
    ) -> Result<(), String> {
        let host = self.hosts.get_mut(who).ok_or("there is no such machine yet")?;
        let op = op.unwrap_or(host.op);
        let usual = if host.has_store_clock { Age::Exact } else { Age::None };
        let request = host.requests.get_mut(&op).ok_or(format!("request {op} was never made"))?;
        let outcome = match &request.write {
            None => self.key.read(at_ms, age.unwrap_or(usual)),
            Some((expect, value)) => self.key.write(at_ms, *expect, value.clone()),
        };
        request.kept = Some(outcome);
        Ok(())
    }

    fn ask(&mut self, at_ms: u64, who: &str, may: May) -> Result<(), String> {
        let now = self.now(at_ms, who);
        let host = self.hosts.get_mut(who).ok_or("there is no such machine yet")?;
        host.check(now, may)
    }

    fn tell(&mut self, at_ms: u64, who: &'a str, told: &Told, gives: &Gives) -> Result<(), String> {
        let now = self.now(at_ms, who);
        let candidate = self.case.candidates.get(who).ok_or("there is no such machine")?;
        let host = self.hosts.entry(who).or_insert_with(|| Host {
            machine: (self.open)(candidate, now),
            has_store_clock: matches!(candidate.authority, Authority::StoreClock { .. }),
            salt: 1,
            elected: None,
            op: 0,
            requests: BTreeMap::new(),
        });
        let input = host.input(told, &self.key, at_ms)?;
        let before = host.machine.status(now).state;
        let answer = host.machine.step(now, &input);
        let after = host.machine.status(now).state;

        let length = u16::try_from(answer.message.len()).map_err(|_| "a message too long")?;
        self.messages.update(length.to_be_bytes());
        self.messages.update(&answer.message);
        let said = wire::decode_step(&answer.message).map_err(|fault| fault.to_string())?;
        host.act(&said, &answer)?;
        if before != after {
            self.run.moves.insert((before, after));
        }
        self.run.shown.extend(names(&input, &said));

        let event = event(&said);
        if !matches(&gives.event, &event) {
            return Err(format!("the event is {event}"));
        }
        let request = request(&said, &answer)?;
        if !matches(&gives.request, &request) {
            return Err(format!("the request is {request}"));
        }
        let wake = wake(said.wake);
        if gives.wake.as_ref().is_some_and(|expected| *expected != wake) {
            return Err(format!("the wake is {wake}"));
        }
        host.check(now, gives.may)
    }

    fn now(&self, at_ms: u64, who: &str) -> Now {
        let clocks = self.clocks.get(who).copied().unwrap_or_default();
        let shifted = |ms: u64, shift: i64| ms.checked_add_signed(shift).expect("a time from 0");
        Now {
            mono: Mono(shifted(at_ms, clocks.mono_ms) * MILLISECOND_NS),
            wall_ns: Some(shifted(WALL_MS + at_ms, clocks.wall_ms) * MILLISECOND_NS),
        }
    }
}

impl<M: Machine> Host<M> {
    /// The input, with what only the run knows: tokens, answers, salt, the key as it is.
    fn input(&mut self, told: &Told, key: &Key, at_ms: u64) -> Result<Input, String> {
        let elected = self.elected.ok_or("nothing was elected");
        Ok(match told {
            Told::Tick => Input::Tick,
            Told::Answer { op, outcome } => {
                let op = op.unwrap_or(self.op);
                let request = self.requests.get(&op).ok_or(format!("no request {op} was made"))?;
                let outcome = match outcome {
                    Performed::Kept => {
                        request.kept.clone().ok_or(format!("request {op} was never performed"))?
                    }
                    Performed::As(outcome) => outcome.clone(),
                };
                self.salt += 1;
                Input::Done { op, outcome, salt: self.salt }
            }
            Told::Sealed => Input::Sealed(elected?),
            Told::SealRefused { floor } => Input::SealRefused { token: elected?, floor: *floor },
            Told::Drained => Input::Drained(elected?),
            Told::Resign { to } => Input::Resign { to: to.clone() },
            Told::Stop => Input::Stop,
            Told::Disrupted => Input::Disrupted,
            Told::Hint(Hint::Nothing) => Input::Hint(None),
            Told::Hint(Hint::Key) => Input::Hint(key.entry(at_ms, Age::None)),
            Told::Hint(Hint::Patched(changes)) => {
                let entry = key.entry(at_ms, Age::None).ok_or("there is no record to patch")?;
                Input::Hint(Some(Entry { value: key.patched(changes), ..entry }))
            }
            Told::Hint(Hint::Other(entry)) => Input::Hint(Some(entry.clone())),
            Told::Adopt(token) => Input::Adopt(*token),
        })
    }

    /// What a host keeps of an answer.
    fn act(&mut self, said: &Said<'_>, answer: &Answer) -> Result<(), String> {
        if let Some(Event::Elected { token }) = said.event {
            self.elected = Some(token);
        }
        let Some(request) = &said.request else { return Ok(()) };
        let write = match request.body {
            Body::Read => None,
            Body::Write { expect, .. } => {
                Some((expect, answer.value.clone().ok_or("a write without a record")?))
            }
        };
        self.op = request.op.0;
        self.requests.insert(self.op, Request { write, kept: None });
        Ok(())
    }

    fn check(&mut self, now: Now, may: May) -> Result<(), String> {
        let status = self.machine.status(now);
        if may.start.is_some_and(|expected| expected != status.may_start) {
            return Err(format!("may_start is {}", status.may_start));
        }
        if may.finish.is_some_and(|expected| expected != status.may_finish) {
            return Err(format!("may_finish is {}", status.may_finish));
        }
        Ok(())
    }
}

/// Whether every part that is demanded is there; what is not demanded may be anything.
fn matches(demanded: &Value, found: &Value) -> bool {
    match (demanded.as_object(), found.as_object()) {
        (Some(demanded), Some(found)) => demanded
            .iter()
            .all(|(key, part)| found.get(key).is_some_and(|found| matches(part, found))),
        _ => demanded == found,
    }
}

fn event(said: &Said<'_>) -> Value {
    let ms = |instant: Mono| instant.0 / MILLISECOND_NS;
    match said.event {
        None => Value::Null,
        Some(Event::Standby { owner, alive }) => {
            json!({"standby": {"holder": owner.holder.as_str(), "alive": alive}})
        }
        Some(Event::Elected { .. }) => json!({"elected": {}}),
        Some(Event::Leading { stop_at, .. }) => json!({"leading": {"stop_at_ms": ms(stop_at)}}),
        Some(Event::Renewed { until }) => json!({"renewed": {"until_ms": ms(until)}}),
        Some(Event::RenewalLate { stop_at }) => {
            json!({"renewal_late": {"stop_at_ms": ms(stop_at)}})
        }
        Some(Event::Demoted { reason, to, .. }) => json!({"demoted": {
            "reason": format!("{reason:?}"),
            "to": to.map_or("", |to| to.as_str()),
        }}),
        Some(Event::Ended { how, .. }) => json!({"ended": {"how": format!("{how:?}")}}),
        Some(Event::StoreDown) => json!({"store_down": {}}),
        Some(Event::StoreUp) => json!({"store_up": {}}),
        Some(Event::StoreFault(fault)) => json!({"store_fault": {"name": fault_name(fault)}}),
        Some(Event::Stopped) => json!({"stopped": {}}),
    }
}

fn request(said: &Said<'_>, answer: &Answer) -> Result<Value, String> {
    let Some(request) = said.request else { return Ok(Value::Null) };
    let Body::Write { draft, .. } = request.body else { return Ok("read".into()) };
    let value = answer.value.as_deref().ok_or("a write without a record")?;
    let record = record::decode(value).map_err(|fault| fault.to_string())?;
    let drafted = (draft.token, draft.kind, draft.instance, draft.ttl_ms, draft.attempt);
    let written = (record.token, record.state.kind(), record.instance, record.ttl_ms);
    if drafted != (written.0, written.1, written.2, written.3, record.attempt) {
        return Err(format!("the record is not the one that was drafted: {record:?}"));
    }
    let to = match record.state {
        record::State::Offered { to: Some(to), .. } => to.as_str(),
        _ => "",
    };
    Ok(json!({"write": draft.kind.as_str(), "term": draft.token.term.get().to_string(), "to": to}))
}

fn wake(wake: Wake) -> Value {
    match wake {
        Wake::Now => "now".into(),
        Wake::At(at) => (at.0 / MILLISECOND_NS).into(),
        Wake::Idle => "idle".into(),
    }
}

fn fault_name(fault: StoreFault) -> &'static str {
    match fault {
        StoreFault::RecordGone => "RecordGone",
        StoreFault::Malformed { .. } => "Malformed",
        StoreFault::Newer { .. } => "Newer",
        StoreFault::ForeignLineage { .. } => "ForeignLineage",
        StoreFault::WentBack { .. } => "WentBack",
        StoreFault::BeyondMaxAdvance { .. } => "BeyondMaxAdvance",
        StoreFault::Exhausted => "Exhausted",
    }
}

/// `input Tick`, `outcome Conflict`, `event Demoted`, `reason Twin`, `how Lost`, `fault Newer`.
fn names(input: &Input, said: &Said<'_>) -> Vec<String> {
    let name = |kind: &str, debug: String| {
        let end = debug.find(|byte: char| !byte.is_alphanumeric()).unwrap_or(debug.len());
        format!("{kind} {}", &debug[..end])
    };
    let mut names = vec![name("input", format!("{input:?}"))];
    if let Input::Done { outcome, .. } = input {
        names.push(name("outcome", format!("{outcome:?}")));
    }
    names.extend(said.event.map(|event| name("event", format!("{event:?}"))));
    match said.event {
        Some(Event::Demoted { reason, .. }) => names.push(format!("reason {reason:?}")),
        Some(Event::Ended { how, .. }) => names.push(format!("how {how:?}")),
        Some(Event::StoreFault(fault)) => names.push(format!("fault {}", fault_name(fault))),
        _ => {}
    }
    names
}
