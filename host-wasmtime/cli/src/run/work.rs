//! The command's life under the lease.

use std::io::{self, ErrorKind};
use std::time::Duration;

use leasehold_core::time::{MILLISECOND_NS, Mono};
use leasehold_core::token::Token;
use leasehold_host::clock::Timer;
use leasehold_host::protocol::{Dead, Event, Status};
use leasehold_host::{Candidate, Lost, Update};

use super::Plan;
use super::front::{broken, give_up};
use super::signals::Signals;
use crate::exit::{self, Failure, say};
use crate::places::Place;
use crate::supervise::{self, Deadlines, Ended, Keeper, Launch, Report, TreeEnd};

/// From the last SIGKILL to `valid_until`: what killing takes on a busy machine.
pub(super) const KILL_BUDGET: Duration = Duration::from_millis(500);
/// The last part of it is the front's own, should the keeper be silent.
const LAST_RESORT_NS: u64 = 250 * MILLISECOND_NS;

/// Runs the command under the lease that was won, and gives the lease up when all of it is over.
/// Answers the exit code.
pub(super) async fn work(
    plan: &Plan,
    place: &Place,
    (token, status): (Token, Status),
    candidate: &mut Candidate,
    keeper: &mut Keeper,
    mut signals: Signals,
) -> Result<u8, Failure> {
    let name = &plan.options.name;
    let mut held = Held::new(token, &status);
    if supervise::now() >= held.stop_at {
        say(format!("{name}: lost before the command could start; run it again"));
        give_up(candidate, token).await;
        return Ok(exit::LOST);
    }
    let mut timer = Timer::new().map_err(broken)?;
    let launched = keeper.launch(launch(plan, place, held.token), held.deadlines());
    let mut keeper_fails = is_stuck(&launched);
    let mut exited = None;
    let ended = loop {
        if keeper_fails {
            let until = held.valid_until.max(supervise::now().after(LAST_RESORT_NS));
            break TreeEnded::ByFront(keeper.end_tree(until));
        }
        tokio::select! {
            biased;
            report = keeper.report() => match report {
                Some(Report::Started { .. }) => {}
                Some(Report::CouldNotStart { code, message }) => {
                    say(message);
                    exited = Some(Exited { code, ended: Ended::ByItself, at: supervise::now() });
                }
                Some(Report::Exited { status, ended, at }) => {
                    exited = Some(Exited { code: status.exit_code(), ended, at });
                }
                Some(Report::Reaped { ended, at }) => break TreeEnded::Reaped { ended, at },
                None => keeper_fails = true,
            },
            update = candidate.next() => {
                keeper_fails = is_stuck(&follow(name, &mut held, keeper, update));
            }
            signal = signals.next() => keeper_fails = is_stuck(&keeper.forward(signal)),
            _ = timer.sleep_until(held.over_at()) => keeper_fails = true,
        }
    };
    let now = supervise::now();
    let code = match exit_code(ended, exited, &held, now) {
        Ok(code) => code,
        Err(loss) => {
            say(format!("{name}: lost; {}, under term {}", loss.words(), token.term));
            loss.code()
        }
    };
    if ended != TreeEnded::ByFront(TreeEnd::Unconfirmed) {
        give_up(candidate, held.token).await;
    }
    Ok(code)
}

/// Whether a request shows that the keeper has failed. One that is gone does not: its last report
/// may be on its way, and its end of file follows.
fn is_stuck(sent: &io::Result<()>) -> bool {
    let gone = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::NotConnected];
    sent.as_ref().is_err_and(|error| !gone.contains(&error.kind()))
}

/// Passes on to the keeper what an update means for the command.
fn follow(
    name: &str,
    held: &mut Held,
    keeper: &mut Keeper,
    update: Result<Update, Dead>,
) -> io::Result<()> {
    match update {
        Ok(Update { event, status, trouble, .. }) => {
            match event {
                Event::Demoted { reason, .. } => {
                    held.lost = Some(Lost::Demoted(reason));
                    say(format!("{name}: lost: {}", trouble.unwrap_or_else(|| reason.to_string())));
                }
                // Without a complaint the store did not answer, or somebody changed the record.
                Event::RenewalLate { .. } => {
                    let why = trouble.map(|why| format!(": {why}")).unwrap_or_default();
                    say(format!("{name}: not renewed yet{why}"));
                }
                Event::StoreFault(fault) => say(format!("{name}: {fault}")),
                _ => {}
            }
            held.renew(&status);
        }
        Err(dead) => {
            say(format!("{name}: lost: {dead}"));
            held.lost = Some(Lost::Dead(dead));
        }
    }
    if held.is_lost_at_once() { keeper.kill() } else { keeper.extend(held.deadlines()) }
}

fn launch(plan: &Plan, place: &Place, token: Token) -> Launch {
    let mut command = plan.options.command.iter().cloned();
    let variables = [
        ("LEASEHOLD_NAME", plan.options.name.clone()),
        ("LEASEHOLD_LINEAGE", token.lineage.to_string()),
        ("LEASEHOLD_TERM", token.term.to_string()),
        ("LEASEHOLD_TOKEN", token.to_string()),
        ("LEASEHOLD_HOLDER", plan.holder.clone()),
        ("LEASEHOLD_STORE", place.absolute.clone()),
    ];
    Launch {
        program: command.next().unwrap_or_default(),
        args: command.collect(),
        env: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
    }
}

/// What became of the command of a lost lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    EndedInTime,
    KilledInTime,
    /// By the front, in time.
    KilledWithoutKeeper,
    /// A machine that was frozen, most likely.
    TooLate,
    Unconfirmed,
}

impl Loss {
    fn code(self) -> u8 {
        match self {
            Self::EndedInTime => exit::LOST,
            Self::KilledInTime | Self::KilledWithoutKeeper => exit::LOST_KILLED,
            Self::TooLate | Self::Unconfirmed => exit::LOST_UNCONFIRMED,
        }
    }

    fn words(self) -> &'static str {
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

/// The command's own code, only where it ended by itself and while the lease was held.
fn exit_code(tree: TreeEnded, exited: Option<Exited>, held: &Held, now: Mono) -> Result<u8, Loss> {
    match (tree, exited) {
        (TreeEnded::Reaped { .. }, Some(Exited { code, ended: Ended::ByItself, at }))
            if at < held.stop_at && !held.is_lost_at_once() =>
        {
            Ok(code)
        }
        (TreeEnded::ByFront(TreeEnd::Unconfirmed), _) => Err(Loss::Unconfirmed),
        (TreeEnded::Reaped { at, .. }, _) if at >= held.dead_by => Err(Loss::TooLate),
        (TreeEnded::Reaped { ended: Ended::Killed, .. }, _) => Err(Loss::KilledInTime),
        (TreeEnded::Reaped { .. }, _) => Err(Loss::EndedInTime),
        (TreeEnded::ByFront(TreeEnd::Gone), _) if now >= held.dead_by => Err(Loss::TooLate),
        (TreeEnded::ByFront(TreeEnd::Gone), _) => Err(Loss::KilledWithoutKeeper),
    }
}

/// The lease as the running command needs it.
struct Held {
    token: Token,
    /// When the command is told to stop. Never later again once the lease is being lost.
    stop_at: Mono,
    /// When it must be dead.
    valid_until: Mono,
    /// The latest such moment so far: a wall clock that jumps brings the end closer, and makes no
    /// death late.
    dead_by: Mono,
    lost: Option<Lost>,
}

impl Held {
    fn new(token: Token, status: &Status) -> Self {
        let mut held =
            Self { token, stop_at: Mono(0), valid_until: Mono(0), dead_by: Mono(0), lost: None };
        held.renew(status);
        held
    }

    fn renew(&mut self, status: &Status) {
        let (Some(stop_at), Some(valid_until)) = (status.stop_at, status.valid_until) else {
            return;
        };
        self.stop_at = if self.lost.is_some() { self.stop_at.min(stop_at) } else { stop_at };
        self.valid_until = valid_until;
        self.dead_by = self.dead_by.max(valid_until);
    }

    /// What the keeper has to know: stop when nothing may start any more, be dead before nothing
    /// may finish.
    fn deadlines(&self) -> Deadlines {
        let kill_budget_ns = u64::try_from(KILL_BUDGET.as_nanos()).unwrap_or(0);
        let kill_at = Mono(self.valid_until.0.saturating_sub(kill_budget_ns));
        Deadlines { term_at: self.stop_at, kill_at }
    }

    /// When a silent keeper has failed.
    fn over_at(&self) -> Mono {
        Mono(self.valid_until.0.saturating_sub(LAST_RESORT_NS))
    }

    fn is_lost_at_once(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| !lost.is_gentle())
    }
}

/// How the command itself ended, as the keeper saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exited {
    code: u8,
    ended: Ended,
    at: Mono,
}

/// How all that it started ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeEnded {
    /// The keeper says so, and when the last process was gone.
    Reaped { ended: Ended, at: Mono },
    /// The keeper failed, and the front did it.
    ByFront(TreeEnd),
}

#[cfg(test)]
mod tests {
    use leasehold_core::lease::State;
    use leasehold_core::observe::Reason;

    use super::*;

    const STOP_AT: Mono = Mono(100);

    fn held(lost: Option<Lost>) -> Held {
        let token = "00000000000000000000000000000001/1/0000000000000001".parse().unwrap();
        Held { token, stop_at: STOP_AT, valid_until: Mono(200), dead_by: Mono(200), lost }
    }

    fn exited(ended: Ended, at: u64) -> Option<Exited> {
        Some(Exited { code: 0, ended, at: Mono(at) })
    }

    fn reaped(ended: Ended) -> TreeEnded {
        TreeEnded::Reaped { ended, at: Mono(150) }
    }

    fn code(tree: Ended, exited: Option<Exited>) -> Result<u8, Loss> {
        exit_code(reaped(tree), exited, &held(None), Mono(500))
    }

    #[test]
    fn the_commands_own_code_counts_only_if_it_ended_by_itself_while_the_lease_was_held() {
        assert_eq!(code(Ended::ByItself, exited(Ended::ByItself, 99)), Ok(0));
        assert_eq!(code(Ended::Killed, exited(Ended::ByItself, 99)), Ok(0), "stragglers");
        assert_eq!(code(Ended::ByItself, exited(Ended::ByItself, 100)), Err(Loss::EndedInTime));
        let told_by_the_keeper = exited(Ended::AfterTerm, 99);
        assert_eq!(code(Ended::AfterTerm, told_by_the_keeper), Err(Loss::EndedInTime));
        assert_eq!(code(Ended::Killed, exited(Ended::Killed, 99)), Err(Loss::KilledInTime));
        assert_eq!(code(Ended::Killed, None), Err(Loss::KilledInTime));
    }

    #[test]
    fn a_lease_lost_at_once_is_never_a_success() {
        let held = held(Some(Lost::Demoted(Reason::RivalSeen)));
        let code = exit_code(reaped(Ended::ByItself), exited(Ended::ByItself, 1), &held, Mono(1));
        assert_eq!(code, Err(Loss::EndedInTime));
    }

    #[test]
    fn a_keeper_that_failed_is_never_a_success() {
        let code = |end, now| {
            let tree = TreeEnded::ByFront(end);
            exit_code(tree, exited(Ended::ByItself, 1), &held(None), Mono(now))
        };
        assert_eq!(code(TreeEnd::Gone, 199), Err(Loss::KilledWithoutKeeper));
        assert_eq!(code(TreeEnd::Gone, 200), Err(Loss::TooLate));
        assert_eq!(code(TreeEnd::Unconfirmed, 1), Err(Loss::Unconfirmed));
    }

    #[test]
    fn a_command_that_went_on_past_the_lease_was_not_stopped_in_time() {
        let tree = TreeEnded::Reaped { ended: Ended::ByItself, at: Mono(200) };
        let code = exit_code(tree, exited(Ended::ByItself, 200), &held(None), Mono(500));
        assert_eq!((code, Loss::TooLate.code()), (Err(Loss::TooLate), 122));
    }

    #[test]
    fn a_keeper_that_is_gone_is_heard_to_its_end() {
        assert!(!is_stuck(&Ok(())));
        assert!(!is_stuck(&Err(ErrorKind::BrokenPipe.into())));
        assert!(is_stuck(&Err(ErrorKind::TimedOut.into())));
    }

    #[test]
    fn a_renewal_that_comes_after_the_loss_moves_no_stop() {
        let mut held = held(Some(Lost::Demoted(Reason::DeadlinePassed)));
        held.renew(&Status {
            state: State::Draining,
            token: Some(held.token),
            may_start: false,
            may_finish: true,
            remaining_ns: 0,
            stop_at: Some(Mono(150)),
            valid_until: Some(Mono(300)),
        });
        assert_eq!((held.stop_at, held.valid_until), (STOP_AT, Mono(300)));
    }
}
