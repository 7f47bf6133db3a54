//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Run a command on one machine at a time, with a fencing token.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while a lease is held.
    Run(Run),
    /// Say who holds a lease.
    Status(Status),
    /// The guard at a resource: create it, seal it, look at it.
    #[command(subcommand)]
    Fence(Fence),
}

/// Run a command while a lease is held.
///
/// The command starts when the lease is won, and it and everything it started are dead before a
/// rival's command can start: SIGTERM when the lease runs low without a confirmed renewal, SIGKILL
/// after the grace. It finds the fencing token in its environment: LEASEHOLD_TOKEN, and
/// LEASEHOLD_NAME, _LINEAGE, _TERM, _HOLDER, _STORE. Pass the token to every resource it writes to,
/// and let the resource refuse older ones: `leasehold fence`.
///
/// What this cannot protect from, so that only the fence does: a machine that freezes whole and
/// wakes too late, and leasehold's two processes, front and keeper, both killed or stopped. Killed,
/// they take the command's own process with them, and nothing else that it started. On macOS
/// descendants that leave the command's process group are not found.
#[derive(Args, Debug)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Run {
    /// The lease: 1 to 128 characters of A-Z a-z 0-9 . _ -
    pub(crate) name: String,

    /// Where leases are kept: sqlite:PATH or ./PATH. Only those who share it exclude one another;
    /// the default is one file per user and machine.
    #[arg(long, env = "LEASEHOLD_STORE", value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// Give up after this long without the lease (exit 124). Default: wait for ever.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    /// Do not wait for a living holder (exit 75). A dead one's lease is taken over.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// How long others believe a holder that no longer renews.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "15s")]
    pub(crate) ttl: Duration,

    /// What the command has between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "3s")]
    pub(crate) grace: Duration,

    /// Who holds it, for people. Default: HOST:PID.
    #[arg(long, value_name = "LABEL")]
    pub(crate) holder: Option<String>,

    /// Seal this resource with the token before the command starts, like
    /// sqlite:payments.db#payments. May be repeated.
    #[arg(long, value_name = "STORE#RESOURCE")]
    pub(crate) seal: Vec<String>,

    /// The command and its arguments, after --. No shell is involved.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const EXIT_CODES: &str = "\
Exit codes:
  120      lease lost, work stopped in time
  121      lease lost, work had to be killed
  122      lease lost, death in time not confirmed
  124      wait over
  75       not obtained
  69       store unreachable
  78       configuration
  126/127  command cannot be run
  else     the command's own, or 128+N if signal N ended it";

/// Say who holds a lease.
#[derive(Args, Debug)]
pub(crate) struct Status {
    /// The lease.
    pub(crate) name: String,

    /// Where leases are kept; see `run`.
    #[arg(long, env = "LEASEHOLD_STORE", value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The guard at a resource: create it, seal it, look at it.
///
/// There is no `fence check`: a script that checks and then writes can be overtaken in between.
/// The check has to be in the transaction of the write; `fence sql` says how.
#[derive(Debug, Subcommand)]
pub(crate) enum Fence {
    /// Print the guard as SQL for SQLite; its head says how to use it.
    Sql,
    /// Create a resource in the database that it protects, never sealed.
    Init {
        #[command(flatten)]
        resource: Resource,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Seal a resource: no earlier token writes to it any more.
    Seal {
        #[command(flatten)]
        resource: Resource,
        /// A token, as LEASEHOLD_TOKEN has it.
        token: String,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what a resource keeps.
    Status {
        #[command(flatten)]
        resource: Resource,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Resource {
    /// The database: sqlite:PATH or ./PATH.
    pub(crate) store: String,
    /// The resource's name in it.
    pub(crate) resource: String,
}
