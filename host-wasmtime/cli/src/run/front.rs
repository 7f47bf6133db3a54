//! The front: makes what waiting and working need, and ends the candidacy in order.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::token::Token;
use leasehold_host::leases::Options;
use leasehold_host::protocol::{Event, Misuse};
use leasehold_host::{Candidate, Engine, Error, Leases};
use rustix::process::{Resource, getrlimit};

use super::Plan;
use super::signals::Signals;
use super::wait::{NotWon, wait};
use super::work::{KILL_BUDGET, work};
use crate::exit::{self, Failure, say};
use crate::places;
use crate::supervise::{self, Keeper};

/// Open files that `run` gets along with.
const DESCRIPTORS: u64 = 64;
/// How long an end that nobody waits for may take.
const WITHDRAW: Duration = Duration::from_secs(2);

pub(super) fn run(plan: Plan) -> Result<ExitCode, Failure> {
    enough_descriptors()?;
    // Before anything here makes a thread: the keeper lives as long as the thread that starts it.
    let mut keeper = Keeper::start()
        .map_err(|error| broken(format!("the keeper cannot be started: {error}")))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let code = runtime.block_on(front(plan, &mut keeper));
    // A store that hangs must not keep the exit waiting.
    runtime.shutdown_background();
    keeper.close();
    code
}

/// With fewer, some part would fail in the middle, and not all of them in words.
fn enough_descriptors() -> Result<(), Failure> {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < DESCRIPTORS => Err(Failure::configuration(format!(
            "this process may open only {limit} files: allow {DESCRIPTORS} (ulimit -n {DESCRIPTORS})"
        ))),
        _ => Ok(()),
    }
}

async fn front(plan: Plan, keeper: &mut Keeper) -> Result<ExitCode, Failure> {
    let place = places::open(plan.options.store.named())?;
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
            say(format!(
                "{}: acquired, term {} (store {})",
                plan.options.name, token.term, place.url
            ));
            let code =
                work(&plan, &place, (token, status), &mut candidate, keeper, signals).await?;
            Ok(code.into())
        }
        Err(end) => {
            withdraw(&mut candidate).await;
            match end {
                NotWon::Signal(signal) => {
                    Ok(supervise::Status::Signal(signal.as_raw()).exit_code().into())
                }
                NotWon::Failure(failure) => Err(failure),
            }
        }
    }
}

/// The work is over: releases what can be released, and waits for it no longer than it matters.
pub(super) async fn give_up(candidate: &mut Candidate, token: Token) {
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

pub(super) fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::UNREACHABLE, error)
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Misuse(Misuse::Timing(misuse)) => Failure::configuration(format!(
            "--ttl and --grace: {misuse} (the drain is --grace and {} ms for the kill)",
            KILL_BUDGET.as_millis()
        )),
        Error::Misuse(_) | Error::NotLinearizable => Failure::configuration(error),
        Error::Host(_) => broken(error),
    }
}
