//! The command's life under the lease.

use std::io::{self, ErrorKind};

use leasehold_core::observe::Reason;
use leasehold_core::time::{MILLISECOND_NS, Mono};
use leasehold_core::token::Token;
use leasehold_host::clock::Timer;
use leasehold_host::protocol::{Dead, Event};
use leasehold_host::{Lost, Update};
use rustix::process::Signal;
use serde_json::json;

use super::Plan;
use super::front::{Front, Led, broken};
use super::held::{Held, LAST_RESORT_NS};
use super::hold::after;
use super::outcome::{Cut, Exited, Loss, Outcome, TreeEnded};
use crate::exit::{Failure, say};
use crate::places::Place;
use crate::supervise::{self, Ended, Launch, Report};

impl Front {
    /// Runs the command under the lease that was won, until all of it is over.
    pub(super) async fn work(&mut self, led: &Led) -> Result<Outcome, Failure> {
        let name = self.plan.options.name.clone();
        let mut held = Held::new(&led.status, self.plan.options.grace);
        if supervise::now() >= held.stop_at {
            return Ok(never_began(&name));
        }
        let mut work = Work::default();
        let mut timer = Timer::new().map_err(broken)?;
        let (mut limit, mut late) = (Timer::new().map_err(broken)?, Timer::new().map_err(broken)?);
        let started = supervise::now();
        let too_long = self.plan.options.max_run.map(|span| after(started, span));
        let launch = launch(&self.plan, &self.place, led.token);
        let launched = self.keeper.launch(launch, held.deadlines());
        let mut keeper_fails = is_stuck(&launched);
        let tree = loop {
            if keeper_fails {
                let now = supervise::now();
                let until = held.valid_until.min(now.after(LONGEST_RESORT_NS));
                let until = until.max(now.after(LAST_RESORT_NS));
                break TreeEnded::ByFront(self.keeper.end_tree(until));
            }
            let limited = too_long.filter(|_| work.cut.is_none() && work.exited.is_none());
            let listening = !matches!(held.lost, Some(Lost::Dead(_)));
            let sent = tokio::select! {
                biased;
                report = self.keeper.report() => match report {
                    Some(Report::Reaped { ended, at }) => break TreeEnded::Reaped { ended, at },
                    Some(report) => self.heard(report, &mut work).await,
                    None => {
                        keeper_fails = true;
                        continue;
                    }
                },
                update = self.candidate.next(), if listening => {
                    self.follow(&mut held, &mut work, update)
                }
                signal = self.signals.next() => self.obey(signal, &mut held, &mut work),
                _ = timer.sleep_until(held.over_at()) => {
                    keeper_fails = true;
                    continue;
                }
                _ = late.sleep_until(work.late_at.unwrap_or(Mono(u64::MAX))), if work.late_at.is_some() => {
                    work.late_at = None;
                    let why = self.candidate.trouble().await;
                    let why = why.unwrap_or_else(|| "the store does not answer in time".to_owned());
                    say(format!("{name}: not renewed yet: {why}"));
                    Ok(())
                }
                _ = limit.sleep_until(limited.unwrap_or(Mono(u64::MAX))), if limited.is_some() => {
                    say(format!("{name}: --max-run is over; the command is ended"));
                    self.cut(&mut held, &mut work, Cut::MaxRun)
                }
            };
            keeper_fails = is_stuck(&sent);
        };
        if let (TreeEnded::Reaped { .. }, false, None) = (tree, work.started, work.exited) {
            return Ok(never_began(&name));
        }
        let outcome = Outcome::judge(tree, work.exited, work.cut, &held, supervise::now());
        if let Outcome::Lost(loss) = outcome {
            let what = if held.is_asked_for() { "handed over" } else { "lost" };
            say(format!("{name}: {what}; {}, under term {}", loss.words(), led.token.term));
        }
        Ok(outcome)
    }

    /// What the keeper saw.
    async fn heard(&mut self, report: Report, work: &mut Work) -> io::Result<()> {
        match report {
            Report::Started { pid } => {
                work.started = true;
                self.events.tell("started", [("pid", json!(pid.as_raw_pid()))]);
            }
            Report::CouldNotStart { code, message } => {
                say(message);
                let at = supervise::now();
                work.exited = Some(Exited { code, ended: Ended::ByItself, at });
            }
            Report::Exited { status, ended, at } => {
                let code = status.exit_code();
                self.events.tell("exited", [("code", json!(code))]);
                work.exited = Some(Exited { code, ended, at });
            }
            Report::Stopped { signal } => return self.pause(signal).await,
            Report::Reaped { .. } => {}
        }
        Ok(())
    }

    /// The command was stopped as a job of a shell: so are we, until the job goes on. What slept
    /// through its lease does not go on, but ends.
    async fn pause(&mut self, signal: Signal) -> io::Result<()> {
        if !self.stop_ourselves() && signal != Signal::TSTP {
            say("the command waits for a terminal that is not its own, and stays stopped");
            return Ok(());
        }
        match self.candidate.status().await {
            Some(status) if status.may_start => self.keeper.go_on(),
            // Its end is on its way: the keeper wakes it up for that.
            _ => Ok(()),
        }
    }

    /// Passes a signal on to the command, which decides. One that interrupts it again does not let
    /// it decide any more.
    fn obey(&mut self, signal: Signal, held: &mut Held, work: &mut Work) -> io::Result<()> {
        if signal == Signal::CHILD {
            self.keeper.reap_adopted();
            return Ok(());
        }
        let again = signal == Signal::INT && std::mem::replace(&mut work.interrupted, true);
        // To the others a command may have an answer of its own, like reading its configuration.
        self.told_to_end |= again || signal == Signal::TERM || signal == Signal::QUIT;
        let name = &self.plan.options.name;
        match (again, work.cut) {
            (false, _) => self.keeper.forward(signal),
            (true, Some(_)) => {
                say(format!("{name}: interrupted once more; the command is killed"));
                held.cut(true, supervise::now());
                self.keeper.kill()
            }
            (true, None) => {
                let grace = humantime::format_duration(self.plan.options.grace);
                say(format!(
                    "{name}: interrupted again; the command is ended, killed after {grace}"
                ));
                self.cut(held, work, Cut::Interrupted)
            }
        }
    }

    /// Ends the command while the lease is held.
    fn cut(&mut self, held: &mut Held, work: &mut Work, why: Cut) -> io::Result<()> {
        work.cut = Some(why);
        held.cut(false, supervise::now());
        self.events.tell("ending", [("reason", json!(format!("{why:?}")))]);
        self.keeper.end()
    }

    /// Passes on to the keeper what an update means for the command.
    fn follow(
        &mut self,
        held: &mut Held,
        work: &mut Work,
        update: Result<Update, Dead>,
    ) -> io::Result<()> {
        let (name, now) = (&self.plan.options.name, supervise::now());
        match update {
            Ok(update) => {
                self.events.update(&update);
                let Update { event, status, trouble, .. } = update;
                match event {
                    Event::Demoted { reason: Reason::Asked, to, .. } => {
                        work.late_at = None;
                        held.lost = Some(Lost::Demoted(Reason::Asked));
                        let to = to.map(|to| format!(" to {to}")).unwrap_or_default();
                        say(format!("{name}: asked to hand over{to}; the command is ended"));
                    }
                    Event::Demoted { reason, token, .. } => {
                        work.late_at = None;
                        held.lost = Some(Lost::Demoted(reason));
                        let why = trouble.unwrap_or_else(|| reason.to_string());
                        let advice = match reason {
                            Reason::RecordGone => advise_init(name, token),
                            _ => String::new(),
                        };
                        say(format!("{name}: lost: {why}{advice}"));
                    }
                    Event::RenewalLate { .. } => match trouble {
                        Some(why) => say(format!("{name}: not renewed yet: {why}")),
                        // The store is slow to complain, or somebody only changed the record.
                        // Two attempts settle the latter.
                        None => work.late_at = Some(now.after(2 * self.attempt_ns())),
                    },
                    Event::Renewed { .. } => work.late_at = None,
                    Event::StoreFault(fault) => say(format!("{name}: {fault}")),
                    _ => {}
                }
                held.renew(&status, now);
            }
            Err(dead) => {
                self.events.tell("lost", [("reason", json!(dead.to_string()))]);
                say(format!("{name}: lost: {dead}"));
                held.lost = Some(Lost::Dead(dead));
            }
        }
        if held.is_lost_at_once() {
            self.keeper.kill()
        } else {
            self.keeper.extend(held.deadlines())
        }
    }
}

/// How long the front tries to kill what does not die, deaf to all else.
const LONGEST_RESORT_NS: u64 = 5_000 * MILLISECOND_NS;

/// What has become of the command so far.
#[derive(Default)]
struct Work {
    started: bool,
    exited: Option<Exited>,
    /// Why we ended it.
    cut: Option<Cut>,
    /// Whether it was interrupted by a signal to us.
    interrupted: bool,
    /// When a renewal that has not come is worth a word.
    late_at: Option<Mono>,
}

fn never_began(name: &str) -> Outcome {
    say(format!("{name}: lost before the command could start"));
    Outcome::Lost(Loss::EndedInTime)
}

/// Whether a request shows that the keeper has failed. One that is gone does not: its last report
/// may be on its way, and its end of file follows.
fn is_stuck(sent: &io::Result<()>) -> bool {
    let gone = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::NotConnected];
    sent.as_ref().is_err_and(|error| !gone.contains(&error.kind()))
}

fn advise_init(name: &str, token: Token) -> String {
    format!("; if it is lost, `leasehold init {name} --after {token}` puts it back")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_that_is_gone_is_heard_to_its_end() {
        assert!(!is_stuck(&Ok(())));
        assert!(!is_stuck(&Err(ErrorKind::BrokenPipe.into())));
        assert!(is_stuck(&Err(ErrorKind::TimedOut.into())));
    }
}
