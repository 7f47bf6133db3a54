//! skeleton

pub mod store;
