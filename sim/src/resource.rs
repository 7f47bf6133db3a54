//! What the lease protects: a resource behind the real fence.

use alloc::vec::Vec;

use leasehold_core::fence::{self, Advance, FenceRow, RecoverVerdict, SealVerdict, WriteVerdict};
use leasehold_core::token::Token;

use crate::flaw::Flaw;

#[derive(Clone, Debug)]
pub(crate) struct Resource {
    row: FenceRow,
    before: Vec<FenceRow>,
    flaw: Option<Flaw>,
}

/// What became of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// Refused. A floor that the holder has to hear of comes with it.
    Refused(Option<u64>),
}

impl Resource {
    pub(crate) const fn new(flaw: Option<Flaw>) -> Self {
        Self { row: FenceRow::NEW, before: Vec::new(), flaw }
    }

    /// Whether it is sealed with this token when it answers; otherwise the floor, if the refusal
    /// names one.
    pub(crate) fn seal(&mut self, token: Token) -> Result<(), Option<u64>> {
        let (verdict, next) = fence::seal(Some(&self.row), token, Advance::default());
        if let Some(next) = next {
            self.before.push(core::mem::replace(&mut self.row, next));
        }
        match verdict {
            SealVerdict::Sealed { .. } | SealVerdict::AlreadySealed { .. } => Ok(()),
            SealVerdict::Fenced { floor } | SealVerdict::Collision { floor } => Err(Some(floor)),
            _ => Err(None),
        }
    }

    pub(crate) fn effect(&mut self, token: Token) -> Answer {
        if matches!(self.flaw, Some(Flaw::NoFence | Flaw::HostSendsUnasked)) {
            return Answer::Accepted;
        }
        let (mut verdict, mut next) = fence::admit(Some(&self.row), None, token, None);
        if self.flaw == Some(Flaw::NoSeal)
            && matches!(verdict, WriteVerdict::NotSealed { .. })
            && self.seal(token).is_ok()
        {
            (verdict, next) = fence::admit(Some(&self.row), None, token, None);
        }
        if let Some(next) = next {
            self.row = next.row;
        }
        match verdict {
            WriteVerdict::Apply { .. } => Answer::Accepted,
            WriteVerdict::Fenced { floor } | WriteVerdict::Collision { floor } => {
                Answer::Refused(Some(floor))
            }
            _ => Answer::Refused(None),
        }
    }

    /// Comes back as it was so many seals ago, and is mended by the token in the lease's record
    /// before it opens.
    pub(crate) fn restore(&mut self, back: u8, record: Token) {
        let at = self.before.len().checked_sub(usize::from(back));
        let Some((at, older)) = at.and_then(|at| Some((at, *self.before.get(at)?))) else { return };
        let mended = match fence::recover(Some(&older), record) {
            (RecoverVerdict::Recovered { .. }, Some(next)) => next,
            (RecoverVerdict::Kept { .. }, _) => older,
            _ => return,
        };
        self.before.truncate(at);
        let forgets = self.flaw == Some(Flaw::ResourceForgetsFloor);
        self.row = if forgets { older } else { mended };
    }

    pub(crate) const fn row(&self) -> &FenceRow {
        &self.row
    }
}
