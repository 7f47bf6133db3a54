//! `leasehold status`.

use clap::Args;

use super::StoreOption;

/// Say who holds a lease, or all leases of a store.
///
/// It only looks: what it says may have changed when you read it.
///
/// Exit codes: 0 also where nobody holds or ever held it; 69 store unreachable; 78 configuration, or a
/// record that cannot be read.
#[derive(Args, Debug)]
pub(crate) struct Status {
    /// The lease. Default: every lease of the store, in the order of their names.
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreOption,

    /// One line of JSON: an object, or without a name an array.
    #[arg(long)]
    pub(crate) json: bool,
}
