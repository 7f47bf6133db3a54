//! Pays every open invoice of a ledger, under a lease. The demo runs it as
//! `leasehold run settlement … -- settle payments.db`; each payment is one transaction with its
//! fence, so a payment that comes too late is refused, and a repeated one is not paid again.
//!
//! `settle payments.db --one INVOICE` pays one invoice when a line arrives on stdin: a payment
//! that is already on its way, and may arrive when its sender is long dead.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use leasehold_core::guard::MESSAGE_PREFIX;
use leasehold_core::token::Token;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use rustix::time::{ClockId, clock_gettime};

/// What it takes to get a payment ready, between the decision to pay and the write.
const PREPARE: Duration = Duration::from_millis(100);
/// It says how far it is after so many payments.
const SAY_EVERY: usize = 10;
/// How long a transaction of somebody else may keep this one waiting.
const BUSY: Duration = Duration::from_secs(5);

const USAGE: &str = "usage: settle LEDGER [--one INVOICE], under `leasehold run`";

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match settle() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("settle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn settle() -> Outcome<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (path, one) = match arguments.as_slice() {
        [path] => (path, None),
        [path, "--one", invoice] => (path, Some(invoice)),
        _ => return Err(USAGE.into()),
    };
    let mut ledger = Ledger::open(path)?;
    if let Some(invoice) = one {
        println!("on its way: {invoice}");
        std::io::stdin().read_line(&mut String::new())?;
        return Ok(if ledger.pay(invoice)? == Payment::Refused {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        });
    }
    ledger.begin()?;
    let mut paid = 0;
    for invoice in ledger.invoices()? {
        if ledger.is_paid(&invoice)? {
            continue;
        }
        sleep(PREPARE);
        match ledger.pay(&invoice)? {
            Payment::Paid => paid += 1,
            Payment::AlreadyPaid => continue,
            Payment::Refused => return Ok(ExitCode::FAILURE),
        }
        if paid % SAY_EVERY == 0 {
            println!("term {}: {paid} payments, now {invoice}", ledger.token.term);
        }
    }
    println!("every invoice is paid");
    Ok(ExitCode::SUCCESS)
}

#[derive(PartialEq, Eq)]
enum Payment {
    Paid,
    AlreadyPaid,
    Refused,
}

struct Ledger {
    connection: Connection,
    token: Token,
    holder: String,
}

impl Ledger {
    fn open(path: &str) -> Outcome<Self> {
        let variable =
            |name: &str| env::var(name).map_err(|_| format!("{name} is not set; {USAGE}"));
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        Ok(Self {
            connection,
            token: variable("LEASEHOLD_TOKEN")?.parse()?,
            holder: variable("LEASEHOLD_HOLDER")?,
        })
    }

    /// Tells the demo who works now; no payment depends on it.
    fn begin(&self) -> Outcome {
        self.connection.execute(
            "INSERT INTO job (term, holder, token, pid, started_ns) VALUES (?, ?, ?, ?, ?)",
            params![
                self.term(),
                self.holder,
                self.token.to_string(),
                std::process::id(),
                boottime_ns()
            ],
        )?;
        println!("begins to pay under term {}", self.token.term);
        Ok(())
    }

    fn invoices(&self) -> Outcome<Vec<String>> {
        let mut select = self.connection.prepare("SELECT id FROM invoice ORDER BY rowid")?;
        let invoices = select.query_map([], |row| row.get(0))?;
        Ok(invoices.collect::<Result<_, _>>()?)
    }

    /// Spares the work of getting a payment ready. It protects nothing: only the fence does.
    fn is_paid(&self, invoice: &str) -> Outcome<bool> {
        let paid = "SELECT 1 FROM payment WHERE invoice = ?";
        Ok(self.connection.query_row(paid, [invoice], |_| Ok(())).optional()?.is_some())
    }

    /// The fence first, then the payment, in one transaction.
    fn pay(&mut self, invoice: &str) -> Outcome<Payment> {
        let (term, token) = (self.term(), self.token.to_string());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let admitted = transaction.execute(
            "INSERT INTO leasehold_admit VALUES ('payments', ?, ?, '')",
            params![token, invoice],
        );
        if let Err(error) = admitted {
            transaction.rollback()?;
            return self.not_admitted(invoice, error);
        }
        transaction.execute(
            "INSERT INTO payment (invoice, term, holder, paid_ns) VALUES (?, ?, ?, ?)",
            params![invoice, term, self.holder, boottime_ns()],
        )?;
        transaction.commit()?;
        Ok(Payment::Paid)
    }

    fn not_admitted(&self, invoice: &str, error: rusqlite::Error) -> Outcome<Payment> {
        let rusqlite::Error::SqliteFailure(_, Some(verdict)) = &error else {
            return Err(error.into());
        };
        match verdict.strip_prefix(MESSAGE_PREFIX) {
            Some("AlreadyApplied") => Ok(Payment::AlreadyPaid),
            Some(verdict) => {
                self.connection.execute(
                    "INSERT INTO refusal (invoice, term, holder, verdict, at_ns)
                     VALUES (?, ?, ?, ?, ?)",
                    params![invoice, self.term(), self.holder, verdict, boottime_ns()],
                )?;
                println!("term {} may not pay {invoice}: {verdict}", self.token.term);
                Ok(Payment::Refused)
            }
            None => Err(error.into()),
        }
    }

    fn term(&self) -> i64 {
        self.token.term.get().cast_signed()
    }
}

fn boottime_ns() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
