//! `leasehold fence`.

use clap::{Args, Subcommand};

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
