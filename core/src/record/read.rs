//! The canonical bytes, read: a cursor that knows at every byte what may stand there.

use super::{Ask, Kind, LeaseRecord, MAX_LEN, MAX_TTL_MS, RecordFault, State, date};
use crate::label::{Label, Name, Note};
use crate::token::{Lineage, Nonce, Token, decimal, digits, hex, term_from_digits};

pub(super) fn record(bytes: &[u8]) -> Result<LeaseRecord<'_>, RecordFault> {
    let mut input = Cursor { rest: bytes, len: bytes.len() };
    format(&mut input)?;
    if bytes.len() > MAX_LEN {
        return Err(RecordFault::Malformed { offset: MAX_LEN });
    }
    input.expect(b",\"name\":\"")?;
    let name = input.checked(|text| Name::new(text).ok())?;
    input.expect(b"\",\"lineage\":\"")?;
    let lineage = Lineage(input.parsed(|text| hex(text, 32))?);
    input.expect(b"\",\"term\":\"")?;
    let term = input.parsed(term_from_digits)?;
    input.expect(b"\",\"nonce\":\"")?;
    let nonce = input.parsed(nonce)?;
    input.expect(b"\",\"state\":\"")?;
    let state = input.parsed(|text| match text {
        b"held" => Some(Kind::Held),
        b"offered" => Some(Kind::Offered),
        b"released" => Some(Kind::Released),
        _ => None,
    })?;
    input.expect(b"\",\"holder\":\"")?;
    let holder = input.checked(|text| Label::new(text).ok())?;
    input.expect(b"\",\"instance\":\"")?;
    let instance = input.parsed(self::nonce)?;
    input.expect(b"\",\"ttl_ms\":")?;
    let ttl_ms = input.number_up_to(MAX_TTL_MS)?;
    input.expect(b",\"attempt\":\"")?;
    let attempt = input.parsed(self::nonce)?;
    input.expect(b"\",\"to\":\"")?;
    let to_at = input.at();
    let to = input.checked(optional(|text| Label::new(text).ok()))?;
    input.expect(b"\",\"ask_id\":\"")?;
    let ask_at = input.at();
    let ask_id = input
        .parsed(|text| if text.is_empty() { Some(None) } else { self::nonce(text).map(Some) })?;
    input.expect(b"\",\"ask_to\":\"")?;
    let ask_to = input.checked(optional(|text| Label::new(text).ok()))?;
    input.expect(b"\",\"at\":\"")?;
    let at_ms =
        input.parsed(|text| if text.is_empty() { Some(None) } else { at(text).map(Some) })?;
    input.expect(b"\",\"expires_by\":\"")?;
    let expires_by_ms =
        input.parsed(|text| if text.is_empty() { Some(None) } else { decimal(text).map(Some) })?;
    input.expect(b"\",\"note\":\"")?;
    let note_at = input.at();
    let note = input.checked(|text| Note::new(text).ok())?;
    input.expect(b"\"}")?;
    input.end()?;

    let ask = match (ask_id, ask_to) {
        (Some(id), Some(to)) => Some(Ask { id, to }),
        (None, None) => None,
        _ => return Err(RecordFault::Malformed { offset: ask_at }),
    };
    let state = match state {
        Kind::Held if to.is_some() => return Err(RecordFault::Malformed { offset: to_at }),
        Kind::Held if !note.as_str().is_empty() => {
            return Err(RecordFault::Malformed { offset: note_at });
        }
        Kind::Held => State::Held { ask },
        _ if ask.is_some() => return Err(RecordFault::Malformed { offset: ask_at }),
        Kind::Offered => State::Offered { to, note },
        Kind::Released if to.is_some() => return Err(RecordFault::Malformed { offset: to_at }),
        Kind::Released => State::Released { note },
    };
    Ok(LeaseRecord {
        name,
        token: Token { lineage, term, nonce },
        state,
        holder,
        instance,
        ttl_ms,
        attempt,
        at_ms,
        expires_by_ms,
    })
}

/// `{"format":1`; a higher format is recognised by this beginning and its comma alone.
fn format(input: &mut Cursor<'_>) -> Result<(), RecordFault> {
    input.expect(b"{\"format\":")?;
    let start = input.at();
    let digits = input.while_digits();
    let format = digits.iter().fold(0u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
    });
    match format {
        1 if digits == b"1" => Ok(()),
        2.. if !digits.starts_with(b"0") && input.next_is(b',') => {
            Err(RecordFault::Newer { format })
        }
        _ => Err(RecordFault::Malformed { offset: start }),
    }
}

fn nonce(text: &[u8]) -> Option<Nonce> {
    hex(text, 16).map(|number| Nonce(number as u64))
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ` of a date that exists.
fn at(text: &[u8]) -> Option<u64> {
    let shape = b"dddd-dd-ddTdd:dd:dd.dddZ";
    if text.len() != shape.len() {
        return None;
    }
    let fits = text.iter().zip(shape).all(|(byte, shape)| *shape == b'd' || byte == shape);
    if !fits {
        return None;
    }
    date::millis(date::Civil {
        year: digits(text.get(0..4)?)?,
        month: digits(text.get(5..7)?)?,
        day: digits(text.get(8..10)?)?,
        hour: digits(text.get(11..13)?)?,
        minute: digits(text.get(14..16)?)?,
        second: digits(text.get(17..19)?)?,
        milli: digits(text.get(20..23)?)?,
    })
}

/// A text that may be empty.
fn optional<'a, T>(parse: impl Fn(&'a str) -> Option<T>) -> impl Fn(&'a str) -> Option<Option<T>> {
    move |text| if text.is_empty() { Some(None) } else { parse(text).map(Some) }
}

struct Cursor<'a> {
    rest: &'a [u8],
    /// Of the whole text.
    len: usize,
}

impl<'a> Cursor<'a> {
    fn at(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    fn expect(&mut self, literal: &[u8]) -> Result<(), RecordFault> {
        for wanted in literal {
            match self.rest.split_first() {
                Some((byte, rest)) if byte == wanted => self.rest = rest,
                _ => return Err(RecordFault::Malformed { offset: self.at() }),
            }
        }
        Ok(())
    }

    fn next_is(&self, byte: u8) -> bool {
        self.rest.first() == Some(&byte)
    }

    /// The bytes before the first that is `stop`, which stays.
    fn until(&mut self, stop: impl Fn(u8) -> bool) -> &'a [u8] {
        let stop = self.rest.iter().position(|byte| stop(*byte));
        let parts = stop.and_then(|stop| self.rest.split_at_checked(stop));
        let (before, rest) = parts.unwrap_or((self.rest, &[]));
        self.rest = rest;
        before
    }

    fn while_digits(&mut self) -> &'a [u8] {
        self.until(|byte| !byte.is_ascii_digit())
    }

    fn number_up_to(&mut self, most: u32) -> Result<u32, RecordFault> {
        let offset = self.at();
        decimal(self.while_digits())
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| (1..=most).contains(number))
            .ok_or(RecordFault::Malformed { offset })
    }

    /// What `parse` makes of the bytes up to the closing quote, which stays.
    fn parsed<T>(&mut self, parse: impl Fn(&'a [u8]) -> Option<T>) -> Result<T, RecordFault> {
        let offset = self.at();
        parse(self.until(|byte| byte == b'"')).ok_or(RecordFault::Malformed { offset })
    }

    fn checked<T>(&mut self, parse: impl Fn(&'a str) -> Option<T>) -> Result<T, RecordFault> {
        self.parsed(|text| parse(core::str::from_utf8(text).ok()?))
    }

    fn end(&self) -> Result<(), RecordFault> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(RecordFault::Malformed { offset: self.at() })
        }
    }
}
