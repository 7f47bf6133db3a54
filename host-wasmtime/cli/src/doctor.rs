//! `leasehold doctor`: a report on a store, for people who have to act on it.

use std::process::ExitCode;

use leasehold_host::store::{self, Finding, Found, OpenError, Outcome, Report, Verdict, probe};
use serde_json::json;

use crate::exit::{self, Failure, print, say};
use crate::options::Doctor;
use crate::places;
use crate::records::block_on;

pub(crate) fn doctor(options: &Doctor) -> Result<ExitCode, Failure> {
    let named = options.store.named();
    let url = places::url(named)?;
    let found = found(options, &url)?;
    if named.is_none() {
        places::create_folder(&url)?;
    }
    let open = || store::open(&url).map_err(failure);
    let (first, second) = (open()?, open()?);
    if found == Found::Other {
        say(format!("{url} {SOMETHING_ELSE}; a store's tables were added to it"));
    }
    let report = block_on(probe(&*first, &*second))?;
    if options.json {
        print(line(&report, &url))?;
    } else {
        print(text(&report, &url))?;
    }
    Ok(match report.verdict() {
        Verdict::Fit => ExitCode::SUCCESS,
        Verdict::Unfit => exit::REFUSED.into(),
        Verdict::Unreachable => exit::UNREACHABLE.into(),
    })
}

const SOMETHING_ELSE: &str = "is a SQLite database of something else";

/// What is to be probed, or to become a store.
fn found(options: &Doctor, url: &str) -> Result<Found, Failure> {
    // This user's own has no folder either before its first use.
    let found = match store::find(url) {
        Err(OpenError::Missing(_)) if options.store.named().is_none() => Found::Nothing,
        found => found.map_err(failure)?,
    };
    match found {
        Found::Nothing if !options.create => Err(Failure::configuration(format!(
            "there is no store in {url}, and none was created: look for a slip in its name; or \
             have one, by the first `leasehold run` or now by `leasehold doctor --create`"
        ))),
        Found::Other if !options.create => Err(Failure::configuration(format!(
            "{url} {SOMETHING_ELSE}, and was left as it is: look for a slip in its name; or have a \
             store's tables added to it, by the first `leasehold run` or now by `leasehold doctor \
             --create`"
        ))),
        _ => Ok(found),
    }
}

/// A store that cannot be opened for what is in it is not fit.
fn failure(error: OpenError) -> Failure {
    let code = match error {
        OpenError::Url(_) | OpenError::Missing(_) => exit::CONFIGURATION,
        OpenError::Refused(_) => exit::REFUSED,
        OpenError::Unreachable(_) => exit::UNREACHABLE,
    };
    Failure::new(code, error)
}

fn line(report: &Report, url: &str) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "name": finding.name,
            "outcome": finding.outcome.as_str(),
            "saw": finding.saw,
            "advice": finding.advice,
        })
    };
    json!({
        "store": url,
        "verdict": match report.verdict() {
            Verdict::Fit => "fit",
            Verdict::Unfit => "unfit",
            Verdict::Unreachable => "unreachable",
        },
        "ended": report.ended,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn text(report: &Report, url: &str) -> String {
    let mut lines = Vec::new();
    for Finding { name, outcome, saw, advice } in &report.findings {
        let mark = match outcome {
            Outcome::Holds => "ok",
            Outcome::Warning => "WARN",
            Outcome::Broken => "FAIL",
            Outcome::NotTried => "skip",
        };
        lines.push(format!("{mark:<5}{name}: {saw}"));
        if !advice.is_empty() {
            lines.push(format!("     {advice}"));
        }
    }
    lines.push(match (report.verdict(), &report.ended) {
        (Verdict::Unreachable, Some(why)) => format!("{url}: not probed to the end: {why}"),
        (Verdict::Unfit, _) => format!("{url}: NOT fit for leases"),
        _ => match warnings(report) {
            0 => format!("{url}: fit for leases"),
            1 => format!("{url}: fit for leases, with 1 warning"),
            many => format!("{url}: fit for leases, with {many} warnings"),
        },
    });
    lines.join("\n")
}

fn warnings(report: &Report) -> usize {
    report.findings.iter().filter(|finding| finding.outcome == Outcome::Warning).count()
}
