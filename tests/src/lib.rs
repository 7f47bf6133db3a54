//! What crosses crates, needs processes or engines, or is shared by languages.

pub mod fence_vectors;
mod json;
pub mod lease_vectors;
