//! Leases and fencing tokens as a protocol core: every decision, and nothing else.
//!
//! No IO, no clock, no randomness, no allocation. The host reads clocks and performs storage
//! requests; the core says what to ask for and what the answers mean. Two shapes:
//!
//! - a **machine** lives through time: [`lease::Elector`] takes one input and gives one plain
//!   answer, `step(now, input) -> Step { request, wake, event }`;
//! - a **rule** is a pure function over a stored row: [`fence::seal`], [`fence::admit`].
//!
//! Fencing holds whatever clocks and networks do, as long as the resource keeps its fence row.
//! Exclusivity holds while clocks stay within the declared drift, the store is linearizable and
//! durable, and nobody edits its records. `docs/PROTOCOL.md` states the rules.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::float_arithmetic
    )
)]

#[cfg(test)]
extern crate std;

pub mod fence;
pub mod guard;
pub mod label;
pub mod lease;
pub mod observe;
pub mod operator;
#[cfg(planted)]
pub mod planted;
#[cfg(not(planted))]
mod planted;
pub mod record;
pub mod store;
pub mod time;
pub mod timing;
pub mod token;
pub mod wire;
