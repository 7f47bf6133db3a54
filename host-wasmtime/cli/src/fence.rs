//! `leasehold fence`: what people do with the guard of a resource.

use std::process::ExitCode;

use leasehold_core::fence::SealVerdict;
use leasehold_core::guard;
use leasehold_core::token::Token;
use leasehold_host::fence::{FenceError, Resource};
use serde_json::json;

use crate::exit::{self, Failure, print};
use crate::options::{self, Fence};

pub(crate) fn fence(command: &Fence) -> Result<ExitCode, Failure> {
    match command {
        Fence::Sql => print(guard::SQLITE.trim_end())?,
        Fence::Init { resource: named, json } => init(&resource(named)?, *json)?,
        Fence::Seal { resource: named, token, json } => {
            return seal(&resource(named)?, token, *json);
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
    let token: Token = token.parse().map_err(Failure::configuration)?;
    let verdict = resource.seal(token, false).map_err(failure)?;
    let sealed = matches!(verdict, SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. });
    if json {
        print(json!({
            "resource": resource.to_string(),
            "token": token.to_string(),
            "verdict": verdict.name(),
            "floor": floor(verdict).map(|floor| floor.to_string()),
        }))?;
    } else if sealed {
        print(format!("{resource}: {}", verdict.name()))?;
    }
    if sealed {
        return Ok(ExitCode::SUCCESS);
    }
    let code = match verdict {
        SealVerdict::NoResource => exit::CONFIGURATION,
        _ => exit::REFUSED,
    };
    Err(Failure::new(code, refusal(resource, verdict)))
}

/// The floor that a refusal names.
fn floor(verdict: SealVerdict) -> Option<u64> {
    match verdict {
        SealVerdict::Fenced { floor }
        | SealVerdict::Collision { floor }
        | SealVerdict::Gone { floor } => Some(floor),
        _ => None,
    }
}

/// A refusal in words that say what to do.
pub(crate) fn refusal(resource: &Resource, verdict: SealVerdict) -> String {
    let name = verdict.name();
    let what = match verdict {
        SealVerdict::NoResource => {
            "there is no such resource: create it with `leasehold fence init`".to_owned()
        }
        SealVerdict::Gone { .. } => {
            "the resource was retired: it takes no writes any more".to_owned()
        }
        SealVerdict::ForeignLineage => {
            "the resource obeys another lease: check the store and the lease's name".to_owned()
        }
        SealVerdict::Fenced { floor } => format!("a later holder has sealed it, with term {floor}"),
        SealVerdict::Collision { floor } => {
            format!(
                "another holder has sealed it with the same term {floor}: the lease store was rolled back"
            )
        }
        SealVerdict::Implausible => {
            "the term is implausibly far above the resource's floor: check the token".to_owned()
        }
        SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. } => "sealed".to_owned(),
    };
    format!("{resource}: {name}: {what}")
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
