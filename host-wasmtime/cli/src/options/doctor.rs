//! `leasehold doctor`.

use clap::Args;

use super::StoreOption;

/// Try out whether a store can keep leases.
///
/// It opens the store twice, as two processes would, and looks for what a store may get wrong:
/// creating what exists, writing over what has changed, reading the past, versions or clocks that
/// go back, a full disk, lost syncs. One line for each finding, ok, WARN, FAIL or skip; below it
/// what follows and what to do.
///
/// It may be run beside living holders: it writes the keys `doctor` and `doctor/second`, and
/// touches no lease. A store that is not there yet is not created, so that a slip in its name does
/// not pass for a healthy store; --create does it. A SQLite database of something else may become
/// one, too: --create adds a store's tables to it, and says so.
#[derive(Args, Debug)]
#[command(after_long_help = DOCTOR_CODES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// Create the store if it is not there yet, as `run` would.
    #[arg(long)]
    pub(crate) create: bool,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_CODES: &str = "\
Exit codes:
  0        fit for leases, perhaps with warnings
  1        not fit: a finding says FAIL, or what is there cannot be opened as a store
  69       store unreachable, busy, or disturbed by another doctor: run it again
  78       no such store, or a name that is none";
