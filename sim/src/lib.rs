//! A deterministic world for leasehold's core: the real elector and the real fence, attacked in
//! virtual time and judged in true time that neither of them can see.
//!
//! A run is a pure function of a [`Setup`] and a list of [`Decision`]s, the [`Tape`]: whatever is
//! not decided goes well. A seed is one way to decide ([`swarm`]); what it decides is recorded, and
//! the tape alone gives the same run, down to the last bit of [`Report::trace`].
//!
//! Time is in nanoseconds. There is no floating point, no hash map and no platform-sized number in
//! anything that is kept or compared, so that every target gives the same run.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod clock;
pub mod decision;
mod faults;
pub mod flaw;
mod host;
mod node;
pub mod oracle;
pub mod random;
mod resource;
mod store;
pub mod swarm;
pub mod tape;
mod trace;
pub mod world;

pub use decision::{Decision, Fate, Fault, Message};
pub use flaw::Flaw;
pub use oracle::{Invariant, Violation};
pub use tape::{Source, Tape};
pub use world::{NodeSetup, Report, Setup, World, run};

/// One second, in nanoseconds.
pub const SECOND_NS: u64 = 1_000 * leasehold_core::time::MILLISECOND_NS;
