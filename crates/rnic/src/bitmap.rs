//! Which packets after ePSN a receiver already has.

/// Bits of the first allocation: 32 bytes. Our choice: more than the reordering of most queue pairs, little
/// enough for 65,000 of them.
const FIRST_BITS: u64 = 256;

/// What became of a packet that is ahead of ePSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    New,
    Present,
    Beyond,
}

/// A ring of bits, one per packet number modulo its size. Nothing is allocated while packets come in order;
/// after that it doubles on demand up to its window.
#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Box<[u64]>,
    held: u32,
    window: u32,
}

impl Bitmap {
    /// A bitmap for packets less than `window` ahead of ePSN.
    pub(crate) fn new(window: u32) -> Self {
        Bitmap { words: Box::default(), held: 0, window }
    }

    /// Notes packet `expected + ahead`, where `ahead` is at least 1.
    pub(crate) fn insert(&mut self, expected: u64, ahead: u32) -> Insert {
        if ahead >= self.window {
            return Insert::Beyond;
        }
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

    /// Packet `expected` has come: the new ePSN, past everything that was held behind it.
    #[inline]
    pub(crate) fn advance(&mut self, expected: u64) -> u64 {
        let next = expected.wrapping_add(1);
        if self.held == 0 { next } else { self.drain(next) }
    }

    /// Removes the run of bits that starts at `seq`; the first packet that is missing.
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
            if shift + u64::from(run) < 64 {
                break;
            }
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
        let mut map = Bitmap::new(1 << 15);
        let mut expected = 0;
        for _ in 0..1000 {
            expected = map.advance(expected);
        }
        assert_eq!((expected, map.bits()), (1000, 0));
    }

    #[test]
    fn it_doubles_up_to_its_window_and_keeps_what_it_holds() {
        let mut map = Bitmap::new(1 << 15);
        assert_eq!(map.insert(1000, 1), Insert::New);
        assert_eq!(map.bits(), 256);
        assert_eq!(map.insert(1000, 256), Insert::New);
        assert_eq!(map.bits(), 512);
        assert_eq!(map.insert(1000, (1 << 15) - 1), Insert::New);
        assert_eq!(map.bits(), 1 << 15);
        assert_eq!(map.insert(1000, 1 << 15), Insert::Beyond);
        assert_eq!(map.insert(1000, 256), Insert::Present);
        assert_eq!(map.advance(1000), 1002);
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(
            start in prop_oneof![Just(0u64), Just(u64::MAX / 2 - 100), 0..1u64 << 40],
            steps in prop::collection::vec((0u32..700, 1u32..4), 1..400),
        ) {
            let window = 600;
            let mut map = Bitmap::new(window);
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
                    let want = if ahead >= window {
                        Insert::Beyond
                    } else if set.insert(expected + u64::from(ahead)) {
                        Insert::New
                    } else {
                        Insert::Present
                    };
                    prop_assert_eq!(map.insert(expected, ahead), want);
                }
                prop_assert_eq!(map.held as usize, set.len());
            }
        }
    }
}
