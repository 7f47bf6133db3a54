//! The canonical bytes, written.

use super::{LeaseRecord, MAX_TTL_MS, State, date};
use crate::token::{Nonce, Term};

pub(super) fn record<'b>(record: &LeaseRecord<'_>, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    if !(1..=MAX_TTL_MS).contains(&record.ttl_ms) {
        return None;
    }
    let (to, ask, note) = match record.state {
        State::Held { ask } => (None, ask, None),
        State::Offered { to, note } => (to, None, Some(note)),
        State::Released { note } => (None, None, Some(note)),
    };
    let mut out = Out { buffer, len: 0 };
    out.text("{\"format\":1,\"name\":\"")?;
    out.text(record.name.as_str())?;
    out.text("\",\"lineage\":\"")?;
    out.hex(record.token.lineage.0, 32)?;
    out.text("\",\"term\":\"")?;
    out.decimal(record.token.term.get(), 1)?;
    out.text("\",\"nonce\":\"")?;
    out.nonce(record.token.nonce)?;
    out.text("\",\"state\":\"")?;
    out.text(record.state.kind().as_str())?;
    out.text("\",\"holder\":\"")?;
    out.text(record.holder.as_str())?;
    out.text("\",\"instance\":\"")?;
    out.nonce(record.instance)?;
    out.text("\",\"ttl_ms\":")?;
    out.decimal(u64::from(record.ttl_ms), 1)?;
    out.text(",\"attempt\":\"")?;
    out.nonce(record.attempt)?;
    out.text("\",\"to\":\"")?;
    out.text(to.map_or("", |to| to.as_str()))?;
    out.text("\",\"ask_id\":\"")?;
    if let Some(ask) = ask {
        out.nonce(ask.id)?;
    }
    out.text("\",\"ask_to\":\"")?;
    out.text(ask.map_or("", |ask| ask.to.as_str()))?;
    out.text("\",\"at\":\"")?;
    if let Some(at_ms) = record.at_ms {
        out.date(at_ms)?;
    }
    out.text("\",\"expires_by\":\"")?;
    if let Some(expires_by_ms) = record.expires_by_ms {
        if expires_by_ms > Term::LAST.get() {
            return None;
        }
        out.decimal(expires_by_ms, 1)?;
    }
    out.text("\",\"note\":\"")?;
    out.text(note.map_or("", |note| note.as_str()))?;
    out.text("\"}")?;
    out.done()
}

struct Out<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Out<'b> {
    fn byte(&mut self, byte: u8) -> Option<()> {
        *self.buffer.get_mut(self.len)? = byte;
        self.len += 1;
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let end = self.len.checked_add(text.len())?;
        for (slot, byte) in self.buffer.get_mut(self.len..end)?.iter_mut().zip(text.bytes()) {
            *slot = byte;
        }
        self.len = end;
        Some(())
    }

    fn hex(&mut self, number: u128, digits: u32) -> Option<()> {
        (0..digits).rev().try_for_each(|place| {
            let digit = (number >> (place * 4)) as u8 & 0xf;
            self.byte(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 })
        })
    }

    fn nonce(&mut self, nonce: Nonce) -> Option<()> {
        self.hex(u128::from(nonce.0), 16)
    }

    /// At least `digits` digits, with leading zeros.
    fn decimal(&mut self, number: u64, digits: u32) -> Option<()> {
        let places = number.checked_ilog10().map_or(1, |log| log + 1).max(digits);
        (0..places).rev().try_for_each(|place| {
            let digit = 10u64.checked_pow(place).map_or(0, |unit| number / unit % 10);
            self.byte(b'0' + digit as u8)
        })
    }

    fn date(&mut self, at_ms: u64) -> Option<()> {
        let date = date::civil(at_ms)?;
        self.decimal(date.year, 4)?;
        for (separator, number) in
            [(b'-', date.month), (b'-', date.day), (b'T', date.hour), (b':', date.minute), (b':', date.second)]
        {
            self.byte(separator)?;
            self.decimal(number, 2)?;
        }
        self.byte(b'.')?;
        self.decimal(date.milli, 3)?;
        self.byte(b'Z')
    }

    fn done(self) -> Option<&'b [u8]> {
        self.buffer.get(..self.len)
    }
}
