//! The component in a bare wasmtime host: the contract, without this crate's own host around it.

use leasehold_host::COMPONENT;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, ResourceLimiter, Store};

use bindings::leasehold::protocol::types::{Authority, Clocks, Event, Options, Sample, Timing};
use bindings::leasehold::protocol::{clock, entropy, log, storage, types};

mod bindings {
    wasmtime::component::bindgen!({ path: "wit", world: "protocol" });
}

pub(crate) use bindings::Protocol;
pub(crate) use bindings::exports::leasehold::protocol::{fence, timing};
pub(crate) use bindings::leasehold::protocol::types as wit;

/// What the component asked for, in the order in which it did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Read { lease: u32, op: u32, key: String },
    Transact { lease: u32, op: u32, key: String, expect: Option<Vec<u8>>, value: Vec<u8> },
    Event { lease: u32, event: String },
}

/// A host of four imports that remembers.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) mono: u64,
    pub(crate) salt: u64,
    pub(crate) calls: Vec<Call>,
    /// Of the guest's linear memory.
    pub(crate) memory_bytes: usize,
    /// The same instance, for a host that calls back during an import, and what it was answered.
    pub(crate) callee: Option<Protocol>,
    pub(crate) answers: Vec<Option<types::Misuse>>,
}

impl clock::Host for Host {
    fn now(&mut self) -> Sample {
        Sample { mono: self.mono, wall_ns: Some(self.mono) }
    }
}

impl entropy::Host for Host {
    fn salt(&mut self) -> u64 {
        self.salt += 1;
        self.salt
    }
}

impl storage::Host for Host {
    fn submit_read(&mut self, lease: u32, op: u32, _: u64, key: String) {
        self.calls.push(Call::Read { lease, op, key });
    }

    fn submit_transact(
        &mut self,
        lease: u32,
        op: u32,
        _: u64,
        key: String,
        expect: Option<Vec<u8>>,
        value: Vec<u8>,
    ) {
        self.calls.push(Call::Transact { lease, op, key, expect, value });
    }
}

impl log::Host for Host {
    fn emit(&mut self, lease: u32, event: Event) {
        self.calls.push(Call::Event { lease, event: format!("{event:?}") });
    }
}

impl types::Host for Host {}

impl ResourceLimiter for Host {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.memory_bytes = desired;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

/// An engine, and a linker that offers the four imports and lets a test replace them.
pub(crate) fn linker() -> (Engine, Linker<Host>) {
    let engine = Engine::new(Config::new().concurrency_support(false)).unwrap();
    let mut linker = Linker::new(&engine);
    linker.allow_shadowing(true);
    Protocol::add_to_linker::<_, HasSelf<_>>(&mut linker, |host| host).unwrap();
    (engine, linker)
}

pub(crate) fn instantiate(engine: &Engine, linker: &Linker<Host>) -> (Protocol, Store<Host>) {
    let component = Component::new(engine, COMPONENT).unwrap();
    let mut store = Store::new(engine, Host { mono: 1_000_000_000, ..Host::default() });
    store.limiter(|host| host);
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let protocol = Protocol::new(&mut store, &instance).unwrap();
    store.data_mut().callee = Some(Protocol::new(&mut store, &instance).unwrap());
    (protocol, store)
}

pub(crate) fn fresh() -> (Protocol, Store<Host>) {
    let (engine, linker) = linker();
    instantiate(&engine, &linker)
}

/// A lease of 3 s that is checked and fits.
pub(crate) fn options(name: &str) -> Options {
    const MS: u64 = 1_000_000;
    Options {
        name: name.to_owned(),
        holder: "tester".to_owned(),
        instance: 7,
        timing: Timing {
            ttl_ms: 3_000,
            renew_ns: 1_000 * MS,
            attempt_ns: 200 * MS,
            tolerated: 2,
            pause_ns: 100 * MS,
            drain_ns: 300 * MS,
            guard_ns: 20 * MS,
            poll_ns: 1_000 * MS,
            retry_ns: 60 * MS,
            seal_within_ns: 1_500 * MS,
            grace_ms: 2_000,
            sit_out_ns: 3_000 * MS,
            drift_ppm: 10_000,
        },
        authority: Authority::LocalObservation,
        clocks: Clocks { wall: true, resolution_ns: 1 },
    }
}

#[test]
fn the_component_asks_for_its_four_imports_and_offers_its_three_exports() {
    let (engine, _) = linker();
    let component = Component::new(&engine, COMPONENT).unwrap();
    let component_type = component.component_type();
    let imports: Vec<&str> = component_type.imports(&engine).map(|(name, _)| name).collect();
    let exports: Vec<&str> = component_type.exports(&engine).map(|(name, _)| name).collect();
    let of_this_package = |names: &[&str]| {
        names.iter().all(|name| name.starts_with("leasehold:protocol/") && name.ends_with("@0.1.0"))
    };
    assert!(of_this_package(&imports) && of_this_package(&exports), "{imports:?} {exports:?}");
    for interface in ["types", "clock", "storage", "entropy", "log"] {
        assert!(imports.iter().any(|name| name.contains(&format!("/{interface}@"))), "{imports:?}");
    }
    assert_eq!((imports.len(), exports.len()), (5, 3), "{imports:?} {exports:?}");
}
