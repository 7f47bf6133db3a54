//! The front's handle on its keeper.

use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use leasehold_core::time::Mono;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use rustix::time::Timespec;

use super::link::{Inbox, Report, Request};
use super::terminal::Terminal;
use super::tree::{self, Process};
use super::{Deadlines, Launch, clock, handover};

/// How long the keeper may take to read a launch, whose arguments can be megabytes. All else is
/// a few bytes, which always fit unless it has not read for hundreds of renewals.
const LAUNCH_PATIENCE_S: i64 = 1;
/// Between two rounds of killing.
const PAUSE: Duration = Duration::from_millis(1);
/// Such pauses until a keeper that was let go is left to init.
const LAST_WAIT: u32 = 200;

/// The keeper of one command. Dropping it, like the death of this process, kills the tree.
pub(crate) struct Keeper {
    /// Its process, until it is reaped.
    process: Option<Pid>,
    requests: UnixStream,
    /// The same socket as the runtime sees it; made within the runtime.
    reports: Option<tokio::net::UnixStream>,
    inbox: Inbox,
    /// The command's process group, once it is known.
    group: Option<Pid>,
    /// Descendants that are not the keeper's: children of the program that became the front.
    spared: Vec<Process>,
}

/// What [`Keeper::end_tree`] reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeEnd {
    /// No descendant is left.
    Gone,
    /// One may be left. The lease must not be released.
    Unconfirmed,
}

impl Keeper {
    /// Starts the keeper and makes this process the heir of its orphans. Call it before this
    /// process makes a thread, so that the keeper is the child of the first one.
    ///
    /// # Errors
    /// No process or socket can be had, or `/proc` does not show this process.
    pub(crate) fn start() -> io::Result<Self> {
        tree::become_sub_reaper()?;
        let spared =
            if tree::has_children() { tree::descendants(getpid(), &[]) } else { Vec::new() };
        // In a group of its own before it is the keeper: until then we wait for it and stop for
        // nobody, so that a Ctrl-Z which stopped it alone would leave the terminal stuck.
        let (child, requests) = super::start_face(super::KEEPER, |command| {
            command.process_group(0);
        })?;
        handover::give_stdin(&requests)?;
        requests.set_nonblocking(true)?;
        Ok(Self {
            process: Some(Pid::from_child(&child)),
            requests,
            reports: None,
            inbox: Inbox::default(),
            group: None,
            spared,
        })
    }

    /// Has the command started; once. The answer is [`Report::Started`] or
    /// [`Report::CouldNotStart`].
    ///
    /// # Errors
    /// As for all requests: the keeper is gone or stuck, and [`Keeper::end_tree`] is due.
    pub(crate) fn launch(&mut self, launch: Launch, deadlines: Deadlines) -> io::Result<()> {
        self.send(&Request::Launch(launch, deadlines), LAUNCH_PATIENCE_S)
    }

    /// Moves the deadlines after a renewal. Too late once the tree is being ended.
    pub(crate) fn extend(&mut self, deadlines: Deadlines) -> io::Result<()> {
        self.send(&Request::Extend(deadlines), 0)
    }

    /// Passes a signal on to the command's process group.
    pub(crate) fn forward(&mut self, signal: Signal) -> io::Result<()> {
        self.send(&Request::Forward(signal), 0)
    }

    /// Ends the command in order: SIGTERM now, SIGKILL after the grace.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.send(&Request::End, 0)
    }

    /// Lets the command go on after [`Report::Stopped`].
    pub(crate) fn go_on(&mut self) -> io::Result<()> {
        self.send(&Request::GoOn, 0)
    }

    /// Ends the tree at once with SIGKILL: the lease is lost already.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.send(&Request::Kill, 0)
    }

    /// The next report; none once the keeper is gone, which before [`Report::Reaped`] means that
    /// [`Keeper::end_tree`] is due. No report is lost where the future is dropped.
    ///
    /// # Panics
    /// Outside a tokio runtime with IO.
    pub(crate) async fn report(&mut self) -> Option<Report> {
        loop {
            if let Some(frame) = self.inbox.next().ok()? {
                let report = Report::parse(&frame).ok()?;
                if let Report::Started { pid } = report {
                    self.group = Some(pid);
                }
                return Some(report);
            }
            let reports = match self.reports.take() {
                Some(reports) => reports,
                None => tokio::net::UnixStream::from_std(self.requests.try_clone().ok()?).ok()?,
            };
            let reports = self.reports.insert(reports);
            reports.readable().await.ok()?;
            let mut buffer = [0; 4096];
            match reports.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.inbox.push(buffer.get(..length)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// The last resort, for a keeper that is gone or silent: kills it and every descendant of
    /// this process, round after round, until none is left or `until` has come. Blocks. Children
    /// that this process had before the keeper are spared.
    pub(crate) fn end_tree(&mut self, until: Mono) -> TreeEnd {
        loop {
            if let Some(keeper) = self.process {
                let _ = kill_process(keeper, Signal::KILL);
            }
            let descendants = tree::descendants(getpid(), &self.spared);
            tree::kill(
                &descendants,
                self.group.filter(|&group| tree::has_group(&descendants, group)),
            );
            let left = tree::reap(|pid, _| {
                self.process.take_if(|keeper| *keeper == pid);
            });
            if tree::SHOWS_ALL && (!left || self.only_spared_are_left()) {
                self.take_terminal_back();
                return TreeEnd::Gone;
            }
            if clock::now() >= until {
                return TreeEnd::Unconfirmed;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// None of ours can be below them: orphans become children of this process.
    fn only_spared_are_left(&self) -> bool {
        let seen = tree::descendants(getpid(), &[]);
        // Nothing seen where a child is left: `/proc` cannot be read.
        !seen.is_empty() && tree::descendants(getpid(), &self.spared).is_empty()
    }

    /// As the keeper would have done.
    fn take_terminal_back(&self) {
        if let Some(terminal) = tree::group_of(getpid()).and_then(Terminal::of) {
            terminal.take_back(|group| Some(group) == self.group);
        }
    }

    /// Reaps what became this process's child without being the keeper: orphans that only the
    /// first process of a container inherits.
    pub(crate) fn reap_adopted(&mut self) {
        for child in tree::descendants(getpid(), &self.spared) {
            // The keeper itself is left to whoever waits for its end; who lives is let live.
            if Some(child.pid()) != self.process && child.is_child_of(getpid()) {
                let _ = waitpid(Some(child.pid()), WaitOptions::NOHANG);
            }
        }
    }

    /// Lets the keeper go, which has nothing to do any more, and reaps it: what init does not reap
    /// would stay. Waits for a moment at most.
    pub(crate) fn close(&mut self) {
        let _ = self.requests.shutdown(Shutdown::Both);
        let Some(keeper) = self.process.take() else { return };
        for _ in 0..LAST_WAIT {
            if !matches!(waitpid(Some(keeper), WaitOptions::NOHANG), Ok(None)) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn send(&mut self, request: &Request, patience_s: i64) -> io::Result<()> {
        let frame = request.frame();
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match self.requests.write(rest) {
                Ok(length) => rest = rest.get(length..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let patience = Timespec { tv_sec: patience_s, tv_nsec: 0 };
                    let mut room = [PollFd::new(&self.requests, PollFlags::OUT)];
                    if retry_on_intr(|| poll(&mut room, Some(&patience)))? == 0 {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.close();
    }
}
