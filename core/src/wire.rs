//! The one byte form of [`Input`] and [`Step`]: at the JavaScript boundary, in traces and tapes, in
//! fuzz corpora.
//!
//! A message is [`VERSION`], its kind, its body, and nothing after that:
//!
//! | byte | input | step |
//! |---|---|---|
//! | 0 | 1: the version | 1: the version |
//! | 1 | 1: the kind | 2: the kind |
//! | 2.. | `now: Now`, `input: Input` | `step: Step` |
//!
//! Every part is a tag, a number, a text, or parts one after another. Nothing is padded or aligned.
//!
//! | part | bytes |
//! |---|---|
//! | `uN` | N/8, the highest first (big-endian) |
//! | `bool` | 1: 0 no, 1 yes |
//! | `T?` | 1: 0 none, 1 some; then a `T` if some |
//! | `Mono`, `Nonce` | `u64` |
//! | `OpId` | `u32` |
//! | `Lineage` | `u128` |
//! | `Term` | `u64`, 1 to 2^63-1 |
//! | `Label` | `u8`, how many bytes follow (1 to 128); the text |
//! | `Version` | `u8`, how many bytes follow (0 to 40); the store's bytes |
//! | `Record` | `u16`, how many bytes follow; the canonical bytes of [`crate::record`] |
//!
//! | type | parts, in order |
//! |---|---|
//! | `Now` | `mono: Mono`, `wall_ns: u64?` |
//! | `Token` | `lineage: Lineage`, `term: Term`, `nonce: Nonce` |
//! | `Draft` | `token: Token`, `kind: Kind`, `instance: Nonce`, `ttl_ms: u32`, `attempt: Nonce`, `at_ms: u64?` |
//! | `Request` | `op: OpId`, `deadline: Mono`, `body: Body` |
//! | `Entry` | `record: Content`, `version: Version`, `age_ns: u64?` |
//! | `Owner` | `holder: Label`, `instance: Nonce`, `token: Token` |
//! | `Step` | `request: Request?`, `wake: Wake`, `event: Event?` |
//!
//! A choice is a tag of one byte, then the parts of what was chosen:
//!
//! | type | tag and parts |
//! |---|---|
//! | `Input` | 0 `Tick` · 1 `Done` `op: OpId`, `outcome: Outcome`, `salt: u64` · 2 `Sealed` `Token` · 3 `SealRefused` `token: Token`, `floor: u64?` · 4 `Drained` `Token` · 5 `Resign` `to: Label?` · 6 `Stop` · 7 `Disrupted` · 8 `Hint` `Entry?` · 9 `Adopt` `Token` |
//! | `Outcome` | 0 `Absent` · 1 `Entry` `Entry` · 2 `Applied` `Version` · 3 `Conflict` · 4 `Undecided` · 5 `Unavailable` · 6 `Unknown` · 7 `Gone` |
//! | `Content` | 0 a record, `Record` · 1 none, `RecordFault` |
//! | `Kind` | 0 `Held` · 1 `Offered` · 2 `Released` |
//! | `RecordFault` | 0 `Newer` `format: u64` · 1 `Malformed` `offset: u32` |
//! | `Body` | 0 `Read` · 1 `Write` `expect: Version?`, `draft: Draft` |
//! | `Wake` | 0 `Now` · 1 `At` `Mono` · 2 `Idle` |
//! | `Event` | 0 `Standby` `owner: Owner`, `alive: bool` · 1 `Elected` `token: Token` · 2 `Leading` `token: Token`, `stop_at: Mono` · 3 `Renewed` `until: Mono` · 4 `RenewalLate` `stop_at: Mono` · 5 `Demoted` `token: Token`, `reason: Reason`, `to: Label?` · 6 `Ended` `token: Token`, `how: How` · 7 `StoreDown` · 8 `StoreUp` · 9 `StoreFault` `StoreFault` · 10 `Stopped` |
//! | `Reason` | 0 `DeadlinePassed` · 1 `RivalSeen` · 2 `Forced` · 3 `RecordGone` · 4 `Refused` · 5 `SealFailed` · 6 `Twin` · 7 `Disrupted` · 8 `Resigned` · 9 `Asked` · 10 `Stopped` |
//! | `How` | 0 `Released` · 1 `Offered` · 2 `Expired` · 3 `DrainTimeout` · 4 `Lost` |
//! | `StoreFault` | 0 `RecordGone` · 1 `Malformed` `offset: u32` · 2 `Newer` `format: u64` · 3 `ForeignLineage` `known: Lineage`, `found: Lineage` · 4 `WentBack` `floor: u64`, `found: u64` · 5 `BeyondMaxAdvance` `floor: u64`, `found: u64` · 6 `Exhausted` |
//!
//! Within one version a tag is never used again for something else, and new ones go at the end.
//! Decoding accepts exactly what encoding writes, so two equal values have equal bytes and a tape
//! can be compared byte by byte.

mod layout;
mod part;

#[cfg(test)]
mod tests;

use core::fmt;

use crate::lease::{Input, Step};
use crate::record;
use crate::store::Entry;
use crate::time::Now;
use part::{Part, Reader, Writer};

/// The first byte of every message.
pub const VERSION: u8 = 1;

/// No message is longer, in bytes: a record, and less than 128 bytes around it.
pub const MAX_LEN: usize = record::MAX_LEN + 128;

const INPUT: u8 = 1;
const STEP: u8 = 2;

/// Writes an input and the sample it is given at into `buffer`, and returns the bytes.
///
/// # Errors
/// [`DoesNotFit`] where the buffer is too short ([`MAX_LEN`] bytes always suffice), or where the
/// input holds a record that [`record::encode`] refuses.
pub fn encode_input<'b>(
    now: Now,
    input: &Input<'_>,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], DoesNotFit> {
    encode(INPUT, &(now, *input), buffer)
}

/// Reads what [`encode_input`] wrote; the texts are borrowed from `bytes`.
///
/// # Errors
/// [`Malformed`] for anything that [`encode_input`] would not have written.
pub fn decode_input(bytes: &[u8]) -> Result<(Now, Input<'_>), Malformed> {
    decode(INPUT, bytes)
}

/// Writes an entry as it stands inside an input, for a host that writes the rest elsewhere and
/// has no reader of records there.
///
/// # Errors
/// [`DoesNotFit`] as for [`encode_input`].
pub fn encode_entry<'b>(entry: &Entry<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], DoesNotFit> {
    let mut to = Writer::new(buffer);
    entry.put(&mut to).and_then(|()| to.done()).ok_or(DoesNotFit)
}

/// Writes a step into `buffer`, and returns the bytes.
///
/// # Errors
/// [`DoesNotFit`] where the buffer is too short ([`MAX_LEN`] bytes always suffice).
pub fn encode_step<'b>(step: &Step<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], DoesNotFit> {
    encode(STEP, step, buffer)
}

/// Reads what [`encode_step`] wrote; the texts are borrowed from `bytes`.
///
/// # Errors
/// [`Malformed`] for anything that [`encode_step`] would not have written.
pub fn decode_step(bytes: &[u8]) -> Result<Step<'_>, Malformed> {
    decode(STEP, bytes)
}

fn encode<'a, 'b>(
    kind: u8,
    body: &impl Part<'a>,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], DoesNotFit> {
    let mut to = Writer::new(buffer);
    let written = (VERSION, kind).put(&mut to).and_then(|()| body.put(&mut to));
    written.and_then(|()| to.done()).ok_or(DoesNotFit)
}

fn decode<'a, T: Part<'a>>(kind: u8, bytes: &'a [u8]) -> Result<T, Malformed> {
    let mut from = Reader::new(bytes);
    from.expect(VERSION)?;
    from.expect(kind)?;
    let body = T::take(&mut from)?;
    from.end()?;
    Ok(body)
}

/// A buffer too short for a message, or a number in a record out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoesNotFit;

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message needs up to {MAX_LEN} bytes; {}", record::DoesNotFit)
    }
}

impl core::error::Error for DoesNotFit {}

/// Bytes that are no message of this version and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where the first unexpected part begins; the length where the bytes end too early.
    pub offset: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a message of version {VERSION} as leasehold writes it (byte {}): it was cut or changed, \
             is of the other kind, or comes from another version; write it anew with this one",
            self.offset
        )
    }
}

impl core::error::Error for Malformed {}
