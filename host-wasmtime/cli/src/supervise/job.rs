//! The command and its descendants, as the keeper sees them. Whatever makes the job end, be it
//! time, a request or the death of the front, does so by moving the two deadlines closer.

use std::io;
use std::os::unix::net::UnixStream;

use leasehold_core::time::{MILLISECOND_NS, Mono};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitStatus, getpid, waitid};

use super::link::{Far, Report, drain};
use super::terminal::Terminal;
use super::{Deadlines, Ended, Launch, Status, clock, exec, handover, tree};

/// Between two rounds of killing: at first, and at most while nothing dies of it.
const PAUSE_NS: u64 = MILLISECOND_NS;
const LONGEST_PAUSE_NS: u64 = 32 * MILLISECOND_NS;

/// One launch.
pub(super) struct Job {
    /// The command's process and group; none if there never was one.
    main: Option<Pid>,
    /// How the command's process ended, once it is reaped.
    status: Option<Status>,
    /// While the exec face has not yet become the command.
    starting: Option<Starting>,
    /// Whether the command never ran.
    refused: bool,
    terminal: Option<Terminal>,
    /// Whether the command's group has the terminal's foreground.
    lent: bool,
    /// Whether it had it when it was stopped.
    wants_terminal: bool,
    deadlines: Deadlines,
    /// Whether the end has begun: then the deadlines no longer move away.
    ending: bool,
    /// The strongest means used so far.
    ended: Ended,
    /// Whether the command's group got its SIGTERM.
    group_told: bool,
    /// Whether what the dead command left behind got its SIGTERM.
    rest_told: bool,
    pause_ns: u64,
    /// For the front, in order.
    reports: Vec<Report>,
}

struct Starting {
    socket: UnixStream,
    refusal: Vec<u8>,
}

impl Job {
    /// Starts the command. `home`: the group that the terminal may be borrowed from.
    pub(super) fn launch(launch: &Launch, deadlines: Deadlines, home: Option<Pid>) -> Self {
        let mut job = Self {
            main: None,
            status: None,
            starting: None,
            refused: false,
            terminal: home.and_then(Terminal::of),
            lent: false,
            wants_terminal: false,
            deadlines,
            ending: false,
            ended: Ended::ByItself,
            group_told: false,
            rest_told: false,
            pause_ns: PAUSE_NS,
            reports: Vec::new(),
        };
        // Later than that the lease was lost before anything began: all are gone, says the report.
        if clock::now() < deadlines.term_at
            && let Err(error) = job.start(launch)
        {
            let (code, message) = exec::explain(&launch.program, &error);
            job.refuse(code, message);
        }
        job
    }

    fn start(&mut self, launch: &Launch) -> io::Result<()> {
        let (main, socket) = exec::start(launch)?;
        self.main = Some(main);
        socket.set_nonblocking(true)?;
        handover::give_stdin(&socket)?;
        self.starting = Some(Starting { socket, refusal: Vec::new() });
        Ok(())
    }

    fn refuse(&mut self, code: u8, message: String) {
        self.refused = true;
        self.reports.push(Report::CouldNotStart { code, message });
    }

    /// Where news of the start comes from.
    pub(super) fn starting(&self) -> Option<&UnixStream> {
        self.starting.as_ref().map(|starting| &starting.socket)
    }

    /// Moves the deadlines; once the end has begun, only closer.
    pub(super) fn extend(&mut self, deadlines: Deadlines) {
        if self.ending {
            self.deadlines.kill_at = self.deadlines.kill_at.min(deadlines.kill_at);
        } else {
            self.deadlines = deadlines;
        }
    }

    /// Begins the end in order: SIGTERM now, SIGKILL after the grace.
    pub(super) fn end(&mut self, now: Mono) {
        if !self.ending {
            self.ending = true;
            let grace_ns = self.deadlines.kill_at.since(self.deadlines.term_at);
            self.deadlines.term_at = self.deadlines.term_at.min(now);
            self.deadlines.kill_at = self.deadlines.kill_at.min(now.after(grace_ns));
        }
    }

    /// Begins the end with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.ending = true;
        self.deadlines.kill_at = Mono(0);
    }

    /// Passes a signal on to the command's group, as long as the command lives.
    pub(super) fn forward(&self, signal: Signal) {
        if let (Some(main), None) = (self.main, self.status) {
            tree::signal_group(main, signal);
            // A stopped command hears it only once it goes on.
            if signal != Signal::TSTP {
                tree::signal_group(main, Signal::CONT);
            }
        }
    }

    /// Lets a command go on that [`Report::Stopped`] told of, with the terminal if it had that.
    pub(super) fn go_on(&mut self) {
        if self.wants_terminal {
            self.lend();
        }
        self.forward(Signal::CONT);
    }

    /// Takes note of what happened and does what is due. Returns whether a descendant is left.
    pub(super) fn step(&mut self) -> bool {
        let before = self.status;
        let left = self.reap();
        let now = clock::now();
        // A dead exec face has closed its socket: the news of the start comes before the exit's.
        self.note_start();
        self.note_stop();
        if self.lent && self.status.is_some() {
            self.take_back();
        }
        if let (None, Some(status), false) = (before, self.status, self.refused) {
            self.reports.push(Report::Exited { status, ended: self.ended, at: now });
        }
        if !left {
            self.reports.push(Report::Reaped { ended: self.ended, at: now });
            return false;
        }
        if self.status.is_some() {
            self.end(now);
        }
        if now >= self.deadlines.kill_at {
            self.kill_all();
        } else if now >= self.deadlines.term_at {
            self.terminate();
        }
        true
    }

    /// When [`Job::step`] is due again even without news.
    pub(super) fn wake(&self) -> Mono {
        let Deadlines { term_at, kill_at } = self.deadlines;
        if self.ended == Ended::Killed {
            clock::now().after(self.pause_ns)
        } else if self.ending {
            kill_at
        } else {
            term_at.min(kill_at)
        }
    }

    /// What there is to tell since the last time.
    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    fn reap(&mut self) -> bool {
        let (main, mut status) = (self.main, self.status);
        let mut any = false;
        let left = tree::reap(|pid, how| {
            any = true;
            if main == Some(pid) {
                status = Some(status_of(how));
            }
        });
        self.status = status;
        if any {
            self.pause_ns = PAUSE_NS;
        }
        left
    }

    /// The exec face's socket ends when it became the command, or when it gave up and is gone.
    fn note_start(&mut self) {
        let (Some(starting), Some(pid)) = (&mut self.starting, self.main) else {
            return;
        };
        let refusal = &mut starting.refusal;
        if drain(&starting.socket, |bytes| refusal.extend_from_slice(bytes)) == Far::Open {
            return;
        }
        let refusal = exec::read_refusal(refusal);
        self.starting = None;
        match refusal {
            Some((code, message)) => self.refuse(code, message),
            None => self.reports.push(Report::Started { pid }),
        }
    }

    /// A command that asks for the terminal gets it. One that was stopped otherwise by a key of the
    /// terminal, or cannot get it, stops the front, too, as every job of a shell is stopped whole.
    fn note_stop(&mut self) {
        let Some(main) = self.main.filter(|_| self.status.is_none() && !self.ending) else {
            return;
        };
        let Some(signal) = stopped_by(main) else {
            return;
        };
        let asks = [Signal::TTIN, Signal::TTOU].contains(&signal);
        if self.lent {
            self.wants_terminal = true;
            self.take_back();
            self.reports.push(Report::Stopped { signal });
        } else if asks && self.lend() {
            self.forward(Signal::CONT);
        } else if asks || signal == Signal::TSTP {
            self.wants_terminal = asks;
            self.reports.push(Report::Stopped { signal });
        }
    }

    fn lend(&mut self) -> bool {
        if let (Some(terminal), Some(main)) = (&self.terminal, self.main) {
            self.lent = terminal.lend(main);
        }
        self.lent
    }

    fn take_back(&mut self) {
        self.lent = false;
        if let Some(terminal) = &self.terminal {
            let tree = tree::descendants(getpid(), &[]);
            terminal.take_back(|group| tree::has_group(&tree, group));
        }
    }

    /// SIGTERM to the command's group, or to what is left once the command is dead.
    fn terminate(&mut self) {
        self.ending = true;
        self.ended = Ended::AfterTerm;
        match (self.main, self.status) {
            (Some(main), None) if !self.group_told => {
                self.group_told = true;
                tree::signal_group(main, Signal::TERM);
                // A stopped process hears it only once it goes on.
                tree::signal_group(main, Signal::CONT);
            }
            (Some(main), Some(_)) if !self.rest_told => {
                self.rest_told = true;
                for process in tree::descendants(getpid(), &[]) {
                    if !(self.group_told && process.is_in_group(main)) {
                        process.signal(Signal::TERM);
                        process.signal(Signal::CONT);
                    }
                }
            }
            _ => {}
        }
    }

    /// One round of SIGKILL; the next one follows after a pause that grows while nothing dies.
    fn kill_all(&mut self) {
        if self.ended == Ended::Killed {
            self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
        }
        self.ending = true;
        self.ended = Ended::Killed;
        let tree = tree::descendants(getpid(), &[]);
        // The number of the group is ours while the command is not reaped or a member lives.
        let group = self.main.filter(|&main| self.status.is_none() || tree::has_group(&tree, main));
        tree::kill(&tree, group);
    }
}

/// The signal that stopped it since this was last asked.
fn stopped_by(child: Pid) -> Option<Signal> {
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(child), look).ok()??;
    Signal::from_named_raw(status.stopping_signal()?)
}

fn status_of(how: WaitStatus) -> Status {
    match (how.terminating_signal(), how.exit_status()) {
        (Some(number), _) => Status::Signal(number),
        (None, code) => {
            Status::Code(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
        }
    }
}
