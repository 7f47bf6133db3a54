//! What else `run` may be told: how long to hold, how long to run, to begin anew, to be quiet.

use std::fs;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{Row, Scene, TTL, freeze, now, signal, text, until, wake};

/// Machines whose cron clocks differ by less do not run the command one after the other.
#[test]
fn the_lease_is_held_on_after_a_command_that_ends_early() {
    let scene = Scene::new();
    let begun = now();
    let first = scene.run(&["--hold", "6s"], &["sh", "-c", "exit 5"]);
    first.says("the command has ended; held for another");
    let ended = now();
    let late = scene.run(&["--no-wait"], &["echo", "ran"]).end();
    assert_eq!((late.code, late.stdout.as_str()), (75, ""), "{late:?}");
    let is_renewed = |row: &Row| row.kind == Kind::Held && row.written > ended;
    let held = until("a renewal", || scene.store().row().filter(is_renewed));
    let first = first.end();
    first.expect(5, "held for another");
    assert!(!first.stderr.contains("lost before --hold"), "{first:?}");
    let row = scene.store().row().unwrap();
    assert_eq!((row.kind, row.token), (Kind::Released, held.token));
    assert!(row.written >= begun + 2 * TTL, "held to the end");
    assert_eq!(scene.run(&["--no-wait"], &["true"]).end().code, 0);
}

#[test]
fn a_command_that_outlasts_the_hold_is_not_kept_waiting() {
    let scene = Scene::new();
    let ended = scene.run_sh(&["--hold", "10ms"], "sleep 0.1; exit 3").end();
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(!ended.stderr.contains("held for another"), "{ended:?}");
}

#[test]
fn a_signal_ends_the_hold_and_not_what_the_command_achieved() {
    let scene = Scene::new();
    // Whatever it waited for would be longer than this test does.
    let run = scene.run(&["--hold", "1h", "--ttl", "5min"], &["sh", "-c", "exit 5"]);
    run.says("held for another");
    signal(run.front(), Signal::TERM);
    run.end().expect(5, "given up before --hold was over, by a signal");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn a_command_that_runs_for_too_long_is_ended_and_the_lease_released() {
    let scene = Scene::new();
    let begun = now();
    let script = "trap 'echo told; exit 0' TERM; while :; do sleep 0.02; done";
    let ended = scene.run_sh(&["--max-run", "500ms"], script).end();
    ended.expect(119, "--max-run is over; the command is ended");
    assert_eq!(ended.stdout, "told\n", "{ended:?}");
    assert!(now() > begun + Duration::from_millis(500));
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn a_command_that_does_not_end_when_told_is_killed_after_the_grace() {
    let scene = Scene::new();
    let script = "trap '' TERM; setsid sleep 1000 & while :; do sleep 0.02; done";
    let ended = scene.run_sh(&["--max-run", "200ms"], script).end();
    ended.expect(119, "--max-run is over");
    assert!(scene.is_deserted(), "{ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn a_command_that_ends_in_time_has_no_limit() {
    let scene = Scene::new();
    let ended = scene.run(&["--max-run", "1h"], &["sh", "-c", "exit 6"]).end();
    assert_eq!(ended.code, 6, "{ended:?}");
}

#[test]
fn a_lost_lease_is_contended_for_again_and_the_command_run_anew() {
    let scene = Scene::new();
    let script = "echo $LEASEHOLD_TERM >>terms; until [ -e done ]; do sleep 0.02; done; exit 7";
    let run = scene.run_sh(&["--respawn"], script);
    let first = term_after(&scene, 0);
    let front = [run.front()];
    freeze(&front, &[&scene.store()]);
    until("the keeper to end the command", || run.tree().is_empty().then_some(()));
    wake(&front);
    run.says("contending again");
    let second = term_after(&scene, first);
    // The keeper of the second term ends what the front does not.
    signal(run.keeper(), Signal::KILL);
    term_after(&scene, second);
    fs::write(scene.path("done"), "").unwrap();
    assert_eq!(run.end().code, 7);
    let terms = terms(&scene);
    assert!(terms.is_sorted_by(|earlier, later| earlier < later), "{terms:?}");
}

#[test]
fn what_ends_by_itself_or_by_a_signal_is_not_run_anew() {
    let scene = Scene::new();
    let ended = scene.run(&["--respawn"], &["sh", "-c", "exit 3"]).end();
    assert_eq!(ended.code, 3, "{ended:?}");

    let run = scene.run(&["--respawn"], &["sleep", "1000"]);
    run.says("acquired");
    until("the command", || run.tree().iter().any(|one| one.runs("sleep")).then_some(()));
    signal(run.front(), Signal::TERM);
    assert_eq!(run.end().code, 143);
}

/// SIGHUP may mean that a configuration is to be read, and a first interrupt that something is to be
/// saved: neither asks for the end of the command as such.
#[test]
fn a_command_that_goes_on_after_a_signal_is_run_anew_after_a_loss() {
    let scene = Scene::new();
    let script = "
        trap 'echo >>heard' HUP INT; echo $LEASEHOLD_TERM >>terms
        until [ -e done ]; do sleep 0.02; done; exit 7";
    let run = scene.run_sh(&["--respawn"], script);
    let mut term = 0;
    for (heard, told) in [Signal::HUP, Signal::INT, Signal::INT].into_iter().enumerate() {
        // One a term: a second interrupt under the same would ask for the end.
        term = term_after(&scene, term);
        signal(run.front(), told);
        until("the command to hear it", || {
            (text(&scene.path("heard")).len() > heard).then_some(())
        });
        signal(run.keeper(), Signal::KILL);
    }
    term_after(&scene, term);
    fs::write(scene.path("done"), "").unwrap();
    run.end().expect(7, "contending again");
}

#[test]
fn whoever_is_quiet_says_nothing_while_all_is_as_it_should_be() {
    let scene = Scene::new();
    let silent = |options: &[&str], code: i32| {
        let ended = scene.run(options, &["true"]).end();
        assert_eq!((ended.code, ended.stderr.as_str()), (code, ""), "{ended:?}");
    };
    silent(&["--quiet"], 0);
    silent(&["--quiet", "--hold", "1s"], 0);
    let holder = scene.run_sh(&["--quiet"], "echo >ready; sleep 1000");
    until("the command", || scene.path("ready").exists().then_some(()));
    silent(&["--quiet", "--no-wait"], 75);
    scene.store().execute("DELETE FROM leasehold_kv");
    holder.end().expect(121, "lost: its record is gone from the store");
}

/// Waits until the command is run under a later term. That need not be the next one: a busy machine
/// loses one more.
fn term_after(scene: &Scene, earlier: u64) -> u64 {
    until(&format!("a term after {earlier}"), || {
        terms(scene).last().copied().filter(|term| *term > earlier)
    })
}

/// The terms that the command was run under.
fn terms(scene: &Scene) -> Vec<u64> {
    let terms = text(&scene.path("terms"));
    let whole = terms.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(|term| term.parse().expect(term)).collect()
}
