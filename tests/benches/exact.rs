//! What a decision costs, in figures that repeat exactly: instructions, allocations, bytes.
//!
//! Runs itself under callgrind as `exact WORK TIMES`, which does that work and nothing else. The
//! figures are those of one compiler and one kind of processor.

use std::env;
use std::hint::black_box;
use std::process::Command;

use leasehold_core::fence::{self, Advance, Digest, FenceRow, SealVerdict, WriteVerdict};
use leasehold_core::label::Name;
use leasehold_core::lease::{Config, Elector};
use leasehold_core::record::{self, MAX_LEN};
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use leasehold_tests::allocations::{Counting, allocations};
use leasehold_tests::figure;
use leasehold_tests::holder::{self, Holder};

#[global_allocator]
static COUNTING: Counting = Counting;

/// What is counted, each done as often as it is told.
type Work = fn(times: u64);

const WORKS: [(&str, Work); 5] = [
    ("renewal", renew),
    ("encoded-renewal", renew_and_encode),
    ("seal", seal),
    ("admit", admit),
    ("token", read_token),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => print(),
        [name, times] => work(name)(times.parse().expect("how often")),
        _ => panic!("expected nothing, or the name of a work and how often to do it"),
    }
}

fn print() {
    // Every renewal is written down, and every write comes with its token as text: the least that
    // is done anyway.
    let renewal = instructions("renewal");
    let encode = instructions("encoded-renewal") - renewal;
    let token = instructions("token");
    figure::print("renewal.instructions", "instructions", renewal, Some(encode));
    for name in ["seal", "admit"] {
        let figure = format!("{name}.instructions");
        figure::print(&figure, "instructions", instructions(name), Some(token));
    }
    for name in ["renewal", "seal", "admit"] {
        let figure = format!("{name}.allocations");
        let made = each(|times| allocations(|| work(name)(times)).1);
        figure::print(&figure, "allocations", made, None);
    }
    figure::print("elector.size", "bytes", size_of::<Elector<&Config>>() as u64, None);
    figure::print("config.size", "bytes", size_of::<Config>() as u64, None);
}

fn work(name: &str) -> Work {
    let named = WORKS.iter().find(|work| work.0 == name);
    named.unwrap_or_else(|| panic!("no work `{name}`")).1
}

/// What one more time costs, rounded up: whatever comes before and after drops out.
fn each(count: impl Fn(u64) -> u64) -> u64 {
    const TIMES: u64 = 1_000;
    (count(2 * TIMES) - count(TIMES)).div_ceil(TIMES)
}

fn instructions(work: &str) -> u64 {
    each(|times| collected(work, times))
}

/// All instructions of a process that does this work and nothing else.
fn collected(work: &str, times: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().expect("this program's path"))
        .args([work, &times.to_string()])
        .output()
        .unwrap_or_else(|error| {
            panic!("valgrind: {error}; install it, for example: apt-get install valgrind")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind failed:\n{said}");
    let total = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    total.unwrap_or_else(|| panic!("valgrind did not say what it collected:\n{said}"))
}

fn renew(times: u64) {
    let config = holder::config();
    let mut holder = Holder::leading(&config);
    for _ in 0..times {
        black_box(holder.renew());
    }
}

fn renew_and_encode(times: u64) {
    let config = holder::config();
    let mut holder = Holder::leading(&config);
    let (name, label) = (Name::new("settlement").expect("a name"), config.holder());
    let mut buffer = [0; MAX_LEN];
    for _ in 0..times {
        let record = black_box(holder.renew()).record(name, label, None);
        black_box(record::encode(&record, &mut buffer).expect("a record"));
    }
}

fn seal(times: u64) {
    let mut row = FenceRow::NEW;
    let mut token = black_box(token());
    for _ in 0..times {
        let (verdict, next) = fence::seal(black_box(Some(&row)), token, Advance::Proven);
        let SealVerdict::Sealed { .. } = verdict else { panic!("not sealed: {verdict:?}") };
        row = next.expect("a sealed row");
        token.term = Term::new(token.term.get() + 1).expect("a term");
    }
}

fn admit(times: u64) {
    let (token, digest) = (black_box(token()), black_box(Some(Digest([7; 32]))));
    let mut row = fence::seal(Some(&FenceRow::NEW), token, Advance::Proven).1.expect("a row");
    for _ in 0..times {
        let (verdict, next) = fence::admit(black_box(Some(&row)), None, token, digest);
        let WriteVerdict::Apply { .. } = verdict else { panic!("not applied: {verdict:?}") };
        row = next.expect("an admitted write").row;
    }
}

fn read_token(times: u64) {
    let text = token().to_string();
    for _ in 0..times {
        black_box(black_box(text.as_str()).parse::<Token>().expect("a token"));
    }
}

fn token() -> Token {
    Token { lineage: Lineage(1), term: Term::FIRST, nonce: Nonce(1) }
}
