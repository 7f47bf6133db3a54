use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use leasehold_core::token::Term;

use super::*;
use crate::store::{Answer, Capabilities, Memory};

const TOKEN: &str = "0123456789abcdef0123456789abcdef/7/00000000000000aa";
const TTL: Duration = Duration::from_secs(3);

/// What becomes of one write.
enum Fate {
    /// Somebody else writes first.
    Overtaken(fn(&LeaseRecord<'_>) -> Vec<u8>),
    /// Applied; the answer is lost. Perhaps somebody writes after it, too.
    AnswerLost(Option<fn(&LeaseRecord<'_>) -> Vec<u8>>),
    /// Not applied, and the answer is lost.
    RequestLost,
    Undecided,
    Unavailable,
}

/// A store whose first writes have a fate of their own.
struct Fateful {
    memory: Memory,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    /// What it was asked to write.
    asked: Arc<Mutex<Vec<Write>>>,
}

impl Store for Fateful {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn read(&self, key: &str) -> Answer<Read> {
        self.memory.read(key)
    }

    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact> {
        self.asked.lock().unwrap().extend(writes.iter().cloned());
        let fate = self.fates.lock().unwrap().pop_front();
        let memory = self.memory.clone();
        Box::pin(async move {
            match fate {
                None => memory.transact(checks, writes).await,
                Some(Fate::Overtaken(change)) => {
                    rewrite(&memory, change).await;
                    memory.transact(checks, writes).await
                }
                Some(Fate::AnswerLost(after)) => {
                    let applied = memory.transact(checks, writes).await;
                    assert!(matches!(applied, Transact::Applied(_)), "{applied:?}");
                    if let Some(change) = after {
                        rewrite(&memory, change).await;
                    }
                    Transact::Unknown("the line is dead".to_owned())
                }
                Some(Fate::RequestLost) => Transact::Unknown("the line is dead".to_owned()),
                Some(Fate::Undecided) => Transact::Undecided("ask again".to_owned()),
                Some(Fate::Unavailable) => Transact::Unavailable("no route".to_owned()),
            }
        })
    }
}

async fn rewrite(memory: &Memory, change: fn(&LeaseRecord<'_>) -> Vec<u8>) {
    let value = change(&record::decode(&value(memory).await).unwrap());
    put(memory, &value).await;
}

async fn put(memory: &Memory, value: &[u8]) {
    let write = Write { key: "lease/job".to_owned(), value: value.to_vec() };
    assert!(matches!(memory.transact(vec![], vec![write]).await, Transact::Applied(_)));
}

async fn value(store: &dyn Store) -> Vec<u8> {
    match store.read("lease/job").await {
        Read::Entry { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

/// The lease as web-1 holds it, at this many renewals.
fn held(state: State<'_>, renewals: u64) -> Vec<u8> {
    encode(&LeaseRecord {
        name: Name::new("job").unwrap(),
        token: TOKEN.parse().unwrap(),
        state,
        holder: Label::new("web-1").unwrap(),
        instance: Nonce(0xaa),
        ttl_ms: 3_000,
        attempt: Nonce(renewals),
        at_ms: None,
        expires_by_ms: None,
    })
    .unwrap()
}

fn renewed(record: &LeaseRecord<'_>) -> Vec<u8> {
    held(State::Held { ask: None }, record.attempt.0 + 1)
}

fn won_by_web_2(record: &LeaseRecord<'_>) -> Vec<u8> {
    let token = Token { term: Term::new(8).unwrap(), nonce: Nonce(2), ..record.token };
    let holder = Label::new("web-2").unwrap();
    encode(&LeaseRecord { token, holder, instance: Nonce(2), attempt: Nonce(99), ..*record })
        .unwrap()
}

async fn store(value: Option<&[u8]>, fates: impl IntoIterator<Item = Fate>) -> Fateful {
    let memory = Memory::new();
    if let Some(value) = value {
        put(&memory, value).await;
    }
    let fates = Arc::new(Mutex::new(fates.into_iter().collect()));
    Fateful { memory, fates, asked: Arc::default() }
}

async fn held_store(fates: impl IntoIterator<Item = Fate>) -> Fateful {
    store(Some(&held(State::Held { ask: None }, 1)), fates).await
}

fn operator(store: &Fateful) -> Operator<'_> {
    Operator::new(store, "ops@desk").unwrap()
}

fn sendable<T: Send>(verb: T) -> T {
    verb
}

#[tokio::test]
async fn a_wish_changes_nothing_but_the_wish() {
    let store = held_store([]).await;
    let asked = sendable(operator(&store).ask("job", "web-2")).await.unwrap();
    assert_eq!((asked.holder.as_str(), asked.ttl), ("web-1", TTL));
    let value = value(&store).await;
    let record = record::decode(&value).unwrap();
    let State::Held { ask: Some(ask) } = record.state else { panic!("{record:?}") };
    assert_eq!(ask.to.as_str(), "web-2");
    let before = held(State::Held { ask: None }, 1);
    let state = State::Held { ask: Some(ask) };
    assert_eq!(record, LeaseRecord { state, ..record::decode(&before).unwrap() });
}

#[tokio::test]
async fn force_ends_the_holder_under_a_term_of_its_own_and_keeps_the_old_ttl() {
    let store = held_store([]).await;
    let operator = operator(&store);
    let forced = sendable(operator.force("job", "stuck", "web-1")).await.unwrap();
    assert_eq!(forced.ended.holder, "web-1");
    assert_eq!((forced.now.state, forced.now.ttl), (Kind::Offered, TTL));
    assert_eq!((forced.now.holder.as_str(), forced.now.token.term.get()), ("forced:ops@desk", 8));
    let value = value(&store).await;
    let record = record::decode(&value).unwrap();
    assert_eq!(Snapshot::of(&record), forced.now);
    assert_eq!(record.state.note().unwrap().as_str(), "stuck");
}

#[tokio::test]
async fn only_who_forced_a_lease_can_waive_its_grace() {
    let store = held_store([]).await;
    let operator = operator(&store);
    operator.force("job", "stuck", "00000000000000aa").await.unwrap();
    let other = Operator::new(&store, "ops@desk").unwrap();
    let refused = Err(Refusal::Rule(rules::Refusal::NotForced).into());
    assert_eq!(other.waive("job").await, refused);
    assert_eq!(operator.waive("job").await.unwrap().state, Kind::Released);
    assert_eq!(operator.waive("job").await, refused);
}

#[tokio::test]
async fn a_lost_record_goes_on_after_its_last_token() {
    let store = store(None, []).await;
    let token: Token = TOKEN.parse().unwrap();
    let init = operator(&store).init("job", token, TTL).await.unwrap();
    assert_eq!((init.state, init.token, init.ttl), (Kind::Released, token, TTL));
    let before = value(&store).await;
    let again = operator(&store).init("job", token, TTL).await;
    assert_eq!(again, Err(Refusal::Exists(init).into()));
    assert_eq!(value(&store).await, before);
}

#[tokio::test]
async fn whoever_is_overtaken_decides_anew() {
    for fate in [Fate::Overtaken(renewed), Fate::Undecided, Fate::Unavailable] {
        let store = held_store([fate]).await;
        operator(&store).ask("job", "web-2").await.unwrap();
    }
    let store = held_store([Fate::Overtaken(won_by_web_2)]).await;
    let refused = operator(&store).force("job", "stuck", "web-1").await.unwrap_err();
    assert!(refused.to_string().contains("the record is by web-2, term 8"), "{refused}");
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_and_not_made_twice() {
    let store = held_store([Fate::AnswerLost(None)]).await;
    let forced = operator(&store).force("job", "stuck", "web-1").await.unwrap();
    assert_eq!(forced.ended.holder, "web-1");
    assert_eq!(Snapshot::of(&record::decode(&value(&store).await).unwrap()), forced.now);
    assert_eq!(forced.now.token.term.get(), 8, "forced once");

    let store = held_store([Fate::AnswerLost(None)]).await;
    operator(&store).ask("job", "web-2").await.unwrap();
    let store = self::store(None, [Fate::AnswerLost(None)]).await;
    operator(&store).init("job", TOKEN.parse().unwrap(), TTL).await.unwrap();
}

#[tokio::test]
async fn a_wish_whose_answer_was_lost_may_have_been_heard_already() {
    let offered: fn(&LeaseRecord<'_>) -> Vec<u8> = |_| {
        let to = Some(Label::new("web-2").unwrap());
        held(State::Offered { to, note: Note::EMPTY }, 2)
    };
    for heard in [offered, won_by_web_2] {
        let store = held_store([Fate::AnswerLost(Some(heard))]).await;
        let asked = operator(&store).ask("job", "web-2").await.unwrap();
        assert_eq!(asked.holder, "web-1");
    }
}

#[tokio::test]
async fn what_forbids_a_write_in_doubt_leaves_the_doubt() {
    let store = held_store([Fate::AnswerLost(Some(won_by_web_2))]).await;
    let error = operator(&store).force("job", "stuck", "web-1").await.unwrap_err();
    let OperatorError::InDoubt(why) = &error else { panic!("{error:?}") };
    assert!(why.contains("the record is by web-2"), "{why}");
}

#[tokio::test]
async fn a_write_that_was_lost_is_made_again() {
    let store = held_store([Fate::RequestLost, Fate::RequestLost]).await;
    let forced = operator(&store).force("job", "stuck", "web-1").await.unwrap();
    assert_eq!(Snapshot::of(&record::decode(&value(&store).await).unwrap()), forced.now);
}

#[tokio::test]
async fn a_nonce_is_drawn_once_for_each_version_of_the_record() {
    let store = held_store([Fate::RequestLost, Fate::Overtaken(renewed)]).await;
    operator(&store).force("job", "stuck", "web-1").await.unwrap();
    let asked = store.asked.lock().unwrap();
    let nonces: Vec<_> =
        asked.iter().map(|write| record::decode(&write.value).unwrap().token.nonce).collect();
    let [lost, overtaken, applied] = nonces[..] else { panic!("{nonces:?}") };
    assert_eq!(lost, overtaken, "of one version");
    assert_ne!(overtaken, applied, "of two versions");
}

#[tokio::test(start_paused = true)]
async fn what_never_settles_is_an_error_that_says_what_is_known() {
    let overtaken = (0..TRIES).map(|_| Fate::Overtaken(renewed));
    let changing = held_store(overtaken).await;
    let error = operator(&changing).ask("job", "web-2").await.unwrap_err();
    assert_eq!(error, OperatorError::KeepsChanging);

    let unavailable = held_store((0..TRIES).map(|_| Fate::Unavailable)).await;
    let error = operator(&unavailable).ask("job", "web-2").await.unwrap_err();
    assert_eq!(error, OperatorError::Unavailable("no route".to_owned()));

    let lost = held_store((0..TRIES).map(|_| Fate::RequestLost)).await;
    let error = operator(&lost).ask("job", "web-2").await.unwrap_err();
    assert_eq!(error, OperatorError::InDoubt("the line is dead".to_owned()));
    let mut fates = vec![Fate::RequestLost];
    fates.extend((1..TRIES).map(|_| Fate::Unavailable));
    let error = operator(&held_store(fates).await).ask("job", "web-2").await.unwrap_err();
    assert_eq!(error, OperatorError::InDoubt("no route".to_owned()), "a doubt remains");
}

#[tokio::test]
async fn what_the_record_forbids_is_refused_and_changes_nothing() {
    let free = held(State::Released { note: Note::EMPTY }, 1);
    let newer = br#"{"format":2,"name":"job"}"#.to_vec();
    let rule = |rule| OperatorError::from(Refusal::Rule(rule));
    for (value, asked, forced) in [
        (&free, rule(rules::Refusal::NotHeld), rule(rules::Refusal::AlreadyFree)),
        (
            &newer,
            OperatorError::Record(RecordFault::Newer { format: 2 }),
            OperatorError::Record(RecordFault::Newer { format: 2 }),
        ),
    ] {
        let store = store(Some(value), []).await;
        let operator = operator(&store);
        assert_eq!(operator.ask("job", "web-2").await, Err(asked));
        assert_eq!(operator.force("job", "stuck", "web-1").await, Err(forced));
        assert!(operator.init("job", TOKEN.parse().unwrap(), TTL).await.is_err());
        assert_eq!(self::value(&store).await, *value);
    }
    let store = held_store([]).await;
    let operator = operator(&store);
    let already = operator.ask("job", "00000000000000aa").await;
    assert_eq!(already, Err(rule(rules::Refusal::AlreadyHolds)));
    let silent = operator.force("job", "", "web-1").await;
    assert_eq!(silent, Err(rule(rules::Refusal::NoReason)));
    assert_eq!(operator.ask("other", "web-2").await, Err(Refusal::NoRecord.into()));
}

#[tokio::test]
async fn what_no_record_may_hold_is_misuse() {
    let store = held_store([]).await;
    let operator = operator(&store);
    let token: Token = TOKEN.parse().unwrap();
    let errors = [
        operator.ask("a b", "web-2").await.err(),
        operator.ask("job", "web 2").await.err(),
        operator.force("job", "say \"why\"", "web-1").await.err(),
        operator.init("other", token, Duration::ZERO).await.err(),
        operator.init("other", token, Duration::from_micros(1_500)).await.err(),
        operator.init("other", token, Duration::from_secs(86_401)).await.err(),
        Operator::new(&store, &"x".repeat(122)).err(),
        Operator::new(&store, "").err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(OperatorError::Misuse(_))), "{error:?}");
    }
}
