//! What an operator may write into a lease's record from outside: a wish for a hand-off, an end by
//! force, a tombstone where the record was lost.
//!
//! Each verb is a pure function over the record that was read, and its answer is written on the
//! condition that the record still has the version that was read. A conflict means: read again,
//! decide again.

use core::fmt;

use crate::label::{Label, Name, Note};
use crate::record::{self, Ask, LeaseRecord, State};
use crate::token::{Nonce, Term, Token};

/// Whose write it is: the operator's process, never one that may hold the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    /// For people: who did it.
    pub holder: Label<'a>,
    /// Drawn at the start of the operator's process.
    pub instance: Nonce,
    /// Fresh in every write.
    pub attempt: Nonce,
    /// Wall time, milliseconds since 1970, rounded down; none without a wall clock.
    pub at_ms: Option<u64>,
}

/// Adds a wish for a hand-off and changes nothing else: the holder finds it at its next renewal,
/// ends its work and offers the lease to `ask.to`. A later wish replaces an earlier one.
///
/// # Errors
/// [`Refusal::NotHeld`], [`Refusal::AlreadyHolds`].
pub fn ask<'a>(record: &LeaseRecord<'a>, ask: Ask<'a>) -> Result<LeaseRecord<'a>, Refusal> {
    let State::Held { .. } = record.state else { return Err(Refusal::NotHeld) };
    if record::names(ask.to, record.holder, record.instance) {
        return Err(Refusal::AlreadyHolds);
    }
    Ok(LeaseRecord { state: State::Held { ask: Some(ask) }, ..*record })
}

/// Ends whoever holds the lease, or is offered it, under a term of its own: the old holder's next
/// renewal finds that it has lost. Nobody holds the lease then, and others wait out the old ttl, so
/// exclusivity is kept. `nonce`: fresh.
///
/// # Errors
/// [`Refusal::AlreadyFree`], [`Refusal::NoReason`], [`Refusal::Exhausted`].
pub fn force<'a>(
    record: &LeaseRecord<'a>,
    signature: Signature<'a>,
    nonce: Nonce,
    reason: Note<'a>,
) -> Result<LeaseRecord<'a>, Refusal> {
    if let State::Released { .. } = record.state {
        return Err(Refusal::AlreadyFree);
    }
    if reason == Note::EMPTY {
        return Err(Refusal::NoReason);
    }
    let term = Term::new(record.token.term.get().saturating_add(1)).ok_or(Refusal::Exhausted)?;
    Ok(LeaseRecord {
        name: record.name,
        token: Token { term, nonce, ..record.token },
        state: State::Offered { to: None, note: reason },
        holder: signature.holder,
        instance: signature.instance,
        ttl_ms: record.ttl_ms,
        attempt: signature.attempt,
        at_ms: signature.at_ms,
        expires_by_ms: None,
    })
}

/// After [`force`]: frees the record at once. Exclusivity is waived until the old ttl has run,
/// since the old holder may not know yet; fencing is not.
///
/// # Errors
/// [`Refusal::NotForced`] where the record is not the one that this process forced.
pub fn waive<'a>(
    forced: &LeaseRecord<'a>,
    signature: Signature<'a>,
) -> Result<LeaseRecord<'a>, Refusal> {
    match forced.state {
        State::Offered { to: None, note }
            if note != Note::EMPTY && forced.instance == signature.instance =>
        {
            Ok(LeaseRecord {
                state: State::Released { note },
                attempt: signature.attempt,
                at_ms: signature.at_ms,
                ..*forced
            })
        }
        _ => Err(Refusal::NotForced),
    }
}

/// A tombstone in the place of a record that was lost, to be written only where the key is absent:
/// the next holder's term is above that of `after`, the last token that is known. Whoever held the
/// lost record must have been stopped first. `ttl_ms`: 1 to
/// [`MAX_TTL_MS`](crate::record::MAX_TTL_MS).
#[must_use]
pub fn init<'a>(
    name: Name<'a>,
    after: Token,
    signature: Signature<'a>,
    ttl_ms: u32,
) -> LeaseRecord<'a> {
    LeaseRecord {
        name,
        token: after,
        state: State::Released { note: Note::EMPTY },
        holder: signature.holder,
        instance: signature.instance,
        ttl_ms,
        attempt: signature.attempt,
        at_ms: signature.at_ms,
        expires_by_ms: None,
    }
}

/// Why an operator's wish changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody holds the lease, so nobody can hand it over.
    NotHeld,
    /// The one to hand it to holds it.
    AlreadyHolds,
    /// The lease is free.
    AlreadyFree,
    /// An end by force keeps its reason in the record.
    NoReason,
    /// The last term of the lineage has been used.
    Exhausted,
    /// The record is not what this operator left by force.
    NotForced,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHeld => "nobody holds the lease: there is nothing to hand over",
            Self::AlreadyHolds => "the one to hand it to holds it already",
            Self::AlreadyFree => "the lease is free already: nothing needs force",
            Self::NoReason => "say why: the reason is kept in the record",
            Self::Exhausted => "the last term of this lease has been used: use a new name",
            Self::NotForced => {
                "the lease has changed since it was released by force: look at it again"
            }
        })
    }
}

impl core::error::Error for Refusal {}
