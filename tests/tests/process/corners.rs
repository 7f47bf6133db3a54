//! Two things at once: what `run` was told for the one must not spoil the other.

use std::fs;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{
    LEASE, Process, Scene, Started, freeze, now, run_line, signal, through, until, wake,
};

/// Spans that no test waits for: what ends does so by an event.
const LONG: [&str; 4] = ["--ttl", "40s", "--grace", "20s"];

const TELL: [&str; 2] = ["--events", "events.jsonl"];

const SEAL: [&str; 2] = ["--seal", "sqlite:payments.db#payments"];

/// A command that is done once it may be, and leaves something behind that does not heed SIGTERM.
const LEAVES_A_STRAGGLER: &str = "
    (trap '' TERM; echo >left; until [ -e end ]; do sleep 0.02; done) &
    until [ -e go ] && [ -e left ]; do sleep 0.02; done; exit 0";

#[test]
fn a_lease_that_was_asked_for_is_not_held_on() {
    let scene = Scene::new();
    let holder = scene.run_sh(&[&["--hold", "1h"], &LONG[..], &TELL].concat(), LEAVES_A_STRAGGLER);
    holder.says("acquired, term 1");
    let heir = scene.run(&[&["--holder", "heir"], &LONG[..]].concat(), &["true"]);
    heir.says("waiting");
    allow(&scene, "go");
    scene.told("exited");
    let ask = ["handoff", LEASE, "--store", "./leases.db", "--to", "heir"];
    assert_eq!(scene.leasehold(ask).end().code, 0);
    holder.says("asked to hand over to heir");
    allow(&scene, "end");
    let ended = holder.end();
    assert_eq!(ended.code, 0, "it ended by itself, while the lease was held: {ended:?}");
    assert!(!ended.stderr.contains("held for another"), "{ended:?}");
    // Without an offer it would wait for the ttl, which is longer than anything here.
    heir.end().expect(0, "acquired, term 2");
}

#[test]
fn a_command_that_ends_within_its_limit_has_kept_it_whatever_it_leaves_behind() {
    let scene = Scene::new();
    let limit = ["--max-run", "2s"];
    let run = scene.run_sh(&[&limit, &LONG[..], &TELL].concat(), LEAVES_A_STRAGGLER);
    allow(&scene, "go");
    scene.told("exited");
    let over = now() + Duration::from_secs(2);
    until("the limit", || (now() > over).then_some(()));
    assert!(!run.tree().is_empty(), "the straggler lives");
    allow(&scene, "end");
    let ended = run.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.stderr.contains("--max-run"), "{ended:?}");
}

#[test]
fn a_command_past_its_limit_stays_past_it_however_it_is_interrupted() {
    let scene = Scene::new();
    let script = "
        trap 'echo >told' TERM; trap 'echo >heard' INT
        until [ -e end ]; do sleep 0.02; done; exit 0";
    let run = scene.run_sh(&[&["--max-run", "300ms"], &LONG[..]].concat(), script);
    run.says("--max-run is over");
    seen(&scene, "told");
    signal(run.front(), Signal::INT);
    seen(&scene, "heard");
    signal(run.front(), Signal::INT);
    run.says("interrupted");
    allow(&scene, "end");
    run.end().expect(119, "--max-run is over");
}

/// It ended in time itself, and still something of it ran beside the next holder.
#[test]
fn what_outlives_the_lease_is_no_success() {
    let scene = Scene::new();
    let spans = ["--ttl", "12s", "--grace", "5s"];
    let run = scene.run_sh(&[&spans, &TELL[..]].concat(), LEAVES_A_STRAGGLER);
    allow(&scene, "go");
    scene.told("exited");
    let both = [run.front(), run.keeper()];
    freeze(&both, &[&scene.store()]);
    assert_eq!(scene.store().row().unwrap().kind, Kind::Held);
    let next = scene.run(&spans, &["true"]).end();
    next.expect(0, "acquired, term 2");
    assert!(!run.tree().is_empty(), "the straggler lives");
    // The keeper first: the front finds its report, and no longer the straggler.
    wake(&both[1..]);
    until("the straggler's end", || run.tree().is_empty().then_some(()));
    wake(&both[..1]);
    run.end().expect(122, "under term 1");
}

/// Like the entry point of a container: what was there before is not the command's.
#[test]
fn a_front_with_other_children_replaces_its_keeper_at_once() {
    let scene = Scene::new();
    // A ttl that this test does not wait for.
    let run = scene.command(run_line(&["--ttl", "5min"], &["sleep", "1000"]));
    let script = "tail -f /dev/null & exec \"$0\" \"$@\"";
    let run = scene.start(&mut through(&["sh", "-c", script], &run));
    let sibling = process(&run, "tail");
    let command = process(&run, "sleep");
    signal(run.keeper(), Signal::KILL);
    // Heard in its turn, and of no use any more.
    signal(run.front(), Signal::TERM);
    run.end().expect(121, "the keeper was gone or silent; the command was killed");
    assert!(!command.is_alive() && sibling.is_alive());
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn a_busy_resource_is_waited_for_unless_nothing_is() {
    let scene = Scene::new();
    let payments = scene.payments();
    let lock = payments.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = scene.run(&[&["--no-wait"], &SEAL[..]].concat(), &["echo", "ran"]).end();
    refused.expect(69, "locked by another connection");
    assert_eq!(refused.stdout, "");
    for options in [&[][..], &["--respawn"]] {
        let run = scene.run_sh(&[options, &SEAL].concat(), "echo ran; exit 4");
        until("contending again and again", || {
            (run.stderr().matches("locked by another connection").count() > 1).then_some(())
        });
        lock.execute_batch("ROLLBACK").unwrap();
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (4, "ran\n"), "{ended:?}");
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
}

#[test]
fn who_waits_for_a_busy_resource_is_withdrawn_at_once() {
    let scene = Scene::new();
    let payments = scene.payments();
    let lock = payments.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let run = scene.run(&[&TELL[..], &SEAL].concat(), &["echo", "ran"]);
    scene.told("elected");
    signal(run.front(), Signal::TERM);
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (143, ""), "{ended:?}");
    assert!(!ended.stderr.contains("locked"), "it did not wait for the seal: {ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
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

fn allow(scene: &Scene, what: &str) {
    fs::write(scene.path(what), "").unwrap();
}

fn seen(scene: &Scene, file: &str) {
    until(file, || scene.path(file).exists().then_some(()));
}

fn process(run: &Started, program: &str) -> Process {
    until(program, || run.tree().into_iter().find(|one| one.runs(program)))
}
