//! Which writes may still turn out to have been applied.

use crate::time::Stamp;
use crate::token::Nonce;

/// The writes sent since the last confirmed one: which attempts would prove that one of them was
/// applied. The oldest is forgotten first, which can only end a lease early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempts([(Nonce, Stamp); 4]);

impl Attempts {
    /// No attempt has nonce 0.
    const NONE: (Nonce, Stamp) = (Nonce(0), Stamp::ZERO);
    pub(super) const EMPTY: Self = Self([Self::NONE; 4]);

    pub(super) fn push(&mut self, attempt: Nonce, sent: Stamp) {
        let [_, second, third, fourth] = self.0;
        self.0 = [second, third, fourth, (attempt, sent)];
    }

    pub(super) fn drop_last(&mut self) {
        let [first, second, third, _] = self.0;
        self.0 = [Self::NONE, first, second, third];
    }

    pub(super) fn sent(&self, attempt: Nonce) -> Option<Stamp> {
        self.0.iter().find(|known| known.0 == attempt && **known != Self::NONE).map(|known| known.1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Nonce, Stamp)> {
        self.0.into_iter().filter(|known| *known != Self::NONE)
    }

    pub(super) fn last(&self) -> Option<(Nonce, Stamp)> {
        Some(self.0[3]).filter(|last| *last != Self::NONE)
    }
}
