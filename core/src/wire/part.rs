//! Writing and reading a part, and the parts that every message is made of.

use super::Malformed;
use crate::label::Label;
use crate::store::Version;
use crate::token::Term;

/// What has a byte form of its own.
pub(super) trait Part<'a>: Sized {
    /// Writes the bytes; none where they do not fit.
    fn put(&self, to: &mut Writer<'_>) -> Option<()>;

    /// Reads what [`Part::put`] writes, and nothing else.
    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed>;
}

pub(super) struct Writer<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Writer<'b> {
    pub(super) const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    pub(super) fn done(self) -> Option<&'b [u8]> {
        self.buffer.get(..self.len)
    }

    fn array<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        *self.buffer.get_mut(self.len..)?.first_chunk_mut()? = bytes;
        self.len = self.len.checked_add(N)?;
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let (slots, _) = self.buffer.get_mut(self.len..)?.split_at_mut_checked(bytes.len())?;
        slots.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
        self.len = self.len.checked_add(bytes.len())?;
        Some(())
    }

    /// What `write` puts into the room left, behind its length.
    pub(super) fn prefixed(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<&[u8]>,
    ) -> Option<()> {
        let start = self.len.checked_add(size_of::<u16>())?;
        let len = write(self.buffer.get_mut(start..)?)?.len();
        u16::try_from(len).ok()?.put(self)?;
        self.len = self.len.checked_add(len)?;
        Some(())
    }
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Of the whole message.
    len: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    pub(super) const fn offset(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    pub(super) fn expect(&mut self, wanted: u8) -> Result<(), Malformed> {
        self.parsed(|byte: u8| (byte == wanted).then_some(()))
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { offset: self.offset() }) }
    }

    /// What `parse` makes of the next part.
    pub(super) fn parsed<P: Part<'a>, T>(
        &mut self,
        parse: impl FnOnce(P) -> Option<T>,
    ) -> Result<T, Malformed> {
        let offset = self.offset();
        parse(P::take(self)?).ok_or(Malformed { offset })
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) =
            self.rest.split_at_checked(len).ok_or(Malformed { offset: self.len })?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed { offset: self.len })?;
        self.rest = rest;
        Ok(*bytes)
    }
}

macro_rules! number {
    ($($number:ty),+) => {
        $(impl Part<'_> for $number {
            fn put(&self, to: &mut Writer<'_>) -> Option<()> {
                to.array(self.to_be_bytes())
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                from.array().map(Self::from_be_bytes)
            }
        })+
    };
}

number!(u8, u16, u32, u64, u128);

/// An offset: 32 bits, whatever the machine.
impl Part<'_> for usize {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u32::try_from(*self).ok()?.put(to)
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.parsed(|number: u32| Self::try_from(number).ok())
    }
}

impl Part<'_> for bool {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u8::from(*self).put(to)
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.parsed(|byte: u8| match byte {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }
}

impl<'a, T: Part<'a>> Part<'a> for Option<T> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.is_some().put(to)?;
        self.iter().try_for_each(|some| some.put(to))
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        if bool::take(from)? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl<'a, A: Part<'a>, B: Part<'a>> Part<'a> for (A, B) {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.0.put(to)?;
        self.1.put(to)
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

/// At most 255 bytes, behind their length.
impl<'a> Part<'a> for &'a [u8] {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        u8::try_from(self.len()).ok()?.put(to)?;
        to.bytes(self)
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        let len = u8::take(from)?;
        from.bytes(usize::from(len))
    }
}

impl<'a> Part<'a> for Label<'a> {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.as_str().as_bytes().put(to)
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        from.parsed(|bytes| Self::new(core::str::from_utf8(bytes).ok()?).ok())
    }
}

impl Part<'_> for Version {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.as_bytes().put(to)
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.parsed(Self::new)
    }
}

impl Part<'_> for Term {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.get().put(to)
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.parsed(Self::new)
    }
}
