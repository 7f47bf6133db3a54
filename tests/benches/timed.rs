//! Nanoseconds of a step, natively and through the component, beside a call that does nothing.
//!
//! Only the ratios mean something, and only roughly: the two are measured in turn, on whatever
//! machine this is.

mod set_clock;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use leasehold_core::lease::Authority;
use leasehold_core::store::Version;
use leasehold_core::token::Nonce;
use leasehold_host::clock::Clock;
use leasehold_host::protocol::{
    Component, Engine, Entropy, Event, Input, LeaseId, NoEntropy, Open, Outcome, Protocol, Request,
    Step,
};
use leasehold_tests::figure;
use leasehold_tests::holder::{self, Holder};
use wasmtime::Store;
use wasmtime::component::{Component as AnyComponent, Linker, TypedFunc};

use set_clock::SetClock;

/// A renewal is a tick and the store's answer.
const STEPS_PER_RENEWAL: u64 = 2;

fn main() {
    let config = holder::config();
    let mut holder = Holder::leading(&config);
    print("step.native", 5_000, || _ = black_box(holder.renew()), native_call());
    let mut holder = Guest::leading();
    print("step.component", 500, || holder.renew(), component_call());
}

/// The fastest of many rounds of each, taken in turn: what else the machine does only adds.
fn print(name: &str, times: u64, mut renew: impl FnMut(), mut call: impl FnMut()) {
    const ROUNDS: u32 = 300;
    let (mut ours, mut beside) = (u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        ours = ours.min(picoseconds(times, &mut renew) / STEPS_PER_RENEWAL);
        beside = beside.min(picoseconds(times, &mut call));
    }
    figure::print(name, "ps", ours, Some(beside));
}

/// What one of so many times takes.
fn picoseconds(times: u64, mut work: impl FnMut()) -> u64 {
    let start = Instant::now();
    (0..times).for_each(|_| work());
    let elapsed = start.elapsed().as_nanos() * 1_000 / u128::from(times);
    u64::try_from(elapsed).expect("less than days")
}

/// A call that the compiler cannot see through.
fn native_call() -> impl FnMut() {
    fn same(number: u64) -> u64 {
        black_box(number)
    }
    let call: fn(u64) -> u64 = black_box(same);
    move || _ = black_box(call(black_box(7)))
}

/// A component of one function that does nothing, in an engine as the host configures it.
fn component_call() -> impl FnMut() {
    const NOTHING: [&[u8]; 7] = [
        // (component
        &[0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0],
        // (core module (func (export "n")))
        &[
            1, 0x1f, 0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1,
            0x6e, 0, 0, 0x0a, 4, 1, 2, 0, 0x0b,
        ],
        // (core instance (instantiate 0))
        &[2, 4, 1, 0, 0, 0],
        // (alias core export 0 "n" (core func))
        &[6, 7, 1, 0, 0, 1, 0, 1, 0x6e],
        // (type (func))
        &[7, 5, 1, 0x40, 0, 1, 0],
        // (func (type 0) (canon lift (core func 0)))
        &[8, 6, 1, 0, 0, 0, 0, 0],
        // (export "n" (func 0)))
        &[0x0b, 7, 1, 0, 1, 0x6e, 1, 0, 0],
    ];
    let mut config = wasmtime::Config::new();
    config.concurrency_support(false).epoch_interruption(true);
    let engine = wasmtime::Engine::new(&config).unwrap();
    let component = AnyComponent::new(&engine, NOTHING.concat()).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
    let nothing: TypedFunc<(), ()> = instance.get_typed_func(&mut store, "n").unwrap();
    move || {
        store.set_epoch_deadline(10);
        nothing.call(&mut store, ()).unwrap();
    }
}

/// A holder inside the component, through the host that people get.
struct Guest {
    protocol: Component,
    lease: LeaseId,
    clock: Arc<SetClock>,
    now_ns: u64,
    renew_ns: u64,
}

impl Guest {
    fn leading() -> Self {
        let clock = Arc::new(SetClock::default());
        let engine = Engine::new(None).unwrap();
        let mut protocol = Component::new(&engine, clock.clone(), Arc::new(FixedSalt)).unwrap();
        let config = holder::config();
        let lease = protocol
            .open(&Open {
                name: "settlement".to_owned(),
                holder: holder::LABEL.to_owned(),
                instance: Nonce(1),
                timing: *config.timing(),
                authority: Authority::LocalObservation,
                clocks: clock.clocks(),
            })
            .unwrap();
        let mut guest =
            Self { protocol, lease, clock, now_ns: 0, renew_ns: config.timing().renew_ns };
        let step = guest.step(Input::Tick);
        let step = guest.done(step, Outcome::Absent);
        let step = guest.applied(step);
        let Some(Event::Elected { token }) = step.event else { panic!("no election: {step:?}") };
        let step = guest.step(Input::Sealed(token));
        let Some(Event::Leading { .. }) = step.event else { panic!("no lead: {step:?}") };
        guest
    }

    fn renew(&mut self) {
        self.now_ns += self.renew_ns;
        self.clock.set(self.now_ns);
        let step = self.step(Input::Tick);
        let step = self.applied(step);
        let Some(Event::Renewed { .. }) = step.event else { panic!("no renewal: {step:?}") };
    }

    fn applied(&mut self, asked: Step) -> Step {
        self.done(asked, Outcome::Applied(Version::new(&[1]).unwrap()))
    }

    fn done(&mut self, asked: Step, outcome: Outcome) -> Step {
        let Some(Request { op, .. }) = asked.request else { panic!("no request: {asked:?}") };
        self.step(Input::Done { op, outcome })
    }

    fn step(&mut self, input: Input) -> Step {
        self.protocol.step(self.lease, input).unwrap()
    }
}

struct FixedSalt;

impl Entropy for FixedSalt {
    fn salt(&self) -> Result<u64, NoEntropy> {
        Ok(7)
    }
}
