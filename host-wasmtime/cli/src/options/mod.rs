//! The command line; each command's options have a file of their own.

mod doctor;
mod fence;
mod operator;
mod run;
mod status;
mod timing;

use clap::{Args, Parser, Subcommand};

pub(crate) use doctor::Doctor;
pub(crate) use fence::{Fence, Resource};
pub(crate) use operator::{Handoff, Init, Release};
pub(crate) use run::Run;
pub(crate) use status::Status;
pub(crate) use timing::Timing;

/// Run a command on one machine at a time, with a fencing token.
#[derive(Debug, Parser)]
#[command(version, propagate_version = false)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What each command does stands at its options: said here, it would replace their longer text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Handoff(Handoff),
    Release(Release),
    Init(Init),
    #[command(subcommand)]
    Fence(Fence),
    Doctor(Doctor),
    Timing(Timing),
}

/// Where leases are kept.
#[derive(Args, Debug)]
pub(crate) struct StoreOption {
    /// Where leases are kept: sqlite:PATH or ./PATH. Only those who share it exclude one another;
    /// the default is one file per user and machine.
    #[arg(long, env = "LEASEHOLD_STORE", value_name = "STORE")]
    pub(crate) store: Option<String>,
}

impl StoreOption {
    /// As it was given; none: this user's own.
    pub(crate) fn named(&self) -> Option<&str> {
        self.store.as_deref()
    }
}

pub(crate) const EXIT_CODES: &str = "\
Durations: 500ms, 15s, 5m, 1h 30m (in quotes); a number needs its unit.

Exit codes:
  119      the command ran for longer than --max-run, and was ended
  120      lease lost or handed over, work stopped in time
  121      lease lost, work had to be killed
  122      lease lost, death in time not confirmed
  124      wait over
  1        refused: the message says why
  75       not obtained
  69       store unreachable
  78       configuration
  126/127  command cannot be run
  else     the command's own, or 128+N if signal N ended it";
