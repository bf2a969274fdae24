//! The NIC that reordering does not hurt: the upper bound for every other one.
//!
//! The receiver keeps what comes out of order and never NACKs; its ACKs are cumulative, so they stall at a gap.
//! The sender heeds no NACK either (one from elsewhere acknowledges what is before it). What is really lost
//! comes back by the timer, one packet per timeout, or with `resend = "all"` everything from the gap on. Its
//! windows are so large that it never waits for them; real NICs have smaller ones, see
//! [`adaptive_routing`](super::adaptive_routing).

use crate::ends::{Receiving, Sending};
use crate::facts::{OnNack, Recovery, TransportFacts};
use crate::limits::{Invalid, outstanding};
use crate::reaction::Reaction;
use crate::receiver::{self, Answers};
use crate::sender::{self, Resend};
use crate::timeout::Timing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.ideal]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 1048576 (our choice: 1.5 GB of 1438-byte payloads, so
    /// that no fabric fills it).
    pub max_outstanding: u32,
    /// Packets from ePSN on that the receiver can note; it discards those beyond. Default 1048576 (our
    /// choice, as above).
    pub reorder_window: u32,
    /// What a timeout sends again: `oldest` or `all`. Default `oldest` (our choice: retransmit what was lost
    /// and nothing else).
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
            keeps_out_of_order: true,
            // No reaction ever happens: senders heed no NACK, wherever it comes from.
            on_nack: OnNack::Default(Reaction::AsCnp),
            names_packets: false,
            heeds_notices: false,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
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
    use crate::tests::{Pair, nic};
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
    fn a_nack_from_elsewhere_only_acknowledges() {
        let mut sender = nic(TransportConfig::Ideal(Config::default())).build().sender();
        sender.post(4);
        for _ in 0..4 {
            sender.next(Time::ZERO, u64::MAX);
        }
        let progress = sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(2)));
        assert_eq!(progress, Progress { acked: 2, nack: false });
        assert!(!sender.ready(u64::MAX));
    }
}
