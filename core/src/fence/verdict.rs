//! What the guard answers. The names are the same in Rust, in SQL, in the component and in the
//! vectors.

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
    /// The answer to a seal, and to a read.
    SealVerdict {
        /// No such resource: create it first.
        NoResource,
        /// The resource is closed for good.
        Gone {
            /// Its last floor.
            floor: u64
        },
        /// The row keeps another lease's terms: only [`adopt`](super::adopt) changes that.
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
        /// Apply the effect, and commit it with the rows of [`Admitted`](super::Admitted).
        Apply {
            /// The number of this write.
            seq: u64
        },
    }
}

verdict! {
    /// The answer to a cancellation.
    CancelVerdict {
        /// No such resource: create it first.
        NoResource,
        /// The token has not sealed the resource.
        NotSealed {
            /// The term that has; 0: none.
            floor: u64
        },
        /// The row keeps another lease's terms.
        ForeignLineage,
        /// The step was cancelled before, by an earlier cancellation.
        Cancelled,
        /// Too late: the step is done.
        AlreadyApplied {
            /// The number of the write that applied it.
            seq: u64,
            /// The token asking is below the floor: its holder must stop.
            stale_holder: bool
        },
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
        /// No room to record the tombstone: here, 2^63-1 writes have been counted.
        Full,
        /// This cancellation wrote the tombstone: the step was not applied, and never will be.
        Tombstoned {
            /// The number of this write.
            seq: u64
        },
    }
}

verdict! {
    /// The answer to a retirement.
    RetireVerdict {
        /// No such resource.
        NoResource,
        /// The token has not sealed the resource.
        NotSealed {
            /// The term that has; 0: none.
            floor: u64
        },
        /// The row keeps another lease's terms.
        ForeignLineage,
        /// This very token's resource is closed already.
        AlreadyRetired,
        /// The resource was closed under another token.
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
        /// Closed for good: only the answers to known steps are still given.
        Retired,
    }
}

verdict! {
    /// The answer to a recovery.
    RecoverVerdict {
        /// No such resource: restore its row, too.
        NoResource,
        /// The resource is closed for good.
        Gone {
            /// Its last floor.
            floor: u64
        },
        /// The row keeps another lease's terms.
        ForeignLineage,
        /// The stored floor is not below the record: it stays, and so does its nonce.
        Kept {
            /// The stored floor.
            floor: u64
        },
        /// The floor was below the record, and is the record's now.
        Recovered {
            /// The floor before; 0: never sealed.
            prev_floor: u64,
            /// Writes accepted so far, as far as the restored row knows.
            last_seq: u64
        },
    }
}

verdict! {
    /// The answer to an adoption.
    AdoptVerdict {
        /// No such resource: create it first.
        NoResource,
        /// The resource is closed for good.
        Gone {
            /// Its last floor.
            floor: u64
        },
        /// A later holder of the same lease has sealed: no lease's own floor is ever lowered.
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
        /// The resource obeys this token's lease, and from now on only this token writes.
        Adopted {
            /// The floor before, perhaps of another lineage; 0: never sealed.
            prev_floor: u64,
            /// Writes accepted so far, all of them by earlier tokens.
            last_seq: u64
        },
    }
}
