//! IRN: selective repeat for RDMA without PFC (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM'18).
//!
//! The receiver answers every packet that arrives out of order with a NACK, which carries ePSN and the PSN of that packet
//! (section 3.1). The sender keeps a scoreboard: a packet counts as lost if a later one has arrived, and is retransmitted
//! once until a timeout. The bandwidth-delay product bounds the outstanding packets (BDP-FC, section 3.2). The timeout is
//! short while few packets are outstanding. NACKs do not change the rate unless `nic.on-nack` is set, since reordering
//! causes many of them.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Golden, OnNack, Recovery, TransportFacts};
use crate::limits::outstanding;
use crate::psn::sender::Resend;
use crate::reaction::Reaction;
use crate::selective::receiver::{self, Report};
use crate::selective::sender;
use crate::timeout::{Timeout, Timing};
use crate::verb::Verb;
use finding::{Finding, code};
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
    /// Packets that a gap brings back: `"oldest"`: those before the packet that has arrived, once each; `"all"`: every packet
    /// that has not been reported as arrived, those in flight among them, and the next ones only when all of these have
    /// arrived. Default "oldest" (the paper, section 3.1); ConWeave's simulator has "all".
    pub on_gap: Resend,
    /// Packets that a timeout brings back: `"oldest"`: the oldest one and the known gaps; `"all"`: every packet that has not been
    /// reported as arrived. Default "oldest" (our choice); ConWeave's simulator has "all".
    pub on_timeout: Resend,
}

/// Packets that the receiver can note, relative to `bdp-cap`: twice as many, so that it never discards any.
const ROOM: u32 = 2;

impl Default for Config {
    fn default() -> Self {
        Config {
            bdp_cap: 110,
            low_timeout: Time::from_us(100),
            few: 3,
            on_gap: Resend::Oldest,
            on_timeout: Resend::Oldest,
        }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "bdp-cap = 12\nlow-timeout = \"30us\"\n[nic]\non-nack = \"none\"",
        "bdp-cap = 9\nlow-timeout = \"15us\"\n[nic]\non-nack = \"none\"\ntimeout = { fixed = \"60us\" }",
        "bdp-cap = 9\nlow-timeout = \"15us\"\non-gap = \"all\"\non-timeout = \"all\"\n[nic]\ntimeout = { fixed = \"60us\" }",
    ];
    const GOLDEN: Option<Golden> =
        Some(("IRN", &["nic.transport.irn={}", "nic.on-nack=none", "switch.pfc=off", "switch.buffer=300kB"]));

    fn facts(&self) -> TransportFacts {
        TransportFacts {
            // Reordering causes many NACKs.
            on_nack: OnNack::Default(Reaction::None),
            names_packets: true,
            // IRN (SIGCOMM 2018), section 5: all operations, with NACKs for the responses of READs.
            verbs: &[Verb::Write, Verb::Send, Verb::Read],
            ..TransportFacts::KEEPING
        }
    }

    fn other_timeout(&self) -> Option<(&'static str, Time)> {
        (self.few > 0).then_some(("low-timeout", self.low_timeout))
    }

    fn validate(&self) -> Result<(), Finding> {
        if self.low_timeout == Time::ZERO {
            return Err(code::RANGE.at("low-timeout", "must be longer than 0"));
        }
        outstanding("bdp-cap", self.bdp_cap)
    }

    fn sending(&self, timing: Timing) -> Sending {
        let low = Timing::new(Timeout::Fixed(self.low_timeout), None);
        let (few, limit) = (Some((self.few, low)), self.bdp_cap);
        let (on_timeout, on_gap) = (self.on_timeout, self.on_gap);
        Sending::Scoreboard(Arc::new(sender::Rules { timing, few, limit, on_timeout, on_gap }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        let (window, report) = (self.bdp_cap.saturating_mul(ROOM), Report::Arrived);
        Receiving::Selective(Arc::new(receiver::Rules { answers, window, report, notices: None }))
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
    fn in_conweaves_variant_a_gap_repeats_packets_in_flight_once_and_a_timeout_all_that_are_missing() {
        let config = || Config { on_gap: Resend::All, on_timeout: Resend::All, ..Config::default() };
        let mut one = pair(config());
        one.lose_data(2);
        one.run(50);
        assert_eq!(one.timeouts, 0);
        // All packets behind the gap are in flight when the first NACK comes; those that arrive until their turn are skipped.
        assert!(one.retransmitted > 1 && one.retransmitted < 50, "{}", one.retransmitted);
        assert_eq!(one.duplicate, one.retransmitted - 1);

        let mut tail = pair(config());
        (5..10).for_each(|seq| tail.lose_data(seq));
        tail.run(10);
        assert_eq!((tail.timeouts, tail.retransmitted, tail.duplicate), (1, 5, 0));
        let mut oldest = pair(Config::default());
        (5..10).for_each(|seq| oldest.lose_data(seq));
        oldest.run(10);
        assert!(oldest.timeouts > 1, "a timeout brings one packet back");
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

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.irn";
        check(table, "bdp-cap", PACKETS.0, PACKETS.1);
        check(table, "low-timeout", &["\"1ps\""], &["\"0us\""]);
    }
}
