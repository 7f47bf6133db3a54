//! The probe finds each way in which a store may be wrong, and nothing in one that is right.

mod store_support;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Instant;

use leasehold_host::store::{
    Answer, Capabilities, Check, Expect, Memory, Outcome, Read, Report, Store, Transact, Verdict,
    Version, Write, probe,
};
use store_support::{directory, fixture, must_put, must_read, open};

#[tokio::test]
async fn memory_is_fit_again_and_again() {
    let memory = Memory::new();
    for _ in 0..12 {
        let report = probe(&memory, &memory.clone()).await;
        assert_eq!(report.verdict(), Verdict::Fit, "{report:#?}");
        assert_eq!(names(&report, Outcome::NotTried), ["store-clock"], "{report:#?}");
    }
    let Read::Entry { value, .. } = memory.read("doctor").await else { panic!("nothing is left") };
    assert!(value.len() < 1024, "it does not grow for ever");
}

#[test]
fn sqlite_is_fit_and_the_leases_in_it_stay() {
    let fixture = fixture();
    let second = open(&fixture.path).unwrap();
    must_put(&fixture.store, "lease/a", Expect::Absent, "held");
    for _ in 0..2 {
        let report = wait(probe(&fixture.store, &second));
        assert_eq!(report.verdict(), Verdict::Fit, "{report:#?}");
        assert_eq!(names(&report, Outcome::Broken), [""; 0], "{report:#?}");
        let holds = names(&report, Outcome::Holds);
        for name in ["integrity", "durability", "writable", "permissions", "race", "several-keys"] {
            assert!(holds.contains(&name), "no {name} in {report:#?}");
        }
        #[cfg(target_os = "linux")]
        assert!(holds.contains(&"store-clock"), "{report:#?}");
    }
    assert_eq!(must_read(&fixture.store, "lease/a").0, "held");
}

#[test]
fn a_damaged_database_is_not_written() {
    let directory = directory();
    let path = directory.path().join("leases.db");
    let (first, second) = (open(&path).unwrap(), open(&path).unwrap());
    must_put(&first, "doctor", Expect::Absent, "before");
    let by_hand = store_support::by_hand(&path);
    by_hand
        .execute_batch(
            "CREATE TABLE t (x); CREATE INDEX i ON t (x); INSERT INTO t VALUES (1);
             PRAGMA writable_schema = ON;
             UPDATE sqlite_master SET rootpage = 2 WHERE name = 'i';",
        )
        .unwrap();
    drop(by_hand);
    let report = wait(probe(&first, &second));
    assert_eq!(report.verdict(), Verdict::Unfit, "{report:#?}");
    assert_eq!(names(&report, Outcome::Broken), ["integrity"], "{report:#?}");
    assert_eq!(must_read(&first, "doctor").0, "before");
}

#[tokio::test]
async fn a_store_that_is_right_but_for_its_faults_is_fit() {
    let report = of(Fault::None).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report:#?}");
    assert_eq!(names(&report, Outcome::NotTried), [""; 0], "{report:#?}");
}

#[tokio::test]
async fn a_store_that_ignores_preconditions_is_found() {
    let report = of(Fault::IgnoresChecks).await;
    assert_eq!(report.verdict(), Verdict::Unfit);
    let broken = names(&report, Outcome::Broken);
    for name in ["create-if-absent", "conditional-write", "race", "versions", "several-keys"] {
        assert!(broken.contains(&name), "no {name} in {broken:?}");
    }
}

#[tokio::test]
async fn a_create_that_overwrites_is_found() {
    only(Fault::OverwritesOnCreate, "create-if-absent").await;
}

#[tokio::test]
async fn versions_that_come_again_are_found() {
    only(Fault::VersionsRepeat, "versions").await;
}

#[tokio::test]
async fn a_version_that_an_earlier_probe_left_is_found() {
    let store = Wrong::new(Fault::None);
    assert_eq!(probe(&store, &store.second()).await.verdict(), Verdict::Fit);
    // As an engine does that counts anew after a restart.
    store.locked(|kept| kept.writes = kept.at_the_end - 1);
    let report = probe(&store, &store.second()).await;
    assert_eq!(names(&report, Outcome::Broken), ["versions"], "{report:#?}");
}

#[tokio::test]
async fn versions_that_say_little_of_the_value_are_found() {
    let report = of(Fault::VersionIsLength).await;
    let broken = names(&report, Outcome::Broken);
    assert!(broken.contains(&"versions") && broken.contains(&"conditional-write"), "{report:#?}");
}

#[tokio::test]
async fn a_second_connection_that_reads_the_past_is_found() {
    only(Fault::SecondReadsThePast, "read-your-write").await;
}

#[tokio::test]
async fn a_value_that_comes_back_changed_is_found() {
    let report = of(Fault::TrimsValues).await;
    assert!(names(&report, Outcome::Broken).contains(&"read-your-write"), "{report:#?}");
}

#[tokio::test]
async fn checks_that_are_not_one_step_with_the_write_lose_the_race() {
    only(Fault::ChecksBeforeItWrites, "race").await;
}

#[tokio::test]
async fn half_of_a_transaction_is_found() {
    only(Fault::WritesWhatItCan, "several-keys").await;
}

#[tokio::test]
async fn an_age_that_is_too_great_or_stands_still_is_found() {
    only(Fault::AddsAMinute, "store-clock").await;
    only(Fault::TellsNoTime, "store-clock").await;
}

#[tokio::test]
async fn an_age_that_is_declared_and_not_told_is_a_warning() {
    let report = of(Fault::TellsNoAge).await;
    assert_eq!(report.verdict(), Verdict::Fit);
    assert_eq!(names(&report, Outcome::Warning), ["store-clock"], "{report:#?}");
}

#[tokio::test]
async fn an_applied_write_that_is_lost_is_found() {
    let report = of(Fault::LosesUpdates).await;
    let broken = names(&report, Outcome::Broken);
    assert!(broken.contains(&"read-your-write"), "{report:#?}");
}

#[tokio::test]
async fn a_store_that_does_not_vouch_for_linearizable_reads_is_found() {
    only(Fault::IsEventual, "linearizable").await;
}

#[tokio::test]
async fn what_a_store_does_not_declare_is_not_tried() {
    let report = of(Fault::DeclaresNothingMore).await;
    assert_eq!(report.verdict(), Verdict::Fit);
    assert_eq!(names(&report, Outcome::NotTried), ["several-keys", "store-clock"]);
}

#[tokio::test]
async fn a_doubtful_answer_ends_the_probe_in_the_stores_words() {
    let report = of(Fault::AnswersUnknown).await;
    assert_eq!(report.verdict(), Verdict::Unreachable);
    assert_eq!(report.ended.as_deref(), Some("the answer was lost"));
    let last = report.findings.last().unwrap();
    assert_eq!((last.name, last.outcome), ("create-if-absent", Outcome::NotTried));
}

#[tokio::test]
async fn a_store_that_is_gone_is_unfit() {
    let report = of(Fault::IsGone).await;
    assert_eq!(report.verdict(), Verdict::Unfit);
    assert_eq!(names(&report, Outcome::Broken), ["create-if-absent"], "{report:#?}");
    assert_eq!(report.findings.last().unwrap().saw, "the file was replaced");
}

#[tokio::test]
async fn a_store_that_is_busy_for_a_moment_is_asked_again() {
    let report = of(Fault::IsBusyAtTimes).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report:#?}");
    let report = of(Fault::IsBusy).await;
    assert_eq!(report.ended.as_deref(), Some("locked"));
}

#[tokio::test]
async fn two_probes_at_a_time_notice_one_another() {
    let memory = Wrong::new(Fault::YieldsOften);
    let second = memory.second();
    let (one, other) = tokio::join!(probe(&memory, &second), probe(&second, &memory));
    for report in [&one, &other] {
        assert_eq!(names(report, Outcome::Broken), [""; 0], "{report:#?}");
    }
    let ended = [&one, &other].map(|report| report.ended.clone().unwrap_or_default());
    assert!(ended.iter().any(|why| why.contains("run this one again, alone")), "{ended:?}");
}

/// The one that came first wrote what the other found, and goes on writing.
#[tokio::test]
async fn a_probe_that_begins_in_the_middle_of_another_never_blames_the_store() {
    let mut disturbed = 0;
    for steps in 0..100 {
        let store = Wrong::new(Fault::YieldsOften);
        let second = store.second();
        let mut one = pin!(probe(&store, &second));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..steps {
            assert!(one.as_mut().poll(&mut context).is_pending(), "it is over after {steps}");
        }
        let (one, other) = tokio::join!(one, probe(&store, &second));
        for report in [&one, &other] {
            assert_eq!(names(report, Outcome::Broken), [""; 0], "{steps}: {report:#?}");
            disturbed += usize::from(report.ended.is_some());
        }
    }
    assert!(disturbed > 50, "only {disturbed} were disturbed");
}

/// The fault is found, and by nothing but the finding meant for it.
async fn only(fault: Fault, finding: &str) {
    let report = of(fault).await;
    assert_eq!(report.verdict(), Verdict::Unfit, "{report:#?}");
    assert_eq!(names(&report, Outcome::Broken), [finding], "{report:#?}");
    let found = report.findings.iter().find(|found| found.name == finding).unwrap();
    assert!(found.advice.ends_with("keep no leases in this store"), "{found:?}");
}

async fn of(fault: Fault) -> Report {
    let store = Wrong::new(fault);
    probe(&store, &store.second()).await
}

fn names(report: &Report, outcome: Outcome) -> Vec<&'static str> {
    let of_it = report.findings.iter().filter(|finding| finding.outcome == outcome);
    of_it.map(|finding| finding.name).collect()
}

fn wait<T>(answer: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(answer)
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    IgnoresChecks,
    OverwritesOnCreate,
    VersionsRepeat,
    VersionIsLength,
    SecondReadsThePast,
    TrimsValues,
    ChecksBeforeItWrites,
    WritesWhatItCan,
    AddsAMinute,
    TellsNoTime,
    TellsNoAge,
    LosesUpdates,
    IsEventual,
    DeclaresNothingMore,
    AnswersUnknown,
    IsGone,
    IsBusyAtTimes,
    IsBusy,
    YieldsOften,
}

/// One of two connections to a store with a fault.
struct Wrong {
    fault: Fault,
    is_second: bool,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    entries: BTreeMap<String, Kv>,
    /// What the key held before.
    past: BTreeMap<String, Kv>,
    writes: u64,
    /// `writes` after the last one of the key `doctor`.
    at_the_end: u64,
    asked: u64,
}

#[derive(Clone)]
struct Kv {
    value: Vec<u8>,
    version: Version,
    written: Instant,
}

impl Wrong {
    fn new(fault: Fault) -> Self {
        Self { fault, is_second: false, kept: Arc::default() }
    }

    fn second(&self) -> Self {
        Self { fault: self.fault, is_second: true, kept: self.kept.clone() }
    }

    fn locked<T>(&self, operation: impl FnOnce(&mut Kept) -> T) -> T {
        operation(&mut self.kept.lock().unwrap())
    }
}

impl Store for Wrong {
    fn capabilities(&self) -> Capabilities {
        let little = self.fault == Fault::DeclaresNothingMore;
        Capabilities {
            linearizable: self.fault != Fault::IsEventual,
            multi_key: !little,
            store_clock_error_ns: (!little).then_some(1_000_000),
            watch: false,
        }
    }

    fn read(&self, key: &str) -> Answer<Read> {
        let past = self.is_second && self.fault == Fault::SecondReadsThePast;
        let fault = self.fault;
        let answer = self.locked(|kept| {
            let now = kept.entries.get(key);
            let found = if past { kept.past.get(key).or(now) } else { now };
            let Some(Kv { value, version, written }) = found.cloned() else { return Read::Absent };
            let age_ns = u64::try_from(written.elapsed().as_nanos()).unwrap();
            let age_ns = match fault {
                Fault::AddsAMinute => Some(age_ns + 60_000_000_000),
                Fault::TellsNoTime => Some(0),
                Fault::TellsNoAge => None,
                _ => Some(age_ns),
            };
            Read::Entry { value, version, age_ns }
        });
        Box::pin(async move {
            if fault == Fault::YieldsOften {
                tokio::task::yield_now().await;
            }
            answer
        })
    }

    fn transact(&self, checks: Vec<Check>, writes: Vec<Write>) -> Answer<Transact> {
        let (fault, kept) = (self.fault, self.kept.clone());
        let asked = self.locked(|kept| {
            kept.asked += 1;
            kept.asked
        });
        let failing = match fault {
            Fault::AnswersUnknown => Some(Transact::Unknown("the answer was lost".to_owned())),
            Fault::IsGone => Some(Transact::Gone("the file was replaced".to_owned())),
            Fault::IsBusyAtTimes if asked.is_multiple_of(3) => {
                Some(Transact::Unavailable("locked".to_owned()))
            }
            Fault::IsBusy => Some(Transact::Undecided("locked".to_owned())),
            _ => None,
        };
        Box::pin(async move {
            if let Some(failing) = failing {
                return failing;
            }
            let holds = kept.lock().unwrap().all_hold(fault, &checks);
            if matches!(fault, Fault::ChecksBeforeItWrites | Fault::YieldsOften) {
                tokio::task::yield_now().await;
            }
            let mut kept = kept.lock().unwrap();
            let holds = if fault == Fault::ChecksBeforeItWrites {
                holds
            } else {
                kept.all_hold(fault, &checks)
            };
            if holds {
                let versions = writes.into_iter().map(|write| kept.put(fault, write));
                return Transact::Applied(versions.collect());
            }
            if fault == Fault::WritesWhatItCan && writes.len() > 1 {
                let can = writes.into_iter().zip(&checks).filter(|(_, check)| kept.holds(check));
                let can: Vec<Write> = can.map(|(write, _)| write).collect();
                for write in can {
                    kept.put(fault, write);
                }
            }
            Transact::Conflict
        })
    }
}

impl Kept {
    fn all_hold(&self, fault: Fault, checks: &[Check]) -> bool {
        checks.iter().all(|check| match fault {
            Fault::IgnoresChecks => true,
            Fault::OverwritesOnCreate if check.expect == Expect::Absent => true,
            _ => self.holds(check),
        })
    }

    fn holds(&self, check: &Check) -> bool {
        match (self.entries.get(&check.key), check.expect) {
            (None, Expect::Absent) => true,
            (Some(kv), Expect::Version(version)) => kv.version == version,
            _ => false,
        }
    }

    fn put(&mut self, fault: Fault, Write { key, mut value }: Write) -> Version {
        self.writes += 1;
        let number = match fault {
            // Of 3, so that two keys written together do not stand still.
            Fault::VersionsRepeat => self.writes % 3,
            Fault::VersionIsLength => value.len() as u64,
            _ => self.writes,
        };
        if fault == Fault::TrimsValues {
            value = value.trim_ascii_end().to_vec();
        }
        if key == "doctor" {
            self.at_the_end = self.writes;
        }
        let version = Version::new(&number.to_be_bytes()).unwrap();
        let kv = Kv { value, version, written: Instant::now() };
        let was = self.entries.get(&key).cloned();
        if fault != Fault::LosesUpdates || was.is_none() {
            self.entries.insert(key.clone(), kv);
        }
        was.and_then(|was| self.past.insert(key, was));
        version
    }
}
