//! What every store must do, held against each of them.

mod store_support;

use std::sync::Arc;
use std::thread;

use leasehold_host::store::{Expect, List, Memory, Read, Store, Transact, Version};
use store_support::{check, directory, must_put, must_read, open, put, read, wait, write};

#[test]
fn memory_keeps_the_contract() {
    keeps_the_contract(|| {
        let memory = Memory::new();
        move || Arc::new(memory.clone()) as Arc<dyn Store>
    });
}

#[test]
fn sqlite_keeps_the_contract() {
    let directory = directory();
    let mut files = 0;
    keeps_the_contract(|| {
        files += 1;
        let path = directory.path().join(format!("{files}.db"));
        move || Arc::new(open(&path).unwrap()) as Arc<dyn Store>
    });
}

/// `empty` makes an empty store and gives what opens one more handle on it.
fn keeps_the_contract<H: Fn() -> Arc<dyn Store> + Sync>(mut empty: impl FnMut() -> H) {
    a_missing_key_is_absent_and_an_entry_is_exactly_what_was_written(empty());
    of_many_creators_one_succeeds(empty());
    a_write_on_an_old_version_conflicts_and_writes_nothing(empty());
    a_version_does_not_come_back_with_the_owner(empty());
    several_keys_are_written_together_or_not_at_all(empty());
    a_check_may_name_a_key_that_is_not_written(empty());
    a_value_that_is_not_text_is_refused(empty());
    concurrent_increments_lose_nothing(empty());
    keys_are_listed_by_their_prefix_in_the_order_of_their_bytes(empty());
}

fn a_missing_key_is_absent_and_an_entry_is_exactly_what_was_written(
    handle: impl Fn() -> Arc<dyn Store>,
) {
    let (one, other) = (handle(), handle());
    assert_eq!(read(&*one, "lease/a"), Read::Absent);
    let version = must_put(&*one, "lease/a", Expect::Absent, "é \0\n{}");
    assert_eq!(must_read(&*other, "lease/a"), ("é \0\n{}".to_owned(), version));
    assert_eq!(read(&*other, "lease/A"), Read::Absent);
}

fn of_many_creators_one_succeeds(handle: impl Fn() -> Arc<dyn Store> + Sync) {
    let outcomes =
        in_parallel(8, |n| put(&*handle(), "lease/a", Expect::Absent, &format!("creator {n}")));
    let winners: Vec<usize> =
        (0..8).filter(|n| matches!(outcomes[*n], Transact::Applied(_))).collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == Transact::Conflict).count(),
        7,
        "{outcomes:?}"
    );
    assert_eq!(must_read(&*handle(), "lease/a").0, format!("creator {}", winners[0]));
}

fn a_write_on_an_old_version_conflicts_and_writes_nothing(handle: impl Fn() -> Arc<dyn Store>) {
    let store = handle();
    let first = must_put(&*store, "lease/a", Expect::Absent, "1");
    let second = must_put(&*store, "lease/a", Expect::Version(first), "2");
    assert_ne!(first, second);
    for expect in
        [Expect::Version(first), Expect::Absent, Expect::Version(Version::new(b"").unwrap())]
    {
        assert_eq!(put(&*store, "lease/a", expect, "3"), Transact::Conflict, "{expect:?}");
    }
    assert_eq!(put(&*store, "lease/b", Expect::Version(second), "3"), Transact::Conflict);
    assert_eq!(must_read(&*store, "lease/a"), ("2".to_owned(), second));
    assert_eq!(read(&*store, "lease/b"), Read::Absent);
}

fn a_version_does_not_come_back_with_the_owner(handle: impl Fn() -> Arc<dyn Store>) {
    let store = handle();
    let mine = must_put(&*store, "lease/a", Expect::Absent, "mine, attempt 1");
    let yours = must_put(&*store, "lease/a", Expect::Version(mine), "yours, attempt 1");
    must_put(&*store, "lease/a", Expect::Version(yours), "mine, attempt 2");
    assert_eq!(
        put(&*store, "lease/a", Expect::Version(mine), "mine, attempt 3"),
        Transact::Conflict
    );
}

fn several_keys_are_written_together_or_not_at_all(handle: impl Fn() -> Arc<dyn Store>) {
    let store = handle();
    let both = |expect: [Expect; 2], value: &str| {
        let checks = vec![check("a", expect[0]), check("b", expect[1])];
        wait(store.transact(checks, vec![write("a", value), write("b", value)]))
    };
    let Transact::Applied(versions) = both([Expect::Absent; 2], "1") else { panic!("not applied") };
    assert_eq!(must_read(&*store, "a").1, versions[0]);
    assert_eq!(must_read(&*store, "b").1, versions[1]);

    let newer = must_put(&*store, "b", Expect::Version(versions[1]), "2");
    assert_eq!(
        both([Expect::Version(versions[0]), Expect::Version(versions[1])], "3"),
        Transact::Conflict
    );
    assert_eq!(must_read(&*store, "a"), ("1".to_owned(), versions[0]));
    assert_eq!(must_read(&*store, "b"), ("2".to_owned(), newer));
}

fn a_check_may_name_a_key_that_is_not_written(handle: impl Fn() -> Arc<dyn Store>) {
    let store = handle();
    let lease = must_put(&*store, "lease/a", Expect::Absent, "held");
    let commit = |expect, value| {
        wait(store.transact(vec![check("lease/a", expect)], vec![write("saga/1", value)]))
    };
    assert!(matches!(commit(Expect::Version(lease), "step 1"), Transact::Applied(_)));
    must_put(&*store, "lease/a", Expect::Version(lease), "held by another");
    assert_eq!(commit(Expect::Version(lease), "step 2"), Transact::Conflict);
    assert_eq!(must_read(&*store, "saga/1").0, "step 1");
    assert_eq!(
        wait(store.transact(vec![check("x", Expect::Absent)], vec![])),
        Transact::Applied(vec![])
    );
}

fn a_value_that_is_not_text_is_refused(handle: impl Fn() -> Arc<dyn Store>) {
    let store = handle();
    let mut writes = vec![write("a", "text"), write("b", "")];
    writes[1].value = vec![0xFF];
    let outcome = wait(store.transact(vec![], writes));
    assert!(
        matches!(&outcome, Transact::Unavailable(why) if why.contains("not UTF-8")),
        "{outcome:?}"
    );
    assert_eq!(read(&*store, "a"), Read::Absent);
}

fn keys_are_listed_by_their_prefix_in_the_order_of_their_bytes(
    handle: impl Fn() -> Arc<dyn Store>,
) {
    let store = handle();
    let list = |prefix| match wait(store.list(prefix)) {
        List::Keys(keys) => keys,
        other => panic!("{other:?}"),
    };
    assert_eq!(list("lease/"), [""; 0]);
    for key in ["lease/b", "lease/B", "lease/a_1", "lease/a/1", "LEASE/a", "saga/a", "lease"] {
        must_put(&*store, key, Expect::Absent, key);
    }
    assert_eq!(list("lease/"), ["lease/B", "lease/a/1", "lease/a_1", "lease/b"]);
    assert_eq!(list("lease/a_"), ["lease/a_1"], "no wild card");
    assert_eq!(list("").len(), 7);
}

fn concurrent_increments_lose_nothing(handle: impl Fn() -> Arc<dyn Store> + Sync) {
    const THREADS: u64 = 8;
    const INCREMENTS: u64 = 20;
    must_put(&*handle(), "count", Expect::Absent, "0 by nobody");
    in_parallel(THREADS, |n| {
        let store = handle();
        for round in 0..INCREMENTS {
            increment(&*store, &format!("thread {n} round {round}"));
        }
    });
    let (value, _) = must_read(&*handle(), "count");
    assert_eq!(value.split_once(' ').unwrap().0, (THREADS * INCREMENTS).to_string());
}

fn increment(store: &dyn Store, by: &str) {
    loop {
        let (value, version) = must_read(store, "count");
        let count: u64 = value.split_once(' ').unwrap().0.parse().unwrap();
        match put(store, "count", Expect::Version(version), &format!("{} by {by}", count + 1)) {
            Transact::Applied(_) => return,
            Transact::Conflict | Transact::Unavailable(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn in_parallel<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
