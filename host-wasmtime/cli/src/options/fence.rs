//! `leasehold fence`.

use clap::{Args, Subcommand};

use super::StoreOption;

/// The guard at a resource: create it, seal it, look at it, mend it, close it.
///
/// There is no `fence check`: a script that checks and then writes can be overtaken in between.
/// The check has to be in the transaction of the write; `fence sql` says how.
#[derive(Debug, Subcommand)]
pub(crate) enum Fence {
    /// Print the guard as SQL for SQLite; its head says how to use it.
    Sql,
    /// Create a resource in the database that it protects, never sealed.
    #[command(after_long_help = CODES)]
    Init {
        #[command(flatten)]
        resource: Resource,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Seal a resource: no earlier token writes to it any more.
    #[command(after_long_help = CODES)]
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
    #[command(after_long_help = CODES)]
    Status {
        #[command(flatten)]
        resource: Resource,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// After its database was restored from a copy: raise the floor to the lease's record.
    ///
    /// The copy may have a floor that is too low, so that a holder of an older term could write
    /// again. Do it before anyone writes, and while the lease's own store is the current one, not
    /// a copy as well.
    #[command(after_long_help = CODES)]
    Recover {
        #[command(flatten)]
        resource: Resource,
        /// The lease whose holders seal the resource.
        name: String,
        #[command(flatten)]
        leases: StoreOption,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Bind a resource to the lease of a token, whichever lease it obeyed.
    ///
    /// An operator's decision, never a program's: the floor of the lease that it obeyed before is
    /// forgotten, and nobody of that lease writes any more. Where the record of that lease was
    /// lost, `leasehold init` before anybody ran under the new one is the better way.
    #[command(after_long_help = CODES)]
    Adopt {
        #[command(flatten)]
        resource: Resource,
        /// The current token of the lease it is to obey, as `leasehold status NAME` shows it.
        token: String,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Close a resource for good: nobody ever writes to it again.
    ///
    /// Its row stays, and still answers for the steps that were done. There is no way back.
    #[command(after_long_help = CODES)]
    Retire {
        #[command(flatten)]
        resource: Resource,
        /// The token that sealed it, as `leasehold fence status` shows it.
        token: String,
        /// One line of JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Resource {
    /// The database: sqlite:PATH or ./PATH.
    // Not the id that the option --store has.
    #[arg(id = "database", value_name = "STORE")]
    pub(crate) store: String,
    /// The resource's name in it.
    pub(crate) resource: String,
}

const CODES: &str = "\
Exit codes:
  0   done
  1   the fence refuses; the message says why
  69  the database, or the lease store, cannot be reached
  78  configuration";
