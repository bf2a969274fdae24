//! Selective repeat of commodity NICs ("NIC-SR" in the Themis paper, section 2.2).
//!
//! The receiver keeps out-of-order packets and notes them in a bitmap. It NACKs each ePSN at most once, when a packet
//! arrives ahead of it; a move of ePSN to another gap sends no NACK by itself. A NACK carries only ePSN, so the sender
//! counts that one packet as lost, retransmits it ahead of new data, and continues. If this retransmission is lost as well,
//! only the timer helps.
//!
//! We found no publication or measurement of what such a NIC retransmits after a timeout. The claims of the patents on its
//! selective repeat (US 10,430,374 and 11,870,590) cover the answer to a NACK only. So the timer follows InfiniBand's rule
//! for a retry: the sender starts again from the oldest unacknowledged packet. ACKs and NACKs carry only ePSN, so the
//! sender repeats packets that the receiver holds. When an ACK moves ePSN past a filled gap, the sender skips to the next
//! gap.
//!
//! All traffic counts as RDMA Write: for Send, such NICs fall back to go-back-N (US patent 11,870,590).

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Recovery, TransportFacts};
use crate::limits::outstanding;
use crate::psn::receiver;
use crate::psn::sender::{self, Resend};
use crate::timeout::Timing;
use crate::verb::Verb;
use finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.nic-sr]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 32768: the size of the receiver's bitmap (our choice, since the
    /// real size is not public).
    pub max_outstanding: u32,
    /// Number of packets from ePSN on that the receiver can note; it discards packets beyond. Default 32768 (our choice).
    pub reorder_window: u32,
    /// Packets that a timeout retransmits: `oldest` or `all`. Default `all`: an InfiniBand retry starts again from the
    /// oldest unacknowledged packet, as in Linux (`rvt_rc_timeout` in sw/rdmavt/qp.c, `req_retry` in sw/rxe/rxe_req.c)
    /// and AMD's ERNIC (PG332, "Response Handler"). We know of no measurement of a ConnectX or BlueField.
    pub resend: Resend,
}

/// 2^15 packets: 47 MB of 1438-byte payloads, the bandwidth-delay product of 400 Gb/s and 940 us.
const WINDOW: u32 = 1 << 15;

impl Default for Config {
    fn default() -> Self {
        Config { max_outstanding: WINDOW, reorder_window: WINDOW, resend: Resend::All }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "resend = \"all\"\nreorder-window = 8\n[nic]\ntimeout = { fixed = \"20us\" }",
        "resend = \"all\"\n[nic]\non-nack = \"none\"\ntimeout = { ib = 4 }",
    ];

    fn facts(&self) -> TransportFacts {
        // US patent 11,870,590, claims 1 to 4.
        TransportFacts { verbs: &[Verb::Write, Verb::Read], ..TransportFacts::KEEPING }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("max-outstanding", self.max_outstanding)?;
        outstanding("reorder-window", self.reorder_window)
    }

    fn sending(&self, timing: Timing) -> Sending {
        Sending::Counting(Arc::new(sender::Rules {
            timing,
            limit: self.max_outstanding,
            on_nack: Some(Resend::Oldest),
            on_timeout: self.resend,
        }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Keeping(Arc::new(receiver::Rules { answers, window: self.reorder_window, nack: true }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pair, ReceiverCalls as _, SenderCalls as _, nic};
    use crate::{NicConfig, TransportConfig};
    use model::transport::{Fate, Progress, Reply};
    use model::{Psn, Sender as _, Time};

    fn nic_sr(config: Config) -> NicConfig {
        nic(TransportConfig::NicSr(config))
    }

    #[test]
    fn one_lost_packet_costs_one_retransmission_ahead_of_new_data() {
        let mut pair = Pair::new(&nic_sr(Config::default()));
        pair.window = 8;
        pair.lose_data(2);
        pair.run(20);
        assert_eq!((pair.retransmitted, pair.nacks, pair.timeouts), (1, 1, 0));
        // Packets 8 and 9 are sent when the NACK arrives; 2 goes before 10, and then the sender continues.
        assert_eq!(pair.sent[8..13], [8, 9, 2, 10, 11]);
        assert_eq!((pair.duplicate, pair.discarded), (0, 0));
    }

    #[test]
    fn a_lost_retransmission_waits_for_the_timer() {
        // After the timeout the sender repeats packet 2, or packets 2 to 9.
        for (resend, retransmitted) in [(Resend::Oldest, 2), (Resend::All, 9)] {
            let mut pair = Pair::new(&nic_sr(Config { resend, ..Config::default() }));
            pair.lose_data(2);
            pair.lose_data(10); // transmission 10 is packet 2 again
            pair.run(10);
            assert_eq!((pair.nacks, pair.timeouts, pair.retransmitted), (1, 1, retransmitted), "{resend:?}");
            assert!(pair.finished > Time::from_ms(1));
        }
    }

    #[test]
    fn a_timeout_resends_the_oldest_packet_or_all() {
        for (resend, again) in [(Resend::Oldest, 1), (Resend::All, 4)] {
            let mut pair = Pair::new(&nic_sr(Config { resend, ..Config::default() }));
            pair.lose_data(0);
            pair.lose_reply(0); // the NACK for packet 0
            pair.run(4);
            assert_eq!((pair.timeouts, pair.retransmitted), (1, again), "{resend:?}");
        }
    }

    #[test]
    fn by_default_one_timeout_repairs_a_lost_tail() {
        let mut pair = Pair::new(&nic_sr(Config::default()));
        for lost in 4..10 {
            pair.lose_data(lost); // no later packet causes a NACK
        }
        pair.run(10);
        assert_eq!((pair.nacks, pair.timeouts, pair.retransmitted, pair.duplicate), (0, 1, 6, 0));
    }

    #[test]
    fn after_a_timeout_an_ack_moves_the_sender_past_packets_that_have_arrived() {
        let mut sender = nic_sr(Config::default()).build().sender();
        sender.post(10);
        for _ in 0..9 {
            sender.next(Time::ZERO, u64::MAX);
        }
        sender.on_timeout(sender.deadline());
        assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((0, true)));
        // The receiver held packets 1 to 4, and 5 is missing.
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(4))), Progress { acked: 5, nack: false });
        assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((5, true)));
        // It held 6 to 8, too: no retransmission is left.
        sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(8)));
        assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((9, false)));
    }

    #[test]
    fn a_repeated_packet_causes_no_second_nack() {
        let mut receiver = nic_sr(Config::default()).build().receiver();
        let mut reply = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false).reply;
        assert_eq!(reply(2), Some(Reply::Nack(Psn::new(0))));
        // The sender repeats 0 to 2 after a timeout, and 0 is lost again.
        assert_eq!(reply(1), Some(Reply::Ack(Psn::new(0xFF_FFFF))));
        assert_eq!(reply(2), Some(Reply::Ack(Psn::new(0xFF_FFFF))));
        assert_eq!(reply(0), Some(Reply::Ack(Psn::new(2))));
    }

    #[test]
    fn an_arrival_ahead_of_a_new_gap_is_nacked() {
        let mut receiver = nic_sr(Config::default()).build().receiver();
        let mut reply = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false).reply;
        assert_eq!(reply(1), Some(Reply::Nack(Psn::new(0))));
        assert_eq!(reply(3), Some(Reply::Ack(Psn::new(0xFF_FFFF)))); // ePSN 0 was NACKed already
        assert_eq!(reply(0), Some(Reply::Ack(Psn::new(1)))); // ePSN jumps to the gap at 2
        assert_eq!(reply(4), Some(Reply::Nack(Psn::new(2))));
        assert_eq!(reply(2), Some(Reply::Ack(Psn::new(4))));
    }

    #[test]
    fn a_duplicate_is_acknowledged_again() {
        let mut receiver = nic_sr(Config::default()).build().receiver();
        let mut on = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
        on(0);
        let again = on(0);
        assert_eq!((again.fate, again.reply), (Fate::Duplicate, Some(Reply::Ack(Psn::new(0)))));
        on(2);
        let ahead = on(2);
        assert_eq!((ahead.fate, ahead.out_of_order), (Fate::Duplicate, true));
        assert_eq!(ahead.reply, Some(Reply::Ack(Psn::new(0))));
    }

    #[test]
    fn packets_beyond_the_bitmap_are_discarded() {
        let mut receiver = nic_sr(Config { reorder_window: 4, ..Config::default() }).build().receiver();
        let mut fate = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false).fate;
        assert_eq!((fate(3), fate(4)), (Fate::Accepted, Fate::Discarded));
        assert_eq!((fate(0), fate(4)), (Fate::Accepted, Fate::Accepted));
    }

    #[test]
    fn a_stale_nack_is_ignored_and_a_fresh_one_acknowledges() {
        let mut sender = nic_sr(Config::default()).build().sender();
        sender.post(9);
        for _ in 0..9 {
            sender.next(Time::ZERO, u64::MAX);
        }
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(5))), Progress { acked: 5, nack: true });
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(4))), Progress::default());
        assert_eq!((sender.una(), sender.next(Time::ZERO, u64::MAX)), (5, Some((5, true))));
        assert_eq!(sender.next(Time::ZERO, u64::MAX), None);
    }

    #[test]
    fn an_ack_that_overtakes_its_retransmission_cancels_it() {
        let mut sender = nic_sr(Config::default()).build().sender();
        sender.post(9);
        for _ in 0..9 {
            sender.next(Time::ZERO, u64::MAX);
        }
        sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(5)));
        sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(6)));
        assert!(!sender.ready(u64::MAX));
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.nic-sr";
        check(table, "max-outstanding", PACKETS.0, PACKETS.1);
        check(table, "reorder-window", PACKETS.0, PACKETS.1);
    }
}
