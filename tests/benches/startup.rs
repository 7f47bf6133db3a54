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
    let warm = || scene.path("warm");
    // The first on a machine compiles the component.
    let cold = || {
        let cache = scene.path("cold");
        let _ = fs::remove_dir_all(&cache);
        cache
    };
    microseconds(scene.leasehold(&warm()).args(["--", "true"]));
    scene.print_time("run.start", 101, warm);
    scene.print_time("run.start-cold", 9, cold);

    let beside = Waiting::start(scene.flock().args(WAIT)).runner_peak_kib();
    let warm = Waiting::start(scene.leasehold(&warm()).arg("--").args(WAIT));
    figure::print("run.memory-front", "KiB", peak_kib(warm.child.id()), Some(beside));
    figure::print("run.memory-keeper", "KiB", warm.runner_peak_kib(), Some(beside));
    drop(warm);
    let cold = Waiting::start(scene.leasehold(&cold()).arg("--").args(WAIT));
    figure::print("run.memory-front-cold", "KiB", peak_kib(cold.child.id()), Some(beside));
}

/// A folder with a store, a lock and caches of compiled code.
struct Scene {
    folder: TempDir,
    /// As it is released.
    binary: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let this = env::current_exe().expect("this program's path");
        let built = this.ancestors().nth(2).expect("the folder that cargo builds in");
        let binary = built.join("leasehold");
        let build = "build it with `cargo build --release --package leasehold`";
        assert!(binary.is_file(), "there is no {}: {build}", binary.display());
        Self { folder, binary }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
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

    /// From start to end of a command that does nothing: the middle of many, in turn with those of
    /// `flock`.
    fn print_time(&self, name: &str, rounds: usize, cache: impl Fn() -> PathBuf) {
        let (mut ours, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(microseconds(self.leasehold(&cache()).args(["--", "true"])));
            beside.push(microseconds(self.flock().arg("true")));
        }
        figure::print(name, "us", middle(ours), Some(middle(beside)));
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
