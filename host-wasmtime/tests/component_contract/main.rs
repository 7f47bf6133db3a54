//! The component as its contract has it, and beside the core linked in.

mod fence;
mod fleet;
mod guest;
mod misuse;
mod reentry;
mod support;
mod tape;
