//! The front: makes what waiting and working need, leads from one term to the next, and ends the
//! candidacy in order.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::time::Mono;
use leasehold_core::token::Token;
use leasehold_host::leases::Options;
use leasehold_host::protocol::{Event, Misuse, Status};
use leasehold_host::{Candidate, Engine, Error, Leases};
use rustix::process::{Resource, Signal, getrlimit};

use super::events::Events;
use super::outcome::{Loss, Outcome};
use super::signals::Signals;
use super::{KILL_BUDGET, Plan};
use crate::exit::{self, Failure, say};
use crate::places::{self, Place};
use crate::supervise::{self, Keeper};

/// Open files that `run` gets along with.
const DESCRIPTORS: u64 = 64;
/// How long an end that nobody waits for may take.
const WITHDRAW: Duration = Duration::from_secs(2);

/// One `run`, while it waits, works and holds.
pub(super) struct Front {
    pub(super) plan: Plan,
    pub(super) place: Place,
    leases: Leases,
    pub(super) candidate: Candidate,
    pub(super) keeper: Keeper,
    pub(super) signals: Signals,
    pub(super) events: Events,
    /// Somebody asked the command to end: it is not to be run anew.
    pub(super) told_to_end: bool,
}

/// A term that was won and sealed.
pub(super) struct Led {
    pub(super) token: Token,
    pub(super) status: Status,
    /// When it was won.
    pub(super) since: Mono,
}

/// Why the lease was not won.
pub(super) enum NotWon {
    Signal(Signal),
    Failure(Failure),
}

impl From<Failure> for NotWon {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

pub(super) fn run(plan: Plan) -> Result<ExitCode, Failure> {
    supervise::unblock_signals().map_err(broken)?;
    enough_descriptors()?;
    // Before anything here makes a thread: the keeper lives as long as the thread that starts it.
    let keeper = start_keeper()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let code = runtime.block_on(async { Front::open(plan, keeper).await?.lead().await });
    // A store that hangs must not keep the exit waiting.
    runtime.shutdown_background();
    code.map(Into::into)
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

fn start_keeper() -> Result<Keeper, Failure> {
    Keeper::start().map_err(|error| {
        let why = format!("the keeper cannot be started: {error}");
        match error.kind() {
            // Our own words: this is no place to run in.
            std::io::ErrorKind::Other => Failure::configuration(why),
            _ => broken(why),
        }
    })
}

impl Front {
    async fn open(plan: Plan, keeper: Keeper) -> Result<Self, Failure> {
        let events = Events::open(&plan.options.name, plan.options.events.as_deref())?;
        let place = places::open(plan.options.store.named())?;
        let engine = Engine::new(places::code_cache().as_deref()).map_err(broken)?;
        let options = Options {
            holder: plan.holder.clone(),
            ttl: plan.options.ttl,
            drain: plan.options.grace.saturating_add(KILL_BUDGET),
            unsafe_eventual: false,
        };
        let leases = Leases::component(&engine, place.store.clone(), options).map_err(refused)?;
        let signals = Signals::listen().map_err(broken)?;
        let candidate = leases.candidate(&plan.options.name).await.map_err(refused)?;
        let told_to_end = false;
        Ok(Self { plan, place, leases, candidate, keeper, signals, events, told_to_end })
    }

    /// From one term to the next, until the command has ended or is not to be run again.
    async fn lead(mut self) -> Result<u8, Failure> {
        loop {
            let led = match self.wait().await {
                Ok(led) => led,
                Err(not_won) => {
                    self.give_up(None).await;
                    return match not_won {
                        NotWon::Signal(signal) => {
                            Ok(supervise::Status::Signal(signal.as_raw()).exit_code())
                        }
                        NotWon::Failure(failure) => Err(failure),
                    };
                }
            };
            let name = &self.plan.options.name;
            say(format!("{name}: acquired, term {} (store {})", led.token.term, self.place.url));
            match self.work(&led).await? {
                Outcome::Ended(code) => {
                    self.hold(&led).await;
                    self.give_up(Some(led.token)).await;
                    return Ok(code);
                }
                Outcome::Lost(loss) if self.runs_anew_after(loss) => {
                    self.begin_anew(led.token).await?;
                }
                Outcome::Lost(loss) => {
                    if loss != Loss::Unconfirmed {
                        self.give_up(Some(led.token)).await;
                    }
                    return Ok(loss.code());
                }
            }
        }
    }

    fn runs_anew_after(&self, loss: Loss) -> bool {
        self.plan.options.respawn && loss != Loss::Unconfirmed && !self.told_to_end
    }

    /// Contends for another term, with a keeper for the next command.
    async fn begin_anew(&mut self, token: Token) -> Result<(), Failure> {
        let name = &self.plan.options.name;
        match self.candidate.status().await {
            Some(status) => {
                // Where the keeper failed, the lease itself is not lost yet.
                if status.may_start {
                    self.candidate.resign();
                }
                self.candidate.drained(token);
            }
            // The instance that held the lease is dead; the next one knows nothing of it.
            None => self.candidate = self.leases.candidate(name).await.map_err(refused)?,
        }
        self.keeper.close();
        self.keeper = start_keeper()?;
        say(format!("{name}: contending again"));
        Ok(())
    }

    /// Nobody works under it any more: releases what can be released, and waits for that no longer
    /// than it matters.
    async fn give_up(&mut self, token: Option<Token>) {
        self.candidate.stop();
        if let Some(token) = token {
            self.candidate.drained(token);
        }
        let stopped = async {
            while let Ok(update) = self.candidate.next().await {
                self.events.update(&update);
                match update.event {
                    Event::Demoted { token, .. } => self.candidate.drained(token),
                    Event::Stopped => return,
                    _ => {}
                }
            }
        };
        let _ = tokio::time::timeout(WITHDRAW, stopped).await;
    }

    /// Stops as a job of a shell does, until it goes on. Says whether it did.
    pub(super) fn stop_ourselves(&mut self) -> bool {
        self.events.tell("stopped", []);
        let stopped = supervise::stop_ourselves();
        if stopped {
            self.events.tell("continued", []);
        }
        stopped
    }
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
