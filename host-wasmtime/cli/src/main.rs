//! `leasehold`: run a command on one machine at a time, with a fencing token.

mod doctor;
mod exit;
mod fence;
mod labels;
mod operator;
mod options;
mod places;
mod records;
mod run;
mod spans;
mod status;
#[cfg(unix)]
mod supervise;
mod timing;

use std::process::ExitCode;

use clap::Parser as _;

use exit::Failure;
use options::{Cli, Command};

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Some(code) = supervise::face(std::env::args_os().skip(1)) {
        return code;
    }
    #[cfg(unix)]
    supervise::outlive_file_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no failure.
            let _ = error.print();
            return if error.use_stderr() { exit::CONFIGURATION.into() } else { ExitCode::SUCCESS };
        }
    };
    let ended = match cli.command {
        Command::Run(options) => run::run(options),
        Command::Status(options) => status::status(&options),
        Command::Handoff(options) => operator::handoff(&options),
        Command::Release(options) => operator::release(&options),
        Command::Init(options) => operator::init(&options),
        Command::Fence(command) => fence::fence(&command),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Timing(options) => timing::timing(&options),
    };
    ended.unwrap_or_else(Failure::report)
}
