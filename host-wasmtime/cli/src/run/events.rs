//! `--events`: what happens, for a program.

use std::convert::Infallible;
use std::ffi::OsStr;
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
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat};
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
    /// Without a file nobody listens.
    pub(super) fn new(name: &str, file: Option<File>) -> Result<Self, Failure> {
        let out = file.map(Out::to).transpose()?;
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

/// Opens the file that is named, to append to it, or an inherited descriptor by its number.
///
/// Without `unsafe` a number cannot be used, only what it leads to opened once more. So a descriptor
/// that could not be written to, or whose place in a file is shared with others, is refused.
pub(super) fn open(target: &OsStr) -> Result<File, Failure> {
    let digits = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = target.to_str().filter(digits);
    let refused = |why: String| {
        Failure::configuration(format!("--events {}: {why}", target.to_string_lossy()))
    };
    let path = match number {
        Some(number) => PathBuf::from(format!("/dev/fd/{number}")),
        None => PathBuf::from(target),
    };
    let flags = number.map_or(Ok(OFlags::APPEND | OFlags::WRONLY), inherited);
    let flags = flags.map_err(|error| refused(explain(number, &error)))?;
    if flags & OFlags::RWMODE == OFlags::RDONLY {
        return Err(refused("it is open for reading only: redirect it with >>".to_owned()));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(number.is_none());
    // A pipe without a reader would keep us waiting, with nothing to see.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let opened = options.open(&path).and_then(|file| {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok((fstat(&file)?, fstat(io::stdout()).ok(), file))
    });
    let (it, stdout, file) = opened.map_err(|error| refused(explain(number, &error)))?;
    let same = |other: &Stat| (other.st_dev, other.st_ino) == (it.st_dev, it.st_ino);
    let is_device = FileType::from_raw_mode(it.st_mode) == FileType::CharacterDevice;
    if stdout.as_ref().is_some_and(same) && !is_device {
        return Err(refused("that is the command's stdout: name another place".to_owned()));
    }
    let is_file = FileType::from_raw_mode(it.st_mode) == FileType::RegularFile;
    if let Some(number) = number.filter(|_| is_file && !flags.contains(OFlags::APPEND)) {
        let why = "lines of others would be overwritten: redirect it with";
        return Err(refused(format!("{why} {number}>> instead of {number}>")));
    }
    Ok(file)
}

/// How an inherited descriptor was opened.
#[cfg(target_os = "linux")]
fn inherited(number: &str) -> io::Result<OFlags> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    Ok(flags.map_or(OFlags::WRONLY, OFlags::from_bits_retain))
}

/// Elsewhere `/dev/fd` gives the descriptor itself.
#[cfg(not(target_os = "linux"))]
fn inherited(_: &str) -> io::Result<OFlags> {
    Ok(OFlags::WRONLY | OFlags::APPEND)
}

fn explain(number: Option<&str>, error: &io::Error) -> String {
    match (number, error.kind()) {
        (Some(number), io::ErrorKind::NotFound) => {
            format!("there is no such descriptor: redirect it, like {number}>>events.jsonl")
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            "nobody reads that pipe, or it is a socket: start the reader first, or name a file"
                .to_owned()
        }
        _ => format!("{error}: name a file that can be written, or a descriptor"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_a_slow_reader_misses_is_counted_and_nothing_waits_for_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut events = Events::new("job", Some(File::from(OwnedFd::from(ours)))).unwrap();
        let mut told = 0;
        // Nobody reads: first the socket fills up, then the queue.
        while events.left_out < 3 {
            events.tell("renewed", []);
            told += 1;
        }
        let reader = thread::spawn(move || -> u64 {
            let lines = BufReader::new(theirs).lines().map(Result::unwrap);
            let lines = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
            lines.map(|line| 1 + line["left_out"].as_u64().unwrap_or(0)).sum()
        });
        while events.left_out > 0 {
            events.tell("late", []);
            told += 1;
            thread::yield_now();
        }
        drop(events);
        assert!(told > BEHIND as u64);
        assert_eq!(reader.join().unwrap(), told, "every line was read or is counted");
    }
}
