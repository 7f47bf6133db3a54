//! `leasehold doctor`: a report on a store, for people who have to act on it.

use std::process::ExitCode;

use leasehold_host::store::{Finding, Outcome, Report, Verdict, probe};
use serde_json::json;

use crate::exit::{self, Failure, print};
use crate::options::Doctor;
use crate::places;

pub(crate) fn doctor(options: &Doctor) -> Result<ExitCode, Failure> {
    let named = options.store.named();
    let url = places::url(named)?;
    if !options.create && !places::exists(named)? {
        return Err(Failure::configuration(format!(
            "there is no store in {url}, and none was created: look for a slip in its name; or \
             have one, by the first `leasehold run` or now by `leasehold doctor --create`"
        )));
    }
    let (first, second) = (places::open(named)?, places::open(named)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(exit::UNREACHABLE, error))?;
    let report = runtime.block_on(probe(&*first.store, &*second.store));
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
