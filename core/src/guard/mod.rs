//! The rules of [`crate::fence`] as text, for engines that run them inside the user's own
//! transaction. Each text is held to the same vectors as the rules, and its head says how to use it.

/// The guard for SQLite 3.37 and later. Apply it as it stands, as often as you like, alone or within
/// a transaction of your own: it changes either everything or nothing. Where the database was
/// written by a newer schema it rolls the whole transaction back and fails with `leasehold:
/// NewerSchema`.
pub const SQLITE: &str = include_str!("sqlite.sql");

/// What every message of a guard begins with; the verdict's name follows. A guard refuses what a
/// typed caller cannot send, too: `BadToken`, `BadStep`, `BadDigest`.
pub const MESSAGE_PREFIX: &str = "leasehold: ";
