//! Randomness by counter: a draw is a hash of what it is for, so that leaving one decision out
//! changes no other.

/// What a draw is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The 64 bits that a host gives its elector with every answer.
    Salt,
    /// Who a process is.
    Instance,
    /// How a world is made.
    Setup,
    /// Which kinds of faults a world sees, and how many.
    Mix,
    /// The faults themselves.
    Fault,
    /// What happens to a message.
    Fate,
    /// What an operator writes.
    Operator,
    /// How far apart the effects of a holder are.
    Work,
}

/// 64 bits for the `n`-th question about `entity`.
#[must_use]
pub const fn draw(seed: u64, stream: Stream, entity: u64, n: u64) -> u64 {
    mix(n ^ mix(entity ^ mix(stream as u64 ^ mix(seed))))
}

/// The draws about one entity, one after another.
#[derive(Clone, Debug)]
pub struct Dice {
    seed: u64,
    stream: Stream,
    entity: u64,
    n: u64,
}

impl Dice {
    /// The first draw about `entity` comes next.
    #[must_use]
    pub const fn new(seed: u64, stream: Stream, entity: u64) -> Self {
        Self { seed, stream, entity, n: 0 }
    }

    /// 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.n += 1;
        draw(self.seed, self.stream, self.entity, self.n)
    }

    /// From 0 up to and without `end`; 0 where that is empty.
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }

    /// From `first` to `last`, both included.
    pub const fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below((last - first).saturating_add(1))
    }

    /// True once in `chances` draws on average; never for 0.
    pub const fn one_in(&mut self, chances: u64) -> bool {
        chances > 0 && self.below(chances) == 0
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every bit.
pub(crate) const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_every_part_of_its_name() {
        let here = draw(1, Stream::Fate, 2, 3);
        assert_eq!(here, draw(1, Stream::Fate, 2, 3));
        assert_ne!(here, draw(2, Stream::Fate, 2, 3));
        assert_ne!(here, draw(1, Stream::Salt, 2, 3));
        assert_ne!(here, draw(1, Stream::Fate, 3, 3));
        assert_ne!(here, draw(1, Stream::Fate, 2, 4));
    }

    #[test]
    fn ranges_are_kept() {
        let mut dice = Dice::new(7, Stream::Mix, 0);
        assert!((0..1_000).all(|_| (5..=9).contains(&dice.within(5, 9))));
        assert!((0..1_000).all(|_| !dice.one_in(0)));
        assert_eq!(dice.below(0), 0);
    }
}
