//! `leasehold fence`: what people and scripts see of a resource's guard.

use serde_json::json;

use crate::rig::{Ended, Scene};

const LINEAGE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const NONCE: &str = "1111111111111111";

#[test]
fn the_sql_makes_a_fence() {
    let scene = Scene::new();
    let sql = scene.leasehold(["fence", "sql"]).end();
    assert_eq!((sql.code, sql.stderr.as_str()), (0, ""));
    let database = rusqlite::Connection::open(scene.path("payments.db")).unwrap();
    database.execute_batch(&sql.stdout).unwrap();
    let init = fence(&scene, &["init", "./payments.db", "payments"]);
    assert_eq!(init.stdout, "./payments.db#payments created\n");
}

#[test]
fn a_resource_is_created_once_and_kept_as_it_is() {
    let scene = Scene::new();
    scene.payments();
    seal(&scene, &token(5)).expect(0, "");
    let before = scene.files();
    let init = fence(&scene, &["init", "./payments.db", "payments"]);
    assert_eq!(init.stdout, "./payments.db#payments was there already; nothing was changed\n");
    assert!(scene.files() == before);
}

#[test]
fn a_status_shows_the_floor_and_its_token() {
    let scene = Scene::new();
    let payments = scene.payments();
    let resource = ["status", "./payments.db", "payments"];
    let text = || fence(&scene, &resource).stdout;
    let json = || fence(&scene, &[&resource[..], &["--json"]].concat()).json();
    let name = "./payments.db#payments";
    assert_eq!(text(), format!("{name}: never sealed; nothing can be written yet\n"));
    let expected =
        json!({"resource": name, "floor": "0", "token": null, "seq": "0", "retired": false});
    assert_eq!(json(), expected);

    seal(&scene, &token(5)).expect(0, "");
    payments.execute(&format!(
        "INSERT INTO leasehold_admit VALUES ('payments', '{}', '', '')",
        token(5)
    ));
    assert_eq!(
        text(),
        format!("{name}: sealed by term 5, 1 writes accepted\ntoken {}\n", token(5))
    );
    let expected =
        json!({"resource": name, "floor": "5", "token": token(5), "seq": "1", "retired": false});
    assert_eq!(json(), expected);

    payments.execute("UPDATE leasehold_fence SET retired = 1");
    assert!(text().ends_with("retired: it takes no writes any more\n"));
    assert_eq!(json()["retired"], true);
}

#[test]
fn a_seal_answers_with_its_verdict() {
    let scene = Scene::new();
    let payments = scene.payments();
    for (token, code, verdict, floor, telling) in [
        (token(5), 0, "Sealed", None, ""),
        (token(5), 0, "AlreadySealed", None, ""),
        (token(4), 1, "Fenced", Some("5"), "a later holder has sealed it, with term 5"),
        (token(5).replace('1', "2"), 1, "Collision", Some("5"), "the lease store was rolled back"),
        (
            token(6).replace('a', "b"),
            1,
            "ForeignLineage",
            None,
            "check the store and the lease's name",
        ),
        (token(2_000_000), 1, "Implausible", None, "check the token"),
    ] {
        let ended = seal(&scene, &token);
        ended.expect(code, telling);
        if code == 0 {
            assert!(ended.stdout.ends_with("Sealed\n"), "{ended:?}");
        } else {
            assert!(ended.stderr.contains(&format!(": {verdict}: ")), "{ended:?}");
            assert_eq!(ended.stdout, "");
        }
        // Once more, with the same answer: only the first seal changed anything.
        let line = ["fence", "seal", "./payments.db", "payments", &token, "--json"];
        let ended = scene.leasehold(line).end();
        ended.expect(code, telling);
        let verdict = if verdict == "Sealed" { "AlreadySealed" } else { verdict };
        let resource = "./payments.db#payments";
        let expected =
            json!({"resource": resource, "token": token, "verdict": verdict, "floor": floor});
        assert_eq!(ended.json(), expected);
    }
    payments.execute("UPDATE leasehold_fence SET retired = 1");
    seal(&scene, &token(7)).expect(1, "Gone: the resource was retired");
}

#[test]
fn a_restored_resource_is_raised_to_the_leases_record() {
    let scene = Scene::new();
    let payments = scene.payments();
    let recover = |options: &[&str]| verb(&scene, "recover", &[&["job"], options].concat());
    recover(&[]).expect(1, "job: there is no record in ./leases.db: check the name and --store");
    assert!(!scene.store().path().exists(), "nothing is created");
    for _ in 0..3 {
        assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    }
    let record = scene.store().row().unwrap().token;
    seal(&scene, &format!("{}/1/{NONCE}", record.lineage)).expect(0, "");
    let recovered = recover(&[]);
    let expected = "./payments.db#payments: Recovered: the floor was 1, and is the record's term 3 \
                    now\n";
    assert_eq!((recovered.code, recovered.stdout.as_str()), (0, expected), "{recovered:?}");
    let expected = json!({
        "resource": "./payments.db#payments", "lease": "job", "token": record.to_string(),
        "verdict": "Kept", "floor": null,
    });
    assert_eq!(recover(&["--json"]).json(), expected);
    let floor = || fence(&scene, &["status", "./payments.db", "payments", "--json"]).json();
    assert_eq!(floor()["token"], record.to_string());

    seal(&scene, &format!("{}/9/{NONCE}", record.lineage)).expect(0, "");
    let kept = recover(&[]).stdout;
    assert!(kept.contains("the floor 9 stays; it is above the record's term 3"), "{kept}");
    assert_eq!(floor()["floor"], "9");

    payments.execute(&format!("UPDATE leasehold_fence SET lineage = '{LINEAGE}'"));
    let foreign = recover(&[]);
    foreign.expect(1, "ForeignLineage: the resource obeys another lease");
    foreign.expect(1, "`leasehold init NAME --after TOKEN`");
    payments.execute("UPDATE leasehold_fence SET retired = 1");
    recover(&[]).expect(1, "Gone: the resource was retired");
    payments.execute("DELETE FROM leasehold_fence");
    recover(&[]).expect(78, "NoResource: there is no such resource");
    scene.store().edit("edited");
    recover(&[]).expect(78, "it will not be overwritten");
}

#[test]
fn an_adoption_says_which_lineage_was_obeyed_and_which_is_now() {
    let scene = Scene::new();
    let payments = scene.payments();
    let adopt = |token: &str| verb(&scene, "adopt", &[token]);
    seal(&scene, &token(5)).expect(0, "");
    let other = token(2).replace('a', "b");
    let adopted = adopt(&other);
    let expected = format!(
        "./payments.db#payments: Adopted: it obeyed lineage {LINEAGE} (term 5), and obeys lineage \
         {} (term 2) now\n",
        LINEAGE.replace('a', "b")
    );
    assert_eq!((adopted.code, adopted.stdout), (0, expected), "{}", adopted.stderr);
    seal(&scene, &token(6)).expect(1, "ForeignLineage");
    let back = verb(&scene, "adopt", &[&token(6), "--json"]).json();
    let expected = json!({
        "resource": "./payments.db#payments", "token": token(6), "verdict": "Adopted",
        "floor": null, "before": other,
    });
    assert_eq!(back, expected);
    assert!(adopt(&token(7)).stdout.contains(&format!("lineage {LINEAGE}, floor 7 after 6")));
    assert!(adopt(&token(7)).stdout.ends_with("AlreadySealed\n"));
    adopt(&token(4)).expect(1, "Fenced: a later holder has sealed it, with term 7");
    adopt(&token(7).replace('1', "2")).expect(1, "Collision: another holder has sealed it");
    adopt("7").expect(78, "\"7\": not a token");
    payments.execute("UPDATE leasehold_fence SET retired = 1");
    adopt(&token(8)).expect(1, "Gone: the resource was retired");
    payments.execute("DELETE FROM leasehold_fence");
    adopt(&token(8)).expect(78, "NoResource: there is no such resource");
}

#[test]
fn a_retired_resource_takes_no_writes_any_more() {
    let scene = Scene::new();
    let payments = scene.payments();
    let retire = |token: &str| verb(&scene, "retire", &[token]);
    retire(&token(5)).expect(1, "NotSealed: no token has sealed it");
    seal(&scene, &token(5)).expect(0, "");
    retire(&token(4)).expect(1, "Fenced: a later holder has sealed it, with term 5");
    retire(&token(6)).expect(1, "NotSealed: the last seal is that of term 5");
    retire(&token(5).replace('1', "2")).expect(1, "Collision");
    retire(&token(5).replace('a', "b")).expect(1, "ForeignLineage");
    let retired = retire(&token(5));
    let expected = "./payments.db#payments: Retired: it takes no writes any more\n";
    assert_eq!((retired.code, retired.stdout.as_str()), (0, expected), "{retired:?}");
    assert!(retire(&token(5)).stdout.contains("AlreadyRetired"));
    let gone = verb(&scene, "retire", &[&token(6), "--json"]);
    gone.expect(1, "Gone: the resource was retired");
    let expected = json!({
        "resource": "./payments.db#payments", "token": token(6), "verdict": "Gone", "floor": "5",
    });
    assert_eq!(gone.json(), expected);
    seal(&scene, &token(6)).expect(1, "Gone");
    payments.execute("DELETE FROM leasehold_fence");
    retire(&token(5)).expect(78, "NoResource");
}

fn fence(scene: &Scene, arguments: &[&str]) -> Ended {
    let ended = scene.leasehold([&["fence"], arguments].concat()).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    ended
}

fn seal(scene: &Scene, token: &str) -> Ended {
    verb(scene, "seal", &[token])
}

/// With the lease store of the scene, for those that read it.
fn verb(scene: &Scene, verb: &str, arguments: &[&str]) -> Ended {
    let line = [&["fence", verb, "./payments.db", "payments"], arguments].concat();
    scene.start(scene.command(line).env("LEASEHOLD_STORE", "./leases.db")).end()
}

fn token(term: u64) -> String {
    format!("{LINEAGE}/{term}/{NONCE}")
}
