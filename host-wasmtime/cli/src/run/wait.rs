//! Waiting for the lease: until it is won and sealed, or not to be had.

use leasehold_core::fence::{MAX_ADVANCE, SealVerdict};
use leasehold_core::observe::StoreFault;
use leasehold_core::time::Mono;
use leasehold_core::token::Token;
use leasehold_host::clock::Timer;
use leasehold_host::fence::{FenceError, Resource};
use leasehold_host::protocol::{Event, Owner};
use rustix::process::Signal;

use super::front::{Front, Led, NotWon, broken, start_keeper};
use super::hold::after;
use crate::exit::{self, Failure, say};
use crate::fence::refusal;
use crate::supervise;

impl Front {
    /// Until the lease is won and sealed.
    pub(super) async fn wait(&mut self) -> Result<Led, NotWon> {
        let name = self.plan.options.name.clone();
        let mut timer = Timer::new().map_err(broken)?;
        let mut over = self.plan.options.wait.map(|wait| after(supervise::now(), wait));
        // Who gives no time at all still wants to know how things stand.
        let mut looked = false;
        let mut trouble: Option<String> = None;
        let mut sealing: Result<(), Failure> = Ok(());
        // The end of an earlier term may be told only now.
        let mut elected = None;
        loop {
            let update = tokio::select! {
                biased;
                update = self.candidate.next() => update.map_err(broken)?,
                signal = self.signals.next() => match signal {
                    Signal::CHILD => {
                        self.keeper.reap_adopted();
                        continue;
                    }
                    Signal::TSTP => {
                        self.stop_ourselves();
                        continue;
                    }
                    signal => return Err(NotWon::Signal(signal)),
                },
                None = self.keeper.report() => {
                    // Somebody killed it, while it had nothing to keep yet.
                    self.keeper.close();
                    self.keeper = start_keeper()?;
                    continue;
                }
                _ = timer.sleep_until(over.unwrap_or(Mono(u64::MAX))), if over.is_some() && looked => {
                    return Err(match trouble {
                        Some(why) => down(&name, &why),
                        None => Failure::new(
                            exit::WAIT_OVER,
                            format!("{name}: not obtained within --wait; `leasehold status {name}` says who holds it"),
                        ),
                    }
                    .into());
                }
            };
            self.events.update(&update);
            match update.event {
                Event::Standby { owner: Owner { holder, token, .. }, alive } => {
                    looked = true;
                    let held = match holder.strip_prefix("forced:") {
                        Some(who) => format!("ended by force by {who}, not free yet"),
                        None => format!("held by {holder}"),
                    };
                    let held = format!("{name}: {held}, term {}", token.term);
                    if alive && self.plan.options.no_wait {
                        return Err(Failure::new(exit::NOT_OBTAINED, held).into());
                    }
                    if self.plan.under == Some(token) {
                        return Err(Failure::configuration(format!(
                            "{name}: this very lease is held by what started this command, which would \
                             wait for itself: use another name, or --no-wait"
                        ))
                        .into());
                    }
                    self.mention(format!("{held}; waiting"));
                }
                Event::Elected { token } => {
                    elected = Some(token);
                    let resources = self.plan.resources.clone();
                    let sealed = tokio::select! {
                        sealed = seal(&resources, token) => sealed,
                        signal = self.signal_to_end() => return Err(NotWon::Signal(signal)),
                    };
                    match sealed {
                        Ok(None) => self.candidate.sealed(token),
                        Ok(Some(floor)) => self.candidate.seal_refused(token, Some(floor)),
                        Err(failure) => {
                            if failure.may_pass() && !self.plan.options.no_wait {
                                say(format!("{name}: {failure}; waiting"));
                            } else {
                                sealing = Err(failure);
                            }
                            self.candidate.seal_refused(token, None);
                        }
                    }
                }
                Event::Leading { token, .. } => {
                    return Ok(Led { token, status: update.status, since: update.at.mono() });
                }
                Event::Demoted { token, reason, .. } => {
                    if sealing.is_ok() && elected == Some(token) {
                        say(format!("{name}: given up before it began: {reason}"));
                    }
                    self.candidate.drained(token);
                }
                Event::Ended { .. } => std::mem::replace(&mut sealing, Ok(()))?,
                Event::StoreDown => {
                    looked = true;
                    let why = update.trouble.unwrap_or_else(|| "no answer in time".to_owned());
                    if self.plan.options.no_wait {
                        // Not a living holder, but a store that is busy, perhaps.
                        over = Some(after(supervise::now(), self.plan.options.ttl));
                    }
                    say(format!("{name}: the store does not answer: {why}; waiting"));
                    trouble = Some(why);
                }
                Event::StoreUp => {
                    say(format!("{name}: the store answers again"));
                    trouble = None;
                    over = over.filter(|_| !self.plan.options.no_wait);
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
}

impl Front {
    /// The next signal that asks us to end; all others do what they do while nothing runs.
    async fn signal_to_end(&mut self) -> Signal {
        loop {
            match self.signals.next().await {
                Signal::CHILD => self.keeper.reap_adopted(),
                Signal::TSTP => drop(self.stop_ourselves()),
                signal => return signal,
            }
        }
    }
}

fn down(name: &str, why: &str) -> Failure {
    Failure::new(exit::UNREACHABLE, format!("{name}: the store does not answer: {why}"))
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
