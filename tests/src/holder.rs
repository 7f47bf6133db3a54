//! A holder's day: the lease is led, renewed, renewed, renewed.

use leasehold_core::label::Label;
use leasehold_core::lease::{Authority, Config, Elector, Input, Step};
use leasehold_core::observe::Event;
use leasehold_core::store::{Body, Draft, OpId, Outcome, Request, Version};
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS, Mono, Now};
use leasehold_core::timing::Timing;
use leasehold_core::token::Nonce;

/// Whose day it is.
pub const LABEL: &str = "web-1";

/// A lease of ten seconds on perfect clocks.
#[must_use]
pub fn config() -> Config {
    let timing = Timing::from_ttl(10_000, 0, 100 * MILLISECOND_NS, Drift::DEFAULT);
    let clocks = Clocks { wall: true, resolution_ns: 1 };
    let holder = Label::new(LABEL).expect("a label");
    Config::new(Nonce(1), holder, timing, Authority::LocalObservation, clocks).expect("a timing")
}

/// An elector that leads. All that it is told of its store is that writes succeed.
pub struct Holder<'c> {
    elector: Elector<&'c Config>,
    now: Now,
    writes: u64,
}

impl<'c> Holder<'c> {
    /// Takes a lease that nobody holds.
    #[must_use]
    pub fn leading(config: &'c Config) -> Self {
        let now = Now { mono: Mono(0), wall_ns: Some(1_800_000_000_000_000_000) };
        let mut holder = Self { elector: Elector::new(config, now, 7), now, writes: 0 };
        let step = holder.elector.step(now, Input::Tick);
        let Some(Request { op, .. }) = step.request else { panic!("no read: {step:?}") };
        let step = holder.done(op, Outcome::Absent);
        let Some(Request { op, .. }) = step.request else { panic!("no write: {step:?}") };
        let step = holder.applied(op);
        let Some(Event::Elected { token }) = step.event else { panic!("no election: {step:?}") };
        let step = holder.elector.step(now, Input::Sealed(token));
        let Some(Event::Leading { .. }) = step.event else { panic!("no lead: {step:?}") };
        holder
    }

    /// One whole renewal, of two steps: a tick when it is due, and the store's answer. Gives what
    /// was to be written.
    pub fn renew(&mut self) -> Draft {
        let span_ns = self.elector.config().timing().renew_ns;
        self.now.mono = self.now.mono.after(span_ns);
        self.now.wall_ns = self.now.wall_ns.map(|wall_ns| wall_ns + span_ns);
        let step = self.elector.step(self.now, Input::Tick);
        let Some(Request { op, body: Body::Write { draft, .. }, .. }) = step.request else {
            panic!("no write: {step:?}")
        };
        let step = self.applied(op);
        let Some(Event::Renewed { .. }) = step.event else { panic!("no renewal: {step:?}") };
        draft
    }

    fn applied(&mut self, op: OpId) -> Step<'static> {
        self.writes += 1;
        let version = Version::new(&self.writes.to_be_bytes()).expect("eight bytes");
        self.done(op, Outcome::Applied(version))
    }

    fn done(&mut self, op: OpId, outcome: Outcome<'static>) -> Step<'static> {
        self.elector.step(self.now, Input::Done { op, outcome, salt: 7 })
    }
}
