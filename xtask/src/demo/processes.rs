//! The processes of the demo: started, stopped, woken, killed; all of them ours.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use super::log::Log;
use crate::Outcome;

/// The longest wait for anything; a takeover takes little more than the ttl.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(5);

/// While it lives, whatever we start, and whatever that starts, stays below us in the tree of
/// processes. When it is dropped, none of them is left.
pub(crate) struct Nursery(());

impl Nursery {
    pub(crate) fn open() -> Outcome<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self(()))
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let left = below(getpid());
            if left.is_empty() || Instant::now() >= end {
                break;
            }
            for pid in left {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            thread::sleep(POLL);
        }
    }
}

/// A process that we started, its words prefixed by its name.
pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
    words: Words,
}

/// Every line that a process has said.
type Words = Arc<Mutex<Vec<String>>>;

impl Process {
    pub(crate) fn start(name: &str, command: &mut Command, log: Log) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let words = Words::default();
        if let Some(stdout) = child.stdout.take() {
            pass_on(name, stdout, &words, log);
        }
        if let Some(stderr) = child.stderr.take() {
            pass_on(name, stderr, &words, log);
        }
        Ok(Self { name: name.to_owned(), child, words })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// An error if it has ended.
    pub(crate) fn is_alive(&mut self) -> Outcome {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended too early: {status}", self.name).into()),
        }
    }

    /// Waits until it has said this.
    pub(crate) fn says(&mut self, what: &str) -> Outcome {
        until(&format!("{} to say {what:?}", self.name), PATIENCE, || {
            let said = lines(&self.words).iter().any(|line| line.contains(what));
            if said { Ok(Some(())) } else { self.is_alive().map(|()| None) }
        })
    }

    /// Writes a line to its stdin.
    pub(crate) fn tell(&mut self, line: &str) -> Outcome {
        let stdin = self.child.stdin.as_mut().ok_or("the process has no stdin")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    pub(crate) fn kill(&self) -> Outcome {
        Ok(kill_process(self.pid(), Signal::KILL)?)
    }

    /// How it ended, waited for.
    pub(crate) fn end(&mut self, limit: Duration) -> Outcome<ExitStatus> {
        let Self { name, child, .. } = self;
        until(&format!("{name} to end"), limit, || Ok(child.try_wait()?))
    }
}

/// The lines of a process come out whole, and never keep it waiting for us.
fn pass_on(name: &str, output: impl Read + Send + 'static, words: &Words, log: Log) {
    let (name, words) = (name.to_owned(), Arc::clone(words));
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.pass_on(&name, &line);
            lines(&words).push(line);
        }
    });
}

fn lines(words: &Words) -> MutexGuard<'_, Vec<String>> {
    words.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process, and what is below it.
pub(crate) struct Tree(Vec<Pid>);

impl Tree {
    pub(crate) fn only(process: Pid) -> Self {
        Self(vec![process])
    }

    /// Top first: what watches others sleeps before those that it watches.
    pub(crate) fn of(root: Pid) -> Self {
        Self(std::iter::once(root).chain(below(root)).collect())
    }

    pub(crate) fn contains(&self, pid: Pid) -> bool {
        self.0.contains(&pid)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Stops all, and waits until they do not run any more.
    pub(crate) fn freeze(&self) -> Outcome {
        for pid in &self.0 {
            kill_process(*pid, Signal::STOP)?;
        }
        until("the processes to stop", Duration::from_secs(5), || {
            Ok(self.0.iter().all(|pid| state(*pid) == Some('T')).then_some(()))
        })
    }

    pub(crate) fn wake(&self) -> Outcome {
        self.0.iter().try_for_each(|pid| wake(*pid))
    }
}

/// Wakes one; that it has been woken before and has ended is no error.
pub(crate) fn wake(pid: Pid) -> Outcome {
    match kill_process(pid, Signal::CONT) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a process of ours still runs or could run; one that waits to be reaped cannot.
pub(crate) fn is_running(pid: Pid) -> bool {
    below(getpid()).contains(&pid) && state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits for an event, never for a fixed time.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut poll: impl FnMut() -> Outcome<Option<T>>,
) -> Outcome<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err(format!("waited {} s in vain for {what}", limit.as_secs()).into());
        }
        thread::sleep(POLL);
    }
}

/// All descendants, parents before their children.
fn below(root: Pid) -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> = all_processes();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Every process with its parent.
fn all_processes() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter_map(|pid| Some((pid, Pid::from_raw(stat(pid)?.1)?)))
        .collect()
}

fn state(pid: Pid) -> Option<char> {
    stat(pid).map(|(state, _)| state)
}

/// State and parent; the program's name before them may hold anything, even parentheses.
fn stat(pid: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
