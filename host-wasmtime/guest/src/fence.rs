//! The `fence` interface: the core's rules over plain rows.

use leasehold_core::fence::{
    self, Admitted, AdoptVerdict, Advance, CancelVerdict, Digest, FenceRow, RecoverVerdict,
    RetireVerdict, SealVerdict, StepRow, WriteVerdict,
};
use leasehold_core::token::Nonce;

use crate::bindings::exports::leasehold::protocol::fence as wit;
use crate::bindings::leasehold::protocol::types::{Misuse, Token};
use crate::{alone, values};

impl wit::Guest for crate::Guest {
    fn seal(
        row: Option<wit::FenceRow>,
        token: Token,
        advance: wit::Advance,
    ) -> Result<(wit::SealVerdict, Option<wit::FenceRow>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let (verdict, next) = fence::seal(row.as_ref(), values::token(token)?, reach(advance));
            Ok((seal_verdict(verdict), next.map(wit_fence_row)))
        })
    }

    fn admit(
        row: Option<wit::FenceRow>,
        known: Option<wit::StepRow>,
        token: Token,
        op_digest: Option<alloc::vec::Vec<u8>>,
    ) -> Result<(wit::WriteVerdict, Option<wit::Admitted>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let known = known.map(step_row).transpose()?;
            let op_digest = digest(op_digest.as_deref())?;
            let (verdict, next) =
                fence::admit(row.as_ref(), known.as_ref(), values::token(token)?, op_digest);
            Ok((write_verdict(verdict), next.map(wit_admitted)))
        })
    }

    fn read(
        row: Option<wit::FenceRow>,
        token: Token,
        advance: wit::Advance,
    ) -> Result<(wit::SealVerdict, Option<wit::FenceRow>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let (verdict, next) = fence::read(row.as_ref(), values::token(token)?, reach(advance));
            Ok((seal_verdict(verdict), next.map(wit_fence_row)))
        })
    }

    fn cancel(
        row: Option<wit::FenceRow>,
        known: Option<wit::StepRow>,
        token: Token,
    ) -> Result<(wit::CancelVerdict, Option<wit::Admitted>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let known = known.map(step_row).transpose()?;
            let (verdict, next) =
                fence::cancel(row.as_ref(), known.as_ref(), values::token(token)?);
            Ok((cancel_verdict(verdict), next.map(wit_admitted)))
        })
    }

    fn retire(
        row: Option<wit::FenceRow>,
        token: Token,
    ) -> Result<(wit::RetireVerdict, Option<wit::FenceRow>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let (verdict, next) = fence::retire(row.as_ref(), values::token(token)?);
            Ok((retire_verdict(verdict), next.map(wit_fence_row)))
        })
    }

    fn recover(
        row: Option<wit::FenceRow>,
        record: Token,
    ) -> Result<(wit::RecoverVerdict, Option<wit::FenceRow>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let (verdict, next) = fence::recover(row.as_ref(), values::token(record)?);
            Ok((recover_verdict(verdict), next.map(wit_fence_row)))
        })
    }

    fn adopt(
        row: Option<wit::FenceRow>,
        token: Token,
    ) -> Result<(wit::AdoptVerdict, Option<wit::FenceRow>), Misuse> {
        alone(|| {
            let row = row.map(fence_row);
            let (verdict, next) = fence::adopt(row.as_ref(), values::token(token)?);
            Ok((adopt_verdict(verdict), next.map(wit_fence_row)))
        })
    }
}

fn reach(advance: wit::Advance) -> Advance {
    match advance {
        wit::Advance::AtMost(terms) => Advance::AtMost(terms),
        wit::Advance::Proven => Advance::Proven,
    }
}

fn fence_row(row: wit::FenceRow) -> FenceRow {
    let wit::FenceRow { lineage, floor, nonce, retired, seq } = row;
    FenceRow { lineage: values::lineage(lineage), floor, nonce: Nonce(nonce), retired, seq }
}

fn wit_fence_row(row: FenceRow) -> wit::FenceRow {
    let FenceRow { lineage, floor, nonce, retired, seq } = row;
    wit::FenceRow { lineage: values::wit_lineage(lineage), floor, nonce: nonce.0, retired, seq }
}

fn step_row(row: wit::StepRow) -> Result<StepRow, Misuse> {
    let wit::StepRow { op_digest, seq, cancelled } = row;
    Ok(StepRow { op_digest: digest(op_digest.as_deref())?, seq, cancelled })
}

fn wit_admitted(admitted: Admitted) -> wit::Admitted {
    let StepRow { op_digest, seq, cancelled } = admitted.step;
    let op_digest = op_digest.map(|digest| digest.0.to_vec());
    wit::Admitted {
        row: wit_fence_row(admitted.row),
        step: wit::StepRow { op_digest, seq, cancelled },
    }
}

fn digest(bytes: Option<&[u8]>) -> Result<Option<Digest>, Misuse> {
    bytes.map(|bytes| bytes.try_into().map(Digest).map_err(|_| Misuse::Digest)).transpose()
}

fn seal_verdict(verdict: SealVerdict) -> wit::SealVerdict {
    match verdict {
        SealVerdict::NoResource => wit::SealVerdict::NoResource,
        SealVerdict::Gone { floor } => wit::SealVerdict::Gone(floor),
        SealVerdict::ForeignLineage => wit::SealVerdict::ForeignLineage,
        SealVerdict::Fenced { floor } => wit::SealVerdict::Fenced(floor),
        SealVerdict::AlreadySealed { last_seq } => wit::SealVerdict::AlreadySealed(last_seq),
        SealVerdict::Collision { floor } => wit::SealVerdict::Collision(floor),
        SealVerdict::Implausible => wit::SealVerdict::Implausible,
        SealVerdict::Sealed { prev_floor, last_seq } => {
            wit::SealVerdict::Sealed(wit::Sealed { prev_floor, last_seq })
        }
    }
}

fn write_verdict(verdict: WriteVerdict) -> wit::WriteVerdict {
    match verdict {
        WriteVerdict::NoResource => wit::WriteVerdict::NoResource,
        WriteVerdict::NotSealed { floor } => wit::WriteVerdict::NotSealed(floor),
        WriteVerdict::ForeignLineage => wit::WriteVerdict::ForeignLineage,
        WriteVerdict::Cancelled => wit::WriteVerdict::Cancelled,
        WriteVerdict::AlreadyApplied { seq, stale_holder } => {
            wit::WriteVerdict::AlreadyApplied(wit::Applied { seq, stale_holder })
        }
        WriteVerdict::KeyReuse => wit::WriteVerdict::KeyReuse,
        WriteVerdict::Gone { floor } => wit::WriteVerdict::Gone(floor),
        WriteVerdict::Fenced { floor } => wit::WriteVerdict::Fenced(floor),
        WriteVerdict::Collision { floor } => wit::WriteVerdict::Collision(floor),
        WriteVerdict::Full => wit::WriteVerdict::Full,
        WriteVerdict::Apply { seq } => wit::WriteVerdict::Apply(seq),
    }
}

fn cancel_verdict(verdict: CancelVerdict) -> wit::CancelVerdict {
    match verdict {
        CancelVerdict::NoResource => wit::CancelVerdict::NoResource,
        CancelVerdict::NotSealed { floor } => wit::CancelVerdict::NotSealed(floor),
        CancelVerdict::ForeignLineage => wit::CancelVerdict::ForeignLineage,
        CancelVerdict::Cancelled => wit::CancelVerdict::Cancelled,
        CancelVerdict::AlreadyApplied { seq, stale_holder } => {
            wit::CancelVerdict::AlreadyApplied(wit::Applied { seq, stale_holder })
        }
        CancelVerdict::Gone { floor } => wit::CancelVerdict::Gone(floor),
        CancelVerdict::Fenced { floor } => wit::CancelVerdict::Fenced(floor),
        CancelVerdict::Collision { floor } => wit::CancelVerdict::Collision(floor),
        CancelVerdict::Full => wit::CancelVerdict::Full,
        CancelVerdict::Tombstoned { seq } => wit::CancelVerdict::Tombstoned(seq),
    }
}

fn retire_verdict(verdict: RetireVerdict) -> wit::RetireVerdict {
    match verdict {
        RetireVerdict::NoResource => wit::RetireVerdict::NoResource,
        RetireVerdict::NotSealed { floor } => wit::RetireVerdict::NotSealed(floor),
        RetireVerdict::ForeignLineage => wit::RetireVerdict::ForeignLineage,
        RetireVerdict::AlreadyRetired => wit::RetireVerdict::AlreadyRetired,
        RetireVerdict::Gone { floor } => wit::RetireVerdict::Gone(floor),
        RetireVerdict::Fenced { floor } => wit::RetireVerdict::Fenced(floor),
        RetireVerdict::Collision { floor } => wit::RetireVerdict::Collision(floor),
        RetireVerdict::Retired => wit::RetireVerdict::Retired,
    }
}

fn recover_verdict(verdict: RecoverVerdict) -> wit::RecoverVerdict {
    match verdict {
        RecoverVerdict::NoResource => wit::RecoverVerdict::NoResource,
        RecoverVerdict::Gone { floor } => wit::RecoverVerdict::Gone(floor),
        RecoverVerdict::ForeignLineage => wit::RecoverVerdict::ForeignLineage,
        RecoverVerdict::Kept { floor } => wit::RecoverVerdict::Kept(floor),
        RecoverVerdict::Recovered { prev_floor, last_seq } => {
            wit::RecoverVerdict::Recovered(wit::Sealed { prev_floor, last_seq })
        }
    }
}

fn adopt_verdict(verdict: AdoptVerdict) -> wit::AdoptVerdict {
    match verdict {
        AdoptVerdict::NoResource => wit::AdoptVerdict::NoResource,
        AdoptVerdict::Gone { floor } => wit::AdoptVerdict::Gone(floor),
        AdoptVerdict::Fenced { floor } => wit::AdoptVerdict::Fenced(floor),
        AdoptVerdict::AlreadySealed { last_seq } => wit::AdoptVerdict::AlreadySealed(last_seq),
        AdoptVerdict::Collision { floor } => wit::AdoptVerdict::Collision(floor),
        AdoptVerdict::Adopted { prev_floor, last_seq } => {
            wit::AdoptVerdict::Adopted(wit::Sealed { prev_floor, last_seq })
        }
    }
}
