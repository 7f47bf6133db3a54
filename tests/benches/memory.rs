//! The linear memory of the component: what a lease takes, and that steps take nothing.

use leasehold_core::lease::{Config, Elector};
use leasehold_tests::{figure, holder};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, ResourceLimiter, Store};

use bindings::Protocol;
use bindings::leasehold::protocol::types::{self, Done, Event, Input, Options, Outcome, Sample};
use bindings::leasehold::protocol::{clock, entropy, log, storage};

mod bindings {
    wasmtime::component::bindgen!({ path: "../host-wasmtime/wit", world: "protocol" });
}

const LEASES: u64 = 10_000;
const RENEWALS: u64 = 500_000;

fn main() {
    let mut host = Host::new();
    let before = host.memory_bytes();
    let leases: Vec<u32> =
        (0..LEASES).map(|number| host.open(&format!("lease-{number}"))).collect();
    let grown = host.memory_bytes() - before;
    // The elector is what a lease takes without its name, its number and its place.
    let elector = size_of::<Elector<&Config>>() as u64;
    figure::print("component.memory-per-lease", "bytes", grown / LEASES, Some(elector));

    host.lead(leases[0]);
    let before = host.memory_bytes();
    (0..RENEWALS).for_each(|_| host.renew(leases[0]));
    let grown = host.memory_bytes() - before;
    figure::print("component.growth-in-1000000-steps", "bytes", grown, None);
}

/// The component with a host of four imports.
struct Host {
    protocol: Protocol,
    store: Store<Imports>,
}

impl Host {
    fn new() -> Self {
        let engine = Engine::new(wasmtime::Config::new().concurrency_support(false)).unwrap();
        let component = Component::new(&engine, leasehold_host::COMPONENT).unwrap();
        let mut linker = Linker::new(&engine);
        Protocol::add_to_linker::<_, HasSelf<_>>(&mut linker, |imports| imports).unwrap();
        let mut store = Store::new(&engine, Imports::default());
        store.limiter(|imports| imports);
        let protocol = Protocol::instantiate(&mut store, &component, &linker).unwrap();
        Self { protocol, store }
    }

    fn memory_bytes(&self) -> u64 {
        self.store.data().memory_bytes
    }

    fn open(&mut self, name: &str) -> u32 {
        let elector = self.protocol.leasehold_protocol_elector();
        elector.call_open(&mut self.store, &options(name)).unwrap().unwrap()
    }

    fn lead(&mut self, lease: u32) {
        self.step(lease, &Input::Tick);
        self.done(lease, Outcome::Absent);
        self.done(lease, Outcome::Applied(vec![1]));
        let Some(Event::Elected(token)) = self.store.data_mut().event.take() else {
            panic!("no election")
        };
        self.step(lease, &Input::Sealed(token));
        let Some(Event::Leading(_)) = self.store.data_mut().event.take() else { panic!("no lead") };
    }

    fn renew(&mut self, lease: u32) {
        self.store.data_mut().mono += holder::config().timing().renew_ns;
        self.step(lease, &Input::Tick);
        self.done(lease, Outcome::Applied(vec![1]));
        let Some(Event::Renewed(_)) = self.store.data_mut().event.take() else {
            panic!("no renewal")
        };
    }

    fn done(&mut self, lease: u32, outcome: Outcome) {
        let op = self.store.data_mut().op.take().expect("a request");
        self.step(lease, &Input::Done(Done { op, outcome }));
    }

    fn step(&mut self, lease: u32, input: &Input) {
        let elector = self.protocol.leasehold_protocol_elector();
        elector.call_step(&mut self.store, lease, input).unwrap().unwrap();
    }
}

fn options(name: &str) -> Options {
    let config = holder::config();
    let timing = config.timing();
    Options {
        name: name.to_owned(),
        holder: holder::LABEL.to_owned(),
        instance: config.instance().0,
        timing: types::Timing {
            ttl_ms: timing.ttl_ms,
            renew_ns: timing.renew_ns,
            attempt_ns: timing.attempt_ns,
            tolerated: timing.tolerated,
            pause_ns: timing.pause_ns,
            drain_ns: timing.drain_ns,
            guard_ns: timing.guard_ns,
            poll_ns: timing.poll_ns,
            retry_ns: timing.retry_ns,
            seal_within_ns: timing.seal_within_ns,
            grace_ms: timing.grace_ms,
            sit_out_ns: timing.sit_out_ns,
            drift_ppm: timing.drift.ppm(),
        },
        authority: types::Authority::LocalObservation,
        clocks: types::Clocks { wall: true, resolution_ns: 1 },
    }
}

#[derive(Default)]
struct Imports {
    mono: u64,
    /// Of the last request.
    op: Option<u32>,
    event: Option<Event>,
    /// Of the guest's linear memory.
    memory_bytes: u64,
}

impl clock::Host for Imports {
    fn now(&mut self) -> Sample {
        Sample { mono: self.mono, wall_ns: Some(self.mono) }
    }
}

impl entropy::Host for Imports {
    fn salt(&mut self) -> u64 {
        7
    }
}

impl storage::Host for Imports {
    fn submit_read(&mut self, _: u32, op: u32, _: u64, _: String) {
        self.op = Some(op);
    }

    fn submit_transact(
        &mut self,
        _: u32,
        op: u32,
        _: u64,
        _: String,
        _: Option<Vec<u8>>,
        _: Vec<u8>,
    ) {
        self.op = Some(op);
    }
}

impl log::Host for Imports {
    fn emit(&mut self, _: u32, event: Event) {
        self.event = Some(event);
    }
}

impl types::Host for Imports {}

impl ResourceLimiter for Imports {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.memory_bytes = desired as u64;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}
