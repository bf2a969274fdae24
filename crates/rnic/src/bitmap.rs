//! Set of the packets after ePSN that a receiver already has.

/// Number of packets ahead of ePSN that one word holds. Our choice: it exceeds the reordering of most queue pairs, and the
/// word shares a cache line with ePSN.
const NEAR: u32 = 64;
/// Bits of the first allocation: 32 bytes. Our choice: small enough for 65,000 queue pairs.
const FIRST_BITS: u64 = 256;

/// Result of inserting a packet that is ahead of ePSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    New,
    Present,
}

/// Set of packets that arrived ahead of ePSN. A word holds the next 64. The first packet beyond them moves all packets to a
/// ring, which then stays in use.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Bitmap {
    /// Bit k stands for packet ePSN + 1 + k; 0 if there is a ring.
    near: u64,
    far: Option<Box<Ring>>,
}

impl Bitmap {
    /// Notes packet `expected + ahead`, where `ahead` is at least 1.
    #[inline]
    pub(crate) fn insert(&mut self, expected: u64, ahead: u32) -> Insert {
        if self.far.is_some() || ahead > NEAR {
            return self.insert_far(expected, ahead);
        }
        let bit = 1 << (ahead - 1);
        let insert = if self.near & bit == 0 { Insert::New } else { Insert::Present };
        self.near |= bit;
        insert
    }

    /// [`Bitmap::insert`] of a new packet into the word; false, without effect, if that is impossible.
    #[inline]
    pub(crate) fn insert_near(&mut self, ahead: u32) -> bool {
        let bit = 1_u64.wrapping_shl(ahead - 1);
        let new = self.far.is_none() && ahead <= NEAR && self.near & bit == 0;
        self.near |= if new { bit } else { 0 };
        new
    }

    fn insert_far(&mut self, expected: u64, ahead: u32) -> Insert {
        let ring = self.far.get_or_insert_with(Box::default);
        let mut near = std::mem::take(&mut self.near);
        while near != 0 {
            ring.insert(expected, near.trailing_zeros() + 1);
            near &= near - 1;
        }
        ring.insert(expected, ahead)
    }

    /// True if packet `expected + ahead` is in the set, where `ahead` is at least 1.
    pub(crate) fn contains(&self, expected: u64, ahead: u32) -> bool {
        match &self.far {
            Some(ring) => ring.contains(expected, ahead),
            None => ahead <= NEAR && self.near >> (ahead - 1) & 1 != 0,
        }
    }

    /// The packets `expected + ahead` to `expected + ahead + 63` that are in the set, from the lowest bit on, where `ahead` is
    /// at least 1.
    pub(crate) fn word(&self, expected: u64, ahead: u32) -> u64 {
        match &self.far {
            Some(ring) => ring.word(expected, ahead),
            None => self.near.checked_shr(ahead - 1).unwrap_or(0),
        }
    }

    /// [`Bitmap::advance`], unless there is a ring.
    #[inline]
    pub(crate) fn advance_near(&mut self, expected: u64) -> Option<u64> {
        match self.far {
            Some(_) => None,
            None => Some(self.leave_word(expected)),
        }
    }

    /// Removes the packets that follow `expected` without a gap from the word; returns the packet after them.
    #[inline]
    fn leave_word(&mut self, expected: u64) -> u64 {
        let run = self.near.trailing_ones();
        // Two shifts, since the total may be 65.
        self.near = self.near >> 1 >> run.min(NEAR - 1);
        expected.wrapping_add(1 + u64::from(run))
    }

    /// Bound on the distance of the packets in the set from the one before it; [`u64::MAX`] if they lie far.
    #[inline]
    pub(crate) fn reach(&self) -> u64 {
        match &self.far {
            Some(_) => u64::MAX,
            None => u64::from(u64::BITS - self.near.leading_zeros()),
        }
    }

    /// Packet `expected` has arrived; returns the new ePSN, past all packets in the set that follow it without a gap.
    #[inline]
    pub(crate) fn advance(&mut self, expected: u64) -> u64 {
        match &mut self.far {
            Some(ring) => ring.drain(expected.wrapping_add(1)),
            None => self.leave_word(expected),
        }
    }
}

/// A ring of bits, one per packet number modulo its size; it doubles on demand.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
struct Ring {
    words: Box<[u64]>,
    held: u32,
}

impl Ring {
    fn insert(&mut self, expected: u64, ahead: u32) -> Insert {
        if u64::from(ahead) >= self.bits() {
            self.grow(expected, ahead);
        }
        let (word, bit) = self.place(expected.wrapping_add(u64::from(ahead)));
        if self.words[word] & bit != 0 {
            return Insert::Present;
        }
        self.words[word] |= bit;
        self.held += 1;
        Insert::New
    }

    fn contains(&self, expected: u64, ahead: u32) -> bool {
        if u64::from(ahead) >= self.bits() {
            return false;
        }
        let (word, bit) = self.place(expected.wrapping_add(u64::from(ahead)));
        self.words[word] & bit != 0
    }

    fn word(&self, expected: u64, ahead: u32) -> u64 {
        let (bits, from) = (self.bits(), u64::from(ahead));
        if from >= bits {
            return 0;
        }
        let at = expected.wrapping_add(from) & (bits - 1);
        let (word, shift) = ((at / 64) as usize, at % 64);
        let next = self.words[(word + 1) % self.words.len()];
        let all = self.words[word] >> shift | if shift > 0 { next << (64 - shift) } else { 0 };
        // The ring begins again after `bits` packets.
        let room = bits - from;
        if room < 64 { all & ((1 << room) - 1) } else { all }
    }

    /// Removes the run of packets that starts at `seq`; returns the first missing packet.
    fn drain(&mut self, mut seq: u64) -> u64 {
        while self.held > 0 {
            let at = seq & (self.bits() - 1);
            let (word, shift) = ((at / 64) as usize, at % 64);
            let run = (self.words[word] >> shift).trailing_ones();
            if run == 0 {
                break;
            }
            self.words[word] &= !((u64::MAX >> (64 - run)) << shift);
            self.held -= run;
            seq = seq.wrapping_add(u64::from(run));
        }
        seq
    }

    #[cold]
    fn grow(&mut self, expected: u64, ahead: u32) {
        let bits = (u64::from(ahead) + 1).next_power_of_two().max(FIRST_BITS);
        let small = std::mem::replace(&mut self.words, vec![0; (bits / 64) as usize].into_boxed_slice());
        let small_bits = small.len() as u64 * 64;
        for offset in 0..small_bits {
            let seq = expected.wrapping_add(offset);
            let at = seq & (small_bits - 1);
            if small[(at / 64) as usize] >> (at % 64) & 1 != 0 {
                let (word, bit) = self.place(seq);
                self.words[word] |= bit;
            }
        }
    }

    #[inline]
    fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    #[inline]
    fn place(&self, seq: u64) -> (usize, u64) {
        let at = seq & (self.bits() - 1);
        ((at / 64) as usize, 1 << (at % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn in_order_packets_allocate_nothing() {
        let mut map = Bitmap::default();
        let mut expected = 0;
        for _ in 0..1000 {
            expected = map.advance(expected);
        }
        assert_eq!((expected, bits(&map)), (1000, 0));
    }

    #[test]
    fn the_next_64_packets_allocate_nothing() {
        let mut map = Bitmap::default();
        for ahead in 1..=64 {
            assert_eq!(map.insert(1000, ahead), Insert::New);
            assert_eq!(map.insert(1000, ahead), Insert::Present);
        }
        assert_eq!((map.advance(1000), bits(&map)), (1065, 0));
        assert_eq!(map.advance(1065), 1066);
    }

    #[test]
    fn the_ring_takes_over_the_word_and_doubles() {
        let mut map = Bitmap::default();
        assert_eq!(map.insert(1000, 1), Insert::New);
        assert_eq!(map.insert(1000, 65), Insert::New);
        assert_eq!(bits(&map), 256);
        assert_eq!(map.insert(1000, 256), Insert::New);
        assert_eq!(bits(&map), 512);
        assert_eq!(map.insert(1000, (1 << 15) - 1), Insert::New);
        assert_eq!(bits(&map), 1 << 15);
        assert_eq!(map.insert(1000, 1), Insert::Present);
        assert_eq!(map.insert(1000, 256), Insert::Present);
        assert_eq!(map.advance(1000), 1002);
    }

    fn bits(map: &Bitmap) -> u64 {
        map.far.as_ref().map_or(0, |ring| ring.bits())
    }

    fn held(map: &Bitmap) -> usize {
        map.near.count_ones() as usize + map.far.as_ref().map_or(0, |ring| ring.held as usize)
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_set_of_numbers(
            start in prop_oneof![Just(0u64), Just(u64::MAX / 2 - 100), 0..1u64 << 40],
            steps in prop::collection::vec((prop_oneof![Just(0u32), 0..6u32, 0..67u32, 0..700u32], 1u32..4), 1..400),
        ) {
            let mut map = Bitmap::default();
            let mut set = BTreeSet::new();
            let mut expected = start;
            for (ahead, arrivals) in steps {
                if ahead == 0 {
                    for _ in 0..arrivals {
                        let mut next = expected + 1;
                        while set.remove(&next) {
                            next += 1;
                        }
                        expected = map.advance(expected);
                        prop_assert_eq!(expected, next);
                    }
                } else {
                    let fresh = set.insert(expected + u64::from(ahead));
                    let want = if fresh { Insert::New } else { Insert::Present };
                    prop_assert_eq!(map.insert(expected, ahead), want);
                    prop_assert!(map.contains(expected, ahead));
                }
                prop_assert_eq!(held(&map), set.len());
                let near = arrivals * 31;
                prop_assert_eq!(map.contains(expected, near), set.contains(&(expected + u64::from(near))));
                let word = (0..64).filter(|i| set.contains(&(expected + u64::from(near) + i)));
                prop_assert_eq!(map.word(expected, near), word.fold(0, |word, i| word | 1 << i));
            }
        }
    }
}
