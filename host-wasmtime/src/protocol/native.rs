//! The core linked in. Bytes become records, and records bytes, at this edge.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{self, Config, Elector};
use leasehold_core::record::{self, MAX_LEN};
use leasehold_core::store;

use super::{
    Body, Dead, Entropy, Input, LeaseId, Open, OpenError, Outcome, Protocol, Request, Status, Step,
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
    holder: String,
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
        let Open { name, holder, .. } = options.clone();
        self.opened = lease;
        self.leases.insert(
            LeaseId(lease),
            Lease { name, holder, elector: Elector::new(config, now, salt) },
        );
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
            Input::Resign => lease::Input::Resign,
            Input::Stop => lease::Input::Stop,
            Input::Disrupted => lease::Input::Disrupted,
        };
        let lease::Step { request, wake, event } = lease.elector.step(now, input);
        let request = request.and_then(|request| encode(request, &lease.name, &lease.holder));
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
        Outcome::Entry { value, version, age_ns } => store::Outcome::Entry {
            record: record::decode_named(name, value),
            version: *version,
            age_ns: *age_ns,
        },
        Outcome::Applied(version) => store::Outcome::Applied(*version),
        Outcome::Conflict => store::Outcome::Conflict,
        Outcome::Undecided => store::Outcome::Undecided,
        Outcome::Unavailable => store::Outcome::Unavailable,
        Outcome::Unknown => store::Outcome::Unknown,
        Outcome::Gone => store::Outcome::Gone,
    }
}

/// None only for texts that were not checked: what is not sent ends by its deadline.
fn encode(request: store::Request, name: &str, holder: &str) -> Option<Request> {
    let body = match request.body {
        store::Body::Read => Body::Read,
        store::Body::Write { expect, draft } => {
            let record = draft.record(Name::new(name).ok()?, Label::new(holder).ok()?);
            let mut buffer = [0; MAX_LEN];
            Body::Write { expect, value: record::encode(&record, &mut buffer).ok()?.to_vec() }
        }
    };
    let store::Request { op, deadline, .. } = request;
    Some(Request { op, deadline, key: ["lease/", name].concat(), body })
}
