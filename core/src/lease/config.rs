//! What an elector is told once, checked before anything starts.

use crate::label::{Label, LabelBuf};
use crate::time::Clocks;
use crate::timing::{Misuse, Timing};
use crate::token::Nonce;

/// Whose word decides that another party's lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// This instance's own monotonic clock: the record has not changed for its ttl, stretched by
    /// the drift, since this instance first saw it.
    LocalObservation,
    /// The store's clock: the age that the store itself computed in the read reaches the ttl,
    /// stretched by the drift, plus `error_ns`. An entry without an age falls back to
    /// [`Authority::LocalObservation`].
    StoreClock {
        /// Bounds every step of that clock, and the difference between servers that may take over
        /// from one another, in nanoseconds. There is no default.
        error_ns: u64,
    },
}

/// A checked [`Timing`] with its spans computed, and what else the electors of one process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub(super) instance: Nonce,
    pub(super) holder: LabelBuf,
    pub(super) timing: Timing,
    pub(super) authority: Authority,
    pub(super) clocks: Clocks,
    pub(super) valid_ns: u64,
    pub(super) stop_ns: u64,
}

impl Config {
    /// Checks a timing. `instance` is drawn at every start of a process; `holder` says to people
    /// who that is.
    ///
    /// # Errors
    /// [`Misuse`] names the first constraint that fails and the nearest value that passes.
    pub fn new(
        instance: Nonce,
        holder: Label<'_>,
        timing: Timing,
        authority: Authority,
        clocks: Clocks,
    ) -> Result<Self, Misuse> {
        timing.check(clocks.resolution_ns)?;
        let valid_ns = timing.valid_ns();
        Ok(Self {
            instance,
            holder: holder.into(),
            timing,
            authority,
            clocks,
            valid_ns,
            stop_ns: valid_ns.saturating_sub(timing.drain_ns),
        })
    }

    /// Which start of which process this is: what decisions compare.
    #[must_use]
    pub const fn instance(&self) -> Nonce {
        self.instance
    }

    /// The label in this process's records; no decision reads it.
    #[must_use]
    pub fn holder(&self) -> Label<'_> {
        self.holder.as_label()
    }

    /// The timing that was checked.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }
}
