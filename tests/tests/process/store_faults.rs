//! What happens to the store, under a holder's hands or while nobody runs. A command whose lease
//! cannot be renewed is ended, the message says what to do, and whatever is found in the store's
//! place stays as it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::geteuid;

use crate::rig::{
    Ended, Row, Scene, Started, Store, TTL, freeze, now, run_line, through, until, wake,
};

const SEAL: [&str; 2] = ["--seal", "sqlite:payments.db#payments"];

/// By default the signal for it kills without a word.
#[test]
fn a_limit_on_the_size_of_files_is_explained() {
    let scene = Scene::new();
    let limited = ["sh", "-c", "ulimit -f 8; exec \"$0\" \"$@\""];
    let run = scene.command(run_line(&[], &["true"]));
    let ended = scene.start(&mut through(&limited, &run)).end();
    ended.expect(69, "ulimit -f");
}

#[test]
fn a_store_deleted_under_the_holder_ends_the_command_and_is_not_created_anew() {
    let scene = Scene::new();
    scene.payments();
    let holder = holder(&scene, &SEAL);
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
    let refused = scene.run_sh(&SEAL, "echo ran").end();
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

#[test]
fn a_store_locked_for_less_than_the_margin_makes_a_renewal_late_and_nothing_else() {
    let scene = Scene::new();
    let holder = holder(&scene, &[]);
    let store = scene.store();
    let first = store.row().unwrap();
    let renewed_since = |then: Duration| {
        until("a renewal", || store.row().filter(|row| row.written > then)).written
    };
    // A busy machine may be slow to complain of the lock: then the store is only said to be late.
    until("words on what to do", || {
        let late = || holder.stderr().matches("not renewed yet").count();
        let before = late();
        let lock = store.open();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        until("a late renewal", || (late() > before).then_some(()));
        lock.execute_batch("ROLLBACK").unwrap();
        renewed_since(now());
        let advice = "stayed locked by another connection for 100 ms; end the long transaction";
        holder.stderr().contains(advice).then_some(())
    });
    renewed_since(now() + TTL);
    let last = store.row().unwrap();
    assert_eq!((last.kind, last.token), (Kind::Held, first.token));
    assert!(!holder.stderr().contains("lost"), "{}", holder.stderr());
}

#[test]
fn a_store_locked_for_longer_ends_the_command_in_time_and_nobody_begins_until_it_is_free() {
    let scene = Scene::new();
    let holder = holder(&scene, &[]);
    let rival = scene.run(&[], &["sleep", "1000"]);
    rival.says("waiting");
    let store = scene.store();
    let lock = store.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let renewed = store.row().unwrap().written;
    holder.is_dead_in_time(renewed, TTL);
    lost(holder, "not renewed yet");
    until("the ttl and another", || {
        assert!(rival.tree().is_empty());
        (now() > renewed + 2 * TTL).then_some(())
    });
    rival.says("the store does not answer: ");
    lock.execute_batch("ROLLBACK").unwrap();
    rival.says("acquired, term 2");
}

#[test]
fn a_store_that_may_not_be_written_is_refused_and_stays() {
    let scene = Scene::new();
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    let (file, folder) = (scene.store().path().to_owned(), scene.folder());
    let before = fs::read(&file).unwrap();
    for (path, forbidden, allowed, telling) in [
        (&file, 0o400, 0o600, "is read-only for this user; give write permission on it"),
        (&folder, 0o500, 0o700, "write permission on it, its -wal and -shm, and its directory"),
    ] {
        fs::set_permissions(path, Permissions::from_mode(forbidden)).unwrap();
        let refused = powerless(&scene, &["echo", "ran"]).end();
        refused.expect(69, telling);
        assert_eq!(refused.stdout, "");
        fs::set_permissions(path, Permissions::from_mode(allowed)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    powerless(&scene, &["true"]).end().expect(0, "acquired, term 2");
}

#[test]
fn a_store_on_a_disk_that_may_not_be_written_is_refused() {
    let scene = Scene::new();
    let disk = SmallDisk::mount(&scene);
    let mount = |how: &str| assert_eq!(disk.sh(&format!("mount -o remount,bind,{how} .")).code, 0);
    mount("ro");
    disk.run(&["echo", "ran"]).end().expect(69, "mount its disk writable or name another file");
    mount("rw");
    disk.run(&["true"]).end().expect(0, "acquired, term 1");
    mount("ro");
    let refused = disk.run(&["echo", "ran"]).end();
    refused.expect(69, "give write permission on it, or mount its disk writable");
    assert_eq!(refused.stdout, "");
    mount("rw");
    disk.run(&["true"]).end().expect(0, "acquired, term 2");
}

#[test]
fn permissions_taken_away_under_a_holder_bind_only_those_who_come_later() {
    let scene = Scene::new();
    let holder = powerless(&scene, &["sh", "-c", "until [ -e go ]; do sleep 0.02; done; exit 7"]);
    holder.says("acquired, term 1");
    let store = scene.store();
    let before = store.row().unwrap();
    let (file, folder) = (store.path(), scene.folder());
    fs::write(scene.path("not yet"), "").unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let renewed = |row: &Row| row.written > before.written + TTL;
    until("renewals", || store.row().filter(renewed));
    powerless(&scene, &["echo", "ran"]).end().expect(69, "give write permission on it");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    fs::rename(scene.path("not yet"), scene.path("go")).unwrap();
    let ended = holder.end();
    assert_eq!(ended.code, 7, "{ended:?}");
    let after = store.row().unwrap();
    assert_eq!((after.kind, after.token), (Kind::Released, before.token));
}

#[test]
fn a_disk_that_fills_up_under_the_holder_ends_the_command_in_time() {
    let scene = Scene::new();
    let disk = SmallDisk::mount(&scene);
    let holder = disk.run(&["sleep", "1000"]);
    holder.says("acquired, term 1");
    disk.fill();
    let full = now();
    holder.is_dead_in_time(full, TTL);
    lost(holder, "not renewed yet");
    // At first the holder may still be alive, and later the answer may be late.
    until("words on what to do", || {
        let refused = disk.run(&["echo", "ran"]).end();
        assert!(matches!(refused.code, 75 | 69), "{refused:?}");
        assert_eq!(refused.stdout, "");
        refused.stderr.contains("leases.db is full; free some space on it").then_some(())
    });
    disk.free();
    disk.run(&["true"]).end().expect(0, "acquired, term 2");
}

#[test]
fn a_store_overwritten_under_the_holder_ends_the_command_and_is_left_alone() {
    let scene = Scene::new();
    let holder = holder(&scene, &[]);
    let store = scene.store();
    // While the front stands still nothing gets into the log, from which it would be read.
    let front = [holder.front()];
    freeze(&front, &[&store]);
    store.checkpoint();
    let garbage = garbage(&store);
    fs::write(store.path(), &garbage).unwrap();
    wake(&front);
    lost(holder, "leases.db is no longer a whole store");
    assert_eq!(fs::read(store.path()).unwrap(), garbage);
}

#[test]
fn a_damaged_store_is_refused_and_left_alone() {
    let scene = Scene::new();
    assert_eq!(scene.run(&[], &["true"]).end().code, 0);
    let store = scene.store();
    store.checkpoint();
    let whole = fs::read(store.path()).unwrap();
    let garbage = garbage(&store);
    let header = 100;
    for (damaged, telling) in [
        (&garbage[..], "is no SQLite database, and was left as it is; name another file"),
        (&[&whole[..header], &garbage[header..]].concat()[..], "restore it or name another file"),
        (&whole[..whole.len() / 2], "restore it or name another file"),
    ] {
        fs::write(store.path(), damaged).unwrap();
        let refused = scene.run_sh(&[], "echo ran").end();
        refused.expect(78, telling);
        assert_eq!(refused.stdout, "");
        assert!(fs::read(store.path()).unwrap() == damaged, "{telling}");
    }
    fs::write(store.path(), whole).unwrap();
    scene.run(&[], &["true"]).end().expect(0, "acquired, term 2");
}

#[test]
fn a_store_restored_while_nobody_runs_is_held_back_by_the_fence_and_climbs_above_it() {
    let scene = Scene::new();
    scene.payments();
    let run = || scene.run_sh(&SEAL, "echo $LEASEHOLD_TERM").end();
    assert_eq!(run().stdout, "1\n");
    scene.store().checkpoint();
    fs::copy(scene.store().path(), scene.path("older.db")).unwrap();
    assert_eq!((run().stdout, run().stdout), ("2\n".to_owned(), "3\n".to_owned()));
    fs::copy(scene.path("older.db"), scene.store().path()).unwrap();
    let ended = run();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "4\n"), "{ended:?}");
    assert!(ended.stderr.contains("a later holder has sealed it, with term 3"), "{ended:?}");
}

#[test]
fn a_store_restored_under_the_holder_ends_the_command_and_the_next_climbs_above_it() {
    let scene = Scene::new();
    scene.payments();
    assert_eq!(scene.run(&SEAL, &["true"]).end().code, 0);
    let older = scene.path("older.db");
    scene.store().execute(&format!("VACUUM INTO '{}'", older.display()));
    let holder = scene.run(&SEAL, &["sleep", "1000"]);
    holder.says("acquired, term 2");
    let mut restore = Command::new("sqlite3");
    restore.args(["-batch", "leases.db", ".timeout 10000", ".restore older.db"]);
    let restored = scene.start(restore.current_dir(scene.folder())).end();
    assert_eq!(restored.code, 0, "{restored:?}");
    lost(holder, "lost: somebody else holds it, or the store was rolled back");
    let next = scene.run_sh(&SEAL, "echo $LEASEHOLD_TERM").end();
    assert_eq!((next.code, next.stdout.as_str()), (0, "3\n"), "{next:?}");
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

/// As long as the database.
fn garbage(store: &Store) -> Vec<u8> {
    vec![0xa5; fs::read(store.path()).unwrap().len()]
}

/// A run by somebody whom modes bind, which they do not with root.
fn powerless(scene: &Scene, command: &[&str]) -> Started {
    let mut run = scene.command(run_line(&["--no-wait"], command));
    if geteuid().is_root() {
        run = through(&["setpriv", "--bounding-set=-all"], &run);
    }
    scene.start(&mut run)
}

/// A disk in the place of the scene's folder, for those who are started on it.
struct SmallDisk<'a> {
    scene: &'a Scene,
    /// Keeps it mounted.
    anchor: Started,
}

impl<'a> SmallDisk<'a> {
    fn mount(scene: &'a Scene) -> Self {
        let script = "mount -t tmpfs -o size=1m none . && echo mounted >&2 && exec sleep 1000";
        let mut mount = Command::new("unshare");
        mount.args(["--map-root-user", "--mount", "sh", "-c", script]);
        let anchor = scene.start(mount.current_dir(scene.folder()));
        anchor.says("mounted");
        Self { scene, anchor }
    }

    fn run(&self, command: &[&str]) -> Started {
        self.start(&self.scene.command(run_line(&["--no-wait"], command)))
    }

    fn fill(&self) {
        let ended = self.sh("cat /dev/zero >filler");
        ended.expect(1, "No space left on device");
    }

    fn free(&self) {
        assert_eq!(self.sh("rm filler").code, 0);
    }

    fn sh(&self, script: &str) -> Ended {
        let mut sh = Command::new("sh");
        self.start(sh.args(["-c", script]).current_dir(self.scene.folder())).end()
    }

    fn start(&self, command: &Command) -> Started {
        let anchor = self.anchor.front().to_string();
        let nsenter = ["nsenter", "--target", &anchor, "--user", "--mount"];
        // Whoever enters begins at the root.
        let folder = self.scene.folder();
        let go = ["--preserve-credentials", "sh", "-c", "cd \"$0\" && exec \"$@\""];
        let enter = [&nsenter[..], &go, &[folder.to_str().unwrap()]].concat();
        self.scene.start(&mut through(&enter, command))
    }
}
