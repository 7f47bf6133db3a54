//! Reading vectors: what is missing or misspelled stops the runner, so that no demand is passed
//! over in silence.

use leasehold_core::token::Token;
use serde_json::{Map, Value};

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).iter()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// A text that may be left out.
pub(crate) fn optional_text(value: &Value) -> &str {
    if value.is_null() { "" } else { text(value) }
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// A number that may reach 2^63-1, which not every language's JSON keeps.
pub(crate) fn decimal(value: &Value) -> u64 {
    text(value).parse().unwrap_or_else(|_| panic!("not a decimal number: {value}"))
}

pub(crate) fn small(value: &Value) -> u32 {
    u32::try_from(number(value)).unwrap_or_else(|_| panic!("not a small number: {value}"))
}

pub(crate) fn hex(value: &Value) -> u64 {
    u64::from_str_radix(text(value), 16).unwrap_or_else(|_| panic!("not hex digits: {value}"))
}

/// An object that has no keys but these.
pub(crate) fn object<'a>(value: &'a Value, keys: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    let stray = object.keys().find(|key| !keys.contains(&key.as_str()));
    assert!(stray.is_none(), "{stray:?} is none of {keys:?}: {value}");
    object
}

/// The one key of an object, and what it holds.
pub(crate) fn only(value: &Value) -> (&str, &Value) {
    let mut keys = value.as_object().unwrap_or_else(|| panic!("not an object: {value}")).iter();
    match (keys.next(), keys.next()) {
        (Some((key, held)), None) => (key, held),
        _ => panic!("not one key: {value}"),
    }
}

/// A token, in full or written short: `a/5/1` repeats the digits.
pub(crate) fn token(value: &Value) -> Token {
    let short = text(value);
    let long = match short.split('/').collect::<Vec<_>>()[..] {
        [lineage, term, nonce] if lineage.len() == 1 && nonce.len() == 1 => {
            format!("{}/{term}/{}", lineage.repeat(32), nonce.repeat(16))
        }
        _ => short.to_owned(),
    };
    long.parse().unwrap_or_else(|_| panic!("not a token: {value}"))
}
