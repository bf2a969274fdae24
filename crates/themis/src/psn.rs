//! The packet sequence number (PSN): 24 bits, compared as a serial number.

use core::fmt;

/// Number of distinct PSNs, 2^24 (the BTH.PSN field of InfiniBand and RoCEv2 has 24 bits).
pub const PSN_SPACE: u32 = 1 << 24;

const MASK: u32 = PSN_SPACE - 1;

/// A 24-bit packet sequence number.
///
/// PSNs wrap, so they have no total order, and this type has no `Ord`. Use [`Psn::is_after`] or [`Psn::distance_from`],
/// which are right for PSNs less than 2^23 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// The PSN with the low 24 bits of `value`; higher bits are dropped.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// The PSN of packet number `seq` of an endless stream: `seq` mod 2^24.
    #[inline]
    pub const fn from_seq(seq: u64) -> Self {
        Self((seq & MASK as u64) as u32)
    }

    /// The number, 0 to 2^24 - 1.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The next PSN.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The PSN `n` packets later; it wraps at 2^24.
    #[inline]
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// Number of packets from `other` to this PSN, from -2^23 to 2^23 - 1; negative if this PSN comes before `other`.
    #[inline]
    pub const fn distance_from(self, other: Self) -> i32 {
        // Bit 23 of the 24-bit difference is its sign: shift it to bit 31 and back.
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }

    /// Serial-number comparison: true if and only if 1 <= (self - other) mod 2^24 <= 2^23 - 1.
    ///
    /// Of two PSNs exactly 2^23 apart, neither is after the other.
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// The 64-bit sequence number nearest to `reference` whose low 24 bits are this PSN.
    ///
    /// If the nearest lies below 0 or above `u64::MAX`, the result is one wrap further inwards.
    #[inline]
    pub const fn unwrap_near(self, reference: u64) -> u64 {
        let distance = self.distance_from(Self::from_seq(reference)) as i64;
        let space = PSN_SPACE as i64;
        match reference.checked_add_signed(distance) {
            Some(seq) => seq,
            None => reference.wrapping_add_signed(distance - distance.signum() * space),
        }
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({})", self.0)
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let last = Psn::new(PSN_SPACE - 1);
        assert_eq!(last.next(), Psn::new(0));
        assert!(Psn::new(3).is_after(last) && !last.is_after(Psn::new(3)));
        assert_eq!(Psn::new(3).distance_from(last), 4);
        assert_eq!(last.distance_from(Psn::new(3)), -4);
    }

    #[test]
    fn psns_half_the_space_apart_have_no_order() {
        let (a, b) = (Psn::new(5), Psn::new(5 + (1 << 23)));
        assert!(!a.is_after(b) && !b.is_after(a) && !a.is_after(a));
        assert!(Psn::new(4 + (1 << 23)).is_after(a));
        assert_eq!(b.distance_from(a), -(1 << 23));
    }

    #[test]
    fn unwrapping_finds_the_nearest_and_stays_in_range() {
        let space = u64::from(PSN_SPACE);
        for seq in [0, 1, space - 1, space, 7 * space + 5, u64::MAX] {
            assert_eq!(Psn::from_seq(seq).unwrap_near(seq), seq);
        }
        assert_eq!(Psn::new(2).unwrap_near(3 * space - 1), 3 * space + 2);
        assert_eq!(Psn::new(PSN_SPACE - 1).unwrap_near(3 * space), 3 * space - 1);
        assert_eq!(Psn::new(PSN_SPACE - 1).unwrap_near(0), space - 1);
        assert_eq!(Psn::new(0).unwrap_near(u64::MAX), u64::MAX - (space - 1));
    }
}
