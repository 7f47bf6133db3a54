//! Bugs that are put into the rules on purpose, one at a time, to show that they would be found.
//!
//! Only a build with `--cfg planted` holds them, in a target folder of its own; in every other
//! build [`planted!`] is its right-hand side, and this module is empty. It is no Cargo feature: a
//! feature that one member of a workspace asks for is in every binary of that build.

/// `planted!(Bug: wrong => right)`: the right expression, or the wrong one while that bug is on.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident: $wrong:expr => $right:expr) => {
        $right
    };
}

#[cfg(planted)]
macro_rules! planted {
    ($bug:ident: $wrong:expr => $right:expr) => {
        if $crate::planted::Bug::$bug.is_on() { $wrong } else { $right }
    };
}

pub(crate) use planted;

#[cfg(planted)]
pub use bugs::Bug;

#[cfg(planted)]
mod bugs {
    use core::sync::atomic::{AtomicU8, Ordering};

    /// What gives such a build away.
    #[used]
    static MARKER: &str = "leasehold: a build with planted bugs";

    /// Which bug is on, for the whole process: 0 is none.
    static ON: AtomicU8 = AtomicU8::new(0);

    macro_rules! bugs {
        ($($(#[$docs:meta])* $bug:ident,)+) => {
            /// What can be put in.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Bug {
                $($(#[$docs])* $bug,)+
            }

            impl Bug {
                /// Every bug.
                pub const ALL: &'static [Self] = &[$(Self::$bug),+];

                /// The variant's name.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self {
                        $(Self::$bug => stringify!($bug),)+
                    }
                }
            }
        };
    }

    bugs! {
        /// A renewal's deadline counts from its acknowledgement instead of its sending.
        DeadlineFromAcknowledgement,
        /// An acknowledgement that comes past the deadline revives the lease.
        LateAcknowledgementRevives,
        /// A renewal without an answer counts as confirmed.
        TimeOutConfirms,
        /// An observer waits no longer than the ttl that it read.
        NoDriftMargin,
        /// The holder does not look at its clock.
        HolderIgnoresClock,
        /// Work may start until it has to be over.
        StartsUntilValid,
        /// Time that only the wall clock saw is not counted.
        WallIsNoWitness,
        /// A disruption is passed over.
        DisruptionIgnored,
        /// An observer's window goes on when the record has changed.
        WindowOutlivesChange,
        /// An observer's window counts from before the reply that showed it.
        WindowFromRequest,
        /// An observer's window begins anew at every read.
        WindowRestartsAtRead,
        /// A campaign reuses the term that it found.
        TermNotRaised,
        /// A fence's floor is forgotten.
        FloorForgotten,
        /// A campaign that was confirmed past its own deadline is announced all the same.
        LateElection,
        /// A leader leads before its resources are sealed.
        LeadsUnsealed,
        /// A lease is released while the work is still running.
        ReleasedUndrained,
        /// A write by a copy of this process counts as its own.
        TwinTrusted,
        /// A term that was lost is given up without a word.
        EndedUnsaid,
        /// The fence takes another acquisition of its term for the one that sealed.
        FenceIgnoresNonce,
        /// The fence admits every token of its lineage.
        FenceIgnoresTerm,
        /// A seal may lower the floor.
        SealLowersFloor,
    }

    impl Bug {
        /// Puts one bug in, or takes it out.
        pub fn plant(bug: Option<Self>) {
            ON.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::Relaxed);
        }

        pub(crate) fn is_on(self) -> bool {
            ON.load(Ordering::Relaxed) == self as u8 + 1
        }
    }
}
