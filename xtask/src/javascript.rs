//! Builds the npm package: the wasm, its glue, and the TypeScript around them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use wasm_bindgen_cli_support::Bindgen;

use crate::Outcome;
use crate::component::{gzip_size, module};
use crate::workspace::{Workspace, run};

pub(crate) const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Builds all that the package's `dist` and `generated` hold.
pub(crate) fn build(workspace: &Workspace) -> Outcome {
    let package = package(workspace);
    let generated = package.join("generated");
    // What is no longer made would still be packed.
    for folder in [&generated, &package.join("dist")] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    glue(workspace, &generated)?;
    npm(&package, &["ci", "--no-audit", "--no-fund"])?;
    npm(&package, &["run", "build"])
}

/// Runs the package's own tests.
pub(crate) fn test(workspace: &Workspace) -> Outcome {
    npm(&package(workspace), &["test"])
}

/// What wasm-bindgen makes of the crate. The wasm goes inline, so that every bundler and runtime
/// finds it, and nobody has to wait for it.
fn glue(workspace: &Workspace, folder: &Path) -> Outcome {
    Bindgen::new()
        .input_bytes("leasehold", module(workspace, "leasehold-js", &[])?)
        .web(true)?
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)?;
    let path = folder.join("leasehold_bg.wasm");
    let wasm = fs::read(&path)?;
    let inline = format!("export const base64 = \"{}\";\n", BASE64_STANDARD.encode(&wasm));
    fs::write(folder.join("wasm.js"), inline)?;
    fs::write(folder.join("wasm.d.ts"), "export declare const base64: string;\n")?;
    eprintln!(
        "{}: {} bytes, {} with gzip",
        workspace.relative(&path),
        wasm.len(),
        gzip_size(&wasm)?
    );
    Ok(())
}

fn package(workspace: &Workspace) -> PathBuf {
    workspace.root.join("bindings-js/npm")
}

fn npm(package: &Path, arguments: &[&str]) -> Outcome {
    eprintln!("$ npm {}", arguments.join(" "));
    run(Command::new(NPM).args(arguments).current_dir(package))
}
