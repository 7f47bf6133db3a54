//! Installs what is missing, in the background, and says what and why.
//!
//! Whoever needs a part waits for that part: tests that only compile do not wait for apt.

use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::javascript::NPM;
use crate::workspace::{in_ci, output};
use crate::{Error, Outcome};

const TARGETS: [(&str, &str); 2] = [
    ("wasm32-unknown-unknown", "the component is wasm"),
    (
        "thumbv6m-none-eabi",
        "the core is built without an operating system, so that it stays no_std",
    ),
];
const COMPONENTS: [(&str, &str); 2] =
    [("clippy", "the lint stage runs it"), ("rustfmt", "the lint stage runs it")];
/// Programs, and at the same time the names of their Debian packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("sqlite3", "the fence's SQL is tested in the engine that users have"),
    ("python3", "the fence's SQL is tested through Python's sqlite3"),
    ("valgrind", "it counts the instructions of a decision"),
    ("faketime", "holders and waiters are shown a wall clock that jumps"),
];

/// The oldest Node that the npm package runs on: the first 20 that also requires ES modules.
const NODE: (u32, u32) = (20, 19);

pub(crate) struct Setup {
    toolchain: Part,
    programs: Part,
}

impl Setup {
    /// Begins to install all that is missing.
    pub(crate) fn start() -> Self {
        Self { toolchain: Part::start(install_toolchain), programs: Part::start(install_programs) }
    }

    /// Begins to install what a build needs; programs are left alone.
    pub(crate) fn start_toolchain() -> Self {
        Self { toolchain: Part::start(install_toolchain), programs: Part::Ready(Ok(())) }
    }

    /// Waits until everything that compiles is there.
    pub(crate) fn toolchain(&mut self) -> Outcome {
        self.toolchain.wait()
    }

    /// Looks for the Node and npm of the machine. Which to install where is the user's choice:
    /// Debian's own may be too old.
    pub(crate) fn node(&self) -> Outcome {
        let by_hand = format!(
            "the npm package is built and tested with Node {}.{} or later and its npm: install \
             Node's current LTS release",
            NODE.0, NODE.1
        );
        let node = output(Command::new("node").arg("--version"))
            .map_err(|error| format!("{error}\n{by_hand}"))?;
        output(Command::new(NPM).arg("--version"))
            .map_err(|error| format!("{error}\n{by_hand}"))?;
        if node_version(&node).is_none_or(|version| version < NODE) {
            return Err(format!("this is Node {}; {by_hand}", node.trim()).into());
        }
        Ok(())
    }

    /// Waits until the programs that only tests use are there.
    pub(crate) fn programs(&mut self) -> Outcome {
        self.programs.wait()
    }
}

enum Part {
    Running(JoinHandle<Outcome>),
    Ready(Result<(), String>),
}

impl Part {
    fn start(install: fn() -> Outcome) -> Self {
        Self::Running(thread::spawn(install))
    }

    fn wait(&mut self) -> Outcome {
        if let Self::Running(_) = self
            && let Self::Running(thread) = std::mem::replace(self, Self::Ready(Ok(())))
        {
            let outcome = thread.join().unwrap_or_else(|_| Err("set-up panicked".into()));
            *self = Self::Ready(outcome.map_err(|error| error.to_string()));
        }
        match self {
            Self::Ready(Err(error)) => Err(error.clone().into()),
            _ => Ok(()),
        }
    }
}

fn install_toolchain() -> Outcome {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let installed = Path::new(sysroot.trim()).join("lib/rustlib");
    let targets = missing(TARGETS, |target| installed.join(target).join("lib").is_dir());
    let components = missing(COMPONENTS, |name| {
        let subcommand = if name == "rustfmt" { "fmt" } else { name };
        output(Command::new("cargo").args([subcommand, "--version"])).is_ok()
    });
    rustup("target", &targets)?;
    rustup("component", &components)
}

fn rustup(kind: &str, missing: &[(&str, &str)]) -> Outcome {
    if missing.is_empty() {
        return Ok(());
    }
    let names = announce(missing);
    output(Command::new("rustup").args([kind, "add"]).args(&names)).map_err(|error| -> Error {
        let names = names.join(" ");
        format!("{error}\ninstall it yourself: rustup {kind} add {names}").into()
    })?;
    Ok(())
}

fn install_programs() -> Outcome {
    let is_there = |program: &str| output(Command::new(program).arg("--version")).is_ok();
    let missing = missing(PROGRAMS, is_there);
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let by_hand = format!("not installed: {0}; for example: apt-get install {0}", names.join(" "));
    let Some(apt) = apt_get() else { return unavailable(&by_hand) };
    announce(&missing);
    let install = || -> Outcome {
        apt(&["update", "-qq"])?;
        apt(&[&["install", "-qq", "--yes", "--no-install-recommends"], names.as_slice()].concat())
    };
    match install() {
        Ok(()) if names.iter().all(|program| is_there(program)) => Ok(()),
        Ok(()) => unavailable(&by_hand),
        Err(error) => unavailable(&format!("{error}\n{by_hand}")),
    }
}

/// Major and minor, of a text like `v20.19.4`.
fn node_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// On a developer's machine the tests that need the program say so themselves.
fn unavailable(message: &str) -> Outcome {
    if in_ci() {
        return Err(message.into());
    }
    eprintln!("set-up: {message}");
    Ok(())
}

/// A way to call apt-get, if this is a Debian-like system and we may install there.
fn apt_get() -> Option<impl Fn(&[&str]) -> Outcome> {
    let found = |command: &mut Command| output(command).is_ok();
    let as_root = rustix::process::geteuid().is_root();
    let usable = found(Command::new("apt-get").arg("--version"))
        && (as_root || found(Command::new("sudo").args(["-n", "true"])));
    usable.then_some(move |arguments: &[&str]| {
        let mut command = Command::new(if as_root { "apt-get" } else { "sudo" });
        if !as_root {
            command.args(["-n", "apt-get"]);
        }
        output(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
    })
}

fn missing<'a, const N: usize>(
    wanted: [(&'a str, &'a str); N],
    is_there: impl Fn(&str) -> bool,
) -> Vec<(&'a str, &'a str)> {
    wanted.into_iter().filter(|(name, _)| !is_there(name)).collect()
}

fn announce<'a>(missing: &[(&'a str, &str)]) -> Vec<&'a str> {
    for (name, why) in missing {
        eprintln!("set-up: installing {name}: {why}");
    }
    missing.iter().map(|(name, _)| *name).collect()
}
