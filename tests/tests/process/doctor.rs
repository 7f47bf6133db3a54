//! `leasehold doctor` on stores that are well, ill, out of reach, or not there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set};
use serde_json::json;
use tempfile::TempDir;

use crate::rig::{Ended, Scene, Started, now, until};

const FINDINGS: [&str; 14] = [
    "integrity",
    "durability",
    "writable",
    "file-system",
    "permissions",
    "space",
    "linearizable",
    "create-if-absent",
    "read-your-write",
    "conditional-write",
    "race",
    "versions",
    "several-keys",
    "store-clock",
];

#[test]
fn a_store_that_is_missing_is_not_created_unless_told_to() {
    let scene = Scene::new();
    let telling = "there is no store in ./leases.db, and none was created";
    doctor(&scene, &[]).expect(78, telling);
    doctor(&scene, &["--json"]).expect(78, "`leasehold doctor --create`");
    assert!(!scene.store().path().exists());
    let folder = ["doctor", "--store", "./no/such/leases.db", "--create"];
    scene.leasehold(folder).end().expect(78, "no/such does not exist; create it");

    doctor(&scene, &["--create"]).expect(0, "");
    doctor(&scene, &[]).expect(0, "");
}

#[test]
fn this_users_own_store_is_created_with_its_folder_when_told_to() {
    let scene = Scene::new();
    let doctor = |options: &[&str]| {
        let line = [&["doctor"], options].concat();
        let mut command = scene.command(line);
        let command = command.env("XDG_STATE_HOME", scene.path("state")).stdin(Stdio::null());
        scene.start(command).end()
    };
    doctor(&[]).expect(78, "state/leasehold/leases.db, and none was created");
    assert!(!scene.path("state").exists());
    doctor(&["--create"]).expect(0, "");
    assert!(scene.path("state/leasehold/leases.db").exists());
}

#[test]
fn a_database_without_leases_is_no_store_yet_and_stays_as_it_is() {
    let scene = Scene::new();
    let payments = scene.payments();
    let before = fs::read(payments.path()).unwrap();
    let ended = scene.leasehold(["doctor", "--store", "./payments.db"]).end();
    ended.expect(78, "./payments.db is a SQLite database of something else, and was left as it is");
    assert_eq!(fs::read(payments.path()).unwrap(), before);
}

#[test]
fn a_database_of_something_else_that_becomes_a_store_is_told_of() {
    let scene = Scene::new();
    scene.payments();
    let doctor = |option| scene.leasehold(["doctor", "--store", "./payments.db", option]).end();
    doctor("--create").expect(0, "something else; a store's tables were added to it");
    let again = doctor("--create");
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "{again:?}");
    // A file that has nothing in it is nobody else's.
    fs::write(scene.path("leases.db"), b"").unwrap();
    let own = scene.leasehold(["doctor", "--store", "./leases.db", "--create"]).end();
    assert_eq!((own.code, own.stderr.as_str()), (0, ""), "{own:?}");
}

#[test]
fn a_healthy_store_gets_a_line_for_each_finding_and_a_verdict() {
    let scene = healthy();
    let ended = doctor(&scene, &[]);
    ended.expect(0, "");
    assert_eq!(ended.stderr, "");
    for name in FINDINGS {
        let line = ended.stdout.lines().find(|line| line.get(5..).unwrap().starts_with(name));
        // The test's own folder may lie on a tmpfs.
        let known = name == "file-system" || line.is_some_and(|line| line.starts_with("ok   "));
        assert!(known, "no healthy {name} in {ended:?}");
    }
    let verdict = ended.stdout.lines().last().unwrap();
    assert!(verdict.starts_with("./leases.db: fit for leases"), "{ended:?}");
}

#[test]
fn the_same_report_is_one_line_of_json() {
    let scene = healthy();
    let report = doctor(&scene, &["--json"]).json();
    let keys: Vec<_> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ended", "findings", "store", "verdict"]);
    assert_eq!(report["store"], "./leases.db");
    assert_eq!(report["verdict"], "fit");
    assert_eq!(report["ended"], json!(null));
    let findings = report["findings"].as_array().unwrap();
    let names: Vec<_> = findings.iter().map(|finding| finding["name"].as_str().unwrap()).collect();
    assert_eq!(names, FINDINGS);
    let race = json!({
        "name": "race",
        "outcome": "holds",
        "saw": "of two writes at one version, at the same time, exactly one is applied",
        "advice": "",
    });
    assert!(findings.contains(&race), "{report}");
}

#[test]
fn beside_a_living_holder_it_finds_the_store_fit_and_touches_no_lease() {
    let scene = Scene::new();
    let holder = scene.run(&[], &["sleep", "1000"]);
    holder.says("acquired, term 1");
    for _ in 0..3 {
        doctor(&scene, &[]).expect(0, "");
        assert!(!holder.tree().is_empty(), "{}", holder.stderr());
    }
    let after = now();
    let renewed = until("a renewal", || scene.store().row().filter(|row| row.written > after));
    assert_eq!(renewed.term(), 1);
    assert!(!holder.stderr().contains("lost"), "{}", holder.stderr());
}

/// The second begins at once, or when it finds what the first has written.
#[test]
fn two_at_a_time_never_blame_a_healthy_store() {
    let scene = healthy();
    let begin = || scene.leasehold(["doctor", "--store", "./leases.db"]);
    for pair in 0..20 {
        let before = left_by_a_doctor(&scene);
        let first = begin();
        if pair % 2 == 0 {
            until("the first one's write", || (left_by_a_doctor(&scene) != before).then_some(()));
        }
        for ended in [begin(), first].map(Started::end) {
            assert!(!ended.stdout.contains("FAIL"), "{ended:?}");
            let disturbed = ended.stdout.ends_with("; run this one again, alone\n");
            assert_eq!(ended.code, if disturbed { 69 } else { 0 }, "{ended:?}");
        }
    }
    doctor(&scene, &[]).expect(0, "");
}

#[test]
fn its_help_says_that_it_may_be_run_beside_holders_and_what_its_codes_mean() {
    let help = Scene::new().leasehold(["doctor", "--help"]).end();
    help.expect(0, "");
    for telling in ["It may be run beside living holders", "1        not fit: a finding says FAIL"]
    {
        assert!(help.stdout.contains(telling), "no {telling:?} in {help:?}");
    }
}

#[test]
fn a_store_in_memory_is_fit_with_a_warning() {
    let scene = Scene::new();
    let memory = TempDir::new_in("/dev/shm").unwrap();
    let path = memory.path().join("leases.db");
    let ended = at(&scene, &path, &["--create"]);
    ended.expect(0, "");
    assert!(ended.stdout.contains("WARN file-system: nothing tells"), "{ended:?}");
    assert!(ended.stdout.contains("\n     after the loss of the file every lease"), "{ended:?}");
    assert!(ended.stdout.ends_with("fit for leases, with 1 warning\n"), "{ended:?}");
}

#[test]
fn a_store_that_every_user_may_write_to_or_replace_is_a_warning() {
    let scene = healthy();
    let path = scene.store().path().to_owned();
    let found = |telling: &str| {
        let ended = doctor(&scene, &[]);
        ended.expect(0, "");
        assert!(ended.stdout.contains("WARN permissions: every user"), "{ended:?}");
        assert!(ended.stdout.contains(telling), "no {telling:?} in {ended:?}");
    };
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    found("leases.db*");
    fs::set_permissions(&path, Permissions::from_mode(0o660)).unwrap();
    let shared = doctor(&scene, &[]);
    assert!(shared.stdout.contains("ok   permissions: only its owner and group"), "{shared:?}");
    fs::set_permissions(scene.folder(), Permissions::from_mode(0o777)).unwrap();
    found("may replace the file");
    fs::set_permissions(scene.folder(), Permissions::from_mode(0o1777)).unwrap();
    let sticky = doctor(&scene, &[]);
    assert!(sticky.stdout.contains("ok   permissions"), "{sticky:?}");
}

#[test]
fn a_read_only_store_is_unreachable() {
    let scene = healthy();
    fs::set_permissions(scene.store().path(), Permissions::from_mode(0o400)).unwrap();
    permissions_bind_what_this_thread_starts();
    doctor(&scene, &[]).expect(69, "is read-only for this user; give write permission on it");
}

#[test]
fn a_store_held_by_a_long_transaction_is_not_probed_to_the_end() {
    let scene = healthy();
    let lock = scene.store().open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ended = doctor(&scene, &[]);
    ended.expect(69, "");
    let telling = "./leases.db: not probed to the end: ";
    let verdict = ended.stdout.lines().last().unwrap();
    assert!(verdict.starts_with(telling), "{ended:?}");
    assert!(verdict.ends_with("end the long transaction on it"), "{ended:?}");
    let report = doctor(&scene, &["--json"]).json();
    assert_eq!(report["verdict"], "unreachable");
    assert!(report["ended"].as_str().unwrap().contains("stayed locked"), "{report}");
}

#[test]
fn a_damaged_page_is_found_and_the_file_is_not_written() {
    let scene = healthy();
    let store = scene.store();
    store.execute(
        "CREATE TABLE theirs (x);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)
             INSERT INTO theirs SELECT hex(randomblob(8)) FROM n;",
    );
    let mut bytes = fs::read(store.path()).unwrap();
    let end = bytes.len();
    bytes[end - 4096..].fill(0xA5);
    fs::write(store.path(), &bytes).unwrap();
    let ended = doctor(&scene, &[]);
    ended.expect(1, "");
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("FAIL integrity: "), "{ended:?}");
    assert!(lines[1].starts_with("     restore it, or name another file"), "{ended:?}");
    assert!(ended.stdout.contains("\nskip contract: nothing is written"), "{ended:?}");
    assert!(ended.stdout.ends_with("\n./leases.db: NOT fit for leases\n"), "{ended:?}");
    assert_eq!(doctor(&scene, &["--json"]).json()["verdict"], "unfit");
    assert!(fs::read(store.path()).unwrap() == bytes, "the file was written");
}

#[test]
fn what_cannot_be_opened_is_not_fit_in_the_words_of_run() {
    let scene = healthy();
    let store = scene.store();
    let mut bytes = fs::read(store.path()).unwrap();
    bytes[100..].fill(0xA5);
    fs::write(store.path(), &bytes).unwrap();
    fs::write(scene.path("letter.db"), "Dear reader, this is no database at all.\n").unwrap();
    for (store, code, telling) in [
        ("./leases.db", 1, "is damaged"),
        ("./letter.db", 1, "is no SQLite database, and was left as it is"),
        ("leases.db", 78, "write ./leases.db"),
    ] {
        let run = scene.leasehold(["run", "job", "--store", store, "--", "true"]).end();
        run.expect(78, telling);
        let doctor = scene.leasehold(["doctor", "--store", store]).end();
        assert_eq!((doctor.code, &doctor.stderr), (code, &run.stderr));
        assert_eq!(doctor.stdout, "");
    }
    assert_eq!(fs::read(scene.store().path()).unwrap(), bytes);
}

/// A scene with a store that has been used.
fn healthy() -> Scene {
    let scene = Scene::new();
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    scene
}

fn doctor(scene: &Scene, options: &[&str]) -> Ended {
    at(scene, Path::new("./leases.db"), options)
}

fn at(scene: &Scene, store: &Path, options: &[&str]) -> Ended {
    let line = [&["doctor", "--store", store.to_str().unwrap()], options].concat();
    scene.leasehold(line).end()
}

fn left_by_a_doctor(scene: &Scene) -> Option<String> {
    let select = "SELECT value FROM leasehold_kv WHERE key = 'doctor'";
    scene.store().open().query_row(select, [], |row| row.get(0)).ok()
}

/// The superuser's processes, too.
fn permissions_bind_what_this_thread_starts() {
    if capabilities(None).unwrap().effective.contains(CapabilitySet::SETPCAP) {
        for above in [CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH] {
            remove_capability_from_bounding_set(above).unwrap();
        }
    }
}
