//! NICs in their adaptive-routing mode: packets may come in any order, and only the timer finds what is lost.
//!
//! The receiver places data wherever it belongs and never NACKs; its cumulative ACK stalls at a gap. The sender
//! heeds no NACK. Its timer alone brings a lost packet back: it starts again from the gap, the receiver drops what
//! it has, and the ACK jumps to the next gap, or past everything. How much may be out of order is bounded: the
//! sender keeps within a window from its oldest unacknowledged packet, so that at a loss it soon stands still.
//! Then every loss costs about one timeout (the slides to IEEE 802.1 on loss recovery under per-packet load
//! balancing; `adaptive_routing_forced_en` in NVIDIA's register ROCE_ACCL).
//!
//! [`ideal`](super::ideal) is the same without that bound, and sends one packet per timeout.

use crate::ends::{Receiving, Sending};
use crate::facts::{OnNack, Recovery, TransportFacts};
use crate::limits::{Invalid, outstanding};
use crate::receiver::{self, Answers};
use crate::sender::{self, Resend};
use crate::timeout::Timing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.adaptive-routing]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Packets from ePSN on that the receiver can place, W; it discards those beyond. Default 64 (our fit to
    /// the 802.1 slides at 4096 B of payload, docs/loss-recovery.md; no NIC's figure is public).
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
    fn facts(&self) -> TransportFacts {
        TransportFacts {
            keeps_out_of_order: true,
            on_nack: OnNack::Unused,
            names_packets: false,
            heeds_notices: false,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        outstanding("reorder-window", self.reorder_window)?;
        outstanding("max-outstanding", self.limit())?;
        if self.limit() > self.reorder_window {
            let reason =
                "must not exceed `reorder-window`: what the receiver then discards waits for the timer";
            return Err(Invalid::new("max-outstanding", reason));
        }
        Ok(())
    }

    /// No NACK brings anything back; a timeout everything from the gap on.
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
    fn any_order_within_the_window_is_welcome() {
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
    fn at_a_loss_the_sender_stands_still_until_its_timer_takes_it_back_to_the_gap() {
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 8, ..Config::default() }));
        pair.lose_data(2);
        pair.run(40);
        // 2 is lost; 3 to 9 fill the window, and nothing moves for a timeout.
        assert_eq!(pair.sent[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((pair.nacks, pair.timeouts), (0, 1));
        assert!(pair.finished > Time::from_ms(1));
        // It begins again at 2. The round trip is ten packets long, so all eight go out before the ACK jumps to 10:
        // seven of them in vain.
        assert_eq!(pair.sent[10..20], [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!((pair.retransmitted, pair.duplicate, pair.discarded), (8, 7, 0));
    }

    #[test]
    fn the_ack_jumps_from_gap_to_gap_and_each_costs_a_timeout() {
        // Long enough apart that both are in the window at once, and the first is back before the rewind
        // reaches the second.
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 40, ..Config::default() }));
        pair.lose_data(2);
        pair.lose_data(30);
        pair.run(80);
        // The ACK for 2 jumps to 30 while the sender is at 12: it goes on from there, which is the second gap.
        assert_eq!(pair.timeouts, 1);
        let again = &pair.sent[42..];
        assert_eq!(again[..3], [2, 3, 4]);
        assert!(again.contains(&30) && !again.contains(&29), "{again:?}");
        // Two windows apart they cost two.
        let mut pair = Pair::new(&adaptive(Config { reorder_window: 8, ..Config::default() }));
        pair.lose_data(2);
        pair.lose_data(30);
        pair.run(80);
        assert_eq!(pair.timeouts, 2);
    }

    #[test]
    fn a_window_that_the_receiver_cannot_hold_is_refused() {
        let config = Config { reorder_window: 64, max_outstanding: Some(65) };
        assert_eq!(config.validate().unwrap_err().field, "max-outstanding");
        assert_eq!(Config { max_outstanding: Some(64), ..config }.validate(), Ok(()));
        assert_eq!(
            Config { reorder_window: 0, max_outstanding: None }.validate().unwrap_err().field,
            "reorder-window"
        );
    }
}
