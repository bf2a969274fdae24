//! The byte that IPv4 calls type of service and IPv6 traffic class: DSCP (RFC 2474) and ECN (RFC 3168).

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The ends do not understand marks.
    #[default]
    NotEct = 0b00,
    /// They do: ECT(1).
    Ect1 = 0b01,
    /// They do: ECT(0), what RoCEv2 NICs send.
    Ect0 = 0b10,
    /// A switch has marked it: congestion experienced.
    Ce = 0b11,
}

/// DSCP and ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// Of a code point (6 bits; higher ones are dropped) and a mark.
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        TrafficClass(dscp << 2 | ecn as u8)
    }

    /// Differentiated services code point, 6 bits.
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The mark.
    pub const fn ecn(self) -> Ecn {
        match self.0 & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The same with another mark.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        TrafficClass::new(self.dscp(), ecn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bits_and_two() {
        let class = TrafficClass::new(26, Ecn::Ect0);
        assert_eq!((class.0, class.dscp(), class.ecn()), (0x6A, 26, Ecn::Ect0));
        assert_eq!(class.with_ecn(Ecn::Ce).0, 0x6B);
        for byte in 0..=255 {
            let class = TrafficClass(byte);
            assert_eq!(TrafficClass::new(class.dscp(), class.ecn()), class);
        }
    }
}
