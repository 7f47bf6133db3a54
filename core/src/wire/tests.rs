use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use super::*;
use crate::label::{Label, Name, Note};
use crate::lease::Wake;
use crate::observe::{Event, How, Owner, Reason, StoreFault};
use crate::record::Kind;
use crate::record::{LeaseRecord, RecordFault, State};
use crate::store::{Body, Draft, Entry, OpId, Outcome, Request, Version};
use crate::time::Mono;
use crate::token::{Lineage, Nonce, Term, Token};

const TOKEN: Token = Token {
    lineage: Lineage(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
    term: Term::LAST,
    nonce: Nonce(0xaa),
};

const NOW: Now = Now { mono: Mono(7), wall_ns: Some(u64::MAX) };

fn version(len: usize) -> Version {
    Version::new(&[0x5a; Version::MAX_LEN][..len]).unwrap()
}

fn record(state: State<'_>) -> LeaseRecord<'_> {
    LeaseRecord {
        name: Name::new("settlement").unwrap(),
        token: TOKEN,
        state,
        holder: Label::new("web-1").unwrap(),
        instance: Nonce(1),
        ttl_ms: 15_000,
        attempt: Nonce(2),
        at_ms: Some(1_796_065_445_123),
        expires_by_ms: None,
    }
}

fn inputs() -> Vec<Input<'static>> {
    let released = record(State::Released { note: Note::new("stuck").unwrap() });
    let entry =
        |record, len, age_ns| Outcome::Entry(Entry { record, version: version(len), age_ns });
    let outcomes = [
        Outcome::Absent,
        entry(Ok(record(State::Held { ask: None })), 32, None),
        entry(Ok(released), 0, Some(u64::MAX)),
        entry(Err(RecordFault::Newer { format: 2 }), 40, Some(0)),
        entry(Err(RecordFault::Malformed { offset: record::MAX_LEN }), 1, None),
        Outcome::Applied(version(32)),
        Outcome::Conflict,
        Outcome::Undecided,
        Outcome::Unavailable,
        Outcome::Unknown,
        Outcome::Gone,
    ];
    let done = |outcome| Input::Done { op: OpId(u32::MAX), outcome, salt: 0x5a17 };
    let mut inputs = vec![
        Input::Tick,
        Input::Sealed(TOKEN),
        Input::SealRefused { token: TOKEN, floor: None },
        Input::SealRefused { token: TOKEN, floor: Some(9) },
        Input::Drained(TOKEN),
        Input::Resign { to: None },
        Input::Resign { to: Some(Label::new("web-2").unwrap()) },
        Input::Hint(None),
        Input::Hint(Some(Entry {
            record: Ok(record(State::Offered { to: None, note: Note::EMPTY })),
            version: version(3),
            age_ns: None,
        })),
        Input::Adopt(TOKEN),
        Input::Stop,
        Input::Disrupted,
    ];
    inputs.extend(outcomes.map(done));
    inputs
}

fn steps() -> Vec<Step<'static>> {
    let draft = Draft {
        token: TOKEN,
        kind: Kind::Released,
        instance: Nonce(1),
        ttl_ms: u32::MAX,
        attempt: Nonce(2),
        at_ms: Some(3),
    };
    let bodies = [
        Body::Read,
        Body::Write { expect: None, draft: Draft { kind: Kind::Held, at_ms: None, ..draft } },
        Body::Write { expect: None, draft: Draft { kind: Kind::Offered, ..draft } },
        Body::Write { expect: Some(version(40)), draft },
    ];
    let owner = Owner { holder: Label::new("web-2").unwrap(), instance: Nonce(4), token: TOKEN };
    let faults = [
        StoreFault::RecordGone,
        StoreFault::Malformed { offset: 3 },
        StoreFault::Newer { format: 2 },
        StoreFault::ForeignLineage { known: Lineage(1), found: Lineage(u128::MAX) },
        StoreFault::WentBack { floor: 8, found: 7 },
        StoreFault::BeyondMaxAdvance { floor: u64::MAX, found: 1 },
        StoreFault::Exhausted,
    ];
    let reasons = [
        Reason::DeadlinePassed,
        Reason::RivalSeen,
        Reason::Forced,
        Reason::RecordGone,
        Reason::Refused,
        Reason::SealFailed,
        Reason::Twin,
        Reason::Disrupted,
        Reason::Resigned,
        Reason::Asked,
        Reason::Stopped,
    ];
    let mut events = vec![
        Event::Standby { owner, alive: true },
        Event::Standby { owner, alive: false },
        Event::Elected { token: TOKEN },
        Event::Leading { token: TOKEN, stop_at: Mono(5) },
        Event::Renewed { until: Mono(u64::MAX) },
        Event::RenewalLate { stop_at: Mono(0) },
        Event::StoreDown,
        Event::StoreUp,
        Event::Stopped,
    ];
    events.extend(reasons.map(|reason| Event::Demoted { token: TOKEN, reason, to: None }));
    events.push(Event::Demoted { token: TOKEN, reason: Reason::Asked, to: Some(owner.holder) });
    events.extend(
        [How::Released, How::Offered, How::Expired, How::DrainTimeout, How::Lost]
            .map(|how| Event::Ended { token: TOKEN, how }),
    );
    events.extend(faults.map(Event::StoreFault));

    let step = |request, wake, event| Step { request, wake, event };
    let mut steps = vec![
        step(None, Wake::Now, None),
        step(None, Wake::At(Mono(6)), None),
        step(None, Wake::Idle, None),
    ];
    let request = |body| Request { op: OpId(1), deadline: Mono(2), body };
    steps.extend(bodies.map(|body| step(Some(request(body)), Wake::Idle, None)));
    steps.extend(events.into_iter().map(|event| step(None, Wake::Now, Some(event))));
    steps
}

fn input_bytes(now: Now, input: &Input<'_>) -> Vec<u8> {
    encode_input(now, input, &mut [0; MAX_LEN]).unwrap().to_vec()
}

fn step_bytes(step: &Step<'_>) -> Vec<u8> {
    encode_step(step, &mut [0; MAX_LEN]).unwrap().to_vec()
}

/// Every sample of either kind.
fn messages() -> Vec<Vec<u8>> {
    let inputs = inputs().into_iter().map(|input| input_bytes(NOW, &input));
    inputs.chain(steps().iter().map(step_bytes)).collect()
}

/// Bytes are refused within their length, or they are what their value encodes to.
fn assert_strict(bytes: &[u8]) {
    match decode_input(bytes) {
        Ok((now, input)) => assert_eq!(input_bytes(now, &input), bytes),
        Err(Malformed { offset }) => assert!(offset <= bytes.len(), "{offset} in {bytes:02x?}"),
    }
    match decode_step(bytes) {
        Ok(step) => assert_eq!(step_bytes(&step), bytes),
        Err(Malformed { offset }) => assert!(offset <= bytes.len(), "{offset} in {bytes:02x?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_input_comes_back() {
    for input in inputs() {
        for now in [NOW, Now { mono: Mono(u64::MAX), wall_ns: None }] {
            assert_eq!(decode_input(&input_bytes(now, &input)), Ok((now, input)));
        }
    }
}

#[test]
fn every_step_comes_back() {
    for step in steps() {
        assert_eq!(decode_step(&step_bytes(&step)), Ok(step));
    }
}

#[test]
fn no_two_values_share_their_bytes() {
    let messages = messages();
    assert_eq!(messages.iter().collect::<BTreeSet<_>>().len(), messages.len());
}

#[test]
fn the_bytes_are_those_of_the_documented_layout() {
    let refused = Input::SealRefused { token: TOKEN, floor: Some(9) };
    let expected = [
        "01 01",                                // version, input
        "0000000000000007 01 ffffffffffffffff", // now
        "03",                                   // SealRefused
        "0102030405060708090a0b0c0d0e0f10",     // lineage
        "7fffffffffffffff 00000000000000aa",    // term, nonce
        "01 0000000000000009",                  // floor
    ];
    assert_eq!(hex(&input_bytes(NOW, &refused)), expected.concat().replace(' ', ""));

    let owner = Owner { holder: Label::new("web").unwrap(), instance: Nonce(4), token: TOKEN };
    let step = Step {
        request: Some(Request { op: OpId(1), deadline: Mono(2), body: Body::Read }),
        wake: Wake::At(Mono(6)),
        event: Some(Event::Standby { owner, alive: true }),
    };
    let expected = [
        "01 02",                             // version, step
        "01 00000001 0000000000000002 00",   // request: op, deadline, Read
        "01 0000000000000006",               // wake: At
        "01 00",                             // event: Standby
        "03 776562 0000000000000004",        // holder, instance
        "0102030405060708090a0b0c0d0e0f10",  // lineage
        "7fffffffffffffff 00000000000000aa", // term, nonce
        "01",                                // alive
    ];
    assert_eq!(hex(&step_bytes(&step)), expected.concat().replace(' ', ""));
}

#[test]
fn a_record_travels_as_its_canonical_bytes() {
    let record = record(State::Held { ask: None });
    let outcome = Outcome::Entry(Entry { record: Ok(record), version: version(32), age_ns: None });
    let bytes = input_bytes(NOW, &Input::Done { op: OpId(1), outcome, salt: 0 });
    let mut buffer = [0; record::MAX_LEN];
    let canonical = record::encode(&record, &mut buffer).unwrap();
    assert!(bytes.windows(canonical.len()).any(|window| window == canonical));

    let at = bytes.windows(9).position(|window| window == b"{\"format\"").unwrap();
    let mut edited = bytes.clone();
    edited[at + 1] = b' ';
    assert_eq!(decode_input(&edited), Err(Malformed { offset: at + 1 }));
    edited = bytes;
    edited[at + 10] = b'2';
    assert_eq!(decode_input(&edited), Err(Malformed { offset: at }), "a newer record is a fault");
}

#[test]
fn an_entry_alone_has_the_bytes_that_it_has_inside_an_input() {
    let mut entries = 0;
    for input in inputs() {
        let (Input::Hint(Some(entry)) | Input::Done { outcome: Outcome::Entry(entry), .. }) = input
        else {
            continue;
        };
        let alone = encode_entry(&entry, &mut [0; MAX_LEN]).unwrap().to_vec();
        let message = input_bytes(NOW, &Input::Hint(Some(entry)));
        assert!(message.ends_with(&alone));
        assert_eq!(message.len() - alone.len(), 2 + size_of::<u64>() + 1 + size_of::<u64>() + 2);
        entries += 1;
    }
    assert!(entries > 3);
}

#[test]
fn what_is_cut_off_is_refused_at_every_length() {
    for message in messages() {
        for len in 0..message.len() {
            assert!(decode_input(&message[..len]).is_err());
            assert!(decode_step(&message[..len]).is_err());
        }
    }
}

#[test]
fn what_follows_a_message_is_refused_where_it_begins() {
    for mut message in messages() {
        let offset = message.len();
        message.push(0);
        let refused = Err(Malformed { offset });
        assert!(
            decode_input(&message).map(drop) == refused
                || decode_step(&message).map(drop) == refused
        );
    }
}

#[test]
fn every_flipped_bit_is_refused_or_is_another_message() {
    for message in messages() {
        for at in 0..message.len() {
            for bit in 0..8 {
                let mut flipped = message.clone();
                flipped[at] ^= 1 << bit;
                assert_strict(&flipped);
            }
        }
    }
}

#[test]
fn every_byte_that_is_replaced_by_any_other_is_refused_or_makes_another_message() {
    for message in messages() {
        // Tags and lengths stand in front; records are long.
        for at in 0..message.len().min(80) {
            for byte in 0..=u8::MAX {
                let mut changed = message.clone();
                changed[at] = byte;
                assert_strict(&changed);
            }
        }
    }
}

#[test]
fn a_message_of_the_other_kind_or_of_another_version_is_refused_at_once() {
    let input = input_bytes(NOW, &Input::Tick);
    let step = step_bytes(&Step { request: None, wake: Wake::Idle, event: None });
    assert_eq!(decode_step(&input), Err(Malformed { offset: 1 }));
    assert_eq!(decode_input(&step), Err(Malformed { offset: 1 }));
    assert_eq!(decode_input(&[2, 1]), Err(Malformed { offset: 0 }));
    assert_eq!(decode_input(&[]), Err(Malformed { offset: 0 }));
    assert!(Malformed { offset: 1 }.to_string().contains("byte 1"));
}

#[test]
fn the_longest_message_fits_and_a_shorter_buffer_is_refused() {
    let (name, label, note) = ("n".repeat(128), "l".repeat(128), "~".repeat(256));
    let to = Some(Label::new(&label).unwrap());
    let state = State::Offered { to, note: Note::new(&note).unwrap() };
    let longest = LeaseRecord {
        name: Name::new(&name).unwrap(),
        holder: Label::new(&label).unwrap(),
        ttl_ms: record::MAX_TTL_MS,
        expires_by_ms: Some(Term::LAST.get()),
        ..record(state)
    };
    let outcome =
        Outcome::Entry(Entry { record: Ok(longest), version: version(40), age_ns: Some(1) });
    let bytes = input_bytes(NOW, &Input::Done { op: OpId(1), outcome, salt: 0 });
    let mut buffer = [0; record::MAX_LEN];
    let around = bytes.len() - record::encode(&longest, &mut buffer).unwrap().len();
    assert!(around + record::MAX_LEN <= MAX_LEN, "{around}");

    for input in inputs() {
        let len = input_bytes(NOW, &input).len();
        for room in 0..len {
            assert_eq!(encode_input(NOW, &input, &mut vec![0; room]), Err(DoesNotFit));
        }
        assert!(encode_input(NOW, &input, &mut vec![0; len]).is_ok());
    }
    for step in steps() {
        let len = step_bytes(&step).len();
        for room in 0..len {
            assert_eq!(encode_step(&step, &mut vec![0; room]), Err(DoesNotFit));
        }
        assert!(encode_step(&step, &mut vec![0; len]).is_ok());
    }
}

#[test]
fn a_record_that_no_store_may_keep_is_not_written() {
    let bad = LeaseRecord { ttl_ms: 0, ..record(State::Held { ask: None }) };
    let outcome = Outcome::Entry(Entry { record: Ok(bad), version: version(0), age_ns: None });
    let input = Input::Done { op: OpId(1), outcome, salt: 0 };
    assert_eq!(encode_input(NOW, &input, &mut [0; MAX_LEN]), Err(DoesNotFit));
}

/// Two halves of real messages with a few small bytes between: blind bytes hardly get past a tag.
#[test]
fn drawn_bytes_are_refused_or_are_their_own_encoding() {
    let mut state = 1u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let messages = messages();
    for _ in 0..50_000 {
        let (head, tail) = (&messages[draw() % messages.len()], &messages[draw() % messages.len()]);
        let mut spliced = head[..draw() % (head.len() + 1)].to_vec();
        for _ in 0..draw() % 4 {
            spliced.push(draw() as u8 & 0x0f);
        }
        spliced.extend(&tail[draw() % tail.len()..]);
        assert_strict(&spliced);
    }
}
