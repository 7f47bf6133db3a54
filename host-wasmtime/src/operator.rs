//! What an operator does to a lease from outside: a wish for a hand-off, an end by force, a
//! tombstone where the record was lost.
//!
//! Each verb reads the record, asks the core's rule, and writes on the condition that the record
//! is still as it was read. Where somebody else wrote meanwhile it reads and decides again. A
//! record that cannot be read is never overwritten.

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use leasehold_core::label::{Label, Name, Note};
use leasehold_core::operator::{self as rules, Signature};
use leasehold_core::record::{self, Ask, Kind, LeaseRecord, RecordFault, State};
use leasehold_core::time::MILLISECOND_NS;
use leasehold_core::token::{Nonce, Token};

use crate::clock::{Clock as _, SystemClock};
use crate::protocol::{Entropy as _, OsEntropy};
use crate::store::{Check, Expect, Read, Store, Transact, Version, Write};

/// How often a verb decides anew. Holders renew a few times a ttl, and a decision takes two
/// requests: who loses so many races in a row meets something else than a holder.
const TRIES: usize = 8;
/// Before a store that did not decide, or lost its answer, is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// What comes before the operator's label in a record that it wrote. An asker's stays out of it.
const FORCED: &str = "forced";
const INIT: &str = "init";
const ASKED: &str = "asked";

/// One operator at a store; it never holds a lease. To be used in a tokio runtime with time
/// enabled. A store that hangs keeps a verb waiting, and dropping the verb cancels nothing.
///
/// ```no_run
/// use leasehold_host::operator::Operator;
/// use leasehold_host::store;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = store::open("sqlite:leases.db")?;
/// let operator = Operator::new(&*store, "ops@desk")?;
/// let forced = operator.force("settlement", "stuck since noon", "web-1").await?;
/// println!("{} has lost it; others wait {:?}", forced.ended.holder, forced.now.ttl);
/// # Ok(())
/// # }
/// ```
pub struct Operator<'a> {
    store: &'a dyn Store,
    who: String,
    instance: Nonce,
}

/// A lease's record at one moment, its texts owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Whether somebody holds it.
    pub state: Kind,
    /// Who acquired it, for people.
    pub holder: String,
    /// That process.
    pub instance: Nonce,
    /// Its token.
    pub token: Token,
    /// How long the holder is believed without a renewal; while offered, how long others wait.
    pub ttl: Duration,
}

/// What an end by force did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// What was ended.
    pub ended: Snapshot,
    /// What stands in its place.
    pub now: Snapshot,
}

impl<'a> Operator<'a> {
    /// An operator whom people know as `who`: at most 121 characters of `A-Za-z0-9._:@/+-`.
    ///
    /// # Errors
    /// [`OperatorError::Misuse`] for another label; [`OperatorError::Host`] where the system gives
    /// no random bits.
    pub fn new(store: &'a dyn Store, who: &str) -> Result<Self, OperatorError> {
        let operator = Self { store, who: who.to_owned(), instance: fresh()? };
        Label::new(who).map_err(misuse)?;
        Label::new(&operator.sign(FORCED)).map_err(misuse)?;
        Ok(operator)
    }

    /// Writes the wish that the lease `name` be handed over to the holder or instance `to`, and
    /// nothing else. The holder finds it with its next renewal, ends its work and offers the lease
    /// to `to`, who has to be waiting: after the offer's grace everybody may take it. A later wish
    /// replaces an earlier one. Returns the record that was asked.
    ///
    /// # Errors
    /// [`OperatorError`]; [`Refusal::Rule`] where nobody holds the lease, or `to` does.
    pub async fn ask(&self, name: &str, to: &str) -> Result<Snapshot, OperatorError> {
        let ask = Ask { id: fresh()?, to: Label::new(to).map_err(misuse)? };
        let asked = self.change(
            name,
            ASKED,
            |record, _, _| encode(&rules::ask(existing(record)?, ask).map_err(Refusal::Rule)?),
            |record, _| match record.state {
                State::Held { ask: Some(found) } if found.id == ask.id => true,
                // Heard already, so that the record no longer has it.
                State::Offered { to, .. } => to == Some(ask.to),
                _ => record::names(ask.to, record.holder, record.instance),
            },
        );
        Ok(asked.await?.after)
    }

    /// Ends whoever holds the lease `name`, or is offered it, under a term of its own, if the
    /// record is by the holder or instance `expected`. Nobody holds the lease then, and all others
    /// wait out the old ttl, so that exclusivity is kept. `reason`: 1 to 256 printable ASCII
    /// characters without `"` and `\`, kept in the record.
    ///
    /// # Errors
    /// [`OperatorError`]; [`Refusal::OtherHolder`], and [`Refusal::Rule`] where the lease is free.
    pub async fn force(
        &self,
        name: &str,
        reason: &str,
        expected: &str,
    ) -> Result<Forced, OperatorError> {
        let reason = Note::new(reason).map_err(misuse)?;
        let expected = Label::new(expected).map_err(misuse)?;
        let draft = |record: Option<&LeaseRecord<'_>>, signature: Signature<'_>, nonce: Nonce| {
            let record = existing(record)?;
            let forced = rules::force(record, signature, nonce, reason).map_err(Refusal::Rule)?;
            if !record::names(expected, record.holder, record.instance) {
                return Err(Refusal::OtherHolder(Snapshot::of(record)).into());
            }
            encode(&forced)
        };
        let Written { before, after } = self.change(name, FORCED, draft, is_one_of_ours).await?;
        Ok(Forced { ended: before.ok_or(Refusal::NoRecord)?, now: after })
    }

    /// After [`Operator::force`] by this very operator: frees the lease `name` at once.
    /// Exclusivity is waived until the old ttl has run, since the old holder may not know yet;
    /// until then only the fence protects.
    ///
    /// # Errors
    /// [`OperatorError`]; [`Refusal::Rule`] where the record is no longer what was forced.
    pub async fn waive(&self, name: &str) -> Result<Snapshot, OperatorError> {
        let draft = |record: Option<&LeaseRecord<'_>>, signature: Signature<'_>, _| {
            encode(&rules::waive(existing(record)?, signature).map_err(Refusal::Rule)?)
        };
        Ok(self.change(name, FORCED, draft, is_one_of_ours).await?.after)
    }

    /// Puts a tombstone in the place of the lost record of `name`: the next holder's term is above
    /// that of `after`, the last token that is known. Whoever held the lost record must have been
    /// stopped first. `ttl`: whole milliseconds, 1 ms to one day.
    ///
    /// # Errors
    /// [`OperatorError`]; [`Refusal::Exists`] where there is a record.
    pub async fn init(
        &self,
        name: &str,
        after: Token,
        ttl: Duration,
    ) -> Result<Snapshot, OperatorError> {
        let lease = Name::new(name).map_err(misuse)?;
        let ttl_ms = u32::try_from(ttl.as_millis())
            .ok()
            .filter(|ttl_ms| (1..=record::MAX_TTL_MS).contains(ttl_ms))
            .filter(|ttl_ms| Duration::from_millis((*ttl_ms).into()) == ttl)
            .ok_or_else(|| misuse("a ttl is a whole number of milliseconds, 1 ms to one day"))?;
        let draft = |record: Option<&LeaseRecord<'_>>, signature: Signature<'_>, _| match record {
            None => encode(&rules::init(lease, after, signature, ttl_ms)),
            Some(record) => Err(Refusal::Exists(Snapshot::of(record)).into()),
        };
        Ok(self.change(name, INIT, draft, is_one_of_ours).await?.after)
    }

    /// Reads, decides with `draft`, writes; again where the record changed meanwhile. The nonce that
    /// `draft` gets is drawn once for each version of the record. `is_done` tells, after a write
    /// whose answer was lost, from the record and the attempts that were sent whether it was
    /// applied.
    async fn change(
        &self,
        name: &str,
        verb: &str,
        draft: impl Fn(Option<&LeaseRecord<'_>>, Signature<'_>, Nonce) -> Result<Vec<u8>, OperatorError>,
        is_done: impl Fn(&LeaseRecord<'_>, &[Nonce]) -> bool,
    ) -> Result<Written, OperatorError> {
        let key = format!("lease/{}", Name::new(name).map_err(misuse)?);
        let signed = self.sign(verb);
        let mut attempts = Vec::new();
        let mut drawn: Option<(Option<Version>, Nonce)> = None;
        let mut in_doubt = None;
        let mut trouble = None;
        for _ in 0..TRIES {
            if trouble.is_some() {
                tokio::time::sleep(PAUSE).await;
            }
            let found = match self.store.read(&key).await {
                Read::Absent => None,
                Read::Entry { value, version, .. } => Some((value, version)),
                Read::Gone(why) => return Err(OperatorError::Gone(why)),
                Read::Unavailable(why) | Read::Unknown(why) => {
                    trouble = Some(why);
                    continue;
                }
            };
            let record = found.as_ref().map(|(value, _)| record::decode_named(name, value));
            let record = record.transpose().map_err(OperatorError::Record)?;
            if let (Some(written), Some(record)) = (&in_doubt, &record)
                && is_done(record, &attempts)
            {
                return Ok(Written::clone(written));
            }
            let base = found.as_ref().map(|(_, version)| *version);
            let nonce = match drawn {
                Some((of, nonce)) if of == base => nonce,
                _ => fresh()?,
            };
            drawn = Some((base, nonce));
            let signature = self.signature(&signed)?;
            let value =
                draft(record.as_ref(), signature, nonce).map_err(|error| match in_doubt {
                    // What forbids it now may have followed from the write itself.
                    Some(_) => OperatorError::InDoubt(error.to_string()),
                    None => error,
                })?;
            attempts.push(signature.attempt);
            let written = Written {
                before: record.as_ref().map(Snapshot::of),
                after: Snapshot::of(&record::decode(&value).map_err(OperatorError::Record)?),
            };
            trouble = match self.write(&key, base, value).await {
                Transact::Applied(_) => return Ok(written),
                Transact::Gone(why) => return Err(OperatorError::Gone(why)),
                Transact::Conflict => None,
                Transact::Undecided(why) | Transact::Unavailable(why) => Some(why),
                Transact::Unknown(why) => {
                    in_doubt = Some(written);
                    Some(why)
                }
            };
        }
        Err(match (in_doubt, trouble) {
            (None, None) => OperatorError::KeepsChanging,
            (None, Some(why)) => OperatorError::Unavailable(why),
            (Some(_), Some(why)) => OperatorError::InDoubt(why),
            (Some(_), None) => OperatorError::InDoubt("the record keeps changing".to_owned()),
        })
    }

    fn write(
        &self,
        key: &str,
        version: Option<Version>,
        value: Vec<u8>,
    ) -> impl Future<Output = Transact> {
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let check = Check { key: key.to_owned(), expect };
        self.store.transact(vec![check], vec![Write { key: key.to_owned(), value }])
    }

    /// Who did what, as the record keeps it.
    fn sign(&self, verb: &str) -> String {
        format!("{verb}:{}", self.who)
    }

    fn signature<'s>(&self, signed: &'s str) -> Result<Signature<'s>, OperatorError> {
        Ok(Signature {
            holder: Label::new(signed).map_err(misuse)?,
            instance: self.instance,
            attempt: fresh()?,
            at_ms: SystemClock.now().wall_ns.map(|wall_ns| wall_ns / MILLISECOND_NS),
        })
    }
}

/// One change of a record.
#[derive(Clone)]
struct Written {
    before: Option<Snapshot>,
    after: Snapshot,
}

impl Snapshot {
    /// Of a record that was decoded.
    #[must_use]
    pub fn of(record: &LeaseRecord<'_>) -> Self {
        Self {
            state: record.state.kind(),
            holder: record.holder.as_str().to_owned(),
            instance: record.instance,
            token: record.token,
            ttl: Duration::from_millis(record.ttl_ms.into()),
        }
    }

    /// Whether the record is by `who`, a label or an instance.
    #[must_use]
    pub fn is_by(&self, who: Label<'_>) -> bool {
        let holder = Label::new(&self.holder);
        holder.is_ok_and(|holder| record::names(who, holder, self.instance))
    }
}

fn existing<'r, 'a>(
    record: Option<&'r LeaseRecord<'a>>,
) -> Result<&'r LeaseRecord<'a>, OperatorError> {
    Ok(record.ok_or(Refusal::NoRecord)?)
}

fn is_one_of_ours(record: &LeaseRecord<'_>, attempts: &[Nonce]) -> bool {
    attempts.contains(&record.attempt)
}

fn encode(record: &LeaseRecord<'_>) -> Result<Vec<u8>, OperatorError> {
    record::encode(record, &mut [0; record::MAX_LEN]).map(<[u8]>::to_vec).map_err(misuse)
}

fn fresh() -> Result<Nonce, OperatorError> {
    OsEntropy.salt().map(Nonce).map_err(|error| OperatorError::Host(error.to_string()))
}

fn misuse(why: impl fmt::Display) -> OperatorError {
    OperatorError::Misuse(why.to_string())
}

/// Why a verb changed nothing, or may have; each text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorError {
    /// The caller's mistake: a name, a label, a note, a ttl.
    Misuse(String),
    /// The record forbids it.
    Refused(Refusal),
    /// The record cannot be read, and was left as it is.
    Record(RecordFault),
    /// The store did not do it; nothing was changed.
    Unavailable(String),
    /// The store that was opened is there no more, or is no longer whole.
    Gone(String),
    /// The store did not say whether the write was applied, and it may still be.
    InDoubt(String),
    /// Somebody else wrote each time between read and write; nothing was changed.
    KeepsChanging,
    /// The operating system.
    Host(String),
}

/// What a record forbids an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The core's rule.
    Rule(rules::Refusal),
    /// Nobody ever held the lease in this store.
    NoRecord,
    /// Not the one who was to be ended: this one.
    OtherHolder(Snapshot),
    /// The record is not lost: this is it.
    Exists(Snapshot),
}

impl From<Refusal> for OperatorError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(why) | Self::Unavailable(why) | Self::Gone(why) | Self::Host(why) => {
                f.write_str(why)
            }
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Record(fault) => fault.fmt(f),
            Self::InDoubt(why) => write!(
                f,
                "the store did not say whether it was done ({why}); it may still happen: look at \
                 the lease before you ask again"
            ),
            Self::KeepsChanging => write!(
                f,
                "the record changed {TRIES} times in a row between being read and being written: \
                 see who writes to it, and try again"
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(refusal) => refusal.fmt(f),
            Self::NoRecord => f.write_str(
                "nobody ever held the lease in this store: check the name and the store",
            ),
            Self::OtherHolder(found) => write!(
                f,
                "the lease is not theirs: the record is by {}, term {}; look at it again before \
                 you end somebody",
                found.holder, found.token.term
            ),
            Self::Exists(found) => write!(
                f,
                "there is a record, {} by {}, term {}: it is not lost, and left as it is",
                found.state.as_str(),
                found.holder,
                found.token.term
            ),
        }
    }
}

impl std::error::Error for OperatorError {}
impl std::error::Error for Refusal {}
