//! The values of the driver as those of the contract, and back. What comes back is checked: a
//! component that answers nonsense is dead.

use leasehold_core::lease::{Authority, State, Wake};
use leasehold_core::observe::{How, Reason, StoreFault};
use leasehold_core::store::{OpId, Version};
use leasehold_core::time::{Clocks, Mono};
use leasehold_core::timing::Timing;
use leasehold_core::token::{Lineage, Nonce, Term, Token};

use super::bindings::leasehold::protocol::types as wit;
use crate::protocol::{Dead, Entry, Event, Input, Open, Outcome, Owner, Status};

pub(super) fn options(open: &Open) -> wit::Options {
    let Timing {
        ttl_ms,
        renew_ns,
        attempt_ns,
        tolerated,
        pause_ns,
        drain_ns,
        guard_ns,
        poll_ns,
        retry_ns,
        seal_within_ns,
        grace_ms,
        sit_out_ns,
        drift,
    } = open.timing;
    let Clocks { wall, resolution_ns } = open.clocks;
    wit::Options {
        name: open.name.clone(),
        holder: open.holder.clone(),
        instance: open.instance.0,
        timing: wit::Timing {
            ttl_ms,
            renew_ns,
            attempt_ns,
            tolerated,
            pause_ns,
            drain_ns,
            guard_ns,
            poll_ns,
            retry_ns,
            seal_within_ns,
            grace_ms,
            sit_out_ns,
            drift_ppm: drift.ppm(),
        },
        authority: match open.authority {
            Authority::LocalObservation => wit::Authority::LocalObservation,
            Authority::StoreClock { error_ns } => wit::Authority::StoreClock(error_ns),
        },
        clocks: wit::Clocks { wall, resolution_ns },
    }
}

pub(super) fn input(input: Input) -> wit::Input {
    match input {
        Input::Tick => wit::Input::Tick,
        Input::Done { op: OpId(op), outcome } => {
            wit::Input::Done(wit::Done { op, outcome: self::outcome(outcome) })
        }
        Input::Sealed(token) => wit::Input::Sealed(wit_token(token)),
        Input::SealRefused { token, floor } => {
            wit::Input::SealRefused(wit::Refusal { token: wit_token(token), floor })
        }
        Input::Drained(token) => wit::Input::Drained(wit_token(token)),
        Input::Resign { to } => wit::Input::Resign(to),
        Input::Stop => wit::Input::Stop,
        Input::Disrupted => wit::Input::Disrupted,
        Input::Hint(hint) => wit::Input::Hint(hint.map(entry)),
        Input::Adopt(token) => wit::Input::Adopt(wit_token(token)),
    }
}

fn outcome(outcome: Outcome) -> wit::Outcome {
    match outcome {
        Outcome::Absent => wit::Outcome::Absent,
        Outcome::Entry(entry) => wit::Outcome::Entry(self::entry(entry)),
        Outcome::Applied(version) => wit::Outcome::Applied(version.as_bytes().to_vec()),
        Outcome::Conflict => wit::Outcome::Conflict,
        Outcome::Undecided => wit::Outcome::Undecided,
        Outcome::Unavailable => wit::Outcome::Unavailable,
        Outcome::Unknown => wit::Outcome::Unknown,
        Outcome::Gone => wit::Outcome::Gone,
    }
}

fn entry(entry: Entry) -> wit::Entry {
    let Entry { value, version, age_ns } = entry;
    wit::Entry { value, version: version.as_bytes().to_vec(), age_ns }
}

fn wit_token(token: Token) -> wit::Token {
    let Token { lineage: Lineage(lineage), term, nonce: Nonce(nonce) } = token;
    let lineage = wit::Lineage { high: (lineage >> 64) as u64, low: lineage as u64 };
    wit::Token { lineage, term: term.get(), nonce }
}

pub(super) fn version(bytes: &[u8]) -> Result<Version, Dead> {
    Version::new(bytes).ok_or_else(|| Dead::because("the component made up a version"))
}

pub(super) fn wake(wake: wit::Wake) -> Wake {
    match wake {
        wit::Wake::Now => Wake::Now,
        wit::Wake::At(at) => Wake::At(Mono(at)),
        wit::Wake::Idle => Wake::Idle,
    }
}

pub(super) fn status(status: wit::Status) -> Result<Status, Dead> {
    Ok(Status {
        state: state(status.state),
        token: status.token.map(token).transpose()?,
        may_start: status.may_start,
        may_finish: status.may_finish,
        remaining_ns: status.remaining_ns,
        stop_at: status.stop_at.map(Mono),
        valid_until: status.valid_until.map(Mono),
    })
}

pub(super) fn event(event: wit::Event) -> Result<Event, Dead> {
    Ok(match event {
        wit::Event::Standby(wit::Standby { holder, instance, token, alive }) => Event::Standby {
            owner: Owner { holder, instance: Nonce(instance), token: self::token(token)? },
            alive,
        },
        wit::Event::Elected(token) => Event::Elected { token: self::token(token)? },
        wit::Event::Leading(wit::Leading { token, stop_at }) => {
            Event::Leading { token: self::token(token)?, stop_at: Mono(stop_at) }
        }
        wit::Event::Renewed(until) => Event::Renewed { until: Mono(until) },
        wit::Event::RenewalLate(stop_at) => Event::RenewalLate { stop_at: Mono(stop_at) },
        wit::Event::Demoted(wit::Demoted { token, reason, to }) => {
            Event::Demoted { token: self::token(token)?, reason: self::reason(reason), to }
        }
        wit::Event::Ended(wit::Ended { token, how }) => {
            Event::Ended { token: self::token(token)?, how: self::how(how) }
        }
        wit::Event::StoreDown => Event::StoreDown,
        wit::Event::StoreUp => Event::StoreUp,
        wit::Event::StoreFault(fault) => Event::StoreFault(self::fault(fault)),
        wit::Event::Stopped => Event::Stopped,
    })
}

fn token(token: wit::Token) -> Result<Token, Dead> {
    let wit::Token { lineage, term, nonce } = token;
    let term = Term::new(term).ok_or_else(|| Dead::because("the component made up a token"))?;
    Ok(Token { lineage: self::lineage(lineage), term, nonce: Nonce(nonce) })
}

fn lineage(lineage: wit::Lineage) -> Lineage {
    Lineage((u128::from(lineage.high) << 64) | u128::from(lineage.low))
}

fn state(state: wit::State) -> State {
    match state {
        wit::State::Observing => State::Observing,
        wit::State::Standby => State::Standby,
        wit::State::Campaigning => State::Campaigning,
        wit::State::Confirming => State::Confirming,
        wit::State::Sealing => State::Sealing,
        wit::State::Leading => State::Leading,
        wit::State::Draining => State::Draining,
        wit::State::Releasing => State::Releasing,
        wit::State::Stopped => State::Stopped,
    }
}

fn reason(reason: wit::Reason) -> Reason {
    match reason {
        wit::Reason::DeadlinePassed => Reason::DeadlinePassed,
        wit::Reason::RivalSeen => Reason::RivalSeen,
        wit::Reason::Forced => Reason::Forced,
        wit::Reason::RecordGone => Reason::RecordGone,
        wit::Reason::Refused => Reason::Refused,
        wit::Reason::SealFailed => Reason::SealFailed,
        wit::Reason::Twin => Reason::Twin,
        wit::Reason::Disrupted => Reason::Disrupted,
        wit::Reason::Resigned => Reason::Resigned,
        wit::Reason::Asked => Reason::Asked,
        wit::Reason::Stopped => Reason::Stopped,
    }
}

fn how(how: wit::How) -> How {
    match how {
        wit::How::Released => How::Released,
        wit::How::Offered => How::Offered,
        wit::How::Expired => How::Expired,
        wit::How::DrainTimeout => How::DrainTimeout,
        wit::How::Lost => How::Lost,
    }
}

fn fault(fault: wit::StoreFault) -> StoreFault {
    match fault {
        wit::StoreFault::RecordGone => StoreFault::RecordGone,
        wit::StoreFault::Malformed(offset) => {
            StoreFault::Malformed { offset: usize::try_from(offset).unwrap_or(usize::MAX) }
        }
        wit::StoreFault::Newer(format) => StoreFault::Newer { format },
        wit::StoreFault::ForeignLineage(wit::ForeignLineage { known, found }) => {
            StoreFault::ForeignLineage { known: lineage(known), found: lineage(found) }
        }
        wit::StoreFault::WentBack(wit::Gap { floor, found }) => {
            StoreFault::WentBack { floor, found }
        }
        wit::StoreFault::BeyondMaxAdvance(wit::Gap { floor, found }) => {
            StoreFault::BeyondMaxAdvance { floor, found }
        }
        wit::StoreFault::Exhausted => StoreFault::Exhausted,
    }
}
