//! The lease as the running command needs it: by when it is told to stop, and when it must be dead.

use std::time::Duration;

use leasehold_core::observe::Reason;
use leasehold_core::time::{MILLISECOND_NS, Mono};
use leasehold_host::Lost;
use leasehold_host::protocol::Status;

use super::KILL_BUDGET;
use crate::supervise::Deadlines;

/// The last part of the kill budget is the front's own, should the keeper be silent.
pub(super) const LAST_RESORT_NS: u64 = 250 * MILLISECOND_NS;

pub(super) struct Held {
    /// When the command is told to stop. Never later again once the lease is being lost.
    pub(super) stop_at: Mono,
    /// When it must be dead.
    pub(super) valid_until: Mono,
    /// The latest such moment so far: a wall clock that jumps brings the end closer, and makes no
    /// death late.
    pub(super) dead_by: Mono,
    /// From `stop_at` to the death of the command, where the lease is given up on request: it
    /// is renewed meanwhile, and others wait for it.
    drain_ns: u64,
    /// By when the command is ended.
    end_by: Mono,
    /// When that came closer by much: the keeper needs a moment to hear of it.
    hastened_at: Mono,
    /// By when the keeper is done with a command that we had it end, though the lease holds.
    cut_by: Mono,
    pub(super) lost: Option<Lost>,
}

impl Held {
    pub(super) fn new(status: &Status, grace: Duration) -> Self {
        let drain = grace.saturating_add(KILL_BUDGET);
        let mut held = Self {
            stop_at: Mono(0),
            valid_until: Mono(0),
            dead_by: Mono(0),
            drain_ns: u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX),
            end_by: Mono(0),
            hastened_at: Mono(0),
            cut_by: Mono(u64::MAX),
            lost: None,
        };
        held.renew(status, Mono(0));
        held
    }

    /// Takes note of what an update says, and of `lost`, which was set before.
    pub(super) fn renew(&mut self, status: &Status, now: Mono) {
        let (Some(stop_at), Some(valid_until)) = (status.stop_at, status.valid_until) else {
            return;
        };
        self.stop_at = if self.lost.is_some() { self.stop_at.min(stop_at) } else { stop_at };
        self.valid_until = valid_until;
        self.dead_by = self.dead_by.max(valid_until);
        let end_by = match self.lost {
            Some(_) => self.valid_until.min(self.stop_at.after(self.drain_ns)),
            None => self.valid_until,
        };
        if end_by.after(LAST_RESORT_NS) < self.end_by {
            self.hastened_at = now;
        }
        self.end_by = end_by;
    }

    /// What the keeper has to know: stop when nothing may start any more, be dead before nothing
    /// may finish.
    pub(super) fn deadlines(&self) -> Deadlines {
        let kill_budget_ns = u64::try_from(KILL_BUDGET.as_nanos()).unwrap_or(0);
        let kill_at = Mono(self.end_by.0.saturating_sub(kill_budget_ns));
        Deadlines { term_at: self.stop_at, kill_at }
    }

    /// When a silent keeper has failed.
    pub(super) fn over_at(&self) -> Mono {
        let regular = Mono(self.end_by.0.saturating_sub(LAST_RESORT_NS));
        regular.max(self.hastened_at.after(LAST_RESORT_NS)).min(self.cut_by)
    }

    /// The keeper was told to end the command, in order or at once.
    pub(super) fn cut(&mut self, at_once: bool, now: Mono) {
        let needs_ns = if at_once { LAST_RESORT_NS } else { self.drain_ns };
        self.cut_by = self.cut_by.min(now.after(needs_ns));
    }

    pub(super) fn is_lost_at_once(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| !lost.is_gentle())
    }

    /// Whether the record asked for a hand-off, and nothing worse came.
    pub(super) fn is_asked_for(&self) -> bool {
        self.lost == Some(Lost::Demoted(Reason::Asked))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::lease::State;

    use super::*;

    fn status(state: State, stop_at: u64, valid_until: u64) -> Status {
        Status {
            state,
            token: None,
            may_start: false,
            may_finish: true,
            remaining_ns: 0,
            stop_at: Some(Mono(stop_at)),
            valid_until: Some(Mono(valid_until)),
        }
    }

    fn held() -> Held {
        Held::new(&status(State::Leading, 100, 200), Duration::ZERO)
    }

    #[test]
    fn a_renewal_moves_both_ends_and_one_that_comes_after_the_loss_moves_no_stop() {
        let mut held = held();
        held.renew(&status(State::Leading, 150, 300), Mono(90));
        assert_eq!((held.stop_at, held.valid_until), (Mono(150), Mono(300)));
        held.lost = Some(Lost::Demoted(Reason::DeadlinePassed));
        held.renew(&status(State::Draining, 250, 400), Mono(90));
        assert_eq!((held.stop_at, held.valid_until), (Mono(150), Mono(400)));
    }

    #[test]
    fn asked_to_hand_over_it_ends_after_the_grace_however_long_the_lease_is_renewed() {
        let second = 1_000_000_000;
        let mut held =
            Held::new(&status(State::Leading, 9 * second, 20 * second), Duration::from_secs(2));
        held.lost = Some(Lost::Demoted(Reason::Asked));
        held.renew(&status(State::Draining, 5 * second, 30 * second), Mono(5 * second));
        let Deadlines { term_at, kill_at } = held.deadlines();
        assert_eq!((term_at, kill_at), (Mono(5 * second), Mono(7 * second)));
        assert!(held.over_at() > kill_at);
    }

    #[test]
    fn a_keeper_whose_end_comes_closer_gets_time_to_hear_of_it() {
        let second = 1_000_000_000;
        let mut held = Held::new(&status(State::Leading, 9 * second, 10 * second), Duration::ZERO);
        assert_eq!(held.over_at(), Mono(10 * second - LAST_RESORT_NS));
        let late = Mono(10 * second - 1);
        held.renew(&status(State::Leading, 9 * second, 10 * second - 1), late);
        assert_eq!(held.over_at(), Mono(10 * second - 1 - LAST_RESORT_NS), "clocks jitter");
        let jumped = Mono(5 * second);
        held.lost = Some(Lost::Demoted(Reason::DeadlinePassed));
        held.renew(&status(State::Draining, jumped.0, jumped.0), jumped);
        assert_eq!(held.over_at(), jumped.after(LAST_RESORT_NS));
    }

    #[test]
    fn a_keeper_that_does_not_do_what_it_was_told_is_not_waited_for() {
        let second = 1_000_000_000;
        let status = status(State::Leading, 900 * second, 999 * second);
        let mut held = Held::new(&status, Duration::from_secs(3));
        held.cut(false, Mono(10 * second));
        assert_eq!(held.over_at(), Mono(13 * second + 500_000_000));
        held.cut(true, Mono(11 * second));
        assert_eq!(held.over_at(), Mono(11 * second).after(LAST_RESORT_NS));
    }
}
