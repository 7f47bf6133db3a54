//! Leases over one store: candidates, and work that runs while a lease is held.

mod hold;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::label::{BadText, Label};
use leasehold_core::lease::Authority;
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS};
use leasehold_core::timing::Timing;
use leasehold_core::token::{Nonce, Token};
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, SystemClock, Timer};
use crate::driver::{Driver, Factory, Handle, Message};
pub use crate::driver::{Lost, Update};
use crate::protocol::{
    Component, Dead, Engine, Entropy as _, Input, Native, Open, OsEntropy, Protocol, Status,
};
use crate::store::Store;
pub use hold::{Held, Lease};

/// What the leases of one process have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Who holds them, for people: 1 to 128 characters of `A-Za-z0-9._:@/+-`.
    pub holder: String,
    /// How long others believe a holder without a renewal; whole milliseconds.
    pub ttl: Duration,
    /// What ending the work takes: from `stop_at` to `valid_until`.
    pub drain: Duration,
    /// Takes a store that is not linearizable. Two holders are then possible at any time; only
    /// the fence protects.
    pub unsafe_eventual: bool,
}

impl Options {
    /// The time to live of a lease whose user names none.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(15);
    const GUARD_NS: u64 = 20 * MILLISECOND_NS;

    /// The usual spans, under a label for people.
    #[must_use]
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            ttl: Self::DEFAULT_TTL,
            drain: Duration::from_secs(1),
            unsafe_eventual: false,
        }
    }

    /// The spans that leases with these options have, on a host with such clocks; whether they fit
    /// together, [`Timing::check`] says.
    #[must_use]
    pub fn timing(&self, clocks: Clocks) -> Timing {
        let ttl_ms = u32::try_from(self.ttl.as_millis()).unwrap_or(u32::MAX);
        let drain_ns = u64::try_from(self.drain.as_nanos()).unwrap_or(u64::MAX);
        let guard_ns = Self::GUARD_NS.max(2 * clocks.resolution_ns);
        Timing::from_ttl(ttl_ms, drain_ns, guard_ns, Drift::DEFAULT)
    }
}

/// Leases over one store, driven by one task of the runtime it was made in. Clones share it; the
/// last one that is dropped lets the task end, once what was held has been given up.
#[derive(Clone, Debug)]
pub struct Leases {
    messages: mpsc::UnboundedSender<Message>,
    options: Arc<Options>,
    timing: Timing,
    authority: Authority,
    instance: Nonce,
    clocks: Clocks,
}

impl Leases {
    /// Leases decided by the core linked into this process.
    ///
    /// # Errors
    /// [`Error`]: the store lacks what a lease needs, the system gives no random bits or no timer.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn native(store: Arc<dyn Store>, options: Options) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let make = {
            let clock = clock.clone();
            move || {
                Ok(Box::new(Native::new(clock.clone(), Arc::new(OsEntropy))) as Box<dyn Protocol>)
            }
        };
        Self::over(Box::new(make), store, clock, options)
    }

    /// Leases decided by the component inside wasmtime.
    ///
    /// # Errors
    /// As for [`Leases::native`], and where the component cannot be instantiated.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn component(
        engine: &Engine,
        store: Arc<dyn Store>,
        options: Options,
    ) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let make = {
            let (engine, clock) = (engine.clone(), clock.clone());
            move || {
                Component::new(&engine, clock.clone(), Arc::new(OsEntropy))
                    .map(|component| Box::new(component) as Box<dyn Protocol>)
                    .map_err(|error| error.to_string())
            }
        };
        Self::over(Box::new(make), store, clock, options)
    }

    fn over(
        mut factory: Factory,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, Error> {
        let capabilities = store.capabilities();
        if !capabilities.linearizable && !options.unsafe_eventual {
            return Err(Error::NotLinearizable);
        }
        let authority = capabilities.authority();
        let instance = Nonce(OsEntropy.salt().map_err(|error| Error::Host(error.to_string()))?);
        let clocks = clock.clocks();
        let timing = options.timing(clocks);
        let timer = Timer::new().map_err(|error: io::Error| Error::Host(error.to_string()))?;
        let protocol = factory().map_err(Error::Host)?;
        let (driver, messages) = Driver::new(factory, protocol, store, clock);
        tokio::spawn(driver.run(timer));
        Ok(Self { messages, options: Arc::new(options), timing, authority, instance, clocks })
    }

    /// The spans that every lease of this instance has.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Campaigns for the lease `name` until the candidate is stopped or dropped.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a bad name, label or timing; [`Error::Host`] where the driver is gone.
    pub async fn candidate(&self, name: &str) -> Result<Candidate, Error> {
        let options = Open {
            name: name.to_owned(),
            holder: self.options.holder.clone(),
            instance: self.instance,
            timing: self.timing,
            authority: self.authority,
            clocks: self.clocks,
        };
        let (reply, answer) = oneshot::channel();
        self.send(Message::Open { options, reply })?;
        let opened = answer.await.map_err(|_| Error::gone())??;
        Ok(Candidate {
            messages: self.messages.clone(),
            lease: opened.lease,
            updates: opened.updates,
            forsaken: false,
        })
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        self.messages.send(message).map_err(|_| Error::gone())
    }
}

/// One candidate for one lease, to be listened to and answered. Dropped, it gives the lease up:
/// what it held is released in the background.
#[derive(Debug)]
pub struct Candidate {
    messages: mpsc::UnboundedSender<Message>,
    lease: Handle,
    updates: mpsc::UnboundedReceiver<Result<Update, Dead>>,
    forsaken: bool,
}

impl Candidate {
    /// What happens next. [`Event::Elected`](crate::protocol::Event::Elected) is to be answered
    /// with [`Candidate::sealed`] or [`Candidate::seal_refused`], and
    /// [`Event::Demoted`](crate::protocol::Event::Demoted) with [`Candidate::drained`].
    ///
    /// # Errors
    /// [`Dead`]: the instance that held the lease is gone; whatever was held is lost at once.
    pub async fn next(&mut self) -> Result<Update, Dead> {
        self.updates.recv().await.unwrap_or_else(|| Err(Dead::because("the driver ended")))
    }

    /// Every resource of the lease is sealed with this token.
    pub fn sealed(&self, token: Token) {
        self.tell(Input::Sealed(token));
    }

    /// A resource refused this token; `floor` from `Fenced` and `Collision` of its own lineage.
    pub fn seal_refused(&self, token: Token, floor: Option<u64>) {
        self.tell(Input::SealRefused { token, floor });
    }

    /// The work of this token has ended.
    pub fn drained(&self, token: Token) {
        self.tell(Input::Drained(token));
    }

    /// Gives the lease up once, and campaigns again after a while.
    pub fn resign(&self) {
        self.tell(Input::Resign { to: None });
    }

    /// Ends the work, then offers the lease to one holder or instance, and campaigns again after
    /// a while. That one may take it at once, everyone else after the offer's grace. Where nothing
    /// is held there is nothing to offer: a campaign under way is given up.
    ///
    /// # Errors
    /// [`BadText`] says what a label may be.
    pub fn hand_off(&self, to: &str) -> Result<(), BadText> {
        Label::new(to)?;
        self.tell(Input::Resign { to: Some(to.to_owned()) });
        Ok(())
    }

    /// While nothing is held: this token belongs to this lease, by an operator's word. The next
    /// term is above it, and a store fault that blocked is over.
    pub fn adopt(&self, token: Token) {
        self.tell(Input::Adopt(token));
    }

    /// Gives the lease up for good.
    pub fn stop(&self) {
        self.tell(Input::Stop);
    }

    /// The host learned of a clock jump, a resumed image, a migration.
    pub fn disrupted(&self) {
        self.tell(Input::Disrupted);
    }

    /// What may be done at this moment; none once the lease is closed.
    pub async fn status(&self) -> Option<Status> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Status { lease: self.lease, reply }).ok()?;
        answer.await.ok()?
    }

    /// The store's last complaint, in words, while it has one. It may come later than the event that
    /// it explains.
    pub async fn trouble(&self) -> Option<String> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Trouble { lease: self.lease, reply }).ok()?;
        answer.await.ok()?
    }

    /// Gives the lease up without a release: for work of which it is not known that it has ended.
    /// Renewals stop when the drain is over, and others wait until the lease has run out.
    pub fn forsake(mut self) {
        self.forsaken = true;
        self.stop();
    }

    fn tell(&self, input: Input) {
        // A driver that is gone says so through `next`.
        let _ = self.messages.send(Message::Input { lease: self.lease, input });
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if !self.forsaken {
            let _ = self.messages.send(Message::Abandon { lease: self.lease });
        }
    }
}

/// Why there is no lease to be had; each text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The caller's mistake.
    Misuse(crate::protocol::Misuse),
    /// The store does not vouch for linearizable reads and writes.
    NotLinearizable,
    /// The runtime, the operating system, or the wasm engine.
    Host(String),
}

impl Error {
    fn gone() -> Self {
        Self::Host("the task that drives the leases is gone: its runtime has ended".to_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::NotLinearizable => f.write_str(
                "the store does not vouch for linearizable reads and writes, so that two holders are possible: use another store, or accept that only the fence protects (unsafe_eventual)",
            ),
            Self::Host(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::protocol::OpenError> for Error {
    fn from(error: crate::protocol::OpenError) -> Self {
        match error {
            crate::protocol::OpenError::Misuse(misuse) => Self::Misuse(misuse),
            crate::protocol::OpenError::Dead(dead) => Self::Host(dead.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::protocol::{Entropy, Event, NoEntropy};
    use crate::store::Memory;

    /// Fails once, after so many draws: the instance that asked is dead.
    struct FailsOnce(AtomicU32);

    impl Entropy for FailsOnce {
        fn salt(&self) -> Result<u64, NoEntropy> {
            match self.0.fetch_sub(1, Ordering::SeqCst) {
                1 => Err(NoEntropy("for a test".to_owned())),
                _ => OsEntropy.salt(),
            }
        }
    }

    #[tokio::test]
    async fn a_dead_instance_loses_its_leases_and_the_next_one_starts_with_none() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy = Arc::new(FailsOnce(AtomicU32::new(12)));
        let make = {
            let clock = clock.clone();
            move || Ok(Box::new(Native::new(clock.clone(), entropy.clone())) as Box<dyn Protocol>)
        };
        let store = Arc::new(Memory::new());
        let options =
            Options { ttl: Duration::from_secs(1), drain: Duration::ZERO, ..Options::new("web-1") };
        let leases = Leases::over(Box::new(make), store, clock, options).unwrap();
        let (mut one, mut other) =
            (leases.candidate("one").await.unwrap(), leases.candidate("other").await.unwrap());
        let mut elected = 0;
        let dead = loop {
            match one.next().await {
                Ok(Update { event: Event::Elected { token }, .. }) => {
                    elected = token.term.get();
                    one.sealed(token);
                }
                Ok(_) => {}
                Err(dead) => break dead,
            }
        };
        assert!(dead.to_string().contains("for a test"), "{dead}");
        while other.next().await.is_ok() {}
        assert_eq!(one.status().await, None);

        let mut again = leases.candidate("one").await.unwrap();
        let token = loop {
            if let Event::Elected { token } = again.next().await.unwrap().event {
                break token;
            }
        };
        assert!(elected > 0 && token.term.get() > elected, "what was held ran out by itself");
    }
}
