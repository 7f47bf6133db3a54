//! The terminal's foreground, lent to the command's process group.
//!
//! A process in the background that moves the foreground is stopped (SIGTTOU), unless it ignores
//! or blocks that signal, which takes `unsafe`. So the keeper, whose own group never is the
//! foreground, joins the group that is for the moment of the change.

use std::io::{self, IsTerminal as _};

use rustix::process::{Pid, setpgid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on stdin while the command's group has its foreground.
pub(super) struct Foreground {
    lender: Pid,
}

impl Foreground {
    /// Lends the foreground to `borrower` if stdin is a terminal whose foreground is `lender`'s.
    pub(super) fn lend(lender: Pid, borrower: Pid) -> Option<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() || tcgetpgrp(&stdin) != Ok(lender) {
            return None;
        }
        move_foreground(lender, borrower).ok()?;
        Some(Self { lender })
    }

    /// Takes the foreground back. The foreground's group must still exist: call it before the
    /// dead leader of the group is reaped. A shell with job control takes it in any case.
    pub(super) fn take_back(self) {
        if let Ok(holder) = tcgetpgrp(io::stdin())
            && holder != self.lender
        {
            // Nothing can be done where it fails: the terminal is gone or a stranger's.
            let _ = move_foreground(holder, self.lender);
        }
    }
}

fn move_foreground(from: Pid, to: Pid) -> rustix::io::Result<()> {
    setpgid(None, Some(from))?;
    let moved = tcsetpgrp(io::stdin(), to);
    setpgid(None, None)?;
    moved
}
