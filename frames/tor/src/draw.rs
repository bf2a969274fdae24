//! Random numbers that a seed determines.

use crate::table::mix;

/// An endless stream of numbers: number n is a hash of seed, purpose and n.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    key: u64,
    next: u64,
}

impl Draw {
    /// The stream of a seed for one purpose. Streams of different purposes are independent.
    pub(crate) const fn new(seed: u64, purpose: u64) -> Self {
        Draw { key: mix(seed ^ mix(purpose.wrapping_add(1))), next: 0 }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.next = self.next.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.key ^ self.next)
    }

    /// A number from 0 to `most`, both included.
    pub(crate) const fn up_to(&mut self, most: u64) -> u64 {
        ((self.next() as u128 * (most as u128 + 1)) >> 64) as u64
    }

    /// True with probability `chance`.
    pub(crate) const fn happens(&mut self, chance: Chance) -> bool {
        (self.next() >> 32) < chance.0
    }
}

/// A probability in units of 2^-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// Never.
    pub const NEVER: Chance = Chance(0);
    /// Always.
    pub const ALWAYS: Chance = Chance(1 << 32);

    /// The nearest probability to `p`; `None` unless 0 <= p <= 1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then(|| Chance((p * (1u64 << 32) as f64).round() as u64))
    }

    /// The probability as a number from 0 to 1.
    pub fn value(self) -> f64 {
        self.0 as f64 / (1u64 << 32) as f64
    }

    /// This probability times `part / whole`; at most this probability.
    pub const fn part(self, part: u64, whole: u64) -> Self {
        if part >= whole { self } else { Chance((self.0 as u128 * part as u128 / whole as u128) as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut draw = Draw::new(1, 7);
        for (p, least, most) in
            [(0.0, 0, 0), (0.01, 900, 1100), (0.5, 49_500, 50_500), (1.0, 100_000, 100_000)]
        {
            let chance = Chance::new(p).unwrap();
            let count = (0..100_000).filter(|_| draw.happens(chance)).count();
            assert!((least..=most).contains(&count), "{p}: {count}");
        }
        assert!(Chance::new(1.1).is_none() && Chance::new(-0.1).is_none());
        assert!((0..1000).all(|_| draw.up_to(3) <= 3));
    }
}
