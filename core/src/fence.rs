//! The guard at a resource: which token may seal it, and which write it admits.
//!
//! All verbs are pure functions over the stored row. The host reads the row, calls the rule, and
//! commits the returned row in ONE transaction with the effect, conditional on the row that was
//! read. A row that could not be committed means that the verdict was never given.
//! [`crate::guard`] holds the same rules as text for engines that run them themselves.

mod digest;
mod floor;
mod verdict;
mod write;

use core::cmp::Ordering;

pub use digest::{Digest, NotADigest};
pub use floor::{adopt, read, recover, seal};
pub use verdict::{
    AdoptVerdict, CancelVerdict, RecoverVerdict, RetireVerdict, SealVerdict, WriteVerdict,
};
pub use write::{Admitted, admit, cancel, retire};

use crate::planted::planted;
use crate::token::{Lineage, Nonce, Token};

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

    /// The comparison that all verbs share.
    fn standing(&self, token: Token) -> Standing {
        let term = token.term.get();
        if self.floor == 0 {
            return Standing::Unsealed;
        }
        if self.lineage != token.lineage {
            return Standing::Foreign;
        }
        match term.cmp(&self.floor) {
            Ordering::Less => planted!(FenceIgnoresTerm: Standing::Sealed => Standing::Below),
            Ordering::Equal if planted!(FenceIgnoresNonce: true => self.nonce == token.nonce) => {
                Standing::Sealed
            }
            Ordering::Equal => Standing::Rival,
            Ordering::Greater => Standing::Above { terms: term.abs_diff(self.floor) },
        }
    }

    fn sealed_with(&self, token: Token) -> Self {
        let Token { lineage, term, nonce } = token;
        Self { lineage, floor: term.get(), nonce, ..*self }
    }
}

/// How a token stands to a resource's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// No token has sealed.
    Unsealed,
    /// Another lineage has: terms do not compare.
    Foreign,
    /// A later term has.
    Below,
    /// This token has.
    Sealed,
    /// Another acquisition of this term has.
    Rival,
    /// An earlier term has.
    Above {
        /// How much earlier.
        terms: u64,
    },
}

/// What a resource keeps of one step, as long as the resource lives: pruned by age, a late
/// duplicate would be applied again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// What the step did, if its writer said so.
    pub op_digest: Option<Digest>,
    /// The number of the write that applied or cancelled it.
    pub seq: u64,
    /// Never applied, and never to be.
    pub cancelled: bool,
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Term;

    pub(super) const HOLDER: Token =
        Token { lineage: Lineage(7), term: Term::FIRST, nonce: Nonce(1) };

    pub(super) fn sealed_at(floor: u64) -> FenceRow {
        FenceRow { lineage: HOLDER.lineage, floor, nonce: HOLDER.nonce, ..FenceRow::NEW }
    }
}
