//! The guard's SQL held to the rules of the fence, and to what its head promises its users.

mod arguments;
mod database;
mod engine;
mod parked;
mod random;
mod schema;
mod script;
mod statement;
mod vectors;
