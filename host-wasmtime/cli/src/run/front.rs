//! The front: makes what waiting and working need, leads from one term to the next, and ends the
//! candidacy in order.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::time::Mono;
use leasehold_core::token::Token;
use leasehold_host::fence::ResourceState;
use leasehold_host::leases::Options;
use leasehold_host::protocol::{Event, Misuse, Status};
use leasehold_host::store::Read;
use leasehold_host::{Candidate, Engine, Error, Leases};
use rustix::process::{Resource, Signal, getrlimit};

use super::events::Events;
use super::outcome::{Loss, Outcome};
use super::signals::Signals;
use super::{KILL_BUDGET, Plan};
use crate::exit::{self, Failure, say};
use crate::places::{self, Place};
use crate::supervise::{self, Keeper};
use crate::timing;

/// Open files that `run` gets along with.
const DESCRIPTORS: u64 = 64;
/// Address space, in bytes, that it gets along with.
const ADDRESS_SPACE: u64 = 1 << 30;
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
    enough_address_space()?;
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

/// Wasm reserves address space that it never fills.
fn enough_address_space() -> Result<(), Failure> {
    match getrlimit(Resource::As).current {
        Some(limit) if limit < ADDRESS_SPACE => {
            let (has, needs) = (limit >> 10, ADDRESS_SPACE >> 10);
            Err(Failure::configuration(format!(
                "this process may use only {has} KiB of address space: allow {needs} (ulimit -v {needs})"
            )))
        }
        _ => Ok(()),
    }
}

pub(super) fn start_keeper() -> Result<Keeper, Failure> {
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
    async fn open(mut plan: Plan, keeper: Keeper) -> Result<Self, Failure> {
        let events = Events::new(&plan.options.name, plan.events.take())?;
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
        not_begun_anew(&plan, &place).await?;
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
                        NotWon::Failure(failure) if self.plan.options.quiet => {
                            failure.unless_usual()
                        }
                        NotWon::Failure(failure) => Err(failure),
                    };
                }
            };
            let name = &self.plan.options.name;
            let Led { token, .. } = &led;
            self.mention(format!(
                "{name}: acquired, term {} (store {})",
                token.term, self.place.url
            ));
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
                    if loss == Loss::Unconfirmed {
                        self.candidate.forsake();
                    } else {
                        self.give_up(Some(led.token)).await;
                    }
                    return Ok(loss.code());
                }
            }
        }
    }

    /// How long one request to the store may take.
    pub(super) fn attempt_ns(&self) -> u64 {
        self.leases.timing().attempt_ns
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
        if tokio::time::timeout(WITHDRAW, stopped).await.is_err() && token.is_some() {
            let name = &self.plan.options.name;
            let ttl = humantime::format_duration(self.plan.options.ttl);
            say(format!("{name}: the release is not confirmed: others may have to wait {ttl}"));
        }
    }

    /// Says what is as it should be, which not everybody wants to hear.
    pub(super) fn mention(&self, words: impl std::fmt::Display) {
        if !self.plan.options.quiet {
            say(words);
        }
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

/// A resource that was sealed under a lease refuses the same lease begun anew. Found out before there
/// is a new record, the old one can still be put back.
async fn not_begun_anew(plan: &Plan, place: &Place) -> Result<(), Failure> {
    let name = &plan.options.name;
    if plan.resources.is_empty() {
        return Ok(());
    }
    let Read::Absent = place.store.read(&format!("lease/{name}")).await else { return Ok(()) };
    for resource in &plan.resources {
        // What cannot be read now is for the seal to complain of.
        let Ok(Some(ResourceState { token: Some(token), retired: false, .. })) = resource.state()
        else {
            continue;
        };
        return Err(Failure::configuration(format!(
            "{name}: {} has no record of this lease, and {resource} was sealed under one: if the \
             store is the wrong one, name the right one; if the record was lost, stop whoever held \
             it, then `leasehold init {name} --after {token} --store {}`",
            place.url, place.url
        )));
    }
    Ok(())
}

pub(super) fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::UNREACHABLE, error)
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Misuse(Misuse::Timing(misuse)) => timing::refused(misuse),
        Error::Misuse(_) | Error::NotLinearizable => Failure::configuration(error),
        Error::Host(_) => broken(error),
    }
}
