//! `run --events`: what happens, for a program.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;

use leasehold_core::record::Kind;
use rustix::fs::OFlags;
use serde_json::Value;

use crate::rig::{LEASE, Scene, Started, TTL, run_line, through, until};

#[test]
fn a_program_is_told_what_happens_one_object_a_line() {
    let scene = Scene::new();
    let go = "until [ -e go ]; do sleep 0.02; done; exit 4";
    let run = scene.run_sh(&["--events", "events.jsonl", "--holder", "web-1"], go);
    let renewed = scene.told("renewed");
    let acquired = scene.told("acquired");
    let token = scene.store().row().unwrap().token;
    assert_eq!((&acquired["token"], &acquired["term"]), (&token.to_string().into(), &"1".into()));
    assert_eq!(acquired["name"], LEASE);
    let instant = |line: &Value, key: &str| -> u64 { line[key].as_str().unwrap().parse().unwrap() };
    assert!(instant(&renewed, "stop_at_ns") > instant(&acquired, "stop_at_ns"));
    for line in [&acquired, &renewed] {
        assert!(instant(line, "boottime_ns") < instant(line, "stop_at_ns"));
        assert!(instant(line, "stop_at_ns") < instant(line, "valid_until_ns"));
        assert!(line["at"].as_str().unwrap().ends_with('Z'));
    }
    fs::write(scene.path("go"), "").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (4, ""), "{ended:?}");
    let order: Vec<_> = scene.events().iter().map(|line| line["event"].clone()).collect();
    assert_eq!(order[..3], ["elected", "acquired", "started"]);
    assert_eq!(order[order.len() - 2..], ["exited", "released"]);
    assert_eq!(scene.told("exited")["code"], 4);
    assert_eq!(scene.told("released")["how"], "Released");
    assert!(!order.contains(&"lost".into()), "{order:?}");
}

#[test]
fn a_program_is_told_why_the_lease_was_lost() {
    let scene = Scene::new();
    let run = scene.run(&["--events", "events.jsonl"], &["sleep", "1000"]);
    scene.told("started");
    scene.store().execute("DELETE FROM leasehold_kv");
    assert_eq!(run.end().code, 121);
    assert_eq!(scene.told("lost")["reason"], "RecordGone");
    assert_eq!(scene.told("released")["how"], "Lost");
}

#[test]
fn a_descriptor_that_was_inherited_is_written_to() {
    let scene = Scene::new();
    let run = in_shell(&scene, &["--events", "3"], &["true"], "3>>events.jsonl");
    assert_eq!(run.end().code, 0);
    assert_eq!(scene.events().last().unwrap()["event"], "released");
}

/// A write to a pipe that is full waits until somebody reads.
#[test]
fn whoever_does_not_listen_holds_up_nothing() {
    let scene = Scene::new();
    let mut pipe = FullPipe::new(&scene);
    let go = "until [ -e go ]; do sleep 0.02; done; exit 4";
    let run = scene.run_sh(&["--events", "pipe"], go);
    run.says("acquired, term 1");
    let first = scene.store().row().unwrap();
    let last = until("two ttls", || {
        scene.store().row().filter(|row| row.written > first.written + 2 * TTL)
    });
    assert_eq!((last.kind, last.token), (Kind::Held, first.token));
    assert!(!pipe.takes_more(), "nothing was read");
    fs::write(scene.path("go"), "").unwrap();
    let ended = run.end();
    ended.expect(4, "acquired, term 1");
    assert!(!ended.stderr.contains("lost"), "{ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

#[test]
fn events_that_nobody_could_get_are_refused_before_anything_starts() {
    let scene = Scene::new();
    assert!(Command::new("mkfifo").arg(scene.path("pipe")).status().unwrap().success());
    for (target, says) in [
        ("987", "there is no such descriptor: redirect it, like 987>>events.jsonl"),
        ("pipe", "nobody reads that pipe"),
        ("no/such/folder", "name a file that can be written"),
    ] {
        let ended = scene.run(&["--events", target], &["echo", "ran"]).end();
        ended.expect(78, says);
        assert_eq!(ended.stdout, "", "{ended:?}");
    }
}

/// Its own offset would be that of nobody else, and lines would be written over each other.
#[test]
fn a_file_that_is_not_appended_to_is_refused() {
    let scene = Scene::new();
    refused(&scene, "3", "3>events.jsonl", "3>>");
    assert_eq!(fs::read(scene.path("events.jsonl")).unwrap(), b"");
}

#[test]
fn a_descriptor_that_is_open_for_reading_is_refused_and_its_file_stays() {
    let scene = Scene::new();
    fs::write(scene.path("input"), "hello\n").unwrap();
    refused(&scene, "3", "3<input", "it is open for reading only");
    assert_eq!(fs::read(scene.path("input")).unwrap(), b"hello\n");
}

#[test]
fn the_commands_stdout_is_refused_by_any_number() {
    let scene = Scene::new();
    let says = "that is the command's stdout";
    refused(&scene, "1", "", says);
    refused(&scene, "3", "3>&1", says);
    refused(&scene, "3", ">>said 3>>said", says);
    assert_eq!(fs::read(scene.path("said")).unwrap(), b"");
    refused(&scene, "1", "> >(cat >piped)", says);
    refused(&scene, "3", "> >(cat >piped) 3>&1", says);
    until("the end of those that read", || scene.is_deserted().then_some(()));
    assert_eq!(fs::read(scene.path("piped")).unwrap(), b"");
}

/// Also where we would have opened something by that number ourselves.
#[test]
fn a_descriptor_that_is_not_open_is_refused_however_small() {
    let scene = Scene::new();
    for number in 3..=12 {
        let says = format!("there is no such descriptor: redirect it, like {number}>>");
        refused(&scene, &number.to_string(), &format!("{number}>&-"), &says);
    }
}

/// Nothing runs, and there is not even a store.
#[track_caller]
fn refused(scene: &Scene, events: &str, redirection: &str, says: &str) {
    let ended = in_shell(scene, &["--events", events], &["echo", "ran"], redirection).end();
    ended.expect(78, says);
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert!(!scene.store().path().exists(), "{ended:?}");
}

/// `leasehold run`, started by a shell with this redirection.
fn in_shell(scene: &Scene, options: &[&str], command: &[&str], redirection: &str) -> Started {
    let run = scene.command(run_line(options, command));
    let line = format!("exec \"$@\" {redirection}");
    scene.start(&mut through(&["bash", "-c", &line, "bash"], &run))
}

/// A pipe by the name `pipe`, which has a reader who does not read, and is full.
struct FullPipe {
    _reader: File,
    writer: File,
}

impl FullPipe {
    fn new(scene: &Scene) -> Self {
        let path = scene.path("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut open = OpenOptions::new();
        open.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let reader = open.clone().read(true).open(&path).unwrap();
        let writer = open.write(true).open(&path).unwrap();
        let mut pipe = Self { _reader: reader, writer };
        while pipe.takes_more() {}
        pipe
    }

    /// Whether another byte goes into it; if so, it is in.
    fn takes_more(&mut self) -> bool {
        match self.writer.write(b".") {
            Ok(written) => written == 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}
