//! Every version of the lease's record, kept by a trigger in its store: whoever wrote it, and when.

use rusqlite::Connection;

use crate::Outcome;

const KEEP: &str = "
    BEGIN IMMEDIATE;
    CREATE TABLE history (id INTEGER PRIMARY KEY, value TEXT, written_ms INTEGER) STRICT;
    INSERT INTO history (value, written_ms) SELECT value, written FROM leasehold_kv;
    CREATE TRIGGER keep AFTER UPDATE ON leasehold_kv BEGIN
        INSERT INTO history (value, written_ms) VALUES (new.value, new.written);
    END;
    COMMIT;
";

const READ: &str = "
    SELECT value ->> 'lineage' || '/' || (value ->> 'term') || '/' || (value ->> 'nonce'),
           CAST(value ->> 'term' AS INTEGER), value ->> 'attempt', value ->> 'state',
           value ->> 'holder', value ->> 'to', value ->> 'ttl_ms', written_ms
    FROM history ORDER BY id
";

/// In the order of the writes.
#[derive(Default)]
pub(crate) struct History(Vec<Version>);

struct Version {
    token: String,
    term: i64,
    attempt: String,
    state: String,
    holder: String,
    to: String,
    ttl_ms: i64,
    /// CLOCK_BOOTTIME, rounded up.
    written_ms: i64,
}

/// A term that was not the next one.
pub(crate) struct Repeat<'a> {
    pub(crate) token: &'a str,
    /// What the store should have known.
    pub(crate) highest_term: i64,
}

impl History {
    pub(crate) fn keep(store: &Connection) -> Outcome {
        Ok(store.execute_batch(KEEP)?)
    }

    pub(crate) fn read(store: &Connection) -> Outcome<Self> {
        let mut select = store.prepare(READ)?;
        let versions = select.query_map([], |row| {
            Ok(Version {
                token: row.get(0)?,
                term: row.get(1)?,
                attempt: row.get(2)?,
                state: row.get(3)?,
                holder: row.get(4)?,
                to: row.get(5)?,
                ttl_ms: row.get(6)?,
                written_ms: row.get(7)?,
            })
        })?;
        Ok(Self(versions.collect::<Result<_, _>>()?))
    }

    /// Adds what a store that was restored from an older copy has seen since.
    pub(crate) fn go_on(&mut self, restored: Self) {
        let Self(old) = self;
        let known = |version: &Version| {
            old.iter().any(|old| old.token == version.token && old.attempt == version.attempt)
        };
        let since: Vec<_> = restored.0.into_iter().skip_while(known).collect();
        old.extend(since);
    }

    /// The terms that began with an offer to their holder, before the offer had run out.
    pub(crate) fn handed_over(&self) -> Vec<i64> {
        let taken = |offer: &Version, next: &Version| {
            offer.state == "offered"
                && next.state == "held"
                && next.holder == offer.to
                && next.term == offer.term + 1
                && next.written_ms - offer.written_ms < offer.ttl_ms
        };
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        pairs.filter(|(offer, next)| taken(offer, next)).map(|(_, next)| next.term).collect()
    }

    /// Whether the holder from before the outage has renewed its term since.
    pub(crate) fn survived(&self, over_ns: i64) -> bool {
        let after = |version: &&Version| version.written_ms * 1_000_000 > over_ns;
        let before = self.0.iter().rev().find(|version| !after(version));
        let renewed = self.0.iter().find(after);
        before.zip(renewed).is_some_and(|(before, renewed)| before.token == renewed.token)
    }

    /// The terms that a store had forgotten and gave out again.
    pub(crate) fn repeats(&self) -> Vec<Repeat<'_>> {
        let mut highest = (0, "");
        let mut repeats: Vec<Repeat<'_>> = Vec::new();
        for Version { term, token, .. } in &self.0 {
            if *term > highest.0 {
                highest = (*term, token);
            } else if token != highest.1 && repeats.iter().all(|repeat| repeat.token != token) {
                repeats.push(Repeat { token, highest_term: highest.0 });
            }
        }
        repeats
    }
}
