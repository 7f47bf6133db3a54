//! What crosses crates, needs processes or engines, or is shared by languages.

mod json;

pub mod allocations;
pub mod fence_vectors;
pub mod figure;
pub mod holder;
pub mod lease_vectors;
pub mod record_vectors;
pub mod timing_vectors;
