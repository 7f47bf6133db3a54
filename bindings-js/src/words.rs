//! Plain values as 64-bit words: in JavaScript a `BigUint64Array`, which both sides take apart by
//! position. No words at all are a value that is absent.

use alloc::vec::Vec;

use leasehold_core::fence::{
    AdoptVerdict, CancelVerdict, Digest, FenceRow, RecoverVerdict, RetireVerdict, SealVerdict,
    StepRow, WriteVerdict,
};
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use wasm_bindgen::prelude::*;

/// Checks a token's text and gives its words.
#[wasm_bindgen(js_name = parseToken)]
pub fn parse_token(text: &str) -> Result<Vec<u64>, JsError> {
    Ok(of_token(text.parse()?).into())
}

/// Checks a digest's text and gives its words.
#[wasm_bindgen(js_name = parseDigest)]
pub fn parse_digest(text: &str) -> Result<Vec<u64>, JsError> {
    Ok(of_digest(text.parse()?).into())
}

/// Lineage (two words), term, nonce.
pub(crate) fn of_token(token: Token) -> [u64; 4] {
    let [high, low] = of_lineage(token.lineage);
    [high, low, token.term.get(), token.nonce.0]
}

pub(crate) fn token(words: &[u64]) -> Result<Token, JsError> {
    let &[high, low, term, nonce] = words else { return Err(unexpected("a token")) };
    let term = Term::new(term).ok_or_else(|| JsError::new("a term is 1 to 2^63-1"))?;
    Ok(Token { lineage: lineage(high, low), term, nonce: Nonce(nonce) })
}

/// Lineage (two words), floor, nonce, retired, seq.
pub(crate) fn of_fence_row(row: FenceRow) -> [u64; 6] {
    let [high, low] = of_lineage(row.lineage);
    [high, low, row.floor, row.nonce.0, row.retired.into(), row.seq]
}

pub(crate) fn fence_row(words: &[u64]) -> Result<Option<FenceRow>, JsError> {
    match *words {
        [] => Ok(None),
        [high, low, floor, nonce, retired, seq] => Ok(Some(FenceRow {
            lineage: lineage(high, low),
            floor,
            nonce: Nonce(nonce),
            retired: retired != 0,
            seq,
        })),
        _ => Err(unexpected("a fence's row")),
    }
}

/// Seq, cancelled, then the digest's words, if there is one.
pub(crate) fn of_step_row(row: StepRow) -> Vec<u64> {
    let mut words = Vec::from([row.seq, row.cancelled.into()]);
    words.extend(row.op_digest.into_iter().flat_map(of_digest));
    words
}

pub(crate) fn step_row(words: &[u64]) -> Result<Option<StepRow>, JsError> {
    match *words {
        [] => Ok(None),
        [seq, cancelled, ref op_digest @ ..] => {
            Ok(Some(StepRow { op_digest: digest(op_digest)?, seq, cancelled: cancelled != 0 }))
        }
        _ => Err(unexpected("a step's row")),
    }
}

pub(crate) fn of_digest(digest: Digest) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.0.as_chunks().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

pub(crate) fn digest(words: &[u64]) -> Result<Option<Digest>, JsError> {
    if !matches!(words.len(), 0 | 4) {
        return Err(unexpected("a digest"));
    }
    let mut digest = Digest([0; 32]);
    for (bytes, word) in digest.0.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_be_bytes();
    }
    Ok((!words.is_empty()).then_some(digest))
}

fn of_lineage(lineage: Lineage) -> [u64; 2] {
    [(lineage.0 >> 64) as u64, lineage.0 as u64]
}

fn lineage(high: u64, low: u64) -> Lineage {
    Lineage(u128::from(high) << 64 | u128::from(low))
}

/// The package never comes here: it checks what it is given, and says there what is wrong.
pub(crate) fn unexpected(what: &str) -> JsError {
    JsError::new(&alloc::format!("not the words of {what}: package and wasm are of two versions"))
}

/// What has always three words, so that what follows has its place: a tag and two fields, 0 where
/// there is none.
pub(crate) trait Verdict {
    fn words(self) -> [u64; 3];
}

fn tagged(tag: u64, fields: &[u64]) -> [u64; 3] {
    let field = |at| fields.get(at).copied().unwrap_or(0);
    [tag, field(0), field(1)]
}

/// The tags are places in the package's tables of verdicts.
macro_rules! verdicts {
    ($($verdict:ident { $($tag:literal $name:ident $({ $first:ident $(, $second:ident)? })?,)+ })+) => {
        $(impl Verdict for $verdict {
            fn words(self) -> [u64; 3] {
                match self {
                    $(Self::$name $({ $first $(, $second)? })? => {
                        tagged($tag, &[$($first.into() $(, $second.into())?)?])
                    })+
                }
            }
        })+
    };
}

verdicts! {
    SealVerdict {
        0 NoResource,
        1 Gone { floor },
        2 ForeignLineage,
        3 Fenced { floor },
        4 AlreadySealed { last_seq },
        5 Collision { floor },
        6 Implausible,
        7 Sealed { prev_floor, last_seq },
    }
    WriteVerdict {
        0 NoResource,
        1 NotSealed { floor },
        2 ForeignLineage,
        3 Cancelled,
        4 AlreadyApplied { seq, stale_holder },
        5 KeyReuse,
        6 Gone { floor },
        7 Fenced { floor },
        8 Collision { floor },
        9 Full,
        10 Apply { seq },
    }
    CancelVerdict {
        0 NoResource,
        1 NotSealed { floor },
        2 ForeignLineage,
        3 Cancelled,
        4 AlreadyApplied { seq, stale_holder },
        5 Gone { floor },
        6 Fenced { floor },
        7 Collision { floor },
        8 Full,
        9 Tombstoned { seq },
    }
    RetireVerdict {
        0 NoResource,
        1 NotSealed { floor },
        2 ForeignLineage,
        3 AlreadyRetired,
        4 Gone { floor },
        5 Fenced { floor },
        6 Collision { floor },
        7 Retired,
    }
    RecoverVerdict {
        0 NoResource,
        1 Gone { floor },
        2 ForeignLineage,
        3 Kept { floor },
        4 Recovered { prev_floor, last_seq },
    }
    AdoptVerdict {
        0 NoResource,
        1 Gone { floor },
        2 Fenced { floor },
        3 AlreadySealed { last_seq },
        4 Collision { floor },
        5 Adopted { prev_floor, last_seq },
    }
}
