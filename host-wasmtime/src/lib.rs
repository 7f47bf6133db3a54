//! Leases over a store of your own, decided by the leasehold core: the wasm component inside
//! wasmtime ([`Leases::component`]), or the core linked in ([`Leases::native`]). One driver serves
//! both.
//!
//! ```no_run
//! use leasehold_host::{Held, Leases, Options, store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let leases = Leases::native(store::open("sqlite:leases.db")?, Options::new("web-1"))?;
//! match leases.hold("settlement", |lease| async move { settle(lease.token()).await }).await? {
//!     Held::Done(paid) => println!("{paid} paid"),
//!     Held::Lost(why) => eprintln!("stopped in time: {why}"),
//! }
//! # Ok(())
//! # }
//! # async fn settle(_: leasehold_core::token::Token) -> u32 { 0 }
//! ```
//!
//! Exclusivity holds within the declared bounds; what makes a late write harmless whatever
//! happens is the fence: pass [`Lease::token`] to every resource, and let it refuse older ones.

pub mod clock;
mod driver;
pub mod fence;
pub mod leases;
pub mod operator;
pub mod protocol;
pub mod store;

pub use leases::{Candidate, Error, Held, Lease, Leases, Lost, Options, Update};
pub use protocol::{Engine, EngineError};

/// The component, for a wasmtime host of one's own. Its contract lies in this crate's folder
/// `wit`; `examples/own_host.rs` shows such a host.
pub const COMPONENT: &[u8] = include_bytes!("../component/leasehold.wasm");
