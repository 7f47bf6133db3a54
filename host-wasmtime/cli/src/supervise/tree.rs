//! The descendants of a process: finding, signalling and reaping them.

use std::io;

use rustix::process::{
    Pid, RawPid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid,
};

/// A process as it was seen at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pid: Pid,
    parent: RawPid,
    group: RawPid,
    session: RawPid,
    /// Since boot, in the kernel's ticks. With the pid it names one process for good.
    started_ticks: u64,
}

impl Process {
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn is_child_of(&self, parent: Pid) -> bool {
        self.parent == parent.as_raw_pid()
    }

    /// Whether it belongs to this process group.
    pub(super) fn is_in_group(&self, group: Pid) -> bool {
        self.group == group.as_raw_pid()
    }
}

/// Reaps every child that has died and shows each to `seen`. Returns whether children are left;
/// with none left there is no descendant, since orphans become children of the sub-reaper.
pub(super) fn reap(mut seen: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => seen(pid, status),
            Ok(None) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Whether this process has any child, dead or alive; where not, it has no descendant. Cheaper than
/// a look at `/proc`.
pub(super) fn has_children() -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, peek), Err(rustix::io::Errno::CHILD))
}

/// Sends SIGKILL to the members of `group`, which must be ours, and to each of `tree`, once. A
/// process that forks meanwhile leaves a child: repeat until [`reap`] finds none left.
pub(super) fn kill(tree: &[Process], group: Option<Pid>) {
    // The group first: the kernel does that in one stroke, no fork escapes it.
    if let Some(group) = group {
        signal_group(group, Signal::KILL);
    }
    for process in tree {
        process.signal(Signal::KILL);
    }
}

/// Sends a signal to the members of `group`, which must be ours.
pub(super) fn signal_group(group: Pid, signal: Signal) {
    // An error means that no member is left or that none may be signalled; `reap` tells which.
    let _ = rustix::process::kill_process_group(group, signal);
}

#[cfg(target_os = "linux")]
pub(super) use linux::{
    SHOWS_ALL, become_sub_reaper, descendants, group_is_orphaned, group_of, has_group,
};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use super::{Pid, Process, RawPid, Signal, io};

    use rustix::process::{
        PidfdFlags, getpid, kill_process, pidfd_open, pidfd_send_signal, set_child_subreaper,
    };

    /// Whether no child left means no descendant left.
    pub(crate) const SHOWS_ALL: bool = true;

    /// Whether a process of `tree` is in this group, so that the group's number is not another's.
    pub(crate) fn has_group(tree: &[Process], group: Pid) -> bool {
        tree.iter().any(|process| process.is_in_group(group))
    }

    /// Makes this process the parent of descendants whose own parent dies.
    ///
    /// # Errors
    /// `/proc` is missing or shows another pid namespace, hence other people's processes.
    pub(crate) fn become_sub_reaper() -> io::Result<()> {
        let shown = std::fs::read_link("/proc/self").ok();
        if shown.is_none_or(|pid| pid.as_os_str() != getpid().to_string().as_str()) {
            return Err(io::Error::other(
                "/proc does not show this process; mount /proc of this pid namespace",
            ));
        }
        Ok(set_child_subreaper(Some(getpid()))?)
    }

    /// The group of a process; none where its leader is outside of this pid namespace, so that it
    /// has no number here.
    pub(crate) fn group_of(process: Pid) -> Option<Pid> {
        Pid::from_raw(look_up(process)?.group)
    }

    /// Whether nobody could let this process's group go on once it is stopped: no member has a
    /// parent outside of the group and in its session. The keys of a terminal stop no such group.
    pub(crate) fn group_is_orphaned() -> bool {
        let all: Vec<Process> = all().collect();
        let Some(own) = all.iter().find(|process| process.pid == getpid()) else {
            return true;
        };
        let mut members = all.iter().filter(|process| process.group == own.group);
        let watches = |parent: &Process| parent.session == own.session && parent.group != own.group;
        !members.any(|member| {
            all.iter().any(|other| other.pid.as_raw_pid() == member.parent && watches(other))
        })
    }

    /// All living and unreaped descendants of `root`, parents before children, without those in
    /// `spared` and theirs. Empty where `/proc` cannot be read.
    pub(crate) fn descendants(root: Pid, spared: &[Process]) -> Vec<Process> {
        let mut children: BTreeMap<RawPid, Vec<Process>> = BTreeMap::new();
        for process in all() {
            if !spared.iter().any(|other| process.is(other)) {
                children.entry(process.parent).or_default().push(process);
            }
        }
        let mut found = children.remove(&root.as_raw_pid()).unwrap_or_default();
        let mut next = 0;
        while let Some(process) = found.get(next) {
            let more = children.remove(&process.pid.as_raw_pid());
            found.extend(more.into_iter().flatten());
            next += 1;
        }
        found
    }

    fn all() -> impl Iterator<Item = Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| look_up(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
    }

    fn look_up(pid: Pid) -> Option<Process> {
        parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads a line of `/proc/PID/stat`. The name, in parentheses, may hold spaces, parentheses
    /// and any other byte; what follows the last parenthesis is numbers only.
    fn parse(stat: &[u8]) -> Option<Process> {
        let open = stat.iter().position(|&byte| byte == b'(')?;
        let close = stat.iter().rposition(|&byte| byte == b')')?;
        let pid: RawPid = str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
        // From the third field of proc_pid_stat(5) on: state, ppid, pgrp, ... starttime, the 22nd.
        let mut fields = str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace();
        let _state = fields.next()?;
        Some(Process {
            pid: Pid::from_raw(pid)?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            started_ticks: fields.nth(15)?.parse().ok()?,
        })
    }

    impl Process {
        fn is(&self, other: &Self) -> bool {
            self.pid == other.pid && self.started_ticks == other.started_ticks
        }

        /// Sends a signal to this process, never to a stranger that got its number since.
        pub(crate) fn signal(&self, signal: Signal) {
            // Errors are left to the caller's next look at the tree: gone is well, the rest stays.
            match pidfd_open(self.pid, PidfdFlags::empty()) {
                Ok(pinned) => {
                    if look_up(self.pid).is_some_and(|seen| seen.is(self)) {
                        let _ = pidfd_send_signal(pinned, signal);
                    }
                }
                Err(rustix::io::Errno::SRCH) => {}
                // A sandbox or kernel without pidfds.
                Err(_) => drop(kill_process(self.pid, signal)),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn stat(name: &[u8]) -> Vec<u8> {
            let numbers = b" S 7 40 40 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11\n";
            [b"42 (", name, b")", numbers.as_slice()].concat()
        }

        fn expected() -> Process {
            Process {
                pid: Pid::from_raw(42).unwrap(),
                parent: 7,
                group: 40,
                session: 40,
                started_ticks: 987_654,
            }
        }

        #[test]
        fn a_process_is_read_whatever_its_name_is() {
            for name in [b"sh".as_slice(), b"", b"a b", b") S 1 1", b"((x) y)", b"\xff\n(\xc3"] {
                assert_eq!(parse(&stat(name)), Some(expected()), "{name:?}");
            }
        }

        #[test]
        fn a_torn_line_is_no_process() {
            let line = stat(b"sh");
            let start_time_ends = line.len() - b" 10 11\n".len();
            for cut in 0..start_time_ends - b"987654".len() {
                assert_eq!(parse(&line[..cut]), None, "cut at {cut}");
            }
        }

        #[test]
        fn descendants_are_found_below_the_root_and_without_the_spared() {
            let mut child = std::process::Command::new("sh")
                .args(["-c", "sleep 60 & echo; wait"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = [0];
            io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();

            let shell = look_up(Pid::from_child(&child)).unwrap();
            let below_us = descendants(getpid(), &[]);
            let at = below_us.iter().position(|process| process.is(&shell)).unwrap();
            let below_shell = descendants(shell.pid, &[]);
            assert_eq!(below_shell.len(), 1, "{below_shell:?}");
            let sleep_at = below_us.iter().position(|process| process.is(&below_shell[0]));
            assert!(sleep_at.unwrap() > at, "parents come first");
            let spared = descendants(getpid(), &[shell]);
            assert!(spared.iter().all(|process| !process.is(&shell)));
            assert!(spared.iter().all(|process| !process.is(&below_shell[0])));

            below_shell[0].signal(Signal::TERM);
            child.wait().unwrap();
        }

        #[test]
        fn a_number_that_passed_to_another_process_is_not_signalled() {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let mut earlier = look_up(Pid::from_child(&child)).unwrap();
            earlier.started_ticks -= 1;
            earlier.signal(Signal::KILL);
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(child.try_wait().unwrap(), None);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{
    SHOWS_ALL, become_sub_reaper, descendants, group_is_orphaned, group_of, has_group,
};

/// No sub-reaper and no `/proc`: the command's process group is all that can be ended.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Pid, Process, Signal, io};

    /// A descendant whose parent died is out of sight.
    pub(crate) const SHOWS_ALL: bool = false;

    pub(crate) fn become_sub_reaper() -> io::Result<()> {
        Ok(())
    }

    /// Cannot be told here; the numbers of processes are trusted not to be given out again soon.
    pub(crate) fn has_group(_tree: &[Process], _group: Pid) -> bool {
        true
    }

    pub(crate) fn group_of(process: Pid) -> Option<Pid> {
        rustix::process::getpgid(Some(process)).ok()
    }

    /// Judged by the parent alone.
    pub(crate) fn group_is_orphaned() -> bool {
        use rustix::process::{getpgid, getpgrp, getppid, getsid};
        let parent = getppid();
        parent.is_none() || getsid(parent) != getsid(None) || getpgid(parent) == Ok(getpgrp())
    }

    pub(crate) fn descendants(_root: Pid, _spared: &[Process]) -> Vec<Process> {
        Vec::new()
    }

    impl Process {
        pub(crate) fn signal(&self, _signal: Signal) {}
    }
}
