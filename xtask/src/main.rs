//! `cargo xtask build | demo | test | bench`: all that is built and checked, and what it needs.

mod bench;
mod component;
#[cfg(target_os = "linux")]
mod demo;
mod imports;
mod javascript;
mod lint;
mod setup;
mod sim;
mod test;
mod workspace;

use std::process::ExitCode;

use setup::Setup;
use workspace::Workspace;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome<T = ()> = Result<T, Error>;

const USAGE: &str = "\
cargo xtask build            the component, then the command target/debug/leasehold
cargo xtask demo [--json]    two contenders pay invoices while everything goes wrong; under a minute
cargo xtask test [STAGE...]  all stages in order, or those named
cargo xtask sim ARGUMENT...  the simulator: run, seed, layers, mutants; without a word, its help
cargo xtask bench [exact]    what a decision costs; exact: only what repeats, within its limits";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["build"] => build(),
        ["demo"] => demo(false),
        ["demo", "--json"] => demo(true),
        ["test", stages @ ..] => test::run(stages),
        ["sim", arguments @ ..] => sim::run_with(arguments),
        ["bench"] => bench::run(),
        ["bench", "exact"] => exact(),
        ["help" | "-h" | "--help"] => {
            println!("{USAGE}\n\nStages: {}", test::names());
            Ok(())
        }
        _ => Err(format!("expected one of\n{USAGE}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Outcome {
    let workspace = Workspace::find()?;
    Setup::start_toolchain().toolchain()?;
    component::build(&workspace)?;
    workspace.cargo(&["build", "--package", "leasehold"])
}

fn exact() -> Outcome {
    bench::exact(&Workspace::find()?, &mut Setup::start())
}

#[cfg(target_os = "linux")]
fn demo(json: bool) -> Outcome {
    let workspace = Workspace::find()?;
    Setup::start_toolchain().toolchain()?;
    demo::run(&workspace, json)
}

#[cfg(not(target_os = "linux"))]
fn demo(_json: bool) -> Outcome {
    Err("the demo stops and wakes processes that it finds in /proc: it needs Linux".into())
}
