//! The layout, as data: writing and reading are made from the same rows.

use super::Malformed;
use super::part::{Part, Reader, Writer};
use crate::lease::{Input, Step, Wake};
use crate::observe::{Event, How, Owner, Reason, StoreFault};
use crate::record::{self, Kind, LeaseRecord, RecordFault};
use crate::store::{Body, Draft, Entry, OpId, Outcome, Request};
use crate::time::{Mono, Now};
use crate::token::{Lineage, Nonce, Token};

/// A type around one part.
macro_rules! wrapper {
    ($($type:ident),+) => {
        $(impl Part<'_> for $type {
            fn put(&self, to: &mut Writer<'_>) -> Option<()> {
                self.0.put(to)
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Part::take(from).map(Self)
            }
        })+
    };
}

/// Fields, in order.
macro_rules! sequence {
    ($type:ty { $($field:ident),+ }) => {
        impl<'a> Part<'a> for $type {
            fn put(&self, to: &mut Writer<'_>) -> Option<()> {
                $(self.$field.put(to)?;)+
                Some(())
            }

            fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
                $(let $field = Part::take(from)?;)+
                Ok(Self { $($field),+ })
            }
        }
    };
}

/// A tag, then the parts of the variant.
macro_rules! choice {
    ($type:ty { $($tag:literal $variant:ident $(($part:ident))? $({ $($field:ident),+ })?,)+ }) => {
        impl<'a> Part<'a> for $type {
            fn put(&self, to: &mut Writer<'_>) -> Option<()> {
                match self {
                    $(Self::$variant $(($part))? $({ $($field),+ })? => {
                        u8::put(&$tag, to)?;
                        $($part.put(to)?;)?
                        $($($field.put(to)?;)+)?
                    })+
                }
                Some(())
            }

            fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
                let offset = from.offset();
                match u8::take(from)? {
                    $($tag => {
                        $(let $part = Part::take(from)?;)?
                        $($(let $field = Part::take(from)?;)+)?
                        Ok(Self::$variant $(($part))? $({ $($field),+ })?)
                    })+
                    _ => Err(Malformed { offset }),
                }
            }
        }
    };
}

wrapper!(Mono, OpId, Nonce, Lineage);

sequence!(Now { mono, wall_ns });
sequence!(Token { lineage, term, nonce });
sequence!(Draft { token, kind, instance, ttl_ms, attempt, at_ms });
sequence!(Request { op, deadline, body });
sequence!(Entry<'a> { record, version, age_ns });
sequence!(Owner<'a> { holder, instance, token });
sequence!(Step<'a> { request, wake, event });

choice!(Input<'a> {
    0 Tick,
    1 Done { op, outcome, salt },
    2 Sealed(token),
    3 SealRefused { token, floor },
    4 Drained(token),
    5 Resign { to },
    6 Stop,
    7 Disrupted,
    8 Hint(entry),
    9 Adopt(token),
});

choice!(Outcome<'a> {
    0 Absent,
    1 Entry(entry),
    2 Applied(version),
    3 Conflict,
    4 Undecided,
    5 Unavailable,
    6 Unknown,
    7 Gone,
});

choice!(Result<LeaseRecord<'a>, RecordFault> {
    0 Ok(record),
    1 Err(fault),
});

choice!(RecordFault {
    0 Newer { format },
    1 Malformed { offset },
});

choice!(Kind {
    0 Held,
    1 Offered,
    2 Released,
});

choice!(Body {
    0 Read,
    1 Write { expect, draft },
});

choice!(Wake {
    0 Now,
    1 At(at),
    2 Idle,
});

choice!(Event<'a> {
    0 Standby { owner, alive },
    1 Elected { token },
    2 Leading { token, stop_at },
    3 Renewed { until },
    4 RenewalLate { stop_at },
    5 Demoted { token, reason, to },
    6 Ended { token, how },
    7 StoreDown,
    8 StoreUp,
    9 StoreFault(fault),
    10 Stopped,
});

choice!(Reason {
    0 DeadlinePassed,
    1 RivalSeen,
    2 Forced,
    3 RecordGone,
    4 Refused,
    5 SealFailed,
    6 Twin,
    7 Disrupted,
    8 Resigned,
    9 Asked,
    10 Stopped,
});

choice!(How {
    0 Released,
    1 Offered,
    2 Expired,
    3 DrainTimeout,
    4 Lost,
});

choice!(StoreFault {
    0 RecordGone,
    1 Malformed { offset },
    2 Newer { format },
    3 ForeignLineage { known, found },
    4 WentBack { floor, found },
    5 BeyondMaxAdvance { floor, found },
    6 Exhausted,
});

/// The canonical bytes behind their length: what a store keeps is what a trace shows.
impl<'a> Part<'a> for LeaseRecord<'a> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        to.prefixed(|room| record::encode(self, room).ok())
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        let len = u16::take(from)?;
        let start = from.offset();
        record::decode(from.bytes(usize::from(len))?).map_err(|fault| match fault {
            RecordFault::Newer { .. } => Malformed { offset: start },
            RecordFault::Malformed { offset } => Malformed { offset: start.saturating_add(offset) },
        })
    }
}
