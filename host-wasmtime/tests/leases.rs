//! Work under a lease, over the core linked in and over the component alike.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use leasehold_core::observe::{How, Reason};
use leasehold_core::record::{self, State};
use leasehold_host::clock::{Clock as _, SystemClock};
use leasehold_host::protocol::{Event, Misuse};
use leasehold_host::store::{Answer, Capabilities, Check, Memory, Read, Store, Transact, Write};
use leasehold_host::{Candidate, Engine, Error, Held, Leases, Lost, Options};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

fn options(holder: &str) -> Options {
    let ttl = Duration::from_millis(1_000);
    Options { ttl, drain: Duration::from_millis(100), ..Options::new(holder) }
}

/// Runs a test's body over both protocols.
async fn over_both<Body>(body: impl Fn(Make) -> Body)
where
    Body: Future<Output = ()>,
{
    timeout(PATIENCE, body(Arc::new(Leases::native))).await.expect("in time");
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(None).expect("an engine"));
    let component: Make = Arc::new(|store, options| Leases::component(&ENGINE, store, options));
    timeout(PATIENCE, body(component)).await.expect("in time");
}

type Make = Arc<dyn Fn(Arc<dyn Store>, Options) -> Result<Leases, Error>>;

/// A store that can be cut off, or slowed for one key.
struct Faulty {
    memory: Memory,
    hangs: AtomicBool,
    slow_key: Option<&'static str>,
    linearizable: bool,
}

impl Faulty {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: Memory::new(),
            hangs: AtomicBool::new(false),
            slow_key: None,
            linearizable: true,
        })
    }

    fn delayed<T: Send + 'static>(&self, slow: bool, answer: Answer<T>) -> Answer<T> {
        if self.hangs.load(Ordering::SeqCst) {
            return Box::pin(pending());
        }
        Box::pin(async move {
            if slow {
                tokio::time::sleep(Duration::from_millis(2_500)).await;
            }
            answer.await
        })
    }
}

impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        Capabilities { linearizable: self.linearizable, ..self.memory.capabilities() }
    }

    fn read(&self, key: &str) -> Answer<Read> {
        self.delayed(self.slow_key == Some(key), self.memory.read(key))
    }

    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact> {
        let slow = checks.iter().any(|check| self.slow_key == Some(check.key.as_str()));
        self.delayed(slow, self.memory.transact(checks, writes))
    }
}

#[tokio::test]
async fn work_is_done_under_a_growing_term_and_the_lease_is_released() {
    over_both(|make| async move {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let leases = make(store.clone(), options("web-1")).unwrap();
        for term in 1..=3 {
            let held = leases.hold("job", |lease| async move {
                assert!(lease.may_start());
                lease.token().term.get()
            });
            assert_eq!(held.await.unwrap(), Held::Done(term));
            let Read::Entry { value, .. } = store.read("lease/job").await else {
                panic!("no record")
            };
            assert!(matches!(record::decode(&value).unwrap().state, State::Released { .. }));
        }
    })
    .await;
}

#[tokio::test]
async fn work_outlives_many_ttls_under_one_term() {
    over_both(|make| async move {
        let leases = make(Arc::new(Memory::new()), options("web-1")).unwrap();
        let held = leases.hold("job", |lease| async move {
            tokio::time::sleep(Duration::from_millis(3_500)).await;
            (lease.token().term.get(), lease.may_start())
        });
        assert_eq!(held.await.unwrap(), Held::Done((1, true)));
    })
    .await;
}

#[tokio::test]
async fn a_store_that_hangs_loses_the_lease_and_the_work_is_dropped_in_time() {
    over_both(|make| async move {
        struct Dropped(Arc<Mutex<Option<u64>>>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = Some(SystemClock.now().mono.0);
            }
        }
        let store = Faulty::new();
        let leases = make(store.clone(), options("web-1")).unwrap();
        let dropped = Arc::new(Mutex::new(None));
        let (guard, told) = (Dropped(dropped.clone()), Arc::new(AtomicBool::new(false)));
        let heard = told.clone();
        let started = Arc::new(Mutex::new(0));
        let begun = started.clone();
        let held = leases.hold("job", |mut lease| async move {
            let _guard = guard;
            *begun.lock().unwrap() = SystemClock.now().mono.0;
            store.hangs.store(true, Ordering::SeqCst);
            lease.lost().await;
            heard.store(true, Ordering::SeqCst);
            assert!(!lease.may_start());
            pending::<()>().await;
        });
        assert_eq!(held.await.unwrap(), Held::Lost(Lost::Demoted(Reason::DeadlinePassed)));
        assert!(told.load(Ordering::SeqCst), "the work learns of it before it is dropped");
        let ran_ns = dropped.lock().unwrap().unwrap() - *started.lock().unwrap();
        assert!(
            ran_ns < 1_000_000_000,
            "dropped {ran_ns} ns after the start, with a ttl of one second"
        );
    })
    .await;
}

#[tokio::test]
async fn of_many_contenders_one_works_at_a_time() {
    over_both(|make| async move {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let inside = Arc::new(AtomicU32::new(0));
        let terms = Arc::new(Mutex::new(Vec::new()));
        let contenders = (0..6).map(|contender| {
            let leases = make(store.clone(), options(&format!("web-{contender}"))).unwrap();
            let (inside, terms) = (inside.clone(), terms.clone());
            async move {
                let held = leases.hold("job", |lease| async move {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    terms.lock().unwrap().push(lease.token().term.get());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
                assert_eq!(held.await.unwrap(), Held::Done(()));
            }
        });
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let tasks: Vec<_> = contenders.map(tokio::task::spawn_local).collect();
                for task in tasks {
                    task.await.unwrap();
                }
            })
            .await;
        let terms = terms.lock().unwrap();
        assert!(terms.len() == 6 && terms.is_sorted_by(|one, next| one < next), "{terms:?}");
    })
    .await;
}

#[tokio::test]
async fn a_hold_that_is_dropped_frees_the_lease_at_once() {
    over_both(|make| async move {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let long = Options { ttl: Duration::from_secs(60), ..options("web-1") };
        let leases = make(store.clone(), long).unwrap();
        let (started, begun) = tokio::sync::oneshot::channel();
        let hold = leases.hold("job", |_| async move {
            started.send(()).unwrap();
            pending::<()>().await;
        });
        tokio::select! {
            _ = hold => panic!("the work never ends"),
            begun = begun => begun.unwrap(),
        }
        drop(leases);
        let next = make(store, options("web-2")).unwrap();
        assert_eq!(
            next.hold("job", |lease| async move { lease.token().term.get() }).await.unwrap(),
            Held::Done(2)
        );
    })
    .await;
}

#[tokio::test]
async fn a_slow_store_for_one_lease_delays_no_other() {
    over_both(|make| async move {
        let store = Arc::new(Faulty {
            slow_key: Some("lease/slow"),
            ..Arc::into_inner(Faulty::new()).unwrap()
        });
        let leases = make(store, options("web-1")).unwrap();
        let mut slow = leases.candidate("slow").await.unwrap();
        let mut fast = Vec::new();
        for lease in 0..200 {
            fast.push(leases.candidate(&format!("fast-{lease}")).await.unwrap());
        }
        let mut leading = 0;
        for candidate in &mut fast {
            while leading < 200 {
                match candidate.next().await.unwrap().event {
                    Event::Elected { token } => candidate.sealed(token),
                    Event::Leading { .. } => {
                        leading += 1;
                        break;
                    }
                    event => panic!("{event:?}"),
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        for candidate in &mut fast {
            while let Ok(update) = timeout(Duration::ZERO, candidate.next()).await {
                let event = update.unwrap().event;
                assert!(matches!(event, Event::Renewed { .. }), "{event:?}");
            }
            assert!(candidate.status().await.unwrap().may_start);
        }
        assert!(matches!(slow.next().await.unwrap().event, Event::StoreDown));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_a_lease_is_refused_with_the_remedy() {
    over_both(|make| async move {
        let weak =
            Arc::new(Faulty { linearizable: false, ..Arc::into_inner(Faulty::new()).unwrap() });
        let Err(refused) = make(weak.clone(), options("web-1")) else {
            panic!("an eventual store was taken")
        };
        assert_eq!(refused, Error::NotLinearizable);
        assert!(make(weak, Options { unsafe_eventual: true, ..options("web-1") }).is_ok());

        let leases = make(Arc::new(Memory::new()), options("web-1")).unwrap();
        for name in ["", "a b", "ä", &"x".repeat(129)] {
            assert!(
                matches!(leases.candidate(name).await, Err(Error::Misuse(Misuse::Name(_)))),
                "{name:?}"
            );
        }
        let short = Options {
            ttl: Duration::from_millis(300),
            drain: Duration::from_millis(300),
            ..options("web-1")
        };
        let leases = make(Arc::new(Memory::new()), short).unwrap();
        let Err(error) = leases.candidate("job").await else { panic!("taken") };
        assert!(error.to_string().contains("or more; use that"), "{error}");
        let leases = make(Arc::new(Memory::new()), options("not a label")).unwrap();
        assert!(matches!(leases.candidate("job").await, Err(Error::Misuse(Misuse::Holder(_)))));
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_handed_to_the_one_named_and_to_nobody_else_meanwhile() {
    over_both(|make| async move {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let candidate = async |holder| {
            let candidate = make(store.clone(), options(holder)).unwrap().candidate("job").await;
            candidate.unwrap()
        };
        let mut first = candidate("web-1").await;
        lead(&mut first).await;
        let mut other = candidate("web-2").await;
        let mut heir = candidate("web-3").await;
        assert!(first.hand_off("not a label").is_err());
        first.hand_off("web-3").unwrap();
        let drains = async {
            loop {
                match first.next().await.unwrap().event {
                    Event::Demoted { token, .. } => first.drained(token),
                    Event::Ended { how, .. } => break assert_eq!(how, How::Offered),
                    _ => {}
                }
            }
        };
        let next = async {
            tokio::select! {
                () = lead(&mut other) => "web-2",
                () = lead(&mut heir) => "web-3",
            }
        };
        let ((), next) = tokio::join!(drains, next);
        assert_eq!(next, "web-3");
        assert_eq!(heir.status().await.unwrap().token.unwrap().term.get(), 2);
    })
    .await;
}

async fn lead(candidate: &mut Candidate) {
    loop {
        match candidate.next().await.expect("an update").event {
            Event::Elected { token } => candidate.sealed(token),
            Event::Leading { .. } => return,
            _ => {}
        }
    }
}
