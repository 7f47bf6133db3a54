//! Whether a store keeps its contract: tried out, through two connections to it.

mod ask;
mod left;

use std::time::Duration;

use leasehold_core::time::{Drift, MILLISECOND_NS, Mono};

use super::{Expect, Finding, Outcome, Store, Transact, Version};
use crate::clock::{Clock as _, SystemClock};
use crate::protocol::{Entropy as _, OsEntropy};
use ask::{
    Entry, PATIENCE, Race, Stop, applied, broken, check, ensure, entry, present, read, transact,
    write,
};
use left::Left;

/// What a [`probe`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
    /// Why the probe ended before its end, in the store's words.
    pub ended: Option<String>,
}

/// What a [`Report`] comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store may keep leases.
    Fit,
    /// It must not.
    Unfit,
    /// It could not be asked everything.
    Unreachable,
}

impl Report {
    /// Unfit for anything broken, whether or not the probe came to its end.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match &self.ended {
            _ if self.is_broken() => Verdict::Unfit,
            Some(_) => Verdict::Unreachable,
            None => Verdict::Fit,
        }
    }

    fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.outcome == Outcome::Broken)
    }
}

/// Tries out whether `first` and `second`, two connections to one store, keep the contract of
/// [`Store`]; what the engine knows of itself comes first.
///
/// It writes the keys `doctor` and `doctor/second`, about twenty times, and deletes nothing: what a
/// probe leaves is what the next one starts from. Leases in the store are not touched. Two probes
/// at a time notice one another, and end. A store that its own engine finds broken is not written.
///
/// That a test passes does not prove that the store holds: it shows that the store is not one of
/// those that only seem to compare before they write.
///
/// # Panics
/// Outside a tokio runtime with time, for a store that tells ages.
pub async fn probe(first: &dyn Store, second: &dyn Store) -> Report {
    let report = Report { findings: first.inspect().await, ended: None };
    let mut probe = Probe {
        first,
        second,
        report,
        id: 0,
        found: None,
        writes: 0,
        earlier: Vec::new(),
        seen: Vec::new(),
        repeated: false,
    };
    if probe.report.is_broken() {
        let why = "nothing is written to a store that is broken";
        probe.report.findings.push(Finding::not_tried("contract", why));
    } else {
        // How it ended stands in the report.
        let _ = probe.try_all().await;
    }
    probe.report
}

/// What is tried, and its words.
struct Trial {
    name: &'static str,
    holds: &'static str,
    /// What follows where it is broken.
    follows: &'static str,
}

const BEGIN: Trial =
    Trial { name: "reachable", holds: "the store answers", follows: "there is nothing to probe" };
const LINEARIZABLE: Trial = Trial {
    name: "linearizable",
    holds: "the store vouches for reads that see every earlier write, and for durable writes",
    follows: "two holders are possible at any time, and only the fence protects",
};
const CREATE: Trial = Trial {
    name: "create-if-absent",
    holds: "a key that exists is not created again",
    follows: "two candidates could create one lease, and both hold it",
};
const READ: Trial = Trial {
    name: "read-your-write",
    holds: "both connections read what was written, byte for byte",
    follows: "a holder could take its own lease for lost, and a candidate a living holder for dead",
};
const CONDITION: Trial = Trial {
    name: "conditional-write",
    holds: "a write at a version that has passed is refused",
    follows: "a holder that was replaced could write over its successor",
};
const RACE: Trial = Trial {
    name: "race",
    holds: "of two writes at one version, at the same time, exactly one is applied",
    follows: "two candidates could both win one lease",
};
const VERSIONS: Trial = Trial {
    name: "versions",
    holds: "no version came twice",
    follows: "a write that was delayed could be applied in a later state than it was meant for",
};
const SEVERAL: Trial = Trial {
    name: "several-keys",
    holds: "writes of several keys are applied together or not at all",
    follows: "a step of a saga could be written without its lease being held",
};
const CLOCK: Trial = Trial {
    name: "store-clock",
    holds: "the store's ages are right, within the error that it declares",
    follows: "a living holder could be taken for dead, or a dead one for living",
};

const KEY: &str = "doctor";
const SECOND_KEY: &str = "doctor/second";
/// How often the two connections race.
const RACES: u32 = 8;
/// How many probes are remembered in the value.
const REMEMBERED: usize = 8;

/// The probe is over; why is in its report.
struct Over;

struct Probe<'a> {
    first: &'a dyn Store,
    second: &'a dyn Store,
    report: Report,
    /// Stands in everything that this probe writes.
    id: u64,
    /// What an earlier probe left. It may be at work still: what it writes from now on disturbs.
    found: Option<Version>,
    writes: u32,
    /// A version that each of the last probes left.
    earlier: Vec<Version>,
    /// All versions of the key that are known.
    seen: Vec<Version>,
    repeated: bool,
}

impl Probe<'_> {
    async fn try_all(&mut self) -> Result<(), Over> {
        let begun = self.begin().await;
        if begun.is_err() {
            self.found(&BEGIN, begun).await?;
        }
        let vouched = self.linearizable();
        self.found(&LINEARIZABLE, vouched).await?;
        let created = self.create_if_absent().await;
        self.found(&CREATE, created).await?;
        let read = self.read_your_write().await;
        self.found(&READ, read).await?;
        let refused = self.conditional_write().await;
        self.found(&CONDITION, refused).await?;
        let raced = self.race().await;
        self.found(&RACE, raced).await?;
        // After the others, whose versions count too.
        let differ = self.versions().await;
        self.found(&VERSIONS, differ).await?;
        let together = self.several_keys().await;
        self.found(&SEVERAL, together).await?;
        let aged = self.store_clock().await;
        self.found(&CLOCK, aged).await
    }

    /// Writes down what a trial came to.
    async fn found(&mut self, trial: &Trial, result: Result<(), Stop>) -> Result<(), Over> {
        let Trial { name, holds, follows } = *trial;
        let advice = format!("{follows}: keep no leases in this store");
        let result = match result {
            Err(Stop::Broken(saw)) => Err(self.broken_or_disturbed(saw).await),
            other => other,
        };
        let mut over = Ok(());
        let finding = match result {
            Ok(()) => Finding::holds(name, holds),
            Err(Stop::NotTried(why)) => Finding::not_tried(name, why),
            Err(Stop::Warning(saw, follows)) => Finding::warning(name, saw, follows),
            Err(Stop::Broken(saw)) => Finding::broken(name, saw, advice),
            Err(Stop::Gone(why)) => {
                over = Err(Over);
                Finding::broken(name, why, "the leases in it count for nobody any more")
            }
            Err(Stop::Ended(why)) => {
                over = Err(Over);
                self.report.ended = Some(why.clone());
                Finding::not_tried(name, why)
            }
        };
        self.report.findings.push(finding);
        over
    }

    /// What was seen is the store's fault, unless another probe writes at the same time.
    async fn broken_or_disturbed(&self, saw: String) -> Stop {
        match read(self.first, KEY).await {
            Ok(Some(now)) if self.is_anothers(&now) => Stop::Ended(DISTURBED.to_owned()),
            Ok(_) => Stop::Broken(saw),
            // Nobody knows whose fault it was.
            Err(unread) => unread,
        }
    }

    fn is_anothers(&self, now: &Entry) -> bool {
        let writer = Left::parse(&now.value).map(|left| left.probe);
        writer.is_some_and(|writer| writer != self.id) && Some(now.version) != self.found
    }

    /// Learns what earlier probes left.
    async fn begin(&mut self) -> Result<(), Stop> {
        self.id = OsEntropy.salt().map_err(|error| Stop::Ended(error.to_string()))?;
        if let Some(entry) = read(self.first, KEY).await? {
            if let Some(left) = Left::parse(&entry.value) {
                self.found = Some(entry.version);
                self.earlier = left.earlier;
            }
            self.earlier.push(entry.version);
            let forgotten = self.earlier.len().saturating_sub(REMEMBERED);
            self.earlier.drain(..forgotten);
            self.seen.clone_from(&self.earlier);
        }
        Ok(())
    }

    fn linearizable(&self) -> Result<(), Stop> {
        let declared = self.first.capabilities().linearizable;
        ensure(declared, "the store does not vouch for linearizable reads and durable writes")
    }

    async fn create_if_absent(&mut self) -> Result<(), Stop> {
        if read(self.first, KEY).await?.is_none() {
            let created = self.put(self.first, Expect::Absent).await?;
            ensure(created.is_some(), "a key that is absent could not be created")?;
        }
        let before = entry(self.first, KEY).await?;
        let again = self.put(self.second, Expect::Absent).await?;
        ensure(again.is_none(), "a key that exists was created again")?;
        let after = entry(self.first, KEY).await?;
        ensure(after.is_at(before.version, &before.value), "a create that was refused wrote")
    }

    async fn read_your_write(&mut self) -> Result<(), Stop> {
        for writer in [self.first, self.second] {
            let (version, value) = self.advance(writer).await?;
            for (reader, which) in [(self.first, "first"), (self.second, "second")] {
                let found = entry(reader, KEY).await?;
                ensure(
                    found.is_at(version, &value),
                    format_args!("the {which} connection read another entry than was written"),
                )?;
            }
        }
        Ok(())
    }

    async fn conditional_write(&mut self) -> Result<(), Stop> {
        let (passed, _) = self.advance(self.first).await?;
        self.advance(self.first).await?;
        let before = entry(self.first, KEY).await?;
        for writer in [self.first, self.second] {
            let late = self.put(writer, Expect::Version(passed)).await?;
            ensure(late.is_none(), "a write at a version that has passed was applied")?;
        }
        let after = entry(self.first, KEY).await?;
        ensure(after.is_at(before.version, &before.value), "a write that was refused wrote")
    }

    async fn race(&mut self) -> Result<(), Stop> {
        let mut missed = 0;
        let mut raced = 0;
        while raced < RACES {
            let base = entry(self.first, KEY).await?.version;
            let values = [self.value(), self.value()];
            let (one, other) = self.both(base, &values, raced % 2 == 0).await;
            match (applied(one)?, applied(other)?) {
                (Race::Won(_), Race::Won(_)) => {
                    return broken("two writes at one version were both applied");
                }
                (Race::Won(version), _) => self.won(version, &values[0]).await?,
                (_, Race::Won(version)) => self.won(version, &values[1]).await?,
                (Race::Lost, Race::Lost) => {
                    return broken("of two writes at one version none was applied");
                }
                (Race::Missed(why), _) | (_, Race::Missed(why)) => {
                    missed += 1;
                    if missed == PATIENCE {
                        return Err(Stop::Ended(why));
                    }
                    continue;
                }
            }
            raced += 1;
        }
        Ok(())
    }

    /// Both connections write at `base`, at the same time.
    async fn both(
        &self,
        base: Version,
        [one, other]: &[Vec<u8>; 2],
        first_goes_first: bool,
    ) -> (Transact, Transact) {
        let write = |through: &dyn Store, value: &Vec<u8>| {
            through.transact(vec![check(KEY, Expect::Version(base))], vec![write(KEY, value)])
        };
        if first_goes_first {
            tokio::join!(write(self.first, one), write(self.second, other))
        } else {
            let (other, one) = tokio::join!(write(self.second, other), write(self.first, one));
            (one, other)
        }
    }

    async fn won(&mut self, version: Version, value: &[u8]) -> Result<(), Stop> {
        self.note(version);
        let found = entry(self.first, KEY).await?;
        ensure(found.is_at(version, value), "the write that won a race is not what is there")
    }

    async fn versions(&mut self) -> Result<(), Stop> {
        let (first, _) = self.advance(self.first).await?;
        for writer in [self.second, self.first] {
            self.advance(writer).await?;
        }
        ensure(!self.repeated, "a version came again")?;
        let late = self.put(self.second, Expect::Version(first)).await?;
        ensure(late.is_none(), "a write at a version long passed was applied")
    }

    async fn several_keys(&mut self) -> Result<(), Stop> {
        if !self.first.capabilities().multi_key {
            return Err(Stop::NotTried("the store declares no transactions over several keys"));
        }
        // Twice, so that each of the keys has a version that has passed.
        let passed = self.advance_both().await?;
        let [version, second_version] = self.advance_both().await?;
        let before = [entry(self.first, KEY).await?, entry(self.first, SECOND_KEY).await?];
        for expect in [[passed[0], second_version], [version, passed[1]]] {
            let both = self.put_both(self.second, expect.map(Expect::Version)).await?;
            ensure(both.is_none(), "a transaction was applied though one of its checks failed")?;
            let after = [entry(self.first, KEY).await?, entry(self.first, SECOND_KEY).await?];
            let untouched = before.iter().zip(&after).all(|(b, a)| a.is_at(b.version, &b.value));
            ensure(untouched, "a transaction that was refused wrote one of its keys")?;
        }
        Ok(())
    }

    async fn store_clock(&mut self) -> Result<(), Stop> {
        let Some(error_ns) = self.first.capabilities().store_clock_error_ns else {
            return Err(Stop::NotTried(
                "the store tells no ages: candidates watch a record for as long as its ttl",
            ));
        };
        let begun = now();
        self.advance(self.first).await?;
        let written = Written { begun, ended: now(), error_ns };
        let young = written.age(self.first).await?;
        let wait_ns = error_ns.saturating_mul(3).saturating_add(20 * MILLISECOND_NS);
        tokio::time::sleep(Duration::from_nanos(wait_ns).min(LONGEST_WAIT)).await;
        for reader in [self.second, self.first] {
            let old = written.age(reader).await?;
            // With a larger error there is nothing to be seen in so short a time.
            let grown = old > young || Duration::from_nanos(wait_ns) > LONGEST_WAIT;
            ensure(grown, "an age did not grow")?;
        }
        Ok(())
    }

    /// Writes a new value at the present version, or creates the key.
    async fn advance(&mut self, writer: &dyn Store) -> Result<(Version, Vec<u8>), Stop> {
        let expect = present(self.first, KEY).await?;
        let value = self.value();
        match self.put_value(writer, expect, &value).await? {
            Some(version) => Ok((version, value)),
            None => broken("a write at the version that was just read was refused"),
        }
    }

    /// The same for both keys, in one transaction.
    async fn advance_both(&mut self) -> Result<[Version; 2], Stop> {
        let expect = [present(self.first, KEY).await?, present(self.first, SECOND_KEY).await?];
        match self.put_both(self.first, expect).await? {
            Some(versions) => Ok(versions),
            None => broken("a transaction was refused though its checks held"),
        }
    }

    /// A conditional write of a new value; none: it was refused.
    async fn put(&mut self, writer: &dyn Store, expect: Expect) -> Result<Option<Version>, Stop> {
        let value = self.value();
        self.put_value(writer, expect, &value).await
    }

    async fn put_value(
        &mut self,
        writer: &dyn Store,
        expect: Expect,
        value: &[u8],
    ) -> Result<Option<Version>, Stop> {
        let applied = transact(writer, &[check(KEY, expect)], &[write(KEY, value)]).await?;
        let Some([version]) = applied else { return Ok(None) };
        self.note(version);
        Ok(Some(version))
    }

    async fn put_both(
        &mut self,
        writer: &dyn Store,
        [expect, second_expect]: [Expect; 2],
    ) -> Result<Option<[Version; 2]>, Stop> {
        let value = self.value();
        let checks = [check(KEY, expect), check(SECOND_KEY, second_expect)];
        transact(writer, &checks, &[write(KEY, &value), write(SECOND_KEY, &value)]).await
    }

    fn note(&mut self, version: Version) {
        self.repeated |= self.seen.contains(&version);
        self.seen.push(version);
    }

    /// A value that never was.
    fn value(&mut self) -> Vec<u8> {
        self.writes = self.writes.saturating_add(1);
        Left { probe: self.id, earlier: self.earlier.clone() }.text(self.writes).into_bytes()
    }
}

const DISTURBED: &str =
    "another doctor was at work on this store meanwhile; run this one again, alone";

/// The wait for an age to grow is no longer.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// When something was written, by our own clock.
struct Written {
    begun: Mono,
    ended: Mono,
    error_ns: u64,
}

impl Written {
    /// The age that the store tells, if it is right.
    async fn age(&self, reader: &dyn Store) -> Result<u64, Stop> {
        let asked = now();
        let age_ns = entry(reader, KEY).await?.age_ns;
        let answered = now();
        let age_ns = age_ns.ok_or(Stop::Warning(
            "the store declares a clock, and told no age of what was just written",
            "candidates watch such a record for its ttl: a dead holder's lease is free later",
        ))?;
        // Two clocks, each of them off by the drift.
        let (shrink, stretch) =
            (|ns| Drift::DEFAULT.shrink_ns(ns), |ns| Drift::DEFAULT.stretch_ns(ns));
        // Young by a step of the store's clock twice: a stamp is rounded up, an age down.
        let rounded_ns = self.error_ns.saturating_mul(2);
        let least = shrink(shrink(asked.since(self.ended))).saturating_sub(rounded_ns);
        let most = stretch(stretch(answered.since(self.begun))).saturating_add(self.error_ns);
        let [age, least_ms, most_ms] = [age_ns, least, most].map(|ns| ns / MILLISECOND_NS);
        ensure(
            (least..=most).contains(&age_ns),
            format_args!("an age was told as {age} ms, and is {least_ms} to {most_ms} ms"),
        )?;
        Ok(age_ns)
    }
}

fn now() -> Mono {
    SystemClock.now().mono
}
