//! `leasehold handoff`, `release`, `init`: what an operator does to a lease from outside.

use std::time::Duration;

use clap::Args;

use super::StoreOption;

/// Ask the holder to hand its lease over to somebody.
///
/// Writes a wish into the lease's record. The holder finds it when it renews next: it ends its
/// command as for a lost lease, SIGTERM first (its `run` exits with 120), and offers the lease to
/// the one named, who takes it under the next term. HOLDER has to be waiting already, in a
/// `leasehold run NAME --holder HOLDER`: if it does not take the offer, everybody may after a
/// grace.
///
/// Exit codes: 0 the wish was written (with --wait: HOLDER holds the lease), or HOLDER held it
/// already; 1 nobody holds the lease; 124 --wait is over; 69 store unreachable; 78 configuration.
#[derive(Args, Debug)]
pub(crate) struct Handoff {
    /// The lease.
    pub(crate) name: String,

    /// Who is to hold it next: a label, as `run --holder` gives it, or an instance, as `status`
    /// shows it. Must be waiting for the lease. Nobody can see who waits: a wrong name ends the
    /// holder's work all the same.
    #[arg(long, value_name = "HOLDER")]
    pub(crate) to: String,

    /// Wait this long until HOLDER holds the lease (exit 124 if it does not).
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// End a holder that cannot be reached, by force.
///
/// A holder releases its lease by itself when its `leasehold run` ends: try that first. By force,
/// the lease gets a term of its own; the holder finds at its next renewal that it has lost, and
/// its command is killed. Everybody else waits out the old ttl, so that no two commands run at
/// once. A resource that the next holder seals refuses the old one in any case.
///
/// Exit codes: 0 released; 1 refused: somebody else holds it, or nobody; 69 store unreachable;
/// 78 configuration.
#[derive(Args, Debug)]
pub(crate) struct Release {
    /// The lease.
    pub(crate) name: String,

    /// Yes, from outside.
    #[arg(long)]
    pub(crate) force: bool,

    /// Why; it is kept in the record. At most 256 printable ASCII characters, without " and \.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Whom you mean to end, as `leasehold status NAME` shows it: a label or an instance. Anybody
    /// else is left alone. Without it you are asked, on a terminal.
    #[arg(long, value_name = "LABEL")]
    pub(crate) holder: Option<String>,

    /// Let the next one start at once, before the old ttl has run. Two commands may then run at
    /// the same time, and only the fence protects: use it when the old holder is known to be dead.
    #[arg(long)]
    pub(crate) now: bool,

    /// Who you are, for the record. Default: USER@HOST, or uidN@HOST.
    #[arg(long, value_name = "LABEL")]
    pub(crate) by: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put a lost record back, so that its terms go on.
///
/// For a lease whose store was deleted or lost: without it the next holder would begin anew with
/// term 1 of another lineage, which no resource that was sealed before accepts. First stop whoever
/// held the lost record. TOKEN is the last one that is known: the largest that `leasehold fence
/// status` shows among the resources of the lease.
///
/// Exit codes: 0 done; 1 there is a record, nothing was changed; 69 store unreachable;
/// 78 configuration.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The lease.
    pub(crate) name: String,

    /// The last token of the lost record that is known; the next term is above it.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: String,

    /// The ttl to note in the record; whoever acquires the lease brings its own.
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    #[arg(value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
