//! The byte for DSCP (RFC 2474) and ECN (RFC 3168), called type of service in IPv4 and traffic class in IPv6.

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The ends do not support ECN.
    #[default]
    NotEct = 0b00,
    /// The ends support ECN: ECT(1).
    Ect1 = 0b01,
    /// The ends support ECN: ECT(0), which RoCEv2 NICs send.
    Ect0 = 0b10,
    /// Congestion experienced: a switch has marked the packet.
    Ce = 0b11,
}

/// DSCP and ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// The byte of a code point, of which the lowest 6 bits count, and an ECN field.
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        TrafficClass(dscp << 2 | ecn as u8)
    }

    /// Differentiated services code point, 6 bits.
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The ECN field.
    pub const fn ecn(self) -> Ecn {
        match self.0 & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// This byte with another ECN field.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        TrafficClass::new(self.dscp(), ecn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscp_has_six_bits_and_ecn_two() {
        let class = TrafficClass::new(26, Ecn::Ect0);
        assert_eq!((class.0, class.dscp(), class.ecn()), (0x6A, 26, Ecn::Ect0));
        assert_eq!(class.with_ecn(Ecn::Ce).0, 0x6B);
        for byte in 0..=255 {
            let class = TrafficClass(byte);
            assert_eq!(TrafficClass::new(class.dscp(), class.ecn()), class);
        }
    }
}
