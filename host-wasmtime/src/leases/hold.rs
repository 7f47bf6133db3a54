//! Work that runs while a lease is held, and is dropped in time when it is not.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use leasehold_core::observe::Reason;
use leasehold_core::time::{Mono, Stamp};
use leasehold_core::token::Token;
use tokio::sync::watch;

use super::{Candidate, Error, Leases, Lost, Update};
use crate::clock::{Clock as _, SystemClock, Timer};
use crate::protocol::{Event, Status};

/// How work under a lease ended.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held<T> {
    /// The lease was held until the work was done.
    Done(T),
    /// The lease was lost first; the work was dropped before a rival could start.
    Lost(Lost),
}

/// A held lease, as the work sees it.
#[derive(Clone, Debug)]
pub struct Lease {
    token: Token,
    granted: Arc<Mutex<Granted>>,
    lost: watch::Receiver<bool>,
}

/// What the last update granted, and when.
#[derive(Clone, Copy, Debug)]
struct Granted {
    at: Stamp,
    remaining_ns: u64,
}

/// When nothing may finish any more, as an update said at a moment.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Stamp,
    end: Mono,
}

impl Deadline {
    /// By either clock, so that time asleep which only one of them saw counts.
    fn has_passed(self) -> bool {
        self.at.elapsed_ns(SystemClock.now()) >= self.end.since(self.at.mono())
    }
}

/// The beginning of a term.
struct Led {
    token: Token,
    at: Stamp,
    status: Status,
}

impl Lease {
    /// The fencing token, for every write that the work makes.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether something new may start now: judged by the clocks alone, no IO.
    #[must_use]
    pub fn may_start(&self) -> bool {
        self.remaining_ns() > 0
    }

    /// Nanoseconds until nothing new may start, unless a renewal is confirmed meanwhile.
    #[must_use]
    pub fn remaining_ns(&self) -> u64 {
        if *self.lost.borrow() {
            return 0;
        }
        let Granted { at, remaining_ns } = *lock(&self.granted);
        remaining_ns.saturating_sub(at.elapsed_ns(SystemClock.now()))
    }

    /// Returns when the lease is being lost: the work has until it is dropped to wind up.
    pub async fn lost(&mut self) {
        let _ = self.lost.wait_for(|lost| *lost).await;
    }
}

impl Leases {
    /// Waits for the lease `name`, runs `work` under it and releases it.
    ///
    /// The work's future is not polled after the deadline, before which no rival may start, and
    /// then dropped; it learns of the coming loss by [`Lease::lost`]. Only where it awaits can it
    /// be stopped: work that blocks its thread, or is frozen in the middle of a poll and wakes too
    /// late, goes on. Only the fence protects from that: seal the work's resources with the token
    /// first ([`Resource::seal`](crate::fence::Resource::seal)), since this method seals none.
    ///
    /// # Errors
    /// As for [`Leases::candidate`], and where the instance dies before the work has begun.
    pub async fn hold<T, Work>(
        &self,
        name: &str,
        work: impl FnOnce(Lease) -> Work,
    ) -> Result<Held<T>, Error>
    where
        Work: Future<Output = T>,
    {
        let mut candidate = self.candidate(name).await?;
        let mut timer = Timer::new().map_err(|error| Error::Host(error.to_string()))?;
        let Led { token, at, status } = lead(&mut candidate).await?;

        let granted = Arc::new(Mutex::new(Granted { at, remaining_ns: status.remaining_ns }));
        let (losing, lost) = watch::channel(false);
        let lease = Lease { token, granted: granted.clone(), lost };
        let mut deadline = Deadline { at, end: status.valid_until.unwrap_or(Mono(0)) };
        let mut reason = None;
        let done = {
            let mut work = Box::pin(work(lease));
            loop {
                tokio::select! {
                    biased;
                    update = candidate.next() => match update {
                        Ok(Update { event, at, status, .. }) => {
                            *lock(&granted) = Granted { at, remaining_ns: status.remaining_ns };
                            if let Some(end) = status.valid_until {
                                deadline = Deadline { at, end };
                            }
                            if let Event::Demoted { reason: why, .. } = event {
                                reason = Some(Lost::Demoted(why));
                                losing.send_replace(true);
                            }
                            if !status.may_finish {
                                break None;
                            }
                        }
                        Err(dead) => {
                            reason = Some(Lost::Dead(dead));
                            break None;
                        }
                    },
                    _ = timer.sleep_until(deadline.end) => break None,
                    output = in_time(work.as_mut(), deadline) => break output,
                }
            }
        };
        losing.send_replace(true);

        let still_held = candidate.status().await.is_some_and(|status| status.may_finish);
        candidate.resign();
        candidate.drained(token);
        Ok(match (done, reason) {
            (Some(output), None) if still_held => {
                ended(&mut candidate, token).await;
                Held::Done(output)
            }
            (_, reason) => Held::Lost(reason.unwrap_or(Lost::Demoted(Reason::DeadlinePassed))),
        })
    }
}

/// Polls the work, unless its time is over: a process that was frozen looks at the clock first.
async fn in_time<Work: Future>(
    mut work: Pin<&mut Work>,
    deadline: Deadline,
) -> Option<Work::Output> {
    poll_fn(|context| {
        if deadline.has_passed() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// There is nothing to seal: the work's own resources check the token themselves.
async fn lead(candidate: &mut Candidate) -> Result<Led, Error> {
    loop {
        let update = candidate.next().await.map_err(|dead| Error::Host(dead.to_string()))?;
        match update.event {
            Event::Elected { token } => candidate.sealed(token),
            Event::Leading { token, .. } => {
                return Ok(Led { token, at: update.at, status: update.status });
            }
            Event::Demoted { token, .. } => candidate.drained(token),
            _ => {}
        }
    }
}

/// Waits for the release; it ends by itself when the lease would have run out.
async fn ended(candidate: &mut Candidate, token: Token) {
    while let Ok(update) = candidate.next().await {
        match update.event {
            Event::Demoted { .. } => candidate.drained(token),
            Event::Ended { .. } => return,
            _ => {}
        }
    }
}

fn lock(granted: &Mutex<Granted>) -> MutexGuard<'_, Granted> {
    granted.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn work_whose_time_is_over_is_not_polled_once_more() {
        let polled = pin!(async { panic!("it was polled") });
        let at = Stamp::of(SystemClock.now());
        let over = Deadline { at, end: at.mono() };
        let far = Deadline { at, end: Mono(u64::MAX) };
        assert_eq!(in_time(polled, over).await, None::<()>);
        assert_eq!(in_time(pin!(ready(7)), far).await, Some(7));
        let endless = pin!(pending::<()>());
        let waiting = in_time(endless, far);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, waiting).await.is_err());
    }
}
