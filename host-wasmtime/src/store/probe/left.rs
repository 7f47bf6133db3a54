//! What a probe leaves in the store, for the next one to learn from.

use std::fmt::Write as _;

use crate::store::Version;

/// What a probe leaves in the key.
pub(super) struct Left {
    pub(super) probe: u64,
    /// Versions that must not come back.
    pub(super) earlier: Vec<Version>,
}

impl Left {
    pub(super) fn text(&self, write: u32) -> String {
        let mut text = format!("{HEAD}{:016x} {write:06} ", self.probe);
        for version in &self.earlier {
            // To a String it cannot fail.
            let _ = write!(text, "{version:?},");
        }
        text + " " + TAIL
    }

    /// None: somebody else's.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let text = str::from_utf8(value).ok()?.strip_prefix(HEAD)?;
        let mut words = text.split(' ');
        let probe = u64::from_str_radix(words.next()?, 16).ok()?;
        let versions = words.nth(1)?.split_terminator(',').map(version);
        Some(Self { probe, earlier: versions.collect::<Option<_>>()? })
    }
}

/// Ends every value: what a store that changes its text would change.
const TAIL: &str = "\u{e9} \u{1f512} \\ ' \" %41 \t ";
const HEAD: &str = "leasehold doctor ";

/// A version from its hexadecimal text.
fn version(hex: &str) -> Option<Version> {
    let pairs = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    Version::new(&pairs.collect::<Option<Vec<u8>>>()?)
}
