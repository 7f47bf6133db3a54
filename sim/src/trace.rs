//! A hash of everything that happened, to compare runs.

use leasehold_core::lease::Step;
use leasehold_core::wire;

use crate::random::mix;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace(u64);

impl Trace {
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    /// The whole answer of a machine, by its bytes.
    pub(crate) fn step(&mut self, step: &Step<'_>) {
        let mut buffer = [0; STEP_LEN];
        let bytes = wire::encode_step(step, &mut buffer).unwrap_or_default();
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.number(u64::from_le_bytes(word));
        }
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

/// More than a step takes that holds no record: its texts are at most two labels.
const STEP_LEN: usize = 640;
