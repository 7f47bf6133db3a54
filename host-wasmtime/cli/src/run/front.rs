//! The front's two halves: waiting for the lease, and the command's life under it.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::fence::SealVerdict;
use leasehold_core::observe::StoreFault;
use leasehold_core::time::{MILLISECOND_NS, Mono};
use leasehold_core::token::Token;
use leasehold_host::clock::Timer;
use leasehold_host::fence::{FenceError, Resource};
use leasehold_host::leases::Options;
use leasehold_host::protocol::{Event, Misuse, Owner, Status};
use leasehold_host::{Candidate, Engine, Error, Leases, Lost, Update};
use rustix::process::Signal;

use super::Plan;
use super::signals::Signals;
use crate::exit::{self, Failure, say};
use crate::fence::refusal;
use crate::places::{self, Place};
use crate::supervise::{self, Deadlines, Ended, Keeper, Launch, Report, TreeEnd};

/// From the last SIGKILL to `valid_until`: what killing takes on a busy machine.
const KILL_BUDGET: Duration = Duration::from_millis(500);
/// The last part of it is the front's own, should the keeper be silent.
const LAST_RESORT_NS: u64 = 250 * MILLISECOND_NS;
/// How long an end that nobody waits for may take.
const WITHDRAW: Duration = Duration::from_secs(2);

pub(super) fn run(plan: Plan) -> Result<ExitCode, Failure> {
    // Before anything here makes a thread: the keeper lives as long as the thread that starts it.
    let keeper = Keeper::start().map_err(|error| broken(format!("the keeper cannot be started: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let code = runtime.block_on(front(plan, keeper));
    // A store that hangs must not keep the exit waiting.
    runtime.shutdown_background();
    code
}

async fn front(plan: Plan, keeper: Keeper) -> Result<ExitCode, Failure> {
    let place = places::open(plan.options.store.as_deref())?;
    let engine = Engine::new(places::code_cache().as_deref()).map_err(broken)?;
    let options = Options {
        holder: plan.holder.clone(),
        ttl: plan.options.ttl,
        drain: plan.options.grace.saturating_add(KILL_BUDGET),
        unsafe_eventual: false,
    };
    let leases = Leases::component(&engine, place.store.clone(), options).map_err(refused)?;
    let mut signals = Signals::listen().map_err(broken)?;
    let mut candidate = leases.candidate(&plan.options.name).await.map_err(refused)?;
    let won = wait(&plan, &mut candidate, &mut signals).await;
    match won {
        Ok((token, status)) => {
            say(format!("{}: acquired, term {} (store {})", plan.options.name, token.term, place.url));
            let held = Held { token, status, lost: None };
            Ok(work(&plan, &place, candidate, keeper, signals, held).await?.into())
        }
        Err(end) => {
            withdraw(&mut candidate).await;
            match end {
                NotWon::Signal(signal) => Ok(supervise::Status::Signal(signal.as_raw()).exit_code().into()),
                NotWon::Failure(failure) => Err(failure),
            }
        }
    }
}

/// Why the lease was not won.
enum NotWon {
    Signal(Signal),
    Failure(Failure),
}

impl From<Failure> for NotWon {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Until the lease is won and sealed.
async fn wait(plan: &Plan, candidate: &mut Candidate, signals: &mut Signals) -> Result<(Token, Status), NotWon> {
    let name = &plan.options.name;
    let mut timer = Timer::new().map_err(broken)?;
    let over = plan.options.wait.map(|wait| {
        supervise::now().after(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    });
    let mut trouble = None;
    let mut sealing: Result<(), Failure> = Ok(());
    loop {
        let update = tokio::select! {
            update = candidate.next() => update.map_err(broken)?,
            signal = signals.next() => return Err(NotWon::Signal(signal)),
            _ = timer.sleep_until(over.unwrap_or(Mono(u64::MAX))), if over.is_some() => {
                return Err(match trouble {
                    Some(why) => Failure::new(exit::UNREACHABLE, format!("{name}: the store does not answer: {why}")),
                    None => Failure::new(exit::WAIT_OVER, format!("{name}: not obtained within --wait")),
                }.into());
            }
        };
        match update.event {
            Event::Standby { owner: Owner { holder, token, .. }, alive } => {
                let held = format!("{name}: held by {holder}, term {}", token.term);
                if alive && plan.options.no_wait {
                    return Err(Failure::new(exit::NOT_OBTAINED, held).into());
                }
                say(format!("{held}; waiting"));
            }
            Event::Elected { token } => match seal(&plan.resources, token).await {
                Ok(None) => candidate.sealed(token),
                Ok(Some(floor)) => candidate.seal_refused(token, Some(floor)),
                Err(failure) => {
                    sealing = Err(failure);
                    candidate.seal_refused(token, None);
                }
            },
            Event::Leading { token, .. } => return Ok((token, update.status)),
            Event::Demoted { token, reason } => {
                if sealing.is_ok() {
                    say(format!("{name}: given up before it began: {reason}"));
                }
                candidate.drained(token);
            }
            Event::Ended { .. } => std::mem::replace(&mut sealing, Ok(()))?,
            Event::StoreDown => {
                let why = update.trouble.unwrap_or_else(|| "no answer in time".to_owned());
                if plan.options.no_wait {
                    return Err(Failure::new(exit::UNREACHABLE, format!("{name}: the store does not answer: {why}")).into());
                }
                say(format!("{name}: the store does not answer: {why}; waiting"));
                trouble = Some(why);
            }
            Event::StoreUp => {
                say(format!("{name}: the store answers again"));
                trouble = None;
            }
            Event::StoreFault(fault @ StoreFault::WentBack { .. }) => say(format!("{name}: {fault}")),
            Event::StoreFault(fault) => {
                let why = update.trouble.unwrap_or_else(|| fault.to_string());
                return Err(Failure::configuration(format!("{name}: {why}")).into());
            }
            Event::Renewed { .. } | Event::RenewalLate { .. } | Event::Stopped => {}
        }
    }
}

/// Seals every resource, in order. The token stands in the record that was just won, which proves
/// it at any distance from a floor. Answers the floor of a fence that knows a later holder.
async fn seal(resources: &[Resource], token: Token) -> Result<Option<u64>, Failure> {
    for resource in resources {
        let sealing = resource.clone();
        let verdict = tokio::task::spawn_blocking(move || sealing.seal(token, true)).await.map_err(broken)?;
        match verdict {
            Ok(SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. }) => {}
            Ok(verdict @ (SealVerdict::Fenced { floor } | SealVerdict::Collision { floor })) => {
                say(refusal(resource, verdict));
                return Ok(Some(floor));
            }
            Ok(verdict) => return Err(Failure::configuration(refusal(resource, verdict))),
            Err(error @ FenceError::Misuse(_)) => return Err(Failure::configuration(error)),
            Err(error @ FenceError::Database(_)) => return Err(Failure::new(exit::UNREACHABLE, error)),
        }
    }
    Ok(None)
}

/// The lease as the running command needs it.
struct Held {
    token: Token,
    status: Status,
    lost: Option<Lost>,
}

impl Held {
    /// What the keeper has to know, from the last update: stop when nothing may start any more,
    /// be dead before nothing may finish.
    fn deadlines(&self) -> Deadlines {
        let kill_budget_ns = u64::try_from(KILL_BUDGET.as_nanos()).unwrap_or(0);
        Deadlines {
            term_at: self.status.stop_at.unwrap_or(Mono(0)),
            kill_at: Mono(self.valid_until().0.saturating_sub(kill_budget_ns)),
        }
    }

    fn valid_until(&self) -> Mono {
        self.status.valid_until.unwrap_or(Mono(0))
    }

    /// When a silent keeper has failed.
    fn over_at(&self) -> Mono {
        Mono(self.valid_until().0.saturating_sub(LAST_RESORT_NS))
    }

    fn is_lost_at_once(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| !lost.is_gentle())
    }
}

/// How the command and all it started ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeEnded {
    /// The keeper says so: by which means, when the last process was reaped, and the command's code.
    Reaped { ended: Ended, at: Mono, code: u8 },
    /// The keeper failed, and the front did it.
    ByFront(TreeEnd),
}

async fn work(
    plan: &Plan,
    place: &Place,
    mut candidate: Candidate,
    mut keeper: Keeper,
    mut signals: Signals,
    mut held: Held,
) -> Result<u8, Failure> {
    let name = &plan.options.name;
    let mut timer = Timer::new().map_err(broken)?;
    let launched = keeper.launch(launch(plan, place, held.token), held.deadlines());
    let mut keeper_fails = launched.is_err();
    let mut not_started = None;
    let ended = loop {
        if keeper_fails {
            let until = held.valid_until().max(supervise::now().after(LAST_RESORT_NS));
            break TreeEnded::ByFront(keeper.end_tree(until));
        }
        tokio::select! {
            biased;
            report = keeper.report() => match report {
                Some(Report::Started { .. } | Report::Exited { .. }) => {}
                Some(Report::CouldNotStart { code, message }) => {
                    say(message);
                    not_started = Some(code);
                }
                Some(Report::Reaped { ended, at, status }) => {
                    let code = not_started.or(status.map(supervise::Status::exit_code));
                    break TreeEnded::Reaped { ended, at, code: code.unwrap_or(exit::LOST_KILLED) };
                }
                None => keeper_fails = true,
            },
            update = candidate.next() => {
                keeper_fails = follow(name, &mut held, &mut keeper, update).is_err();
            }
            signal = signals.next() => keeper_fails = keeper.forward(signal).is_err(),
            _ = timer.sleep_until(held.over_at()) => keeper_fails = true,
        }
    };
    let code = exit_code(ended, held.is_lost_at_once(), held.deadlines().term_at);
    tell(name, ended, code, &held);
    if ended != TreeEnded::ByFront(TreeEnd::Unconfirmed) {
        give_up(&mut candidate, held.token).await;
    }
    Ok(code)
}

/// Passes on to the keeper what an update means for the command.
fn follow(
    name: &str,
    held: &mut Held,
    keeper: &mut Keeper,
    update: Result<Update, leasehold_host::protocol::Dead>,
) -> std::io::Result<()> {
    match update {
        Ok(Update { event, status, trouble, .. }) => {
            if status.valid_until.is_some() {
                held.status = status;
            }
            match event {
                Event::Demoted { reason, .. } => {
                    held.lost = Some(Lost::Demoted(reason));
                    say(format!("{name}: lost: {}", trouble.unwrap_or_else(|| reason.to_string())));
                }
                // Without a complaint of the store: it did not answer, or somebody changed the record.
                Event::RenewalLate { .. } => {
                    let why = trouble.map(|why| format!(": {why}")).unwrap_or_default();
                    say(format!("{name}: not renewed yet{why}"));
                }
                Event::StoreFault(fault) => say(format!("{name}: {}", trouble.unwrap_or_else(|| fault.to_string()))),
                _ => {}
            }
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
        ("LEASEHOLD_STORE", place.url.clone()),
    ];
    Launch {
        program: command.next().unwrap_or_default(),
        args: command.collect(),
        env: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
    }
}

/// The command's own code only where all of it had ended while the lease was held.
fn exit_code(ended: TreeEnded, lost_at_once: bool, term_at: Mono) -> u8 {
    match ended {
        TreeEnded::Reaped { at, code, .. } if at < term_at && !lost_at_once => code,
        TreeEnded::Reaped { ended: Ended::Killed, .. } | TreeEnded::ByFront(TreeEnd::Gone) => exit::LOST_KILLED,
        TreeEnded::Reaped { .. } => exit::LOST,
        TreeEnded::ByFront(TreeEnd::Unconfirmed) => exit::LOST_UNCONFIRMED,
    }
}

fn tell(name: &str, ended: TreeEnded, code: u8, held: &Held) {
    match (ended, code) {
        (TreeEnded::ByFront(TreeEnd::Gone), _) => say(format!("{name}: the keeper failed; the command was killed")),
        (_, exit::LOST_UNCONFIRMED) => {
            say(format!("{name}: the keeper failed, and it could not be confirmed that the command is dead"));
        }
        (_, exit::LOST) => say(format!("{name}: the command ended in time, under term {}", held.token.term)),
        (_, exit::LOST_KILLED) => say(format!("{name}: the command was killed, under term {}", held.token.term)),
        _ => {}
    }
}

/// The work is over: releases what can be released, and waits for it no longer than it matters.
async fn give_up(candidate: &mut Candidate, token: Token) {
    candidate.stop();
    candidate.drained(token);
    ended(candidate).await;
}

/// Nothing is held, but a campaign may be on its way.
async fn withdraw(candidate: &mut Candidate) {
    candidate.stop();
    ended(candidate).await;
}

async fn ended(candidate: &mut Candidate) {
    let _ = tokio::time::timeout(WITHDRAW, async {
        while let Ok(update) = candidate.next().await {
            match update.event {
                Event::Demoted { token, .. } => candidate.drained(token),
                Event::Stopped => return,
                _ => {}
            }
        }
    })
    .await;
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::UNREACHABLE, error)
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Misuse(Misuse::Timing(misuse)) => {
            Failure::configuration(format!("--ttl and --grace: {misuse} (the drain is --grace and {} ms for the kill)", KILL_BUDGET.as_millis()))
        }
        Error::Misuse(_) | Error::NotLinearizable => Failure::configuration(error),
        Error::Host(_) => broken(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM_AT: Mono = Mono(100);

    fn reaped(ended: Ended, at: u64) -> TreeEnded {
        TreeEnded::Reaped { ended, at: Mono(at), code: 0 }
    }

    #[test]
    fn the_commands_own_code_counts_only_while_the_lease_was_held() {
        assert_eq!(exit_code(reaped(Ended::ByItself, 99), false, TERM_AT), 0);
        assert_eq!(exit_code(reaped(Ended::Killed, 99), false, TERM_AT), 0, "stragglers do not matter");
        assert_eq!(exit_code(reaped(Ended::ByItself, 100), false, TERM_AT), 120);
        assert_eq!(exit_code(reaped(Ended::AfterTerm, 100), false, TERM_AT), 120);
        assert_eq!(exit_code(reaped(Ended::Killed, 100), false, TERM_AT), 121);
    }

    #[test]
    fn a_lease_lost_at_once_is_never_a_success() {
        assert_eq!(exit_code(reaped(Ended::ByItself, 1), true, TERM_AT), 120);
        assert_eq!(exit_code(reaped(Ended::Killed, 1), true, TERM_AT), 121);
    }

    #[test]
    fn a_keeper_that_failed_is_never_a_success() {
        assert_eq!(exit_code(TreeEnded::ByFront(TreeEnd::Gone), false, TERM_AT), 121);
        assert_eq!(exit_code(TreeEnded::ByFront(TreeEnd::Unconfirmed), false, TERM_AT), 122);
    }
}
