//! The content of a CNP that a switch makes: 24 bits in place of its PSN.
//!
//! A CNP has 16 reserved bytes. QCN puts a quantised measure of the queue there, and other systems a rate. CNPs of receivers
//! carry neither.

use crate::{HostId, Kind, Packet, Psn, QpId, Rate};

/// What a switch tells a sender in a CNP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// QCN's quantised feedback, 1 to 63: 63 demands the deepest cut.
    Feedback(u8),
    /// A rate that the flow should not exceed.
    Rate(Rate),
}

/// Unit of rates, bit/s. Rates up to 8.3 Tb/s fit.
const UNIT: u64 = 1_000_000;
/// Bits of a rate in the content; the bit above them tells rates from feedback.
const BITS: u32 = 23;

impl Advice {
    /// Largest feedback.
    pub const MOST_FEEDBACK: u8 = 63;

    fn content(self) -> u32 {
        match self {
            Advice::Feedback(feedback) => feedback.into(),
            Advice::Rate(rate) => 1 << BITS | (rate.bps() / UNIT).clamp(1, (1 << BITS) - 1) as u32,
        }
    }

    /// A CNP of `frame` bytes with this content, to the sender of `qp`.
    pub fn cnp(self, qp: QpId, sender: HostId, frame: u32) -> Packet {
        Packet::new(Kind::Cnp, qp, sender, Psn::new(self.content()), frame).with_echo(true)
    }

    /// The content of a CNP; `None` for CNPs of receivers, for other CNPs without content, and for other packets.
    pub fn of(pkt: &Packet) -> Option<Self> {
        if pkt.kind() != Kind::Cnp || !pkt.echo() {
            return None;
        }
        let content = pkt.psn().value();
        Some(match content >> BITS {
            0 => Advice::Feedback(content.min(Self::MOST_FEEDBACK.into()) as u8),
            _ => Advice::Rate(Rate(u64::from(content & ((1 << BITS) - 1)) * UNIT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cnp_carries_its_content() {
        for advice in [
            Advice::Feedback(1),
            Advice::Feedback(63),
            Advice::Rate(Rate(1_000_000)),
            Advice::Rate(Rate::from_gbps(1600)),
        ] {
            let cnp = advice.cnp(QpId(7), HostId(3), 64);
            assert_eq!((cnp.kind(), cnp.qp(), cnp.to(), cnp.frame()), (Kind::Cnp, QpId(7), HostId(3), 64));
            assert_eq!(Advice::of(&cnp), Some(advice));
        }
        let small = Advice::Rate(Rate(10)).cnp(QpId(7), HostId(3), 64);
        assert_eq!(Advice::of(&small), Some(Advice::Rate(Rate(1_000_000))), "never 0");
        let plain = Packet::new(Kind::Cnp, QpId(7), HostId(3), Psn::new(5), 64);
        assert_eq!(Advice::of(&plain), None);
        assert_eq!(
            Advice::of(&Packet::new(Kind::Ack, QpId(7), HostId(3), Psn::new(5), 64).with_echo(true)),
            None
        );
    }
}
