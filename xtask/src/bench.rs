//! `cargo xtask bench`: what decisions, renewals and the start of `run` cost, each figure beside
//! something of its kind. Less is better, except per second.
//!
//! `target/bench/summary.json` has one object, of the figures by name:
//! `{"unit": text, "ours": integer, "beside": integer or null, "ratio": text or null}`, where the
//! ratio is `ours / beside` with three decimals. It holds the figures of one run and no others.

use std::fs;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::component::{self, gzip_size};
use crate::setup::Setup;
use crate::workspace::{Workspace, output};
use crate::{Outcome, javascript};

/// What may not become dearer unseen: about 15 % above what it was when the limit was set, so that
/// the next compiler need not move it; nothing where there is to be none. Who makes a decision
/// dearer for a good reason moves the limit in the same change. Instructions are those of x86-64.
const LIMITS: [(&str, u64); 14] = [
    ("component.wasm", 106_000),
    ("component.gzip", 40_000),
    ("javascript.wasm", 101_000),
    ("javascript.gzip", 42_000),
    ("renewal.instructions", 1_450),
    ("seal.instructions", 53),
    ("admit.instructions", 48),
    ("renewal.allocations", 0),
    ("seal.allocations", 0),
    ("admit.allocations", 0),
    ("elector.size", 368),
    ("config.size", 322),
    ("component.memory-per-lease", 459),
    ("component.growth-in-1000000-steps", 0),
];

/// Measures everything.
pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find()?;
    let exact = repeatable(&workspace, &mut Setup::start())?;
    let timed = timed(&workspace)?;
    report(&workspace, exact.iter().chain(&timed))?;
    within_limits(&exact)
}

/// Measures what repeats exactly, and refuses what is above its limit.
pub(crate) fn exact(workspace: &Workspace, setup: &mut Setup) -> Outcome {
    let figures = repeatable(workspace, setup)?;
    report(workspace, &figures)?;
    within_limits(&figures)
}

struct Figure {
    name: String,
    unit: String,
    ours: u64,
    beside: Option<u64>,
}

fn repeatable(workspace: &Workspace, setup: &mut Setup) -> Outcome<Vec<Figure>> {
    setup.toolchain()?;
    setup.node()?;
    let mut figures = sizes(workspace)?;
    setup.programs()?;
    let package = "--package=leasehold-tests";
    figures.extend(read(&workspace.cargo_output(&[
        "run",
        package,
        "--release",
        "--bin=exact",
    ])?)?);
    // What a guest's memory does is the same in every build of its host, and tests need this one.
    figures.extend(read(&workspace.cargo_output(&[
        "bench",
        package,
        "--profile=dev",
        "--bench=memory",
    ])?)?);
    Ok(figures)
}

/// The wasm that ships, beside the core without a boundary: the probe, which uses all of it.
fn sizes(workspace: &Workspace) -> Outcome<Vec<Figure>> {
    let component = component::build(workspace)?;
    javascript::build(workspace)?;
    let javascript = fs::read(workspace.root.join("bindings-js/npm/generated/leasehold_bg.wasm"))?;
    let core = component::module(workspace, "leasehold-probe", &[])?;
    let mut figures = Vec::new();
    for (name, wasm) in [("component", component), ("javascript", javascript)] {
        let sizes =
            [("wasm", wasm.len(), core.len()), ("gzip", gzip_size(&wasm)?, gzip_size(&core)?)];
        figures.extend(sizes.map(|(form, ours, beside)| Figure {
            name: format!("{name}.{form}"),
            unit: "bytes".to_owned(),
            ours: ours as u64,
            beside: Some(beside as u64),
        }));
    }
    Ok(figures)
}

fn timed(workspace: &Workspace) -> Outcome<Vec<Figure>> {
    // The command as it is released, which one of the benchmarks starts.
    workspace.cargo(&["build", "--release", "--package=leasehold"])?;
    let rust = workspace.cargo_output(&[
        "bench",
        "--package=leasehold-tests",
        "--bench=timed",
        "--bench=renewals",
        "--bench=startup",
    ])?;
    let package = workspace.root.join("bindings-js/npm");
    let javascript = output(Command::new("node").arg("bench/step.js").current_dir(package))?;
    Ok([read(&rust)?, read(&javascript)?].into_iter().flatten().collect())
}

/// Reads lines of four words: name, unit, ours, beside or `-`.
fn read(lines: &str) -> Outcome<Vec<Figure>> {
    let figure = |line: &str| -> Outcome<Figure> {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, unit, ours, beside] = words.as_slice() else {
            return Err(format!("a benchmark printed what is no figure: {line}").into());
        };
        Ok(Figure {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            ours: ours.parse()?,
            beside: if *beside == "-" { None } else { Some(beside.parse()?) },
        })
    };
    lines.lines().map(figure).collect()
}

impl Figure {
    fn ratio(&self) -> Option<String> {
        let thousandths = (self.ours * 1_000).checked_div(self.beside?)?;
        Some(format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000))
    }
}

/// A table for people, and the file for programs.
fn report<'a>(workspace: &Workspace, figures: impl IntoIterator<Item = &'a Figure>) -> Outcome {
    let mut summary = Map::new();
    eprintln!("\n{:<34} {:>9} {:>9} {:>9}", "", "ours", "beside", "ratio");
    for figure in figures {
        let Figure { name, unit, ours, beside } = figure;
        let ratio = figure.ratio();
        let text = |value: Option<String>| value.unwrap_or_default();
        eprintln!(
            "{name:<34} {ours:>9} {:>9} {:>9}  {unit}",
            text(beside.map(|beside| beside.to_string())),
            text(ratio.clone()),
        );
        let value = json!({ "unit": unit, "ours": ours, "beside": beside, "ratio": ratio });
        summary.insert(name.clone(), value);
    }
    let folder = workspace.target.join("bench");
    let path = folder.join("summary.json");
    fs::create_dir_all(&folder)?;
    fs::write(&path, format!("{:#}\n", Value::Object(summary)))?;
    eprintln!("\n{}", workspace.relative(&path));
    Ok(())
}

/// Every figure has a limit and every limit a figure, so that none is lost by a new name.
fn within_limits(figures: &[Figure]) -> Outcome {
    let names = || figures.iter().map(|figure| figure.name.as_str());
    if !names().eq(LIMITS.iter().map(|(name, _)| *name)) {
        let names: Vec<&str> = names().collect();
        return Err(format!("the limits are not of these figures, in order: {names:?}").into());
    }
    let above = figures.iter().zip(LIMITS).filter(|(figure, (_, limit))| figure.ours > *limit);
    let above: Vec<String> = above
        .map(|(Figure { name, unit, ours, .. }, (_, limit))| {
            format!("{name}: {ours} {unit}, above its limit of {limit}")
        })
        .collect();
    if above.is_empty() { Ok(()) } else { Err(above.join("\n").into()) }
}
