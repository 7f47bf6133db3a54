//! The keeper: one thread that waits for the front, for the clock and for dead children.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leasehold_core::time::Mono;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, getppid};
use signal_hook::consts::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use super::job::Job;
use super::link::{Far, Inbox, Malformed, Request, drain};
use super::{clock, handover, ignored_signals, tree};
use crate::exit::say;

/// Exit code for a keeper that cannot work: EX_CONFIG of sysexits(3).
const MISCONFIGURED: u8 = 78;

/// What a user, a terminal or a whole-session `kill` may send: only the front answers to it.
const DEAF_TO: [i32; 9] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];

pub(super) fn face() -> ExitCode {
    match Keeper::start() {
        Ok(keeper) => {
            keeper.keep();
            ExitCode::SUCCESS
        }
        // The front was killed before it had given us our stdin: there is nobody to tell.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ExitCode::FAILURE,
        Err(error) => {
            say(format!(
                "the keeper cannot start: {error}; it is only for leasehold itself, use `leasehold run`"
            ));
            ExitCode::from(MISCONFIGURED)
        }
    }
}

struct Keeper {
    /// None once the front is gone or no longer to be trusted.
    front: Option<UnixStream>,
    inbox: Inbox,
    /// A byte for every SIGCHLD.
    deaths: UnixStream,
    alarm: clock::Alarm,
    /// The process group of the front, where it has a number.
    home: Option<Pid>,
    job: Option<Job>,
}

impl Keeper {
    fn start() -> io::Result<Self> {
        // Deaf before all else: a Ctrl-C in these microseconds must not kill the keeper alone.
        turn_deaf()?;
        let front = handover::take_stdin()?;
        front.set_nonblocking(true)?;
        let (deaths, news) = UnixStream::pair()?;
        deaths.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, news)?;
        tree::become_sub_reaper()?;
        Ok(Self {
            front: Some(front),
            inbox: Inbox::default(),
            deaths,
            alarm: clock::Alarm::new()?,
            home: getppid().and_then(tree::group_of),
            job: None,
        })
    }

    /// Returns when no descendant is left, or when the front is gone before it launched anything.
    fn keep(mut self) {
        loop {
            // The front is heard before the clock is read: a keeper that was stopped past its
            // deadlines must not overlook the renewals that came meanwhile.
            self.listen();
            let left = match &mut self.job {
                Some(job) => job.step(),
                None => self.front.is_some(),
            };
            self.tell();
            if !left {
                return;
            }
            self.wait();
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.deaths, PollFlags::IN)];
        let starting = self.job.as_ref().and_then(Job::starting);
        for socket in self.front.iter().chain(starting) {
            fds.push(PollFd::new(socket, PollFlags::IN));
        }
        let until = self.job.as_ref().map_or(Mono(u64::MAX), Job::wake);
        // Interrupted or failed, the loop looks at everything again.
        let _ = self.alarm.wait(fds, until);
        drain(&self.deaths, |_| ());
    }

    fn listen(&mut self) {
        let Some(front) = &self.front else {
            return;
        };
        let far = drain(front, |bytes| self.inbox.push(bytes));
        if self.obey().is_err() || far == Far::Gone {
            // Closing our end shows the front that it is on its own.
            self.front = None;
            if let Some(job) = &mut self.job {
                job.kill();
            }
        }
    }

    fn obey(&mut self) -> Result<(), Malformed> {
        while let Some(frame) = self.inbox.next()? {
            match (Request::parse(&frame)?, &mut self.job) {
                (Request::Launch(launch, deadlines), None) => {
                    self.job = Some(Job::launch(&launch, deadlines, self.home));
                }
                (Request::Extend(deadlines), Some(job)) => job.extend(deadlines),
                (Request::Forward(signal), Some(job)) => job.forward(signal),
                (Request::Kill, Some(job)) => job.kill(),
                (Request::End, Some(job)) => job.end(clock::now()),
                (Request::GoOn, Some(job)) => job.go_on(),
                (Request::Launch(..), Some(_)) | (_, None) => return Err(Malformed),
            }
        }
        Ok(())
    }

    fn tell(&mut self) {
        let reports = self.job.as_mut().map(Job::take_reports).unwrap_or_default();
        for report in reports {
            if let Some(front) = &mut self.front {
                // A front that is gone is noticed by its end of file.
                let _ = front.write_all(&report.frame());
            }
        }
    }
}

/// Handles the signals of [`DEAF_TO`] by doing nothing. Ignoring them would pass on to the
/// command, which exec does with what is ignored but not with what is handled. For the same
/// reason what the user had ignored (`nohup`) is left ignored.
fn turn_deaf() -> io::Result<()> {
    let heard = Arc::new(AtomicBool::new(false));
    let ignored = ignored_signals();
    for signal in DEAF_TO {
        if ignored >> (signal - 1) & 1 == 0 {
            signal_hook::flag::register(signal, Arc::clone(&heard))?;
        }
    }
    Ok(())
}
