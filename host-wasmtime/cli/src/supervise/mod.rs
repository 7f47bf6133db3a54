//! Supervision: the command and all it started are dead before a rival's command can start.
//!
//! `run` is three faces of one binary. The *front*, which the user started, holds the lease. The
//! *keeper* ([`keeper`]) is the parent of the command and ends it at a deadline that it knows in
//! advance, so that a front which is stopped or killed does no harm. The *exec* face ([`exec`])
//! ties the command's life to the keeper's, then becomes the command.
//!
//! Front and keeper are both sub-reapers: a descendant that double-forks and makes its own
//! session is still found, by the keeper or, where the keeper failed, by the front
//! ([`Keeper::end_tree`]). Front and keeper both killed, or both stopped, leave the descendants
//! of the command alive. Systems without sub-reapers (all but Linux) lose sight of a descendant that
//! leaves the command's process group; there, and where the machine freezes, the fence protects.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;

use leasehold_core::time::Mono;
use nix::sys::signal::SigSet;

mod clock;
mod exec;
mod front;
mod handover;
mod job;
mod keeper;
mod link;
mod terminal;
mod tree;

pub(crate) use clock::now;
pub(crate) use front::{Keeper, TreeEnd};
pub(crate) use link::Report;

/// First argument of a process that is a keeper.
const KEEPER: &str = "__keeper";
/// First argument of a process that will become the command.
const EXEC: &str = "__exec";

/// What to run. All of it is bytes as the system has them, not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// A path, or a name to look up on the `PATH`.
    pub(crate) program: OsString,
    /// The arguments after the program's name.
    pub(crate) args: Vec<OsString>,
    /// Added to the environment that the front was started with.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// When the command has to be gone. Instants of [`now`], hence good in every process of this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlines {
    /// SIGTERM to the command's process group.
    pub(crate) term_at: Mono,
    /// SIGKILL to every descendant, until none is left. The span from `term_at` to here is the
    /// grace that the command has whenever it is asked to end.
    pub(crate) kill_at: Mono,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It exited with this code.
    Code(u8),
    /// It died of the signal of this number.
    Signal(i32),
}

impl Status {
    /// The code that a shell would show: the process's own, or 128 + the signal's number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(number) => u8::try_from(number.saturating_add(128)).unwrap_or(u8::MAX),
        }
    }
}

/// The strongest means that the keeper had to use on any process of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// None: the command and all that it started ended by themselves.
    ByItself,
    /// SIGTERM.
    AfterTerm,
    /// SIGKILL.
    Killed,
}

/// Serves this process if it was started as keeper or exec face, and returns its exit code.
///
/// `args` are the process's arguments without its name. Call it before the process makes a
/// thread or opens a file.
pub(crate) fn face(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let first = args.next()?;
    if first == KEEPER {
        Some(keeper::face())
    } else if first == EXEC {
        Some(exec::face(args))
    } else {
        None
    }
}

/// Starts a face of this binary. It finds the other end of the socket as its stdin and gets
/// its real stdin by [`handover::give_stdin`]; stdout and stderr are ours.
fn start_face(face: &str, set_up: impl FnOnce(&mut Command)) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(own_binary()?);
    command
        .arg0(std::env::args_os().next().unwrap_or_else(|| "leasehold".into()))
        .arg(OsStr::new(face))
        .stdin(OwnedFd::from(theirs));
    set_up(&mut command);
    // `command` owns `theirs`: it is dropped here, or the end of file would never come.
    Ok((command.spawn()?, ours))
}

/// The file of this binary; on Linux still the same one after an upgrade replaced it on disk.
fn own_binary() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}

/// Stops this process and its group, as a key of the terminal does with a job, and returns once it
/// goes on. False, and at once, where nobody could let it go on.
pub(crate) fn stop_ourselves() -> bool {
    use rustix::process::{Signal, kill_current_process_group};
    // The whole group: a shell sees its job stopped only when the process that it started is.
    // Without a terminal there is no job, and the group may be that of whoever watches over us.
    terminal::is_there()
        && !tree::group_is_orphaned()
        && kill_current_process_group(Signal::STOP).is_ok()
}

/// Hears again what whoever started this process left blocked, for it and for all that it starts.
/// Call it before the process makes a thread.
pub(crate) fn unblock_signals() -> io::Result<()> {
    Ok(SigSet::all().thread_unblock()?)
}

/// The signals that this process ignores: bit N-1 for signal N. None where `/proc` is missing.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// A write beyond `ulimit -f` shall fail, so that it can be explained, and not kill us without a
/// word. Handled rather than ignored: the command is not to inherit that.
pub(crate) fn outlive_file_limits() {
    use signal_hook::consts::SIGXFSZ;
    if ignored_signals() >> (SIGXFSZ - 1) & 1 == 0 {
        // Without a handler all is as it would be anywhere.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn an_exit_code_is_the_commands_own_or_128_and_the_signal() {
        assert_eq!(Status::Code(3).exit_code(), 3);
        assert_eq!(Status::Signal(9).exit_code(), 137);
        assert_eq!(Status::Signal(i32::MAX).exit_code(), 255);
    }
}
