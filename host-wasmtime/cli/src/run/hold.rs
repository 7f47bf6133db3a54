//! `--hold`: the lease outlives the command.

use std::time::Duration;

use leasehold_core::time::Mono;
use leasehold_host::clock::Timer;
use leasehold_host::protocol::Event;
use rustix::process::Signal;

use super::front::{Front, Led};
use super::signals::asks_to_end;
use crate::exit::say;
use crate::supervise;

impl Front {
    /// Keeps the lease until it has been held for `--hold`. Nothing runs under it any more, so that
    /// neither a signal nor its loss changes what the command has achieved.
    pub(super) async fn hold(&mut self, led: &Led) {
        let until = match self.plan.options.hold {
            Some(hold) => after(led.since, hold),
            None => return,
        };
        let name = self.plan.options.name.clone();
        // It may have been lost, or asked for, just when the command ended.
        let leads = self.candidate.status().await.is_some_and(|status| status.may_start);
        let (Ok(mut timer), true) = (Timer::new(), leads && supervise::now() < until) else {
            return;
        };
        let left_ms = until.since(supervise::now()) / 1_000_000;
        self.mention(format!("{name}: the command has ended; held for another {left_ms} ms"));
        loop {
            tokio::select! {
                _ = timer.sleep_until(until) => return,
                signal = self.signals.next() => match signal {
                    Signal::CHILD => self.keeper.reap_adopted(),
                    Signal::TSTP => drop(self.stop_ourselves()),
                    signal if asks_to_end(signal) => {
                        say(format!("{name}: given up before --hold was over, by a signal"));
                        return;
                    }
                    _ => {}
                },
                update = self.candidate.next() => {
                    let lost = match update {
                        Ok(update) => {
                            self.events.update(&update);
                            match update.event {
                                Event::Demoted { reason, .. } => reason.to_string(),
                                _ => continue,
                            }
                        }
                        Err(dead) => dead.to_string(),
                    };
                    say(format!("{name}: lost before --hold was over: {lost}"));
                    return;
                }
            }
        }
    }
}

/// An instant that many nanoseconds later, at the end of time at the latest.
pub(super) fn after(instant: Mono, span: Duration) -> Mono {
    instant.after(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
