//! A wasmtime host of one's own: the component of this crate with a clock and a store of one's
//! own, and none of this crate's driver. Leads once, works, gives the lease back. A host in earnest
//! also limits the memory of the instance, and the time of each call by an epoch deadline.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bindings::leasehold::protocol::{clock, entropy, log, storage, types};
use types::{Done, Entry, Event, Input, Outcome, Wake};
use wasmtime::component::{Component, HasSelf, Linker};

mod bindings {
    wasmtime::component::bindgen!({ path: "wit", world: "protocol" });
}

/// The store keeps its keys in memory; a version is a count of writes.
struct Host {
    began: Instant,
    keys: BTreeMap<String, (u8, Vec<u8>)>,
    inputs: VecDeque<Input>,
}

impl clock::Host for Host {
    fn now(&mut self) -> types::Sample {
        let mono = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        types::Sample { mono, wall_ns: None }
    }
}

impl entropy::Host for Host {
    fn salt(&mut self) -> u64 {
        getrandom::u64().expect("the operating system has random bits")
    }
}

impl storage::Host for Host {
    fn submit_read(&mut self, _lease: u32, op: u32, _deadline: u64, key: String) {
        let outcome = self.keys.get(&key).map_or(Outcome::Absent, |(version, value)| {
            Outcome::Entry(Entry { value: value.clone(), version: vec![*version], age_ns: None })
        });
        self.inputs.push_back(Input::Done(Done { op, outcome }));
    }

    fn submit_transact(
        &mut self,
        _lease: u32,
        op: u32,
        _deadline: u64,
        key: String,
        expect: Option<Vec<u8>>,
        value: Vec<u8>,
    ) {
        let version = self.keys.get(&key).map(|(version, _)| *version);
        let outcome = if expect == version.map(|version| vec![version]) {
            let version = version.map_or(1, |version| version + 1);
            println!("store: {key} = {}", String::from_utf8_lossy(&value));
            self.keys.insert(key, (version, value));
            Outcome::Applied(vec![version])
        } else {
            Outcome::Conflict
        };
        self.inputs.push_back(Input::Done(Done { op, outcome }));
    }
}

impl log::Host for Host {
    fn emit(&mut self, _lease: u32, event: Event) {
        println!("event: {event:?}");
        self.inputs.extend(match event {
            // No resource keeps a fence here, so nothing is to be sealed.
            Event::Elected(token) => Some(Input::Sealed(token)),
            Event::Leading(_) => {
                println!("work:  done");
                Some(Input::Stop)
            }
            Event::Demoted(demoted) => Some(Input::Drained(demoted.token)),
            _ => None,
        });
    }
}

impl types::Host for Host {}

fn main() -> wasmtime::Result<()> {
    let engine = wasmtime::Engine::default();
    let mut linker = Linker::new(&engine);
    bindings::Protocol::add_to_linker::<_, HasSelf<_>>(&mut linker, |host: &mut Host| host)?;
    let host = Host { began: Instant::now(), keys: BTreeMap::new(), inputs: [Input::Tick].into() };
    let mut store = wasmtime::Store::new(&engine, host);
    let component = Component::new(&engine, leasehold_host::COMPONENT)?;
    let protocol = bindings::Protocol::instantiate(&mut store, &component, &linker)?;
    let elector = protocol.leasehold_protocol_elector();

    let lease = elector.call_open(&mut store, &options())??;
    while let Some(input) = store.data_mut().inputs.pop_front() {
        match elector.call_step(&mut store, lease, &input)?? {
            Wake::Now => store.data_mut().inputs.push_back(Input::Tick),
            Wake::At(at) if store.data().inputs.is_empty() => {
                let now = clock::Host::now(store.data_mut()).mono;
                std::thread::sleep(Duration::from_nanos(at.saturating_sub(now)));
                store.data_mut().inputs.push_back(Input::Tick);
            }
            Wake::At(_) | Wake::Idle => {}
        }
    }
    Ok(())
}

/// Spans for a ttl of 15 s, in nanoseconds but where the name says otherwise.
fn options() -> types::Options {
    const SECOND: u64 = 1_000_000_000;
    types::Options {
        name: "settlement".to_owned(),
        holder: "own-host".to_owned(),
        instance: getrandom::u64().expect("the operating system has random bits"),
        timing: types::Timing {
            ttl_ms: 15_000,
            renew_ns: 5 * SECOND,
            attempt_ns: SECOND,
            tolerated: 2,
            pause_ns: SECOND,
            drain_ns: 2 * SECOND,
            guard_ns: SECOND / 10,
            poll_ns: 5 * SECOND,
            retry_ns: SECOND / 4,
            seal_within_ns: 7 * SECOND,
            grace_ms: 8_000,
            sit_out_ns: 15 * SECOND,
            drift_ppm: 10_000,
        },
        authority: types::Authority::LocalObservation,
        clocks: types::Clocks { wall: false, resolution_ns: 1_000 },
    }
}
