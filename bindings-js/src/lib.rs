//! The core for JavaScript: what the npm package `leasehold` stands on, and nothing that people
//! call. What crosses is scalars, texts, the bytes of [`leasehold_core::wire`], and the words of
//! [`words`]; no object, no callback. On any other target this crate is empty.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]
// wasm-bindgen exports what is `pub`, from wherever it is.
#![allow(unreachable_pub)]

extern crate alloc;

mod config;
mod elector;
mod fence;
mod record;
mod timing;
mod words;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// A trap, which JavaScript sees as a `RuntimeError`. Only a machine out of memory comes here.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
