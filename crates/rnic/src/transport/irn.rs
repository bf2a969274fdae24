//! IRN: selective repeat for RDMA without PFC (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM'18).
//!
//! The receiver answers every packet that arrives out of order with a NACK, which carries ePSN and the PSN of that packet
//! (section 3.1). The sender keeps a scoreboard: a packet counts as lost if a later one has arrived, and is retransmitted
//! once until a timeout. The bandwidth-delay product bounds the outstanding packets (BDP-FC, section 3.2). The timeout is
//! short while few packets are outstanding. NACKs do not change the rate unless `nic.on-nack` is set, since reordering
//! causes many of them.

use crate::ends::{Receiving, Sending};
use crate::facts::{OnNack, Recovery, TransportFacts};
use crate::limits::{Invalid, outstanding};
use crate::reaction::Reaction;
use crate::receiver::Answers;
use crate::scoreboard;
use crate::selective::{self, Report};
use crate::sender::Resend;
use crate::timeout::{Timeout, Timing};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.irn]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportIrn")]
pub struct Config {
    /// Most packets outstanding (BDP-FC). Set it to the bandwidth-delay product of your fabric. Default 110 (the paper,
    /// section 4.1: 120 kB at 40 Gb/s and 24 us, in packets of 1 kB).
    pub bdp_cap: u32,
    /// Timeout while at most `few` packets are outstanding; otherwise `nic.timeout` holds, for which the paper has "320us"
    /// (RTO high). Default "100us" (the paper, section 4.1, RTO low).
    pub low_timeout: Time,
    /// Number of outstanding packets up to which `low-timeout` holds. Default 3 (the paper, section 4.1).
    pub few: u32,
}

/// Packets that the receiver can note, relative to `bdp-cap`: twice as many, so that it never discards any.
const ROOM: u32 = 2;

impl Default for Config {
    fn default() -> Self {
        Config { bdp_cap: 110, low_timeout: Time::from_us(100), few: 3 }
    }
}

impl Recovery for Config {
    fn facts(&self) -> TransportFacts {
        TransportFacts {
            keeps_out_of_order: true,
            // Reordering causes many NACKs.
            on_nack: OnNack::Default(Reaction::None),
            names_packets: true,
            heeds_notices: false,
            sacks: false,
            acks_messages: None,
        }
    }

    fn other_timeout(&self) -> Option<(&'static str, Time)> {
        (self.few > 0).then_some(("low-timeout", self.low_timeout))
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.low_timeout == Time::ZERO {
            return Err(Invalid::new("low-timeout", "must be longer than 0"));
        }
        outstanding("bdp-cap", self.bdp_cap)
    }

    fn sending(&self, timing: Timing) -> Sending {
        let low = Timing::new(Timeout::Fixed(self.low_timeout), None);
        let (few, limit, on_timeout) = (Some((self.few, low)), self.bdp_cap, Resend::Oldest);
        Sending::Scoreboard(Arc::new(scoreboard::Rules { timing, few, limit, on_timeout }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        let (window, report) = (self.bdp_cap.saturating_mul(ROOM), Report::Arrived);
        Receiving::Selective(Arc::new(selective::Rules { answers, window, report, notices: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;
    use crate::tests::{Pair, nic};

    fn pair(config: Config) -> Pair {
        Pair::new(&nic(TransportConfig::Irn(config)))
    }

    #[test]
    fn a_loss_is_repaired_after_the_next_arrival() {
        let mut pair = pair(Config::default());
        pair.lose_data(2);
        pair.lose_data(5);
        pair.run(50);
        assert_eq!((pair.retransmitted, pair.timeouts, pair.duplicate), (2, 0, 0));
        // Every arrival ahead of a gap is NACKed, for a round trip, until the retransmission arrives.
        assert!(pair.nacks > 10, "{}", pair.nacks);
    }

    #[test]
    fn no_more_than_the_bandwidth_delay_product_is_outstanding() {
        let mut pair = pair(Config { bdp_cap: 4, ..Config::default() });
        pair.run(40);
        // Every four packets take a round trip of 1 us.
        assert!(pair.finished >= Time::from_us(10), "{}", pair.finished);
    }

    #[test]
    fn a_lost_tail_waits_for_the_short_timer() {
        let mut pair = pair(Config::default());
        pair.lose_data(9);
        pair.run(10);
        assert_eq!((pair.timeouts, pair.retransmitted), (1, 1));
        assert!(pair.finished < Time::from_us(110), "{}", pair.finished);
    }
}
