//! Renewals per second through the core and the SQLite store, beside a bare compare-and-set loop
//! that writes the same bytes to the same file, in rounds taken in turn.
//!
//! Only the ratios mean something. What both put into SQLite's log is counted, and is the same.

mod set_clock;

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold_core::lease::Authority;
use leasehold_core::store::OpId;
use leasehold_core::token::Nonce;
use leasehold_host::clock::Clock as _;
use leasehold_host::protocol::{
    Body, Event, Input, LeaseId, Native, Open, OsEntropy, Outcome, Protocol as _, Request, Step,
};
use leasehold_host::store::{
    Answer, Check, Expect, Sqlite, SqliteOptions, Store as _, Transact, Write,
};
use leasehold_tests::{figure, holder};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use set_clock::SetClock;

/// Leases whose requests leave together. Two flights: while one is on its way, the other is
/// decided on, so that the store never waits for work.
const FLIGHT: usize = 32;
const LEASES: usize = 2 * FLIGHT;

fn main() {
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let full = SqliteOptions { busy: Duration::from_secs(5), ..Default::default() };
    let off = SqliteOptions { unsafe_no_sync: true, ..full };
    print("renewals.full", disk, full, Rounds { count: 9, turns: 8 });
    print("renewals.off", Path::new("/dev/shm"), off, Rounds { count: 51, turns: 64 });
}

struct Rounds {
    count: usize,
    /// How often each lease is renewed in a round.
    turns: usize,
}

fn print(name: &str, folder: &Path, options: SqliteOptions, Rounds { count, turns }: Rounds) {
    let folder = tempfile::tempdir_in(folder).expect("a folder for the store");
    let place = Place { folder };
    let mut holders = Holders::leading(&place.file(), options);
    let mut bare = Bare::beside(&place.file(), options);

    const COUNTED: usize = 8;
    let renewals = (LEASES * COUNTED) as u64;
    bare.empty_the_log();
    let written = holders.renew(COUNTED);
    let ours = Log::read(&place.log());
    bare.empty_the_log();
    bare.swap(&written);
    let beside = Log::read(&place.log());
    assert_eq!(bare.stored("lease"), bare.stored("plain"), "not the same bytes were stored");
    let each = |count: u64| {
        assert_eq!(count % renewals, 0, "{count} is no multiple of {renewals}");
        count / renewals
    };
    for (what, unit, ours, beside) in [
        ("commits", "commits", ours.commits, beside.commits),
        ("log", "bytes", ours.bytes, beside.bytes),
    ] {
        figure::print(&format!("{name}.{what}"), unit, each(ours), Some(each(beside)));
    }

    let per_second = |spans: &mut Vec<Duration>| {
        spans.sort_unstable();
        let renewals = (LEASES * turns) as u128;
        (renewals * 1_000_000_000 / spans[spans.len() / 2].as_nanos()) as u64
    };
    let (mut ours, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..count {
        // Both begin with an empty log, or one of them would move what the other has written.
        bare.empty_the_log();
        let start = Instant::now();
        let written = holders.renew(turns);
        ours.push(start.elapsed());
        bare.empty_the_log();
        let start = Instant::now();
        bare.swap(&written);
        beside.push(start.elapsed());
    }
    figure::print(name, "renewals/s", per_second(&mut ours), Some(per_second(&mut beside)));
}

/// Where the database and its log are.
struct Place {
    folder: TempDir,
}

impl Place {
    fn file(&self) -> PathBuf {
        self.folder.path().join("leases.db")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("leases.db-wal")
    }
}

/// Many holders over one store. Each lives in a time of its own, in which it is due when it is
/// asked and every answer comes at once.
struct Holders {
    runtime: tokio::runtime::Runtime,
    protocol: Native,
    clock: Arc<SetClock>,
    store: Sqlite,
    leases: Vec<Lease>,
    renew_ns: u64,
}

struct Lease {
    id: LeaseId,
    now_ns: u64,
}

/// One record that was written: of which lease, and what.
type Written = (usize, Vec<u8>);

struct InFlight {
    number: usize,
    op: OpId,
    answer: Answer<Transact>,
}

impl Holders {
    fn leading(path: &Path, options: SqliteOptions) -> Self {
        let clock = Arc::new(SetClock::default());
        let mut holders = Self {
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            protocol: Native::new(clock.clone(), Arc::new(OsEntropy)),
            clock,
            store: Sqlite::open(path, options).unwrap(),
            leases: Vec::with_capacity(LEASES),
            renew_ns: holder::config().timing().renew_ns,
        };
        (0..LEASES).for_each(|number| holders.lead(number));
        holders
    }

    fn lead(&mut self, number: usize) {
        let config = holder::config();
        let options = Open {
            name: name(number),
            holder: holder::LABEL.to_owned(),
            instance: Nonce(1),
            timing: *config.timing(),
            authority: Authority::LocalObservation,
            clocks: self.clock.clocks(),
        };
        self.clock.set(0);
        let id = self.protocol.open(&options).unwrap();
        self.leases.push(Lease { id, now_ns: 0 });
        let step = self.step(number, Input::Tick);
        let Some(Request { op, body: Body::Read, .. }) = step.request else {
            panic!("no read: {step:?}")
        };
        // The store is new.
        let step = self.step(number, Input::Done { op, outcome: Outcome::Absent });
        let (asked, _) = self.ask(number, step);
        let step = self.answered(asked);
        let Some(Event::Elected { token }) = step.event else { panic!("no election: {step:?}") };
        let step = self.step(number, Input::Sealed(token));
        let Some(Event::Leading { .. }) = step.event else { panic!("no lead: {step:?}") };
    }

    /// Renews every lease so many times. Gives what was written, in the order it was asked for.
    fn renew(&mut self, turns: usize) -> Vec<Written> {
        let mut written = Vec::with_capacity(LEASES * turns);
        let mut flights = [Vec::new(), Vec::new()];
        for _ in 0..turns {
            for (number, flight) in flights.iter_mut().enumerate() {
                self.land(mem::take(flight));
                *flight = self.depart(number * FLIGHT, &mut written);
            }
        }
        flights.into_iter().for_each(|flight| self.land(flight));
        written
    }

    fn depart(&mut self, first: usize, written: &mut Vec<Written>) -> Vec<InFlight> {
        let depart = |number: usize| {
            self.leases[number].now_ns += self.renew_ns;
            let step = self.step(number, Input::Tick);
            let (asked, value) = self.ask(number, step);
            written.push((number, value));
            asked
        };
        (first..first + FLIGHT).map(depart).collect()
    }

    /// The store answers in order: once the last answer is there all are, and nobody falls asleep
    /// and is woken for each.
    fn land(&mut self, flight: Vec<InFlight>) {
        for asked in flight.into_iter().rev() {
            let step = self.answered(asked);
            let Some(Event::Renewed { .. }) = step.event else { panic!("no renewal: {step:?}") };
        }
    }

    fn ask(&mut self, number: usize, step: Step) -> (InFlight, Vec<u8>) {
        let Some(Request { op, key, body: Body::Write { expect, value }, .. }) = step.request
        else {
            panic!("no write: {step:?}")
        };
        let expect = expect.map_or(Expect::Absent, Expect::Version);
        let check = Check { key: key.clone(), expect };
        let write = Write { key, value: value.clone() };
        let answer = self.store.transact(vec![check], vec![write]);
        (InFlight { number, op, answer }, value)
    }

    fn answered(&mut self, InFlight { number, op, answer }: InFlight) -> Step {
        let version = match self.runtime.block_on(answer) {
            Transact::Applied(versions) => versions[0],
            refused => panic!("not applied: {refused:?}"),
        };
        self.step(number, Input::Done { op, outcome: Outcome::Applied(version) })
    }

    fn step(&mut self, number: usize, input: Input) -> Step {
        let Lease { id, now_ns } = self.leases[number];
        self.clock.set(now_ns);
        self.protocol.step(id, input).unwrap()
    }
}

fn name(number: usize) -> String {
    format!("lease-{number:03}")
}

/// The same swaps without a lease: prepared statements on a connection of its own, in a loop.
struct Bare {
    connection: Connection,
    keys: Vec<String>,
    values: Vec<Vec<u8>>,
    written: i64,
    boot: String,
}

impl Bare {
    /// Begins with a copy of every record.
    fn beside(path: &Path, options: SqliteOptions) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(options.busy).unwrap();
        let synchronous = if options.unsafe_no_sync { "OFF" } else { "FULL" };
        connection.pragma_update(None, "synchronous", synchronous).unwrap();
        connection
            .execute_batch(
                "INSERT INTO leasehold_kv (key, value, written, boot)
                SELECT 'plain/' || substr(key, 7), value, written, boot FROM leasehold_kv",
            )
            .unwrap();
        let (written, boot) = connection
            .query_row("SELECT written, boot FROM leasehold_kv LIMIT 1", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let keys: Vec<String> =
            (0..LEASES).map(|number| format!("plain/{}", name(number))).collect();
        let values = keys.iter().map(|key| {
            let value = "SELECT CAST(value AS BLOB) FROM leasehold_kv WHERE key = ?";
            connection.query_row(value, [key], |row| row.get(0)).unwrap()
        });
        let values = values.collect();
        Self { connection, keys, values, written, boot }
    }

    fn swap(&mut self, records: &[Written]) {
        let prepare = |sql| self.connection.prepare(sql).unwrap();
        let mut begin = prepare("BEGIN IMMEDIATE");
        let mut update = prepare(
            "UPDATE leasehold_kv SET value = ?, written = ?, boot = ? WHERE key = ? AND value = ?",
        );
        let mut commit = prepare("COMMIT");
        for (number, new) in records {
            let (key, old) = (&self.keys[*number], &mut self.values[*number]);
            begin.execute([]).unwrap();
            let row = params![text(new), self.written, self.boot, key, text(old)];
            assert_eq!(update.execute(row).unwrap(), 1, "{key} was not as it had been left");
            commit.execute([]).unwrap();
            old.clone_from(new);
        }
    }

    /// All that is under keys which begin so.
    fn stored(&self, begin: &str) -> Vec<String> {
        let all = "SELECT value FROM leasehold_kv WHERE key LIKE ? || '/%' ORDER BY key";
        let mut all = self.connection.prepare(all).unwrap();
        let values = all.query_map([begin], |row| row.get(0)).unwrap();
        values.map(Result::unwrap).collect()
    }

    fn empty_the_log(&self) {
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        assert_eq!(busy, Ok(0), "somebody kept the log from being emptied");
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("a record is text")
}

/// What was written to the log since it was emptied, by SQLite's own file format.
struct Log {
    commits: u64,
    bytes: u64,
}

impl Log {
    fn read(path: &Path) -> Self {
        const HEADER: usize = 32;
        const FRAME_HEADER: usize = 24;
        let log = fs::read(path).unwrap();
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        let page = number(&log[8..12]) as usize;
        let frames = log[HEADER..].chunks_exact(FRAME_HEADER + page);
        assert!(frames.remainder().is_empty(), "a log of whole frames");
        // A frame that commits says how many pages the database has.
        let commits = frames.filter(|frame| number(&frame[4..8]) > 0).count() as u64;
        Self { commits, bytes: (log.len() - HEADER) as u64 }
    }
}
