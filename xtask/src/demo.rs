//! Two contenders pay invoices under one lease. The first is frozen in the middle and woken too
//! late; the second is killed in the middle, with a payment still on its way. Both late payments
//! are refused, and in the end every invoice is paid once.
//!
//! What the report says is computed from the databases and from CLOCK_BOOTTIME.

mod ledger;
mod processes;
mod report;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use crate::Outcome;
use crate::component;
use crate::workspace::{Workspace, output};
use ledger::{Job, Ledger, invoice, is_free};
use processes::{Nursery, Process, Tree, is_running, until, wake};
use report::{Report, Takeover};

const LEASE: &str = "settlement";
const RESOURCE: &str = "payments";
const TTL: &str = "3s";
const GRACE: &str = "500ms";
const INVOICES: u32 = 40;
/// How many payments a holder makes before something happens to it.
const UNDISTURBED: i64 = 4;
/// The longest wait for anything; a takeover takes little more than the ttl.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) fn run(workspace: &Workspace, json: bool) -> Outcome {
    build(workspace)?;
    let scene = Scene::set(workspace)?;
    let outcome = scene.tell(json);
    match &outcome {
        Ok(()) => fs::remove_dir_all(&scene.folder)?,
        Err(_) => eprintln!("the databases are kept in {}", scene.folder.display()),
    }
    outcome
}

fn build(workspace: &Workspace) -> Outcome {
    if !workspace.leasehold().exists() {
        eprintln!("the first build takes six to ten minutes on two cores");
    }
    component::build(workspace)?;
    workspace.cargo(&["build", "--package", "leasehold", "--bins", "--examples"])
}

struct Scene {
    folder: PathBuf,
    ledger: Ledger,
    leasehold: PathBuf,
    settle: PathBuf,
    code_cache: PathBuf,
    started_ns: i64,
    /// Dropped last: no process outlives the demo, however it ends.
    _nursery: Nursery,
}

impl Scene {
    fn set(workspace: &Workspace) -> Outcome<Self> {
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
            started_ns: boottime_ns(),
            _nursery: nursery,
        })
    }

    /// Plays the story and reports it; a story that broke off is reported too, for people.
    fn tell(&self, json: bool) -> Outcome {
        let takeovers = match self.play() {
            Ok(takeovers) => takeovers,
            Err(error) => {
                eprintln!("\n{}", Report::read(&self.ledger, Vec::new())?);
                return Err(error);
            }
        };
        let report = Report::read(&self.ledger, takeovers)?;
        if json {
            println!("{}", report.json());
        } else {
            print!("\n{report}");
        }
        report.verdict()
    }

    /// The story, from one event to the next. Gives the failures that led to a takeover.
    fn play(&self) -> Outcome<Vec<Takeover>> {
        let mut a = self.contend("A")?;
        let first = self.next_holder(0, &mut [&mut a])?;
        let mut b = self.contend("B")?;
        self.payments(first.term, &mut a)?;

        let frozen = self.freeze_between_payments(&first, &mut a)?;
        let frozen_at_ns = boottime_ns();
        self.say("A is frozen: front, keeper and command, the next payment ready to be written");
        let second = self.next_holder(first.term, &mut [&mut b])?;
        self.say("B leads; now A's command wakes up, before anyone can tell it that it is late");
        wake(pid(&first)?)?;
        self.refusal(&first)?;
        self.say("A's late payment was refused; now the rest of A wakes up");
        frozen.wake()?;
        let status = a.end(PATIENCE)?;
        if !matches!(status.code(), Some(120..=122)) {
            return Err(format!("A lost its lease, but its `run` says: {status}").into());
        }
        self.say(&format!("A's `run`: {status}; A contends again"));

        let mut a = self.contend("A")?;
        self.payments(second.term, &mut b)?;
        let mut late = self.payment_on_its_way(&second)?;
        let killed_at_ns = boottime_ns();
        b.kill()?;
        self.say("B's front is killed, with a payment on its way; its keeper has to end the rest");
        let third = self.next_holder(second.term, &mut [&mut a])?;
        let outlived = is_running(pid(&second)?);
        self.say("A leads; now B's payment arrives");
        late.tell("deliver")?;
        if late.end(PATIENCE)?.success() {
            return Err("the payment of the killed holder was not refused".into());
        }
        self.refusal(&second)?;
        let status = a.end(PATIENCE)?;
        if !status.success() {
            return Err(format!("A paid the rest, but its `run` says: {status}").into());
        }
        Ok(vec![
            Takeover { term: second.term, failed_at_ns: frozen_at_ns, outlived: false },
            Takeover { term: third.term, failed_at_ns: killed_at_ns, outlived },
        ])
    }

    fn contend(&self, holder: &str) -> Outcome<Process> {
        let store = sqlite(&self.leases_db());
        let mut resource = sqlite(&self.payments_db());
        resource.push(format!("#{RESOURCE}"));
        let mut run = Command::new(&self.leasehold);
        run.args(["run", LEASE, "--ttl", TTL, "--grace", GRACE, "--holder", holder, "--store"])
            .arg(store)
            .arg("--seal")
            .arg(resource)
            .arg("--")
            .arg(&self.settle)
            .arg(self.payments_db())
            .env("LEASEHOLD_CACHE", &self.code_cache);
        Process::start(holder, &mut run)
    }

    /// A payment with the holder's token that left it, and has not arrived.
    fn payment_on_its_way(&self, sender: &Job) -> Outcome<Process> {
        let mut payment = Command::new(&self.settle);
        payment
            .arg(self.payments_db())
            .args(["--one", &invoice(INVOICES)])
            .env("LEASEHOLD_TOKEN", &sender.token)
            .env("LEASEHOLD_HOLDER", &sender.holder);
        Process::start(&format!("{}, on its way", sender.holder), &mut payment)
    }

    /// Waits until a command runs under a larger term than `term`.
    fn next_holder(&self, term: i64, alive: &mut [&mut Process]) -> Outcome<Job> {
        let job = until("the next holder", PATIENCE, || {
            alive.iter_mut().try_for_each(|process| process.is_alive())?;
            self.ledger.job_after(term)
        })?;
        self.say(&format!("{} leads with term {}", job.holder, job.term));
        Ok(job)
    }

    /// Waits until the holder of `term` has made some payments.
    fn payments(&self, term: i64, holder: &mut Process) -> Outcome {
        let enough = self.ledger.payments_of(term)? + UNDISTURBED;
        until("payments", PATIENCE, || {
            holder.is_alive()?;
            Ok((self.ledger.payments_of(term)? >= enough).then_some(()))
        })
    }

    /// Waits until the fence has refused a payment of this job.
    fn refusal(&self, job: &Job) -> Outcome {
        until("the fence to refuse a late payment", PATIENCE, || {
            Ok(self.ledger.refusal_of(job.term)?.map(drop))
        })
    }

    /// Stops all of a contender while its command gets a payment ready: had it stopped inside a
    /// transaction, nobody else could write, and nothing would be late.
    fn freeze_between_payments(&self, job: &Job, holder: &mut Process) -> Outcome<Tree> {
        until("a moment between two payments", PATIENCE, || {
            holder.is_alive()?;
            let tree = Tree::of(holder.pid());
            if tree.len() < 3 || !tree.contains(pid(job)?) {
                return Err("expected front, keeper and command, one below the other".into());
            }
            tree.freeze()?;
            if is_free(&self.payments_db())? && is_free(&self.leases_db())? {
                return Ok(Some(tree));
            }
            tree.wake()?;
            Ok(None)
        })
    }

    fn leases_db(&self) -> PathBuf {
        self.folder.join("leases.db")
    }

    fn payments_db(&self) -> PathBuf {
        self.folder.join("payments.db")
    }

    fn say(&self, what: &str) {
        eprintln!("{} {what}", report::seconds(boottime_ns() - self.started_ns));
    }
}

fn sqlite(path: &Path) -> OsString {
    let mut url = OsString::from("sqlite:");
    url.push(path);
    url
}

fn pid(job: &Job) -> Outcome<Pid> {
    Ok(Pid::from_raw(job.pid).ok_or("a job without a process")?)
}

/// Counts on while the machine sleeps, and is the same for all processes.
fn boottime_ns() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
