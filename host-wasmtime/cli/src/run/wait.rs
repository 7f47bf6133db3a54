//! Waiting for the lease: until it is won and sealed, or not to be had.

use leasehold_core::fence::{MAX_ADVANCE, SealVerdict};
use leasehold_core::observe::StoreFault;
use leasehold_core::time::Mono;
use leasehold_core::token::Token;
use leasehold_host::Candidate;
use leasehold_host::clock::Timer;
use leasehold_host::fence::{FenceError, Resource};
use leasehold_host::protocol::{Event, Owner, Status};
use rustix::process::Signal;

use super::Plan;
use super::front::broken;
use super::signals::Signals;
use crate::exit::{self, Failure, say};
use crate::fence::refusal;
use crate::supervise;

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

/// Until the lease is won and sealed.
pub(super) async fn wait(
    plan: &Plan,
    candidate: &mut Candidate,
    signals: &mut Signals,
) -> Result<(Token, Status), NotWon> {
    let name = &plan.options.name;
    let mut timer = Timer::new().map_err(broken)?;
    let over = plan
        .options
        .wait
        .map(|wait| supervise::now().after(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)));
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
            Event::Demoted { token, reason, .. } => {
                if sealing.is_ok() {
                    say(format!("{name}: given up before it began: {reason}"));
                }
                candidate.drained(token);
            }
            Event::Ended { .. } => std::mem::replace(&mut sealing, Ok(()))?,
            Event::StoreDown => {
                let why = update.trouble.unwrap_or_else(|| "no answer in time".to_owned());
                if plan.options.no_wait {
                    return Err(Failure::new(
                        exit::UNREACHABLE,
                        format!("{name}: the store does not answer: {why}"),
                    )
                    .into());
                }
                say(format!("{name}: the store does not answer: {why}; waiting"));
                trouble = Some(why);
            }
            Event::StoreUp => {
                say(format!("{name}: the store answers again"));
                trouble = None;
            }
            Event::StoreFault(fault @ StoreFault::WentBack { .. }) => {
                say(format!("{name}: {fault}"));
            }
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
        let verdict =
            tokio::task::spawn_blocking(move || sealing.seal(token, true)).await.map_err(broken)?;
        match verdict {
            Ok(SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. }) => {}
            Ok(verdict @ (SealVerdict::Fenced { floor } | SealVerdict::Collision { floor }))
                if floor <= token.term.get().saturating_add(MAX_ADVANCE) =>
            {
                say(refusal(resource, verdict));
                return Ok(Some(floor));
            }
            Ok(verdict) => return Err(Failure::configuration(refusal(resource, verdict))),
            Err(error @ FenceError::Misuse(_)) => return Err(Failure::configuration(error)),
            Err(error @ FenceError::Database(_)) => {
                return Err(Failure::new(exit::UNREACHABLE, error));
            }
        }
    }
    Ok(None)
}
