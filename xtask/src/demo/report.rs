//! What happened, from the databases; and whether it may have happened.

use std::collections::BTreeSet;
use std::fmt;

use super::ledger::{Job, Ledger, Payment, Refusal};
use crate::Outcome;

/// A failure that made another contender the holder.
pub(crate) struct Takeover {
    /// The term of the new holder.
    pub(crate) term: i64,
    /// When the old holder failed.
    pub(crate) failed_at_ns: i64,
    /// Whether the old holder's command, which was to be ended, still ran under the new one.
    pub(crate) outlived: bool,
}

pub(crate) struct Report {
    holders: Vec<Holder>,
    refusals: Vec<Refusal>,
    takeovers: usize,
    takeover_ms: Vec<i64>,
    stale_writes_accepted: usize,
    duplicate_payments: usize,
    missing_payments: i64,
    overlaps: usize,
}

/// A holder acts from the start of its command to its last payment that was accepted.
struct Holder {
    job: Job,
    payments: usize,
    last_ns: i64,
}

impl Report {
    pub(crate) fn read(ledger: &Ledger, takeovers: Vec<Takeover>) -> Outcome<Self> {
        let payments = ledger.payments()?;
        let holders: Vec<Holder> =
            ledger.jobs()?.into_iter().map(|job| Holder::new(job, &payments)).collect();
        let takeover_ms = holders.iter().filter_map(|holder| {
            let cause = takeovers.iter().find(|takeover| takeover.term == holder.job.term)?;
            Some((holder.job.started_ns - cause.failed_at_ns) / 1_000_000)
        });
        let in_turn =
            |pair: &[Holder]| matches!(pair, [one, next] if one.last_ns < next.job.started_ns);
        let outlived = takeovers.iter().filter(|takeover| takeover.outlived).count();
        let paid: BTreeSet<&str> =
            payments.iter().map(|payment| payment.invoice.as_str()).collect();
        Ok(Self {
            takeovers: holders
                .windows(2)
                .filter(|pair| pair[0].job.term < pair[1].job.term)
                .count(),
            takeover_ms: takeover_ms.collect(),
            stale_writes_accepted: stale(&payments),
            duplicate_payments: payments.len() - paid.len(),
            missing_payments: ledger.missing_payments()?,
            overlaps: holders.windows(2).filter(|pair| !in_turn(pair)).count() + outlived,
            refusals: ledger.refusals()?,
            holders,
        })
    }

    /// An error if a payment is missing, doubled or stale, or two holders overlap.
    pub(crate) fn verdict(&self) -> Outcome {
        let wrong = [
            ("payments are missing", self.missing_payments != 0),
            ("payments were made twice", self.duplicate_payments != 0),
            ("stale payments were accepted", self.stale_writes_accepted != 0),
            ("two holders overlap", self.overlaps != 0),
            ("there were not two takeovers", self.takeovers != 2),
            ("no two stale payments were refused", self.stale_writes_refused() < 2),
        ];
        let wrong: Vec<&str> =
            wrong.into_iter().filter(|(_, is_wrong)| *is_wrong).map(|(what, _)| what).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
    }

    /// One line.
    pub(crate) fn json(&self) -> String {
        format!(
            "{{\"takeovers\":{},\"stale_writes_refused\":{},\"stale_writes_accepted\":{},\
             \"duplicate_payments\":{},\"missing_payments\":{},\"overlaps\":{},\
             \"takeover_ms\":{:?}}}",
            self.takeovers,
            self.stale_writes_refused(),
            self.stale_writes_accepted,
            self.duplicate_payments,
            self.missing_payments,
            self.overlaps,
            self.takeover_ms,
        )
        .replace(", ", ",")
    }

    fn stale_writes_refused(&self) -> usize {
        self.refusals.iter().filter(|refusal| refusal.verdict == "Fenced").count()
    }

    /// Times are shown from the start of the first holder.
    fn since_start(&self, ns: i64) -> String {
        seconds(ns - self.holders.first().map_or(ns, |holder| holder.job.started_ns))
    }
}

impl Holder {
    fn new(job: Job, payments: &[Payment]) -> Self {
        let own = payments.iter().filter(|payment| payment.term == job.term);
        Self {
            payments: own.clone().count(),
            last_ns: own.map(|payment| payment.paid_ns).max().unwrap_or(job.started_ns),
            job,
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
        writeln!(f, "term  holder  leads from  last payment  payments")?;
        for Holder { job, payments, last_ns } in &self.holders {
            let (from, to) = (self.since_start(job.started_ns), self.since_start(*last_ns));
            writeln!(f, "{:>4}  {:<6}  {from:>10}  {to:>12}  {payments:>8}", job.term, job.holder)?;
        }
        writeln!(f, "\nrefused at  term  holder  payment     verdict")?;
        for Refusal { invoice, term, holder, verdict, at_ns } in &self.refusals {
            let at = self.since_start(*at_ns);
            writeln!(f, "{at:>10}  {term:>4}  {holder:<6}  {invoice:<10}  {verdict}")?;
        }
        let paid: usize = self.holders.iter().map(|holder| holder.payments).sum();
        writeln!(
            f,
            "\n{paid} payments; missing {}, made twice {}, stale {}, overlaps {}; takeovers after {:?} ms",
            self.missing_payments,
            self.duplicate_payments,
            self.stale_writes_accepted,
            self.overlaps,
            self.takeover_ms,
        )
    }
}

/// Nanoseconds for people.
pub(crate) fn seconds(ns: i64) -> String {
    format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
}
