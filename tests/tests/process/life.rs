//! A command's life under its lease: what it gets, what reaches it, and how it may end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{LEASE, Scene, TTL, leasehold, now, run_line, signal, text, through, until};

#[test]
fn the_command_finds_its_lease_in_six_variables() {
    let scene = Scene::new();
    let ended = scene.run(&["--holder", "web-1"], &["env"]).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let variables = ended.stdout.lines().filter_map(|line| line.split_once('='));
    let found: BTreeMap<_, _> = variables
        .filter(|(name, _)| name.starts_with("LEASEHOLD_"))
        // Those that the test has set for its own purposes.
        .filter(|(name, _)| {
            !matches!(*name, "LEASEHOLD_CACHE" | "LEASEHOLD_TEST_MARK" | "LEASEHOLD_BIN")
        })
        .collect();
    let token = scene.store().row().unwrap().token;
    let (lineage, term, token) =
        (token.lineage.to_string(), token.term.to_string(), token.to_string());
    // Absolute, so that a command that changes its directory asks the same store.
    let store = scene.path("leases.db").display().to_string();
    let expected = BTreeMap::from([
        ("LEASEHOLD_NAME", LEASE),
        ("LEASEHOLD_LINEAGE", &lineage),
        ("LEASEHOLD_TERM", &term),
        ("LEASEHOLD_TOKEN", &token),
        ("LEASEHOLD_HOLDER", "web-1"),
        ("LEASEHOLD_STORE", &store),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn stdin_stdout_and_stderr_belong_to_the_command() {
    let scene = Scene::new();
    fs::write(scene.path("input"), "hello\n").unwrap();
    let input = File::open(scene.path("input")).unwrap();
    let mut run = scene.command(run_line(&[], &["sh", "-c", "cat; echo world; echo oh >&2"]));
    let ended = scene.start(run.stdin(input)).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "hello\nworld\n"), "{ended:?}");
    assert!(ended.stderr.lines().any(|line| line == "oh"), "{ended:?}");
    let ours = ended.stderr.lines().filter(|line| *line != "oh");
    assert!(ours.clone().all(|line| line.starts_with("leasehold: ")), "{ended:?}");
    assert_eq!(ours.count(), 1, "{ended:?}");
}

#[test]
fn a_command_that_changes_its_directory_asks_the_same_store() {
    let scene = Scene::new();
    let inner = leasehold().display().to_string();
    let script = format!("mkdir sub && cd sub && '{inner}' run {LEASE} --no-wait -- true; echo $?");
    let ended = scene.run_sh(&[], &script).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "75\n"), "{ended:?}");
    assert!(!scene.path("sub/leases.db").exists());
}

#[test]
fn a_stopped_command_hears_the_signal_that_is_passed_on() {
    let scene = Scene::new();
    let run = scene.run_sh(&[], "kill -STOP $$; exit 4");
    until("the command to stop", || run.tree().into_iter().find(|one| one.state == 'T'));
    signal(run.front(), Signal::TERM);
    assert_eq!(run.end().code, 143);
}

/// Whoever starts it may have signals blocked, and what is blocked is inherited.
#[test]
fn signals_that_were_blocked_at_the_start_are_heard() {
    let scene = Scene::new();
    let run = scene.command(run_line(&[], &["sleep", "1000"]));
    let block = "import os, signal, sys\n\
                 signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n\
                 os.execv(sys.argv[1], sys.argv[1:])";
    let run = scene.start(&mut through(&["python3", "-c", block], &run));
    until("the command", || run.tree().into_iter().find(|one| one.runs("sleep")));
    signal(run.front(), Signal::TERM);
    assert_eq!(run.end().code, 143);
}

#[test]
fn a_command_that_outlives_the_ttl_keeps_its_term() {
    let scene = Scene::new();
    let store = scene.store();
    let run = scene.run_sh(&[], "until [ -e go ]; do sleep 0.02; done; exit 7");
    run.says("acquired");
    let first = store.row().unwrap();
    let last =
        until("three ttls", || store.row().filter(|row| row.written > first.written + 3 * TTL));
    assert_eq!((last.kind, last.token), (Kind::Held, first.token));
    fs::write(scene.path("go"), "").unwrap();
    let ended = run.end();
    ended.expect(7, "acquired, term 1");
    assert!(!ended.stderr.contains("lost"), "{ended:?}");
    let left = store.row().unwrap();
    assert_eq!((left.kind, left.token), (Kind::Released, first.token));
}

#[test]
fn a_terminated_waiter_ends_at_once_and_stands_in_nobodys_way() {
    let scene = Scene::new();
    // Whatever it waited for would be longer than this test does.
    let holder = scene.run_sh(&["--ttl", "5min"], "until [ -e go ]; do sleep 0.02; done");
    holder.says("acquired");
    let waiter = scene.run(&["--ttl", "5min"], &["echo", "ran"]);
    waiter.says("waiting");
    signal(waiter.front(), Signal::TERM);
    let ended = waiter.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (128 + 15, ""), "{ended:?}");
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(holder.end().code, 0);
    assert_eq!(scene.run(&["--no-wait"], &["true"]).end().code, 0);
}

#[test]
fn a_signal_goes_to_the_command_which_decides_and_the_lease_is_released() {
    let scene = Scene::new();
    let script =
        "exec >said; trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let holder = scene.run_sh(&[], script);
    until("the command", || text(&scene.path("said")).contains("ready").then_some(()));
    let waiter = scene.run(&[], &["true"]);
    waiter.says("waiting");
    signal(holder.front(), Signal::TERM);
    holder.end().expect(9, "acquired, term 1");
    let ended = now();
    assert_eq!(text(&scene.path("said")), "ready\ncaught\n");
    waiter.end().expect(0, "acquired, term 2");
    assert!(scene.store().row().unwrap().written < ended + TTL * 2 / 3, "it was free at once");
}

#[test]
fn what_the_command_leaves_behind_is_ended_before_the_lease_is_released() {
    let scene = Scene::new();
    let run = scene.run_sh(&[], "setsid sleep 1000 & sleep 1000 & exit 5");
    let ended = run.end();
    assert_eq!(ended.code, 5, "{ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
    assert!(scene.is_deserted());
}

#[test]
fn without_a_store_it_is_one_file_for_this_user_alone() {
    let scene = Scene::new();
    let mut run = scene.command(["run", LEASE, "--", "sh", "-c", "echo $LEASEHOLD_STORE"]);
    let ended = scene.start(run.env("XDG_STATE_HOME", scene.folder())).end();
    let file = scene.path("leasehold/leases.db");
    assert_eq!(
        (ended.code, ended.stdout),
        (0, format!("{}\n", file.display())),
        "{}",
        ended.stderr
    );
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);

    let mut status = scene.command(["status", LEASE, "--json"]);
    let ended = scene.start(status.env("LEASEHOLD_STORE", "./leasehold/leases.db")).end();
    assert_eq!(ended.json()["state"], "released");
}
