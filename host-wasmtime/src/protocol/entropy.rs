//! Salt: fresh bits for every draw that must not repeat.

use std::fmt;

/// Where nonces and jitter get their bits from.
pub trait Entropy: Send + Sync {
    /// 64 fresh bits from the operating system, never from a pool in memory: a pool is copied
    /// with the process's image, and two copies would draw the same nonces.
    ///
    /// # Errors
    /// [`NoEntropy`] ends the protocol that asked: with a repeated nonce a write of somebody else
    /// could be taken for one's own.
    fn salt(&self) -> Result<u64, NoEntropy>;
}

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn salt(&self) -> Result<u64, NoEntropy> {
        getrandom::u64().map_err(|error| NoEntropy(error.to_string()))
    }
}

/// The generator gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEntropy(pub String);

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the operating system gives no random bits ({}): without them no lease is safe",
            self.0
        )
    }
}

impl std::error::Error for NoEntropy {}
