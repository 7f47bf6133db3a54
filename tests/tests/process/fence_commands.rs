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

fn fence(scene: &Scene, arguments: &[&str]) -> Ended {
    let ended = scene.leasehold([&["fence"], arguments].concat()).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    ended
}

fn seal(scene: &Scene, token: &str) -> Ended {
    scene.leasehold(["fence", "seal", "./payments.db", "payments", token]).end()
}

fn token(term: u64) -> String {
    format!("{LINEAGE}/{term}/{NONCE}")
}
