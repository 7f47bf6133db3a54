use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::token::{Lineage, Term};

const TEXT: &str = "{\"format\":1,\"name\":\"settlement\",\"lineage\":\"0123456789abcdef0123456789abcdef\",\"term\":\"7\",\"nonce\":\"00000000000000aa\",\"state\":\"held\",\"holder\":\"web-1\",\"instance\":\"00000000000000bb\",\"ttl_ms\":15000,\"attempt\":\"00000000000000cc\",\"to\":\"\",\"ask_id\":\"\",\"ask_to\":\"\",\"at\":\"2026-11-30T19:04:05.123Z\",\"expires_by\":\"\",\"note\":\"\"}";

fn record() -> LeaseRecord<'static> {
    LeaseRecord {
        name: Name::new("settlement").unwrap(),
        token: Token {
            lineage: Lineage(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            term: Term::new(7).unwrap(),
            nonce: Nonce(0xaa),
        },
        state: State::Held { ask: None },
        holder: Label::new("web-1").unwrap(),
        instance: Nonce(0xbb),
        ttl_ms: 15_000,
        attempt: Nonce(0xcc),
        at_ms: Some(1_796_065_445_123),
        expires_by_ms: None,
    }
}

fn text_of(record: &LeaseRecord<'_>) -> String {
    let mut buffer = [0; MAX_LEN];
    core::str::from_utf8(encode(record, &mut buffer).unwrap()).unwrap().to_string()
}

#[test]
fn a_record_is_its_bytes() {
    assert_eq!(text_of(&record()), TEXT);
    assert_eq!(decode(TEXT.as_bytes()), Ok(record()));
}

#[test]
fn the_longest_record_fits() {
    let (name, label, note) = ("n".repeat(128), "l".repeat(128), "~".repeat(256));
    let longest = LeaseRecord {
        name: Name::new(&name).unwrap(),
        token: Token { term: Term::LAST, ..record().token },
        holder: Label::new(&label).unwrap(),
        ttl_ms: MAX_TTL_MS,
        state: State::Offered {
            to: Some(Label::new(&label).unwrap()),
            note: Note::new(&note).unwrap(),
        },
        expires_by_ms: Some(Term::LAST.get()),
        at_ms: Some(18_460_828_799_999),
        ..record()
    };
    let text = text_of(&longest);
    assert!(text.len() < 1100, "{}", text.len());
    assert_eq!(decode(text.as_bytes()), Ok(longest));
    let mut short = [0; 700];
    assert_eq!(encode(&longest, &mut short), Err(DoesNotFit));
}

#[test]
fn numbers_out_of_range_are_not_written() {
    let mut buffer = [0; MAX_LEN];
    for bad in [
        LeaseRecord { ttl_ms: 0, ..record() },
        LeaseRecord { ttl_ms: MAX_TTL_MS + 1, ..record() },
        LeaseRecord { at_ms: Some(18_460_828_800_000), ..record() },
        LeaseRecord { expires_by_ms: Some(1 << 63), ..record() },
    ] {
        assert_eq!(encode(&bad, &mut buffer), Err(DoesNotFit));
    }
}

#[test]
fn a_newer_format_is_told_from_damage() {
    fn newer(text: &str) -> Result<LeaseRecord<'_>, RecordFault> {
        decode(text.as_bytes())
    }
    assert_eq!(newer("{\"format\":2,\"anything\":true}"), Err(RecordFault::Newer { format: 2 }));
    for format in ["18446744073709551615", "18446744073709551616", &"9".repeat(900)] {
        let text = std::format!("{{\"format\":{format},\"anything\":true}}");
        assert_eq!(newer(&text), Err(RecordFault::Newer { format: u64::MAX }), "{format}");
    }
    assert_eq!(newer("{\"format\":02,"), Err(RecordFault::Malformed { offset: 10 }));
    assert_eq!(newer("{\"format\":2}"), Err(RecordFault::Malformed { offset: 10 }));
    assert_eq!(newer("{\"format\":0,"), Err(RecordFault::Malformed { offset: 10 }));
    assert_eq!(newer(""), Err(RecordFault::Malformed { offset: 0 }));
    assert_eq!(newer(" {\"format\":1"), Err(RecordFault::Malformed { offset: 0 }));
}

#[test]
fn every_edit_by_hand_is_refused_where_it_stands() {
    let edits: &[(&str, &str)] = &[
        ("\"term\":\"7\"", "\"term\":\"07\""),
        ("\"term\":\"7\"", "\"term\":\"0\""),
        ("\"term\":\"7\"", "\"term\":7"),
        ("\"term\":\"7\"", "\"term\":\"9223372036854775808\""),
        ("15000", "0"),
        ("15000", "015000"),
        ("15000", "86400001"),
        ("15000", "99999999999999999999"),
        ("\"held\"", "\"HELD\""),
        ("\"held\"", "\"offered \""),
        ("\"to\":\"\"", "\"to\":\"web-2\""),
        ("\"ask_id\":\"\"", "\"ask_id\":\"00000000000000dd\""),
        ("\"ask_to\":\"\"", "\"ask_to\":\"web-2\""),
        ("\"note\":\"\"", "\"note\":\"why\""),
        ("2026-11-30T", "2026-11-31T"),
        ("2026-11-30T", "1969-11-30T"),
        ("19:04:05", "19:04:60"),
        ("19:04:05", "24:04:05"),
        (".123Z", ".123z"),
        (".123Z", ".123"),
        ("00000000000000aa", "00000000000000AA"),
        ("00000000000000aa", "0000000000000aa"),
        ("\"web-1\"", "\"\""),
        ("\"web-1\"", "\"w\\u0065b\""),
        ("\"settlement\"", "\"settle ment\""),
        ("\"expires_by\":\"\"", "\"expires_by\":\"01\""),
        (",\"state\"", ", \"state\""),
        ("\"}", "\"} "),
        ("\"}", "\",\"more\":1}"),
        ("\"}", "\"}\n"),
    ];
    for (from, to) in edits {
        let edited = TEXT.replacen(from, to, 1);
        assert_ne!(edited, TEXT);
        match decode(edited.as_bytes()) {
            Err(RecordFault::Malformed { offset }) => assert!(offset <= edited.len(), "{edited}"),
            other => panic!("{other:?} for {edited}"),
        }
    }
}

#[test]
fn every_truncation_and_every_flipped_byte_is_a_record_or_a_fault() {
    for len in 0..TEXT.len() {
        assert!(decode(&TEXT.as_bytes()[..len]).is_err());
    }
    for at in 0..TEXT.len() {
        for bit in 0..8 {
            let mut bytes = Vec::from(TEXT.as_bytes());
            bytes[at] ^= 1 << bit;
            if let Ok(record) = decode(&bytes) {
                assert_eq!(text_of(&record).as_bytes(), bytes);
            }
        }
    }
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let long = TEXT.replace("\"note\":\"\"", &std::format!("\"note\":\"{}\"", "x".repeat(MAX_LEN)));
    assert_eq!(decode(long.as_bytes()), Err(RecordFault::Malformed { offset: MAX_LEN }));
}

#[test]
fn a_record_under_another_leases_key_is_none() {
    assert_eq!(decode_named("settlement", TEXT.as_bytes()), Ok(record()));
    assert_eq!(decode_named("settle", TEXT.as_bytes()), Err(RecordFault::Malformed { offset: 20 }));
}
