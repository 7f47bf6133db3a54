//! `leasehold status`: the record as it stands, for people and scripts.

use std::process::ExitCode;

use leasehold_core::label::Name;
use leasehold_core::record::{self, LeaseRecord, State};
use leasehold_core::time::MILLISECOND_NS;
use leasehold_host::store::Read;
use serde_json::json;

use crate::exit::{self, Failure, print};
use crate::options::Status;
use crate::places::{self, Place};

pub(crate) fn status(options: &Status) -> Result<ExitCode, Failure> {
    Name::chosen(&options.name).map_err(Failure::configuration)?;
    let url = places::url(options.store.named())?;
    if !places::exists(options.store.named())? {
        return absent(options, &url, false);
    }
    let place = places::open(options.store.named())?;
    match block_on(place.store.read(&format!("lease/{}", options.name)))? {
        Read::Absent => absent(options, &url, true),
        Read::Entry { value, age_ns, .. } => {
            let record = record::decode_named(&options.name, &value).map_err(|fault| {
                Failure::configuration(format!("lease/{} in {}: {fault}", options.name, place.url))
            })?;
            show(&record, age_ns, &place, options.json)?;
            Ok(ExitCode::SUCCESS)
        }
        Read::Unavailable(why) | Read::Unknown(why) => Err(Failure::new(exit::UNREACHABLE, why)),
        Read::Gone(why) => Err(Failure::configuration(why)),
    }
}

fn absent(options: &Status, store: &str, exists: bool) -> Result<ExitCode, Failure> {
    let name = &options.name;
    if options.json {
        let state = "absent";
        print(json!({"name": name, "store": store, "store_exists": exists, "state": state}))?;
    } else {
        let yet = if exists { "" } else { ", which does not exist yet" };
        print(format!("{name}: never held\nstore {store}{yet}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(
    record: &LeaseRecord<'_>,
    age_ns: Option<u64>,
    place: &Place,
    json: bool,
) -> Result<(), Failure> {
    let age_ms = age_ns.filter(|age_ns| *age_ns < u64::MAX).map(|age_ns| age_ns / MILLISECOND_NS);
    let writer_is_dead = age_ns == Some(u64::MAX);
    let (to, note) = match record.state {
        State::Held { .. } => ("", ""),
        State::Offered { to, note } => (to.map_or("", |to| to.as_str()), note.as_str()),
        State::Released { note } => ("", note.as_str()),
    };
    if json {
        return print(json!({
            "name": record.name.as_str(),
            "store": place.url,
            "state": record.state.kind().as_str(),
            "holder": record.holder.as_str(),
            "instance": record.instance.to_string(),
            "term": record.token.term.to_string(),
            "token": record.token.to_string(),
            "ttl_ms": record.ttl_ms,
            "age_ms": age_ms,
            "holder_rebooted": writer_is_dead,
            "to": to,
            "note": note,
        }));
    }
    let age = match age_ms {
        _ if writer_is_dead => ", its machine has rebooted since".to_owned(),
        Some(age_ms) => {
            let what = match record.state {
                State::Held { .. } => "renewed",
                State::Offered { .. } | State::Released { .. } => "given up",
            };
            format!(", {what} {}.{:03} s ago", age_ms / 1000, age_ms % 1000)
        }
        None => String::new(),
    };
    let state = match record.state {
        State::Held { .. } if age_ms.is_some_and(|age_ms| age_ms > u64::from(record.ttl_ms)) => {
            format!("was held by {}, and has run out", record.holder)
        }
        State::Held { .. } => format!("held by {}", record.holder),
        State::Offered { .. } => {
            format!("offered to {} by {}", if to.is_empty() { "nobody" } else { to }, record.holder)
        }
        State::Released { .. } => format!("free, last held by {}", record.holder),
    };
    let token = record.token;
    print(format!("{}: {state}, term {}, ttl {} ms{age}", record.name, token.term, record.ttl_ms))?;
    print(format!("token {token}\nstore {}", place.url))
}

/// A store answers through the runtime of whoever asks.
fn block_on<T>(answer: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(exit::UNREACHABLE, error))?;
    Ok(runtime.block_on(answer))
}
