//! Processes as `/proc` shows them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// A living process, as it was seen at one moment; one that waits to be reaped is dead.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) session: i32,
    pub(crate) state: char,
    command_line: Vec<u8>,
}

impl Process {
    /// All whose environment has an entry that begins with `mark`.
    pub(super) fn marked(mark: &str) -> Vec<Self> {
        all().filter(|pid| is_marked(*pid, mark.as_bytes())).filter_map(Self::look_up).collect()
    }

    /// Whether it has become this program.
    pub(crate) fn runs(&self, program: &str) -> bool {
        self.word(0) == Some(program.as_bytes())
    }

    /// Whether it is the front of a `run`, even where another program started that.
    pub(crate) fn is_front(&self) -> bool {
        self.word(1) == Some(b"run")
    }

    /// Whether it lives, and is not merely unreaped.
    pub(crate) fn is_alive(&self) -> bool {
        Self::look_up(self.pid).is_some()
    }

    pub(crate) fn is_stopped_now(&self) -> bool {
        Self::look_up(self.pid).is_some_and(|process| process.state == 'T')
    }

    pub(super) fn is_keeper(&self) -> bool {
        self.word(1) == Some(b"__keeper")
    }

    fn word(&self, number: usize) -> Option<&[u8]> {
        self.command_line.split(|byte| *byte == 0).nth(number)
    }

    pub(super) fn is_stopped(pid: Pid) -> bool {
        Self::look_up(pid).is_none_or(|process| process.state == 'T')
    }

    fn look_up(pid: Pid) -> Option<Self> {
        let Stat { state, session, .. } = Stat::read(pid)?;
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_dead = matches!(state, 'Z' | 'X');
        (!is_dead).then_some(Self { pid, session, state, command_line })
    }
}

/// Whether a dead child of this process waits to be reaped.
pub(crate) fn has_zombie(parent: Pid) -> bool {
    all().filter_map(Stat::read).any(|stat| stat.state == 'Z' && stat.parent == parent.as_raw_pid())
}

/// What the kernel says of a process, dead or alive.
struct Stat {
    state: char,
    parent: i32,
    session: i32,
}

impl Stat {
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name before them may hold anything, even parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let _group = fields.next()?;
        Some(Self { state, parent, session: fields.next()?.parse().ok()? })
    }
}

fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn is_marked(pid: Pid, mark: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark))
}

/// Sends a signal to a process that a test started; it may have ended meanwhile.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}
