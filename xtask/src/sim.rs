//! `cargo xtask sim`: the simulator's own program, built as it has to be.

use std::fs;
use std::process::Command;

use crate::Outcome;
use crate::setup::Setup;
use crate::workspace::{Workspace, run};

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
    let mut target = workspace.target.clone();
    let mut environment = Vec::new();
    if arguments.first() == Some(&"mutants") {
        // In a folder of its own, so that no other build ever links what has bugs in it.
        target.push("planted");
        let folder = target.to_str().ok_or("the target folder's path is not UTF-8")?.to_owned();
        environment = vec![("RUSTFLAGS", "--cfg planted".to_owned()), ("CARGO_TARGET_DIR", folder)];
    }
    let environment: Vec<_> =
        environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
    workspace.cargo_with(
        &["build", "--release", "--package", "leasehold-sim", "--bin", "sim"],
        &environment,
    )?;
    let sim = target.join("release/sim");
    eprintln!("$ sim {}", arguments.join(" "));
    run(Command::new(sim).args(arguments))
}
