//! The candidates of this instance. Nothing here calls an import.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{Config, Elector};
use leasehold_core::record::{self, LeaseRecord, MAX_LEN, RecordFault};
use leasehold_core::store::Draft;
use leasehold_core::time::Now;

use crate::bindings::leasehold::protocol::types::Misuse;

/// All candidates, sorted by number: numbers only grow. Boxed, since opening and closing move the
/// others; a map would double the memory and cost 3 kB of code.
pub(crate) struct Leases {
    leases: Vec<(u32, Box<Lease>)>,
    opened: u32,
    /// What the last candidate was opened with: those with the same options share it.
    config: Option<Arc<Config>>,
}

/// One candidate with its texts.
pub(crate) struct Lease {
    pub(crate) elector: Elector<Arc<Config>>,
    pub(crate) texts: Texts,
}

/// The texts of a lease, which its elector does without.
pub(crate) struct Texts {
    name: String,
    /// Whom the release offers the lease to, as last wished.
    to: Option<String>,
}

impl Leases {
    pub(crate) const fn new() -> Self {
        Self { leases: Vec::new(), opened: 0, config: None }
    }

    pub(crate) fn open(
        &mut self,
        texts: Texts,
        config: Config,
        now: Now,
        salt: u64,
    ) -> Result<u32, Misuse> {
        self.opened = self.opened.checked_add(1).ok_or(Misuse::TooMany)?;
        let elector = Elector::new(self.shared(config), now, salt);
        self.leases.push((self.opened, Box::new(Lease { elector, texts })));
        Ok(self.opened)
    }

    pub(crate) fn close(&mut self, id: u32) -> Result<(), Misuse> {
        let at = self.at(id)?;
        self.leases.remove(at);
        Ok(())
    }

    pub(crate) fn get(&mut self, id: u32) -> Result<&mut Lease, Misuse> {
        let at = self.at(id)?;
        self.leases.get_mut(at).map(|(_, lease)| lease.as_mut()).ok_or(Misuse::NoLease)
    }

    fn at(&self, id: u32) -> Result<usize, Misuse> {
        self.leases.binary_search_by_key(&id, |(id, _)| *id).map_err(|_| Misuse::NoLease)
    }

    fn shared(&mut self, config: Config) -> Arc<Config> {
        match &self.config {
            Some(shared) if **shared == config => shared.clone(),
            _ => self.config.insert(Arc::new(config)).clone(),
        }
    }
}

impl Texts {
    const PREFIX: &'static str = "lease/";

    pub(crate) fn new(name: String) -> Result<Self, Misuse> {
        Name::new(&name).map_err(|_| Misuse::Name)?;
        Ok(Self { name, to: None })
    }

    pub(crate) fn offer_to(&mut self, to: Option<Label<'_>>) {
        self.to = to.map(|to| to.as_str().to_owned());
    }

    pub(crate) fn key(&self) -> String {
        [Self::PREFIX, &self.name].concat()
    }

    pub(crate) fn decode<'a>(&self, value: &'a [u8]) -> Result<LeaseRecord<'a>, RecordFault> {
        record::decode_named(&self.name, value)
    }

    /// None only for texts that were not checked: what is not sent ends by its deadline.
    pub(crate) fn encode(&self, draft: &Draft, holder: Label<'_>) -> Option<Vec<u8>> {
        let to = self.to.as_deref().map(Label::new).transpose().ok()?;
        let record = draft.record(Name::new(&self.name).ok()?, holder, to);
        let mut buffer = [0; MAX_LEN];
        record::encode(&record, &mut buffer).ok().map(ToOwned::to_owned)
    }
}
