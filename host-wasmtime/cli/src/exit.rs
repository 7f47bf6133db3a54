//! Exit codes, and failures that carry one.

use std::fmt;
use std::process::ExitCode;

/// A fence or a lease's record refused, or the result could not be written.
pub(crate) const REFUSED: u8 = 1;
/// The store cannot be reached.
pub(crate) const UNREACHABLE: u8 = 69;
/// The lease was not obtained, and was not to be waited for.
pub(crate) const NOT_OBTAINED: u8 = 75;
/// The command line, the store's address or what is kept there is wrong.
pub(crate) const CONFIGURATION: u8 = 78;
/// The command ran for longer than it may.
pub(crate) const MAX_RUN: u8 = 119;
/// The lease was lost, and all work had stopped in time.
pub(crate) const LOST: u8 = 120;
/// The lease was lost, and the work had to be killed; it was dead in time.
pub(crate) const LOST_KILLED: u8 = 121;
/// The lease was lost, and it could not be confirmed that the work was dead in time.
pub(crate) const LOST_UNCONFIRMED: u8 = 122;
/// The lease was not obtained within `--wait`.
pub(crate) const WAIT_OVER: u8 = 124;

/// Why the program ends without having done its job: a text that says what to do, and a code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    why: String,
}

impl Failure {
    pub(crate) fn new(code: u8, why: impl fmt::Display) -> Self {
        Self { code, why: why.to_string() }
    }

    pub(crate) fn configuration(why: impl fmt::Display) -> Self {
        Self::new(CONFIGURATION, why)
    }

    /// Whether it may go away by itself.
    pub(crate) fn may_pass(&self) -> bool {
        self.code == UNREACHABLE
    }

    /// Only its code, where that a living holder was met is nothing that anybody need hear of.
    pub(crate) fn unless_usual(self) -> Result<u8, Self> {
        if self.code == NOT_OBTAINED { Ok(self.code) } else { Err(self) }
    }

    pub(crate) fn report(self) -> ExitCode {
        say(&self.why);
        self.code.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Our own words: on stderr, one line each, never on the command's stdout.
pub(crate) fn say(words: impl fmt::Display) {
    use std::io::Write as _;
    // A closed stderr silences us; the work goes on.
    let _ = writeln!(std::io::stderr(), "leasehold: {words}");
}

/// A result: on stdout. A reader that has seen enough is no failure.
pub(crate) fn print(result: impl fmt::Display) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write as _};
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{result}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(REFUSED, format!("the result could not be written: {error}")))
        }
        _ => Ok(()),
    }
}
