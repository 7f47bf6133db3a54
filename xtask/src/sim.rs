//! `cargo xtask sim`: the simulator's own program, built as it has to be.

use std::fs;

use crate::Outcome;
use crate::setup::Setup;
use crate::workspace::Workspace;

/// How many seeds CI tries: more than what found every planted bug, by orders of magnitude.
const SEEDS: &str = "200000";

/// Stands in every binary that has bugs to switch on.
const MARKER: &[u8] = b"leasehold: a build with planted bugs";

/// Builds the simulator and passes everything on to it.
pub(crate) fn run_with(arguments: &[&str]) -> Outcome {
    let workspace = Workspace::find()?;
    Setup::start_toolchain().toolchain()?;
    simulate(&workspace, arguments)
}

/// Seeds without a violation; what each layer is for; planted bugs, each caught by its invariant.
pub(crate) fn test(workspace: &Workspace) -> Outcome {
    workspace.cargo(&["test", "--package", "leasehold-sim"])?;
    simulate(workspace, &["run", "--seeds", SEEDS])?;
    simulate(workspace, &["layers"])?;
    simulate(workspace, &["mutants"])?;
    let planted = fs::read(workspace.target.join("planted/release/sim"))?;
    let plain = fs::read(workspace.target.join("release/sim"))?;
    if !is_planted(&planted) || is_planted(&plain) {
        return Err("the marker of planted bugs does not tell such builds from others".into());
    }
    Ok(())
}

/// Whether a build can have bugs switched on.
pub(crate) fn is_planted(build: &[u8]) -> bool {
    build.windows(MARKER.len()).any(|bytes| bytes == MARKER)
}

fn simulate(workspace: &Workspace, arguments: &[&str]) -> Outcome {
    let planted = workspace.target.join("planted");
    let planted = planted.to_str().ok_or("the target folder's path is not UTF-8")?;
    // In a folder of its own, so that no other build ever links what has bugs in it; and by the
    // variable that outranks all others.
    let environment =
        [("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}planted"), ("CARGO_TARGET_DIR", planted)];
    let environment: &[_] = if arguments.first() == Some(&"mutants") { &environment } else { &[] };
    let sim = ["run", "--release", "--package", "leasehold-sim", "--bin", "sim", "--"];
    workspace.cargo_with(&[&sim, arguments].concat(), environment)
}
