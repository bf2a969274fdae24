//! An ideal NIC: reordering costs nothing. It is the upper bound for all other modes as long as losses are rare.
//!
//! The receiver keeps out-of-order packets and never NACKs; its ACKs are cumulative, so they stall at a gap. The sender also
//! ignores NACKs (a NACK from elsewhere only acknowledges the packets before it). The timer brings lost packets back: one
//! packet per timeout, or with `resend = "all"` all packets from the gap on. The windows are so large that the sender never
//! waits for them; for the smaller windows of real NICs see [`adaptive_routing`](super::adaptive_routing).

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Recovery, SilentLoss, TransportFacts};
use crate::limits::outstanding;
use crate::psn::receiver;
use crate::psn::sender::{self, Resend};
use crate::timeout::Timing;
use crate::verb::Verb;
use finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.ideal]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 1048576 (our choice: 1.5 GB of 1438-byte payloads, more than any
    /// fabric holds).
    pub max_outstanding: u32,
    /// Number of packets from ePSN on that the receiver can note; it discards packets beyond. Default 1048576 (our choice,
    /// as for `max-outstanding`).
    pub reorder_window: u32,
    /// Packets that a timeout retransmits: `oldest` or `all`. Default `oldest` (our choice: retransmit only lost
    /// packets). If a flow loses many packets at once, `all` is faster.
    pub resend: Resend,
}

const WINDOW: u32 = 1 << 20;

impl Default for Config {
    fn default() -> Self {
        Config { max_outstanding: WINDOW, reorder_window: WINDOW, resend: Resend::Oldest }
    }
}

impl Recovery for Config {
    fn facts(&self) -> TransportFacts {
        TransportFacts {
            // Senders ignore NACKs of any origin, so their default reaction is without effect.
            silent: SilentLoss::Unfound,
            verbs: &[Verb::Write, Verb::Send, Verb::Read],
            ..TransportFacts::KEEPING
        }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("max-outstanding", self.max_outstanding)?;
        outstanding("reorder-window", self.reorder_window)
    }

    fn sending(&self, timing: Timing) -> Sending {
        Sending::Counting(Arc::new(sender::Rules {
            timing,
            limit: self.max_outstanding,
            on_nack: None,
            on_timeout: self.resend,
        }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Keeping(Arc::new(receiver::Rules { answers, window: self.reorder_window, nack: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;
    use crate::tests::{Pair, SenderCalls as _, nic};
    use model::transport::{Progress, Reply};
    use model::{Psn, Sender as _, Time};

    #[test]
    fn reordering_costs_nothing() {
        let mut pair = Pair::new(&nic(TransportConfig::Ideal(Config::default())));
        for packet in [3, 9, 10, 40] {
            pair.delay_data(packet, Time::from_us(7));
        }
        pair.run(50);
        assert_eq!((pair.nacks, pair.retransmitted, pair.timeouts), (0, 0, 0));
        assert_eq!((pair.accepted, pair.duplicate, pair.discarded), (50, 0, 0));
        assert!(pair.out_of_order > 0);
    }

    #[test]
    fn each_loss_costs_one_timeout_and_one_packet() {
        let mut pair = Pair::new(&nic(TransportConfig::Ideal(Config::default())));
        pair.lose_data(3);
        pair.lose_data(7);
        pair.run(50);
        assert_eq!((pair.timeouts, pair.retransmitted, pair.duplicate), (2, 2, 0));
    }

    #[test]
    fn a_forged_nack_only_acknowledges() {
        let mut sender = nic(TransportConfig::Ideal(Config::default())).build().sender();
        sender.post(4);
        for _ in 0..4 {
            sender.next(Time::ZERO, u64::MAX);
        }
        let progress = sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(2)));
        assert_eq!(progress, Progress { acked: 2, nack: false });
        assert!(!sender.ready(u64::MAX));
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.ideal";
        check(table, "max-outstanding", PACKETS.0, PACKETS.1);
        check(table, "reorder-window", PACKETS.0, PACKETS.1);
    }
}
