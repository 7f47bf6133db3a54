//! The terminal's foreground, lent to the command's process group when it asks for it.
//!
//! At first the front's group keeps the foreground, so that the front hears Ctrl-C and can end a
//! command that does not. A command that reads the terminal, or sets it, is stopped by the kernel
//! for doing so in the background; then it gets the foreground and goes on. From there on the
//! terminal's keys are the command's own.
//!
//! A process in the background that moves the foreground is stopped (SIGTTOU), unless it ignores
//! or blocks that signal, which takes `unsafe`. So the keeper, whose own group never is the
//! foreground, joins the group that is for the moment of the change.

use std::fs::{File, OpenOptions};

use rustix::process::{Pid, setpgid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that controls this session, whatever stdin is.
pub(super) struct Terminal {
    tty: File,
    /// The front's process group.
    home: Pid,
}

impl Terminal {
    /// None where no terminal controls this session.
    pub(super) fn of(home: Pid) -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { tty, home })
    }

    /// Lends the foreground to `borrower` if it is the front's to lend, and says whether it did.
    pub(super) fn lend(&self, borrower: Pid) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.home) && self.move_foreground(self.home, borrower).is_ok()
    }

    /// Takes the foreground back. The foreground's group must still exist: call it before the
    /// dead leader of the group is reaped. A shell with job control takes it in any case.
    pub(super) fn take_back(&self) {
        if let Ok(holder) = tcgetpgrp(&self.tty)
            && holder != self.home
        {
            // Nothing can be done where it fails: the terminal is gone or a stranger's.
            let _ = self.move_foreground(holder, self.home);
        }
    }

    fn move_foreground(&self, from: Pid, to: Pid) -> rustix::io::Result<()> {
        setpgid(None, Some(from))?;
        let moved = tcsetpgrp(&self.tty, to);
        setpgid(None, None)?;
        moved
    }
}
