//! Selective repeat whose receiver names missing packets: the NIC that DLBF assumes.
//!
//! The receiver keeps out-of-order packets. When a packet arrives ahead of an unreported gap, the receiver NACKs with the
//! range that is missing, each gap once. So the sender retransmits just those packets, ahead of new data, and continues. A
//! packet that is lost again waits for the timer. The range travels in an extension of the NACK; its size is not published
//! and counts as 0 here.
//!
//! The receiver acts on notices ([`model::annex::Notice`]) if a scheme sends them.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Golden, Recovery, TransportFacts};
use crate::limits::outstanding;
use crate::psn::sender::Resend;
use crate::selective::receiver::{self, Report};
use crate::selective::sender;
use crate::timeout::Timing;
use finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.sr-sack]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportSrSack")]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 32768 (our choice, as for `nic-sr`).
    pub max_outstanding: u32,
    /// Number of packets from ePSN on that the receiver can note; it discards packets beyond. Default 32768 (our choice).
    pub reorder_window: u32,
    /// Packets that a timeout retransmits: `oldest` or `all`. Default `oldest` (our choice: NACKs name
    /// missing packets, so few packets wait for the timer).
    pub resend: Resend,
}

/// Size of both windows, as for `nic-sr`.
const WINDOW: u32 = 1 << 15;

impl Default for Config {
    fn default() -> Self {
        Config { max_outstanding: WINDOW, reorder_window: WINDOW, resend: Resend::Oldest }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] =
        &["", "reorder-window = 40\n[nic]\ntimeout = { fixed = \"100us\" }"];
    const GOLDEN: Option<Golden> = Some((
        "missing ranges",
        &["nic.transport.sr-sack={}", "links.loss=0.001", "switch.ecn={kmin='20kB',kmax='80kB'}"],
    ));

    fn facts(&self) -> TransportFacts {
        TransportFacts { names_packets: true, heeds_notices: true, ..TransportFacts::KEEPING }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("max-outstanding", self.max_outstanding)?;
        outstanding("reorder-window", self.reorder_window)
    }

    fn sending(&self, timing: Timing) -> Sending {
        let (limit, on_timeout, on_gap) = (self.max_outstanding, self.resend, Resend::Oldest);
        Sending::Scoreboard(Arc::new(sender::Rules { timing, few: None, limit, on_timeout, on_gap }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        let (window, report) = (self.reorder_window, Report::Missing);
        Receiving::Selective(Arc::new(receiver::Rules { answers, window, report, notices: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;
    use crate::tests::{Pair, ReceiverCalls as _, nic};
    use model::annex::{Notice, NoticeRules, Selective};
    use model::transport::{Fate, Reply};
    use model::{Psn, Time};

    fn missing(first: u32, count: u16) -> Selective {
        Selective::Missing { first: Psn::new(first), count }
    }

    #[test]
    fn a_burst_of_losses_costs_one_nack() {
        let mut pair = Pair::new(&nic(TransportConfig::SrSack(Config::default())));
        for packet in 5..12 {
            pair.lose_data(packet);
        }
        pair.run(50);
        assert_eq!((pair.nacks, pair.retransmitted, pair.timeouts), (1, 7, 0));
        assert_eq!((pair.duplicate, pair.discarded), (0, 0));
    }

    #[test]
    fn each_gap_is_reported_once() {
        let mut receiver = nic(TransportConfig::SrSack(Config::default())).build().receiver();
        let mut on = |psn| {
            let reply = receiver.on_data(Time::ZERO, Psn::new(psn), false, false).reply;
            (reply, receiver.selective())
        };
        let ack = Some(Reply::Ack(Psn::new(0)));
        let nack = Some(Reply::Nack(Psn::new(1)));
        assert_eq!(on(0), (ack, Selective::Nothing));
        assert_eq!(on(3), (nack, missing(1, 2)));
        assert_eq!(on(4), (ack, Selective::Nothing));
        assert_eq!(on(8), (nack, missing(5, 3)));
        assert_eq!(on(6), (ack, Selective::Nothing));
        assert_eq!(on(1), (Some(Reply::Ack(Psn::new(1))), Selective::Nothing));
        assert_eq!(on(2), (Some(Reply::Ack(Psn::new(4))), Selective::Nothing));
    }

    fn noticing() -> crate::AnyReceiver {
        let rules = NoticeRules { patience: Time::from_us(64), high: 3, low: 1 };
        nic(TransportConfig::SrSack(Config::default())).build().receiver_with(Some(rules))
    }

    #[test]
    fn a_marked_notice_delays_reports_of_gaps() {
        let mut receiver = noticing();
        let notice = Notice { first: Psn::new(0), count: 3 };
        let answer = receiver.on_notice(Time::ZERO, notice, true);
        assert_eq!(
            (answer.reply, receiver.selective()),
            (Some(Reply::Ack(Psn::new(0xFF_FFFF))), Selective::Nothing)
        );
        let mut said = |us, psn| {
            receiver.on_data(Time::from_us(us), Psn::new(psn), false, false);
            receiver.selective()
        };
        assert_eq!(said(1, 3), Selective::Nothing);
        assert_eq!(said(2, 5), Selective::Nothing); // the gap at 4 is behind the noticed packets
        assert_eq!(said(63, 1), Selective::Nothing);
        // The patience is over: each arrival reports one of the gaps.
        assert_eq!(said(64, 6), missing(0, 1));
        assert_eq!(said(65, 7), missing(2, 1));
        assert_eq!(said(66, 8), missing(4, 1));
    }

    #[test]
    fn a_gap_whose_patience_is_over_is_reported_by_the_next_packet_in_order() {
        let mut receiver = noticing();
        receiver.on_notice(Time::ZERO, Notice { first: Psn::new(0), count: 3 }, true);
        receiver.on_data(Time::from_us(1), Psn::new(3), false, false);
        let answer = receiver.on_data(Time::from_us(64), Psn::new(0), false, false);
        assert_eq!((answer.reply, receiver.selective()), (Some(Reply::Nack(Psn::new(1))), missing(1, 2)));
        let answer = receiver.on_data(Time::from_us(65), Psn::new(1), false, false);
        assert_eq!((answer.reply, receiver.selective()), (Some(Reply::Ack(Psn::new(1))), Selective::Nothing));
    }

    #[test]
    fn a_second_notice_joins_the_first_without_prolonging_it() {
        let mut receiver = noticing();
        let notice = |receiver: &mut crate::AnyReceiver, us, first| {
            receiver.on_notice(Time::from_us(us), Notice { first: Psn::new(first), count: 2 }, true);
        };
        notice(&mut receiver, 0, 2);
        notice(&mut receiver, 10, 0);
        let said = |receiver: &mut crate::AnyReceiver, us, psn| {
            receiver.on_data(Time::from_us(us), Psn::new(psn), false, false);
            receiver.selective()
        };
        assert_eq!(said(&mut receiver, 11, 4), Selective::Nothing);
        assert_eq!(said(&mut receiver, 63, 5), Selective::Nothing);
        assert_eq!(said(&mut receiver, 64, 6), missing(0, 4));
        // A notice after that begins a new patience.
        notice(&mut receiver, 70, 7);
        assert_eq!(said(&mut receiver, 133, 9), Selective::Nothing);
        assert_eq!(said(&mut receiver, 134, 10), missing(7, 2));
    }

    #[test]
    fn an_unmarked_notice_requests_missing_packets_in_an_ack() {
        let mut receiver = noticing();
        receiver.on_data(Time::ZERO, Psn::new(0), false, false);
        let answer = receiver.on_notice(Time::ZERO, Notice { first: Psn::new(0), count: 4 }, false);
        assert_eq!((answer.reply, receiver.selective()), (Some(Reply::Ack(Psn::new(0))), missing(1, 3)));
        // Packets on the new path are ahead of a gap that has been reported.
        let next = receiver.on_data(Time::ZERO, Psn::new(4), false, false);
        assert_eq!((next.reply, receiver.selective()), (Some(Reply::Ack(Psn::new(0))), Selective::Nothing));
        // A notice of packets that have arrived meanwhile requests nothing.
        for psn in 1..4 {
            receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
        }
        receiver.on_notice(Time::ZERO, Notice { first: Psn::new(0), count: 5 }, false);
        assert_eq!((receiver.expected(), receiver.selective()), (5, Selective::Nothing));
    }

    #[test]
    fn a_receiver_is_crowded_between_its_two_thresholds() {
        let mut receiver = noticing();
        let mut crowded = |psn| {
            receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
            (receiver.held(), receiver.crowded())
        };
        assert_eq!([1, 2, 3].map(&mut crowded), [(1, false), (2, false), (3, false)]);
        assert_eq!(crowded(5), (4, true));
        assert_eq!(crowded(6), (5, true));
        assert_eq!(crowded(0), (2, true)); // packets 1 to 3 leave the bitmap
        assert_eq!(crowded(4), (0, false));
    }

    #[test]
    fn packets_beyond_the_bitmap_are_discarded() {
        let config = Config { reorder_window: 4, ..Config::default() };
        let mut receiver = nic(TransportConfig::SrSack(config)).build().receiver();
        let mut fate = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false).fate;
        assert_eq!((fate(3), fate(4)), (Fate::Accepted, Fate::Discarded));
        assert_eq!((fate(0), fate(4)), (Fate::Accepted, Fate::Accepted));
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.sr-sack";
        check(table, "max-outstanding", PACKETS.0, PACKETS.1);
        check(table, "reorder-window", PACKETS.0, PACKETS.1);
    }
}
