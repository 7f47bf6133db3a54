//! The fence's tables: every verb asked about every small situation.

use std::collections::BTreeSet;
use std::fmt::Debug;

use leasehold_core::fence::{
    self, Admitted, AdoptVerdict, Advance, CancelVerdict, Digest, FenceRow, RecoverVerdict,
    RetireVerdict, SealVerdict, StepRow, WriteVerdict,
};
use leasehold_core::token::{Lineage, Nonce, Term, Token};

const REACH: u64 = 2;
const OURS: Lineage = Lineage(1);
const NONCE: Nonce = Nonce(1);

/// What a verb is asked about. The token is always of our lineage and nonce; the row varies.
#[derive(Clone, Copy, Debug)]
struct Situation {
    row: Option<FenceRow>,
    known: Option<StepRow>,
    token: Token,
    advance: Advance,
    digest: Option<Digest>,
}

impl Situation {
    fn on(&self, fits: fn(&FenceRow, u64) -> bool) -> bool {
        self.row.as_ref().is_some_and(|row| fits(row, self.token.term.get()))
    }
}

/// One row of a table: in words, and as a test of the situation.
type Row = (&'static str, fn(&Situation) -> bool);

const NO_ROW: Row = ("no row", |asked| asked.row.is_none());
const RETIRED: Row = ("retired", |asked| asked.on(|row, _| row.retired));
const UNSEALED: Row = ("floor is 0", |asked| asked.on(|row, _| row.floor == 0));
const FOREIGN: Row = ("floor is not 0, another lineage", |asked| {
    asked.on(|row, _| row.floor != 0 && row.lineage != OURS)
});
const BELOW: Row = ("term < floor", |asked| asked.on(|row, term| term < row.floor));
const NOT_ABOVE: Row = ("term <= floor", |asked| asked.on(|row, term| term <= row.floor));
const ABOVE: Row = ("term > floor", |asked| asked.on(|row, term| term > row.floor));
const BEYOND: Row = ("term beyond the reach, not proven", |asked| {
    asked.advance != Advance::Proven && asked.on(|row, term| term > row.floor + REACH)
});
const SAME: Row = ("term = floor, same nonce", |asked| {
    asked.on(|row, term| term == row.floor && row.nonce == NONCE)
});
const RIVAL: Row = ("term = floor, another nonce", |asked| {
    asked.on(|row, term| term == row.floor && row.nonce != NONCE)
});
const RETIRED_BY_SAME: Row = ("retired, term = floor, same nonce", |asked| {
    asked.on(|row, term| row.retired && term == row.floor && row.nonce == NONCE)
});
const FULL: Row = ("2^63-1 writes counted", |asked| asked.on(|row, _| row.seq == Term::LAST.get()));
const KNOWN: Row = ("known step", |asked| asked.known.is_some());
const KNOWN_CANCELLED: Row =
    ("known step, cancelled", |asked| asked.known.is_some_and(|step| step.cancelled));
const KNOWN_SAME: Row = ("known step, same digest", |asked| {
    asked.known.is_some_and(|step| step.op_digest == asked.digest)
});
const KNOWN_OTHER: Row = ("known step, another digest", |asked| {
    asked.known.is_some_and(|step| step.op_digest != asked.digest)
});

pub(crate) fn seal_verdicts() -> String {
    let rows = [NO_ROW, RETIRED, UNSEALED, FOREIGN, BELOW, SAME, RIVAL, BEYOND, ABOVE];
    verdicts(SealVerdict::NAMES, &rows, &reaching(), |asked| {
        let (verdict, next) = fence::seal(asked.row.as_ref(), asked.token, asked.advance);
        Answer::moving(asked, &verdict, next)
    })
}

pub(crate) fn read_verdicts() -> String {
    let rows = [NO_ROW, FOREIGN, RETIRED, UNSEALED, BELOW, SAME, RIVAL, BEYOND, ABOVE];
    verdicts(SealVerdict::NAMES, &rows, &reaching(), |asked| {
        let (verdict, next) = fence::read(asked.row.as_ref(), asked.token, asked.advance);
        Answer::moving(asked, &verdict, next)
    })
}

pub(crate) fn recover_verdicts() -> String {
    let rows = [NO_ROW, RETIRED, UNSEALED, FOREIGN, NOT_ABOVE, ABOVE];
    verdicts(RecoverVerdict::NAMES, &rows, &situations(), |asked| {
        let (verdict, next) = fence::recover(asked.row.as_ref(), asked.token);
        Answer::moving(asked, &verdict, next)
    })
}

pub(crate) fn adopt_verdicts() -> String {
    let rows = [NO_ROW, RETIRED, UNSEALED, FOREIGN, BELOW, SAME, RIVAL, ABOVE];
    verdicts(AdoptVerdict::NAMES, &rows, &situations(), |asked| {
        let (verdict, next) = fence::adopt(asked.row.as_ref(), asked.token);
        Answer::moving(asked, &verdict, next)
    })
}

pub(crate) fn retire_verdicts() -> String {
    let rows = [NO_ROW, UNSEALED, FOREIGN, RETIRED_BY_SAME, RETIRED, BELOW, ABOVE, RIVAL, SAME];
    verdicts(RetireVerdict::NAMES, &rows, &situations(), |asked| {
        let (verdict, next) = fence::retire(asked.row.as_ref(), asked.token);
        let Some(next) = next else { return Answer::new(&verdict, "nothing") };
        assert_eq!(Some(next), asked.row.map(|row| FenceRow { retired: true, ..row }));
        Answer::new(&verdict, "retired")
    })
}

pub(crate) fn write_verdicts() -> String {
    let rows = [
        NO_ROW,
        UNSEALED,
        FOREIGN,
        KNOWN_CANCELLED,
        KNOWN_SAME,
        KNOWN_OTHER,
        RETIRED,
        BELOW,
        ABOVE,
        RIVAL,
        FULL,
        SAME,
    ];
    verdicts(WriteVerdict::NAMES, &rows, &with_steps(), |asked| {
        let (row, known) = (asked.row.as_ref(), asked.known.as_ref());
        let (verdict, admitted) = fence::admit(row, known, asked.token, asked.digest);
        let Some(Admitted { row, step }) = admitted else {
            return Answer::new(&verdict, "nothing");
        };
        assert_eq!(Some(row), counted(asked.row));
        let expected = StepRow { op_digest: asked.digest, seq: row.seq, cancelled: false };
        assert_eq!(step, expected);
        Answer::new(&verdict, "seq, the step if it has a name, and the effect: together")
    })
}

pub(crate) fn cancel_verdicts() -> String {
    let rows = [
        NO_ROW,
        UNSEALED,
        FOREIGN,
        KNOWN_CANCELLED,
        KNOWN,
        RETIRED,
        BELOW,
        ABOVE,
        RIVAL,
        FULL,
        SAME,
    ];
    verdicts(CancelVerdict::NAMES, &rows, &with_steps(), |asked| {
        let (row, known) = (asked.row.as_ref(), asked.known.as_ref());
        let (verdict, tombstone) = fence::cancel(row, known, asked.token);
        let Some(Admitted { row, step }) = tombstone else {
            return Answer::new(&verdict, "nothing");
        };
        assert_eq!(Some(row), counted(asked.row));
        assert_eq!(step, StepRow { op_digest: None, seq: row.seq, cancelled: true });
        Answer::new(&verdict, "seq and the step, cancelled: together")
    })
}

fn counted(row: Option<FenceRow>) -> Option<FenceRow> {
    row.map(|row| FenceRow { seq: row.seq + 1, ..row })
}

/// What a verb said to one situation.
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

    /// Of a verb that moves the floor to the token, or changes nothing.
    fn moving(asked: &Situation, verdict: &impl Debug, next: Option<FenceRow>) -> Self {
        let Some(next) = next else { return Self::new(verdict, "nothing") };
        let Token { lineage, term, nonce } = asked.token;
        let moved = asked.row.map(|row| FenceRow { lineage, floor: term.get(), nonce, ..row });
        assert_eq!(Some(next), moved);
        Self::new(verdict, "lineage, floor, nonce: durable before the verdict is told")
    }

    fn name(&self) -> &str {
        self.verdict.split('{').next().unwrap_or_default()
    }
}

/// Asks the verb about every situation, and demands that all whose first fitting row is the same
/// get the same answer. Hence the rows are complete, in the right order, and none is idle.
fn verdicts(
    names: &[&str],
    rows: &[Row],
    situations: &[Situation],
    decide: fn(&Situation) -> Answer,
) -> String {
    let mut table = String::from("| first that fits | verdict | stored |\n|---|---|---|\n");
    let mut given = BTreeSet::new();
    for (place, (words, _)) in rows.iter().enumerate() {
        let fits = |situation: &&Situation| {
            rows.iter().position(|(_, fits)| fits(situation)) == Some(place)
        };
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

fn with_steps() -> Vec<Situation> {
    let digests = [None, Some(Digest([1; 32])), Some(Digest([2; 32]))];
    let step = |op_digest, cancelled| Some(StepRow { op_digest, seq: 1, cancelled });
    let steps = digests.into_iter().flat_map(|digest| [step(digest, false), step(digest, true)]);
    let steps: Vec<_> = [None].into_iter().chain(steps).collect();
    let mut all = Vec::new();
    for situation in situations() {
        for known in steps.iter().copied() {
            all.extend(digests.map(|digest| Situation { known, digest, ..situation }));
        }
    }
    all
}

fn reaching() -> Vec<Situation> {
    let reaches = [Advance::AtMost(REACH), Advance::Proven];
    let each = |situation| reaches.map(|advance| Situation { advance, ..situation });
    situations().into_iter().flat_map(each).collect()
}

fn situations() -> Vec<Situation> {
    let mut all = Vec::new();
    for row in fence_rows() {
        for term in (1..=9).chain([Term::LAST.get()]).filter_map(Term::new) {
            let token = Token { lineage: OURS, term, nonce: NONCE };
            let advance = Advance::default();
            all.push(Situation { row, known: None, token, advance, digest: None });
        }
    }
    all
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
