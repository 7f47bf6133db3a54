//! Whatever is wrong is refused with a code and words that say what to do, prints no result, and
//! leaves every file as it was.

use std::fs;

use crate::rig::{Ended, LEASE, Scene, run_line, through};

/// Stands for a command that must not run.
const COMMAND: [&str; 2] = ["echo", "ran"];
const LETTER: &str = "Dear reader, this is no database at all.\n";

#[test]
fn a_bad_store_is_refused() {
    let scene = Scene::new();
    fs::create_dir(scene.path("folder")).unwrap();
    fs::write(scene.path("letter.db"), LETTER).unwrap();
    database(&scene, "newer.db", &newer("kv"));
    database(&scene, "foreign.db", "CREATE TABLE leasehold_kv(something TEXT)");
    let nothing = "name another file";
    for (store, code, telling) in [
        ("", 78, "use sqlite:PATH or ./PATH"),
        ("leases.db", 78, "write ./leases.db or sqlite:leases.db"),
        (
            "etcd:localhost",
            78,
            "the store scheme \"etcd\" is unknown to this build; use sqlite:PATH",
        ),
        ("memory:", 78, "no other process sees it; use sqlite:PATH"),
        ("sqlite::memory:", 78, "no other process sees it; name a file"),
        ("sqlite:", 78, "names no file; use sqlite:PATH"),
        ("sqlite://host/leases.db", 78, "write sqlite:///ABSOLUTE/PATH or sqlite:PATH"),
        ("sqlite:leases.db?mode=ro", 78, "the option \"mode=ro\" of a sqlite: store is unknown"),
        ("sqlite:leases.db#job", 78, "a store has no parts"),
        ("sqlite:100%.db", 78, "for a percent sign write %25"),
        ("./folder", 78, "is a directory; name a file in it"),
        ("/dev/null", 78, "is no regular file; name another"),
        ("./letter.db", 78, nothing),
        (
            "./newer.db",
            78,
            "was written by a newer leasehold (schema 99, this one knows 1); update this program",
        ),
        ("./no/such/leases.db", 69, "does not exist; create it, or name another file"),
    ] {
        refused(&scene, &["status", LEASE, "--store", store], code, telling);
        refused(&scene, &["run", LEASE, "--store", store, "--", "echo", "ran"], code, telling);
    }
    // It becomes a database with a log before its table is looked at, and keeps all it had.
    let status = scene.leasehold(["status", LEASE, "--store", "./foreign.db"]).end();
    status.expect(78, nothing);
}

#[test]
fn a_record_that_cannot_be_read_is_refused_and_stays() {
    let scene = Scene::new();
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    let store = scene.store();
    let record = String::from_utf8(store.value()).unwrap();
    let edited = |from: &str, to: &str| {
        assert_eq!(record.matches(from).count(), 1, "{from} in {record}");
        record.replace(from, to)
    };
    for (value, telling) in [
        (String::new(), "(byte 0): somebody edited it; restore it by hand"),
        ("garbage".to_owned(), "(byte 0): somebody edited it; restore it by hand"),
        (edited("}", ""), "somebody edited it; restore it by hand"),
        (format!("{record}\n"), "somebody edited it; restore it by hand"),
        (edited(r#""term":"1""#, r#""term":"0""#), "somebody edited it; restore it by hand"),
        (edited(r#""term":"1""#, r#""term":1"#), "somebody edited it; restore it by hand"),
        (edited("released", "gone"), "somebody edited it; restore it by hand"),
        (edited(r#""ttl_ms":3000"#, r#""ttl_ms":0"#), "somebody edited it; restore it by hand"),
        (
            edited(r#""format":1"#, r#""format":2"#),
            "has format 2 and this build reads format 1: use the newer leasehold",
        ),
    ] {
        store.edit(&value);
        refused(&scene, &["status", LEASE, "--store", "./leases.db"], 78, telling);
        refused(&scene, &run_line(&[], &COMMAND), 78, telling);
        refused(&scene, &run_line(&["--no-wait"], &COMMAND), 78, telling);
        assert_eq!(store.value(), value.as_bytes());
    }
    // Mended, it goes on where it was.
    store.edit(&record);
    scene.run(&[], &["true"]).end().expect(0, "acquired, term 2");
}

#[test]
fn a_bad_name_is_refused() {
    let scene = Scene::new();
    let long = "x".repeat(129);
    for (name, telling) in [
        ("", "a name has 1 to 128 characters of A-Z a-z 0-9 . _ -"),
        (&long, "a name has 1 to 128 characters"),
        ("two words", "a name has 1 to 128 characters"),
        ("naïve", "a name has 1 to 128 characters"),
        ("../job", "a name has no /"),
    ] {
        refused(&scene, &["status", name, "--store", "./leases.db"], 78, telling);
        refused(&scene, &["run", name, "--store", "./leases.db", "--", "echo", "ran"], 78, telling);
    }
    for holder in ["", &long, "two words", "naïve", "a\"b"] {
        let telling = "a label has 1 to 128 characters of A-Z a-z 0-9 . _ : @ / + -";
        refused(&scene, &run_line(&["--holder", holder], &COMMAND), 78, telling);
    }
}

#[test]
fn the_longest_name_and_holder_are_taken() {
    let scene = Scene::new();
    let (name, holder) = ("n".repeat(128), "h".repeat(128));
    let line = ["run", &name, "--holder", &holder, "--store", "./leases.db", "--", "true"];
    assert_eq!(scene.leasehold(line).end().code, 0);
    let status =
        scene.leasehold(["status", &name, "--store", "./leases.db", "--json"]).end().json();
    assert_eq!(
        (status["name"].as_str(), status["holder"].as_str()),
        (Some(&*name), Some(&*holder))
    );
}

#[test]
fn a_ttl_too_short_for_the_grace_is_refused_with_one_that_works() {
    let scene = Scene::new();
    let run = |ttl: &str, grace: &str| {
        let line = ["run", LEASE, "--store", "./leases.db", "--ttl", ttl, "--grace", grace, "--"];
        scene.leasehold(line.iter().chain(&COMMAND)).end()
    };
    for (ttl, grace) in [("1ms", "0s"), ("500ms", "300ms"), ("3s", "3s"), ("1h", "2h")] {
        let ended = run(ttl, grace);
        ended.expect(78, "the ttl is too short: ");
        assert_eq!(ended.stdout, "");
        let (_, rest) = ended.stderr.split_once(" need ").unwrap();
        let (works, _) = rest.split_once(" or more; use that").unwrap();
        let ended = run(works, grace);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "ran\n"), "{ended:?}");
    }
}

#[test]
fn a_bad_duration_is_refused() {
    let scene = Scene::new();
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    for (option, value, telling) in [
        ("--ttl", "0s", "the ttl must be 1ms to 24h"),
        ("--ttl", "25h", "the ttl must be 1ms to 24h"),
        ("--ttl", "584542046091y", "'584542046091y' for '--ttl <DURATION>'"),
        ("--ttl", "15", "time unit needed, for example 15sec or 15ms"),
        ("--ttl", "-3s", "'--ttl <DURATION>'"),
        ("--grace", "25h", "is the longest: use a shorter drain"),
        ("--grace", "soon", "invalid value 'soon' for '--grace <DURATION>'"),
        ("--wait", "", "'--wait <DURATION>'"),
    ] {
        let option = format!("{option}={value}");
        let line = ["run", LEASE, "--store", "./leases.db", &option, "--", "echo", "ran"];
        refused(&scene, &line, 78, telling);
    }
}

#[test]
fn a_bad_command_line_is_refused() {
    let scene = Scene::new();
    let cases: [(&[&str], &str); 10] = [
        (&[], "Usage: leasehold <COMMAND>"),
        (&["walk"], "unrecognized subcommand 'walk'"),
        (&["run"], "Usage: leasehold run <NAME> -- <COMMAND>..."),
        (&["run", LEASE], "Usage: leasehold run <NAME> -- <COMMAND>..."),
        (&["run", LEASE, "--"], "required arguments were not provided"),
        (&["run", LEASE, "echo", "ran"], "Usage: leasehold run [OPTIONS] <NAME> -- <COMMAND>..."),
        (&["run", LEASE, "--forever", "--", "echo", "ran"], "unexpected argument '--forever'"),
        (&["run", LEASE, "--wait", "1s", "--no-wait", "--", "echo", "ran"], "cannot be used with"),
        (&["handoff", LEASE], "--to <HOLDER>"),
        (&["fence", "check"], "unrecognized subcommand 'check'"),
    ];
    for (line, telling) in cases {
        refused(&scene, line, 78, telling);
    }
}

#[test]
fn a_resource_without_a_fence_is_refused_and_the_lease_is_free_again() {
    let scene = Scene::new();
    scene.payments();
    unfenced(&scene);
    let long = format!("./payments.db#{}", "x".repeat(129));
    for (seal, telling) in [
        ("./payments.db", "write STORE#RESOURCE, like sqlite:payments.db#payments"),
        ("", "write STORE#RESOURCE"),
        ("./payments.db#", "a resource's name has 1 to 128 bytes"),
        (&long, "a resource's name has 1 to 128 bytes"),
        ("etcd:localhost#payments", "the store scheme \"etcd\" is unknown"),
        ("./missing.db#payments", "create the database that is to be fenced first"),
        ("./bare.db#payments", "has no fence yet: run `leasehold fence init ./bare.db payments`"),
        (
            "./payments.db#refunds",
            "there is no such resource: create it with `leasehold fence init`",
        ),
        ("./letter.db#payments", "is no SQLite database"),
        ("./newer.db#payments", "was written by a newer leasehold"),
    ] {
        refused(&scene, &run(&["--seal", seal]), 78, telling);
        let next = scene.leasehold(run(&[])).end();
        assert_eq!((next.code, next.stdout.as_str()), (0, "ran\n"), "{seal}: {next:?}");
    }
    // All are sealed or nothing starts.
    let both = ["--seal", "./payments.db#payments", "--seal", "./payments.db#refunds"];
    let ended = scene.leasehold(run(&both)).end();
    ended.expect(78, "./payments.db#refunds: NoResource");
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_bad_fence_command_is_refused() {
    let scene = Scene::new();
    scene.payments();
    unfenced(&scene);
    let token = format!("{}/1/{}", "a".repeat(32), "b".repeat(16));
    for (store, resource, telling) in [
        ("./missing.db", "payments", "create the database that is to be fenced first"),
        (
            "./bare.db",
            "payments",
            "has no fence yet: run `leasehold fence init ./bare.db payments`",
        ),
        (
            "./payments.db",
            "refunds",
            "there is no such resource: create it with `leasehold fence init`",
        ),
        ("./payments.db", "", "a resource's name has 1 to 128 bytes"),
        ("memory:", "payments", "memory: is no place"),
        ("./letter.db", "payments", "is no SQLite database"),
        ("./newer.db", "payments", "was written by a newer leasehold"),
    ] {
        refused(&scene, &["fence", "status", store, resource], 78, telling);
        refused(&scene, &["fence", "seal", store, resource, &token], 78, telling);
    }
    let missing = ["fence", "init", "./missing.db", "payments"];
    refused(&scene, &missing, 78, "create the database that is to be fenced first");
    refused(&scene, &["fence", "init", "./payments.db", ""], 78, "1 to 128 bytes");
    let letter = ["fence", "init", "./letter.db", "payments"];
    refused(&scene, &letter, 78, "is no SQLite database");
    let newer = ["fence", "init", "./newer.db", "payments"];
    refused(&scene, &newer, 78, "was written by a newer leasehold");
    for token in
        ["", "7", &token.to_uppercase(), &token.replace("/1/", "/0/"), &format!("{token} ")]
    {
        let line = ["fence", "seal", "./payments.db", "payments", token];
        refused(
            &scene,
            &line,
            78,
            "not a token: expected 32 hex digits / a term of 1 to 2^63-1 / 16 hex digits",
        );
    }
}

/// Runs it, and sees to it that it refuses, says what to do, prints nothing and changes no file.
#[track_caller]
fn refused(scene: &Scene, line: &[&str], code: i32, telling: &str) -> Ended {
    let before = scene.files();
    let ended = scene.leasehold(line).end();
    assert_eq!(ended.code, code, "{line:?}: {ended:?}");
    assert!(ended.stderr.contains(telling), "{line:?}: no {telling:?} in {ended:?}");
    assert_eq!(ended.stdout, "", "{line:?}");
    assert!(scene.files() == before, "{line:?} changed, created or deleted a file: {ended:?}");
    ended
}

/// A `run` that keeps its store out of the folder: it writes to it.
fn run<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", LEASE, "--no-wait", "--store", "../aside.db"];
    [&fixed, options, &["--", "echo", "ran"]].concat()
}

fn database(scene: &Scene, name: &str, sql: &str) {
    rusqlite::Connection::open(scene.path(name)).unwrap().execute_batch(sql).unwrap();
}

/// What has no fence, or none that this build knows.
fn unfenced(scene: &Scene) {
    database(scene, "bare.db", "CREATE TABLE payment(term INTEGER NOT NULL)");
    database(scene, "newer.db", &newer("fence"));
    fs::write(scene.path("letter.db"), LETTER).unwrap();
}

/// The schema of a later version, as far as one can tell.
fn newer(part: &str) -> String {
    format!(
        "CREATE TABLE leasehold_schema(part TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
        INSERT INTO leasehold_schema VALUES ('{part}', 99)"
    )
}

#[test]
fn limits_that_are_too_low_are_named() {
    let scene = Scene::new();
    for (limit, says) in [("-n 32", "ulimit -n 64"), ("-v 500000", "ulimit -v 1048576")] {
        let run = scene.command(run_line(&[], &["echo", "ran"]));
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let ended = scene.start(&mut through(&["sh", "-c", &script], &run)).end();
        ended.expect(78, says);
        assert_eq!(ended.stdout, "", "{ended:?}");
    }
}
