//! What happens to the store under a holder's hands. The command is ended, the message says why,
//! and whatever is found in the store's place stays as it is.

use std::fs;

use crate::rig::{Scene, Started};

#[test]
fn a_store_deleted_under_the_holder_ends_the_command_and_is_not_created_anew() {
    let scene = Scene::new();
    scene.payments();
    let seal = ["--seal", "sqlite:payments.db#payments"];
    let holder = holder(&scene, &seal);
    let before = scene.store().row().unwrap().token;
    fs::remove_file(scene.store().path()).unwrap();
    lost(holder, "leases.db was deleted or moved while it was in use");
    assert!(!scene.store().path().exists());

    // A new run knows nothing of the old store and creates one: another lineage, whose terms
    // begin anew. That this does no harm is for the fence to see to.
    let other = scene.run_sh(&[], "echo $LEASEHOLD_TOKEN").end();
    assert_eq!(other.code, 0, "{other:?}");
    let after = scene.store().row().unwrap().token;
    assert_ne!(before.lineage, after.lineage);
    let fence = ["fence", "seal", "./payments.db", "payments", other.stdout.trim()];
    scene.leasehold(fence).end().expect(1, "ForeignLineage: the resource obeys another lease");
    let refused = scene.run_sh(&seal, "echo ran").end();
    refused.expect(78, "ForeignLineage: the resource obeys another lease");
    assert_eq!(refused.stdout, "");
}

#[test]
fn a_store_replaced_under_the_holder_ends_the_command_and_is_left_alone() {
    let scene = Scene::new();
    let another = ["run", "job", "--store", "./another.db", "--", "true"];
    assert_eq!(scene.leasehold(another).end().code, 0);
    let holder = holder(&scene, &[]);
    let another = fs::read(scene.path("another.db")).unwrap();
    fs::rename(scene.path("another.db"), scene.store().path()).unwrap();
    lost(holder, "leases.db was replaced while it was in use");
    assert_eq!(fs::read(scene.store().path()).unwrap(), another);
}

#[test]
fn a_record_edited_under_the_holder_ends_the_command_and_is_left_alone() {
    let scene = Scene::new();
    let holder = holder(&scene, &[]);
    let garbage = r#"{"format":1,"name":"job","somebody":"was here"}"#;
    scene.store().edit(garbage);
    lost(holder, "the record is not one that leasehold wrote (byte 26): somebody edited it");
    assert_eq!(scene.store().value(), garbage.as_bytes());

    let next = scene.run_sh(&[], "echo ran").end();
    next.expect(78, "restore it by hand, it will not be overwritten");
    assert_eq!(next.stdout, "");
    assert_eq!(scene.store().value(), garbage.as_bytes());
}

#[test]
fn a_record_deleted_under_the_holder_ends_the_command_and_is_not_created_anew() {
    let scene = Scene::new();
    let holder = holder(&scene, &[]);
    scene.store().execute("DELETE FROM leasehold_kv");
    lost(holder, "its record is gone from the store");
    assert!(scene.store().row().is_none());
}

fn holder(scene: &Scene, options: &[&str]) -> Started {
    let holder = scene.run(options, &["sleep", "1000"]);
    holder.says("acquired, term 1");
    holder
}

fn lost(holder: Started, why: &str) {
    let ended = holder.end();
    assert!(matches!(ended.code, 120 | 121), "{ended:?}");
    assert!(ended.stderr.contains(why), "no {why:?} in {ended:?}");
}
