//! The story, scene by scene. Each begins with one contender that leads and pays, and one that
//! waits; each ends so, too.

use std::time::Duration;

use super::boottime_ns;
use super::play::{Play, exits};
use super::processes::{PATIENCE, until, wake};
use super::stage::{INVOICES, Leader, Stage, TTL, pid};
use super::story::Story;
use crate::Outcome;

/// What a scene does to the contenders, in words and as code.
type Scene = (&'static str, fn(&mut Play<'_>) -> Outcome);

const SCENES: [Scene; 8] = [
    ("A holder is killed in the middle of its work, with a payment still on its way", killed),
    (
        "A holder's front freezes; its keeper ends the command before the lease is over",
        front_frozen,
    ),
    ("All of a holder freezes, and wakes up too late: only the fence can help", all_frozen),
    ("The lease's store is backed up", backed_up),
    ("An operator asks for a hand-off: nobody has to wait until a lease runs out", handed_over),
    ("The lease's store is locked for a moment: the holder goes on", locked_for_a_moment),
    ("The lease's store stays locked: the holder has to stop, and nobody may start", stays_locked),
    ("The lease's store is replaced by its backup, which knows nothing of later terms", restored),
];

/// The exit codes of a `run` that lost its lease: its command was dead in time, or perhaps not.
const DEAD_IN_TIME: [i32; 2] = [120, 121];
const PERHAPS_LATE: i32 = 122;
/// The exit code of a `run` whose store is not what it was.
const WRONG_STORE: i32 = 78;
/// What the last holder has to pay takes half a minute at most.
const THE_REST: Duration = Duration::from_secs(120);

pub(crate) fn play(stage: &Stage, story: &mut Story) -> Outcome {
    stage
        .say(&format!("A and B contend for a lease of {TTL}; its holder pays {INVOICES} invoices"));
    let mut play = Play::begin(stage, story)?;
    for (number, (what, scene)) in (1..).zip(SCENES) {
        eprintln!();
        stage.say(&format!("{number}. {what}"));
        stage.payments_by(&mut play.leader)?;
        scene(&mut play)?;
    }
    eprintln!();
    stage.say(&format!("{} pays the rest, and nobody disturbs it", play.leader.job.holder));
    let status = play.leader.run.end(THE_REST)?;
    if !status.success() {
        return Err(format!("the last holder's `run`: {status}").into());
    }
    stage.say("all is paid");
    Ok(())
}

fn killed(play: &mut Play<'_>) -> Outcome {
    let mut late = play.stage.payment_on_its_way(&play.leader.job)?;
    let killed_at_ns = boottime_ns();
    play.leader.run.kill()?;
    play.stage.say("the front is dead; its keeper has to end the command");
    let old = play.takeover("killed", killed_at_ns)?;
    play.ended(&old)?;
    play.arrives_late(&mut late, &old)?;
    play.waits(&old.job.holder)
}

fn front_frozen(play: &mut Play<'_>) -> Outcome {
    let front = play.stage.freeze_front(&mut play.leader)?;
    let frozen_at_ns = boottime_ns();
    play.stage.say("the front is frozen, and cannot renew; the command does not know");
    let mut old = play.takeover("front frozen", frozen_at_ns)?;
    play.ended(&old)?;
    play.stage.say("the old command is dead, nothing is late; the front wakes up and finds that");
    front.wake()?;
    play.run_ends(&mut old, &DEAD_IN_TIME)?;
    play.waits(&old.job.holder)
}

fn all_frozen(play: &mut Play<'_>) -> Outcome {
    let tree = play.stage.freeze_all(&mut play.leader)?;
    let frozen_at_ns = boottime_ns();
    play.stage.say("front, keeper and command are frozen, the next payment ready to be written");
    let mut old = play.takeover("frozen", frozen_at_ns)?;
    play.stage.say("the old command wakes up first, before anyone can tell it that it is late");
    wake(pid(&old.job)?)?;
    play.stage.refusal_of(&old.job)?;
    play.stage.say("its payment was refused; now front and keeper wake up");
    tree.wake()?;
    play.run_ends(&mut old, &[DEAD_IN_TIME.as_slice(), &[PERHAPS_LATE]].concat())?;
    play.waits(&old.job.holder)
}

fn backed_up(play: &mut Play<'_>) -> Outcome {
    play.stage.back_up_store()?;
    let Leader { job, .. } = &play.leader;
    play.stage.say(&format!("the copy says: held by {}, term {}", job.holder, job.term));
    Ok(())
}

fn handed_over(play: &mut Play<'_>) -> Outcome {
    let to = play.waiting()?.name.clone();
    play.stage.ask_for_handoff(&to)?;
    let mut old = play.next_leader()?;
    play.ended(&old)?;
    play.run_ends(&mut old, &DEAD_IN_TIME)?;
    play.waits(&old.job.holder)
}

fn locked_for_a_moment(play: &mut Play<'_>) -> Outcome {
    let over_ns = play.outage(|play| play.leader.run.says("not renewed yet"))?;
    until("the next renewal", PATIENCE, || {
        play.leader.run.is_alive()?;
        Ok(play.stage.history()?.survived(over_ns).then_some(()))
    })?;
    play.stage.say("the lease is renewed, and was never lost");
    Ok(())
}

fn stays_locked(play: &mut Play<'_>) -> Outcome {
    let over_ns = play.outage(|play| {
        exits(&mut play.leader.run, &DEAD_IN_TIME)?;
        play.stage.say("the command is dead, in time; the lease runs out, and cannot be taken");
        play.waiting()?.says("the store does not answer")
    })?;
    let old = play.takeover("store locked", over_ns)?;
    play.ended(&old)?;
    play.waits(&old.job.holder)
}

/// Afterwards nobody waits: the last holder is to pay the rest.
fn restored(play: &mut Play<'_>) -> Outcome {
    let mut late = play.stage.payment_on_its_way(&play.leader.job)?;
    play.stage.restore_store()?;
    play.stage.say("whoever had the store open sees that it is another, and ends");
    exits(&mut play.leader.run, &DEAD_IN_TIME)?;
    exits(play.waiting()?, &[WRONG_STORE])?;
    play.stage.say("one of them starts again; a term from the old copy has been used before");
    let next = play.waiting()?.name.clone();
    let started_at_ns = boottime_ns();
    play.enters(&next)?;
    let old = play.takeover("store restored", started_at_ns)?;
    play.ended(&old)?;
    play.arrives_late(&mut late, &old)
}
