//! NICs in adaptive-routing mode: packets may arrive in any order, and only the timer finds lost packets.
//!
//! The receiver places all data on arrival and never NACKs; its cumulative ACK stalls at a gap. The sender ignores NACKs.
//! Its timer alone brings a lost packet back: the sender restarts from the gap, the receiver drops the packets that it has,
//! and the ACK jumps to the next gap or past all packets. The extent of reordering is bounded: the sender stays within a
//! window from its oldest unacknowledged packet, so it soon stands still after a loss. So every loss costs about one
//! timeout (the slides to IEEE 802.1 on loss recovery under per-packet load balancing; `adaptive_routing_forced_en` in
//! NVIDIA's register ROCE_ACCL).
//!
//! [`ideal`](super::ideal) has no such bound, and retransmits one packet per timeout.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Golden, OnNack, Recovery, SilentLoss, TransportFacts};
use crate::limits::outstanding;
use crate::psn::receiver;
use crate::psn::sender::{self, Resend};
use crate::timeout::Timing;
use finding::{Finding, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.adaptive-routing]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Number W of packets from ePSN on that the receiver can place; it discards packets beyond. Default 64 (our
    /// choice: with a timeout of 230 us it gives the cost of a loss in the 802.1 slides at 4096 B of payload,
    /// docs/loss-recovery.md; no NIC's figure is public).
    pub reorder_window: u32,
    /// Most packets outstanding, up to `reorder-window`. Default: `reorder-window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_outstanding: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Config { reorder_window: 64, max_outstanding: None }
    }
}

impl Config {
    fn limit(&self) -> u32 {
        self.max_outstanding.unwrap_or(self.reorder_window)
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "reorder-window = 24\n[nic]\ntimeout = { fixed = \"60us\" }",
        "reorder-window = 12\nmax-outstanding = 8\n[nic]\ntimeout = { fixed = \"40us\" }",
    ];
    const GOLDEN: Option<Golden> =
        Some(("adaptive-routing mode", &["nic.transport.adaptive-routing={}", "links.loss=0.001"]));

    fn facts(&self) -> TransportFacts {
        TransportFacts { on_nack: OnNack::Unused, silent: SilentLoss::Unfound, ..TransportFacts::KEEPING }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("reorder-window", self.reorder_window)?;
        outstanding("max-outstanding", self.limit())?;
        if self.limit() > self.reorder_window {
            let reason =
                "must not exceed `reorder-window`: packets that the receiver discards wait for the timer";
            return Err(code::FIT.at("max-outstanding", reason));
        }
        Ok(())
    }

    /// A NACK brings nothing back; a timeout brings back all packets from the gap on.
    fn sending(&self, timing: Timing) -> Sending {
        let (limit, on_timeout) = (self.limit(), Resend::All);
        Sending::Counting(Arc::new(sender::Rules { timing, limit, on_nack: None, on_timeout }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Keeping(Arc::new(receiver::Rules { answers, window: self.reorder_window, nack: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pair, nic};
    use crate::{NicConfig, TransportConfig};
    use model::Time;

    fn adaptive(config: Config) -> NicConfig {
        nic(TransportConfig::AdaptiveRouting(config))
    }

    #[test]
    fn any_order_within_the_window_is_accepted() {
        let mut pair = Pair::new(&adaptive(Config::default()));
        for packet in [3, 9, 10, 40] {
            pair.delay_data(packet, Time::from_us(3));
        }
        pair.run(100);
        assert_eq!((pair.nacks, pair.retransmitted, pair.timeouts), (0, 0, 0));
        assert_eq!((pair.accepted, pair.duplicate, pair.discarded), (100, 0, 0));
        assert!(pair.out_of_order > 0);
    }

    #[test]
    fn a_loss_stops_the_sender_until_its_timer_restarts_from_the_gap() {
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 8, ..Config::default() }));
        pair.lose_data(2);
        pair.run(40);
        // Packet 2 is lost; packets 3 to 9 fill the window, and nothing is sent until the timeout.
        assert_eq!(pair.sent[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((pair.nacks, pair.timeouts), (0, 1));
        assert!(pair.finished > Time::from_ms(1));
        // The sender restarts at 2. The round trip is ten packets long, so all eight packets go out before the ACK jumps
        // to 10, seven of them in vain.
        assert_eq!(pair.sent[10..20], [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!((pair.retransmitted, pair.duplicate, pair.discarded), (8, 7, 0));
    }

    #[test]
    fn the_ack_jumps_from_gap_to_gap_and_each_costs_a_timeout() {
        // Both losses are within one window, and the first packet is back before the rewind reaches the second.
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 40, ..Config::default() }));
        pair.lose_data(2);
        pair.lose_data(30);
        pair.run(80);
        // The ACK for 2 jumps to 30 while the sender is at 12: the sender continues with 30, which is the second gap.
        assert_eq!(pair.timeouts, 1);
        let again = &pair.sent[42..];
        assert_eq!(again[..3], [2, 3, 4]);
        assert!(again.contains(&30) && !again.contains(&29), "{again:?}");
        // Losses two windows apart cost two timeouts.
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 8, ..Config::default() }));
        pair.lose_data(2);
        pair.lose_data(30);
        pair.run(80);
        assert_eq!(pair.timeouts, 2);
    }

    #[test]
    fn a_window_beyond_the_receivers_is_refused() {
        let config = Config { reorder_window: 64, max_outstanding: Some(65) };
        assert_eq!(config.validate().unwrap_err().path(), "max-outstanding");
        assert_eq!(Config { max_outstanding: Some(64), ..config }.validate(), Ok(()));
        assert_eq!(
            Config { reorder_window: 0, max_outstanding: None }.validate().unwrap_err().path(),
            "reorder-window"
        );
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check, refused};
        let table = "transport.adaptive-routing";
        check(table, "reorder-window", PACKETS.0, PACKETS.1);
        // The sender's limit follows the receiver's window unless it is set.
        assert_eq!(refused("[transport.adaptive-routing]\nreorder-window = 64\nmax-outstanding = 64"), None);
        let over = refused("[transport.adaptive-routing]\nreorder-window = 64\nmax-outstanding = 65");
        assert_eq!(over.as_deref(), Some("transport.adaptive-routing.max-outstanding"));
    }
}
