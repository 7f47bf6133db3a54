//! `leasehold timing`.

use std::time::Duration;

use clap::Args;
use humantime::parse_duration;

/// Say what a ttl does, or which ttl a budget needs.
///
/// With --ttl and --grace, as for `run`: how soon a dead holder is replaced, what a holder gets
/// over without losing its lease, and how often the store is asked.
///
/// With --detect and --p99: the longest ttl that replaces a dead holder within that time, on a
/// store that answers within --p99. A longer ttl asks the store less often and gets over more.
///
/// To end the work (the drain) takes --grace for SIGTERM and half a second for SIGKILL. Before the
/// lease is over there is a margin for the clocks (the guard) as well: a ttl needs room for both.
#[derive(Args, Debug)]
#[command(after_long_help = TIMING_CODES)]
pub(crate) struct Timing {
    /// How long others believe a holder that no longer renews.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "15s")]
    #[arg(conflicts_with = "detect")]
    pub(crate) ttl: Duration,

    /// What the command has between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    pub(crate) grace: Duration,

    /// How many other candidates wait for the lease.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) standbys: u32,

    /// The budget: a dead holder is replaced within this, from its last sign on.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "p99")]
    pub(crate) detect: Option<Duration>,

    /// The budget: 99 of 100 store operations take no longer, from the farthest user.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "detect")]
    pub(crate) p99: Option<Duration>,

    /// The budget: half of the store operations take no longer. Default: as --p99.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "detect")]
    pub(crate) p50: Option<Duration>,

    /// The budget: a pause of the process (a stop, a swap, a migration) that costs nothing.
    /// Default: 0s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "detect")]
    pub(crate) pause: Option<Duration>,

    /// The budget: lost renewals in a row that cost nothing. Default and least: 2.
    #[arg(long, value_name = "N", requires = "detect")]
    pub(crate) tolerate: Option<u32>,

    /// One line of JSON, with spans in ms and ns.
    #[arg(long)]
    pub(crate) json: bool,
}

const TIMING_CODES: &str = "\
Exit codes:
  0        the timing works; for a budget perhaps only by the library, whose spans are printed,
           and by no ttl of `run`: the text says so, and in JSON \"run\" is null
  78       it does not; the message names the nearest value that does";
