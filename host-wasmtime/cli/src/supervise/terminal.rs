//! The terminal's foreground, lent to the command's process group when it asks for it.
//!
//! At first the front's group keeps the foreground, so that the front hears Ctrl-C and can end a
//! command that does not. A command that reads the terminal, or sets it, is stopped by the kernel
//! for doing so in the background; then it gets the foreground and goes on. From there on the
//! terminal's keys are the command's own.

use std::fs::{File, OpenOptions};
use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that controls this session, whatever stdin is.
pub(super) struct Terminal {
    tty: File,
    /// The front's process group.
    home: Pid,
}

/// Whether a terminal controls this session.
pub(super) fn is_there() -> bool {
    open().is_ok()
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

impl Terminal {
    /// None where no terminal controls this session.
    pub(super) fn of(home: Pid) -> Option<Self> {
        Some(Self { tty: open().ok()?, home })
    }

    /// Lends the foreground to `borrower` if it is the front's to lend, and says whether it did.
    pub(super) fn lend(&self, borrower: Pid) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.home) && self.give(borrower).is_ok()
    }

    /// Takes the foreground back from a group of ours, or one that is gone: not from a shell that
    /// has taken it meanwhile.
    pub(super) fn take_back(&self, is_ours: impl Fn(Pid) -> bool) {
        let Ok(holder) = tcgetpgrp(&self.tty) else { return };
        if is_ours(holder) || test_kill_process_group(holder) == Err(Errno::SRCH) {
            // Nothing can be done where it fails: the terminal is gone.
            let _ = self.give(self.home);
        }
    }

    /// From the background, where the kernel stops whoever moves the foreground and does not block
    /// that signal.
    fn give(&self, to: Pid) -> io::Result<()> {
        let ttou: SigSet = [Signal::SIGTTOU].into_iter().collect();
        let before = ttou.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let given = tcsetpgrp(&self.tty, to);
        before.thread_set_mask()?;
        Ok(given?)
    }
}
