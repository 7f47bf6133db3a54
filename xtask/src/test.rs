//! `cargo xtask test`: the stages, cheap and telling first, never two compilers at a time.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt};

use crate::bench;
use crate::imports::{callers, imports};
use crate::setup::Setup;
use crate::sim;
use crate::workspace::{Workspace, output};
use crate::{Outcome, component, javascript, lint};

/// What the component may ask of its host: our own interfaces, and no WASI.
const OWN_INTERFACES: &str = "leasehold:protocol/";
const WASM: &str = "wasm32-unknown-unknown";

type Stage = (&'static str, fn(&Workspace, &mut Setup) -> Outcome);

const STAGES: [Stage; 9] = [
    ("lint", lint),
    ("core", core),
    ("sim", sim),
    ("wasm", wasm),
    ("js", js),
    ("host", host),
    ("process", process),
    ("bench", bench::exact),
    ("demo", demo),
];

/// Runs the stages named, or all; the first that fails ends the run.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !STAGES.iter().any(|stage| stage.0 == **name)) {
        return Err(format!("no stage `{unknown}`; the stages: {}", self::names()).into());
    }
    let chosen = |stage: &&Stage| names.is_empty() || names.contains(&stage.0);
    let workspace = Workspace::find()?;
    let needs_programs =
        names.is_empty() || ["process", "bench"].iter().any(|stage| names.contains(stage));
    let mut setup = if needs_programs { Setup::start() } else { Setup::start_toolchain() };
    let mut times = Times::default();
    for (name, stage) in STAGES.iter().filter(chosen) {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        let outcome = stage(&workspace, &mut setup);
        times.0.push((*name, start.elapsed()));
        if let Err(error) = outcome {
            eprintln!("\n{times}");
            return Err(format!("stage {name} failed: {error}").into());
        }
        eprintln!("=== {name}: {} s", seconds(start.elapsed()));
    }
    eprintln!("\n{times}all stages passed");
    Ok(())
}

/// The stages' names, in order.
pub(crate) fn names() -> String {
    STAGES.map(|stage| stage.0).join(" ")
}

fn lint(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    lint::banned_words(workspace)?;
    workspace.cargo(&["fmt", "--all", "--check"])?;
    component::build(workspace)?;
    workspace.cargo(&["clippy", "--all-targets", "--", "--deny", "warnings"])?;
    workspace.cargo(&[
        "clippy",
        "--package=leasehold-guest",
        "--package=leasehold-js",
        "--package=leasehold-probe",
        "--target",
        WASM,
        "--",
        "--deny",
        "warnings",
    ])?;
    workspace.cargo_with(&["doc", "--no-deps"], &[("RUSTDOCFLAGS", "--deny warnings")])
}

fn core(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    workspace.cargo(&["test", "--package", "leasehold-core"])?;
    workspace.cargo(&["build", "--package", "leasehold-core", "--target", "thumbv6m-none-eabi"])?;
    no_panic_path(workspace)
}

fn sim(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    sim::test(workspace)
}

/// The probe's panic handler calls an import. The linker drops it if nothing can reach it.
fn no_panic_path(workspace: &Workspace) -> Outcome {
    let control = component::module(workspace, "leasehold-probe", &["--cfg", "panics"])?;
    if imports(&control)?.is_empty() {
        return Err(
            "the panic probe sees nothing: it misses the panic path put there for it".into()
        );
    }
    let probe = component::module(workspace, "leasehold-probe", &[])?;
    match imports(&probe)?.as_slice() {
        [] => {
            eprintln!("no panic path in the core: {} bytes of wasm, no import", probe.len());
            Ok(())
        }
        _ => {
            Err(format!("panic paths are left in the core:\n{}", callers(&probe)?.join("\n"))
                .into())
        }
    }
}

fn wasm(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    let component = component::build(workspace)?;
    let imports = imports(&component)?;
    let foreign: Vec<_> = imports.iter().filter(|name| !name.starts_with(OWN_INTERFACES)).collect();
    if imports.is_empty() || !foreign.is_empty() {
        return Err(format!(
            "the component may import {OWN_INTERFACES}* and nothing else; it imports {imports:?}"
        )
        .into());
    }
    eprintln!("the component imports {}", imports.join(", "));
    Ok(())
}

fn js(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    setup.node()?;
    javascript::build(workspace)?;
    javascript::test(workspace)
}

fn host(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    component::build(workspace)?;
    workspace.cargo(&["test", "--package", "leasehold-host"])
}

fn process(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    component::build(workspace)?;
    workspace.cargo(&["build", "--package", "leasehold"])?;
    workspace.cargo(&["test", "--package", "leasehold", "--no-run"])?;
    workspace.cargo(&["test", "--package", "leasehold-tests", "--no-run"])?;
    if sim::is_planted(&fs::read(workspace.leasehold())?) {
        return Err("the command was built with planted bugs".into());
    }
    setup.programs()?;
    workspace.cargo(&["test", "--package", "leasehold"])?;
    // They wait more than they work.
    let threads = ("RUST_TEST_THREADS", "4");
    workspace.cargo_with(&["test", "--package", "leasehold-tests"], &[threads])
}

/// What the demo has to report, exactly.
const DEMO: [(&str, u64); 10] = [
    ("takeovers", 5),
    ("handoffs", 1),
    ("outages_survived", 1),
    ("starts_in_outages", 0),
    ("restores_healed", 1),
    ("stale_writes_refused", 3),
    ("stale_writes_accepted", 0),
    ("duplicate_payments", 0),
    ("missing_payments", 0),
    ("overlaps", 0),
];

/// Runs the demo as a user would, and believes only the line that it prints.
fn demo(_workspace: &Workspace, setup: &mut Setup) -> Outcome {
    setup.toolchain()?;
    let mut demo = Command::new(env::current_exe()?);
    let line = output(demo.args(["demo", "--json"]).stderr(Stdio::inherit()))?;
    let (Some(line), None) = (line.lines().next(), line.lines().nth(1)) else {
        return Err(format!("the demo printed more or less than one line: {line:?}").into());
    };
    eprintln!("{line}");
    let report: serde_json::Value = serde_json::from_str(line)?;
    let mut wrong: Vec<_> =
        DEMO.iter().filter(|(key, count)| report[key] != *count).map(|(key, _)| *key).collect();
    if report["takeover_ms"].as_array().map(Vec::len) != Some(5) {
        wrong.push("takeover_ms");
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("the demo did not show what it has to show: {}", wrong.join(", ")).into())
    }
}

#[derive(Default)]
struct Times(Vec<(&'static str, Duration)>);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.0 {
            writeln!(f, "{name:<8} {:>7} s", seconds(*time))?;
        }
        let total = self.0.iter().map(|(_, time)| *time).sum();
        writeln!(f, "{:<8} {:>7} s", "total", seconds(total))
    }
}

fn seconds(time: Duration) -> String {
    format!("{}.{}", time.as_secs(), time.subsec_millis() / 100)
}
