//! Builds the component that the host embeds.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use wit_component::ComponentEncoder;

use crate::Outcome;
use crate::sim::is_planted;
use crate::workspace::Workspace;

const WASM: &str = "wasm32-unknown-unknown";

/// Builds the guest, makes a component of it, and puts it where the host's build looks for it.
pub(crate) fn build(workspace: &Workspace) -> Outcome<Vec<u8>> {
    let module = module(workspace, "leasehold-guest", &[])?;
    let component = ComponentEncoder::default().validate(true).module(&module)?.encode()?;
    let folder = workspace.root.join("host-wasmtime/component");
    let path = folder.join("leasehold.wasm");
    // An equal file keeps its date, so that cargo does not build the host anew.
    if fs::read(&path).ok().as_deref() != Some(&component) {
        fs::create_dir_all(&folder)?;
        fs::write(&path, &component)?;
    }
    eprintln!(
        "{}: {} bytes, {} with gzip",
        workspace.relative(&path),
        component.len(),
        gzip_size(&component)?,
    );
    Ok(component)
}

/// Builds a cdylib as wasm, as it would ship, and reads it.
pub(crate) fn module(workspace: &Workspace, package: &str, rustc: &[&str]) -> Outcome<Vec<u8>> {
    let cargo = ["rustc", "--package", package, "--profile", "wasm", "--target", WASM, "--"];
    workspace.cargo(&[&cargo, rustc].concat())?;
    let file = format!("{WASM}/wasm/{}.wasm", package.replace('-', "_"));
    let module = fs::read(workspace.target.join(file))?;
    if is_planted(&module) { Err("it was built with planted bugs".into()) } else { Ok(module) }
}

pub(crate) fn gzip_size(bytes: &[u8]) -> Outcome<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
