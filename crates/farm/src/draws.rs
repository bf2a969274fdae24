//! Random draws of one trial.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers that depends on the seed and the trial's number only.
pub(crate) struct Draws(SplitMix64);

impl Draws {
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut root = SplitMix64::seed_from_u64(seed);
        Draws(SplitMix64::seed_from_u64(root.next_u64() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A whole number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        model::draw::below(self.0.next_u64(), n)
    }

    /// A whole number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.next_u64() % (most - least).saturating_add(1)
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// One of the items; panics if there is none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number between two positive ones whose logarithm is uniform: small and large magnitudes are equally likely.
    pub(crate) fn magnitude(&mut self, least: f64, most: f64) -> f64 {
        (least.ln() + (most.ln() - least.ln()) * self.share()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_repeats_and_differs_from_the_next() {
        let some = |seed, number| -> Vec<usize> {
            let mut draws = Draws::new(seed, number);
            (0..8).map(|_| draws.below(1000)).collect()
        };
        assert_eq!(some(1, 7), some(1, 7));
        assert_ne!(some(1, 7), some(1, 8));
        assert_ne!(some(1, 7), some(2, 7));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut draws = Draws::new(1, 1);
        for _ in 0..1000 {
            assert!((3..=5).contains(&draws.between(3, 5)));
            assert!((0.0..1.0).contains(&draws.share()));
            assert!((1.0..=1e6).contains(&draws.magnitude(1.0, 1e6)));
        }
    }
}
