//! The record's vectors: bytes that must be written and read, and bytes that must be refused.

use leasehold_core::label::{Label, Name, Note};
use leasehold_core::record::{Ask, LeaseRecord, RecordFault, State};
use leasehold_core::token::{Nonce, Token};
use serde_json::Value;

use crate::json::{decimal, hex, list, number, object, only, optional_text, small, text, token};

/// The text of `tests/vectors/record.json`.
pub const FILE: &str = include_str!("../vectors/record.json");

/// All of it.
#[derive(Debug)]
pub struct Vectors {
    /// Records and their bytes, both ways.
    pub records: Vec<Written>,
    /// Records that no encoder may write.
    pub unwritable: Vec<Fields>,
    /// Bytes that are no records.
    pub refused: Vec<Refused>,
}

/// A record and its bytes.
#[derive(Debug)]
pub struct Written {
    /// The record.
    pub fields: Fields,
    /// The only bytes it has.
    pub bytes: Vec<u8>,
}

/// Bytes that are no record.
#[derive(Debug)]
pub struct Refused {
    /// What is wrong with them.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Of the lease under whose key they stand, if that matters.
    pub under: Option<String>,
    /// Why they are refused.
    pub fault: RecordFault,
}

/// A record with texts of its own.
#[derive(Debug)]
pub struct Fields {
    /// What it shows.
    pub title: String,
    name: String,
    token: Token,
    state: String,
    holder: String,
    instance: Nonce,
    ttl_ms: u32,
    attempt: Nonce,
    to: String,
    ask: Option<(Nonce, String)>,
    at_ms: Option<u64>,
    expires_by_ms: Option<u64>,
    note: String,
}

impl Fields {
    /// The record.
    ///
    /// # Panics
    /// Where a text is outside its alphabet or length.
    #[must_use]
    pub fn record(&self) -> LeaseRecord<'_> {
        let label = |text| Label::new(text).expect("a label");
        let to = Some(&self.to).filter(|to| !to.is_empty()).map(|to| label(to));
        let note = Note::new(&self.note).expect("a note");
        let ask = self.ask.as_ref().map(|(id, to)| Ask { id: *id, to: label(to) });
        let state = match self.state.as_str() {
            "held" => State::Held { ask },
            "offered" => State::Offered { to, note },
            "released" => State::Released { note },
            word => panic!("no such state: {word}"),
        };
        LeaseRecord {
            name: Name::new(&self.name).expect("a name"),
            token: self.token,
            state,
            holder: label(&self.holder),
            instance: self.instance,
            ttl_ms: self.ttl_ms,
            attempt: self.attempt,
            at_ms: self.at_ms,
            expires_by_ms: self.expires_by_ms,
        }
    }
}

/// The vectors.
///
/// # Panics
/// Where the file is not as `tests/vectors/README.md` says.
#[must_use]
pub fn load() -> Vectors {
    let file: Value = serde_json::from_str(FILE).expect("record.json is JSON");
    object(&file, &["records", "unwritable", "refused"]);
    let written = |spelled| {
        object(spelled, &["name", "fields", "bytes"]);
        Written { fields: fields(spelled), bytes: text(&spelled["bytes"]).into() }
    };
    Vectors {
        records: list(&file["records"]).map(written).collect(),
        unwritable: list(&file["unwritable"]).map(fields).collect(),
        refused: list(&file["refused"]).map(refused).collect(),
    }
}

fn fields(spelled: &Value) -> Fields {
    let title = text(&spelled["name"]).to_owned();
    let spelled = &spelled["fields"];
    let keys = [
        "name",
        "token",
        "state",
        "holder",
        "instance",
        "ttl_ms",
        "attempt",
        "to",
        "ask_id",
        "ask_to",
        "at_ms",
        "expires_by_ms",
        "note",
    ];
    object(spelled, &keys);
    let owned = |key: &str| text(&spelled[key]).to_owned();
    let has = |key: &str| !text(&spelled[key]).is_empty();
    Fields {
        title,
        name: owned("name"),
        token: token(&spelled["token"]),
        state: owned("state"),
        holder: owned("holder"),
        instance: Nonce(hex(&spelled["instance"])),
        ttl_ms: small(&spelled["ttl_ms"]),
        attempt: Nonce(hex(&spelled["attempt"])),
        to: owned("to"),
        ask: has("ask_id").then(|| (Nonce(hex(&spelled["ask_id"])), owned("ask_to"))),
        at_ms: (!spelled["at_ms"].is_null()).then(|| number(&spelled["at_ms"])),
        expires_by_ms: has("expires_by_ms").then(|| decimal(&spelled["expires_by_ms"])),
        note: owned("note"),
    }
}

fn refused(spelled: &Value) -> Refused {
    object(spelled, &["name", "bytes", "hex", "under", "fault"]);
    let bytes = match spelled["hex"].as_str() {
        Some(hex) => from_hex(hex),
        None => text(&spelled["bytes"]).into(),
    };
    let fault = match only(&spelled["fault"]) {
        ("Newer", fault) => RecordFault::Newer { format: decimal(&fault["format"]) },
        ("Malformed", fault) => RecordFault::Malformed { offset: small(&fault["offset"]) as usize },
        (word, _) => panic!("no such fault: {word}"),
    };
    let under = optional_text(&spelled["under"]);
    Refused {
        name: text(&spelled["name"]).to_owned(),
        bytes,
        under: (!under.is_empty()).then(|| under.to_owned()),
        fault,
    }
}

fn from_hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}
