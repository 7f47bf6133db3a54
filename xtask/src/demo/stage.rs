//! What the scenes are played with: the two databases, contenders, and waits for what they do.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::Pid;

use super::history::History;
use super::ledger::{Job, Ledger, invoice, is_free};
use super::log::Log;
use super::processes::{Nursery, PATIENCE, Process, Tree, until};
use crate::Outcome;
use crate::workspace::{Workspace, output};

const LEASE: &str = "settlement";
const RESOURCE: &str = "payments";
pub(crate) const TTL: &str = "3s";
const GRACE: &str = "500ms";
/// More than twice what is paid while things go wrong; the last holder pays what is left.
pub(crate) const INVOICES: u32 = 200;
/// How many payments a holder makes before something happens to it.
const UNDISTURBED: i64 = 4;

pub(crate) struct Stage {
    folder: PathBuf,
    pub(crate) ledger: Ledger,
    leasehold: PathBuf,
    settle: PathBuf,
    code_cache: PathBuf,
    pub(crate) log: Log,
    /// Dropped last: no process outlives the demo, however it ends.
    _nursery: Nursery,
}

/// A contender that leads, and its command.
pub(crate) struct Leader {
    pub(crate) run: Process,
    pub(crate) job: Job,
}

impl Stage {
    pub(crate) fn set(workspace: &Workspace) -> Outcome<Self> {
        let nursery = Nursery::open()?;
        let folder = env::temp_dir().join(format!("leasehold-demo-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let leasehold = workspace.leasehold();
        let fence_sql = output(Command::new(&leasehold).args(["fence", "sql"]))?;
        let payments = folder.join("payments.db");
        let ledger = Ledger::create(&payments, INVOICES, &fence_sql)?;
        let mut init = Command::new(&leasehold);
        output(init.args(["fence", "init"]).arg(sqlite(&payments)).arg(RESOURCE))?;
        Ok(Self {
            folder,
            ledger,
            leasehold,
            settle: workspace.target.join("debug/examples/settle"),
            code_cache: workspace.code_cache(),
            log: Log::begin(),
            _nursery: nursery,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn contend(&self, holder: &str) -> Outcome<Process> {
        let mut resource = sqlite(&self.payments_db());
        resource.push(format!("#{RESOURCE}"));
        let mut run = Command::new(&self.leasehold);
        run.args(["run", LEASE, "--ttl", TTL, "--grace", GRACE, "--holder", holder, "--store"])
            .arg(sqlite(&self.leases_db()))
            .arg("--seal")
            .arg(resource)
            .arg("--")
            .arg(&self.settle)
            .arg(self.payments_db())
            .env("LEASEHOLD_CACHE", &self.code_cache);
        Process::start(holder, &mut run, self.log)
    }

    /// An operator asks the holder to hand the lease over, and waits until that has happened.
    pub(crate) fn ask_for_handoff(&self, to: &str) -> Outcome {
        let mut handoff = Command::new(&self.leasehold);
        handoff
            .args(["handoff", LEASE, "--to", to, "--wait", TTL, "--store"])
            .arg(sqlite(&self.leases_db()))
            .env("LEASEHOLD_CACHE", &self.code_cache);
        let status = Process::start("operator", &mut handoff, self.log)?.end(PATIENCE)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the operator's hand-off: {status}").into())
        }
    }

    /// A payment with the sender's token that left it, and has not arrived.
    pub(crate) fn payment_on_its_way(&self, sender: &Job) -> Outcome<Process> {
        let mut payment = Command::new(&self.settle);
        payment
            .arg(self.payments_db())
            .args(["--one", &invoice(INVOICES)])
            .env("LEASEHOLD_TOKEN", &sender.token)
            .env("LEASEHOLD_HOLDER", &sender.holder);
        let name = format!("{}, on its way", sender.holder);
        let mut payment = Process::start(&name, &mut payment, self.log)?;
        payment.says("on its way")?;
        Ok(payment)
    }

    /// Waits until the command of this contender runs, under a larger term than `term`.
    pub(crate) fn leads_after(&self, term: i64, mut run: Process) -> Outcome<Leader> {
        let job = until("the next holder", PATIENCE, || {
            run.is_alive()?;
            self.ledger.job_after(term)
        })?;
        self.say(&format!("{} leads with term {}", job.holder, job.term));
        Ok(Leader { run, job })
    }

    /// Waits until the leader has made some payments.
    pub(crate) fn payments_by(&self, leader: &mut Leader) -> Outcome {
        let term = leader.job.term;
        let enough = self.ledger.payments_of(term)? + UNDISTURBED;
        until("payments", PATIENCE, || {
            leader.run.is_alive()?;
            Ok((self.ledger.payments_of(term)? >= enough).then_some(()))
        })
    }

    /// Waits until the fence has refused a payment of this job.
    pub(crate) fn refusal_of(&self, job: &Job) -> Outcome {
        until("the fence to refuse a late payment", PATIENCE, || {
            Ok(self.ledger.refusal_of(job.term)?.map(drop))
        })
    }

    /// Stops the front of a leader, and nothing else.
    pub(crate) fn freeze_front(&self, leader: &mut Leader) -> Outcome<Tree> {
        self.freeze(leader, |leader| Ok(Tree::only(leader.run.pid())))
    }

    /// Stops all of a leader: front, keeper and command.
    pub(crate) fn freeze_all(&self, leader: &mut Leader) -> Outcome<Tree> {
        self.freeze(leader, |leader| {
            let tree = Tree::of(leader.run.pid());
            if tree.len() < 3 || !tree.contains(pid(&leader.job)?) {
                return Err("expected front, keeper and command, one below the other".into());
            }
            Ok(tree)
        })
    }

    /// Between two transactions: whoever stopped inside one would keep all others from writing, and
    /// nothing would be late.
    fn freeze(
        &self,
        leader: &mut Leader,
        processes: impl Fn(&Leader) -> Outcome<Tree>,
    ) -> Outcome<Tree> {
        until("a moment between two transactions", PATIENCE, || {
            leader.run.is_alive()?;
            let tree = processes(leader)?;
            tree.freeze()?;
            if is_free(&self.payments_db())? && is_free(&self.leases_db())? {
                return Ok(Some(tree));
            }
            tree.wake()?;
            Ok(None)
        })
    }

    /// From here on every version of the lease's record is kept, for the report.
    pub(crate) fn keep_history(&self) -> Outcome {
        History::keep(&self.store()?)
    }

    /// Every version of the record so far, also those that went with a store that was replaced.
    pub(crate) fn history(&self) -> Outcome<History> {
        let lost = self.lost_db();
        let mut history =
            if lost.exists() { History::read(&connect(&lost)?)? } else { History::default() };
        history.go_on(History::read(&self.store()?)?);
        Ok(history)
    }

    /// Nobody else can write to the lease's store until this connection is dropped.
    pub(crate) fn lock_store(&self) -> Outcome<Connection> {
        let lock = self.store()?;
        lock.execute_batch("BEGIN IMMEDIATE")?;
        Ok(lock)
    }

    pub(crate) fn back_up_store(&self) -> Outcome {
        let backup = self.backup_db();
        let path = backup.to_str().ok_or("the temporary folder's name is not UTF-8")?;
        self.store()?.execute("VACUUM INTO ?", [path])?;
        Ok(())
    }

    /// Puts the backup in the store's place; SQLite's log belongs to the store that goes.
    pub(crate) fn restore_store(&self) -> Outcome {
        for file in ["-wal", "-shm", ""] {
            fs::rename(beside(&self.leases_db(), file), beside(&self.lost_db(), file))?;
        }
        Ok(fs::rename(self.backup_db(), self.leases_db())?)
    }

    fn store(&self) -> Outcome<Connection> {
        connect(&self.leases_db())
    }

    fn leases_db(&self) -> PathBuf {
        self.folder.join("leases.db")
    }

    fn backup_db(&self) -> PathBuf {
        self.folder.join("leases-backup.db")
    }

    /// What the backup took the place of.
    fn lost_db(&self) -> PathBuf {
        self.folder.join("leases-lost.db")
    }

    fn payments_db(&self) -> PathBuf {
        self.folder.join("payments.db")
    }

    pub(crate) fn say(&self, what: &str) {
        self.log.say(what);
    }
}

pub(crate) fn pid(job: &Job) -> Outcome<Pid> {
    Ok(Pid::from_raw(job.pid).ok_or("a job without a process")?)
}

fn connect(database: &Path) -> Outcome<Connection> {
    let connection = Connection::open(database)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn sqlite(path: &Path) -> OsString {
    let mut url = OsString::from("sqlite:");
    url.push(path);
    url
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
