//! What `run` exits with where the lease is not lost.

use std::fs;
use std::time::Duration;

use crate::rig::{LEASE, Scene, now};

#[test]
fn the_exit_code_is_the_commands_own_or_says_why_it_did_not_run() {
    let scene = Scene::new();
    fs::write(scene.path("plain"), "no program\n").unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["true"], 0, ""),
        (&["sh", "-c", "exit 3"], 3, ""),
        (&["sh", "-c", "exit 255"], 255, ""),
        (&["sh", "-c", "kill -SEGV $$"], 128 + 11, ""),
        (&["sh", "-c", "kill -KILL $$"], 128 + 9, ""),
        // Its own, though it says so of something that it did not find.
        (&["sh", "-c", "exit 127"], 127, ""),
        (&["no-such-command"], 127, "cannot run no-such-command: it is not on the PATH"),
        (&["./no-such-file"], 127, "check the path"),
        (&["./plain"], 126, "make it executable (chmod +x)"),
        (&["/"], 126, "cannot run /: permission denied"),
    ];
    for (command, code, telling) in cases {
        let ended = scene.run(&[], command).end();
        ended.expect(code, telling);
        assert_eq!(ended.stdout, "", "{command:?}");
    }
}

#[test]
fn a_lease_that_is_not_obtained_is_75_or_124() {
    let scene = Scene::new();
    // To wait for the ttl would be longer than this test does.
    let holder = scene.run(&["--holder", "first", "--ttl", "5min"], &["sleep", "1000"]);
    holder.says("acquired");
    let no_wait = ["--no-wait", "--ttl", "5min"];
    scene.run(&no_wait, &["echo", "ran"]).end().expect(75, "job: held by first, term 1");
    let begun = now();
    let wait = scene.run(&["--wait", "500ms"], &["echo", "ran"]).end();
    wait.expect(124, "job: not obtained within --wait");
    assert_eq!(wait.stdout, "");
    assert!(now() > begun + Duration::from_millis(500));
}

#[test]
fn a_lease_won_within_the_wait_is_no_failure() {
    let scene = Scene::new();
    let holder = scene.run_sh(&[], "until [ -e go ]; do sleep 0.02; done");
    holder.says("acquired");
    let waiter = scene.run(&["--wait", "1min"], &["true"]);
    waiter.says("waiting");
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(holder.end().code, 0);
    waiter.end().expect(0, "acquired, term 2");
}

#[test]
fn a_store_that_cannot_be_reached_is_69() {
    let scene = Scene::new();
    let nowhere = ["run", "job", "--store", "./no/such/leases.db", "--", "echo", "ran"];
    let ended = scene.leasehold(nowhere).end();
    ended.expect(69, "does not exist; create it, or name another file");
    assert_eq!(ended.stdout, "");
    assert!(!scene.path("no").exists());

    // Somebody's long transaction: the store is there, and does not answer.
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    let lock = scene.store().open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = scene.store().value();
    let line = ["run", LEASE, "--store", "./leases.db", "--no-wait", "--", "echo", "ran"];
    let ended = scene.leasehold(line).end();
    ended.expect(69, "stayed locked by another connection");
    ended.expect(69, "end the long transaction on it");
    assert_eq!(ended.stdout, "");
    assert_eq!(scene.store().value(), before);
}
