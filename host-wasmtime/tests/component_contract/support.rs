//! A clock and random bits in the test's own hands.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::lease::Authority;
use leasehold_core::time::{Clocks, Drift, Mono, Now};
use leasehold_core::timing::Timing;
use leasehold_core::token::Nonce;
use leasehold_host::clock::Clock;
use leasehold_host::protocol::{Entropy, NoEntropy, Open};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const CLOCKS: Clocks = Clocks { wall: true, resolution_ns: 1 };

/// A clock that moves when it is told to.
pub(crate) struct TestClock(Mutex<Now>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        let wall_ns = Some(1_796_000_000_000 * MS);
        Arc::new(Self(Mutex::new(Now { mono: Mono(1_000 * MS), wall_ns })))
    }

    pub(crate) fn set(&self, now: Now) {
        *self.0.lock().unwrap() = now;
    }

    pub(crate) fn advance(&self, span_ns: u64) {
        let Now { mono, wall_ns } = self.now();
        self.set(Now { mono: mono.after(span_ns), wall_ns: wall_ns.map(|wall| wall + span_ns) });
    }
}

impl Clock for TestClock {
    fn now(&self) -> Now {
        *self.0.lock().unwrap()
    }

    fn clocks(&self) -> Clocks {
        CLOCKS
    }
}

/// Salt that can be had twice.
pub(crate) struct Salts(AtomicU64);

impl Salts {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seed)))
    }
}

impl Entropy for Salts {
    fn salt(&self) -> Result<u64, NoEntropy> {
        Ok(mix(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Decisions of a test that can be made twice.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    bits ^ (bits >> 32)
}

/// A lease of three seconds.
pub(crate) fn options(name: &str, holder: &str) -> Open {
    Open {
        name: name.to_owned(),
        holder: holder.to_owned(),
        instance: Nonce(0x1234),
        timing: Timing::from_ttl(3_000, 300 * MS, 20 * MS, Drift::DEFAULT),
        authority: Authority::LocalObservation,
        clocks: CLOCKS,
    }
}
