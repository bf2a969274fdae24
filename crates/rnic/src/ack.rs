//! Acknowledgements: when a receiver sends an ACK, and the rules that receivers of all families share.

use crate::notification::{Cnp, MarkRules};
use model::transport::Reply;
use model::{Psn, Time};

/// Rules for answers that the receivers of all modes share: those of the `[nic]` table.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Answers {
    pub(crate) acks: AckRules,
    pub(crate) marks: MarkRules,
}

impl Default for Answers {
    /// An ACK for each packet, and a CNP for each mark.
    fn default() -> Self {
        Answers {
            acks: AckRules { every: 1, duplicates: true },
            marks: MarkRules { cnp: Cnp::Frame, interval: Time::ZERO },
        }
    }
}

impl Answers {
    /// Data packets per ACK, `nic.ack-every`.
    pub fn ack_every(&self) -> u32 {
        self.acks.every
    }

    /// Whether a duplicate is acknowledged again.
    pub fn acks_duplicates(&self) -> bool {
        self.acks.duplicates
    }

    /// How a receiver reports a mark.
    pub fn cnp(&self) -> Cnp {
        self.marks.cnp
    }
}

/// Rule for ACKs, shared by all queue pairs of a NIC.
///
/// Every `every`-th packet is acknowledged, whether it arrives in order or ahead of a gap. Always acknowledged are the last
/// packet of a message (its sender asks for it: BTH AckReq), a packet that fills a gap (ePSN jumps), and a duplicate. A
/// NACK replaces the ACK.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct AckRules {
    /// Packets per ACK.
    pub(crate) every: u32,
    /// Whether a duplicate is acknowledged again.
    pub(crate) duplicates: bool,
}

impl AckRules {
    /// True if every packet is acknowledged at once; [`Acks`] then counts nothing.
    #[inline]
    pub(crate) const fn each(&self) -> bool {
        self.every <= 1
    }
}

/// Counts packets towards the next ACK.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Acks {
    waiting: u32,
}

impl Acks {
    /// A packet has arrived, and ePSN is now `expected`; an `urgent` packet is acknowledged at once.
    #[inline]
    pub(crate) fn on_packet(&mut self, rules: &AckRules, expected: u64, urgent: bool) -> Option<Reply> {
        self.waiting += 1;
        if urgent || self.waiting >= rules.every { Some(self.ack(expected)) } else { None }
    }

    /// A packet has arrived whose PSN is below ePSN (InfiniBand Architecture, C9-110: acknowledge it again).
    #[inline]
    pub(crate) fn on_duplicate(&mut self, rules: &AckRules, expected: u64) -> Option<Reply> {
        if rules.duplicates { Some(self.ack(expected)) } else { None }
    }

    /// A NACK: it acknowledges everything before `expected`.
    #[inline]
    pub(crate) fn nack(&mut self, expected: u64) -> Reply {
        self.waiting = 0;
        Reply::Nack(Psn::from_seq(expected))
    }

    /// ACK(ePSN - 1). Before the first packet in order this is PSN 2^24 - 1, which acknowledges nothing.
    #[inline]
    fn ack(&mut self, expected: u64) -> Reply {
        self.waiting = 0;
        Reply::Ack(Psn::from_seq(expected.wrapping_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fourth_packet_is_acknowledged_unless_one_is_urgent() {
        let rules = AckRules { every: 4, duplicates: true };
        let mut acks = Acks::default();
        let replies: Vec<bool> = (1..=8).map(|e| acks.on_packet(&rules, e, false).is_some()).collect();
        assert_eq!(replies, [false, false, false, true, false, false, false, true]);
        assert_eq!(acks.on_packet(&rules, 9, true), Some(Reply::Ack(Psn::new(8))));
        assert_eq!(acks.on_packet(&rules, 10, false), None);
        assert_eq!(acks.on_duplicate(&rules, 10), Some(Reply::Ack(Psn::new(9))));
    }

    #[test]
    fn before_the_first_packet_an_ack_names_the_psn_before_zero() {
        let rules = AckRules { every: 1, duplicates: true };
        assert_eq!(Acks::default().on_packet(&rules, 0, false), Some(Reply::Ack(Psn::new(0xFF_FFFF))));
    }

    #[test]
    fn duplicates_can_go_unanswered() {
        let rules = AckRules { every: 1, duplicates: false };
        assert_eq!(Acks::default().on_duplicate(&rules, 7), None);
    }
}
