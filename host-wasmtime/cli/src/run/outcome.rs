//! How the work under a lease came out, and the exit code that says so.

use leasehold_core::time::Mono;

use super::held::Held;
use crate::exit;
use crate::supervise::{Ended, TreeEnd};

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It ended while the lease was held, with the exit code to pass on.
    Ended(u8),
    /// The lease was lost or given up first.
    Lost(Loss),
}

/// What became of the command of a lost lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    EndedInTime,
    KilledInTime,
    /// By the front, in time.
    KilledWithoutKeeper,
    /// A machine that was frozen, most likely.
    TooLate,
    Unconfirmed,
}

impl Loss {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::EndedInTime => exit::LOST,
            Self::KilledInTime | Self::KilledWithoutKeeper => exit::LOST_KILLED,
            Self::TooLate | Self::Unconfirmed => exit::LOST_UNCONFIRMED,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::EndedInTime => "the command ended in time",
            Self::KilledInTime => "the command was killed",
            Self::KilledWithoutKeeper => "the keeper was gone or silent; the command was killed",
            Self::TooLate => {
                "the command went on after the lease was over: this machine was frozen"
            }
            Self::Unconfirmed => {
                "the keeper was gone or silent, and it is not confirmed that the command is dead"
            }
        }
    }
}

/// Why the front had the command ended while the lease was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It ran for longer than it may.
    MaxRun,
    /// It was interrupted a second time.
    Interrupted,
}

/// How the command itself ended, as the keeper saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exited {
    pub(super) code: u8,
    pub(super) ended: Ended,
    pub(super) at: Mono,
}

/// How all that it started ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeEnded {
    /// The keeper says so, and when the last process was gone.
    Reaped { ended: Ended, at: Mono },
    /// The keeper failed, and the front did it.
    ByFront(TreeEnd),
}

impl Outcome {
    /// The command's own code counts only where it ended while the lease was held, and by itself or
    /// because the front had it ended.
    pub(super) fn judge(
        tree: TreeEnded,
        exited: Option<Exited>,
        cut: Option<Cut>,
        held: &Held,
        now: Mono,
    ) -> Self {
        let while_held = |exited: Exited| exited.at < held.stop_at && !held.is_lost_at_once();
        Self::Lost(match (tree, exited, cut) {
            // Also where the command itself was quicker than what it started.
            (TreeEnded::Reaped { at, .. }, _, _) if at >= held.dead_by => Loss::TooLate,
            (TreeEnded::Reaped { .. }, Some(exited), Some(Cut::MaxRun)) if while_held(exited) => {
                return Self::Ended(exit::MAX_RUN);
            }
            (TreeEnded::Reaped { .. }, Some(exited), _)
                if while_held(exited) && (cut.is_some() || exited.ended == Ended::ByItself) =>
            {
                return Self::Ended(exited.code);
            }
            (TreeEnded::ByFront(TreeEnd::Unconfirmed), _, _) => Loss::Unconfirmed,
            (TreeEnded::Reaped { ended: Ended::Killed, .. }, _, _) => Loss::KilledInTime,
            (TreeEnded::Reaped { .. }, _, _) => Loss::EndedInTime,
            (TreeEnded::ByFront(TreeEnd::Gone), _, _) if now >= held.dead_by => Loss::TooLate,
            (TreeEnded::ByFront(TreeEnd::Gone), _, _) => Loss::KilledWithoutKeeper,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::lease::State;
    use leasehold_core::observe::Reason;
    use leasehold_host::Lost;
    use leasehold_host::protocol::Status;

    use super::*;

    const STOP_AT: u64 = 100;

    fn held(lost: Option<Lost>) -> Held {
        let status = Status {
            state: State::Leading,
            token: None,
            may_start: true,
            may_finish: true,
            remaining_ns: 1,
            stop_at: Some(Mono(STOP_AT)),
            valid_until: Some(Mono(200)),
        };
        let mut held = Held::new(&status, Duration::ZERO);
        held.lost = lost;
        held
    }

    fn exited(ended: Ended, at: u64) -> Option<Exited> {
        Some(Exited { code: 7, ended, at: Mono(at) })
    }

    fn reaped(ended: Ended) -> TreeEnded {
        TreeEnded::Reaped { ended, at: Mono(150) }
    }

    fn judge(tree: Ended, exited: Option<Exited>) -> Outcome {
        Outcome::judge(reaped(tree), exited, None, &held(None), Mono(500))
    }

    #[test]
    fn the_commands_own_code_counts_only_if_it_ended_by_itself_while_the_lease_was_held() {
        let own = Outcome::Ended(7);
        assert_eq!(judge(Ended::ByItself, exited(Ended::ByItself, 99)), own);
        assert_eq!(judge(Ended::Killed, exited(Ended::ByItself, 99)), own, "stragglers");
        let in_time = Outcome::Lost(Loss::EndedInTime);
        assert_eq!(judge(Ended::ByItself, exited(Ended::ByItself, 100)), in_time);
        let told_by_the_keeper = exited(Ended::AfterTerm, 99);
        assert_eq!(judge(Ended::AfterTerm, told_by_the_keeper), in_time);
        let killed = Outcome::Lost(Loss::KilledInTime);
        assert_eq!(judge(Ended::Killed, exited(Ended::Killed, 99)), killed);
        assert_eq!(judge(Ended::Killed, None), killed);
    }

    #[test]
    fn a_command_that_the_front_had_ended_is_no_loss_while_the_lease_is_held() {
        let judge = |cut, at| {
            let exited = exited(Ended::Killed, at);
            Outcome::judge(reaped(Ended::Killed), exited, Some(cut), &held(None), Mono(500))
        };
        assert_eq!(judge(Cut::MaxRun, 99), Outcome::Ended(exit::MAX_RUN));
        assert_eq!(judge(Cut::Interrupted, 99), Outcome::Ended(7));
        for cut in [Cut::MaxRun, Cut::Interrupted] {
            assert_eq!(judge(cut, 100), Outcome::Lost(Loss::KilledInTime));
        }
    }

    #[test]
    fn a_lease_lost_at_once_is_never_a_success() {
        let held = held(Some(Lost::Demoted(Reason::RivalSeen)));
        for cut in [None, Some(Cut::MaxRun), Some(Cut::Interrupted)] {
            let exited = exited(Ended::ByItself, 1);
            let outcome = Outcome::judge(reaped(Ended::ByItself), exited, cut, &held, Mono(1));
            assert_eq!(outcome, Outcome::Lost(Loss::EndedInTime));
        }
    }

    #[test]
    fn a_keeper_that_failed_is_never_a_success() {
        let judge = |end, now| {
            let tree = TreeEnded::ByFront(end);
            Outcome::judge(tree, exited(Ended::ByItself, 1), None, &held(None), Mono(now))
        };
        assert_eq!(judge(TreeEnd::Gone, 199), Outcome::Lost(Loss::KilledWithoutKeeper));
        assert_eq!(judge(TreeEnd::Gone, 200), Outcome::Lost(Loss::TooLate));
        assert_eq!(judge(TreeEnd::Unconfirmed, 1), Outcome::Lost(Loss::Unconfirmed));
    }

    #[test]
    fn a_command_that_went_on_past_the_lease_was_not_stopped_in_time() {
        let tree = TreeEnded::Reaped { ended: Ended::Killed, at: Mono(200) };
        for exited_at in [200, 99] {
            let exited = exited(Ended::ByItself, exited_at);
            let outcome = Outcome::judge(tree, exited, None, &held(None), Mono(500));
            assert_eq!((outcome, Loss::TooLate.code()), (Outcome::Lost(Loss::TooLate), 122));
        }
    }
}
