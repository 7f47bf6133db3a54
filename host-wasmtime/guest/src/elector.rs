//! The `elector` interface. A step is: read the clock, step the machine, let go of it, and only
//! then call the imports that follow from the answer.

use alloc::string::String;
use alloc::vec::Vec;

use leasehold_core::label::Label;
use leasehold_core::lease::{self, Step, Wake};
use leasehold_core::observe::Event;
use leasehold_core::store::{Body, Entry, OpId, Outcome, Request};
use spin::Mutex;

use crate::bindings::exports::leasehold::protocol::elector::Guest;
use crate::bindings::leasehold::protocol::types::{self as wit, Input, Misuse, Options, Status};
use crate::bindings::leasehold::protocol::{clock, entropy, log, storage};
use crate::leases::{Leases, Texts};
use crate::{alone, values};

/// Never locked while an import runs.
static LEASES: Mutex<Leases> = Mutex::new(Leases::new());

impl Guest for crate::Guest {
    fn open(options: Options) -> Result<u32, Misuse> {
        alone(|| {
            let config = values::config(&options)?;
            let texts = Texts::new(options.name)?;
            let now = values::now(clock::now());
            let salt = entropy::salt();
            LEASES.lock().open(texts, config, now, salt)
        })
    }

    fn close(id: u32) -> Result<(), Misuse> {
        alone(|| LEASES.lock().close(id))
    }

    fn step(id: u32, input: Input) -> Result<wit::Wake, Misuse> {
        alone(|| {
            let answer = step(id, &input)?;
            if let Some(submission) = answer.submission {
                submission.submit(id);
            }
            if let Some(event) = answer.event {
                log::emit(id, &event);
            }
            Ok(values::wit_wake(answer.wake))
        })
    }

    fn query(id: u32) -> Result<Status, Misuse> {
        alone(|| {
            let now = values::now(clock::now());
            let mut leases = LEASES.lock();
            let elector = &leases.get(id)?.elector;
            Ok(Status {
                state: values::wit_state(elector.state()),
                token: elector.token().map(values::wit_token),
                may_start: elector.may_start(now),
                may_finish: elector.may_finish(now),
                remaining_ns: elector.remaining_ns(now),
                stop_at: elector.stop_at(now).map(|at| at.0),
                valid_until: elector.valid_until(now).map(|at| at.0),
            })
        })
    }
}

/// What a step asks for, with nothing borrowed.
struct Answer {
    submission: Option<Submission>,
    event: Option<wit::Event>,
    wake: Wake,
}

struct Submission {
    op: u32,
    deadline: u64,
    key: String,
    write: Option<Write>,
}

struct Write {
    expect: Option<Vec<u8>>,
    value: Vec<u8>,
}

impl Submission {
    fn new(request: &Request, texts: &Texts, holder: Label<'_>) -> Option<Self> {
        let write = match &request.body {
            Body::Read => None,
            Body::Write { expect, draft } => Some(Write {
                expect: expect.map(|version| version.as_bytes().to_vec()),
                value: texts.encode(draft, holder)?,
            }),
        };
        let Request { op, deadline, .. } = *request;
        Some(Self { op: op.0, deadline: deadline.0, key: texts.key(), write })
    }

    fn submit(self, id: u32) {
        let Self { op, deadline, key, write } = self;
        match write {
            None => storage::submit_read(id, op, deadline, &key),
            Some(Write { expect, value }) => {
                storage::submit_transact(id, op, deadline, &key, expect.as_deref(), &value);
            }
        }
    }
}

fn step(id: u32, input: &Input) -> Result<Answer, Misuse> {
    let now = values::now(clock::now());
    let salt = if matches!(input, Input::Done(_)) { entropy::salt() } else { 0 };
    let mut leases = LEASES.lock();
    let lease = leases.get(id)?;
    let input = match input {
        Input::Tick => lease::Input::Tick,
        Input::Done(wit::Done { op, outcome }) => {
            lease::Input::Done { op: OpId(*op), outcome: decode(outcome, &lease.texts)?, salt }
        }
        Input::Sealed(token) => lease::Input::Sealed(values::token(*token)?),
        Input::SealRefused(wit::Refusal { token, floor }) => {
            lease::Input::SealRefused { token: values::token(*token)?, floor: *floor }
        }
        Input::Drained(token) => lease::Input::Drained(values::token(*token)?),
        Input::Resign(to) => {
            let to = to.as_deref().map(values::label).transpose()?;
            lease.texts.offer_to(to);
            lease::Input::Resign { to }
        }
        Input::Stop => lease::Input::Stop,
        Input::Disrupted => lease::Input::Disrupted,
        Input::Hint(hint) => {
            lease::Input::Hint(hint.as_ref().map(|hint| entry(hint, &lease.texts)).transpose()?)
        }
        Input::Adopt(token) => lease::Input::Adopt(values::token(*token)?),
    };
    let Step { request, wake, event } = lease.elector.step(now, input);
    if let Some(Event::Demoted { to: Some(to), .. }) = event {
        lease.texts.offer_to(Some(to));
    }
    let holder = lease.elector.config().holder();
    let submission = request.and_then(|request| Submission::new(&request, &lease.texts, holder));
    Ok(Answer { submission, event: event.map(values::wit_event), wake })
}

fn decode<'a>(outcome: &'a wit::Outcome, texts: &Texts) -> Result<Outcome<'a>, Misuse> {
    Ok(match outcome {
        wit::Outcome::Absent => Outcome::Absent,
        wit::Outcome::Entry(entry) => Outcome::Entry(self::entry(entry, texts)?),
        wit::Outcome::Applied(version) => Outcome::Applied(values::version(version)?),
        wit::Outcome::Conflict => Outcome::Conflict,
        wit::Outcome::Undecided => Outcome::Undecided,
        wit::Outcome::Unavailable => Outcome::Unavailable,
        wit::Outcome::Unknown => Outcome::Unknown,
        wit::Outcome::Gone => Outcome::Gone,
    })
}

fn entry<'a>(entry: &'a wit::Entry, texts: &Texts) -> Result<Entry<'a>, Misuse> {
    Ok(Entry {
        record: texts.decode(&entry.value),
        version: values::version(&entry.version)?,
        age_ns: entry.age_ns,
    })
}
