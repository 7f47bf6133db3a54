//! What the electors of one process share.

use alloc::rc::Rc;

use leasehold_core::label::Label;
use leasehold_core::lease;
use leasehold_core::time::Clocks;
use leasehold_core::token::Nonce;
use wasm_bindgen::prelude::*;

use crate::timing;

/// A checked configuration.
#[wasm_bindgen]
pub struct Config(pub(crate) Rc<lease::Config>);

#[wasm_bindgen]
impl Config {
    /// `timing` and `error_ns` as for [`timing::check`].
    #[wasm_bindgen(constructor)]
    pub fn new(
        holder: &str,
        instance: u64,
        timing: &[u64],
        error_ns: Option<u64>,
        wall: bool,
        resolution_ns: u64,
    ) -> Result<Self, JsValue> {
        let holder = Label::new(holder).map_err(JsError::from)?;
        let timing = timing::timing(timing)?;
        let authority = timing::authority(error_ns);
        let clocks = Clocks { wall, resolution_ns };
        let config = lease::Config::new(Nonce(instance), holder, timing, authority, clocks)
            .map_err(|misuse| timing::misuse_error(&misuse))?;
        Ok(Self(config.into()))
    }
}

/// Says what is wrong with a text that is no label.
#[wasm_bindgen(js_name = checkLabel)]
pub fn check_label(text: &str) -> Result<(), JsError> {
    Label::new(text)?;
    Ok(())
}
