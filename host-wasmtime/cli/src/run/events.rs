//! `--events`: what happens, for a program.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, SystemTime};

use leasehold_core::observe::Reason;
use leasehold_core::token::Token;
use leasehold_host::Update;
use leasehold_host::protocol::Event;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Map, Value, json};

use crate::exit::{Failure, say};
use crate::supervise;

/// Lines that a slow reader may fall behind; what comes then is left out and counted.
const BEHIND: usize = 1024;
/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Writes one JSON object a line from a thread of its own, so that a reader who is slow, or a disk
/// that hangs, holds up no renewal.
///
/// Every line has `event`, `name`, `at` (wall time, for people) and `boottime_ns`, the instant by
/// CLOCK_BOOTTIME as a decimal string; `left_out` counts the lines that the reader was too slow for
/// since the one before. The dropped value waits for the last lines, a second at most.
pub(super) struct Events {
    name: String,
    out: Option<Out>,
    left_out: u64,
}

struct Out {
    lines: SyncSender<String>,
    /// Nothing is ever sent: it is disconnected once the last line is written.
    written: Receiver<Infallible>,
}

impl Events {
    /// `target`: the number of a descriptor, or a file, which is appended to; none: nobody listens.
    pub(super) fn open(name: &str, target: Option<&OsStr>) -> Result<Self, Failure> {
        let out = target.map(|target| Out::to(open(target)?)).transpose()?;
        Ok(Self { name: name.to_owned(), out, left_out: 0 })
    }

    /// Tells of what the candidate was told.
    pub(super) fn update(&mut self, update: &Update) {
        let Update { event, status, trouble, .. } = update;
        let until = || {
            let ends = [("stop_at_ns", status.stop_at), ("valid_until_ns", status.valid_until)];
            ends.map(|(key, at)| (key, json!(at.map(|at| at.0.to_string()))))
        };
        let why = ("why", json!(trouble));
        match event {
            Event::Standby { owner, alive } => {
                let holder = ("holder", json!(owner.holder));
                self.tell("waiting", [holder, term(owner.token), ("alive", json!(alive))]);
            }
            Event::Elected { token } => self.tell("elected", [text(*token), term(*token)]),
            Event::Leading { token, .. } => {
                let [stop_at, valid_until] = until();
                self.tell("acquired", [text(*token), term(*token), stop_at, valid_until]);
            }
            Event::Renewed { .. } => self.tell("renewed", until()),
            Event::RenewalLate { .. } => {
                let [stop_at, valid_until] = until();
                self.tell("late", [why, stop_at, valid_until]);
            }
            // Our own doing, once the command has ended: what follows says how.
            Event::Demoted { reason: Reason::Stopped, .. } | Event::Stopped => {}
            Event::Demoted { token, reason, to } => {
                let [_, valid_until] = until();
                let reason = ("reason", json!(format!("{reason:?}")));
                self.tell("lost", [reason, ("to", json!(to)), why, term(*token), valid_until]);
            }
            Event::Ended { token, how } => {
                let how = ("how", json!(format!("{how:?}")));
                self.tell("released", [how, text(*token), term(*token)]);
            }
            Event::StoreDown => self.tell("store-down", [why]),
            Event::StoreUp => self.tell("store-up", []),
            Event::StoreFault(fault) => self.tell("fault", [("why", json!(fault.to_string()))]),
        }
    }

    /// Tells of one event.
    pub(super) fn tell<const N: usize>(&mut self, event: &str, facts: [(&str, Value); N]) {
        let Some(out) = &self.out else { return };
        let mut line = Map::new();
        line.insert("event".to_owned(), json!(event));
        line.insert("name".to_owned(), json!(self.name));
        let at = humantime::format_rfc3339_millis(SystemTime::now());
        line.insert("at".to_owned(), json!(at.to_string()));
        line.insert("boottime_ns".to_owned(), json!(supervise::now().0.to_string()));
        line.extend(facts.map(|(key, value)| (key.to_owned(), value)));
        if self.left_out > 0 {
            line.insert("left_out".to_owned(), json!(self.left_out));
        }
        match out.lines.try_send(Value::Object(line).to_string()) {
            Ok(()) => self.left_out = 0,
            Err(_) => self.left_out += 1,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(Out { lines, written }) = self.out.take() {
            drop(lines);
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

fn text(token: Token) -> (&'static str, Value) {
    ("token", json!(token.to_string()))
}

fn term(token: Token) -> (&'static str, Value) {
    ("term", json!(token.term.to_string()))
}

impl Out {
    fn to(mut file: File) -> Result<Self, Failure> {
        let (lines, inbox) = mpsc::sync_channel::<String>(BEHIND);
        let (writing, written) = mpsc::channel();
        let write = move || {
            for line in inbox {
                if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
                    say(format!("--events: {error}; going on without"));
                    break;
                }
            }
            drop(writing);
        };
        thread::Builder::new()
            .name("leasehold-events".to_owned())
            .spawn(write)
            .map_err(|error| Failure::configuration(format!("--events: no thread: {error}")))?;
        Ok(Self { lines, written })
    }
}

fn open(target: &OsStr) -> Result<File, Failure> {
    let number = target.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let path = match number.filter(|text| !text.is_empty()) {
        Some(number) => PathBuf::from(format!("/dev/fd/{number}")),
        None => PathBuf::from(target),
    };
    let mut options = OpenOptions::new();
    options.append(true).create(number.is_none());
    // A pipe without a reader would keep us waiting, with nothing to see.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let opened = options.open(&path).and_then(|file| {
        let flags = fcntl_getfl(&file)?;
        fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        Ok(file)
    });
    opened.map_err(|error| Failure::configuration(explain(target, number, &error)))
}

fn explain(target: &OsStr, number: Option<&str>, error: &io::Error) -> String {
    let target = OsString::from(target).to_string_lossy().into_owned();
    let advice = match (number, error.kind()) {
        (Some(number), io::ErrorKind::NotFound) => {
            format!("there is no such descriptor: redirect it, like {number}>events.jsonl")
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            "nobody reads that pipe, or it is a socket: start the reader first, or name a file"
                .to_owned()
        }
        _ => format!("{error}: name a file that can be written, or a descriptor"),
    };
    format!("--events {target}: {advice}")
}
