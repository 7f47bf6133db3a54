//! The lease record and its canonical bytes.
//!
//! One line of JSON, exactly these sixteen keys in this order, no white space, no escapes, at
//! most [`MAX_LEN`] bytes:
//!
//! ```text
//! {"format":1,"name":"settlement","lineage":"<32 hex>","term":"7","nonce":"<16 hex>",
//!  "state":"held","holder":"web-1","instance":"<16 hex>","ttl_ms":15000,"attempt":"<16 hex>",
//!  "to":"","ask_id":"","ask_to":"","at":"2026-11-30T19:04:05.123Z","expires_by":"","note":""}
//! ```
//!
//! (without the line breaks). [`decode`] accepts exactly the bytes that [`encode`] would write, so
//! that every host on a store agrees byte for byte. What it refuses is never overwritten.

mod date;
mod read;
mod write;

use core::fmt;

use crate::label::{Label, Name, Note};
use crate::token::{self, Nonce, Token};

/// No record is longer, in bytes.
pub const MAX_LEN: usize = 2048;

/// The longest time to live, in milliseconds: one day.
pub const MAX_TTL_MS: u32 = 86_400_000;

/// What the store keeps under `lease/NAME`. Texts are borrowed; everything else is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRecord<'a> {
    /// Equals the name in the record's key.
    pub name: Name<'a>,
    /// Lineage, term and nonce of the last acquisition.
    pub token: Token,
    /// Whether somebody holds it, and what goes with that.
    pub state: State<'a>,
    /// Who acquired it, for people.
    pub holder: Label<'a>,
    /// Drawn per process start: what every decision reads instead of `holder`.
    pub instance: Nonce,
    /// How long the holder is believed without a renewal, 1 to [`MAX_TTL_MS`]; fixed for a term.
    /// While offered: how long others leave it to the one it is offered to.
    pub ttl_ms: u32,
    /// Names this write; an asker leaves it as it was.
    pub attempt: Nonce,
    /// Wall time of the write, milliseconds since 1970, for people; none without a wall clock.
    pub at_ms: Option<u64>,
    /// The holder's word, on a clock that vouches for its error, when the record is over at the
    /// latest: milliseconds since 1970, at most 2^63-1.
    pub expires_by_ms: Option<u64>,
}

/// The state of a lease, with the keys that only this state may fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Held, perhaps with a wish that it be handed over.
    Held {
        /// Somebody's wish for a hand-off; the next renewal clears it.
        ask: Option<Ask<'a>>,
    },
    /// Given up in favour of somebody; nobody holds it meanwhile.
    Offered {
        /// Label or instance of the one it is offered to; none: to nobody.
        to: Option<Label<'a>>,
        /// Why, if by force.
        note: Note<'a>,
    },
    /// Free, at once: the tombstone, which keeps the term.
    Released {
        /// Why, if by force.
        note: Note<'a>,
    },
}

impl State<'_> {
    /// The reason of a release by force.
    #[must_use]
    pub fn note(&self) -> Option<Note<'_>> {
        match self {
            Self::Held { .. } => None,
            Self::Offered { note, .. } | Self::Released { note } => {
                Some(*note).filter(|note| *note != Note::EMPTY)
            }
        }
    }

    /// The state without its texts.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Held { .. } => Kind::Held,
            Self::Offered { .. } => Kind::Offered,
            Self::Released { .. } => Kind::Released,
        }
    }
}

/// The three states by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `held`
    Held,
    /// `offered`
    Offered,
    /// `released`
    Released,
}

impl Kind {
    /// The word in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Offered => "offered",
            Self::Released => "released",
        }
    }
}

/// A wish for a hand-off, written into a held record by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Names the wish.
    pub id: Nonce,
    /// Whom the asker wants to hold the lease.
    pub to: Label<'a>,
}

/// Bytes that are no record of this format. Whoever meets one leaves it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// A later format: this build is too old for the store.
    Newer {
        /// The `format` it states; 2^64-1 for that and more.
        format: u64,
    },
    /// Not what [`encode`] writes.
    Malformed {
        /// Where the first unexpected byte stands.
        offset: usize,
    },
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { format } => write!(
                f,
                "the record has format {format} and this build reads format 1: use the \
                 newer leasehold"
            ),
            Self::Malformed { offset } => write!(
                f,
                "the record is not one that leasehold wrote (byte {offset}): somebody edited \
                 it; restore it by hand, it will not be overwritten"
            ),
        }
    }
}

impl core::error::Error for RecordFault {}

/// Writes the canonical bytes into `buffer` and returns them.
///
/// # Errors
/// [`DoesNotFit`] where the buffer is too short ([`MAX_LEN`] bytes always suffice) or a number is
/// outside its range: `ttl_ms`, `at_ms` past the year 2554, `expires_by_ms`.
pub fn encode<'b>(record: &LeaseRecord<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], DoesNotFit> {
    write::record(record, buffer).ok_or(DoesNotFit)
}

/// Reads canonical bytes; the texts are borrowed from them.
///
/// # Errors
/// [`RecordFault`] for anything that [`encode`] would not have written.
pub fn decode(bytes: &[u8]) -> Result<LeaseRecord<'_>, RecordFault> {
    read::record(bytes)
}

/// Reads the record that stands under the key of the lease `name`. One with another name is none.
///
/// # Errors
/// As for [`decode`].
pub fn decode_named<'a>(name: &str, bytes: &'a [u8]) -> Result<LeaseRecord<'a>, RecordFault> {
    const NAME_AT: usize = br#"{"format":1,"name":""#.len();
    let record = decode(bytes)?;
    if record.name.as_str() == name {
        Ok(record)
    } else {
        Err(RecordFault::Malformed { offset: NAME_AT })
    }
}

/// Whether `to`, as it stands in an offer or a wish, means this holder or this instance.
#[must_use]
pub fn names(to: Label<'_>, holder: Label<'_>, instance: Nonce) -> bool {
    to == holder || token::hex(to.as_str().as_bytes(), 16) == Some(instance.0.into())
}

/// A buffer too short for a record, or a number out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoesNotFit;

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a record needs up to {MAX_LEN} bytes, a ttl of 1 to {MAX_TTL_MS} ms and dates \
             before 2555"
        )
    }
}

impl core::error::Error for DoesNotFit {}

#[cfg(test)]
mod tests;
