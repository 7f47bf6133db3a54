//! What people read while the demo runs: every line with its time, from the same zero as the report.

use super::boottime_ns;

#[derive(Clone, Copy)]
pub(crate) struct Log {
    started_ns: i64,
}

impl Log {
    pub(crate) fn begin() -> Self {
        Self { started_ns: boottime_ns() }
    }

    pub(crate) fn say(self, what: &str) {
        eprintln!("{:>9} {what}", self.time(boottime_ns()));
    }

    /// The words of a process.
    pub(crate) fn pass_on(self, name: &str, line: &str) {
        self.say(&format!("    {name} | {line}"));
    }

    /// An instant for people.
    pub(crate) fn time(self, ns: i64) -> String {
        let ns = ns - self.started_ns;
        format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
    }
}
