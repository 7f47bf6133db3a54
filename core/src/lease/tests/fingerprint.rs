//! Electors that would decide alike hash alike, whenever and by whatever names.

use std::hash::{DefaultHasher, Hasher as _};

use super::rig::*;
use super::*;

/// Names by the order in which they appear.
fn fingerprint(rig: &Rig) -> u64 {
    let mut names: Vec<Id> = Vec::new();
    let mut rename = |id| {
        let known = names.iter().position(|name| *name == id);
        known.unwrap_or_else(|| {
            names.push(id);
            names.len() - 1
        }) as u64
    };
    let mut hasher = DefaultHasher::new();
    rig.elector.fingerprint(rig.now, &mut rename, &mut hasher);
    hasher.finish()
}

/// Watches a rival, takes over, leads, renews, loses an answer, hands over.
fn life(mut rig: Rig) -> Vec<u64> {
    let mut seen = Vec::new();
    rig.tick();
    rig.answer(1);
    seen.push(fingerprint(&rig));
    rig.run_while(|state| state == State::Standby);
    seen.push(fingerprint(&rig));
    rig.answer(1);
    seen.push(fingerprint(&rig));
    rig.input(Input::Sealed(rig.elector.token().unwrap()));
    seen.push(fingerprint(&rig));
    rig.next_request();
    seen.push(fingerprint(&rig));
    rig.answer(5);
    seen.push(fingerprint(&rig));
    rig.next_request();
    rig.fail(Outcome::Unknown);
    seen.push(fingerprint(&rig));
    rig.next_request();
    rig.answer(5);
    seen.push(fingerprint(&rig));
    rig.input(Input::Resign { to: Some(Label::new("web-2").unwrap()) });
    seen.push(fingerprint(&rig));
    rig.drained();
    seen.push(fingerprint(&rig));
    rig.answer(1);
    seen.push(fingerprint(&rig));
    seen
}

#[test]
fn time_is_relative() {
    let later = {
        let mut rig = Rig::new(held_by_rival(7));
        let by_ns = 86_400_000 * MS;
        rig.now =
            Now { mono: rig.now.mono.after(by_ns), wall_ns: rig.now.wall_ns.map(|ns| ns + by_ns) };
        rig.elector =
            Elector::new(config(0xaaaa, timing(), Authority::LocalObservation), rig.now, 1);
        rig
    };
    assert_eq!(life(Rig::new(held_by_rival(7))), life(later));
}

#[test]
fn names_are_names() {
    let mut key = Key { value: None, writes: 1_000 };
    let record = rival(7, HELD);
    key.put(&LeaseRecord {
        token: Token { lineage: Lineage(0x78), nonce: Nonce(0x12), ..record.token },
        attempt: Nonce(0x23),
        ..record
    });
    let mut renamed = Rig::new(key);
    renamed.tick();
    renamed.fail(Outcome::Conflict);
    renamed.elector.failures = 0;
    renamed.elector.facts = Facts::default();
    renamed.elector.due = renamed.now.mono;
    renamed.elector.entropy = Entropy::new(1);
    renamed.salt = 1;
    assert_eq!(life(Rig::new(held_by_rival(7))), life(renamed), "another number of requests");
}

#[test]
fn what_was_long_ago_is_past() {
    let mut rig = Rig::new(held_by_rival(7));
    rig.tick();
    rig.answer(1);
    let mut after = |ms| {
        rig.pass(ms);
        rig.elector.last = rig.now.mono;
        fingerprint(&rig)
    };
    assert_ne!(after(1), after(1), "the window and the next look come nearer");
    assert_eq!(after(60_000), after(60_000));
}

#[test]
fn every_turn_of_a_life_is_another_state() {
    let seen = life(Rig::new(held_by_rival(7)));
    let distinct: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "{seen:x?}");
    let other = life(Rig::new(held_by_rival(8)));
    assert!(seen.iter().zip(&other).all(|(one, other)| one != other), "terms are no names");
}
