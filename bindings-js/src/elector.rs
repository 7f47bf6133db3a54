//! The elector over the wire's bytes, with the texts that it does without.

use alloc::borrow::ToOwned;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use leasehold_core::label::{LabelBuf, Name};
use leasehold_core::lease::{self, Input, State, Step};
use leasehold_core::observe::Event;
use leasehold_core::store::{Body, Draft, Entry, Outcome, Request, Version};
use leasehold_core::time::{Mono, Now};
use leasehold_core::{record, wire};
use wasm_bindgen::prelude::*;

use crate::config::Config;
use crate::words;

/// One candidate for one lease.
#[wasm_bindgen]
pub struct Elector {
    machine: lease::Elector<Rc<lease::Config>>,
    name: String,
    /// Whom an offer is made to, as last named.
    to: Option<LabelBuf>,
    /// Of the request that the last step asked for.
    draft: Option<Draft>,
}

#[wasm_bindgen]
impl Elector {
    /// `salt`: 64 fresh bits.
    #[wasm_bindgen(constructor)]
    pub fn new(
        config: &Config,
        name: &str,
        mono_ns: u64,
        wall_ns: Option<u64>,
        salt: u64,
    ) -> Result<Self, JsError> {
        let name = Name::new(name)?.as_str().to_owned();
        let machine = lease::Elector::new(config.0.clone(), now(mono_ns, wall_ns), salt);
        Ok(Self { machine, name, to: None, draft: None })
    }

    /// The key in the store.
    pub fn key(&self) -> String {
        ["lease/", &self.name].concat()
    }

    /// A wire input, with its sample; gives a wire step. Bytes that are none change nothing.
    pub fn step(&mut self, input: &[u8]) -> Result<Vec<u8>, JsError> {
        let (now, input) = wire::decode_input(input)?;
        let record = match input {
            Input::Done { outcome: Outcome::Entry(entry), .. } | Input::Hint(Some(entry)) => {
                entry.record.ok()
            }
            _ => None,
        };
        if record.is_some_and(|record| record.name.as_str() != self.name) {
            return Err(JsError::new(
                "the entry was read for another lease: use this one's `entry`",
            ));
        }
        if let Input::Resign { to } = input {
            self.to = to.map(Into::into);
        }
        let step = self.machine.step(now, input);
        if let Some(Event::Demoted { to: Some(to), .. }) = step.event {
            self.to = Some(to.into());
        }
        self.draft = draft(&step);
        let mut buffer = [0; wire::MAX_LEN];
        Ok(wire::encode_step(&step, &mut buffer)?.to_owned())
    }

    /// What to write, after a step that asks for a write.
    pub fn value(&self) -> Result<Option<Vec<u8>>, JsError> {
        let Some(draft) = &self.draft else { return Ok(None) };
        let to = self.to.as_ref().map(LabelBuf::as_label);
        let record = draft.record(Name::new(&self.name)?, self.machine.config().holder(), to);
        let mut buffer = [0; record::MAX_LEN];
        Ok(Some(record::encode(&record, &mut buffer)?.to_owned()))
    }

    /// What the key holds, as it stands in a wire input.
    pub fn entry(
        &self,
        value: &[u8],
        version: &[u8],
        age_ns: Option<u64>,
    ) -> Result<Vec<u8>, JsError> {
        let record = record::decode_named(&self.name, value);
        let version = Version::new(version)
            .ok_or_else(|| JsError::new("a version has at most 40 bytes: give a shorter one"))?;
        let mut buffer = [0; wire::MAX_LEN];
        let entry = Entry { record, version, age_ns };
        Ok(wire::encode_entry(&entry, &mut buffer)?.to_owned())
    }

    /// The state's name.
    pub fn state(&self) -> String {
        let name = match self.machine.state() {
            State::Observing => "Observing",
            State::Standby => "Standby",
            State::Campaigning => "Campaigning",
            State::Confirming => "Confirming",
            State::Sealing => "Sealing",
            State::Leading => "Leading",
            State::Draining => "Draining",
            State::Releasing => "Releasing",
            State::Stopped => "Stopped",
        };
        name.to_owned()
    }

    /// The token's words; none where none is held.
    pub fn token(&self) -> Vec<u64> {
        self.machine.token().map(words::of_token).map(Vec::from).unwrap_or_default()
    }

    #[wasm_bindgen(js_name = mayStart)]
    pub fn may_start(&self, mono_ns: u64, wall_ns: Option<u64>) -> bool {
        self.machine.may_start(now(mono_ns, wall_ns))
    }

    #[wasm_bindgen(js_name = mayFinish)]
    pub fn may_finish(&self, mono_ns: u64, wall_ns: Option<u64>) -> bool {
        self.machine.may_finish(now(mono_ns, wall_ns))
    }

    #[wasm_bindgen(js_name = remainingNs)]
    pub fn remaining_ns(&self, mono_ns: u64, wall_ns: Option<u64>) -> u64 {
        self.machine.remaining_ns(now(mono_ns, wall_ns))
    }

    #[wasm_bindgen(js_name = stopAt)]
    pub fn stop_at(&self, mono_ns: u64, wall_ns: Option<u64>) -> Option<u64> {
        self.machine.stop_at(now(mono_ns, wall_ns)).map(|at| at.0)
    }

    #[wasm_bindgen(js_name = validUntil)]
    pub fn valid_until(&self, mono_ns: u64, wall_ns: Option<u64>) -> Option<u64> {
        self.machine.valid_until(now(mono_ns, wall_ns)).map(|at| at.0)
    }
}

fn now(mono_ns: u64, wall_ns: Option<u64>) -> Now {
    Now { mono: Mono(mono_ns), wall_ns }
}

fn draft(step: &Step<'_>) -> Option<Draft> {
    match step.request? {
        Request { body: Body::Write { draft, .. }, .. } => Some(draft),
        Request { body: Body::Read, .. } => None,
    }
}
