//! What an operator does to a lease from outside: hand-off, release by force, a lost record put
//! back.

use std::fs;
use std::process::Stdio;

use leasehold_core::record::{self, Kind, LeaseRecord};
use rustix::process::Signal;
use serde_json::json;

use crate::rig::{Ended, LEASE, Scene, Started, TTL, freeze, leasehold, now, signal, text, until};

#[test]
fn a_hand_off_goes_to_the_one_named_and_passes_the_others_by() {
    let scene = Scene::new();
    // A ttl at which the one named does not miss the grace on a busy machine.
    let run = |label: &str, script: &str| {
        let line = "run job --store ./leases.db --ttl 9s --grace 500ms --holder".split(' ');
        scene.leasehold(line.chain([label, "--", "sh", "-c", script]))
    };
    let holder = run("web-1", LOGS_ITS_END);
    holder.says("acquired, term 1");
    let third = run("web-3", "echo third >>log");
    third.says("waiting");
    let heir = run("web-2", "echo heir >>log; until [ -e go ]; do sleep 0.02; done");
    heir.says("waiting");
    let handed = operate(&scene, "handoff", &["--to", "web-2", "--wait", "30s", "--json"]);
    handed
        .expect(0, "web-1, term 1, is asked to hand over to web-2, and hears of it within 9.000 s");
    let expected = json!({
        "name": LEASE, "store": "./leases.db", "to": "web-2", "asked": true, "handed_over": true,
        "state": "held", "holder": "web-2", "term": "2", "ttl_ms": 9000,
    });
    assert_eq!(handed.json(), expected);
    holder.end().expect(120, "asked to hand over");
    assert!(!third.stderr().contains("acquired"), "{}", third.stderr());
    fs::write(scene.path("go"), "").unwrap();
    heir.end().expect(0, "acquired, term 2");
    third.end().expect(0, "acquired, term 3");
    assert_eq!(text(&scene.path("log")), "told to stop\nheir\nthird\n");
}

#[test]
fn a_wish_for_somebody_who_does_not_wait_leaves_the_lease_to_everybody() {
    let scene = Scene::new();
    let holder = holder(&scene);
    let other = waiter(&scene, "web-3", "true");
    let handed = operate(&scene, "handoff", &["--to", "web-2", "--wait", "100ms"]);
    handed.expect(124, "not handed over within --wait: see whether web-2 is waiting for it");
    assert!(handed.stdout.starts_with("job: "), "it says how it stands: {handed:?}");
    lost(holder, "asked to hand over");
    other.end().expect(0, "acquired, term 2");
}

#[test]
fn a_wish_is_written_and_not_waited_for_unless_one_asks_for_that() {
    let scene = Scene::new();
    let holder = holder(&scene);
    let heir = waiter(&scene, "web-2", "true");
    let asked = operate(&scene, "handoff", &["--to", "web-2"]);
    asked.expect(0, "");
    assert!(asked.stdout.starts_with("job: web-1, term 1, is asked to hand over to web-2"));
    lost(holder, "asked to hand over");
    heir.end().expect(0, "acquired, term 2");
}

/// It did renew late; but why is said in its own words.
#[test]
fn a_renewal_that_finds_an_operators_word_is_not_called_late() {
    for verb in ["handoff", "release"] {
        let scene = Scene::new();
        // A ttl at which no honest renewal is late on a busy machine.
        let holder = scene.run(&["--ttl", "9s", "--holder", "web-1"], &["sleep", "1000"]);
        holder.says("acquired, term 1");
        let (done, why) = match verb {
            "handoff" => (operate(&scene, verb, &["--to", "web-2"]), "asked to hand over"),
            _ => (release(&scene, &["--holder", "web-1"]), "somebody released it by force"),
        };
        done.expect(0, "");
        holder.says(why);
        assert!(!holder.stderr().contains("not renewed yet"), "{}", holder.stderr());
        lost(holder, why);
    }
}

/// A wish changes the record, as a renewal does; and yet nobody is there.
#[test]
fn wishes_to_a_dead_holder_do_not_keep_others_waiting() {
    let scene = Scene::new();
    let store = scene.store();
    let holder = holder(&scene);
    let other = waiter(&scene, "web-3", "until [ -e go ]; do sleep 0.02; done");
    let command = holder.tree().into_iter().map(|process| process.pid);
    let all: Vec<_> = [holder.front(), holder.keeper()].into_iter().chain(command).collect();
    freeze(&all, &[&store]);
    let dead = now();
    all.iter().for_each(|pid| signal(*pid, Signal::KILL));
    let mut next = dead;
    let taken = until("a takeover", || {
        if now() >= next {
            next = now() + TTL / 3;
            // Once the record is old enough, it is refused.
            operate(&scene, "handoff", &["--to", "nobody"]);
        }
        store.row().filter(|row| row.term() > 1)
    });
    assert!(taken.written < dead + 3 * TTL, "dead at {dead:?}, {taken:?}");
    fs::write(scene.path("go"), "").unwrap();
    other.end();
}

#[test]
fn a_hand_off_to_the_holder_itself_is_done_already() {
    let scene = Scene::new();
    let _holder = holder(&scene);
    let token = scene.store().row().unwrap().token;
    let done = operate(&scene, "handoff", &["--to", "web-1"]);
    done.expect(0, "");
    assert!(done.stdout.ends_with(": web-1 holds it already, nothing was changed\n"), "{done:?}");
    let json = operate(&scene, "handoff", &["--to", "web-1", "--json"]).json();
    assert_eq!((&json["asked"], &json["handed_over"]), (&json!(false), &json!(true)));
    assert_eq!(scene.store().row().unwrap().token, token);
}

#[test]
fn a_lease_that_nobody_holds_cannot_be_handed_over() {
    let scene = Scene::new();
    let handoff = || operate(&scene, "handoff", &["--to", "web-2"]);
    handoff().expect(1, "check the name and the store; ./leases.db does not exist");
    assert!(!scene.store().path().exists(), "nothing is created");
    let holder = holder(&scene);
    drop(holder);
    until("the end of its processes", || scene.is_deserted().then_some(()));
    let written = "UPDATE leasehold_kv SET written = written - 60000";
    scene.store().execute(written);
    let before = scene.files();
    handoff().expect(1, "was held by web-1, and has run out");
    assert!(scene.files() == before, "a wish would make the record look young");
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    handoff().expect(1, "nobody holds the lease: there is nothing to hand over");
}

#[test]
fn force_ends_the_holder_and_keeps_everybody_waiting_for_the_old_ttl() {
    let scene = Scene::new();
    let store = scene.store();
    let holder = holder(&scene);
    let other = waiter(&scene, "web-2", "until [ -e go ]; do sleep 0.02; done");
    let forced = release(&scene, &["--holder", "web-1", "--by", "ops@desk", "--json"]);
    forced.expect(0, "");
    let row = store.row().unwrap();
    let token = row.token.to_string();
    let expected = json!({
        "name": LEASE, "store": "./leases.db", "ended": "web-1", "ended_term": "1",
        "holder": "forced:ops@desk", "term": "2", "token": token, "reason": "it's stuck",
        "grace_ms": 3000, "exclusive": true,
    });
    assert_eq!(forced.json(), expected);
    assert_eq!((row.kind, row.term()), (Kind::Offered, 2));
    let value = store.value();
    let LeaseRecord { state, holder: label, .. } = record::decode(&value).unwrap();
    let note = state.note().map(|note| note.as_str());
    assert_eq!((label.as_str(), note), ("forced:ops@desk", Some("it's stuck")));

    lost(holder, "lost: somebody released it by force");
    other.says("acquired, term 3");
    let next = until("the next term", || store.row().filter(|row| row.term() == 3));
    assert!(next.written >= row.written + TTL, "{next:?} {row:?}");
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(other.end().code, 0);
}

#[test]
fn what_is_forced_now_is_free_at_once_and_says_what_that_waives() {
    let scene = Scene::new();
    let holder = holder(&scene);
    let forced = release(&scene, &["--holder", "web-1", "--now"]);
    forced.expect(0, "");
    let waived = "free at once: for up to 3.000 s (the old ttl) the command of web-1 may still \
                  run beside the next one, and only the fence protects";
    assert!(forced.stdout.contains(waived), "{forced:?}");
    let row = scene.store().row().unwrap();
    assert_eq!((row.kind, row.term()), (Kind::Released, 2));
    scene.run(&["--no-wait"], &["true"]).end().expect(0, "acquired, term 3");
    // By force, or by the next term, whichever it sees.
    lost(holder, "job: lost: somebody ");
}

#[test]
fn force_without_a_grace_says_so_to_scripts() {
    let scene = Scene::new();
    let _holder = holder(&scene);
    let json = release(&scene, &["--holder", "web-1", "--now", "--json"]).json();
    assert_eq!((&json["grace_ms"], &json["exclusive"]), (&json!(0), &json!(false)));
}

#[test]
fn force_asks_for_the_holders_name() {
    let scene = Scene::new();
    let holder = holder(&scene);
    let token = scene.store().row().unwrap().token;
    release(&scene, &[]).expect(
        78,
        "name the holder that is to be ended, as `leasehold status` shows it: leasehold release \
         --holder HOLDER job --store ./leases.db --force --reason 'it'\\''s stuck'\n",
    );
    release(&scene, &["--holder", "web-2"])
        .expect(1, "the lease is not theirs: the record is by web-1, term 1");
    let (ended, shown) = type_holder(&scene, "web-2");
    assert_eq!(ended.code, 1, "{shown}");
    assert!(shown.contains("job: held by web-1, term 1, ttl 3000 ms"), "{shown}");
    assert!(shown.contains("the lease is not theirs"), "{shown}");
    let (ended, shown) = type_holder(&scene, "");
    assert!(ended.code == 1 && shown.contains("nothing typed, nothing changed"), "{shown}");
    assert_eq!(scene.store().row().unwrap().token, token);

    let (ended, shown) = type_holder(&scene, "web-1");
    assert_eq!(ended.code, 0, "{shown}");
    assert!(shown.contains("web-1, term 1, was ended by force"), "{shown}");
    assert_eq!(scene.store().row().unwrap().term(), 2);
    lost(holder, "lost: somebody released it by force");
}

#[test]
fn a_release_that_cannot_be_meant_is_refused_with_the_way_on() {
    let scene = Scene::new();
    let line = |options: &[&str]| operate(&scene, "release", options);
    line(&[]).expect(78, "a holder releases its lease by itself: end its `leasehold run`");
    line(&["--force"]).expect(78, "say why, with --reason TEXT");
    release(&scene, &["--holder", "web-1"]).expect(1, "nobody ever held the lease in this store");
    let holder = holder(&scene);
    let quotes = ["--force", "--reason", "\"stuck\"", "--holder", "web-1"];
    line(&quotes).expect(78, "a note has at most 256 printable ASCII characters");
    line(&["--force", "--reason", "", "--holder", "web-1"]).expect(1, "say why");
    let by = ["--holder", "web-1", "--by", "the desk"];
    release(&scene, &by).expect(78, "--by \"the desk\": a label has 1 to 128 characters");
    drop(holder);
    until("the end of its processes", || scene.is_deserted().then_some(()));
    scene.store().edit("no record");
    let before = scene.files();
    release(&scene, &["--holder", "web-1"]).expect(78, "it will not be overwritten");
    operate(&scene, "handoff", &["--to", "web-2"]).expect(78, "it will not be overwritten");
    assert!(scene.files() == before);
}

#[test]
fn a_free_lease_needs_no_force() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["--holder", "web-1"], &["true"]).end().code, 0);
    let refused = "the lease is free already: nothing needs force";
    release(&scene, &["--holder", "web-1"]).expect(1, refused);
    let (ended, shown) = type_holder(&scene, "web-1");
    assert!(ended.code == 1 && shown.contains(refused), "{shown}");
}

const SEALED: [&str; 2] = ["--seal", "./payments.db#payments"];

#[test]
fn a_lost_record_put_back_goes_on_where_the_fence_stands() {
    let scene = Scene::new();
    scene.payments();
    let token = lose_the_store(&scene);
    let init = operate(&scene, "init", &["--after", &token, "--ttl", "3s"]);
    init.expect(0, "whoever held the lost record must have been stopped");
    let expected =
        format!("job: free, and goes on after term 1\ntoken {token}\nstore ./leases.db\n");
    assert_eq!(init.stdout, expected);
    let next = scene.run_sh(&SEALED, "echo $LEASEHOLD_TOKEN").end();
    next.expect(0, "acquired, term 2");
    let lineage = |token: &str| token.split('/').next().unwrap().to_owned();
    assert_eq!(lineage(&next.stdout), lineage(&token));

    let before = scene.files();
    let again = operate(&scene, "init", &["--after", &token]);
    again.expect(1, "there is a record, released by");
    assert!(!again.stderr.contains("adopt"), "{again:?}");
    assert!(scene.files() == before);
    operate(&scene, "init", &["--after", "1"]).expect(78, "--after \"1\": not a token");
    let ttl = ["--after", &token, "--ttl", "2days"];
    operate(&scene, "init", &ttl).expect(78, "a ttl is a whole number of milliseconds");
}

#[test]
fn a_run_that_misses_the_record_shows_the_way_to_put_it_back() {
    let scene = Scene::new();
    scene.payments();
    let token = lose_the_store(&scene);
    let run = || scene.run_sh(&SEALED, "echo $LEASEHOLD_TERM").end();
    let refused = run();
    refused.expect(78, "was sealed under one");
    assert_eq!(refused.stdout, "");
    assert!(!scene.store().path().exists() || scene.store().row().is_none(), "{refused:?}");
    let ready = refused.stderr.split('`').find(|words| words.starts_with("leasehold init "));
    let ready = ready.unwrap_or_else(|| panic!("no line to copy in {refused:?}"));
    assert!(ready.starts_with(&format!("leasehold init {LEASE} --after {token}")), "{ready}");
    let init = ready.split(' ').skip(1);
    scene.leasehold(init).end().expect(0, "");
    let next = run();
    assert_eq!((next.code, next.stdout.as_str()), (0, "2\n"), "{next:?}");
}

#[test]
fn a_record_that_was_begun_anew_can_only_be_adopted() {
    let scene = Scene::new();
    scene.payments();
    let token = lose_the_store(&scene);
    // Without the resource nobody notices.
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    let refused = scene.run_sh(&SEALED, "true").end();
    refused.expect(78, "`leasehold fence adopt` binds it to this lease");
    operate(&scene, "init", &["--after", &token])
        .expect(1, "bind each resource to its token with `leasehold fence adopt`");
    let new = scene.store().row().unwrap().token.to_string();
    let adopt = ["fence", "adopt", "./payments.db", "payments", &new];
    scene.leasehold(adopt).end().expect(0, "");
    assert_eq!(scene.run_sh(&SEALED, "true").end().code, 0);
}

/// The token that the resource was last sealed with, and no lease store any more.
fn lose_the_store(scene: &Scene) -> String {
    let sealed = scene.run_sh(&SEALED, "echo $LEASEHOLD_TOKEN").end();
    sealed.expect(0, "acquired, term 1");
    fs::remove_file(scene.store().path()).unwrap();
    sealed.stdout.trim().to_owned()
}

const LOGS_ITS_END: &str =
    "trap 'echo told to stop >>log; exit 0' TERM; while :; do sleep 0.02; done";

fn holder(scene: &Scene) -> Started {
    let holder = scene.run(&["--holder", "web-1"], &["sleep", "1000"]);
    holder.says("acquired, term 1");
    holder
}

fn lost(holder: Started, why: &str) {
    let ended = holder.end();
    assert!(matches!(ended.code, 120 | 121), "{ended:?}");
    assert!(ended.stderr.contains(why), "no {why:?} in {ended:?}");
}

fn waiter(scene: &Scene, label: &str, script: &str) -> Started {
    let waiter = scene.run_sh(&["--holder", label], script);
    waiter.says("waiting");
    waiter
}

fn operate(scene: &Scene, verb: &str, options: &[&str]) -> Ended {
    let line = [&[verb, LEASE, "--store", "./leases.db"], options].concat();
    scene.leasehold(line).end()
}

fn release(scene: &Scene, options: &[&str]) -> Ended {
    let force = ["--force", "--reason", "it's stuck"];
    operate(scene, "release", &[&force, options].concat())
}

/// The same on a terminal, where the holder's label is typed; and all that the terminal shows.
fn type_holder(scene: &Scene, label: &str) -> (Ended, String) {
    let program = leasehold().display().to_string();
    let line = format!("'{program}' release {LEASE} --store ./leases.db --force --reason stuck");
    fs::write(scene.path("typed"), format!("{label}\n")).unwrap();
    let mut terminal = std::process::Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.current_dir(scene.folder()).env_remove("LEASEHOLD_STORE");
    terminal.stdin(Stdio::from(fs::File::open(scene.path("typed")).unwrap()));
    let ended = scene.start(&mut terminal).end();
    let shown = ended.stdout.clone();
    (ended, shown)
}
