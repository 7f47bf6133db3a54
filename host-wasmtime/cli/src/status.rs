//! `leasehold status`: records as they stand, for people and scripts.

use std::process::ExitCode;

use leasehold_core::label::{Name, Note};
use leasehold_core::record::{self, LeaseRecord, State};
use leasehold_core::time::MILLISECOND_NS;
use leasehold_core::token::Token;
use leasehold_host::store::{List, Read};
use serde_json::{Value, json};

use crate::exit::{self, Failure, print};
use crate::options::Status;
use crate::places::{self, Place};

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
    let Some(place) = place(options.store.named())? else {
        return absent(options, name, &url, false);
    };
    match block_on(read(&place, name))?? {
        Found::Absent => absent(options, name, &url, true),
        Found::Entry { value, age_ns } => {
            let record = decode(name, &value, &url)?;
            if options.json {
                return print(object(&record, age_ns, &url));
            }
            print(format!("{}: {}", record.name, words(&record, age_ns)))?;
            print(format!("token {}\ninstance {}\nstore {url}", record.token, record.instance))
        }
    }
}

/// One record that cannot be read hides no other.
fn all(options: &Status) -> Result<(), Failure> {
    let url = places::url(options.store.named())?;
    let place = place(options.store.named())?;
    let found = match &place {
        Some(place) => block_on(read_all(place))??,
        None => Vec::new(),
    };
    let records = found.iter().map(|(name, found)| (name, found.decoded(name)));
    if options.json {
        let objects = records.map(|(name, record)| match record {
            Ok((record, age_ns)) => object(&record, age_ns, &url),
            Err(why) => json!({"name": name, "store": url, "state": "unreadable", "why": why}),
        });
        return print(Value::Array(objects.collect()));
    }
    for (name, record) in records {
        print(match record {
            Ok((record, age_ns)) => format!("{name}: {}", words(&record, age_ns)),
            Err(why) => format!("{name}: unreadable: {why}"),
        })?;
    }
    if found.is_empty() {
        print("no lease was ever held")?;
    }
    print(format!("store {url}{}", if place.is_some() { "" } else { NOT_YET }))
}

/// The token in the record of `name`, as it is now.
pub(crate) fn current(named: Option<&str>, name: &str) -> Result<Token, Failure> {
    Name::chosen(name).map_err(Failure::configuration)?;
    let url = places::url(named)?;
    let never = || {
        Failure::new(
            exit::REFUSED,
            format!(
                "{name}: there is no record in {url}: check the name and --store; if it was lost, \
                 put it back with `leasehold init`"
            ),
        )
    };
    let place = place(named)?.ok_or_else(never)?;
    match block_on(read(&place, name))?? {
        Found::Absent => Err(never()),
        Found::Entry { value, .. } => Ok(decode(name, &value, &url)?.token),
    }
}

const NOT_YET: &str = ", which does not exist yet";

/// The store, if there is one; a question creates nothing.
pub(crate) fn place(named: Option<&str>) -> Result<Option<Place>, Failure> {
    if places::exists(named)? { places::open(named).map(Some) } else { Ok(None) }
}

/// What stands under a lease's key.
pub(crate) enum Found {
    Absent,
    Entry { value: Vec<u8>, age_ns: Option<u64> },
}

impl Found {
    fn decoded(&self, name: &str) -> Result<(LeaseRecord<'_>, Option<u64>), String> {
        match self {
            Self::Absent => Err("the record was deleted while it was listed".to_owned()),
            Self::Entry { value, age_ns } => match record::decode_named(name, value) {
                Ok(record) => Ok((record, *age_ns)),
                Err(fault) => Err(fault.to_string()),
            },
        }
    }
}

/// Only what leasehold wrote is a record.
pub(crate) fn decode<'a>(
    name: &str,
    value: &'a [u8],
    store: &str,
) -> Result<LeaseRecord<'a>, Failure> {
    record::decode_named(name, value)
        .map_err(|fault| Failure::configuration(format!("lease/{name} in {store}: {fault}")))
}

pub(crate) async fn read(place: &Place, name: &str) -> Result<Found, Failure> {
    match place.store.read(&format!("lease/{name}")).await {
        Read::Absent => Ok(Found::Absent),
        Read::Entry { value, age_ns, .. } => Ok(Found::Entry { value, age_ns }),
        Read::Unavailable(why) | Read::Unknown(why) => Err(Failure::new(exit::UNREACHABLE, why)),
        Read::Gone(why) => Err(Failure::configuration(why)),
    }
}

async fn read_all(place: &Place) -> Result<Vec<(String, Found)>, Failure> {
    let keys = match place.store.list("lease/").await {
        List::Keys(keys) => keys,
        List::Unsupported => {
            return Err(Failure::configuration(format!(
                "{} cannot list its leases: give the name of one",
                place.url
            )));
        }
        List::Unavailable(why) => return Err(Failure::new(exit::UNREACHABLE, why)),
        List::Gone(why) => return Err(Failure::configuration(why)),
    };
    let mut all = Vec::new();
    for name in keys.iter().filter_map(|key| key.strip_prefix("lease/")) {
        all.push((name.to_owned(), read(place, name).await?));
    }
    Ok(all)
}

fn absent(options: &Status, name: &str, store: &str, exists: bool) -> Result<(), Failure> {
    if options.json {
        let state = "absent";
        print(json!({"name": name, "store": store, "store_exists": exists, "state": state}))
    } else {
        print(format!("{name}: never held\nstore {store}{}", if exists { "" } else { NOT_YET }))
    }
}

fn object(record: &LeaseRecord<'_>, age_ns: Option<u64>, store: &str) -> Value {
    let note = record.state.note().map_or("", |note| note.as_str());
    json!({
        "name": record.name.as_str(),
        "store": store,
        "state": record.state.kind().as_str(),
        "holder": record.holder.as_str(),
        "instance": record.instance.to_string(),
        "term": record.token.term.to_string(),
        "token": record.token.to_string(),
        "ttl_ms": record.ttl_ms,
        "age_ms": age_ms(age_ns),
        "holder_rebooted": writer_is_dead(age_ns),
        "expired": age_ns.map(|_| has_run_out(record, age_ns)),
        "to": offered_to(record),
        "asked_to": asked_to(record),
        "note": note,
    })
}

/// Who holds a lease, on one line.
pub(crate) fn words(record: &LeaseRecord<'_>, age_ns: Option<u64>) -> String {
    let age_ms = age_ms(age_ns);
    let age = match age_ms {
        _ if writer_is_dead(age_ns) => ", its machine has rebooted since".to_owned(),
        Some(age_ms) => {
            let what = match record.state {
                State::Held { .. } => "renewed",
                State::Offered { .. } | State::Released { .. } => "given up",
            };
            format!(", {what} {} ago", seconds(age_ms))
        }
        None => String::new(),
    };
    let over = has_run_out(record, age_ns);
    let (holder, grace_ms) = (record.holder.as_str(), u64::from(record.ttl_ms));
    let state = match (record.state, by_operator(holder)) {
        (State::Held { .. }, _) if over => format!("was held by {holder}, and has run out"),
        (State::Held { ask: Some(ask) }, _) => {
            format!("held by {holder}, asked to hand over to {}", ask.to)
        }
        (State::Held { ask: None }, _) => format!("held by {holder}"),
        (State::Offered { to: Some(to), .. }, _) if over => {
            format!("free, offered by {holder} to {to}, who did not take it")
        }
        (State::Offered { to: Some(to), .. }, _) => format!("offered to {to} by {holder}"),
        (State::Offered { to: None, note }, by) => {
            let by = by.unwrap_or(holder);
            let left_ms = grace_ms.saturating_sub(age_ms.unwrap_or(0));
            let free =
                if over { "free".to_owned() } else { format!("free in {}", seconds(left_ms)) };
            format!("{free}, ended by force by {by}: {note}")
        }
        (State::Released { note }, Some(by)) if note != Note::EMPTY => {
            format!("free, ended by force by {by}: {note}")
        }
        (State::Released { .. }, Some(by)) => format!("free, put back by {by}"),
        (State::Released { .. }, None) => format!("free, last held by {holder}"),
    };
    let span = match record.state {
        State::Offered { .. } => "grace",
        _ => "ttl",
    };
    format!("{state}, term {}, {span} {} ms{age}", record.token.term, record.ttl_ms)
}

/// Whether nobody need wait for who is named any more. Without an age nobody knows.
fn has_run_out(record: &LeaseRecord<'_>, age_ns: Option<u64>) -> bool {
    let waited_for = !matches!(record.state, State::Released { .. });
    waited_for
        && (writer_is_dead(age_ns) || age_ms(age_ns).is_some_and(|ms| ms > record.ttl_ms.into()))
}

/// Who wrote the record, where that was an operator.
fn by_operator(holder: &str) -> Option<&str> {
    holder.strip_prefix("forced:").or_else(|| holder.strip_prefix("init:"))
}

fn seconds(span_ms: u64) -> String {
    format!("{}.{:03} s", span_ms / 1000, span_ms % 1000)
}

fn offered_to<'a>(record: &LeaseRecord<'a>) -> &'a str {
    match record.state {
        State::Offered { to: Some(to), .. } => to.as_str(),
        _ => "",
    }
}

fn asked_to<'a>(record: &LeaseRecord<'a>) -> &'a str {
    match record.state {
        State::Held { ask: Some(ask) } => ask.to.as_str(),
        _ => "",
    }
}

fn age_ms(age_ns: Option<u64>) -> Option<u64> {
    age_ns.filter(|_| !writer_is_dead(age_ns)).map(|age_ns| age_ns / MILLISECOND_NS)
}

fn writer_is_dead(age_ns: Option<u64>) -> bool {
    age_ns == Some(u64::MAX)
}

/// A store answers through the runtime of whoever asks.
pub(crate) fn block_on<T>(answer: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(exit::UNREACHABLE, error))?;
    Ok(runtime.block_on(answer))
}
