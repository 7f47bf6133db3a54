//! Counts allocations, in a program that makes [`Counting`] its global allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What `work` gives, and how often this thread allocated meanwhile.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let value = work();
    (value, ALLOCATIONS.get() - before)
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted by thread.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call is passed on as it is. What grows or is zeroed comes through `alloc` too.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
