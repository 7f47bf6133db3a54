//! What front and keeper say to each other, and its byte frames.
//!
//! A frame is its length (u32), a kind (u8) and fields; integers are little-endian, strings are
//! raw bytes behind their length. There is no version: both ends are the same binary.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;

use leasehold_core::time::Mono;
use rustix::process::{Pid, Signal};

use super::{Deadlines, Ended, Launch, Status};

/// From the front to the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Run this command; once.
    Launch(Launch, Deadlines),
    /// The lease was renewed.
    Extend(Deadlines),
    /// Pass a signal on to the command's process group.
    Forward(Signal),
    /// SIGKILL now.
    Kill,
    /// SIGTERM now, SIGKILL after the grace.
    End,
    /// Let the stopped command go on.
    GoOn,
}

/// From the keeper to the front. After a launch comes `Started` and later `Exited`, or
/// `CouldNotStart`, or neither if its time was over already; `Reaped` is the last. In between
/// comes any number of `Stopped`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command runs.
    Started {
        /// Its process, which is also its process group.
        pid: Pid,
    },
    /// The command never ran.
    CouldNotStart {
        /// 127: there is no such program. 126: there is, but it cannot be run.
        code: u8,
        /// What is wrong and what to do, one line without a prefix.
        message: String,
    },
    /// The command was stopped by a key of the terminal, or for want of the terminal; it goes on
    /// with [`Request::GoOn`].
    Stopped {
        /// What stopped it.
        signal: Signal,
    },
    /// The command itself ended; descendants may be left.
    Exited {
        /// How it ended.
        status: Status,
        /// What the keeper had done to it by then.
        ended: Ended,
        /// When the keeper reaped it.
        at: Mono,
    },
    /// No descendant is left: the lease may be released.
    Reaped {
        /// What it took.
        ended: Ended,
        /// When the last one was reaped.
        at: Mono,
    },
}

impl Request {
    /// The request as a frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        match self {
            Self::Launch(launch, deadlines) => {
                let mut frame = Frame::new(0);
                frame.deadlines(*deadlines);
                frame.string(&launch.program);
                frame.count(launch.args.len());
                launch.args.iter().for_each(|arg| frame.string(arg));
                frame.count(launch.env.len());
                for (name, value) in &launch.env {
                    frame.string(name);
                    frame.string(value);
                }
                frame
            }
            Self::Extend(deadlines) => {
                let mut frame = Frame::new(1);
                frame.deadlines(*deadlines);
                frame
            }
            Self::Forward(signal) => {
                let mut frame = Frame::new(2);
                frame.number(signal.as_raw());
                frame
            }
            Self::Kill => Frame::new(3),
            Self::End => Frame::new(4),
            Self::GoOn => Frame::new(5),
        }
        .close()
    }

    /// Reads what [`Request::frame`] wrote, without the length.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let request = match fields.byte()? {
            0 => {
                let deadlines = fields.deadlines()?;
                let program = fields.string()?;
                let args =
                    (0..fields.count()?).map(|_| fields.string()).collect::<Result<_, _>>()?;
                let env = (0..fields.count()?)
                    .map(|_| Ok((fields.string()?, fields.string()?)))
                    .collect::<Result<_, _>>()?;
                Self::Launch(Launch { program, args, env }, deadlines)
            }
            1 => Self::Extend(fields.deadlines()?),
            2 => Self::Forward(fields.signal()?),
            3 => Self::Kill,
            4 => Self::End,
            5 => Self::GoOn,
            _ => return Err(Malformed),
        };
        fields.end().map(|()| request)
    }
}

impl Report {
    /// The report as a frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        match self {
            Self::Started { pid } => {
                let mut frame = Frame::new(0);
                frame.number(pid.as_raw_pid());
                frame
            }
            Self::CouldNotStart { code, message } => {
                let mut frame = Frame::new(1);
                frame.byte(*code);
                frame.string(OsStr::new(message));
                frame
            }
            Self::Exited { status, ended, at } => {
                let mut frame = Frame::new(2);
                frame.status(*status);
                frame.ended(*ended);
                frame.instant(*at);
                frame
            }
            Self::Reaped { ended, at } => {
                let mut frame = Frame::new(3);
                frame.ended(*ended);
                frame.instant(*at);
                frame
            }
            Self::Stopped { signal } => {
                let mut frame = Frame::new(4);
                frame.number(signal.as_raw());
                frame
            }
        }
        .close()
    }

    /// Reads what [`Report::frame`] wrote, without the length.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let report = match fields.byte()? {
            0 => Self::Started {
                pid: Some(fields.number()?)
                    .filter(|&pid| pid > 0)
                    .and_then(Pid::from_raw)
                    .ok_or(Malformed)?,
            },
            1 => Self::CouldNotStart {
                code: fields.byte()?,
                message: fields.string()?.to_string_lossy().into_owned(),
            },
            2 => Self::Exited {
                status: fields.status()?,
                ended: fields.ended()?,
                at: fields.instant()?,
            },
            3 => Self::Reaped { ended: fields.ended()?, at: fields.instant()? },
            4 => Self::Stopped { signal: fields.signal()? },
            _ => return Err(Malformed),
        };
        fields.end().map(|()| report)
    }
}

/// The other end does not speak as this binary does: it is not to be trusted with anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The longest frame: above what the system takes as arguments and environment together.
const LONGEST: usize = 16 << 20;
/// Bytes of the length before each frame.
const LENGTH: usize = size_of::<u32>();

/// Bytes that arrived and are not yet read as frames.
#[derive(Default)]
pub(super) struct Inbox(Vec<u8>);

impl Inbox {
    /// Adds what arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes out the next whole frame, without its length.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        let Some((&length, rest)) = self.0.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(Malformed);
        }
        let Some(frame) = rest.get(..length).map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.0.drain(..LENGTH + length);
        Ok(Some(frame))
    }
}

/// Whether the other end of a socket may still say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Far {
    /// It may.
    Open,
    /// It is closed or broken.
    Gone,
}

/// Reads all that has arrived at a non-blocking socket.
pub(super) fn drain(mut socket: &UnixStream, mut take: impl FnMut(&[u8])) -> Far {
    let mut buffer = [0; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return Far::Gone,
            Ok(length) => take(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Far::Open,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Far::Gone,
        }
    }
}

/// A frame under construction.
struct Frame(Vec<u8>);

impl Frame {
    fn new(kind: u8) -> Self {
        let mut bytes = vec![0; LENGTH];
        bytes.push(kind);
        Self(bytes)
    }

    /// Fills in the length. A frame too long for its length is longer than [`LONGEST`] and is
    /// refused by the reader.
    fn close(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - LENGTH).unwrap_or(u32::MAX);
        self.0.splice(..LENGTH, length.to_le_bytes());
        self.0
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: i32) {
        self.0.extend(number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.0.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn instant(&mut self, instant: Mono) {
        self.0.extend(instant.0.to_le_bytes());
    }

    fn deadlines(&mut self, deadlines: Deadlines) {
        self.instant(deadlines.term_at);
        self.instant(deadlines.kill_at);
    }

    fn string(&mut self, string: &OsStr) {
        self.count(string.len());
        self.0.extend(string.as_bytes());
    }

    fn status(&mut self, status: Status) {
        let (kind, number) = match status {
            Status::Code(code) => (0, i32::from(code)),
            Status::Signal(number) => (1, number),
        };
        self.byte(kind);
        self.number(number);
    }

    fn ended(&mut self, ended: Ended) {
        self.byte(match ended {
            Ended::ByItself => 0,
            Ended::AfterTerm => 1,
            Ended::Killed => 2,
        });
    }
}

/// The fields of a frame that are not yet read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    fn number(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    fn count(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn instant(&mut self) -> Result<Mono, Malformed> {
        self.array().map(|bytes| Mono(u64::from_le_bytes(bytes)))
    }

    fn deadlines(&mut self) -> Result<Deadlines, Malformed> {
        Ok(Deadlines { term_at: self.instant()?, kill_at: self.instant()? })
    }

    fn string(&mut self) -> Result<OsString, Malformed> {
        let length = self.count()? as usize;
        self.bytes(length).map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    fn signal(&mut self) -> Result<Signal, Malformed> {
        Signal::from_named_raw(self.number()?).ok_or(Malformed)
    }

    fn status(&mut self) -> Result<Status, Malformed> {
        match (self.byte()?, self.number()?) {
            (0, code) => Ok(Status::Code(u8::try_from(code).map_err(|_| Malformed)?)),
            (1, number) => Ok(Status::Signal(number)),
            _ => Err(Malformed),
        }
    }

    fn ended(&mut self) -> Result<Ended, Malformed> {
        match self.byte()? {
            0 => Ok(Ended::ByItself),
            1 => Ok(Ended::AfterTerm),
            2 => Ok(Ended::Killed),
            _ => Err(Malformed),
        }
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINES: Deadlines = Deadlines { term_at: Mono(7), kill_at: Mono(u64::MAX) };

    fn requests() -> Vec<Request> {
        let launch = Launch {
            program: OsString::from_vec(b"./a \xff".to_vec()),
            args: vec![OsString::new(), "two words".into(), OsString::from_vec(vec![0x80, b'\n'])],
            env: vec![("LEASEHOLD_TERM".into(), OsString::from_vec(b"7\xfe".to_vec()))],
        };
        vec![
            Request::Launch(launch, DEADLINES),
            Request::Extend(DEADLINES),
            Request::Forward(Signal::USR1),
            Request::Kill,
            Request::End,
            Request::GoOn,
        ]
    }

    fn reports() -> Vec<Report> {
        let (at, pid) = (Mono(9), Pid::from_raw(42).unwrap());
        vec![
            Report::Started { pid },
            Report::CouldNotStart { code: 127, message: "no such program".into() },
            Report::Exited { status: Status::Signal(9), ended: Ended::ByItself, at },
            Report::Exited { status: Status::Code(0), ended: Ended::AfterTerm, at },
            Report::Reaped { ended: Ended::Killed, at },
            Report::Stopped { signal: Signal::TSTP },
        ]
    }

    fn frames() -> Vec<Vec<u8>> {
        let requests = requests().into_iter().map(|request| request.frame());
        requests.chain(reports().into_iter().map(|report| report.frame())).collect()
    }

    #[test]
    fn what_was_said_is_heard_byte_for_byte_and_in_order_even_one_byte_at_a_time() {
        let mut inbox = Inbox::default();
        let mut heard = Vec::new();
        for byte in requests().iter().flat_map(Request::frame) {
            inbox.push(&[byte]);
            heard.extend(inbox.next().unwrap());
        }
        let heard: Vec<_> = heard.iter().map(|frame| Request::parse(frame).unwrap()).collect();
        assert_eq!(heard, requests());

        inbox.push(&reports().iter().flat_map(Report::frame).collect::<Vec<_>>());
        let heard = std::iter::from_fn(|| inbox.next().unwrap());
        let heard: Vec<_> = heard.map(|frame| Report::parse(&frame).unwrap()).collect();
        assert_eq!(heard, reports());
    }

    #[test]
    fn a_frame_that_is_cut_or_too_long_inside_is_malformed() {
        for frame in frames() {
            let whole = &frame[LENGTH..];
            let longer = [whole, &[0]].concat();
            for torn in (0..whole.len()).map(|cut| &whole[..cut]).chain([longer.as_slice()]) {
                let heard = (Request::parse(torn), Report::parse(torn));
                assert_ne!(heard.0.map(|request| request.frame()), Ok(frame.clone()));
                assert_ne!(heard.1.map(|report| report.frame()), Ok(frame.clone()));
            }
        }
        for (cut, frame) in [(1, Request::Extend(DEADLINES).frame()), (2, requests()[0].frame())] {
            assert_eq!(Request::parse(&frame[LENGTH..frame.len() - cut]), Err(Malformed));
        }
    }

    #[test]
    fn nonsense_is_malformed_and_costs_no_memory() {
        let huge_count = [&[0; 21][..], &[0xff; 4]].concat();
        for nonsense in [&[][..], &[9], &[2, 0, 0, 0, 0], &[2, 0xff, 0, 0, 0], &huge_count] {
            assert_eq!(Request::parse(nonsense), Err(Malformed), "{nonsense:?}");
        }
        for nonsense in [&[][..], &[9], &[0, 0, 0, 0, 0], &[3, 3], &[2, 0, 0, 0, 0, 0]] {
            assert_eq!(Report::parse(nonsense), Err(Malformed), "{nonsense:?}");
        }
        let mut inbox = Inbox::default();
        inbox.push(&u32::MAX.to_le_bytes());
        assert_eq!(inbox.next(), Err(Malformed));
    }
}
