//! The maps of arrived packets that reports carry, and what is new in each of them.

use model::Psn;
use model::annex::Sack;

/// The last map, without packets below the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Map {
    /// Packet of the lowest bit.
    first: u64,
    /// A bit for each of 64 packets that has arrived.
    bits: u64,
}

impl Map {
    /// Takes the map of a report; returns its first packet and the bits that the last map did not have. Successive maps overlap,
    /// and what has arrived once stays so. Packets below `una` or from `next` on have no bit.
    #[inline]
    pub(super) fn replace(&mut self, sack: &Sack, una: u64, next: u64) -> (u64, u64) {
        let ahead = sack.base.distance_from(Psn::from_seq(una));
        let (first, bits) = match ahead {
            ..0 => (una, sack.bits.checked_shr(ahead.unsigned_abs()).unwrap_or(0)),
            _ => (una + ahead as u64, sack.bits),
        };
        let sent = next.saturating_sub(first);
        let bits = if sent < 64 { bits & ((1 << sent) - 1) } else { bits };
        let known = match first >= self.first {
            true => u32::try_from(first - self.first).ok().and_then(|by| self.bits.checked_shr(by)),
            false => u32::try_from(self.first - first).ok().and_then(|by| self.bits.checked_shl(by)),
        };
        *self = Map { first, bits };
        (first, bits & !known.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is new in a map after another one, if packets 2 to 89 are outstanding.
    fn new((base, bits): (u32, u64), then: (u32, u64)) -> (u64, u64) {
        let mut map = Map::default();
        let sack = |base: u32, bits| Sack { base: Psn::new(base), bits, ..Sack::default() };
        map.replace(&sack(base, bits), 2, 90);
        map.replace(&sack(then.0, then.1), 2, 90)
    }

    #[test]
    fn only_bits_that_the_last_map_did_not_have_are_new() {
        assert_eq!(new((5, 0b101), (5, 0b111)), (5, 0b010));
        assert_eq!(new((5, 0b101), (7, 0b11)), (7, 0b10), "a later map");
        assert_eq!(new((7, 0b11), (5, 0b101)), (5, 0b001), "an earlier map");
        assert_eq!(new((5, 1), (80, 1)), (80, 1), "maps without common packets");
    }

    #[test]
    fn only_outstanding_packets_have_a_bit() {
        assert_eq!(new((5, 0), (0, 0b1111)), (2, 0b11), "packets 0 and 1 are acknowledged");
        assert_eq!(new((5, 0), (88, u64::MAX)), (88, 0b11), "90 was never sent");
        assert_eq!(new((5, 0), (95, 1)), (95, 0));
    }
}
