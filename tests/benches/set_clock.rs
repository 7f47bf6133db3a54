//! A clock that shows what it is set to.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::time::{Clocks, Mono, Now};
use leasehold_host::clock::Clock;

/// Nanoseconds.
#[derive(Default)]
pub(crate) struct SetClock(AtomicU64);

impl SetClock {
    pub(crate) fn set(&self, ns: u64) {
        self.0.store(ns, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Now {
        let mono = self.0.load(Ordering::Relaxed);
        Now { mono: Mono(mono), wall_ns: Some(mono) }
    }

    fn clocks(&self) -> Clocks {
        Clocks { wall: true, resolution_ns: 1 }
    }
}
