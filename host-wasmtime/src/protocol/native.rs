//! The core linked in. Bytes become records, and records bytes, at this edge.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{self, Config, Elector};
use leasehold_core::observe;
use leasehold_core::record::{self, MAX_LEN};
use leasehold_core::store;

use super::{
    Body, Dead, Entropy, Entry, Input, LeaseId, Open, OpenError, Outcome, Protocol, Request,
    Status, Step,
};
use crate::clock::Clock;

/// The core's electors in this process.
pub struct Native {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    leases: BTreeMap<LeaseId, Lease>,
    opened: u32,
    /// What the last candidate was opened with: those with the same options share it.
    config: Option<Arc<Config>>,
}

struct Lease {
    name: String,
    /// Whom the release offers the lease to, as last wished.
    to: Option<String>,
    elector: Elector<Arc<Config>>,
}

impl Native {
    /// No candidate yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy, leases: BTreeMap::new(), opened: 0, config: None }
    }

    fn shared(&mut self, config: Config) -> Arc<Config> {
        match &self.config {
            Some(shared) if **shared == config => shared.clone(),
            _ => self.config.insert(Arc::new(config)).clone(),
        }
    }
}

impl Protocol for Native {
    fn open(&mut self, options: &Open) -> Result<LeaseId, OpenError> {
        let config = options.check()?;
        let lease = self.opened.checked_add(1).ok_or_else(Dead::no_number_left)?;
        let now = self.clock.now();
        let salt = self.entropy.salt().map_err(Dead::because)?;
        let config = self.shared(config);
        let elector = Elector::new(config, now, salt);
        self.opened = lease;
        self.leases.insert(LeaseId(lease), Lease { name: options.name.clone(), to: None, elector });
        Ok(LeaseId(lease))
    }

    fn close(&mut self, lease: LeaseId) -> Result<(), Dead> {
        self.leases.remove(&lease).map(drop).ok_or_else(|| Dead::no_lease(lease))
    }

    fn step(&mut self, lease: LeaseId, input: Input) -> Result<Step, Dead> {
        let lease = self.leases.get_mut(&lease).ok_or_else(|| Dead::no_lease(lease))?;
        let now = self.clock.now();
        let input = match &input {
            Input::Tick => lease::Input::Tick,
            Input::Done { op, outcome } => lease::Input::Done {
                op: *op,
                outcome: decode(outcome, &lease.name),
                salt: self.entropy.salt().map_err(Dead::because)?,
            },
            Input::Sealed(token) => lease::Input::Sealed(*token),
            Input::SealRefused { token, floor } => {
                lease::Input::SealRefused { token: *token, floor: *floor }
            }
            Input::Drained(token) => lease::Input::Drained(*token),
            Input::Resign { to } => {
                let label = to.as_deref().map(Label::new).transpose().map_err(Dead::because)?;
                lease.to.clone_from(to);
                lease::Input::Resign { to: label }
            }
            Input::Stop => lease::Input::Stop,
            Input::Disrupted => lease::Input::Disrupted,
            Input::Hint(hint) => {
                lease::Input::Hint(hint.as_ref().map(|hint| entry(hint, &lease.name)))
            }
            Input::Adopt(token) => lease::Input::Adopt(*token),
        };
        let lease::Step { request, wake, event } = lease.elector.step(now, input);
        if let Some(observe::Event::Demoted { to: Some(to), .. }) = event {
            lease.to = Some(to.as_str().to_owned());
        }
        let request = request.and_then(|request| encode(request, lease));
        Ok(Step { request, wake, event: event.map(Into::into) })
    }

    fn status(&mut self, lease: LeaseId) -> Result<Status, Dead> {
        let Lease { elector, .. } = self.leases.get(&lease).ok_or_else(|| Dead::no_lease(lease))?;
        let now = self.clock.now();
        Ok(Status {
            state: elector.state(),
            token: elector.token(),
            may_start: elector.may_start(now),
            may_finish: elector.may_finish(now),
            remaining_ns: elector.remaining_ns(now),
            stop_at: elector.stop_at(now),
            valid_until: elector.valid_until(now),
        })
    }
}

/// The store's answer as the core takes it.
fn decode<'a>(outcome: &'a Outcome, name: &str) -> store::Outcome<'a> {
    match outcome {
        Outcome::Absent => store::Outcome::Absent,
        Outcome::Entry(entry) => store::Outcome::Entry(self::entry(entry, name)),
        Outcome::Applied(version) => store::Outcome::Applied(*version),
        Outcome::Conflict => store::Outcome::Conflict,
        Outcome::Undecided => store::Outcome::Undecided,
        Outcome::Unavailable => store::Outcome::Unavailable,
        Outcome::Unknown => store::Outcome::Unknown,
        Outcome::Gone => store::Outcome::Gone,
    }
}

fn entry<'a>(entry: &'a Entry, name: &str) -> store::Entry<'a> {
    let Entry { value, version, age_ns } = entry;
    let record = record::decode_named(name, value);
    store::Entry { record, version: *version, age_ns: *age_ns }
}

/// None only for texts that were not checked: what is not sent ends by its deadline.
fn encode(request: store::Request, lease: &Lease) -> Option<Request> {
    let Lease { name, to, elector } = lease;
    let body = match request.body {
        store::Body::Read => Body::Read,
        store::Body::Write { expect, draft } => {
            let to = to.as_deref().map(Label::new).transpose().ok()?;
            let record = draft.record(Name::new(name).ok()?, elector.config().holder(), to);
            let mut buffer = [0; MAX_LEN];
            Body::Write { expect, value: record::encode(&record, &mut buffer).ok()?.to_vec() }
        }
    };
    let store::Request { op, deadline, .. } = request;
    Some(Request { op, deadline, key: ["lease/", name.as_str()].concat(), body })
}
