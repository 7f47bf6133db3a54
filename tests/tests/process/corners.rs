//! Two things at once: what `run` was told for the one must not spoil the other.

use std::fs;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{LEASE, Scene, freeze, now, run_line, signal, through, until, wake};

/// A command that is done at once, and leaves something behind that does not heed SIGTERM.
const LEAVES_A_STRAGGLER: &str = "(trap '' TERM; touch left; while :; do sleep 0.02; done) &
    until [ -e left ] && [ -e go ]; do sleep 0.02; done; exit 0";

#[test]
fn a_lease_that_was_asked_for_is_not_held_on() {
    let scene = Scene::new();
    let options = ["--hold", "1h", "--grace", "4s", "--ttl", "9s"];
    let holder = scene.run_sh(&options, LEAVES_A_STRAGGLER);
    holder.says("acquired, term 1");
    let heir = scene.run(&["--holder", "heir"], &["true"]);
    heir.says("waiting");
    let ask = ["handoff", LEASE, "--store", "./leases.db", "--to", "heir"];
    assert_eq!(scene.leasehold(ask).end().code, 0);
    // It hears the wish while what it left behind is being ended.
    fs::write(scene.path("go"), "").unwrap();
    let ended = holder.end();
    assert!(!ended.stderr.contains("held for another"), "{ended:?}");
    assert_eq!(heir.end().code, 0);
}

#[test]
fn a_command_that_ends_within_its_limit_has_kept_it_whatever_it_leaves_behind() {
    let scene = Scene::new();
    fs::write(scene.path("go"), "").unwrap();
    let ended =
        scene.run_sh(&["--max-run", "1s", "--grace", "1500ms", "--ttl", "6s"], LEAVES_A_STRAGGLER);
    let ended = ended.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.stderr.contains("--max-run"), "{ended:?}");
}

#[test]
fn a_command_past_its_limit_stays_past_it_however_it_is_interrupted() {
    let scene = Scene::new();
    let script = "trap 'until [ -e end ]; do sleep 0.02; done; exit 0' TERM INT; while :; do sleep 0.02; done";
    let options = ["--max-run", "300ms", "--grace", "60s", "--ttl", "120s"];
    let run = scene.run_sh(&options, script);
    run.says("--max-run is over");
    signal(run.front(), Signal::INT);
    fs::write(scene.path("end"), "").unwrap();
    run.end().expect(119, "--max-run is over");
}

/// It ended in time itself, and still something of it ran beside the next holder.
#[test]
fn what_outlives_the_lease_is_no_success() {
    let scene = Scene::new();
    let run = scene.run_sh(&["--grace", "1500ms", "--ttl", "4s"], LEAVES_A_STRAGGLER);
    until("the straggler", || scene.path("left").exists().then_some(()));
    let both = [run.front(), run.keeper()];
    freeze(&both, &[&scene.store()]);
    fs::write(scene.path("go"), "").unwrap();
    let next = scene.run(&["--ttl", "4s"], &["true"]).end();
    next.expect(0, "acquired, term 2");
    wake(&both);
    run.end().expect(122, "under term 1");
}

/// Like the entry point of a container: what was there before is not the command's.
#[test]
fn a_front_with_other_children_replaces_its_keeper_at_once() {
    let scene = Scene::new();
    let run = scene.command(run_line(&["--ttl", "120s"], &["sleep", "1000"]));
    let script = "sleep 999 & exec \"$0\" \"$@\"";
    let run = scene.start(&mut through(&["sh", "-c", script], &run));
    let sibling = until("the sibling", || run.tree().into_iter().find(|one| one.runs("sleep")));
    run.says("acquired, term 1");
    let killed = now();
    signal(run.keeper(), Signal::KILL);
    run.end().expect(121, "the keeper was gone or silent; the command was killed");
    assert!(now() < killed + Duration::from_secs(30), "not the ttl");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
    assert!(sibling.is_alive() || scene.is_deserted());
}

#[test]
fn a_busy_resource_is_waited_for_unless_nothing_is() {
    let scene = Scene::new();
    let payments = scene.payments();
    let lock = payments.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let seal = ["--seal", "sqlite:payments.db#payments"];
    scene.run(&[&seal[..], &["--no-wait"]].concat(), &["true"]).end().expect(69, "locked");
    let run = scene.run(&seal, &["sh", "-c", "exit 4"]);
    run.says("locked by another connection");
    let withdrawn = scene.run(&[&seal[..], &["--holder", "other"]].concat(), &["true"]);
    // It waits for the other, or for the resource itself.
    withdrawn.says("; waiting");
    signal(withdrawn.front(), Signal::TERM);
    assert_eq!(withdrawn.end().code, 143);
    lock.execute_batch("ROLLBACK").unwrap();
    run.end().expect(4, "acquired");
}

#[test]
fn a_lost_store_is_noticed_before_the_lease_begins_anew() {
    let scene = Scene::new();
    scene.payments();
    let seal = ["--seal", "sqlite:payments.db#payments"];
    let first = scene.run_sh(&seal, "echo $LEASEHOLD_TOKEN").end();
    assert_eq!(first.code, 0, "{first:?}");
    let token = first.stdout.trim();
    fs::remove_file(scene.store().path()).unwrap();
    let refused = scene.run_sh(&seal, "echo ran").end();
    refused.expect(78, &format!("leasehold init {LEASE} --after {token} --store ./leases.db"));
    assert!(scene.store().row().is_none() && refused.stdout.is_empty(), "{refused:?}");
    let init = ["init", LEASE, "--after", token, "--store", "./leases.db"];
    assert_eq!(scene.leasehold(init).end().code, 0);
    let next = scene.run_sh(&seal, "echo $LEASEHOLD_TERM").end();
    assert_eq!((next.code, next.stdout.as_str()), (0, "2\n"), "{next:?}");
}

#[test]
fn a_keeper_that_does_not_answer_does_not_keep_a_command_from_its_end() {
    let scene = Scene::new();
    let run = scene.run(&["--ttl", "300s", "--grace", "60s"], &["sleep", "1000"]);
    until("the command", || run.tree().iter().any(|one| one.runs("sleep")).then_some(()));
    signal(run.keeper(), Signal::STOP);
    for heard in ["", "interrupted again", "interrupted once more"] {
        until("a signal to be heard", || {
            signal(run.front(), Signal::INT);
            run.stderr().contains(heard).then_some(())
        });
    }
    run.end().expect(121, "the keeper was gone or silent; the command was killed");
}
