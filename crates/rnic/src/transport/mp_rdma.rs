//! MP-RDMA's recovery: a small bitmap at the receiver and a few counters at the sender (Lu et al., "Multi-Path Transport
//! for RDMA in Datacenters", NSDI'18).
//!
//! The receiver notes packets within `bitmap` packets of the first missing one (the paper's AACK). It acknowledges every
//! packet by itself, so that the sender learns which packet has left the network. A packet beyond the bitmap is dropped and
//! NACKed. On a NACK or a timeout the sender begins a *recovery*, which lasts until all packets sent so far are
//! acknowledged. In a recovery the sender goes once through the unacknowledged packets (the paper's `snd_retx`), clocked by
//! replies, and then on to new packets. Packets beyond the bitmap wait until the receiver has room for them. The sender
//! keeps no scoreboard, so it also retransmits packets that have arrived; a packet that is lost again waits for the timer.
//!
//! The congestion window bounds the packets in flight: `snd_nxt - snd_una - inflate` in the paper, where `inflate` counts
//! the packets acknowledged ahead of `snd_una`.
//!
//! Our choices: every reply stands for a packet that has left the network, including a NACK and the ACK of a
//! retransmission. A NACK during a recovery changes nothing, since its gap is being filled.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Recovery, TransportFacts};
use crate::limits::outstanding;
use crate::selective::in_flight;
use crate::selective::receiver::{self, Report};
use crate::timeout::Timing;
use finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.mp-rdma]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportMpRdma")]
pub struct Config {
    /// Number L of packets from ePSN on that the receiver can note; it drops packets beyond. Default 64 (the paper: 64
    /// packets hold the reordering that remains under its path selection).
    pub bitmap: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { bitmap: 64 }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "bitmap = 9\n[nic.congestion.mp-rdma]\ninitial = 12",
        "bitmap = 7\n[nic]\ntimeout = { fixed = \"50us\" }\n[nic.congestion.mp-rdma]\ninitial = 9",
    ];

    fn facts(&self) -> TransportFacts {
        TransportFacts { names_packets: true, ..TransportFacts::KEEPING }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("bitmap", self.bitmap)
    }

    fn sending(&self, timing: Timing) -> Sending {
        Sending::InFlight(Arc::new(in_flight::Rules { timing, bitmap: self.bitmap.into() }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        let (window, report) = (self.bitmap, Report::Each);
        Receiving::Selective(Arc::new(receiver::Rules { answers, window, report, notices: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;
    use crate::selective::in_flight::{Rules, Sender};
    use crate::tests::{Pair, ReceiverCalls as _, SenderCalls as _, nic};
    use crate::timeout::Timeout;
    use model::annex::Selective;
    use model::transport::{Fate, Progress, Reply};
    use model::{Psn, Sender as _, Time};

    fn pair(bitmap: u32) -> Pair {
        Pair::new(&nic(TransportConfig::MpRdma(Config { bitmap })))
    }

    fn sender(packets: u64) -> Sender {
        sender_to(packets, 64)
    }

    fn sender_to(packets: u64, bitmap: u64) -> Sender {
        let timing = Timing::new(Timeout::Fixed(Time::from_ms(1)), None);
        let mut sender = Sender::new(Arc::new(Rules { timing, bitmap }));
        sender.post(packets);
        sender
    }

    fn send(sender: &mut Sender, window: u64) -> Vec<(u64, bool)> {
        std::iter::from_fn(|| sender.next(Time::ZERO, window)).collect()
    }

    fn ack(sender: &mut Sender, psn: u32) -> Progress {
        sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(psn)))
    }

    const NOTHING: u32 = 0xFF_FFFF;

    #[test]
    fn reordering_within_the_bitmap_is_free() {
        let mut pair = pair(64);
        for packet in [3, 9, 10, 40] {
            pair.delay_data(packet, Time::from_us(5)); // the time of 50 packets
        }
        pair.run(200);
        assert_eq!((pair.nacks, pair.retransmitted, pair.timeouts, pair.discarded), (0, 0, 0, 0));
        assert!(pair.out_of_order > 50);
    }

    #[test]
    fn a_packet_beyond_the_bitmap_begins_a_recovery() {
        let mut receiver = nic(TransportConfig::MpRdma(Config { bitmap: 4 })).build().receiver();
        let mut on = |psn| {
            let got = receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
            (got.fate, got.reply, receiver.selective())
        };
        let (ack, nack) = (Some(Reply::Ack(Psn::new(NOTHING))), Some(Reply::Nack(Psn::new(0))));
        assert_eq!(on(3), (Fate::Accepted, ack, Selective::Arrived(Psn::new(3))));
        assert_eq!(on(4), (Fate::Discarded, nack, Selective::Nothing));
        assert_eq!(on(0), (Fate::Accepted, Some(Reply::Ack(Psn::new(0))), Selective::Arrived(Psn::new(0))));
        let mut pair = pair(8);
        pair.lose_data(5);
        pair.run(40);
        assert_eq!(pair.timeouts, 0);
        assert!(pair.nacks > 0 && pair.discarded == pair.nacks);
        assert_eq!(pair.sent[..14], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    }

    #[test]
    fn recovery_retransmits_unacknowledged_packets_once() {
        let mut s = sender(20);
        assert_eq!(send(&mut s, 10).len(), 10);
        let nack = Reply::Nack(Psn::new(2));
        assert_eq!(s.on_reply(Time::ZERO, nack), Progress { acked: 2, nack: true });
        assert_eq!(s.on_reply(Time::ZERO, nack), Progress { acked: 0, nack: false });
        // The first NACK leaves 8 packets in flight and the second one 7, so a window of 10 has room for three.
        assert_eq!(send(&mut s, 10), [(2, true), (3, true), (4, true)]);
        // Packet 2 alone was missing; all packets before 7 have arrived.
        assert_eq!(ack(&mut s, 6).acked, 5);
        assert_eq!(send(&mut s, 5), [(7, true), (8, true)]);
        assert_eq!(ack(&mut s, 9).acked, 3);
        assert_eq!(send(&mut s, 2), [(10, false), (11, false)]);
    }

    #[test]
    fn a_recovery_sends_nothing_beyond_the_bitmap() {
        let mut s = sender_to(100, 4);
        assert_eq!(send(&mut s, 10).len(), 10);
        let nack = Reply::Nack(Psn::new(0)); // 0 is lost, 4 to 9 were dropped
        assert!(s.on_reply(Time::ZERO, nack).nack);
        assert_eq!(send(&mut s, 99), [(0, true), (1, true), (2, true), (3, true)]);
        // Packet 0 is lost again: however many replies come, nothing is sent that the receiver would drop.
        (0..20).for_each(|_| assert!(!s.on_reply(Time::ZERO, nack).nack));
        assert_eq!((send(&mut s, 99), s.room(99)), (vec![], 0));
        assert_eq!(ack(&mut s, 6).acked, 7);
        assert_eq!(send(&mut s, 99)[..4], [(7, true), (8, true), (9, true), (10, false)]);
        assert_eq!(send(&mut s, 99), [], "packets 7 to 10 fill the bitmap");
        assert_eq!(ack(&mut s, 10).acked, 4);
        assert_eq!(send(&mut s, 20).len(), 20, "the recovery is over");
    }

    #[test]
    fn an_ack_ahead_of_a_gap_releases_another_packet() {
        let mut s = sender(20);
        assert_eq!(send(&mut s, 4).len(), 4);
        assert_eq!(s.room(4), 0);
        assert_eq!(ack(&mut s, NOTHING), Progress::default()); // packet 3 has arrived before packet 0
        assert_eq!((s.room(4), s.room(6), s.room(99)), (1, 3, 16));
        assert_eq!(send(&mut s, 4), [(4, false)]);
        // Packet 0 arrives late: four packets are acknowledged, and one is in flight.
        assert_eq!(ack(&mut s, 3).acked, 4);
        assert_eq!(s.room(4), 3);
    }

    #[test]
    fn after_a_timeout_nothing_is_in_flight() {
        let mut s = sender(6);
        assert_eq!(send(&mut s, 4).len(), 4);
        s.on_timeout(Time::from_ms(1));
        assert_eq!(send(&mut s, 2), [(0, true), (1, true)]);
        assert_eq!(ack(&mut s, 3).acked, 4);
        assert_eq!(send(&mut s, 2), [(4, false), (5, false)]);
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.mp-rdma";
        check(table, "bitmap", PACKETS.0, PACKETS.1);
    }
}
