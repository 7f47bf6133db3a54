//! Signals to the front.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::{Signal, getpid};
use tokio::signal::unix::{self, SignalKind};

use crate::supervise;

/// The signals that mean the command, or ask us to stop waiting.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    const ALL: [Signal; 7] = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::TSTP,
    ];

    /// Listens to all but those that whoever started us had ignored, like `nohup`.
    ///
    /// # Errors
    /// The system gives no handler.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = supervise::ignored_signals();
        let heard =
            Self::ALL.into_iter().filter(|signal| ignored >> (signal.as_raw() - 1) & 1 == 0);
        // The first process of a container inherits orphans that nobody else reaps.
        let children = Some(Signal::CHILD).filter(|_| getpid().is_init());
        let streams = heard
            .chain(children)
            .map(|signal| Ok((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?)));
        Ok(Self(streams.collect::<io::Result<_>>()?))
    }

    /// The next signal. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether a signal asks its receiver to end.
pub(super) fn asks_to_end(signal: Signal) -> bool {
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal)
}
