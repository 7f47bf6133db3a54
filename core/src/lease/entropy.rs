//! Nonces and jitter, hashed from the host's salt and a counter: no generator whose state a copy
//! of the memory would share, since every completion brings fresh bits.

#[derive(Clone, Copy, Debug)]
pub(super) struct Entropy {
    fresh: u64,
    /// A hash of the salts before, and the counter of the draws.
    older: u64,
}

impl Entropy {
    pub(super) const fn new(salt: u64) -> Self {
        Self { fresh: salt, older: 0 }
    }

    /// Takes 64 fresh bits; what came before is kept in the hash, so that a poor salt costs
    /// nothing that was there.
    pub(super) const fn absorb(&mut self, salt: u64) {
        self.older = mix(self.older ^ self.fresh);
        self.fresh = salt;
    }

    /// 64 bits, another at every call, never 0.
    pub(super) const fn draw(&mut self) -> u64 {
        self.older = self.older.wrapping_add(1);
        match mix(self.fresh ^ mix(self.older)) {
            0 => 1,
            bits => bits,
        }
    }

    /// 128 bits.
    pub(super) const fn draw_wide(&mut self) -> u128 {
        ((self.draw() as u128) << 64) | self.draw() as u128
    }

    /// Between half of a span and all of it.
    pub(super) const fn spread(&mut self, span_ns: u64) -> u64 {
        self.trim(span_ns, 2)
    }

    /// A span less at most its `1/part`.
    pub(super) const fn trim(&mut self, span_ns: u64, part: u64) -> u64 {
        let Some(most) = span_ns.checked_div(part) else { return span_ns };
        span_ns.saturating_sub(((most as u128 * self.draw() as u128) >> 64) as u64)
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every bit.
const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_draws_are_equal() {
        let mut entropy = Entropy::new(7);
        let draws: BTreeSet<u64> = (0..10_000)
            .map(|round| {
                if round % 3 == 0 {
                    entropy.absorb(round);
                }
                entropy.draw()
            })
            .collect();
        assert_eq!(draws.len(), 10_000);
    }

    #[test]
    fn copies_part_at_their_next_salt() {
        let mut one = Entropy::new(7);
        let mut other = one;
        one.absorb(1);
        other.absorb(2);
        assert_ne!(one.draw(), other.draw());
    }

    #[test]
    fn jitter_stays_within_its_share() {
        let mut entropy = Entropy::new(7);
        for _ in 0..1_000 {
            assert!((501..=1_000).contains(&entropy.spread(1_000)));
            assert!((901..=1_000).contains(&entropy.trim(1_000, 10)));
        }
        assert_eq!(entropy.spread(0), 0);
        assert!(entropy.spread(u64::MAX) > u64::MAX / 2 - 1);
    }
}
