//! `leasehold run` as the first process of a pid namespace, as in a container without an init: all
//! orphans are its children, and no signal reaches it that it does not handle.

use std::fs;
use std::process::Command;

use leasehold_core::record::Kind;
use rustix::process::{Pid, Signal};

use crate::rig::{Scene, Started, has_zombie, run_line, signal, through, until};

const CONTAINER: [&str; 5] = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"];

#[test]
fn a_front_whose_process_group_has_no_number_here_runs_its_command() {
    let scene = Scene::new();
    // The leader of the group stays outside of the new pid namespace.
    let ended = contained(&scene, &["sh", "-c", "echo ran; exit 4"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (4, "ran\n"), "{ended:?}");
}

#[test]
fn a_signal_from_outside_reaches_the_command() {
    let scene = Scene::new();
    let script = "trap 'echo caught; exit 9' TERM; echo >ready; while :; do sleep 0.02; done";
    let run = contained(&scene, &["sh", "-c", script]);
    until("the command", || scene.path("ready").exists().then_some(()));
    signal(first(&run), Signal::TERM);
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (9, "caught\n"), "{ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn a_terminated_waiter_ends_at_once() {
    let scene = Scene::new();
    // Whatever it waited for would be longer than this test does.
    let holder = scene.run(&["--ttl", "5min"], &["sleep", "1000"]);
    holder.says("acquired");
    let waiter = contained_with(&scene, &["--ttl", "5min"], &["echo", "ran"]);
    waiter.says("waiting");
    signal(first(&waiter), Signal::TERM);
    let ended = waiter.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (128 + 15, ""), "{ended:?}");
}

#[test]
fn what_a_command_leaves_behind_is_reaped_and_at_last_ended() {
    let scene = Scene::new();
    let script = "
        for i in 1 2 3 4 5; do (setsid true &); done
        (setsid sleep 1000 &); sleep 1000 &
        until [ -e go ]; do sleep 0.02; done; exit 5";
    let run = contained(&scene, &["sh", "-c", script]);
    until("the death of the short-lived", || {
        let (sleepers, others): (Vec<_>, Vec<_>) =
            run.tree().into_iter().partition(|one| one.runs("sleep"));
        let others = others.iter().filter(|one| !one.is_front()).count();
        (sleepers.len() >= 2 && others == 1).then_some(())
    });
    no_zombie_stays(first(&run));
    no_zombie_stays(run.keeper());
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(run.end().code, 5);
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
    assert!(scene.is_deserted());
}

#[test]
fn what_a_visitor_leaves_behind_is_reaped() {
    let scene = Scene::new();
    let run = contained(&scene, &["sleep", "1000"]);
    until("the command", || run.tree().into_iter().find(|one| one.runs("sleep")));
    let front = first(&run);
    // As `docker exec` does. An orphan's parent is the first process of the namespace.
    let orphan = "
        until read -r _ _ _ parent _ </proc/self/stat && [ \"$parent\" = 1 ]; do sleep 0.02; done
        echo >orphaned";
    let (target, folder) = (front.to_string(), scene.folder());
    let mut visit = Command::new("nsenter");
    visit
        .args(["--target", &target, "--user", "--mount", "--pid", "--preserve-credentials"])
        .arg(format!("--wd={}", folder.display()))
        .args(["sh", "-c", "(sh -c \"$0\" &)", orphan]);
    let visit = scene.start(&mut visit);
    until("the orphan's death", || {
        (scene.path("orphaned").exists() && visit.tree().is_empty()).then_some(())
    });
    no_zombie_stays(front);
    assert_eq!(visit.end().code, 0);
}

#[test]
fn without_a_proc_of_its_namespace_it_says_so_and_runs_nothing() {
    let scene = Scene::new();
    let run = scene.command(run_line(&[], &["echo", "ran"]));
    let ended = scene.start(&mut through(&CONTAINER[..4], &run)).end();
    ended.expect(78, "/proc does not show this process; mount /proc of this pid namespace");
    assert_eq!(ended.stdout, "");
    assert!(!scene.store().path().exists());
}

fn contained(scene: &Scene, command: &[&str]) -> Started {
    contained_with(scene, &[], command)
}

fn contained_with(scene: &Scene, options: &[&str], command: &[&str]) -> Started {
    let run = scene.command(run_line(options, command));
    scene.start(&mut through(&CONTAINER, &run))
}

/// The first process of the namespace, by its number outside.
fn first(run: &Started) -> Pid {
    until("the front", || run.tree().into_iter().find(|one| one.is_front()).map(|one| one.pid))
}

fn no_zombie_stays(parent: Pid) {
    until("its dead children to be reaped", || (!has_zombie(parent)).then_some(()));
}
