//! The component is built by `cargo xtask build`, not by cargo itself: it is wasm, this is not.

use std::path::Path;

const COMPONENT: &str = "component/leasehold.wasm";

fn main() {
    println!("cargo::rerun-if-changed={COMPONENT}");
    if !Path::new(COMPONENT).exists() {
        println!("cargo::error={COMPONENT} is not built yet: run `cargo xtask build`");
    }
}
