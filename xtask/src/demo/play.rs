//! The contenders on the stage, and the verbs that the scenes share.

use std::mem;
use std::process::ExitStatus;

use super::boottime_ns;
use super::processes::{PATIENCE, Process, is_running};
use super::stage::{Leader, Stage, pid};
use super::story::{Outage, Story, Takeover};
use crate::Outcome;

pub(crate) struct Play<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) story: &'a mut Story,
    pub(crate) leader: Leader,
    waiting: Option<Process>,
}

impl<'a> Play<'a> {
    /// A leads, B waits; from here on the lease's history is kept.
    pub(crate) fn begin(stage: &'a Stage, story: &'a mut Story) -> Outcome<Self> {
        let leader = stage.leads_after(0, stage.contend("A")?)?;
        stage.keep_history()?;
        let mut play = Self { stage, story, leader, waiting: None };
        play.waits("B")?;
        Ok(play)
    }

    pub(crate) fn waiting(&mut self) -> Outcome<&mut Process> {
        self.waiting.as_mut().ok_or_else(|| "nobody waits".into())
    }

    /// Starts a contender.
    pub(crate) fn enters(&mut self, holder: &str) -> Outcome {
        self.waiting = Some(self.stage.contend(holder)?);
        Ok(())
    }

    /// The same, and sees it wait.
    pub(crate) fn waits(&mut self, holder: &str) -> Outcome {
        self.enters(holder)?;
        self.waiting()?.says("; waiting")
    }

    /// The one that waited leads. Gives the one that led before.
    pub(crate) fn next_leader(&mut self) -> Outcome<Leader> {
        let next = self.waiting.take().ok_or("nobody waits")?;
        let next = self.stage.leads_after(self.leader.job.term, next)?;
        Ok(mem::replace(&mut self.leader, next))
    }

    /// The same because something went wrong.
    pub(crate) fn takeover(&mut self, cause: &'static str, since_ns: i64) -> Outcome<Leader> {
        let old = self.next_leader()?;
        self.story.takeovers.push(Takeover { term: self.leader.job.term, cause, since_ns });
        Ok(old)
    }

    /// The command of a former leader was to be dead before the next one's began.
    pub(crate) fn ended(&mut self, old: &Leader) -> Outcome {
        self.story.outlived += usize::from(is_running(pid(&old.job)?));
        Ok(())
    }

    /// A former leader's `run` notices that the lease is lost.
    pub(crate) fn run_ends(&self, old: &mut Leader, codes: &[i32]) -> Outcome {
        let status = exits(&mut old.run, codes)?;
        self.stage.say(&format!("{}'s `run`: {status}; it contends again", old.job.holder));
        Ok(())
    }

    pub(crate) fn arrives_late(&self, payment: &mut Process, sender: &Leader) -> Outcome {
        self.stage.say(&format!("now the payment of {} arrives", sender.job.holder));
        payment.tell("deliver")?;
        if payment.end(PATIENCE)?.success() {
            return Err("a payment that came too late was not refused".into());
        }
        self.stage.refusal_of(&sender.job)
    }

    /// Nobody else can write to the lease's store meanwhile. Gives the instant of its end.
    pub(crate) fn outage(&mut self, meanwhile: fn(&mut Self) -> Outcome) -> Outcome<i64> {
        let lock = self.stage.lock_store()?;
        let from_ns = boottime_ns();
        self.stage.say("nobody can write to the store");
        meanwhile(self)?;
        let to_ns = boottime_ns();
        self.story.outages.push(Outage { from_ns, to_ns });
        lock.execute_batch("ROLLBACK")?;
        self.stage.say("the store is free again");
        Ok(to_ns)
    }
}

/// Waits until a `run` ends, with one of these exit codes.
pub(crate) fn exits(run: &mut Process, codes: &[i32]) -> Outcome<ExitStatus> {
    let status = run.end(PATIENCE)?;
    if status.code().is_some_and(|code| codes.contains(&code)) {
        return Ok(status);
    }
    Err(format!("the `run` of {}: {status}, expected one of {codes:?}", run.name).into())
}
