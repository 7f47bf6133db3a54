//! The exec face: ties itself to the keeper, then becomes the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, getpid, getppid};

use super::{Launch, handover};
use crate::exit::say;

/// Exit code of a command that is there but cannot be run.
pub(super) const CANNOT_RUN: u8 = 126;
/// Exit code of a command that is not there.
const NOT_FOUND: u8 = 127;

/// Starts the exec face in a process group of its own; it waits for [`handover::give_stdin`],
/// which lets the keeper give that group the terminal first. The socket then ends without a word
/// once the command runs, or holds what [`read_refusal`] reads.
pub(super) fn start(launch: &Launch) -> io::Result<(Pid, UnixStream)> {
    let (child, socket) = super::start_face(super::EXEC, |command| {
        command
            .arg(getpid().to_string())
            .arg(&launch.program)
            .args(&launch.args)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .process_group(0);
    })?;
    Ok((Pid::from_child(&child), socket))
}

/// What the exec face wrote before it gave up: the exit code, then the message.
pub(super) fn read_refusal(bytes: &[u8]) -> Option<(u8, String)> {
    let (code, message) = bytes.split_first()?;
    Some((*code, String::from_utf8_lossy(message).into_owned()))
}

/// `args`: the keeper's pid, the program, its arguments.
pub(super) fn face(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(keeper), Some(program)) = (args.next(), args.next()) else {
        return started_by_hand();
    };
    // Before the keeper's life is looked at, so that its death is either seen or felt. It comes
    // from the death of the keeper's only thread.
    if let Err(error) = die_with_parent() {
        say(format!("cannot tie the command to its keeper: {error}; use a newer kernel"));
        return ExitCode::from(CANNOT_RUN);
    }
    let parent = Pid::as_raw(getppid()).to_string();
    if keeper != parent.as_str() {
        // The keeper is dead, and with it whoever could be told.
        return ExitCode::from(CANNOT_RUN);
    }
    let Ok(mut keeper) = handover::take_stdin() else {
        return started_by_hand();
    };
    // The standard library resets SIGPIPE. The keeper's handlers became the default at its own
    // exec; what the user ignores (`nohup`) stays ignored. A successful exec closes the socket.
    let error = Command::new(&program).args(args).exec();
    let (code, message) = explain(&program, &error);
    // A keeper that cannot be told still sees the exit code.
    let _ = keeper.write_all(&[&[code], message.as_bytes()].concat());
    ExitCode::from(code)
}

fn started_by_hand() -> ExitCode {
    say(format!("`{}` is only for leasehold itself; use `leasehold run`", super::EXEC));
    ExitCode::from(CANNOT_RUN)
}

/// The exit code and the message for a command that could not be started.
pub(super) fn explain(program: &OsStr, error: &io::Error) -> (u8, String) {
    let name = program.to_string_lossy();
    let (code, why, advice) = match error.kind() {
        io::ErrorKind::NotFound if program.is_empty() => {
            (NOT_FOUND, "its name is empty".into(), "name a program after `--`")
        }
        io::ErrorKind::NotFound if name.contains('/') => (
            NOT_FOUND,
            "there is no such file, or the interpreter in its first line is missing".into(),
            "check the path",
        ),
        io::ErrorKind::NotFound => {
            (NOT_FOUND, "it is not on the PATH".into(), "check its name or give its path")
        }
        io::ErrorKind::PermissionDenied => (
            CANNOT_RUN,
            "permission denied".into(),
            "make it executable (chmod +x) or name its interpreter before it",
        ),
        io::ErrorKind::ArgumentListTooLong => (
            CANNOT_RUN,
            "arguments and environment are longer than the system takes".into(),
            "pass them in a file or on stdin",
        ),
        _ => (CANNOT_RUN, error.to_string(), "try whether it runs without leasehold"),
    };
    (code, format!("cannot run {name}: {why}; {advice}"))
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Elsewhere the front ends the command's group when the keeper dies.
#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_is_127_and_one_that_cannot_be_run_is_126() {
        for (program, code, says) in [
            ("leasehold-no-such-program", NOT_FOUND, "it is not on the PATH"),
            ("./leasehold-no-such-program", NOT_FOUND, "there is no such file"),
            ("", NOT_FOUND, "its name is empty"),
            ("/", CANNOT_RUN, "chmod +x"),
        ] {
            let error = Command::new(program).spawn().unwrap_err();
            let (seen, message) = explain(OsStr::new(program), &error);
            assert_eq!(seen, code, "{message}");
            assert!(message.starts_with(&format!("cannot run {program}: ")), "{message}");
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn too_many_arguments_are_named_as_such() {
        let error = Command::new("true").arg("x".repeat(8 << 20)).spawn().unwrap_err();
        let (code, message) = explain(OsStr::new("true"), &error);
        assert_eq!(code, CANNOT_RUN);
        assert!(message.contains("longer than the system takes"), "{message}");
    }

    #[test]
    fn a_silent_end_of_the_exec_face_is_no_refusal() {
        assert_eq!(read_refusal(b""), None);
        assert_eq!(read_refusal(b"\x7fwhy"), Some((NOT_FOUND, "why".into())));
    }
}
