//! Random numbers by key: (seed, purpose, entity, ordinal).
//!
//! A draw is a function of its key, and independent of all other draws. Results therefore do not depend on the order in
//! which an engine visits nodes.

/// Purpose of a draw. Two purposes never share a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Order of packets that reach a node at the same instant.
    Tie = 1,
    /// Whether a link loses a packet.
    Loss = 2,
    /// Whether a queue marks a packet.
    Mark = 3,
    /// Draws of a scheme in a switch.
    Scheme = 4,
    /// The hash salt of a switch.
    Salt = 5,
    /// Draws of a workload when the plan is made.
    Workload = 6,
    /// Draws of a NIC.
    Nic = 7,
    /// A sender's choice of paths.
    Steering = 8,
    /// Lead of a host's clock.
    Clock = 9,
    /// The choice of links that fail.
    Failure = 10,
    /// Whether a switch cuts the arriving packet or a waiting one.
    Cut = 11,
    /// The first path of messages that are split over all paths.
    Split = 12,
    /// Which packets carry a digest of telemetry, and the rounding of its code.
    Digest = 13,
    /// How late a host starts a job.
    Jitter = 14,
    /// Whether a NIC begins to lose packets at a full port.
    Ingress = 15,
    /// How long a switch takes to install routes.
    Install = 16,
    /// Whether a pair of codewords can be repaired.
    Codeword = 17,
    /// Whether a link turns bad or good, and what it loses while it is bad.
    Burst = 18,
    /// When links flap.
    Flap = 19,
    /// When a switch polls for storms of pauses.
    Poll = 20,
}

/// A seed, a purpose and an entity, mixed into one number; a draw adds the ordinal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(u64);

/// The first number of SplitMix64 with seed `x` (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014;
/// mixing function of Stafford, variant 13). A test compares it with `rand_xoshiro`, whose generator is not inlined.
#[inline]
const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Key {
    /// The key of `entity` for `purpose` in a run with `seed`.
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        Key(mix(mix(mix(seed) ^ purpose as u64) ^ entity))
    }

    /// The key of a stored salt, see [`Key::salt`].
    #[inline]
    pub const fn from_salt(salt: u64) -> Self {
        Key(salt)
    }

    /// This key as a number that can be stored.
    pub const fn salt(self) -> u64 {
        self.0
    }

    /// A uniform 64-bit number for this `ordinal`.
    #[inline]
    pub fn draw(self, ordinal: u64) -> u64 {
        mix(self.0 ^ ordinal)
    }

    /// A uniform number for a pair of ordinals, such as (time, port).
    #[inline]
    pub fn draw2(self, first: u64, second: u64) -> u64 {
        mix(mix(self.0 ^ first) ^ second)
    }
}

/// Maps a uniform 64-bit `draw` to `0..n`, for any `n` above 0.
#[inline]
pub const fn scaled(draw: u64, n: u64) -> u64 {
    ((draw as u128 * n as u128) >> 64) as u64
}

/// Maps a uniform 64-bit `draw` to `0..n` without division (bias below n / 2^32).
#[inline]
pub const fn below(draw: u64, n: usize) -> usize {
    (((draw >> 32) * n as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    #[test]
    fn mixing_is_the_first_number_of_splitmix() {
        for seed in (0..1000).map(|i: u64| i.wrapping_mul(0x0123_4567_89AB_CDEF)).chain([u64::MAX]) {
            assert_eq!(mix(seed), SplitMix64::seed_from_u64(seed).next_u64());
        }
    }

    #[test]
    fn a_draw_depends_on_its_key_only() {
        let key = Key::new(1, Purpose::Tie, 7);
        assert_eq!(key.draw(0), Key::new(1, Purpose::Tie, 7).draw(0));
        assert_ne!(key.draw(0), key.draw(1));
        assert_ne!(key.draw(0), Key::new(1, Purpose::Loss, 7).draw(0));
        assert_ne!(key.draw(0), Key::new(2, Purpose::Tie, 7).draw(0));
    }

    #[test]
    fn ports_are_drawn_evenly() {
        let key = Key::new(3, Purpose::Scheme, 0);
        let mut seen = [0u32; 16];
        for i in 0..16_000 {
            seen[below(key.draw(i), 16)] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
