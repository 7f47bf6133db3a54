//! The verbs of the token that has sealed: write, cancel a step, close the resource.

use super::{CancelVerdict, Digest, FenceRow, RetireVerdict, Standing, StepRow, WriteVerdict};
use crate::token::{Term, Token};

/// The rows to commit with an admitted write or a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The resource's row.
    pub row: FenceRow,
    /// The step's row. A write without a step stores none.
    pub step: StepRow,
}

/// Admits or refuses one write under `token`. `known` is the row of the write's step; a write
/// without a step has none, and is admitted however often it is sent.
///
/// A known step is answered before the floor is compared: the retry of a write whose reply was lost
/// must learn that it was applied, whoever leads by now.
pub fn admit(
    row: Option<&FenceRow>,
    known: Option<&StepRow>,
    token: Token,
    op_digest: Option<Digest>,
) -> (WriteVerdict, Option<Admitted>) {
    let Some(row) = row else { return (WriteVerdict::NoResource, None) };
    let floor = row.floor;

    let refusal = match (row.standing(token), known) {
        (Standing::Unsealed, _) => WriteVerdict::NotSealed { floor },
        (Standing::Foreign, _) => WriteVerdict::ForeignLineage,
        (_, Some(step)) if step.cancelled => WriteVerdict::Cancelled,
        (_, Some(step)) if step.op_digest != op_digest => WriteVerdict::KeyReuse,
        (standing, Some(step)) => WriteVerdict::AlreadyApplied {
            seq: step.seq,
            stale_holder: standing == Standing::Below,
        },
        _ if row.retired => WriteVerdict::Gone { floor },
        (Standing::Below, _) => WriteVerdict::Fenced { floor },
        (Standing::Above { .. }, _) => WriteVerdict::NotSealed { floor },
        (Standing::Rival, _) => WriteVerdict::Collision { floor },
        (Standing::Sealed, _) => match counted(row) {
            None => WriteVerdict::Full,
            Some(row) => {
                let step = StepRow { op_digest, seq: row.seq, cancelled: false };
                return (WriteVerdict::Apply { seq: row.seq }, Some(Admitted { row, step }));
            }
        },
    };
    (refusal, None)
}

/// Writes the tombstone of a step, unless it was applied: from then on a late attempt is told
/// `Cancelled`, under any token of the lease. This, and only this, proves that a step was not
/// applied. `known` is the step's row; a write without a step cannot be cancelled.
///
/// As for a write, a known step is answered first, whatever its digest.
pub fn cancel(
    row: Option<&FenceRow>,
    known: Option<&StepRow>,
    token: Token,
) -> (CancelVerdict, Option<Admitted>) {
    let Some(row) = row else { return (CancelVerdict::NoResource, None) };
    let floor = row.floor;

    let refusal = match (row.standing(token), known) {
        (Standing::Unsealed, _) => CancelVerdict::NotSealed { floor },
        (Standing::Foreign, _) => CancelVerdict::ForeignLineage,
        (_, Some(step)) if step.cancelled => CancelVerdict::Cancelled,
        (standing, Some(step)) => CancelVerdict::AlreadyApplied {
            seq: step.seq,
            stale_holder: standing == Standing::Below,
        },
        _ if row.retired => CancelVerdict::Gone { floor },
        (Standing::Below, _) => CancelVerdict::Fenced { floor },
        (Standing::Above { .. }, _) => CancelVerdict::NotSealed { floor },
        (Standing::Rival, _) => CancelVerdict::Collision { floor },
        (Standing::Sealed, _) => match counted(row) {
            None => CancelVerdict::Full,
            Some(row) => {
                let step = StepRow { op_digest: None, seq: row.seq, cancelled: true };
                return (CancelVerdict::Tombstoned { seq: row.seq }, Some(Admitted { row, step }));
            }
        },
    };
    (refusal, None)
}

/// Closes the resource for good. The floor and the steps stay, so that neither a late holder nor a
/// late duplicate takes the resource for a new one.
pub fn retire(row: Option<&FenceRow>, token: Token) -> (RetireVerdict, Option<FenceRow>) {
    let Some(row) = row else { return (RetireVerdict::NoResource, None) };
    let floor = row.floor;

    let refusal = match row.standing(token) {
        Standing::Unsealed => RetireVerdict::NotSealed { floor },
        Standing::Foreign => RetireVerdict::ForeignLineage,
        Standing::Sealed if row.retired => RetireVerdict::AlreadyRetired,
        _ if row.retired => RetireVerdict::Gone { floor },
        Standing::Below => RetireVerdict::Fenced { floor },
        Standing::Above { .. } => RetireVerdict::NotSealed { floor },
        Standing::Rival => RetireVerdict::Collision { floor },
        Standing::Sealed => {
            return (RetireVerdict::Retired, Some(FenceRow { retired: true, ..*row }));
        }
    };
    (refusal, None)
}

/// The row with one more write. A number that could not be stored is never given: the resource
/// fails closed.
fn counted(row: &FenceRow) -> Option<FenceRow> {
    let seq = row.seq.checked_add(1).filter(|seq| *seq <= Term::LAST.get())?;
    Some(FenceRow { seq, ..*row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::tests::{HOLDER, sealed_at};

    #[test]
    fn a_count_that_was_stored_too_large_admits_nothing() {
        for seq in [Term::LAST.get(), Term::LAST.get() + 1, u64::MAX] {
            let row = FenceRow { seq, ..sealed_at(1) };
            assert_eq!(admit(Some(&row), None, HOLDER, None), (WriteVerdict::Full, None));
            assert_eq!(cancel(Some(&row), None, HOLDER), (CancelVerdict::Full, None));
        }
    }

    #[test]
    fn a_floor_that_was_stored_too_large_fences_everyone() {
        let row = sealed_at(u64::MAX);
        let last = Token { term: Term::LAST, ..HOLDER };
        assert_eq!(admit(Some(&row), None, last, None).0.name(), "Fenced");
        assert_eq!(cancel(Some(&row), None, last).0.name(), "Fenced");
        assert_eq!(retire(Some(&row), last).0.name(), "Fenced");
    }
}
