//! What a step did, told apart without keeping it.

use core::fmt;
use core::str::FromStr;

use crate::token;

/// A SHA-256. Text: 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADigest;

impl fmt::Display for NotADigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a digest: expected the 64 lower-case hex digits of a SHA-256")
    }
}

impl core::error::Error for NotADigest {}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        if text.len() != 64 {
            return Err(NotADigest);
        }
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = token::hex(digits, 2).ok_or(NotADigest)? as u8;
        }
        Ok(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_digest_is_its_text() {
        let text = "00ff".repeat(16);
        let digest: Digest = text.parse().unwrap();
        assert_eq!(digest.to_string(), text);
        for text in ["", &text[1..], &text.to_uppercase(), &text.replace('f', "g"), &text.repeat(2)]
        {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }
}
