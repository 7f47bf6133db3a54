//! Renewals through the core and the SQLite store, beside a bare compare-and-set loop that writes
//! the same records to the same file.
//!
//! A renewal alone costs the same commit and the same bytes of SQLite's log. Per second, many
//! renewals are timed in rounds taken in turn, where only the ratios mean something: those that
//! wait for the disk together share a commit, which the loop cannot do.

mod set_clock;

use std::fs;
use std::mem;
use std::ops::Range;
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
    let mut synced = Scene::new(disk, full);
    let mut unsynced = Scene::new(Path::new("/dev/shm"), off);

    let alone = synced.count_alone();
    assert_eq!(alone, unsynced.count_alone(), "syncing changes what is written");
    let [commits, bytes] = alone;
    figure::print("renewal.commits", "commits", commits.0, Some(commits.1));
    figure::print("renewal.log", "bytes", bytes.0, Some(bytes.1));
    assert!(alone.iter().all(|(ours, beside)| ours == beside), "more than the bare loop writes");

    synced.time("renewals.full", Rounds { count: 9, turns: 8 });
    unsynced.time("renewals.off", Rounds { count: 51, turns: 64 });
}

struct Rounds {
    count: usize,
    /// How often each lease is renewed in a round.
    turns: usize,
}

/// A store of many leases, and a bare connection to the same file.
struct Scene {
    holders: Holders,
    bare: Bare,
    log: PathBuf,
    _folder: TempDir,
}

impl Scene {
    fn new(folder: &Path, options: SqliteOptions) -> Self {
        let folder = tempfile::tempdir_in(folder).expect("a folder for the store");
        let path = folder.path().join("leases.db");
        let log = folder.path().join("leases.db-wal");
        let holders = Holders::leading(&path, options);
        let bare = Bare::beside(&path, options);
        Self { holders, bare, log, _folder: folder }
    }

    /// What a renewal that finds no other one waiting adds to SQLite's log: commits, and bytes.
    fn count_alone(&mut self) -> [(u64, u64); 2] {
        self.bare.empty_the_log();
        let written = self.holders.renew_one_by_one();
        let ours = Log::read(&self.log);
        self.bare.empty_the_log();
        self.bare.swap(&written);
        let beside = Log::read(&self.log);
        self.same_records();
        let each = |all: u64| {
            assert_eq!(all % LEASES as u64, 0, "{all} is no multiple of {LEASES}");
            all / LEASES as u64
        };
        [(ours.commits, beside.commits), (ours.bytes, beside.bytes)]
            .map(|(ours, beside)| (each(ours), each(beside)))
    }

    fn time(&mut self, name: &str, Rounds { count, turns }: Rounds) {
        let (mut ours, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..count {
            // Both begin with an empty log, or one would move what the other has written.
            self.bare.empty_the_log();
            let start = Instant::now();
            let written = self.holders.renew(turns);
            ours.push(start.elapsed());
            self.bare.empty_the_log();
            let start = Instant::now();
            self.bare.swap(&written);
            beside.push(start.elapsed());
            self.same_records();
        }
        let per_second = |mut spans: Vec<Duration>| {
            spans.sort_unstable();
            let renewals = (LEASES * turns) as u128;
            (renewals * 1_000_000_000 / spans[spans.len() / 2].as_nanos()) as u64
        };
        figure::print(name, "renewals/s", per_second(ours), Some(per_second(beside)));
    }

    fn same_records(&self) {
        let (ours, beside) = (self.bare.stored("lease"), self.bare.stored("plain"));
        assert!(ours.len() == LEASES && ours == beside, "not the same bytes were written");
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
                let first = number * FLIGHT;
                *flight = self.depart(first..first + FLIGHT, &mut written);
            }
        }
        flights.into_iter().for_each(|flight| self.land(flight));
        written
    }

    /// Renews every lease once, while no other renewal is on its way.
    fn renew_one_by_one(&mut self) -> Vec<Written> {
        let mut written = Vec::with_capacity(LEASES);
        for number in 0..LEASES {
            let alone = self.depart(number..number + 1, &mut written);
            self.land(alone);
        }
        written
    }

    fn depart(&mut self, numbers: Range<usize>, written: &mut Vec<Written>) -> Vec<InFlight> {
        let depart = |number: usize| {
            self.leases[number].now_ns += self.renew_ns;
            let step = self.step(number, Input::Tick);
            let (asked, value) = self.ask(number, step);
            written.push((number, value));
            asked
        };
        numbers.map(depart).collect()
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
        let busy =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
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
