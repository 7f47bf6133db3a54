//! The core as a wasm component: `wit/leasehold.wit` on the outside, `leasehold-core` inside.
//! On any other target this crate is empty.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

mod elector;
mod fence;
mod leases;
mod timing;
mod values;

use core::sync::atomic::{AtomicBool, Ordering};

use bindings::leasehold::protocol::types::Misuse;

#[allow(missing_docs, unused_qualifications)]
mod bindings {
    wit_bindgen::generate!({ path: "../wit", world: "protocol" });
}

struct Guest;

bindings::export!(Guest with_types_in bindings);

/// Runs an export, unless one is running already: the engine does not keep a host from calling
/// back during an import.
fn alone<T>(export: impl FnOnce() -> Result<T, Misuse>) -> Result<T, Misuse> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    if ENTERED.swap(true, Ordering::Relaxed) {
        return Err(Misuse::ReEntered);
    }
    let answer = export();
    ENTERED.store(false, Ordering::Relaxed);
    answer
}

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// A trap: the host replaces the instance, and its leases run out.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
