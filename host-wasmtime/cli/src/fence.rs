//! `leasehold fence`: what people do with the guard of a resource.

mod answer;

use std::process::ExitCode;

use leasehold_core::fence::{AdoptVerdict, RecoverVerdict, SealVerdict};
use leasehold_core::guard;
use leasehold_core::token::Token;
use leasehold_host::fence::{FenceError, Resource};
use serde_json::json;

use crate::exit::{self, Failure, print};
use crate::options::{self, Fence};
use crate::records;
use answer::{Answer, Refused};

pub(crate) fn fence(command: &Fence) -> Result<ExitCode, Failure> {
    match command {
        Fence::Sql => print(guard::SQLITE.trim_end())?,
        Fence::Init { resource: named, json } => init(&resource(named)?, *json)?,
        Fence::Seal { resource: named, token, json } => {
            return seal(&resource(named)?, token, *json);
        }
        Fence::Recover { resource: named, name, leases, json } => {
            return recover(&resource(named)?, (name, leases.named()), *json);
        }
        Fence::Adopt { resource: named, token, json } => {
            return adopt(&resource(named)?, token, *json);
        }
        Fence::Retire { resource: named, token, json } => {
            return retire(&resource(named)?, token, *json);
        }
        Fence::Status { resource: named, json } => show(&resource(named)?, *json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn init(resource: &Resource, json: bool) -> Result<(), Failure> {
    let created = resource.init().map_err(failure)?;
    if json {
        print(json!({"resource": resource.to_string(), "created": created}))
    } else if created {
        print(format!("{resource} created"))
    } else {
        print(format!("{resource} was there already; nothing was changed"))
    }
}

fn seal(resource: &Resource, token: &str, json: bool) -> Result<ExitCode, Failure> {
    let token = parse(token)?;
    let verdict = resource.seal(token, false).map_err(failure)?;
    Answer {
        token,
        verdict: verdict.name(),
        refused: Refused::seal(verdict),
        words: String::new(),
        more: json!({}),
    }
    .report(resource, json)
}

fn recover(
    resource: &Resource,
    (lease, store): (&str, Option<&str>),
    json: bool,
) -> Result<ExitCode, Failure> {
    let record = records::current(store, lease)?;
    let verdict = resource.recover(record).map_err(failure)?;
    let words = match verdict {
        RecoverVerdict::Recovered { prev_floor, .. } => {
            format!(": the floor was {prev_floor}, and is the record's term {} now", record.term)
        }
        RecoverVerdict::Kept { floor } if floor > record.term.get() => format!(
            ": the floor {floor} stays; it is above the record's term {}, so see whether the \
             lease's store was restored from a copy, too",
            record.term
        ),
        RecoverVerdict::Kept { floor } => format!(": the floor {floor} is the record's term"),
        _ => String::new(),
    };
    Answer {
        token: record,
        verdict: verdict.name(),
        refused: Refused::recover(verdict),
        words,
        more: json!({"lease": lease}),
    }
    .report(resource, json)
}

fn adopt(resource: &Resource, token: &str, json: bool) -> Result<ExitCode, Failure> {
    let token = parse(token)?;
    let (verdict, before) = resource.adopt(token).map_err(failure)?;
    let words = match (verdict, before) {
        (AdoptVerdict::Adopted { .. }, Some(before)) if before.lineage != token.lineage => format!(
            ": it obeyed lineage {} (term {}), and obeys lineage {} (term {}) now",
            before.lineage, before.term, token.lineage, token.term
        ),
        (AdoptVerdict::Adopted { prev_floor, .. }, _) => {
            format!(": lineage {}, floor {} after {prev_floor}", token.lineage, token.term)
        }
        _ => String::new(),
    };
    Answer {
        token,
        verdict: verdict.name(),
        refused: Refused::adopt(verdict),
        words,
        more: json!({"before": before.map(|before| before.to_string())}),
    }
    .report(resource, json)
}

fn retire(resource: &Resource, token: &str, json: bool) -> Result<ExitCode, Failure> {
    let token = parse(token)?;
    let verdict = resource.retire(token).map_err(failure)?;
    Answer {
        token,
        verdict: verdict.name(),
        refused: Refused::retire(verdict),
        words: ": it takes no writes any more".to_owned(),
        more: json!({}),
    }
    .report(resource, json)
}

/// A seal's refusal in words that say what to do.
pub(crate) fn refusal(resource: &Resource, verdict: SealVerdict) -> String {
    let name = verdict.name();
    let why = Refused::seal(verdict).map(|refused| format!(": {refused}")).unwrap_or_default();
    format!("{resource}: {name}{why}")
}

fn parse(token: &str) -> Result<Token, Failure> {
    token.parse().map_err(|bad| Failure::configuration(format!("{token:?}: {bad}")))
}

fn show(resource: &Resource, json: bool) -> Result<(), Failure> {
    let state = resource.state().map_err(failure)?;
    let Some(state) = state else {
        return Err(Failure::configuration(refusal(resource, SealVerdict::NoResource)));
    };
    let token = state.token.map(|token| token.to_string());
    if json {
        return print(json!({
            "resource": resource.to_string(),
            "floor": state.floor.to_string(),
            "token": token,
            "seq": state.seq.to_string(),
            "retired": state.retired,
        }));
    }
    match token {
        Some(token) => print(format!(
            "{resource}: sealed by term {}, {} writes accepted\ntoken {token}",
            state.floor, state.seq
        ))?,
        None => print(format!("{resource}: never sealed; nothing can be written yet"))?,
    }
    if state.retired {
        print("retired: it takes no writes any more")?;
    }
    Ok(())
}

fn resource(named: &options::Resource) -> Result<Resource, Failure> {
    Resource::new(&named.store, &named.resource).map_err(failure)
}

fn failure(error: FenceError) -> Failure {
    let code = match error {
        FenceError::Misuse(_) => exit::CONFIGURATION,
        FenceError::Database(_) => exit::UNREACHABLE,
    };
    Failure::new(code, error)
}
