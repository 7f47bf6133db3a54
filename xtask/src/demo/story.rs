//! What the demo itself did and saw; all else is in the databases.

use super::ledger::Job;

#[derive(Default)]
pub(crate) struct Story {
    pub(crate) takeovers: Vec<Takeover>,
    pub(crate) outages: Vec<Outage>,
    /// Commands that should have been ended, and still ran when the next holder's had begun.
    pub(crate) outlived: usize,
}

/// Something went wrong, and another term began.
pub(crate) struct Takeover {
    pub(crate) term: i64,
    pub(crate) cause: &'static str,
    /// When the old holder failed; where the store did, when it could be used again.
    pub(crate) since_ns: i64,
}

/// Nobody could write to the lease's store.
pub(crate) struct Outage {
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
}

impl Story {
    /// What made this job's contender the holder, if something had gone wrong.
    pub(crate) fn takeover(&self, job: &Job) -> Option<&Takeover> {
        self.takeovers.iter().find(|takeover| takeover.term == job.term)
    }
}

impl Outage {
    pub(crate) fn covers(&self, instant_ns: i64) -> bool {
        (self.from_ns..=self.to_ns).contains(&instant_ns)
    }
}
