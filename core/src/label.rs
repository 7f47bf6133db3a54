//! The texts that a record may hold: names, labels and notes, checked when they are made, so
//! that none of them ever needs an escape.

use core::fmt;
use core::str;

macro_rules! text {
    ($(#[$docs:meta])* $name:ident, $range:expr, $allowed:expr, $rule:literal) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<'a>(&'a str);

        impl<'a> $name<'a> {
            /// The text, checked.
            ///
            /// # Errors
            /// [`BadText`] says what is allowed.
            pub fn new(text: &'a str) -> Result<Self, BadText> {
                if $range.contains(&text.len()) && text.bytes().all($allowed) {
                    Ok(Self(text))
                } else {
                    Err(BadText($rule))
                }
            }

            /// The text as it is.
            #[must_use]
            pub const fn as_str(self) -> &'a str {
                self.0
            }
        }

        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }
    };
}

text!(
    /// The name of a lease. 1 to 128 bytes of `A-Za-z0-9._-`; `/` stands only in names that
    /// the library composes.
    Name,
    1..=128,
    |byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte),
    "a name has 1 to 128 characters of A-Z a-z 0-9 . _ -"
);

text!(
    /// A label for people: who holds a lease. May repeat; no decision reads it.
    Label,
    1..=128,
    |byte| byte.is_ascii_alphanumeric() || b"._:@/+-".contains(&byte),
    "a label has 1 to 128 characters of A-Z a-z 0-9 . _ : @ / + -"
);

text!(
    /// Why a record was released by force. 0 to 256 bytes of printable ASCII without `"` and `\`.
    Note,
    0..=256,
    |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'),
    "a note has at most 256 printable ASCII characters, without \" and \\"
);

impl Note<'static> {
    /// No reason.
    pub const EMPTY: Self = Self("");
}

impl<'a> Name<'a> {
    /// A name as a person chooses it, without `/`.
    ///
    /// # Errors
    /// [`BadText`] says what is allowed.
    pub fn chosen(text: &'a str) -> Result<Self, BadText> {
        let name = Self::new(text)?;
        if text.contains('/') {
            Err(BadText("a name has no /: the library composes those"))
        } else {
            Ok(name)
        }
    }
}

/// A [`Label`] with its bytes inline, for whoever has to keep one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LabelBuf {
    len: usize,
    bytes: [u8; Self::CAPACITY],
}

impl LabelBuf {
    const CAPACITY: usize = 128;

    /// The label.
    #[must_use]
    pub fn as_label(&self) -> Label<'_> {
        // Made from a label, so that both always succeed; a panic could not be ruled out.
        let text = self.bytes.get(..self.len);
        Label(text.and_then(|text| str::from_utf8(text).ok()).unwrap_or("-"))
    }
}

impl From<Label<'_>> for LabelBuf {
    fn from(label: Label<'_>) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        for (kept, byte) in bytes.iter_mut().zip(label.0.bytes()) {
            *kept = byte;
        }
        Self { len: label.0.len(), bytes }
    }
}

impl fmt::Debug for LabelBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_label(), f)
    }
}

/// A text outside its alphabet or length; the message says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadText(&'static str);

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for BadText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_alphabets_are_kept() {
        assert!(Name::new("settlement").is_ok());
        assert!(Name::new("shards/4/0").is_ok());
        assert!(Name::chosen("shards/4/0").is_err());
        assert!(Name::new("").is_err());
        assert!(Name::new(&"x".repeat(129)).is_err());
        assert!(Name::new("a b").is_err());
        assert!(Label::new("root@web-1:42/x+y").is_ok());
        assert!(Label::new("a\"b").is_err());
        assert!(Label::new("café").is_err());
        assert!(Note::new("").is_ok());
        assert!(Note::new("it's stuck (again)").is_ok());
        assert!(Note::new("a\\b").is_err());
        assert!(Note::new("a\nb").is_err());
    }
    #[test]
    fn a_kept_label_is_the_label() {
        for text in ["x", "root@web-1:42/x+y", &"y".repeat(128)] {
            let label = Label::new(text).unwrap();
            let kept = LabelBuf::from(label);
            assert_eq!(kept.as_label(), label);
            assert_eq!(std::format!("{kept:?}"), std::format!("{label:?}"));
            assert_eq!(kept == LabelBuf::from(Label::new("x").unwrap()), text == "x");
        }
    }
}
