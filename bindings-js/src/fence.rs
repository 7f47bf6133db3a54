//! The guard's rules over the words of rows. An answer is the verdict's three words, then the row
//! to commit, then the step's row; what does not change is left out.

use alloc::vec::Vec;

use leasehold_core::fence::{self, Admitted, Advance, FenceRow};
use wasm_bindgen::prelude::*;

use crate::words::{self, Verdict};

/// `reach`: how far above the floor the seal may go; none: any distance, since it is proven.
#[wasm_bindgen]
pub fn seal(row: &[u64], token: &[u64], reach: Option<u64>) -> Result<Vec<u64>, JsError> {
    let row = words::fence_row(row)?;
    Ok(moved(fence::seal(row.as_ref(), words::token(token)?, advance(reach))))
}

/// `reach` as for [`seal`].
#[wasm_bindgen]
pub fn read(row: &[u64], token: &[u64], reach: Option<u64>) -> Result<Vec<u64>, JsError> {
    let row = words::fence_row(row)?;
    Ok(moved(fence::read(row.as_ref(), words::token(token)?, advance(reach))))
}

#[wasm_bindgen]
pub fn retire(row: &[u64], token: &[u64]) -> Result<Vec<u64>, JsError> {
    let row = words::fence_row(row)?;
    Ok(moved(fence::retire(row.as_ref(), words::token(token)?)))
}

#[wasm_bindgen]
pub fn recover(row: &[u64], token: &[u64]) -> Result<Vec<u64>, JsError> {
    let row = words::fence_row(row)?;
    Ok(moved(fence::recover(row.as_ref(), words::token(token)?)))
}

#[wasm_bindgen]
pub fn adopt(row: &[u64], token: &[u64]) -> Result<Vec<u64>, JsError> {
    let row = words::fence_row(row)?;
    Ok(moved(fence::adopt(row.as_ref(), words::token(token)?)))
}

#[wasm_bindgen]
pub fn admit(
    row: &[u64],
    known: &[u64],
    token: &[u64],
    op_digest: &[u64],
) -> Result<Vec<u64>, JsError> {
    let (row, known) = (words::fence_row(row)?, words::step_row(known)?);
    let op_digest = words::digest(op_digest)?;
    Ok(wrote(fence::admit(row.as_ref(), known.as_ref(), words::token(token)?, op_digest)))
}

#[wasm_bindgen]
pub fn cancel(row: &[u64], known: &[u64], token: &[u64]) -> Result<Vec<u64>, JsError> {
    let (row, known) = (words::fence_row(row)?, words::step_row(known)?);
    Ok(wrote(fence::cancel(row.as_ref(), known.as_ref(), words::token(token)?)))
}

fn advance(reach: Option<u64>) -> Advance {
    reach.map_or(Advance::Proven, Advance::AtMost)
}

fn moved((verdict, next): (impl Verdict, Option<FenceRow>)) -> Vec<u64> {
    let mut answer = Vec::from(verdict.words());
    answer.extend(next.into_iter().flat_map(words::of_fence_row));
    answer
}

fn wrote((verdict, next): (impl Verdict, Option<Admitted>)) -> Vec<u64> {
    let mut answer = Vec::from(verdict.words());
    if let Some(Admitted { row, step }) = next {
        answer.extend(words::of_fence_row(row));
        answer.extend(words::of_step_row(step));
    }
    answer
}
