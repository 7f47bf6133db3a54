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
    out.hex(&record.token.lineage.0.to_be_bytes())?;
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
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        let room = self.buffer.get_mut(self.len..end)?;
        room.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
        self.len = end;
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.bytes(text.as_bytes())
    }

    fn hex(&mut self, number: &[u8]) -> Option<()> {
        let mut digits = number.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        digits.try_for_each(|digit| self.bytes(&[*b"0123456789abcdef".get(usize::from(digit))?]))
    }

    fn nonce(&mut self, nonce: Nonce) -> Option<()> {
        self.hex(&nonce.0.to_be_bytes())
    }

    /// At least `least` digits, with leading zeros.
    fn decimal(&mut self, number: u64, least: usize) -> Option<()> {
        let mut digits = [b'0'; 20];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let most_zeros = digits.len().saturating_sub(least);
        let zeros = digits.iter().take(most_zeros).take_while(|digit| **digit == b'0').count();
        self.bytes(digits.get(zeros..)?)
    }

    fn date(&mut self, at_ms: u64) -> Option<()> {
        let date = date::civil(at_ms)?;
        self.decimal(date.year, 4)?;
        for (separator, number) in [
            (b'-', date.month),
            (b'-', date.day),
            (b'T', date.hour),
            (b':', date.minute),
            (b':', date.second),
        ] {
            self.bytes(&[separator])?;
            self.decimal(number, 2)?;
        }
        self.text(".")?;
        self.decimal(date.milli, 3)?;
        self.text("Z")
    }

    fn done(self) -> Option<&'b [u8]> {
        self.buffer.get(..self.len)
    }
}
