//! Spans as numbers and words; what does not fit is as long as can be.

use std::time::Duration;

pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// For people.
pub(crate) fn seconds(span: Duration) -> String {
    format!("{}.{:03} s", span.as_secs(), span.subsec_millis())
}
