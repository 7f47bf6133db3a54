//! What happened, from the databases; and whether it may have happened.

use std::collections::BTreeSet;
use std::fmt;

use super::history::Repeat;
use super::ledger::{Job, Payment, Refusal};
use super::log::Log;
use super::stage::Stage;
use super::story::Story;
use crate::Outcome;

pub(crate) struct Report {
    log: Log,
    holders: Vec<Holder>,
    refusals: Vec<Refusal>,
    takeovers: usize,
    takeover_ms: Vec<i64>,
    handoffs: usize,
    outages_survived: usize,
    starts_in_outages: usize,
    restores_healed: usize,
    stale_writes_accepted: usize,
    duplicate_payments: usize,
    missing_payments: i64,
    overlaps: usize,
}

/// A holder acts from the start of its command to its last payment that was accepted.
struct Holder {
    job: Job,
    /// What ended the holder before.
    cause: &'static str,
    payments: usize,
    last_ns: i64,
}

impl Report {
    pub(crate) fn read(stage: &Stage, story: &Story) -> Outcome<Self> {
        let history = stage.history()?;
        let payments = stage.ledger.payments()?;
        let jobs = stage.ledger.jobs()?;
        let handed_over = history.handed_over();
        let handoffs = jobs.iter().filter(|job| handed_over.contains(&job.term)).count();
        let takeover_ms = jobs
            .iter()
            .filter_map(|job| Some((job.started_ns - story.takeover(job)?.since_ns) / 1_000_000));
        let healed = |repeat: &Repeat<'_>| {
            jobs.iter().all(|job| job.token != repeat.token)
                && jobs.iter().any(|job| job.term > repeat.highest_term)
        };
        let in_outage =
            |job: &&Job| story.outages.iter().any(|outage| outage.covers(job.started_ns));
        let cause = |job: &Job| match story.takeover(job) {
            Some(takeover) => takeover.cause,
            None if handed_over.contains(&job.term) => "handed over",
            None => "",
        };
        let paid: BTreeSet<&str> =
            payments.iter().map(|payment| payment.invoice.as_str()).collect();
        let next_term = |pair: &[Job]| matches!(pair, [one, next] if one.term < next.term);
        let takeovers = jobs.windows(2).filter(|pair| next_term(pair)).count() - handoffs;
        let takeover_ms = takeover_ms.collect();
        let starts_in_outages = jobs.iter().filter(in_outage).count();
        let restores_healed = history.repeats().into_iter().filter(healed).count();
        let holders: Vec<Holder> =
            jobs.into_iter().map(|job| Holder::new(cause(&job), job, &payments)).collect();
        let overlap =
            |pair: &[Holder]| matches!(pair, [one, next] if one.last_ns >= next.job.started_ns);
        Ok(Self {
            log: stage.log,
            takeovers,
            takeover_ms,
            handoffs,
            outages_survived: story.outages.iter().filter(|it| history.survived(it.to_ns)).count(),
            starts_in_outages,
            restores_healed,
            stale_writes_accepted: stale(&payments),
            duplicate_payments: payments.len() - paid.len(),
            missing_payments: stage.ledger.missing_payments()?,
            overlaps: holders.windows(2).filter(|pair| overlap(pair)).count() + story.outlived,
            refusals: stage.ledger.refusals()?,
            holders,
        })
    }

    /// An error if a payment is missing, doubled or stale, if two holders overlap, or if a scene
    /// did not show what it is there for.
    pub(crate) fn verdict(&self) -> Outcome {
        let wrong = [
            ("payments are missing", self.missing_payments != 0),
            ("payments were made twice", self.duplicate_payments != 0),
            ("stale payments were accepted", self.stale_writes_accepted != 0),
            ("two holders overlap", self.overlaps != 0),
            ("there were not five takeovers", self.takeovers != 5 || self.takeover_ms.len() != 5),
            ("there was not one hand-off", self.handoffs != 1),
            ("not three stale payments were refused", self.stale_writes_refused() != 3),
            ("not one of the outages was survived", self.outages_survived != 1),
            ("a command started without the store", self.starts_in_outages != 0),
            ("the restore did not heal", self.restores_healed != 1),
        ];
        let wrong: Vec<&str> =
            wrong.into_iter().filter(|(_, is_wrong)| *is_wrong).map(|(what, _)| what).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
    }

    /// One line.
    pub(crate) fn json(&self) -> String {
        serde_json::json!({
            "takeovers": self.takeovers,
            "takeover_ms": self.takeover_ms,
            "handoffs": self.handoffs,
            "outages_survived": self.outages_survived,
            "starts_in_outages": self.starts_in_outages,
            "restores_healed": self.restores_healed,
            "stale_writes_refused": self.stale_writes_refused(),
            "stale_writes_accepted": self.stale_writes_accepted,
            "duplicate_payments": self.duplicate_payments,
            "missing_payments": self.missing_payments,
            "overlaps": self.overlaps,
        })
        .to_string()
    }

    fn stale_writes_refused(&self) -> usize {
        self.refusals.iter().filter(|refusal| refusal.verdict == "Fenced").count()
    }
}

impl Holder {
    fn new(cause: &'static str, job: Job, payments: &[Payment]) -> Self {
        let own = payments.iter().filter(|payment| payment.term == job.term);
        Self {
            payments: own.clone().count(),
            last_ns: own.map(|payment| payment.paid_ns).max().unwrap_or(job.started_ns),
            job,
            cause,
        }
    }
}

/// How many payments were accepted after one of a larger term.
fn stale(payments: &[Payment]) -> usize {
    let mut floor = 0;
    let mut stale = 0;
    for payment in payments {
        stale += usize::from(payment.term < floor);
        floor = floor.max(payment.term);
    }
    stale
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "term  holder  leads from  last payment  payments  what ended the one before")?;
        for Holder { job: Job { term, holder, started_ns, .. }, cause, payments, last_ns } in
            &self.holders
        {
            let (from, to) = (self.log.time(*started_ns), self.log.time(*last_ns));
            let line =
                format!("{term:>4}  {holder:<6}  {from:>10}  {to:>12}  {payments:>8}  {cause}");
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "\nrefused at  term  holder  payment      verdict")?;
        for Refusal { invoice, term, holder, verdict, at_ns } in &self.refusals {
            let at = self.log.time(*at_ns);
            writeln!(f, "{at:>10}  {term:>4}  {holder:<6}  {invoice:<11}  {verdict}")?;
        }
        let paid: usize = self.holders.iter().map(|holder| holder.payments).sum();
        let facts = [
            ("payments made twice", self.duplicate_payments),
            ("payments accepted too late", self.stale_writes_accepted),
            ("overlaps of two holders", self.overlaps),
            ("hand-offs, without waiting for a lease to run out", self.handoffs),
            ("outages of the store that a holder survived", self.outages_survived),
            ("commands that started in an outage", self.starts_in_outages),
            (
                "restores healed: a used term given out, and no command under it",
                self.restores_healed,
            ),
        ];
        writeln!(f, "\n{paid:>4}  payments\n{:>4}  payments missing", self.missing_payments)?;
        for (what, count) in facts {
            writeln!(f, "{count:>4}  {what}")?;
        }
        writeln!(f, "{:>4}  takeovers", self.takeovers)?;
        writeln!(f, "      {:?} ms from the holder's failure, or", self.takeover_ms)?;
        writeln!(f, "      from the end of the store's, to the start of the next command")
    }
}
