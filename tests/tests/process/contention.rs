//! Many contenders for one lease.

use std::thread;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{Scene, Started, TTL, now, signal, text, until};

#[test]
fn ten_contenders_run_one_after_the_other_with_growing_terms() {
    let scene = Scene::new();
    let script = r#"
        stamp() { read -r up idle </proc/uptime; echo "$1 $LEASEHOLD_TERM $up" >>log; }
        stamp begin; sleep 0.1; stamp end"#;
    let contenders: Vec<Started> = (0..10).map(|_| scene.run_sh(&[], script)).collect();
    for contender in contenders {
        assert_eq!(contender.end().code, 0);
    }

    // Each line was appended when it happened: their order is the order of events.
    let log = text(&scene.path("log"));
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 20, "{log}");
    // Hundredths of a second since the boot.
    let stamp = |line: &[&str]| line[2].replace('.', "").parse::<u64>().unwrap();
    let (mut last_term, mut last_stamp) = (0, 0);
    for pair in lines.chunks(2) {
        let [begin, end] = pair else { unreachable!("an even number") };
        assert_eq!((begin[0], end[0], begin[1]), ("begin", "end", end[1]), "two at once:\n{log}");
        let term: u64 = begin[1].parse().unwrap();
        assert!(term > last_term, "a term twice, or a smaller one:\n{log}");
        assert!(last_stamp <= stamp(begin) && stamp(begin) <= stamp(end), "two at once:\n{log}");
        (last_term, last_stamp) = (term, stamp(end));
    }
}

/// How often cron starts its process.
const EVERY: Duration = Duration::from_millis(200);

#[test]
fn processes_that_do_not_wait_take_over_once_a_killed_holder_is_proved_dead() {
    let scene = Scene::new();
    let store = scene.store();
    let holder = scene.run(&["--holder", "first"], &["sleep", "1000"]);
    let command = until("the command", || holder.tree().into_iter().find(|one| one.runs("sleep")));
    let cron = || {
        let next = now() + EVERY;
        let ended = scene.run_sh(&["--no-wait"], "echo $LEASEHOLD_TERM").end();
        if ended.code == 75 {
            thread::sleep(next.saturating_sub(now()));
        }
        ended
    };

    for _ in 0..8 {
        let ended = cron();
        ended.expect(75, "held by first, term 1");
        assert_eq!(ended.stdout, "");
    }

    for pid in [holder.front(), holder.keeper(), command.pid] {
        signal(pid, Signal::KILL);
    }
    until("the death of all of it", || holder.tree().is_empty().then_some(()));
    let renewed = store.row().unwrap();
    assert_eq!(renewed.kind, Kind::Held, "nobody could release it");
    let mut refused = 0;
    let took_over = until("a takeover", || {
        let ended = cron();
        if ended.code == 0 {
            return Some(ended);
        }
        ended.expect(75, "held by first, term 1");
        refused += 1;
        None
    });
    let ended_at = store.row().unwrap().written;
    assert_eq!(took_over.stdout, "2\n");
    assert!(refused > 0, "not while the holder could be alive");
    assert!(ended_at > renewed.written + TTL, "the ttl had run");
    assert!(ended_at < renewed.written + TTL + TTL / 2, "the job did not starve");

    let ended = cron();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "3\n"), "a released lease is free at once");
}
