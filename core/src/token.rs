//! What a fence compares: lineage, term and nonce.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

/// Names one history of terms: drawn when a lease's record is created, kept in the record for
/// ever. Terms of different lineages do not compare. Text: 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lineage(pub u128);

/// The generation of a lease: 1 to 2^63-1, larger at every acquisition. A sandbox's *epoch* is
/// the term of the lease on that sandbox. Text: decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(NonZeroU64);

/// 64 bits that name one acquisition, or one write. Text: 16 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub u64);

/// A fencing token. Text: `lineage/term/nonce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The history of terms that `term` belongs to.
    pub lineage: Lineage,
    /// What is compared.
    pub term: Term,
    /// Tells two acquisitions apart that a broken store gave the same term.
    pub nonce: Nonce,
}

impl Term {
    /// The first term of a lineage.
    pub const FIRST: Self = Self(NonZeroU64::MIN);
    /// The last term of a lineage, 2^63-1: what SQL's signed integers hold.
    pub const LAST: Self = match Self::new(i64::MAX as u64) {
        Some(last) => last,
        None => Self::FIRST,
    };

    /// A term from its number; none for 0 and for what is above [`Term::LAST`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= i64::MAX as u64 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.lineage, self.term, self.nonce)
    }
}

/// A text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAToken;

impl fmt::Display for NotAToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a token: expected 32 hex digits / a term of 1 to 2^63-1 / 16 hex \
             digits, lower case, no leading zero",
        )
    }
}

impl core::error::Error for NotAToken {}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let mut parts = text.as_bytes().split(|byte| *byte == b'/');
        let (Some(lineage), Some(term), Some(nonce), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NotAToken);
        };
        Ok(Self {
            lineage: Lineage(hex(lineage, 32).ok_or(NotAToken)?),
            term: term_from_digits(term).ok_or(NotAToken)?,
            nonce: Nonce(hex(nonce, 16).ok_or(NotAToken)? as u64),
        })
    }
}

/// Exactly `digits` lower-case hex digits.
pub(crate) fn hex(text: &[u8], digits: usize) -> Option<u128> {
    if text.len() != digits {
        return None;
    }
    text.iter().try_fold(0u128, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// A decimal number without leading zero, at most 2^63-1.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || (text.len() > 1 && text.first() == Some(&b'0')) {
        return None;
    }
    digits(text).filter(|number| *number <= Term::LAST.get())
}

/// The number that decimal digits make, leading zeros or not.
pub(crate) fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |number, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

pub(crate) fn term_from_digits(text: &[u8]) -> Option<Term> {
    Term::new(decimal(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const TEXT: &str = "0123456789abcdef0123456789abcdef/9223372036854775807/00000000000000ff";

    #[test]
    fn a_token_is_its_text() {
        let token: Token = TEXT.parse().unwrap();
        assert_eq!(token.term, Term::LAST);
        assert_eq!(token.nonce, Nonce(255));
        assert_eq!(token.to_string(), TEXT);
    }

    #[test]
    fn whatever_is_not_a_token_is_refused() {
        for text in [
            "",
            "//",
            &TEXT.to_uppercase(),
            &TEXT.replace("9223372036854775807", "9223372036854775808"),
            &TEXT.replace("9223372036854775807", "0"),
            &TEXT.replace("9223372036854775807", "07"),
            &TEXT.replace("9223372036854775807", ""),
            &TEXT.replace("9223372036854775807", "+7"),
            &TEXT.replace("9223372036854775807", "99999999999999999999999"),
            &TEXT[1..],
            &[TEXT, "/1"].concat(),
            &[TEXT, " "].concat(),
        ] {
            assert_eq!(text.parse::<Token>(), Err(NotAToken), "{text}");
        }
    }
}
