//! The guard at a resource: which token may seal it, and which write it admits.
//!
//! Both verbs are pure functions over the stored row. The host reads the row, calls the rule, and
//! commits the returned row in ONE transaction with the effect, conditional on the row that was
//! read. A row that could not be committed means that the verdict was never given.
//! [`crate::guard`] holds the same rules as text for engines that run them themselves.

use core::fmt;
use core::str::FromStr;

use crate::token::{self, Lineage, Nonce, Term, Token};

/// What a resource keeps for ever: the token it was last sealed with, and how many writes it has
/// accepted. The row is created explicitly; a missing row is never taken for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceRow {
    /// The only history of terms that this resource obeys. Means nothing while `floor` is 0.
    pub lineage: Lineage,
    /// The term of the last seal: no write below it is ever accepted. 0: never sealed.
    pub floor: u64,
    /// The nonce of the last seal. Means nothing while `floor` is 0.
    pub nonce: Nonce,
    /// Closed for good: only the answers to known steps are still given.
    pub retired: bool,
    /// Writes accepted so far, at most 2^63-1.
    pub seq: u64,
}

impl FenceRow {
    /// A resource that was created and never sealed.
    pub const NEW: Self =
        Self { lineage: Lineage(0), floor: 0, nonce: Nonce(0), retired: false, seq: 0 };
}

/// What a resource keeps of one step, as long as the resource lives: pruned by age, a late
/// duplicate would be applied again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// What the step did, if its writer said so.
    pub op_digest: Option<Digest>,
    /// The number of the write that applied it.
    pub seq: u64,
    /// Never applied, and never to be.
    pub cancelled: bool,
}

/// A SHA-256. Text: 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

/// A token further above a floor, or a floor further above a record, than so many terms is no
/// rolled-back store but a mistake.
pub const MAX_ADVANCE: u64 = 1_000_000;

/// How far above the floor a seal may go. A corrupt term near the end of its range would shut the
/// resource for everyone after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// At most this many terms: the caller has the token from hearsay.
    AtMost(u64),
    /// Any distance: the caller has read the lease's record and found this token in it.
    Proven,
}

impl Default for Advance {
    /// 1 000 000 terms: a lease that changes hands every second takes eleven days to get there.
    fn default() -> Self {
        Self::AtMost(MAX_ADVANCE)
    }
}

impl Advance {
    const fn allows(self, terms: u64) -> bool {
        match self {
            Self::AtMost(max) => terms <= max,
            Self::Proven => true,
        }
    }
}

/// An enum whose variants also have their name as text: what vectors, SQL messages and people see.
macro_rules! verdict {
    (
        $(#[$docs:meta])* $verdict:ident
        { $($(#[$about:meta])* $name:ident $({ $($(#[$field_about:meta])* $field:ident: $type:ty),+ })?,)+ }
    ) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[must_use]
        pub enum $verdict {
            $($(#[$about])* $name $({ $($(#[$field_about])* $field: $type),+ })?,)+
        }

        impl $verdict {
            /// Every verdict's name.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The variant's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name { .. } => stringify!($name),)+
                }
            }
        }
    };
}

verdict! {
    /// The answer to a seal.
    SealVerdict {
        /// No such resource: create it first.
        NoResource,
        /// The resource is closed for good.
        Gone {
            /// Its last floor.
            floor: u64
        },
        /// The row keeps another lease's terms: only an explicit adoption changes that.
        ForeignLineage,
        /// A later holder has sealed.
        Fenced {
            /// The later holder's term.
            floor: u64
        },
        /// This very token has sealed before.
        AlreadySealed {
            /// Writes accepted so far.
            last_seq: u64
        },
        /// Another acquisition of the same term has sealed: the first stays.
        Collision {
            /// That term.
            floor: u64
        },
        /// Too far above the floor, and not proven by the lease's record.
        Implausible,
        /// From now on only this token writes.
        Sealed {
            /// The floor before; 0: never sealed.
            prev_floor: u64,
            /// Writes accepted so far, all of them by earlier tokens.
            last_seq: u64
        },
    }
}

verdict! {
    /// The answer to a write.
    WriteVerdict {
        /// No such resource: create it first.
        NoResource,
        /// The token has not sealed the resource.
        NotSealed {
            /// The term that has; 0: none.
            floor: u64
        },
        /// The row keeps another lease's terms.
        ForeignLineage,
        /// The step was cancelled before it was applied.
        Cancelled,
        /// The step is done: do not apply it again.
        AlreadyApplied {
            /// The number of the write that applied it.
            seq: u64,
            /// The token asking is below the floor: its holder must stop.
            stale_holder: bool
        },
        /// The step is done, and it was another operation.
        KeyReuse,
        /// The resource is closed for good.
        Gone {
            /// Its last floor.
            floor: u64
        },
        /// A later holder has sealed.
        Fenced {
            /// The later holder's term.
            floor: u64
        },
        /// Another acquisition of the same term has sealed.
        Collision {
            /// That term.
            floor: u64
        },
        /// No room to record the write: here, 2^63-1 writes have been counted.
        Full,
        /// Apply the effect, and commit it with the rows of [`Admitted`].
        Apply {
            /// The number of this write.
            seq: u64
        },
    }
}

/// The rows to commit with an admitted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The resource's row.
    pub row: FenceRow,
    /// The step's row. A write without a step stores none.
    pub step: StepRow,
}

/// Raises the floor to `token`. The returned row is to be durable before anyone hears the verdict;
/// no row: nothing changes.
pub fn seal(
    row: Option<&FenceRow>,
    token: Token,
    advance: Advance,
) -> (SealVerdict, Option<FenceRow>) {
    let Some(row) = row else { return (SealVerdict::NoResource, None) };
    let FenceRow { floor, seq, .. } = *row;
    let term = token.term.get();

    let refusal = if row.retired {
        SealVerdict::Gone { floor }
    } else if floor == 0 {
        return sealed(row, token);
    } else if row.lineage != token.lineage {
        SealVerdict::ForeignLineage
    } else if term < floor {
        SealVerdict::Fenced { floor }
    } else if term == floor && row.nonce == token.nonce {
        SealVerdict::AlreadySealed { last_seq: seq }
    } else if term == floor {
        SealVerdict::Collision { floor }
    } else if !advance.allows(term - floor) {
        SealVerdict::Implausible
    } else {
        return sealed(row, token);
    };
    (refusal, None)
}

fn sealed(row: &FenceRow, token: Token) -> (SealVerdict, Option<FenceRow>) {
    let Token { lineage, term, nonce } = token;
    let next = FenceRow { lineage, floor: term.get(), nonce, ..*row };
    (SealVerdict::Sealed { prev_floor: row.floor, last_seq: row.seq }, Some(next))
}

/// Admits or refuses one write under `token`. `known` is the row of the write's step; a write
/// without a step has none, and is admitted however often it is sent.
///
/// A known step is answered before the floor is compared: the retry of a write whose reply was lost
/// must learn that it was applied, whoever leads by now.
pub fn admit(
    row: Option<&FenceRow>,
    known: Option<&StepRow>,
    token: Token,
    op_digest: Option<Digest>,
) -> (WriteVerdict, Option<Admitted>) {
    let Some(row) = row else { return (WriteVerdict::NoResource, None) };
    let floor = row.floor;
    let term = token.term.get();

    let refusal = if floor == 0 {
        WriteVerdict::NotSealed { floor }
    } else if row.lineage != token.lineage {
        WriteVerdict::ForeignLineage
    } else if let Some(step) = known {
        answer(step, op_digest, term < floor)
    } else if row.retired {
        WriteVerdict::Gone { floor }
    } else if term < floor {
        WriteVerdict::Fenced { floor }
    } else if term > floor {
        WriteVerdict::NotSealed { floor }
    } else if row.nonce != token.nonce {
        WriteVerdict::Collision { floor }
    } else {
        return apply(row, op_digest);
    };
    (refusal, None)
}

fn answer(step: &StepRow, op_digest: Option<Digest>, stale_holder: bool) -> WriteVerdict {
    if step.cancelled {
        WriteVerdict::Cancelled
    } else if step.op_digest == op_digest {
        WriteVerdict::AlreadyApplied { seq: step.seq, stale_holder }
    } else {
        WriteVerdict::KeyReuse
    }
}

/// A sequence number that could not be stored is never given: the resource fails closed.
fn apply(row: &FenceRow, op_digest: Option<Digest>) -> (WriteVerdict, Option<Admitted>) {
    match row.seq.checked_add(1).filter(|seq| *seq <= Term::LAST.get()) {
        None => (WriteVerdict::Full, None),
        Some(seq) => {
            let row = FenceRow { seq, ..*row };
            let step = StepRow { op_digest, seq, cancelled: false };
            (WriteVerdict::Apply { seq }, Some(Admitted { row, step }))
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADigest;

impl fmt::Display for NotADigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a digest: expected the 64 lower-case hex digits of a SHA-256")
    }
}

impl core::error::Error for NotADigest {}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        if text.len() != 64 {
            return Err(NotADigest);
        }
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = token::hex(digits, 2).ok_or(NotADigest)? as u8;
        }
        Ok(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const HOLDER: Token = Token { lineage: Lineage(7), term: Term::FIRST, nonce: Nonce(1) };

    fn sealed_at(floor: u64) -> FenceRow {
        FenceRow { lineage: HOLDER.lineage, floor, nonce: HOLDER.nonce, ..FenceRow::NEW }
    }

    #[test]
    fn the_reach_of_a_seal_is_the_callers_choice() {
        let row = sealed_at(10);
        let token = Token { term: Term::new(15).unwrap(), ..HOLDER };
        let verdict = |advance| seal(Some(&row), token, advance).0.name();
        assert_eq!(verdict(Advance::AtMost(4)), "Implausible");
        assert_eq!(verdict(Advance::AtMost(5)), "Sealed");
        assert_eq!(verdict(Advance::Proven), "Sealed");
    }

    #[test]
    fn a_count_that_was_stored_too_large_admits_nothing() {
        for seq in [Term::LAST.get(), Term::LAST.get() + 1, u64::MAX] {
            let row = FenceRow { seq, ..sealed_at(1) };
            assert_eq!(admit(Some(&row), None, HOLDER, None), (WriteVerdict::Full, None));
        }
    }

    #[test]
    fn a_floor_that_was_stored_too_large_fences_everyone() {
        let row = sealed_at(u64::MAX);
        let last = Token { term: Term::LAST, ..HOLDER };
        assert_eq!(seal(Some(&row), last, Advance::Proven).0.name(), "Fenced");
        assert_eq!(admit(Some(&row), None, last, None).0.name(), "Fenced");
    }

    #[test]
    fn a_digest_is_its_text() {
        let text = "00ff".repeat(16);
        let digest: Digest = text.parse().unwrap();
        assert_eq!(digest.to_string(), text);
        for text in ["", &text[1..], &text.to_uppercase(), &text.replace('f', "g"), &text.repeat(2)]
        {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }
}
