//! What happened and why: the events of a machine. Every normal outcome is an event, never an
//! error.

use core::fmt;

use crate::label::Label;
use crate::record::RecordFault;
use crate::time::Mono;
use crate::token::{Lineage, Nonce, Token};

/// What a step of the [`Elector`](crate::lease::Elector) has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Somebody else holds the lease. Said when the owner changes, and again when an owner not
    /// yet known to be alive shows that it is.
    Standby {
        /// Who.
        owner: Owner<'a>,
        /// Proved alive: by a renewal that was seen, or by the store's own clock.
        alive: bool,
    },
    /// The lease is ours; nothing may start yet. The host seals every resource of the lease with
    /// the token, then answers `Sealed` or `SealRefused`.
    Elected {
        /// Larger than every token of this lease before it.
        token: Token,
    },
    /// Work may start.
    Leading {
        /// The token that was sealed.
        token: Token,
        /// Nothing may start from here on, unless a renewal moves it.
        stop_at: Mono,
    },
    /// A renewal was confirmed.
    Renewed {
        /// The new `stop_at`.
        until: Mono,
    },
    /// A renewal failed or stayed unanswered; the lease still holds. Start nothing that cannot
    /// end before `stop_at`.
    RenewalLate {
        /// As long as no renewal is confirmed.
        stop_at: Mono,
    },
    /// This token never starts anything again. The host ends the work, then answers `Drained`,
    /// work or no work. Said again, with a reason that is not gentle, where the term is lost while
    /// its work drains: then nothing may even finish.
    Demoted {
        /// Of the term that ends.
        token: Token,
        /// Why.
        reason: Reason,
        /// Whom the lease will be offered to, if the record asked for that: to be handed to
        /// [`Draft::record`](crate::store::Draft::record).
        to: Option<Label<'a>>,
    },
    /// The term is over; exactly one per `Elected`.
    Ended {
        /// Of the term that ended.
        token: Token,
        /// How.
        how: How,
    },
    /// While nothing is held: the store does not answer.
    StoreDown,
    /// It answers again.
    StoreUp,
    /// The store or somebody with access to it broke the contract; said once per change.
    StoreFault(StoreFault),
    /// The wish to stop was carried out; nothing follows.
    Stopped,
}

/// Who a record says holds the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// For people; may repeat.
    pub holder: Label<'a>,
    /// The process.
    pub instance: Nonce,
    /// Its token.
    pub token: Token,
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No renewal was confirmed in time.
    DeadlinePassed,
    /// The record shows a rival's token.
    RivalSeen,
    /// Somebody released the lease by force.
    Forced,
    /// The record, or the store with it, is gone.
    RecordGone,
    /// A fence knows a higher term, or this term with another nonce: the store was rolled back.
    Refused,
    /// A resource could not be sealed, or refused the token without naming a floor.
    SealFailed,
    /// The record shows this token with a write that this instance did not make: a second copy of
    /// its memory is running.
    Twin,
    /// The clock went back, or the host learned of a jump, a resumed image, a migration.
    Disrupted,
    /// Resigned on request.
    Resigned,
    /// Asked, in the record, to hand the lease over.
    Asked,
    /// Told to stop.
    Stopped,
}

impl Reason {
    /// Whether work may still finish until `valid_until`: it ended by wish or by its own clock.
    #[must_use]
    pub const fn is_gentle(self) -> bool {
        matches!(self, Self::DeadlinePassed | Self::Resigned | Self::Asked | Self::Stopped)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadlinePassed => "no renewal was confirmed in time",
            Self::RivalSeen => "somebody else holds it, or the store was rolled back",
            Self::Forced => "somebody released it by force",
            Self::RecordGone => "its record is gone from the store",
            Self::Refused => "a fence knows a later holder: the lease store was rolled back",
            Self::SealFailed => "a resource could not be sealed",
            Self::Twin => "a copy of this process holds it too",
            Self::Disrupted => "the clock jumped, or a declared clock is missing",
            Self::Resigned => "resigned",
            Self::Asked => "asked to hand it over",
            Self::Stopped => "told to stop",
        })
    }
}

/// How a term ended in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// The record is a tombstone: the next holder need not wait.
    Released,
    /// The record is an offer: the one named need not wait, all others wait out its grace.
    Offered,
    /// Left to run out.
    Expired,
    /// Left to run out, since the work outlasted the drain budget.
    DrainTimeout,
    /// Nothing was there to release.
    Lost,
}

/// A broken store, or a broken record. All but `WentBack` block campaigns until a read is good
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// A record that this instance knew is absent. Never re-created: terms would repeat.
    RecordGone,
    /// Somebody edited the record.
    Malformed {
        /// The first unexpected byte.
        offset: usize,
    },
    /// The record was written by a later format.
    Newer {
        /// Its format.
        format: u64,
    },
    /// The record has another lineage than the one that this instance knew.
    ForeignLineage {
        /// The one it knew.
        known: Lineage,
        /// The one that is there.
        found: Lineage,
    },
    /// The record's term is below one that this instance has seen; the next campaign goes above.
    WentBack {
        /// The highest term seen.
        floor: u64,
        /// The term that is there.
        found: u64,
    },
    /// A fence's floor is implausibly far above the record.
    BeyondMaxAdvance {
        /// The floor.
        floor: u64,
        /// The record's term.
        found: u64,
    },
    /// The last term of the lineage has been used.
    Exhausted,
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordGone => f.write_str(
                "the lease's record is gone from the store: somebody deleted or \
                 replaced it; restore the store, nothing will be re-created",
            ),
            Self::Malformed { offset } => {
                fmt::Display::fmt(&RecordFault::Malformed { offset: *offset }, f)
            }
            Self::Newer { format } => fmt::Display::fmt(&RecordFault::Newer { format: *format }, f),
            Self::ForeignLineage { known, found } => write!(
                f,
                "the record belongs to lineage {found}, not to {known}: it was re-created or is \
                 another store's"
            ),
            Self::WentBack { floor, found } => write!(
                f,
                "the record shows term {found} after term {floor}: the store was rolled back; \
                 the next term will be above {floor}"
            ),
            Self::BeyondMaxAdvance { floor, found } => write!(
                f,
                "a fence has seen term {floor} and the record is at {found}: too far apart to be \
                 a rolled-back store; find out which resource has the wrong floor"
            ),
            Self::Exhausted => {
                f.write_str("the last term of this lease has been used: use a new name")
            }
        }
    }
}

impl core::error::Error for StoreFault {}
