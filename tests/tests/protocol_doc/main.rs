//! `docs/PROTOCOL.md` against the code: its generated blocks, its tables and its numbers.
//!
//! A generated block stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.
//! `LEASEHOLD_BLESS=1` rewrites the blocks instead of comparing them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use leasehold_core::fence::{
    Admitted, Advance, Digest, FenceRow, SealVerdict, StepRow, WriteVerdict, admit, seal,
};
use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{Authority, Cause, Config, Elector, State, TABLE, Timing};
use leasehold_core::record::{self, LeaseRecord};
use leasehold_core::store::Version;
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS, Mono, Now};
use leasehold_core::token::{Lineage, Nonce, Term, Token};

const BLESS: &str = "LEASEHOLD_BLESS";

/// A block's name, and what it is made by.
type Block = (&'static str, fn() -> String);

const BLOCKS: [Block; 6] = [
    ("record-example", record_example),
    ("lease-transitions", transitions),
    ("lease-diagram", diagram),
    ("seal-verdicts", seal_verdicts),
    ("write-verdicts", write_verdicts),
    ("exit-codes", exit_codes),
];

#[test]
fn the_generated_blocks_are_what_the_code_says() {
    let page = page();
    let expected = BLOCKS.iter().fold(page.clone(), |page, (name, generate)| {
        let (before, _, after) = split(&page, name);
        format!("{before}\n{}\n\n{after}", generate().trim_end())
    });
    if env::var_os(BLESS).is_some_and(|value| value == "1") {
        if expected != page {
            replace(&root().join("docs/PROTOCOL.md"), &expected);
        }
        return;
    }
    for (name, _) in BLOCKS {
        let ((_, is, _), (_, should, _)) = (split(&page, name), split(&expected, name));
        assert!(
            is == should,
            "docs/PROTOCOL.md, block `{name}`, is not what the code says; run this test with \
             {BLESS}=1, then read the change. Expected:\n{should}"
        );
    }
}

#[test]
fn every_block_of_the_page_is_generated() {
    let page = page();
    let marked: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("<!-- generated: ")).collect();
    let known: Vec<_> = BLOCKS.iter().map(|(name, _)| format!("{name} -->")).collect();
    assert_eq!(marked, known);
}

#[test]
fn the_key_table_has_the_records_keys_in_their_order() {
    let example = example();
    let keys =
        example.split(['{', ',']).filter_map(|pair| pair.strip_prefix('"')?.split_once("\":"));
    let keys: Vec<_> = keys.map(|(key, _)| key.to_owned()).collect();
    assert_eq!(first_column(&page(), "| key | value |"), keys, "left: the page, right: the code");
}

#[test]
fn the_lease_tables_name_every_state_and_every_cause_and_no_other() {
    let page = page();
    let states: BTreeSet<State> = TABLE.iter().flat_map(|(from, _, to)| [*from, *to]).collect();
    let causes: BTreeSet<Cause> = TABLE.iter().map(|(_, cause, _)| *cause).collect();
    assert_eq!(first_column(&page, "| state | meaning |"), names(states), "left: the page");
    assert_eq!(first_column(&page, "| cause | meaning |"), names(causes), "left: the page");
}

#[test]
fn the_numbers_of_the_text_are_the_codes() {
    let Advance::AtMost(reach) = Advance::default() else { panic!("a seal has a reach") };
    let page = page().replace('\n', " ");
    for text in [
        format!("at most {} bytes. ", record::MAX_LEN),
        format!("| `ttl_ms` | 1 to {}, ", grouped(record::MAX_TTL_MS.into())),
        format!("({} ppm, ", grouped(Drift::DEFAULT.ppm().into())),
        format!("; at most {} bytes.", Version::MAX_LEN),
        format!("reaches {} terms above the floor", grouped(reach)),
    ] {
        assert!(page.contains(&text), "docs/PROTOCOL.md should say {text:?}");
    }
}

/// The command is a program, not a library: its file of exit codes is read as text.
#[test]
fn the_exit_codes_are_those_of_the_command() {
    const OF_FENCE: &str = "1";
    const OF_SHELLS: [&str; 2] = ["126, 127", "else"];
    let source = read("host-wasmtime/cli/src/exit.rs");
    let constants = source.lines().filter_map(|line| line.split_once(": u8 = "));
    let codes = constants.map(|(_, code)| code.trim_end_matches(';').to_owned());
    let codes: BTreeSet<_> = codes.filter(|code| code != OF_FENCE).collect();
    let listed = first_column(&exit_codes(), "| code | meaning |").into_iter();
    let listed: BTreeSet<_> = listed.filter(|code| !OF_SHELLS.contains(&code.as_str())).collect();
    assert_eq!(listed, codes, "left: the table in README.md, right: the command's exit.rs");
}

fn record_example() -> String {
    format!("```json\n{}\n```", example())
}

fn example() -> String {
    let record = LeaseRecord {
        name: Name::new("settlement").expect("a name"),
        token: Token {
            lineage: Lineage(0x6f1d_27c0_9a4e_4b7b_8a53_1f0c_5d2e_9b38),
            term: Term::new(7).expect("a term"),
            nonce: Nonce(0x3b9a_c1f0_44d2_7e65),
        },
        state: record::State::Held { ask: None },
        holder: Label::new("web-1").expect("a label"),
        instance: Nonce(0xd05c_8e11_72fa_903b),
        ttl_ms: 15_000,
        attempt: Nonce(0x1e6b_57a9_c3d4_0f82),
        at_ms: Some(1_796_065_445_123),
        expires_by_ms: None,
    };
    let mut buffer = [0; record::MAX_LEN];
    let bytes = record::encode(&record, &mut buffer).expect("a record that fits");
    String::from_utf8(bytes.to_vec()).expect("ASCII")
}

fn transitions() -> String {
    let rows =
        TABLE.iter().map(|(from, cause, to)| format!("| `{from:?}` | `{cause:?}` | `{to:?}` |\n"));
    format!("| from | cause | to |\n|---|---|---|\n{}", rows.collect::<String>())
}

fn diagram() -> String {
    let rows =
        TABLE.iter().map(|(from, cause, to)| format!("    {from:?} --> {to:?}: {cause:?}\n"));
    let goes_on: BTreeSet<State> = TABLE.iter().map(|row| row.0).collect();
    let last: BTreeSet<State> =
        TABLE.iter().map(|row| row.2).filter(|to| !goes_on.contains(to)).collect();
    let ends = last.iter().map(|last| format!("    {last:?} --> [*]\n"));
    format!(
        "```mermaid\nstateDiagram-v2\n    [*] --> {:?}\n{}```",
        first_state(),
        rows.chain(ends).collect::<String>()
    )
}

fn first_state() -> State {
    let timing = Timing::from_ttl(15_000, 0, MILLISECOND_NS, Drift::DEFAULT);
    let clocks = Clocks { wall: false, resolution_ns: 1 };
    let config = Config::new(Nonce(1), timing, Authority::LocalObservation, clocks);
    let config = config.expect("a timing that fits");
    Elector::new(&config, Now { mono: Mono(0), wall_ns: None }, 1).state()
}

/// One row of a verdict table: in words, and as a test of the situation.
type Row<S> = (&'static str, fn(&S) -> bool);

/// What a guard said to one situation.
struct Answer {
    verdict: String,
    stored: &'static str,
}

impl Answer {
    /// A verdict as the page writes it: its name, and the names of its numbers.
    fn new(verdict: &impl Debug, stored: &'static str) -> Self {
        let text = format!("{verdict:?}");
        let verdict = match text.split_once(" { ") {
            None => text,
            Some((name, fields)) => {
                let fields = fields.trim_end_matches(" }").split(", ");
                let fields = fields.filter_map(|field| Some(field.split_once(':')?.0));
                format!("{name}{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
        };
        Self { verdict, stored }
    }

    fn name(&self) -> &str {
        self.verdict.split('{').next().unwrap_or_default()
    }
}

/// Asks the guard about every situation, and demands that all whose first fitting row is the same
/// get the same answer. Hence the rows are complete, in the right order, and none is idle.
fn verdicts<S: Debug>(
    situations: &[S],
    rows: &[Row<S>],
    decide: fn(&S) -> Answer,
    names: &[&str],
) -> String {
    let mut table = String::from("| first that fits | verdict | stored |\n|---|---|---|\n");
    let mut given = BTreeSet::new();
    for (place, (words, _)) in rows.iter().enumerate() {
        let fits =
            |situation: &&S| rows.iter().position(|(_, fits)| fits(situation)) == Some(place);
        let mut answers =
            situations.iter().filter(fits).map(|situation| (situation, decide(situation)));
        let (_, first) = answers.next().unwrap_or_else(|| panic!("no situation for {words:?}"));
        for (situation, answer) in answers {
            assert!(
                (&answer.verdict, answer.stored) == (&first.verdict, first.stored),
                "{words:?} gives {} and {}: {situation:?}",
                first.verdict,
                answer.verdict
            );
        }
        table += &format!("| {words} | `{}` | {} |\n", first.verdict, first.stored);
        given.insert(first.name().to_owned());
    }
    let unfit = situations.iter().find(|situation| !rows.iter().any(|(_, fits)| fits(situation)));
    assert!(unfit.is_none(), "no row fits {unfit:?}");
    assert_eq!(given, names.iter().map(ToString::to_string).collect(), "the verdicts of the code");
    table
}

const REACH: u64 = 2;
const OURS: Lineage = Lineage(1);
const NONCE: Nonce = Nonce(1);

#[derive(Debug)]
struct Seal {
    row: Option<FenceRow>,
    token: Token,
    advance: Advance,
}

impl Seal {
    fn on(&self, fits: fn(&FenceRow, u64) -> bool) -> bool {
        self.row.as_ref().is_some_and(|row| fits(row, self.token.term.get()))
    }
}

fn seal_verdicts() -> String {
    let rows: [Row<Seal>; 9] = [
        ("no row", |seal| seal.row.is_none()),
        ("retired", |seal| seal.on(|row, _| row.retired)),
        ("floor is 0", |seal| seal.on(|row, _| row.floor == 0)),
        ("another lineage", |seal| seal.on(|row, _| row.lineage != OURS)),
        ("term < floor", |seal| seal.on(|row, term| term < row.floor)),
        ("term = floor, same nonce", |seal| {
            seal.on(|row, term| term == row.floor && row.nonce == NONCE)
        }),
        ("term = floor, another nonce", |seal| {
            seal.on(|row, term| term == row.floor && row.nonce != NONCE)
        }),
        ("term beyond the reach, not proven", |seal| {
            seal.advance != Advance::Proven && seal.on(|row, term| term > row.floor + REACH)
        }),
        ("term > floor", |seal| seal.on(|row, term| term > row.floor)),
    ];
    let mut situations = Vec::new();
    for row in fence_rows() {
        for token in tokens() {
            for advance in [Advance::AtMost(REACH), Advance::Proven] {
                situations.push(Seal { row, token, advance });
            }
        }
    }
    let decide = |asked: &Seal| {
        let (verdict, next) = seal(asked.row.as_ref(), asked.token, asked.advance);
        let Token { lineage, term, nonce } = asked.token;
        match (asked.row, next) {
            (_, None) => Answer::new(&verdict, "nothing"),
            (Some(row), Some(next)) => {
                assert_eq!(next, FenceRow { lineage, floor: term.get(), nonce, ..row });
                Answer::new(&verdict, "lineage, floor, nonce: durable before the verdict is told")
            }
            (None, Some(next)) => panic!("{next:?} out of nothing"),
        }
    };
    verdicts(&situations, &rows, decide, SealVerdict::NAMES)
}

#[derive(Debug)]
struct Write {
    row: Option<FenceRow>,
    known: Option<StepRow>,
    token: Token,
    digest: Option<Digest>,
}

impl Write {
    fn on(&self, fits: fn(&FenceRow, u64) -> bool) -> bool {
        self.row.as_ref().is_some_and(|row| fits(row, self.token.term.get()))
    }
}

fn write_verdicts() -> String {
    let rows: [Row<Write>; 12] = [
        ("no row", |write| write.row.is_none()),
        ("floor is 0", |write| write.on(|row, _| row.floor == 0)),
        ("another lineage", |write| write.on(|row, _| row.lineage != OURS)),
        ("known step, cancelled", |write| write.known.is_some_and(|step| step.cancelled)),
        ("known step, same digest", |write| {
            write.known.is_some_and(|step| step.op_digest == write.digest)
        }),
        ("known step, another digest", |write| {
            write.known.is_some_and(|step| step.op_digest != write.digest)
        }),
        ("retired", |write| write.on(|row, _| row.retired)),
        ("term < floor", |write| write.on(|row, term| term < row.floor)),
        ("term > floor", |write| write.on(|row, term| term > row.floor)),
        ("term = floor, another nonce", |write| write.on(|row, _| row.nonce != NONCE)),
        ("2^63-1 writes counted", |write| write.on(|row, _| row.seq == Term::LAST.get())),
        ("term = floor, same nonce", |write| write.on(|row, term| term == row.floor)),
    ];
    let digests = [None, Some(Digest([1; 32])), Some(Digest([2; 32]))];
    let step = |op_digest, cancelled| Some(StepRow { op_digest, seq: 1, cancelled });
    let steps = digests.into_iter().flat_map(|digest| [step(digest, false), step(digest, true)]);
    let steps: Vec<_> = [None].into_iter().chain(steps).collect();
    let mut situations = Vec::new();
    for row in fence_rows() {
        for token in tokens() {
            for known in steps.iter().copied() {
                for digest in digests {
                    situations.push(Write { row, known, token, digest });
                }
            }
        }
    }
    let decide = |asked: &Write| {
        let (verdict, admitted) =
            admit(asked.row.as_ref(), asked.known.as_ref(), asked.token, asked.digest);
        match (asked.row, admitted) {
            (_, None) => Answer::new(&verdict, "nothing"),
            (Some(row), Some(Admitted { row: next, .. })) => {
                assert_eq!(next, FenceRow { seq: row.seq + 1, ..row });
                Answer::new(&verdict, "seq, the step if it has a name, and the effect: together")
            }
            (None, Some(next)) => panic!("{next:?} out of nothing"),
        }
    };
    verdicts(&situations, &rows, decide, WriteVerdict::NAMES)
}

fn fence_rows() -> Vec<Option<FenceRow>> {
    let mut rows = vec![None];
    for lineage in [OURS, Lineage(2)] {
        for floor in [0, 1, 3, 5] {
            for nonce in [NONCE, Nonce(2)] {
                for retired in [false, true] {
                    for seq in [0, 8, Term::LAST.get()] {
                        rows.push(Some(FenceRow { lineage, floor, nonce, retired, seq }));
                    }
                }
            }
        }
    }
    rows
}

fn tokens() -> impl Iterator<Item = Token> {
    let terms = (1..=9).chain([Term::LAST.get()]).filter_map(Term::new);
    terms.map(|term| Token { lineage: OURS, term, nonce: NONCE })
}

/// The table stands in README too, where its readers look first; there it is written.
fn exit_codes() -> String {
    table(&read("README.md"), "| code | meaning |").join("\n")
}

/// The lines of the table that begins with `header`.
fn table(text: &str, header: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != header);
    let table: Vec<_> = lines.take_while(|line| line.starts_with('|')).map(str::to_owned).collect();
    assert!(table.len() > 2, "no table with the header {header:?}");
    table
}

fn first_column(text: &str, header: &str) -> Vec<String> {
    let rows = table(text, header).into_iter().skip(2);
    let cell = |row: String| row.split('|').nth(1).map(|cell| cell.trim().replace('`', ""));
    rows.filter_map(cell).collect()
}

fn names<T: Debug>(all: BTreeSet<T>) -> Vec<String> {
    all.iter().map(|one| format!("{one:?}")).collect()
}

/// A number as the page writes it: 86400000 is 86 400 000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The page up to a block (with its marker), the block, and the rest (with the end marker).
fn split<'a>(page: &'a str, name: &str) -> (&'a str, &'a str, &'a str) {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->"));
    let start = page.find(&begin).map(|at| at + begin.len());
    let start = start.unwrap_or_else(|| panic!("docs/PROTOCOL.md lacks {begin:?}"));
    let len = page[start..].find(&end);
    let stop = start + len.unwrap_or_else(|| panic!("docs/PROTOCOL.md lacks {end:?}"));
    (&page[..start], &page[start..stop], &page[stop..])
}

fn page() -> String {
    read("docs/PROTOCOL.md")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    let path = root().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file} cannot be read: {error}"))
}

/// In one move: other tests read the page at the same time.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension(format!("{}.new", process::id()));
    fs::write(&new, text).expect("docs/ can be written");
    fs::rename(&new, path).expect("the page can be replaced");
}
