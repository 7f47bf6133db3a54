//! What `leasehold run` takes before and beside the command: time and memory, beside `flock`, which
//! runs a command under a lock of the kernel.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use leasehold_tests::figure;
use tempfile::TempDir;

fn main() {
    let scene = Scene::new();
    microseconds(scene.leasehold(&scene.warm_cache()).args(["--", "true"]));
    let (ours, beside) = scene.start(101, || scene.warm_cache());
    figure::print("run.start", "us", ours, Some(beside));
    // The first on this machine compiles the component.
    let mut empty = 0..;
    let (ours, beside) =
        scene.start(9, || scene.path(&format!("empty-{}", empty.next().expect("a number"))));
    figure::print("run.first-start", "us", ours, Some(beside));

    let beside = Waiting::start(scene.flock().args(WAIT)).runner_peak_kib();
    for (name, cache) in [("run", scene.warm_cache()), ("run.first", scene.path("empty"))] {
        let waiting = Waiting::start(scene.leasehold(&cache).arg("--").args(WAIT));
        let (front, keeper) = (peak_kib(waiting.child.id()), waiting.runner_peak_kib());
        figure::print(&format!("{name}.front-memory"), "KiB", front, Some(beside));
        figure::print(&format!("{name}.keeper-memory"), "KiB", keeper, Some(beside));
    }
}

/// A folder with a store, a lock and caches of compiled code.
struct Scene {
    folder: TempDir,
    binary: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let binary = env::var_os("LEASEHOLD_BIN").expect(
            "LEASEHOLD_BIN names no release build of the command; start this by `cargo xtask bench`",
        );
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self { folder, binary: binary.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn warm_cache(&self) -> PathBuf {
        self.path("warm")
    }

    /// `leasehold run` on a free lease, without its command.
    fn leasehold(&self, cache: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["run", "--store"]).arg(self.path("leases.db")).arg("job");
        command.env("LEASEHOLD_CACHE", cache).stderr(Stdio::null());
        command
    }

    /// `flock` on a free lock, without its command.
    fn flock(&self) -> Command {
        let mut command = Command::new("flock");
        command.arg(self.path("lock"));
        command
    }

    /// Microseconds of a command that does nothing, from start to end: the middle of many, in turn
    /// with those of `flock`.
    fn start(&self, rounds: usize, mut cache: impl FnMut() -> PathBuf) -> (u64, u64) {
        let mut spans = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            spans.0.push(microseconds(self.leasehold(&cache()).args(["--", "true"])));
            spans.1.push(microseconds(self.flock().arg("true")));
        }
        (middle(spans.0), middle(spans.1))
    }
}

fn microseconds(command: &mut Command) -> u64 {
    let start = Instant::now();
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let span = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    u64::try_from(span.as_micros()).expect("less than days")
}

fn middle(mut spans: Vec<u64>) -> u64 {
    spans.sort_unstable();
    spans[spans.len() / 2]
}

/// Says who started it, and ends with its stdin.
const WAIT: [&str; 3] = ["sh", "-c", "echo $PPID; read nothing || :"];

/// Somebody's command, which waits.
struct Waiting {
    child: Child,
    runner: u32,
}

impl Waiting {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).unwrap();
        let runner = line.trim().parse().unwrap_or_else(|_| panic!("{command:?}: {line:?}"));
        Self { child, runner }
    }

    /// Of the process that runs the command.
    fn runner_peak_kib(&self) -> u64 {
        peak_kib(self.runner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The most memory that the process had at any time.
fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
    peak.and_then(|kib| kib.trim().parse().ok()).expect("its peak of resident memory")
}
