//! Two contenders pay invoices under one lease, and everything goes wrong, scene by scene: holders
//! are killed, frozen and asked to hand over, the lease's store is locked and rolled back. Payments
//! that come too late are refused, and in the end every invoice is paid once.
//!
//! What the report says is computed from the databases and from CLOCK_BOOTTIME.

mod history;
mod ledger;
mod log;
mod play;
mod processes;
mod report;
mod scenes;
mod stage;
mod story;

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::Outcome;
use crate::component;
use crate::workspace::Workspace;
use report::Report;
use stage::Stage;
use story::Story;

pub(crate) fn run(workspace: &Workspace, json: bool) -> Outcome {
    build(workspace)?;
    let stage = Stage::set(workspace)?;
    let outcome = tell(&stage, json);
    match &outcome {
        Ok(()) => fs::remove_dir_all(stage.folder())?,
        Err(_) => eprintln!("the databases are kept in {}", stage.folder().display()),
    }
    outcome
}

fn build(workspace: &Workspace) -> Outcome {
    if !workspace.leasehold().exists() {
        eprintln!("the first build takes six to ten minutes on two cores");
    }
    component::build(workspace)?;
    workspace.cargo(&["build", "--package", "leasehold", "--bins", "--examples"])
}

/// Plays the story and reports it; one that broke off is reported too, for people.
fn tell(stage: &Stage, json: bool) -> Outcome {
    let mut story = Story::default();
    if let Err(error) = scenes::play(stage, &mut story) {
        if let Ok(report) = Report::read(stage, &story) {
            eprintln!("\n{report}");
        }
        return Err(error);
    }
    let report = Report::read(stage, &story)?;
    if json {
        println!("{}", report.json());
    } else {
        print!("\n{report}");
    }
    report.verdict()?;
    eprintln!("\npassed: every invoice was paid once, and nothing that came late");
    Ok(())
}

/// Counts on while the machine sleeps, and is the same for all processes.
fn boottime_ns() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
