//! What else `run` may be told: how long to hold, how long to run, to begin anew, and to tell.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::fs::OFlags;
use rustix::process::Signal;
use serde_json::Value;

use crate::rig::{
    LEASE, Row, Scene, Started, TTL, freeze, now, run_line, signal, text, through, until, wake,
};

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

#[test]
fn a_program_is_told_what_happens_one_object_a_line() {
    let scene = Scene::new();
    let go = "until [ -e go ]; do sleep 0.02; done; exit 4";
    let run = scene.run_sh(&["--events", "events.jsonl", "--holder", "web-1"], go);
    let renewed = told(&scene, "renewed");
    let acquired = told(&scene, "acquired");
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
    let order: Vec<_> = events(&scene).iter().map(|line| line["event"].clone()).collect();
    assert_eq!(order[..3], ["elected", "acquired", "started"]);
    assert_eq!(order[order.len() - 2..], ["exited", "released"]);
    assert_eq!(told(&scene, "exited")["code"], 4);
    assert_eq!(told(&scene, "released")["how"], "Released");
    assert!(!order.contains(&"lost".into()), "{order:?}");
}

#[test]
fn a_program_is_told_why_the_lease_was_lost() {
    let scene = Scene::new();
    let run = scene.run(&["--events", "events.jsonl"], &["sleep", "1000"]);
    told(&scene, "started");
    scene.store().execute("DELETE FROM leasehold_kv");
    assert_eq!(run.end().code, 121);
    assert_eq!(told(&scene, "lost")["reason"], "RecordGone");
    assert_eq!(told(&scene, "released")["how"], "Lost");
}

#[test]
fn a_descriptor_that_was_inherited_is_written_to() {
    let scene = Scene::new();
    let run = in_shell(&scene, &["--events", "3"], &["true"], "3>>events.jsonl");
    assert_eq!(run.end().code, 0);
    assert_eq!(events(&scene).last().unwrap()["event"], "released");
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
        match self.writer.write(&[b'.']) {
            Ok(written) => written == 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
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

/// `leasehold run`, started by a shell with this redirection.
fn in_shell(scene: &Scene, options: &[&str], command: &[&str], redirection: &str) -> Started {
    let run = scene.command(run_line(options, command));
    let line = format!("exec \"$@\" {redirection}");
    scene.start(&mut through(&["bash", "-c", &line, "bash"], &run))
}

fn events(scene: &Scene) -> Vec<Value> {
    let lines = text(&scene.path("events.jsonl"));
    lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Waits for the first line of this kind.
fn told(scene: &Scene, event: &str) -> Value {
    until(event, || {
        let whole = text(&scene.path("events.jsonl")).ends_with('\n');
        events_if(scene, whole).into_iter().find(|line| line["event"] == event)
    })
}

fn events_if(scene: &Scene, whole: bool) -> Vec<Value> {
    if whole { events(scene) } else { Vec::new() }
}
