//! `leasehold status`.

use clap::Args;

use super::StoreOption;

/// Say who holds a lease.
#[derive(Args, Debug)]
pub(crate) struct Status {
    /// The lease.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// One line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
