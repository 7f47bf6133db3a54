//! `docs/PROTOCOL.md` against the code: its generated blocks, its tables and its numbers.
//!
//! A generated block stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.
//! `LEASEHOLD_BLESS=1` rewrites the blocks instead of comparing them.

mod fence;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use leasehold_core::fence::Advance;
use leasehold_core::label::{Label, Name};
use leasehold_core::lease::{Authority, Cause, Config, Elector, State, TABLE};
use leasehold_core::observe::Reason;
use leasehold_core::record::{self, LeaseRecord};
use leasehold_core::store::Version;
use leasehold_core::time::{Clocks, Drift, MILLISECOND_NS, Mono, Now};
use leasehold_core::timing::Timing;
use leasehold_core::token::{Lineage, Nonce, Term, Token};

const BLESS: &str = "LEASEHOLD_BLESS";

/// A block's name, and what it is made by.
type Block = (&'static str, fn() -> String);

const BLOCKS: [Block; 12] = [
    ("record-example", record_example),
    ("reasons", reasons),
    ("lease-transitions", transitions),
    ("lease-diagram", diagram),
    ("seal-verdicts", fence::seal_verdicts),
    ("read-verdicts", fence::read_verdicts),
    ("write-verdicts", fence::write_verdicts),
    ("cancel-verdicts", fence::cancel_verdicts),
    ("retire-verdicts", fence::retire_verdicts),
    ("recover-verdicts", fence::recover_verdicts),
    ("adopt-verdicts", fence::adopt_verdicts),
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

fn reasons() -> String {
    let all = [
        Reason::DeadlinePassed,
        Reason::RivalSeen,
        Reason::Forced,
        Reason::RecordGone,
        Reason::Refused,
        Reason::SealFailed,
        Reason::Twin,
        Reason::Disrupted,
        Reason::Resigned,
        Reason::Asked,
        Reason::Stopped,
    ];
    let rows = all.map(|reason| {
        let may_finish = if reason.is_gentle() { "yes" } else { "no" };
        format!("| `{reason:?}` | {may_finish} | {reason} |\n")
    });
    format!("| reason | may finish | in words |\n|---|---|---|\n{}", rows.concat())
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
    let holder = Label::new("web-1").expect("a label");
    let config = Config::new(Nonce(1), holder, timing, Authority::LocalObservation, clocks)
        .expect("a timing that fits");
    Elector::new(&config, Now { mono: Mono(0), wall_ns: None }, 1).state()
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
