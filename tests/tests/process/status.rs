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
    assert!(
        text.starts_with("job: free, last held by web-1, term 1, ttl 3000 ms, given up "),
        "{text}"
    );
    has(&scene, &[("state", json!("released")), ("term", json!("1")), ("holder", json!("web-1"))]);
}

#[test]
fn an_offered_lease_names_whom_it_is_offered_to() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["--holder", "web-1"], &["true"]).end().code, 0);
    let store = scene.store();
    offer(&store, Some("web-2"), "");
    let offered = text(&scene);
    assert!(
        offered.starts_with("job: offered to web-2 by web-1, term 1, grace 3000 ms"),
        "{offered}"
    );
    has(&scene, &[("state", json!("offered")), ("to", json!("web-2")), ("note", json!(""))]);
    offer(&store, None, "forced: disk full");
    let offered = text(&scene);
    assert!(offered.starts_with("job: free in "), "{offered}");
    assert!(offered.contains("ended by force by web-1: forced: disk full, term 1"), "{offered}");
    has(&scene, &[("to", json!("")), ("note", json!("forced: disk full"))]);
}

#[test]
fn a_lease_that_was_not_renewed_in_time_has_run_out() {
    let scene = Scene::new();
    let holder = holder(&scene);
    drop(holder);
    until("the end of its processes", || scene.is_deserted().then_some(()));
    assert!(text(&scene).starts_with("job: held by web-1"));
    scene.store().execute("UPDATE leasehold_kv SET written = written - 60000");
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

/// Turns the record into an offer; no command here makes one.
fn offer(store: &Store, to: Option<&str>, note: &str) {
    let value = store.value();
    let to = to.map(|to| Label::new(to).unwrap());
    let state = State::Offered { to, note: Note::new(note).unwrap() };
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
