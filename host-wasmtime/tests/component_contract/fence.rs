//! The component's rules beside the core's, over every small row and token.

use leasehold_core::fence::{
    Admitted, AdoptVerdict, Advance, CancelVerdict, Digest, FenceRow, RecoverVerdict,
    RetireVerdict, SealVerdict, StepRow, WriteVerdict, admit, adopt, cancel, read, recover, retire,
    seal,
};
use leasehold_core::token::{Lineage, Nonce, Term, Token};

use crate::guest::{fence as wit, fresh, wit as types};

const LINEAGES: [Lineage; 2] = [Lineage(7), Lineage(7 << 64)];
const NUMBERS: [u64; 6] = [0, 1, 2, 3, Term::LAST.get(), u64::MAX];

#[test]
fn seals_and_reads_are_the_same_inside_and_outside() {
    let (protocol, mut store) = fresh();
    let rules = protocol.leasehold_protocol_fence();
    let mut names = Vec::new();
    for row in rows() {
        for token in tokens() {
            for advance in
                [Advance::AtMost(0), Advance::AtMost(1), Advance::AtMost(2), Advance::Proven]
            {
                let (verdict, next) = seal(row.as_ref(), token, advance);
                names.push(verdict.name());
                let answer = rules
                    .call_seal(&mut store, row.map(wit_row), wit_token(token), wit_advance(advance))
                    .unwrap()
                    .unwrap();
                let expected = (wit_seal_verdict(verdict), next.map(wit_row));
                assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");

                let (verdict, next) = read(row.as_ref(), token, advance);
                let answer = rules
                    .call_read(&mut store, row.map(wit_row), wit_token(token), wit_advance(advance))
                    .unwrap()
                    .unwrap();
                let expected = (wit_seal_verdict(verdict), next.map(wit_row));
                assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");
            }
        }
    }
    assert_all_seen(SealVerdict::NAMES, &names);
}

#[test]
fn an_admission_is_the_same_inside_and_outside() {
    let (protocol, mut store) = fresh();
    let rules = protocol.leasehold_protocol_fence();
    let digests = [None, Some(Digest([1; 32])), Some(Digest([2; 32]))];
    let mut names = Vec::new();
    for row in rows() {
        for known in steps(&digests) {
            for token in tokens() {
                for digest in digests {
                    let (verdict, next) = admit(row.as_ref(), known.as_ref(), token, digest);
                    names.push(verdict.name());
                    let answer = rules
                        .call_admit(
                            &mut store,
                            row.map(wit_row),
                            known.map(wit_step).as_ref(),
                            wit_token(token),
                            digest.as_ref().map(|digest| digest.0.as_slice()),
                        )
                        .unwrap()
                        .unwrap();
                    let expected = (wit_write_verdict(verdict), next.map(wit_admitted));
                    assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");
                }
            }
        }
    }
    assert_all_seen(WriteVerdict::NAMES, &names);
}

#[test]
fn a_cancellation_is_the_same_inside_and_outside() {
    let (protocol, mut store) = fresh();
    let rules = protocol.leasehold_protocol_fence();
    let mut names = Vec::new();
    for row in rows() {
        for known in steps(&[None, Some(Digest([1; 32]))]) {
            for token in tokens() {
                let (verdict, next) = cancel(row.as_ref(), known.as_ref(), token);
                names.push(verdict.name());
                let step = known.map(wit_step);
                let answer = rules
                    .call_cancel(&mut store, row.map(wit_row), step.as_ref(), wit_token(token))
                    .unwrap()
                    .unwrap();
                let expected = (wit_cancel_verdict(verdict), next.map(wit_admitted));
                assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");
            }
        }
    }
    assert_all_seen(CancelVerdict::NAMES, &names);
}

#[test]
fn what_changes_a_whole_resource_is_the_same_inside_and_outside() {
    let (protocol, mut store) = fresh();
    let rules = protocol.leasehold_protocol_fence();
    let mut names = [Vec::new(), Vec::new(), Vec::new()];
    for row in rows() {
        for token in tokens() {
            let (stored, asked) = (row.map(wit_row), wit_token(token));

            let (verdict, next) = retire(row.as_ref(), token);
            names[0].push(verdict.name());
            let answer = rules.call_retire(&mut store, stored, asked).unwrap().unwrap();
            let expected = (wit_retire_verdict(verdict), next.map(wit_row));
            assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");

            let (verdict, next) = recover(row.as_ref(), token);
            names[1].push(verdict.name());
            let answer = rules.call_recover(&mut store, stored, asked).unwrap().unwrap();
            let expected = (wit_recover_verdict(verdict), next.map(wit_row));
            assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");

            let (verdict, next) = adopt(row.as_ref(), token);
            names[2].push(verdict.name());
            let answer = rules.call_adopt(&mut store, stored, asked).unwrap().unwrap();
            let expected = (wit_adopt_verdict(verdict), next.map(wit_row));
            assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{row:?} {token}");
        }
    }
    let all = [RetireVerdict::NAMES, RecoverVerdict::NAMES, AdoptVerdict::NAMES];
    for (all, seen) in all.into_iter().zip(&names) {
        assert_all_seen(all, seen);
    }
}

fn assert_all_seen(all: &[&str], seen: &[&str]) {
    for name in all {
        assert!(seen.contains(name), "the grid never meets {name}");
    }
}

fn rows() -> Vec<Option<FenceRow>> {
    let mut rows = vec![None];
    for lineage in LINEAGES {
        for floor in NUMBERS {
            for seq in [0, 1, Term::LAST.get(), u64::MAX] {
                for retired in [false, true] {
                    rows.push(Some(FenceRow { lineage, floor, nonce: Nonce(1), retired, seq }));
                }
            }
        }
    }
    rows
}

fn steps(digests: &[Option<Digest>]) -> Vec<Option<StepRow>> {
    let mut steps = vec![None];
    for op_digest in digests {
        for cancelled in [false, true] {
            steps.push(Some(StepRow { op_digest: *op_digest, seq: 5, cancelled }));
        }
    }
    steps
}

fn tokens() -> Vec<Token> {
    let mut tokens = Vec::new();
    for lineage in LINEAGES {
        for term in NUMBERS.into_iter().filter_map(Term::new) {
            for nonce in [Nonce(1), Nonce(u64::MAX)] {
                tokens.push(Token { lineage, term, nonce });
            }
        }
    }
    tokens
}

fn wit_lineage(lineage: Lineage) -> types::Lineage {
    types::Lineage { high: (lineage.0 >> 64) as u64, low: lineage.0 as u64 }
}

fn wit_token(token: Token) -> types::Token {
    let Token { lineage, term, nonce } = token;
    types::Token { lineage: wit_lineage(lineage), term: term.get(), nonce: nonce.0 }
}

fn wit_advance(advance: Advance) -> wit::Advance {
    match advance {
        Advance::AtMost(terms) => wit::Advance::AtMost(terms),
        Advance::Proven => wit::Advance::Proven,
    }
}

fn wit_row(row: FenceRow) -> wit::FenceRow {
    let FenceRow { lineage, floor, nonce, retired, seq } = row;
    wit::FenceRow { lineage: wit_lineage(lineage), floor, nonce: nonce.0, retired, seq }
}

fn wit_step(row: StepRow) -> wit::StepRow {
    let StepRow { op_digest, seq, cancelled } = row;
    wit::StepRow { op_digest: op_digest.map(|digest| digest.0.to_vec()), seq, cancelled }
}

fn wit_admitted(admitted: Admitted) -> wit::Admitted {
    wit::Admitted { row: wit_row(admitted.row), step: wit_step(admitted.step) }
}

fn wit_seal_verdict(verdict: SealVerdict) -> wit::SealVerdict {
    match verdict {
        SealVerdict::NoResource => wit::SealVerdict::NoResource,
        SealVerdict::Gone { floor } => wit::SealVerdict::Gone(floor),
        SealVerdict::ForeignLineage => wit::SealVerdict::ForeignLineage,
        SealVerdict::Fenced { floor } => wit::SealVerdict::Fenced(floor),
        SealVerdict::AlreadySealed { last_seq } => wit::SealVerdict::AlreadySealed(last_seq),
        SealVerdict::Collision { floor } => wit::SealVerdict::Collision(floor),
        SealVerdict::Implausible => wit::SealVerdict::Implausible,
        SealVerdict::Sealed { prev_floor, last_seq } => {
            wit::SealVerdict::Sealed(wit::Sealed { prev_floor, last_seq })
        }
    }
}

fn wit_write_verdict(verdict: WriteVerdict) -> wit::WriteVerdict {
    match verdict {
        WriteVerdict::NoResource => wit::WriteVerdict::NoResource,
        WriteVerdict::NotSealed { floor } => wit::WriteVerdict::NotSealed(floor),
        WriteVerdict::ForeignLineage => wit::WriteVerdict::ForeignLineage,
        WriteVerdict::Cancelled => wit::WriteVerdict::Cancelled,
        WriteVerdict::AlreadyApplied { seq, stale_holder } => {
            wit::WriteVerdict::AlreadyApplied(wit::Applied { seq, stale_holder })
        }
        WriteVerdict::KeyReuse => wit::WriteVerdict::KeyReuse,
        WriteVerdict::Gone { floor } => wit::WriteVerdict::Gone(floor),
        WriteVerdict::Fenced { floor } => wit::WriteVerdict::Fenced(floor),
        WriteVerdict::Collision { floor } => wit::WriteVerdict::Collision(floor),
        WriteVerdict::Full => wit::WriteVerdict::Full,
        WriteVerdict::Apply { seq } => wit::WriteVerdict::Apply(seq),
    }
}

fn wit_cancel_verdict(verdict: CancelVerdict) -> wit::CancelVerdict {
    match verdict {
        CancelVerdict::NoResource => wit::CancelVerdict::NoResource,
        CancelVerdict::NotSealed { floor } => wit::CancelVerdict::NotSealed(floor),
        CancelVerdict::ForeignLineage => wit::CancelVerdict::ForeignLineage,
        CancelVerdict::Cancelled => wit::CancelVerdict::Cancelled,
        CancelVerdict::AlreadyApplied { seq, stale_holder } => {
            wit::CancelVerdict::AlreadyApplied(wit::Applied { seq, stale_holder })
        }
        CancelVerdict::Gone { floor } => wit::CancelVerdict::Gone(floor),
        CancelVerdict::Fenced { floor } => wit::CancelVerdict::Fenced(floor),
        CancelVerdict::Collision { floor } => wit::CancelVerdict::Collision(floor),
        CancelVerdict::Full => wit::CancelVerdict::Full,
        CancelVerdict::Tombstoned { seq } => wit::CancelVerdict::Tombstoned(seq),
    }
}

fn wit_retire_verdict(verdict: RetireVerdict) -> wit::RetireVerdict {
    match verdict {
        RetireVerdict::NoResource => wit::RetireVerdict::NoResource,
        RetireVerdict::NotSealed { floor } => wit::RetireVerdict::NotSealed(floor),
        RetireVerdict::ForeignLineage => wit::RetireVerdict::ForeignLineage,
        RetireVerdict::AlreadyRetired => wit::RetireVerdict::AlreadyRetired,
        RetireVerdict::Gone { floor } => wit::RetireVerdict::Gone(floor),
        RetireVerdict::Fenced { floor } => wit::RetireVerdict::Fenced(floor),
        RetireVerdict::Collision { floor } => wit::RetireVerdict::Collision(floor),
        RetireVerdict::Retired => wit::RetireVerdict::Retired,
    }
}

fn wit_recover_verdict(verdict: RecoverVerdict) -> wit::RecoverVerdict {
    match verdict {
        RecoverVerdict::NoResource => wit::RecoverVerdict::NoResource,
        RecoverVerdict::Gone { floor } => wit::RecoverVerdict::Gone(floor),
        RecoverVerdict::ForeignLineage => wit::RecoverVerdict::ForeignLineage,
        RecoverVerdict::Kept { floor } => wit::RecoverVerdict::Kept(floor),
        RecoverVerdict::Recovered { prev_floor, last_seq } => {
            wit::RecoverVerdict::Recovered(wit::Sealed { prev_floor, last_seq })
        }
    }
}

fn wit_adopt_verdict(verdict: AdoptVerdict) -> wit::AdoptVerdict {
    match verdict {
        AdoptVerdict::NoResource => wit::AdoptVerdict::NoResource,
        AdoptVerdict::Gone { floor } => wit::AdoptVerdict::Gone(floor),
        AdoptVerdict::Fenced { floor } => wit::AdoptVerdict::Fenced(floor),
        AdoptVerdict::AlreadySealed { last_seq } => wit::AdoptVerdict::AlreadySealed(last_seq),
        AdoptVerdict::Collision { floor } => wit::AdoptVerdict::Collision(floor),
        AdoptVerdict::Adopted { prev_floor, last_seq } => {
            wit::AdoptVerdict::Adopted(wit::Sealed { prev_floor, last_seq })
        }
    }
}
