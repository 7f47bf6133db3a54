//! Where things are, and how cargo is called.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

pub(crate) struct Workspace {
    /// The folder of the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Outcome<Self> {
        let mut metadata = cargo_command();
        metadata.args(["metadata", "--format-version=1", "--no-deps"]);
        let metadata: serde_json::Value = serde_json::from_str(&output(&mut metadata)?)?;
        let folder = |key: &str| metadata[key].as_str().map(PathBuf::from);
        match (folder("workspace_root"), folder("target_directory")) {
            (Some(root), Some(target)) => Ok(Self { root, target }),
            _ => Err("`cargo metadata` names no workspace: run this inside the project".into()),
        }
    }

    /// The command `leasehold`, as the tests and the demo use it.
    pub(crate) fn leasehold(&self) -> PathBuf {
        self.target.join("debug/leasehold")
    }

    /// Compiled wasm code that processes of a test run share, so that only the first compiles.
    pub(crate) fn code_cache(&self) -> PathBuf {
        self.target.join("leasehold-cache")
    }

    /// Runs cargo, its words for the user to see.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Outcome {
        self.cargo_with(arguments, &[])
    }

    /// Runs cargo with more environment.
    pub(crate) fn cargo_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        eprintln!("$ cargo {}", arguments.join(" "));
        let mut cargo = cargo_command();
        cargo
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .envs(environment.iter().copied())
            .env("LEASEHOLD_BIN", self.leasehold())
            .env("LEASEHOLD_CACHE", self.code_cache());
        run(&mut cargo)
    }

    /// Runs cargo for what the program prints that it runs.
    pub(crate) fn cargo_output(&self, arguments: &[&str]) -> Outcome<String> {
        eprintln!("$ cargo {}", arguments.join(" "));
        let mut cargo = cargo_command();
        cargo
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::inherit());
        output(&mut cargo)
    }

    /// The path of a file of the project, for people.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// The machines of CI install what is missing or fail; they never go on without.
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

/// Runs a program; its failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{}: {error}", line(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", line(command)).into()) }
}

/// Runs a program for what it prints; what it says on failure becomes part of the error.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}`: {}\n{said}", line(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn cargo_command() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What is built for a target by name lies elsewhere, and old files would be taken for it.
    cargo.env_remove("CARGO_BUILD_TARGET");
    cargo
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
