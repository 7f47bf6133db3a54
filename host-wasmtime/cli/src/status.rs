//! `leasehold status`: records as they stand, for people and scripts.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_core::label::{Name, Note};
use leasehold_core::record::{Kind, LeaseRecord, State};
use serde_json::{Value, json};

use crate::exit::{Failure, print};
use crate::options::Status;
use crate::places;
use crate::records::{self, Age, Found, block_on};
use crate::spans::{milliseconds, seconds};

pub(crate) fn status(options: &Status) -> Result<ExitCode, Failure> {
    match &options.name {
        Some(name) => one(options, name)?,
        None => all(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn one(options: &Status, name: &str) -> Result<(), Failure> {
    Name::chosen(name).map_err(Failure::configuration)?;
    let url = places::url(options.store.named())?;
    let Some(place) = places::find(options.store.named())? else {
        return absent(options, name, &url, false);
    };
    match block_on(records::read(&place, name))?? {
        Found::Absent => absent(options, name, &url, true),
        Found::Entry { value, age } => {
            let record = records::decode(name, &value, &url)?;
            if options.json {
                return print(object(&record, age, &url));
            }
            print(format!("{}: {}", record.name, words(&record, age)))?;
            print(format!("token {}\ninstance {}\nstore {url}", record.token, record.instance))
        }
    }
}

/// One record that cannot be read hides no other.
fn all(options: &Status) -> Result<(), Failure> {
    let url = places::url(options.store.named())?;
    let place = places::find(options.store.named())?;
    let found = match &place {
        Some(place) => block_on(records::read_all(place))??,
        None => Vec::new(),
    };
    let records = found.iter().map(|(name, found)| (name, found.decoded(name)));
    if options.json {
        let objects = records.map(|(name, record)| match record {
            Ok((record, age)) => object(&record, age, &url),
            Err(why) => json!({"name": name, "store": url, "state": "unreadable", "why": why}),
        });
        return print(Value::Array(objects.collect()));
    }
    for (name, record) in records {
        print(match record {
            Ok((record, age)) => format!("{name}: {}", words(&record, age)),
            Err(why) => format!("{name}: unreadable: {why}"),
        })?;
    }
    if found.is_empty() {
        print("no lease was ever held")?;
    }
    print(format!("store {url}{}", if place.is_some() { "" } else { NOT_YET }))
}

const NOT_YET: &str = ", which does not exist yet";

fn absent(options: &Status, name: &str, store: &str, exists: bool) -> Result<(), Failure> {
    if options.json {
        let state = "absent";
        print(json!({"name": name, "store": store, "store_exists": exists, "state": state}))
    } else {
        print(format!("{name}: never held\nstore {store}{}", if exists { "" } else { NOT_YET }))
    }
}

fn object(record: &LeaseRecord<'_>, age: Age, store: &str) -> Value {
    let to = match record.state {
        State::Offered { to, .. } => to,
        _ => None,
    };
    let asked_to = match record.state {
        State::Held { ask } => ask.map(|ask| ask.to),
        _ => None,
    };
    json!({
        "name": record.name.as_str(),
        "store": store,
        "state": record.state.kind().as_str(),
        "holder": record.holder.as_str(),
        "instance": record.instance.to_string(),
        "term": record.token.term.to_string(),
        "token": record.token.to_string(),
        "ttl_ms": record.ttl_ms,
        "age_ms": age.known().map(milliseconds),
        "holder_rebooted": matches!(age, Age::EarlierBoot),
        "expired": match age {
            Age::Unknown => None,
            _ => Some(has_run_out(record, age)),
        },
        "to": to.map_or("", |to| to.as_str()),
        "asked_to": asked_to.map_or("", |to| to.as_str()),
        "note": record.state.note().map_or("", |note| note.as_str()),
    })
}

/// Who holds a lease, on one line.
pub(crate) fn words(record: &LeaseRecord<'_>, age: Age) -> String {
    let (holder, term, ttl_ms) = (record.holder.as_str(), record.token.term, record.ttl_ms);
    let is_over = has_run_out(record, age);
    let by_force = |free: &str, note: Note<'_>| {
        let by = holder.strip_prefix(FORCED).unwrap_or(holder);
        format!("{free}, ended by force by {by}: {note}, term {term}")
    };
    let state = match record.state {
        State::Held { .. } if is_over => {
            format!("was held by {holder}, and has run out, term {term}, ttl {ttl_ms} ms")
        }
        State::Held { ask: Some(ask) } => {
            let to = ask.to;
            format!("held by {holder}, asked to hand over to {to}, term {term}, ttl {ttl_ms} ms")
        }
        State::Held { ask: None } => format!("held by {holder}, term {term}, ttl {ttl_ms} ms"),
        State::Offered { to: Some(to), .. } if is_over => {
            format!("free, offered by {holder} to {to}, who did not take it, term {term}")
        }
        State::Offered { to: Some(to), .. } => {
            format!("offered to {to} by {holder}, term {term}, grace {ttl_ms} ms")
        }
        State::Offered { to: None, note } if is_over => by_force("free", note),
        State::Offered { to: None, note } => {
            let grace = Duration::from_millis(ttl_ms.into());
            let free = match age.known() {
                Some(age) => format!("free in {}", seconds(grace.saturating_sub(age))),
                None => format!("free within {}", seconds(grace)),
            };
            by_force(&free, note)
        }
        State::Released { note } if note != Note::EMPTY => by_force("free", note),
        State::Released { .. } => match holder.strip_prefix(PUT_BACK) {
            Some(by) => format!("free, put back by {by} after term {term}"),
            None => format!("free, last held by {holder}, term {term}"),
        },
    };
    let is_operators = [FORCED, PUT_BACK].iter().any(|by| holder.starts_with(by));
    let what = match record.state {
        State::Held { .. } => "renewed ",
        _ if is_operators => "",
        _ => "given up ",
    };
    let since = match age {
        Age::Unknown => String::new(),
        Age::Known(age) => format!(", {what}{} ago", seconds(age)),
        Age::EarlierBoot => ", its machine has rebooted since".to_owned(),
    };
    format!("{state}{since}")
}

/// What comes before an operator's label in a record that it wrote.
const FORCED: &str = "forced:";
const PUT_BACK: &str = "init:";

/// Whether nobody need wait any more for who holds the lease, or for whom it is kept. Without an
/// age nobody knows.
pub(crate) fn has_run_out(record: &LeaseRecord<'_>, age: Age) -> bool {
    let ttl = Duration::from_millis(record.ttl_ms.into());
    record.state.kind() != Kind::Released
        && match age {
            Age::Unknown => false,
            Age::Known(age) => age > ttl,
            Age::EarlierBoot => true,
        }
}

#[cfg(test)]
mod tests {
    use leasehold_core::label::Label;
    use leasehold_core::record::Ask;
    use leasehold_core::token::Nonce;

    use super::*;

    fn record<'a>(holder: &'a str, state: State<'a>) -> LeaseRecord<'a> {
        LeaseRecord {
            name: Name::new("job").unwrap(),
            token: "0123456789abcdef0123456789abcdef/7/00000000000000aa".parse().unwrap(),
            state,
            holder: Label::new(holder).unwrap(),
            instance: Nonce(0xaa),
            ttl_ms: 3_000,
            attempt: Nonce(1),
            at_ms: None,
            expires_by_ms: None,
        }
    }

    #[test]
    fn every_state_says_whether_the_lease_is_free_and_by_whom() {
        let web_2 = Label::new("web-2").unwrap();
        let stuck = Note::new("stuck").unwrap();
        let held = record("web-1", State::Held { ask: None });
        let ask = Some(Ask { id: Nonce(3), to: web_2 });
        let asked = record("web-1", State::Held { ask });
        let offered = record("web-1", State::Offered { to: Some(web_2), note: Note::EMPTY });
        let forced = record("forced:ops@desk", State::Offered { to: None, note: stuck });
        let waived = record("forced:ops@desk", State::Released { note: stuck });
        let released = record("web-1", State::Released { note: Note::EMPTY });
        let put_back = record("init:ops@desk", State::Released { note: Note::EMPTY });
        let (young, old) = (Duration::from_millis(500), Duration::from_secs(5));
        for (record, age, expected) in [
            (held, Age::Known(young), "held by web-1, term 7, ttl 3000 ms, renewed 0.500 s ago"),
            (held, Age::Unknown, "held by web-1, term 7, ttl 3000 ms"),
            (
                held,
                Age::EarlierBoot,
                "was held by web-1, and has run out, term 7, ttl 3000 ms, its machine has \
                 rebooted since",
            ),
            (
                asked,
                Age::Known(young),
                "held by web-1, asked to hand over to web-2, term 7, ttl 3000 ms, renewed 0.500 s \
                 ago",
            ),
            (
                asked,
                Age::Known(old),
                "was held by web-1, and has run out, term 7, ttl 3000 ms, renewed 5.000 s ago",
            ),
            (
                offered,
                Age::Known(young),
                "offered to web-2 by web-1, term 7, grace 3000 ms, given up 0.500 s ago",
            ),
            (
                offered,
                Age::Known(old),
                "free, offered by web-1 to web-2, who did not take it, term 7, given up 5.000 s ago",
            ),
            (
                forced,
                Age::Known(young),
                "free in 2.500 s, ended by force by ops@desk: stuck, term 7, 0.500 s ago",
            ),
            (
                forced,
                Age::Unknown,
                "free within 3.000 s, ended by force by ops@desk: stuck, term 7",
            ),
            (
                forced,
                Age::Known(old),
                "free, ended by force by ops@desk: stuck, term 7, 5.000 s ago",
            ),
            (
                waived,
                Age::Known(young),
                "free, ended by force by ops@desk: stuck, term 7, 0.500 s ago",
            ),
            (released, Age::Known(young), "free, last held by web-1, term 7, given up 0.500 s ago"),
            (put_back, Age::Known(old), "free, put back by ops@desk after term 7, 5.000 s ago"),
        ] {
            assert_eq!(words(&record, age), expected);
        }
    }

    #[test]
    fn what_has_run_out_is_unknown_without_an_age_and_nothing_that_is_free() {
        let held = record("web-1", State::Held { ask: None });
        let free = record("web-1", State::Released { note: Note::EMPTY });
        let ttl = Duration::from_secs(3);
        for (record, age, expected) in [
            (held, Age::Unknown, Value::Null),
            (held, Age::Known(ttl), json!(false)),
            (held, Age::Known(ttl + Duration::from_nanos(1)), json!(true)),
            (held, Age::EarlierBoot, json!(true)),
            (free, Age::Known(2 * ttl), json!(false)),
        ] {
            assert_eq!(object(&record, age, "./l.db")["expired"], expected);
        }
    }
}
