//! `leasehold status`, for people and as JSON, for every state of a record.

use leasehold_core::label::{Label, Note};
use leasehold_core::record::{self, LeaseRecord, State};
use serde_json::{Value, json};

use crate::rig::{Ended, LEASE, Scene, Started, Store, until};

#[test]
fn a_lease_that_nobody_ever_held_is_absent() {
    let scene = Scene::new();
    assert_eq!(text(&scene), "job: never held\nstore ./leases.db, which does not exist yet\n");
    let absent = |exists| json!({"name": "job", "store": "./leases.db", "store_exists": exists, "state": "absent"});
    assert_eq!(status(&scene, &["--json"]).json(), absent(false));
    assert!(!scene.path("leases.db").exists(), "a question creates nothing");

    scene.leasehold(["run", "other", "--store", "./leases.db", "--", "true"]).end();
    assert_eq!(text(&scene), "job: never held\nstore ./leases.db\n");
    assert_eq!(status(&scene, &["--json"]).json(), absent(true));
}

#[test]
fn a_held_lease_names_its_holder_and_when_it_was_renewed() {
    let scene = Scene::new();
    let _holder = holder(&scene);
    let token = scene.store().row().unwrap().token;
    let text = text(&scene);
    assert!(text.starts_with("job: held by web-1, term 1, ttl 3000 ms, renewed "), "{text}");
    let found = status(&scene, &["--json"]).json();
    let instance = found["instance"].as_str().unwrap();
    let rest = format!(" s ago\ntoken {token}\ninstance {instance}\nstore ./leases.db\n");
    assert!(text.ends_with(&rest), "{text}");
    assert!(found["age_ms"].as_u64().unwrap() < 3000, "{found}");
    assert_eq!(found["instance"].as_str().unwrap().len(), 16, "{found}");
    let expected = json!({
        "name": "job",
        "store": "./leases.db",
        "state": "held",
        "holder": "web-1",
        "instance": found["instance"],
        "term": "1",
        "expired": false,
        "asked_to": "",
        "token": token.to_string(),
        "ttl_ms": 3000,
        "age_ms": found["age_ms"],
        "holder_rebooted": false,
        "to": "",
        "note": "",
    });
    assert_eq!(found, expected);
}

#[test]
fn a_released_lease_is_free_and_names_its_last_holder() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["--holder", "web-1"], &["true"]).end().code, 0);
    let text = text(&scene);
    assert!(text.starts_with("job: free, last held by web-1, term 1, given up "), "{text}");
    has(&scene, &[("state", json!("released")), ("term", json!("1")), ("holder", json!("web-1"))]);
}

#[test]
fn an_offered_lease_names_whom_it_is_offered_to() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["--ttl", "1m", "--holder", "web-1"], &["true"]).end().code, 0);
    let store = scene.store();
    offer(&store, "web-2");
    let offered = text(&scene);
    assert!(
        offered.starts_with("job: offered to web-2 by web-1, term 1, grace 60000 ms"),
        "{offered}"
    );
    has(&scene, &[("state", json!("offered")), ("to", json!("web-2")), ("note", json!(""))]);
    has(&scene, &[("expired", json!(false))]);
    age(&store);
    let offered = text(&scene);
    let over = "job: free, offered by web-1 to web-2, who did not take it, term 1, given up ";
    assert!(offered.starts_with(over), "{offered}");
    has(&scene, &[("expired", json!(true))]);
}

#[test]
fn a_lease_ended_by_force_says_by_whom_why_and_when_it_is_free() {
    let scene = Scene::new();
    let store = scene.store();
    let force = |options: &[&str]| {
        let line = "release job --store ./leases.db --force --holder web-1 --by ops@desk --reason";
        let line = line.split(' ').chain(["disk full"]).chain(options.iter().copied());
        scene.leasehold(line).end().expect(0, "");
    };
    dead_holder(&scene, 1);
    force(&[]);
    let forced = text(&scene);
    assert!(forced.starts_with("job: free in "), "{forced}");
    let words = " s, ended by force by ops@desk: disk full, term 2, ";
    assert!(forced.contains(words), "{forced}");
    has(&scene, &[("to", json!("")), ("note", json!("disk full"))]);
    age(&store);
    let free = "job: free, ended by force by ops@desk: disk full, term ";
    assert!(text(&scene).starts_with(free), "{}", text(&scene));
    has(&scene, &[("expired", json!(true))]);

    dead_holder(&scene, 3);
    force(&["--now"]);
    assert!(text(&scene).starts_with(free), "{}", text(&scene));
    has(&scene, &[("state", json!("released")), ("expired", json!(false))]);
}

#[test]
fn a_lease_put_back_says_by_whom_and_after_which_term() {
    let scene = Scene::new();
    let token = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/7/1111111111111111";
    let line = ["init", LEASE, "--store", "./leases.db", "--after", token];
    let init = scene.start(scene.command(line).env("USER", "ops")).end();
    init.expect(0, "");
    let put_back = text(&scene);
    assert!(put_back.starts_with("job: free, put back by ops@"), "{put_back}");
    assert!(put_back.contains(" after term 7, "), "{put_back}");
}

#[test]
fn a_wish_for_a_hand_off_is_shown_until_the_holder_hears_of_it() {
    let scene = Scene::new();
    dead_holder(&scene, 1);
    let asked = ["handoff", LEASE, "--store", "./leases.db", "--to", "web-2"];
    scene.leasehold(asked).end().expect(0, "");
    let asked = text(&scene);
    assert!(
        asked.starts_with("job: held by web-1, asked to hand over to web-2, term 1"),
        "{asked}"
    );
    has(&scene, &[("asked_to", json!("web-2")), ("to", json!(""))]);
}

#[test]
fn a_lease_that_was_not_renewed_in_time_has_run_out() {
    let scene = Scene::new();
    let holder = holder(&scene);
    drop(holder);
    until("the end of its processes", || scene.is_deserted().then_some(()));
    assert!(text(&scene).starts_with("job: held by web-1"));
    age(&scene.store());
    let text = text(&scene);
    assert!(text.starts_with("job: was held by web-1, and has run out, term 1"), "{text}");
    let found = status(&scene, &["--json"]).json();
    assert_eq!(found["state"], "held");
    assert!(found["age_ms"].as_u64().unwrap() >= 60_000, "{found}");
}

#[test]
fn a_lease_of_an_earlier_boot_says_so() {
    let scene = Scene::new();
    drop(holder(&scene));
    until("the end of its processes", || scene.is_deserted().then_some(()));
    scene.store().execute(
        "UPDATE leasehold_kv SET boot = '00000000-1111-4222-8333-444444444444/time:[4026531834]'",
    );
    let text = text(&scene);
    assert!(text.contains(", its machine has rebooted since\n"), "{text}");
    has(&scene, &[("holder_rebooted", json!(true)), ("age_ms", Value::Null)]);
}

#[test]
fn without_a_name_every_lease_is_listed_in_the_order_of_their_names() {
    let scene = Scene::new();
    let list = |options: &[&str]| {
        let line = [&["status", "--store", "./leases.db"], options].concat();
        let ended = scene.leasehold(line).end();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
        ended
    };
    let nothing = "no lease was ever held\nstore ./leases.db, which does not exist yet\n";
    assert_eq!(list(&[]).stdout, nothing);
    assert_eq!(list(&["--json"]).json(), json!([]));
    assert!(!scene.path("leases.db").exists(), "a question creates nothing");

    for name in ["zeta", "alpha", "beta"] {
        let line = ["run", name, "--store", "./leases.db", "--holder", "web-2", "--", "true"];
        assert_eq!(scene.leasehold(line).end().code, 0);
    }
    let _holder = holder(&scene);
    // What is no record hides no other, and what is no lease is not listed.
    scene.store().execute(
        "UPDATE leasehold_kv SET value = 'edited' WHERE key = 'lease/beta';
         INSERT INTO leasehold_kv SELECT 'saga/1', value, written, boot FROM leasehold_kv
         WHERE key = 'lease/alpha'",
    );
    let text = list(&[]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    let begins = [
        "alpha: free, last held by web-2, term 1, ",
        "beta: unreadable: the record is not one that leasehold wrote (byte 0): ",
        "job: held by web-1, term 1, ttl 3000 ms, renewed ",
        "zeta: free, last held by web-2, term 1, ",
        "store ./leases.db",
    ];
    assert_eq!(lines.len(), begins.len(), "{text}");
    assert!(lines.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{text}");

    let all = list(&["--json"]).json();
    let field = |name: &str| -> Vec<&Value> {
        all.as_array().unwrap().iter().map(|lease| &lease[name]).collect()
    };
    assert_eq!(field("name"), ["alpha", "beta", "job", "zeta"]);
    assert_eq!(field("state"), ["released", "unreadable", "held", "released"]);
    let one = status(&scene, &["--json"]).json();
    let keys = |lease: &Value| lease.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&all[2]), keys(&one), "as `status NAME` has it");
}

fn holder(scene: &Scene) -> Started {
    let holder = scene.run(&["--holder", "web-1"], &["sleep", "1000"]);
    holder.says("acquired, term 1");
    holder
}

/// Leaves the record of a holder whose ttl a busy machine does not use up.
fn dead_holder(scene: &Scene, term: u64) {
    let holder = scene.run(&["--ttl", "1m", "--holder", "web-1"], &["sleep", "1000"]);
    holder.says(&format!("acquired, term {term}"));
    drop(holder);
    until("the end of its processes", || scene.is_deserted().then_some(()));
}

/// Makes the record look as if it were written two minutes earlier.
fn age(store: &Store) {
    store.execute("UPDATE leasehold_kv SET written = written - 120000");
}

/// Turns the record into an offer; no command here makes one.
fn offer(store: &Store, to: &str) {
    let value = store.value();
    let to = Some(Label::new(to).unwrap());
    let state = State::Offered { to, note: Note::EMPTY };
    let offered = LeaseRecord { state, ..record::decode(&value).unwrap() };
    let mut buffer = [0; record::MAX_LEN];
    let bytes = record::encode(&offered, &mut buffer).unwrap();
    store.edit(str::from_utf8(bytes).unwrap());
}

fn status(scene: &Scene, options: &[&str]) -> Ended {
    let line = [&["status", LEASE, "--store", "./leases.db"], options].concat();
    let ended = scene.leasehold(line).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    ended
}

fn text(scene: &Scene) -> String {
    status(scene, &[]).stdout
}

#[track_caller]
fn has(scene: &Scene, fields: &[(&str, Value)]) {
    let found = status(scene, &["--json"]).json();
    for (name, expected) in fields {
        assert_eq!(found[name], *expected, "{name} in {found}");
    }
}
