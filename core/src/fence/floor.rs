//! The verbs that move the floor: who writes from now on.

use super::{AdoptVerdict, Advance, FenceRow, RecoverVerdict, SealVerdict, Standing};
use crate::planted::planted;
use crate::token::Token;

/// Raises the floor to `token`. The returned row is to be durable before anyone hears the verdict;
/// no row: nothing changes.
pub fn seal(
    row: Option<&FenceRow>,
    token: Token,
    advance: Advance,
) -> (SealVerdict, Option<FenceRow>) {
    let Some(row) = row else { return (SealVerdict::NoResource, None) };
    let FenceRow { floor, seq, .. } = *row;

    let refusal = match row.standing(token) {
        _ if row.retired => SealVerdict::Gone { floor },
        Standing::Foreign => SealVerdict::ForeignLineage,
        Standing::Below => planted!(
            SealLowersFloor: return (
                SealVerdict::Sealed { prev_floor: floor, last_seq: seq },
                Some(row.sealed_with(token)),
            ) => SealVerdict::Fenced { floor }
        ),
        Standing::Sealed => SealVerdict::AlreadySealed { last_seq: seq },
        Standing::Rival => SealVerdict::Collision { floor },
        Standing::Above { terms } if !advance.allows(terms) => SealVerdict::Implausible,
        Standing::Unsealed | Standing::Above { .. } => {
            let verdict = SealVerdict::Sealed { prev_floor: floor, last_seq: seq };
            return (verdict, Some(row.sealed_with(token)));
        }
    };
    (refusal, None)
}

/// Admits or refuses a read that decides something. `Sealed` and `AlreadySealed` admit it: what is
/// read in the same transaction stays as it is until this token, or a later one, writes.
///
/// It is a write that stores nothing, except that it seals where a write would say `NotSealed`:
/// without the seal, an earlier token could still change what was read.
pub fn read(
    row: Option<&FenceRow>,
    token: Token,
    advance: Advance,
) -> (SealVerdict, Option<FenceRow>) {
    match row.map(|row| row.standing(token)) {
        // As for a write, and unlike a seal: another lease's token is not told about retirement.
        Some(Standing::Foreign) => (SealVerdict::ForeignLineage, None),
        _ => seal(row, token, advance),
    }
}

/// Mends a resource that was restored from an older copy, before it opens. `record` is the token
/// in its lease's record, by a linearizable read that began after the restore: no token that the
/// resource ever obeyed is above it, unless the lease's store was restored too.
pub fn recover(row: Option<&FenceRow>, record: Token) -> (RecoverVerdict, Option<FenceRow>) {
    let Some(row) = row else { return (RecoverVerdict::NoResource, None) };
    let FenceRow { floor, seq, .. } = *row;

    let refusal = match row.standing(record) {
        _ if row.retired => RecoverVerdict::Gone { floor },
        Standing::Foreign => RecoverVerdict::ForeignLineage,
        Standing::Below | Standing::Sealed | Standing::Rival => RecoverVerdict::Kept { floor },
        Standing::Unsealed | Standing::Above { .. } => {
            let verdict = RecoverVerdict::Recovered { prev_floor: floor, last_seq: seq };
            return (verdict, Some(row.sealed_with(record)));
        }
    };
    (refusal, None)
}

/// Binds the resource to the lease of `token`, whichever lease it obeyed: an operator's decision,
/// and the only way to another lineage. The steps stay known.
///
/// The floor of the lineage that is left is forgotten. Whoever adopts that lineage again has to
/// name its current token.
pub fn adopt(row: Option<&FenceRow>, token: Token) -> (AdoptVerdict, Option<FenceRow>) {
    let Some(row) = row else { return (AdoptVerdict::NoResource, None) };
    let FenceRow { floor, seq, .. } = *row;

    let refusal = match row.standing(token) {
        _ if row.retired => AdoptVerdict::Gone { floor },
        Standing::Below => AdoptVerdict::Fenced { floor },
        Standing::Sealed => AdoptVerdict::AlreadySealed { last_seq: seq },
        Standing::Rival => AdoptVerdict::Collision { floor },
        Standing::Unsealed | Standing::Foreign | Standing::Above { .. } => {
            let verdict = AdoptVerdict::Adopted { prev_floor: floor, last_seq: seq };
            return (verdict, Some(row.sealed_with(token)));
        }
    };
    (refusal, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::tests::{HOLDER, sealed_at};
    use crate::token::{Lineage, Term};

    #[test]
    fn the_reach_of_a_seal_is_the_callers_choice() {
        let row = sealed_at(10);
        let token = Token { term: Term::new(15).unwrap(), ..HOLDER };
        for ask in [seal, read] {
            let verdict = |advance| ask(Some(&row), token, advance).0.name();
            assert_eq!(verdict(Advance::AtMost(4)), "Implausible");
            assert_eq!(verdict(Advance::AtMost(5)), "Sealed");
            assert_eq!(verdict(Advance::Proven), "Sealed");
        }
    }

    #[test]
    fn a_floor_that_was_stored_too_large_is_never_lowered_by_its_own_lease() {
        let row = sealed_at(u64::MAX);
        let last = Token { term: Term::LAST, ..HOLDER };
        assert_eq!(seal(Some(&row), last, Advance::Proven).0.name(), "Fenced");
        assert_eq!(read(Some(&row), last, Advance::Proven).0.name(), "Fenced");
        assert_eq!(recover(Some(&row), last), (RecoverVerdict::Kept { floor: u64::MAX }, None));
        assert_eq!(adopt(Some(&row), last).0.name(), "Fenced");
    }

    #[test]
    fn an_adoption_mends_a_floor_that_was_stored_too_large() {
        let row = sealed_at(u64::MAX);
        let other = Token { lineage: Lineage(8), ..HOLDER };
        let (_, next) = adopt(Some(&row), other);
        assert_eq!(next.unwrap().standing(other), Standing::Sealed);
    }
}
