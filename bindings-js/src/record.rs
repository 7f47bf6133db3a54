//! The one reader of records.

use alloc::vec::Vec;

use leasehold_core::record::{self, RecordFault};
use wasm_bindgen::prelude::*;

/// Nothing for the canonical bytes of a record that may stand under the key of the lease `name`.
/// Otherwise why they are none, in two words: 0 and the later format, or 1 and the first
/// unexpected byte.
#[wasm_bindgen(js_name = recordFault)]
pub fn record_fault(name: &str, value: &[u8]) -> Vec<u64> {
    match record::decode_named(name, value) {
        Ok(_) => Vec::new(),
        Err(RecordFault::Newer { format }) => [0, format].into(),
        Err(RecordFault::Malformed { offset }) => [1, offset as u64].into(),
    }
}
