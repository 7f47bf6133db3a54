//! Spans for people.

use core::fmt;

use crate::time::MILLISECOND_NS;

/// A span in nanoseconds, displayed exactly and as one word: `8h`, `636.021s`, `15s`, `250ms`,
/// `7ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub u64);

const SECOND_NS: u64 = 1000 * MILLISECOND_NS;
const HOUR_NS: u64 = 3600 * SECOND_NS;

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ns) = *self;
        match ns {
            HOUR_NS.. if ns % HOUR_NS == 0 => write!(f, "{}h", ns / HOUR_NS),
            _ if ns % SECOND_NS == 0 => write!(f, "{}s", ns / SECOND_NS),
            SECOND_NS.. => {
                // No width that is computed: one out of range would panic.
                let (seconds, fraction_ns) = (ns / SECOND_NS, ns % SECOND_NS);
                match (fraction_ns / MILLISECOND_NS, fraction_ns % MILLISECOND_NS) {
                    (ms, 0) if ms % 100 == 0 => write!(f, "{seconds}.{}s", ms / 100),
                    (ms, 0) if ms % 10 == 0 => write!(f, "{seconds}.{:02}s", ms / 10),
                    (ms, 0) => write!(f, "{seconds}.{ms:03}s"),
                    _ => write!(f, "{seconds}.{fraction_ns:09}s"),
                }
            }
            _ if ns % MILLISECOND_NS == 0 => write!(f, "{}ms", ns / MILLISECOND_NS),
            _ => write!(f, "{ns}ns"),
        }
    }
}

/// A least span, so rounded to milliseconds that what is read passes.
pub(super) struct AtLeast(pub u64);

impl fmt::Display for AtLeast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_ms(self.0.div_ceil(MILLISECOND_NS)).fmt(f)
    }
}

/// A longest span, rounded likewise; exact where it is below a millisecond.
pub(super) struct AtMost(pub u64);

impl fmt::Display for AtMost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 / MILLISECOND_NS {
            0 => Span(self.0).fmt(f),
            whole => of_ms(whole).fmt(f),
        }
    }
}

pub(super) const fn of_ms(ms: u64) -> Span {
    Span(ms.saturating_mul(MILLISECOND_NS))
}
