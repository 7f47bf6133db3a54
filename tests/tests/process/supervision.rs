//! One part of a holder fails, and its command does all it can to live on: it ignores SIGTERM,
//! forks twice and makes sessions of its own. No descendant of it outlives the lease, and only
//! then a rival acquires, with a larger term.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::record::Kind;
use rustix::process::Signal;

use crate::rig::{
    self, PATIENCE, Scene, Started, Store, TTL, freeze, now, signal, until, valid_until, wake,
};

/// What the rival runs: it keeps the lease until the end of the test.
const RIVAL: [&str; 2] = ["sleep", "1000"];

#[test]
fn a_killed_front_takes_its_command_with_it() {
    let scene = Scene::new();
    let Contest { holder, rival, store } = Contest::begin(&scene);
    let killed = now();
    signal(holder.front(), Signal::KILL);
    let takeover = Takeover::watch(&holder, &store);
    takeover.judge();
    takeover.followed_at_once(killed);
    takeover.was_only_after_the_ttl();
    rival.says("acquired, term 2");
}

#[test]
fn a_front_stopped_past_its_deadline_finds_its_command_ended() {
    let scene = Scene::new();
    let Contest { holder, rival, store } = Contest::begin(&scene);
    let front = [holder.front()];
    freeze(&front, &[&store]);
    let takeover = Takeover::watch(&holder, &store);
    takeover.judge();
    takeover.was_only_after_the_ttl();
    rival.says("acquired, term 2");
    wake(&front);
    holder.end().expect(121, "the command was killed, under term 1");
}

#[test]
fn a_killed_keeper_is_replaced_by_the_front() {
    let scene = Scene::new();
    let Contest { holder, rival, store } = Contest::begin(&scene);
    let keeper = holder.keeper();
    let killed = now();
    signal(keeper, Signal::KILL);
    let takeover = Takeover::watch(&holder, &store);
    takeover.judge();
    takeover.followed_at_once(killed);
    rival.says("acquired, term 2");
    holder.end().expect(121, "the keeper was gone or silent; the command was killed");
}

#[test]
fn a_keeper_stopped_past_the_deadline_is_replaced_by_the_front() {
    let scene = Scene::new();
    let Contest { holder, rival, store } = Contest::begin(&scene);
    signal(holder.keeper(), Signal::STOP);
    // A front that can renew has no need of its keeper: so nobody can write any more.
    let lock = store.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tree = holder.tree();
    until("the end of the command", || holder.tree().is_empty().then_some(()));
    let dead = now();
    assert!(!tree.is_empty() && dead < store.row().unwrap().written + TTL, "it was dead in time");
    lock.execute_batch("ROLLBACK").unwrap();
    let takeover = Takeover::watch(&holder, &store);
    takeover.judge();
    rival.says("acquired, term 2");
    holder.end().expect(121, "the keeper was gone or silent; the command was killed");
}

/// Nothing began, so that nothing failed: to be run anew is what the user asked for.
#[test]
fn a_keeper_that_sleeps_through_a_launch_starts_nothing_and_the_command_is_run_anew() {
    let scene = Scene::new();
    let holder = scene.run(&[], &RIVAL);
    holder.says("acquired, term 1");
    let waiter = scene.run_sh(&["--respawn"], "echo $LEASEHOLD_TERM");
    waiter.says("waiting");
    let keeper = waiter.keeper();
    signal(keeper, Signal::STOP);
    signal(holder.front(), Signal::TERM);
    waiter.says("acquired, term 2");
    // The front renews meanwhile, but what the keeper finds first is the launch as it was meant.
    let late = now() + TTL;
    until("the end of the launch's time", || (now() > late).then_some(()));
    wake(&[keeper]);
    let ended = waiter.end();
    ended.expect(0, "lost before the command could start");
    assert_eq!(ended.stdout, "3\n", "{ended:?}");
}

/// Whoever walks its tree is always behind; one round of killing is never the last.
#[test]
fn a_command_that_forks_without_end_is_ended_too() {
    let scene = Scene::new();
    let holder = scene.run(&[], &[&rig::fixture("fork_storm.sh")]);
    until("a storm", || (holder.tree().len() > 50).then_some(()));
    signal(holder.keeper(), Signal::KILL);
    let ended = holder.end();
    ended.expect(121, "the keeper was gone or silent; the command was killed");
    assert!(scene.is_deserted(), "{ended:?}");
    assert_eq!(scene.store().row().unwrap().kind, Kind::Released);
}

/// A holder whose command has spread over four sessions, and a rival who waits for its lease.
struct Contest {
    holder: Started,
    rival: Started,
    store: Store,
}

impl Contest {
    fn begin(scene: &Scene) -> Self {
        let holder = scene.run(&[], &[&rig::fixture("clings_to_life.sh")]);
        until("the command to spread", || {
            let tree = holder.tree();
            let sessions: BTreeSet<_> = tree.iter().map(|process| process.session).collect();
            let is_stopped = tree.iter().any(|process| process.state == 'T');
            (sessions.len() == 4 && is_stopped).then_some(())
        });
        let rival = scene.run(&[], &RIVAL);
        rival.says("waiting");
        Self { holder, rival, store: scene.store() }
    }
}

/// How the lease passed from one to another.
#[derive(Debug)]
struct Takeover {
    /// The last moment at which a process of the loser's command was seen.
    last_alive: Option<Duration>,
    /// The loser's last write to the record.
    renewed: Duration,
    /// The rival's first.
    acquired: Duration,
    terms: (u64, u64),
}

impl Takeover {
    /// From now until a little after the rival has acquired.
    fn watch(loser: &Started, store: &Store) -> Self {
        let before = store.row().unwrap();
        let (mut renewed, mut last_alive) = (before.written, None);
        let mut look = || {
            let at = now();
            if !loser.tree().is_empty() {
                last_alive = Some(at);
            }
        };
        let after = until("the rival to acquire", || {
            look();
            let row = store.row().unwrap();
            if row.term() == before.term() {
                // Its release is no renewal.
                renewed = if row.kind == Kind::Held { row.written } else { renewed };
                return None;
            }
            Some(row)
        });
        let end = now() + TTL / 10;
        while now() < end {
            look();
        }
        let terms = (before.term(), after.term());
        Self { last_alive, renewed, acquired: after.written, terms }
    }

    fn judge(&self) {
        let last_alive = self.last_alive.unwrap_or_default();
        let (old, new) = self.terms;
        assert!(last_alive < self.acquired, "two at once: {self:?}");
        assert!(last_alive < valid_until(self.renewed, TTL), "it outlived the lease: {self:?}");
        assert!(old < new, "{self:?}");
        assert!(self.acquired < self.renewed + TTL + PATIENCE / 6, "not in good time: {self:?}");
    }

    /// Whoever is left ends the command without waiting for a deadline.
    fn followed_at_once(&self, killed: Duration) {
        assert!(self.last_alive.unwrap_or_default() < killed + TTL / 3, "{killed:?}: {self:?}");
    }

    /// Nobody could release it.
    fn was_only_after_the_ttl(&self) {
        assert!(self.acquired > self.renewed + TTL, "{self:?}");
    }
}
