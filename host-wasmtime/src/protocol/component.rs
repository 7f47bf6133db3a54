//! The component in wasmtime. It has no more than its four imports: no files, no sockets, no
//! environment; its memory is limited, and so is the time of every call.

mod values;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bindings::leasehold::protocol::types::{Event, Misuse, Sample};
use bindings::leasehold::protocol::{clock, entropy, log, storage, types};
use bindings::{Protocol as Instance, ProtocolPre as Prepared};
use leasehold_core::store::OpId;
use leasehold_core::time::{Mono, Now};
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Cache, CacheConfig, Config, Store, StoreLimits, StoreLimitsBuilder};

use super::{
    Body, Dead, Entropy, Input, LeaseId, Open, OpenError, Protocol, Request, Status, Step,
};
use crate::COMPONENT;
use crate::clock::Clock;

#[allow(missing_docs, unused_qualifications, unreachable_pub)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "protocol",
        imports: { default: trappable },
    });
}

/// How often the engine looks whether a call takes too long.
const TICK: Duration = Duration::from_millis(10);

/// Ticks after which a call is ended. A call takes microseconds; the rest is for a machine so busy
/// that the thread does not run.
const TICKS: u64 = 10;

/// Room for several hundred thousand leases.
const MEMORY_BYTES: usize = 256 << 20;

/// The compiled component. Cheap to clone; one is enough for a process.
#[derive(Clone)]
pub struct Engine {
    prepared: Prepared<Host>,
}

impl Engine {
    /// Compiles the component, or finds it in `cache`: a folder of this user's own, since what
    /// lies there is run. Starts a thread that ends with the last clone.
    ///
    /// # Errors
    /// The folder cannot be used, or the machine lacks what wasmtime needs.
    pub fn new(cache: Option<&Path>) -> Result<Self, EngineError> {
        Self::of(COMPONENT, cache).map_err(|error| EngineError(format!("{error:#}")))
    }

    fn of(component: &[u8], cache: Option<&Path>) -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config
            .concurrency_support(false)
            .epoch_interruption(true)
            .memory_reservation(MEMORY_BYTES as u64);
        if let Some(folder) = cache {
            let mut cache = CacheConfig::new();
            cache.with_directory(std::path::absolute(folder)?);
            config.cache(Some(Cache::new(cache)?));
        }
        let engine = wasmtime::Engine::new(&config)?;
        let component = wasmtime::component::Component::new(&engine, component)?;
        let mut linker = Linker::new(&engine);
        Instance::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
        let prepared = Prepared::new(linker.instantiate_pre(&component)?)?;
        tick(&engine)?;
        Ok(Self { prepared })
    }
}

fn tick(engine: &wasmtime::Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    let ticker = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new().name("leasehold-epoch".to_owned()).spawn(ticker).map(drop)
}

/// The component could not be made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start the leasehold component: {}", self.0)
    }
}

impl std::error::Error for EngineError {}

/// The component's electors. One instance in one wasmtime store, since a trap ends all that share
/// a store.
pub struct Component {
    instance: Instance,
    store: Store<Host>,
}

impl Component {
    /// A fresh instance without candidates.
    ///
    /// # Errors
    /// [`Dead`]: the machine is out of memory.
    pub fn new(
        engine: &Engine,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Dead> {
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY_BYTES).build();
        let host = Host { clock, entropy, limits, request: None, event: None };
        let mut store = Store::new(engine.prepared.engine(), host);
        store.limiter(|host| &mut host.limits);
        store.set_epoch_deadline(TICKS);
        let instance = engine.prepared.instantiate(&mut store).map_err(trapped)?;
        Ok(Self { instance, store })
    }

    /// The exports and the store, for one call that ends in time.
    fn elector(
        &mut self,
    ) -> (&bindings::exports::leasehold::protocol::elector::Guest, &mut Store<Host>) {
        self.store.set_epoch_deadline(TICKS);
        (self.instance.leasehold_protocol_elector(), &mut self.store)
    }
}

impl Protocol for Component {
    fn open(&mut self, options: &Open) -> Result<LeaseId, OpenError> {
        options.check()?;
        let options = values::options(options);
        let (elector, store) = self.elector();
        let lease = elector.call_open(store, &options).map_err(trapped)?.map_err(misused)?;
        Ok(LeaseId(lease))
    }

    fn close(&mut self, lease: LeaseId) -> Result<(), Dead> {
        let (elector, store) = self.elector();
        elector.call_close(store, lease.0).map_err(trapped)?.map_err(misused)
    }

    fn step(&mut self, lease: LeaseId, input: Input) -> Result<Step, Dead> {
        let input = values::input(input);
        let (elector, store) = self.elector();
        let wake = elector.call_step(store, lease.0, &input).map_err(trapped)?.map_err(misused)?;
        let host = self.store.data_mut();
        let event = host.event.take().map(values::event).transpose()?;
        Ok(Step { request: host.request.take(), wake: values::wake(wake), event })
    }

    fn status(&mut self, lease: LeaseId) -> Result<Status, Dead> {
        let (elector, store) = self.elector();
        let status = elector.call_query(store, lease.0).map_err(trapped)?.map_err(misused)?;
        values::status(status)
    }
}

fn trapped(error: wasmtime::Error) -> Dead {
    // The root cause alone: the chain above it is the component's stack, of use to nobody here.
    Dead::because(error.root_cause())
}

fn misused(misuse: Misuse) -> Dead {
    Dead(format!("the component refused a call of the driver: {misuse:?}"))
}

/// What the component imports.
struct Host {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    limits: StoreLimits,
    /// Of the step that is running.
    request: Option<Request>,
    event: Option<Event>,
}

impl clock::Host for Host {
    fn now(&mut self) -> wasmtime::Result<Sample> {
        let Now { mono: Mono(mono), wall_ns } = self.clock.now();
        Ok(Sample { mono, wall_ns })
    }
}

impl entropy::Host for Host {
    fn salt(&mut self) -> wasmtime::Result<u64> {
        Ok(self.entropy.salt()?)
    }
}

impl storage::Host for Host {
    fn submit_read(&mut self, _: u32, op: u32, deadline: u64, key: String) -> wasmtime::Result<()> {
        let (op, deadline) = (OpId(op), Mono(deadline));
        self.request = Some(Request { op, deadline, key, body: Body::Read });
        Ok(())
    }

    fn submit_transact(
        &mut self,
        _: u32,
        op: u32,
        deadline: u64,
        key: String,
        expect: Option<Vec<u8>>,
        value: Vec<u8>,
    ) -> wasmtime::Result<()> {
        let (op, deadline) = (OpId(op), Mono(deadline));
        let expect = expect.as_deref().map(values::version).transpose()?;
        self.request = Some(Request { op, deadline, key, body: Body::Write { expect, value } });
        Ok(())
    }
}

impl log::Host for Host {
    fn emit(&mut self, _: u32, event: Event) -> wasmtime::Result<()> {
        self.event = Some(event);
        Ok(())
    }
}

impl types::Host for Host {}
