//! A terminal with a shell in it, and whoever sits before it.

use std::fs;
use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};

use super::{Scene, Started, inherit, leasehold, until};

/// What the shell shows when it waits for a line.
const PROMPT: &str = "PROMPT>";

/// An interactive `bash` with job control on a terminal of its own.
pub(crate) struct Terminal {
    shell: Started,
    keys: ChildStdin,
    /// What was shown before the last keys.
    seen: usize,
}

impl Scene {
    pub(crate) fn terminal(&self) -> Terminal {
        // The shell in between gives no prompt on.
        let shell = format!("env 'PS1={PROMPT}' bash --norc --noprofile -i");
        let mut script = Command::new("env");
        inherit(&mut script, &self.command([""; 0]));
        script
            .args(["--default-signal", "script", "--quiet", "--return", "--command", &shell])
            .arg("/dev/null")
            .env("LEASEHOLD", leasehold())
            .stdin(Stdio::piped());
        let mut shell = self.start(&mut script);
        let keys = shell.child.stdin.take().expect("a pipe");
        let terminal = Terminal { shell, keys, seen: 0 };
        terminal.shows(PROMPT);
        terminal
    }
}

impl Terminal {
    pub(crate) const CTRL_C: &str = "\x03";
    pub(crate) const CTRL_D: &str = "\x04";
    pub(crate) const CTRL_Z: &str = "\x1a";

    pub(crate) fn types(&mut self, keys: &str) {
        self.seen = self.screen().len();
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// A line for the shell: `leasehold run` on the store of the scene, with this after it.
    pub(crate) fn runs(&mut self, rest: &str) {
        let line = format!("$LEASEHOLD run job --store ./leases.db {rest}\n");
        self.types(&line);
    }

    /// Waits until this was shown since the last keys. The terminal shows the keys, too.
    pub(crate) fn shows(&self, words: &str) {
        until(&format!("{words:?} after {:?}", self.screen()), || {
            self.screen()[self.seen..].contains(words).then_some(())
        });
    }

    /// Waits for the prompt, and asks for the exit code of what went before.
    #[track_caller]
    pub(crate) fn expect(&mut self, code: i32) {
        self.shows(PROMPT);
        self.types("echo \"it was $?\".\n");
        self.shows(&format!("it was {code}.\r\n"));
    }

    /// Everything that was shown so far.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.shell.stdout).unwrap()).into_owned()
    }

    pub(crate) fn shell(&self) -> &Started {
        &self.shell
    }
}
