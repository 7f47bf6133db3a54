//! What a holder, a follower and a guard do again and again allocates nothing.

use std::hint::black_box;

use leasehold_core::fence::{self, Advance, Digest, FenceRow, SealVerdict, WriteVerdict};
use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{Authority, Config, Elector, Input, State};
use leasehold_core::record::{self, MAX_LEN};
use leasehold_core::store::{Body, Entry, Outcome, Request, Version};
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS, Mono, Now};
use leasehold_core::timing::Timing;
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use leasehold_tests::allocations::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

const ROUNDS: u64 = 1_000;

#[test]
fn the_counter_sees_a_new_and_a_grown_allocation() {
    let (_, made) = allocations(|| black_box(Box::new(7)));
    assert_eq!(made, 1);
    let mut numbers = black_box(vec![7]);
    let ((), grown) = allocations(|| numbers.reserve_exact(100));
    assert_eq!(grown, 1);
}

#[test]
fn a_renewal_allocates_nothing() {
    let config = config(1);
    let mut store = Store::new();
    let mut holder = Process::leading(&config, &mut store);
    let fresh_ns = holder.elector.remaining_ns(holder.now);
    for _ in 0..ROUNDS {
        let writes = store.writes;
        let ((), renewal) = allocations(|| holder.tick_after(config.timing().renew_ns, &mut store));
        assert_eq!(renewal, 0);
        assert_eq!(store.writes, writes + 1);
        assert_eq!(holder.elector.remaining_ns(holder.now), fresh_ns);
    }
}

#[test]
fn a_followers_poll_allocates_nothing() {
    let configs = [config(1), config(2)];
    let mut store = Store::new();
    let mut holder = Process::leading(&configs[0], &mut store);
    let mut follower = Process::new(&configs[1]);
    follower.give(Input::Tick, &mut store);
    for _ in 0..ROUNDS {
        holder.tick_after(configs[0].timing().renew_ns, &mut store);
        let reads = store.reads;
        let ((), poll) =
            allocations(|| follower.tick_after(configs[1].timing().poll_ns, &mut store));
        assert_eq!(poll, 0);
        assert_eq!(store.reads, reads + 1);
        assert_eq!(follower.elector.state(), State::Standby);
    }
}

#[test]
fn sealing_and_admitting_allocate_nothing() {
    let token = Token { lineage: Lineage(1), term: Term::FIRST, nonce: Nonce(1) };
    let ((sealed, row), seal) =
        allocations(|| fence::seal(Some(&FenceRow::NEW), token, Advance::Proven));
    let ((admitted, _), admit) =
        allocations(|| fence::admit(row.as_ref(), None, token, Some(Digest([7; 32]))));
    assert_eq!((seal, admit), (0, 0));
    assert_eq!(sealed, SealVerdict::Sealed { prev_floor: 0, last_seq: 0 });
    assert_eq!(admitted, WriteVerdict::Apply { seq: 1 });
}

fn config(instance: u64) -> Config {
    let timing = Timing::from_ttl(10_000, 0, 100 * MILLISECOND_NS, Drift::DEFAULT);
    let clocks = Clocks { wall: true, resolution_ns: 1 };
    let holder = Label::new("web-1").expect("a label");
    Config::new(Nonce(instance), holder, timing, Authority::LocalObservation, clocks)
        .expect("a timing")
}

/// An elector with its clock.
struct Process<'c> {
    elector: Elector<&'c Config>,
    now: Now,
}

impl<'c> Process<'c> {
    fn new(config: &'c Config) -> Self {
        let now = Now { mono: Mono(0), wall_ns: Some(1_800_000_000_000_000_000) };
        Self { elector: Elector::new(config, now, 7), now }
    }

    fn leading(config: &'c Config, store: &mut Store) -> Self {
        let mut process = Self::new(config);
        process.give(Input::Tick, store);
        let token = process.elector.token().expect("elected");
        process.give(Input::Sealed(token), store);
        assert_eq!(process.elector.state(), State::Leading);
        process
    }

    fn tick_after(&mut self, span_ns: u64, store: &mut Store) {
        self.now.mono = self.now.mono.after(span_ns);
        self.now.wall_ns = self.now.wall_ns.map(|wall_ns| wall_ns + span_ns);
        self.give(Input::Tick, store);
    }

    /// Gives an input, and performs what is asked for in turn.
    fn give(&mut self, input: Input<'_>, store: &mut Store) {
        let mut request = self.elector.step(self.now, input).request;
        while let Some(Request { op, body, .. }) = request {
            let outcome = store.perform(body);
            request = self.elector.step(self.now, Input::Done { op, outcome, salt: 7 }).request;
        }
    }
}

/// One key, kept without the heap.
struct Store {
    buffer: [u8; MAX_LEN],
    len: usize,
    writes: u64,
    reads: u64,
}

impl Store {
    fn new() -> Self {
        Self { buffer: [0; MAX_LEN], len: 0, writes: 0, reads: 0 }
    }

    fn version(&self) -> Option<Version> {
        if self.writes == 0 { None } else { Version::new(&self.writes.to_be_bytes()) }
    }

    fn perform(&mut self, body: Body) -> Outcome<'_> {
        match body {
            Body::Read => {
                self.reads += 1;
                let Some(version) = self.version() else { return Outcome::Absent };
                let record = record::decode(&self.buffer[..self.len]);
                Outcome::Entry(Entry { record, version, age_ns: None })
            }
            Body::Write { expect, .. } if expect != self.version() => Outcome::Conflict,
            Body::Write { draft, .. } => {
                let (name, holder) = (Name::new("settlement"), Label::new("web-1"));
                let record = draft.record(name.expect("a name"), holder.expect("a label"), None);
                self.len = record::encode(&record, &mut self.buffer).expect("a record").len();
                self.writes += 1;
                self.version().map_or(Outcome::Unknown, Outcome::Applied)
            }
        }
    }
}
