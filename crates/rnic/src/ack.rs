//! When a receiver acknowledges.

use model::Psn;
use model::transport::Reply;

/// Counts packets towards the next ACK.
///
/// Every `every`-th packet is acknowledged, whether it came in order or ahead of a gap; besides, always: the
/// last packet of a message (its sender asks: BTH AckReq), a packet that fills a gap (ePSN jumps), and a
/// duplicate. A NACK takes the place of the ACK.
#[derive(Clone, Debug)]
pub struct Acks {
    every: u32,
    waiting: u32,
    duplicates: bool,
}

impl Acks {
    /// One ACK per `every` packets; `duplicates` says whether a duplicate is acknowledged again.
    pub const fn new(every: u32, duplicates: bool) -> Self {
        Acks { every, waiting: 0, duplicates }
    }

    /// A packet has come, and ePSN is now `expected`; `urgent` if it must not wait for others.
    #[inline]
    pub fn on_packet(&mut self, expected: u64, urgent: bool) -> Option<Reply> {
        self.waiting += 1;
        if urgent || self.waiting >= self.every { Some(self.ack(expected)) } else { None }
    }

    /// A packet has come whose PSN is below ePSN (InfiniBand Architecture, C9-110: acknowledge it again).
    #[inline]
    pub fn on_duplicate(&mut self, expected: u64) -> Option<Reply> {
        if self.duplicates { Some(self.ack(expected)) } else { None }
    }

    /// A NACK: it acknowledges everything before `expected`.
    #[inline]
    pub fn nack(&mut self, expected: u64) -> Reply {
        self.waiting = 0;
        Reply::Nack(Psn::from_seq(expected))
    }

    /// ACK(ePSN - 1). Before any packet has come in order that is PSN 2^24 - 1, which acknowledges nothing.
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
        let mut acks = Acks::new(4, true);
        let replies: Vec<bool> = (1..=8).map(|e| acks.on_packet(e, false).is_some()).collect();
        assert_eq!(replies, [false, false, false, true, false, false, false, true]);
        assert_eq!(acks.on_packet(9, true), Some(Reply::Ack(Psn::new(8))));
        assert_eq!(acks.on_packet(10, false), None);
        assert_eq!(acks.on_duplicate(10), Some(Reply::Ack(Psn::new(9))));
    }

    #[test]
    fn before_the_first_packet_an_ack_names_the_psn_before_zero() {
        assert_eq!(Acks::new(1, true).on_packet(0, false), Some(Reply::Ack(Psn::new(0xFF_FFFF))));
    }

    #[test]
    fn duplicates_can_go_unanswered() {
        assert_eq!(Acks::new(1, false).on_duplicate(7), None);
    }
}
