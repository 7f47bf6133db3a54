//! `leasehold run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::{EXIT_CODES, StoreOption};

/// Run a command while a lease is held.
///
/// The command starts when the lease is won, and it and everything it started are dead before a
/// rival's command can start: SIGTERM when the lease runs low without a confirmed renewal, SIGKILL
/// after the grace. It finds the fencing token in its environment: LEASEHOLD_TOKEN, and
/// LEASEHOLD_NAME, _LINEAGE, _TERM, _HOLDER, _STORE. Pass the token to every resource it writes to,
/// and let the resource refuse older ones: `leasehold fence`.
///
/// A signal to `run` goes to the command, which decides. A second Ctrl-C ends it, SIGTERM first, a third
/// kills it. Ctrl-Z stops all of it, and nothing is renewed then; a job that stays stopped for too long
/// loses its lease, and its command. A command that reads the terminal gets it, and with it the keys:
/// from then on Ctrl-C is the command's alone. Whoever waits is withdrawn by Ctrl-C or SIGTERM at once.
///
/// What this cannot protect from, so that only the fence does: a machine that freezes whole and
/// wakes too late, and leasehold's two processes, front and keeper, both killed or stopped. Killed,
/// they take the command's own process with them, and nothing else that it started. On macOS
/// descendants that leave the command's process group are not found.
#[derive(Args, Debug)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Run {
    /// The lease: 1 to 128 characters of A-Z a-z 0-9 . _ -
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// Give up after this long without the lease (exit 124). Default: wait for ever.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    /// Do not wait for a living holder (exit 75). A dead one's lease is taken over, and a store that
    /// does not answer is given one ttl.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// How long others believe a holder that no longer renews. It has to leave room for the grace;
    /// `leasehold timing` says what a ttl can bear.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "15s")]
    pub(crate) ttl: Duration,

    /// What the command has between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "3s")]
    pub(crate) grace: Duration,

    /// Keep the lease for at least this long after it was won, even if the command ends earlier:
    /// contenders whose clocks or starts differ by less do not run it one after the other.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) hold: Option<Duration>,

    /// End a command that runs for longer than this: SIGTERM, SIGKILL after the grace (exit 119).
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) max_run: Option<Duration>,

    /// When the lease was lost, handed over or released by force, contend for it again like everybody
    /// else and run the command anew, until it ends by itself or SIGTERM, SIGQUIT or a second Ctrl-C
    /// asks for its end.
    #[arg(long)]
    pub(crate) respawn: bool,

    /// Tell a program what happens, one JSON object a line: to a file, at its end, or to an
    /// inherited descriptor by its number, like --events 3 3>>events.jsonl. The command inherits
    /// that descriptor, too; its stdout is never written to.
    #[arg(long, value_name = "FD|FILE")]
    pub(crate) events: Option<OsString>,

    /// Say nothing while all is as it should be: for cron.
    #[arg(long, short)]
    pub(crate) quiet: bool,

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

const EXAMPLES: &str = "\
Examples:
  # two crontabs with one job: the first to come runs it, the other exits with 75
  leasehold run nightly --quiet --no-wait --hold 5m -- ./nightly.sh
  # a worker that has to run somewhere
  leasehold run worker --respawn -- ./worker
  # a job whose writes are fenced
  leasehold run settlement --seal sqlite:payments.db#payments -- ./settle.sh";
