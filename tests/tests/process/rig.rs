//! Starts the real `leasehold` in a folder of the test's own, watches it, and leaves no process.
//!
//! Instants are spans since the boot, by CLOCK_BOOTTIME: the same in every process.

mod events;
mod processes;
mod store;
mod terminal;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

pub(crate) use processes::{Process, has_zombie, signal};
pub(crate) use store::{Row, Store};
pub(crate) use terminal::Terminal;

/// The lease that nearly every test is about.
pub(crate) const LEASE: &str = "job";
pub(crate) const TTL: Duration = Duration::from_secs(3);
const GRACE: &str = "500ms";
/// The longest wait for anything; far above what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(5);
/// By it everything that a test started is found again, wherever it went.
const MARK: &str = "LEASEHOLD_TEST_MARK";

/// A folder to work in, with a store. When it is dropped, nothing that was started in it is left.
pub(crate) struct Scene {
    root: TempDir,
    started: AtomicUsize,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("a temporary folder");
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root, started: AtomicUsize::new(0) }
    }

    /// The folder that every process of the test starts in.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder().join(file)
    }

    /// The lease store that `run` uses here.
    pub(crate) fn store(&self) -> Store {
        Store::at(self.path("leases.db"))
    }

    /// A database with a payment table, and the never sealed resource `payments` in it.
    pub(crate) fn payments(&self) -> Store {
        let payments = Store::at(self.path("payments.db"));
        payments.execute("CREATE TABLE payment(term INTEGER NOT NULL)");
        let init = self.leasehold(["fence", "init", "./payments.db", "payments"]).end();
        assert_eq!(init.code, 0, "{init:?}");
        payments
    }

    /// Starts `leasehold` with these arguments and nothing on its stdin.
    pub(crate) fn leasehold<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Started {
        self.start(self.command(arguments).stdin(Stdio::null()))
    }

    /// Starts `leasehold run` on the store of the scene, with more options, and this as the command.
    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Started {
        self.leasehold(run_line(options, command))
    }

    /// The same with this script of `sh` as the command.
    pub(crate) fn run_sh(&self, options: &[&str], script: &str) -> Started {
        self.run(options, &["sh", "-c", script])
    }

    /// `leasehold`, not yet started, for a test with an environment or a stdin of its own.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        // Whoever runs the tests in the background has Ctrl-C ignored, and passes that on.
        let mut command = Command::new("/usr/bin/env");
        command
            .arg("--default-signal")
            .arg(leasehold())
            .args(arguments)
            .current_dir(self.folder())
            .env("LEASEHOLD_CACHE", code_cache())
            .env_remove("LEASEHOLD_STORE");
        command
    }

    pub(crate) fn start(&self, command: &mut Command) -> Started {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let value = format!("{}:{number}:", self.root.path().display());
        let words = |of: &str| self.root.path().join(format!("{number}.{of}"));
        let (stdout, stderr) = (words("stdout"), words("stderr"));
        let child = command
            .env(MARK, &value)
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
        Started { child, mark: format!("{MARK}={value}"), stdout, stderr }
    }

    /// Whether nothing that was started here is left.
    pub(crate) fn is_deserted(&self) -> bool {
        self.processes().is_empty()
    }

    fn processes(&self) -> Vec<Process> {
        Process::marked(&format!("{MARK}={}:", self.root.path().display()))
    }

    /// Every file of the folder, SQLite's log and lock memory aside. What the lease store's log
    /// holds is brought into the file first: whoever opens it next would do that.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        if self.store().path().exists() {
            self.store().checkpoint();
        }
        let entries = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        let aside = |path: &PathBuf| {
            [".db-wal", ".db-shm"].iter().any(|end| path.to_str().unwrap().ends_with(end))
        };
        entries
            .filter(|path| path.is_file() && !aside(path))
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let end = now() + PATIENCE;
        // Twice nothing: a process shows no environment while it becomes another program.
        let mut nothing_seen = 0;
        while nothing_seen < 2 && now() < end {
            let left = self.processes();
            nothing_seen = if left.is_empty() { nothing_seen + 1 } else { 0 };
            for process in left {
                signal(process.pid, Signal::KILL);
            }
            thread::sleep(POLL);
        }
    }
}

/// The arguments of a `run` on the store of the scene.
pub(crate) fn run_line<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", LEASE, "--store", "./leases.db"];
    let usual = [["--ttl", "3s"], ["--grace", GRACE]];
    let usual = usual.into_iter().filter(|[option, _]| !options.contains(option));
    [&fixed, &usual.flatten().collect::<Vec<_>>()[..], options, &["--"], command].concat()
}

/// The same, started by a program like `unshare`, which becomes it or starts it.
pub(crate) fn through(wrapper: &[&str], inner: &Command) -> Command {
    let (program, options) = wrapper.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(options).arg(inner.get_program()).args(inner.get_args());
    inherit(&mut command, inner);
    command
}

/// Gives a command the folder and the environment of another.
fn inherit(command: &mut Command, inner: &Command) {
    command.current_dir(inner.get_current_dir().expect("the scene's folder"));
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// A process that a test started, and what it has said so far.
pub(crate) struct Started {
    child: Child,
    mark: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Started {
    /// The process that was started itself: of `run`, the front.
    pub(crate) fn front(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn keeper(&self) -> Pid {
        until("the keeper", || {
            self.processes().iter().find(|process| process.is_keeper()).map(|process| process.pid)
        })
    }

    /// The command and all that it started: what is neither front nor keeper. A process that has
    /// not yet become the keeper or the command is counted, too.
    pub(crate) fn tree(&self) -> Vec<Process> {
        let mut tree = self.processes();
        tree.retain(|process| process.pid != self.front() && !process.is_keeper());
        tree
    }

    fn processes(&self) -> Vec<Process> {
        Process::marked(&self.mark)
    }

    pub(crate) fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until it has said this on stderr.
    pub(crate) fn says(&self, words: &str) {
        until(&format!("{words:?} on stderr"), || self.stderr().contains(words).then_some(()));
    }

    /// Waits until nothing of the command is left, which has to be before a lease of this ttl is
    /// over that was renewed at that instant for the last time.
    pub(crate) fn is_dead_in_time(&self, renewed: Duration, ttl: Duration) {
        let mut last_alive = Duration::ZERO;
        until("the end of the command", || {
            let at = now();
            let is_dead = self.tree().is_empty();
            last_alive = if is_dead { last_alive } else { at };
            is_dead.then_some(())
        });
        let over = valid_until(renewed, ttl);
        assert!(last_alive < over, "alive at {last_alive:?}, its lease was over at {over:?}");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let end = now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(now() < end, "it does not end: {:?} {:?}", self.stderr(), self.processes());
            thread::sleep(POLL);
        };
        Ended { code: code(status), stdout: text(&self.stdout), stderr: self.stderr() }
    }
}

impl Drop for Started {
    /// What it started is the scene's to end.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, and all that it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As a shell would show it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, telling: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(telling), "no {telling:?} in {self:?}");
    }

    /// A result printed with `--json`: one line.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("a code or a signal")
}

pub(crate) fn text(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap_or_default()).expect("UTF-8")
}

/// Waits for an event.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "waited {} s in vain for {what}", PATIENCE.as_secs());
        thread::sleep(POLL);
    }
}

/// The present instant.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

/// The holder's own end of a lease of this ttl that it renewed then: 1 % for the drift of its
/// clock, and the guard. The renewal's request left before it was written.
pub(crate) fn valid_until(renewed: Duration, ttl: Duration) -> Duration {
    renewed + ttl * 99 / 100 - Duration::from_millis(20)
}

/// Stops processes at a moment when they hold no lock of these databases: stopped inside a
/// transaction they would keep everybody out, which is another story.
pub(crate) fn freeze(processes: &[Pid], databases: &[&Store]) {
    until("a moment to stop them all", || {
        processes.iter().for_each(|pid| signal(*pid, Signal::STOP));
        // A shell does not stop while the child that is to become its next command is stopped.
        let end = now() + Duration::from_millis(200);
        let all_stopped = || processes.iter().all(|pid| Process::is_stopped(*pid));
        while !all_stopped() && now() < end {
            thread::sleep(POLL);
        }
        if all_stopped() && databases.iter().all(|database| database.is_free()) {
            return Some(());
        }
        wake(processes);
        None
    });
}

pub(crate) fn wake(processes: &[Pid]) {
    processes.iter().for_each(|pid| signal(*pid, Signal::CONT));
}

/// The binary under test: `LEASEHOLD_BIN`, or the one that cargo built beside this test.
pub(crate) fn leasehold() -> PathBuf {
    let path = std::env::var_os("LEASEHOLD_BIN").map_or_else(
        || target().join(format!("leasehold{}", std::env::consts::EXE_SUFFIX)),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "there is no {}: build it with `cargo build --package leasehold`, or name it in LEASEHOLD_BIN",
        path.display()
    );
    path
}

/// All tests share it: the component is compiled once.
fn code_cache() -> PathBuf {
    std::env::var_os("LEASEHOLD_CACHE")
        .map_or_else(|| target().join("../leasehold-cache"), PathBuf::from)
}

/// The folder of the build, `target/debug`, which this test lies two levels below.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).expect("target/debug/deps/TEST").to_owned()
}

/// A script that tests share, from `tests/fixtures/process`.
pub(crate) fn fixture(name: &str) -> String {
    format!("{}/fixtures/process/{name}", env!("CARGO_MANIFEST_DIR"))
}
