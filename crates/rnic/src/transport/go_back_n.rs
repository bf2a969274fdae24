//! Go-back-N: the receiver drops packets that arrive out of order, and the sender restarts from the gap.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Golden, Recovery, TransportFacts};
use crate::limits::PSN_LIMIT;
use crate::limits::outstanding;
use crate::psn::in_order;
use crate::psn::sender::{self, Resend};
use crate::timeout::Timing;
use crate::verb::Verb;
use finding::{Finding, code};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.go-back-n]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 8388607: the most that 24-bit PSNs can tell apart (InfiniBand
    /// Architecture).
    pub max_outstanding: u32,
    /// Time after which the receiver NACKs a gap again that is still open. Default: never, one NACK per gap (InfiniBand
    /// Architecture); ConWeave's simulator has "4us".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renack_interval: Option<Time>,
    /// Whether the receiver NACKs a gap again when a packet arrives out of order whose PSN is not above that of the last such packet:
    /// the sender has gone back, so the retransmission is lost, too. It decides how long a lost retransmission takes, one round
    /// trip or the timeout. Reordered packets look alike. Default false, one NACK per gap (InfiniBand Architecture).
    pub renack_after_rewind: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { max_outstanding: PSN_LIMIT, renack_interval: None, renack_after_rewind: false }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "",
        "max-outstanding = 7\nrenack-interval = \"4us\"\n[nic.congestion.none]",
        "renack-after-rewind = true\n[nic.congestion.none]",
        "max-outstanding = 16\n[nic]\ncnp = \"flag\"\ntimeout = { ib = 3 }",
    ];
    const GOLDEN: Option<Golden> = Some(("go-back-N", &["nic.transport.go-back-n={}", "links.loss=0.001"]));

    fn facts(&self) -> TransportFacts {
        // The requester of a READ asks again from the gap on (InfiniBand Architecture), which takes as long as a NACK.
        let verbs = &[Verb::Write, Verb::Send, Verb::Read];
        TransportFacts { keeps_out_of_order: false, verbs, ..TransportFacts::KEEPING }
    }

    fn validate(&self) -> Result<(), Finding> {
        if self.renack_interval == Some(Time::ZERO) {
            return Err(code::RANGE.at("renack-interval", "must be longer than 0"));
        }
        outstanding("max-outstanding", self.max_outstanding)
    }

    /// A NACK and a timeout both bring back all packets from the oldest unacknowledged one on.
    fn sending(&self, timing: Timing) -> Sending {
        Sending::Counting(Arc::new(sender::Rules {
            timing,
            limit: self.max_outstanding,
            on_nack: Some(Resend::All),
            on_timeout: Resend::All,
        }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        let renack = self.renack_interval.unwrap_or(Time::NEVER);
        let renack_after_rewind = self.renack_after_rewind;
        Receiving::InOrder(Arc::new(in_order::Rules { answers, renack, renack_after_rewind }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NicConfig;
    use crate::tests::{Pair, ReceiverCalls as _, nic};
    use model::Psn;
    use model::transport::{Fate, Reply};

    fn go_back_n(config: Config) -> NicConfig {
        nic(crate::TransportConfig::GoBackN(config))
    }

    #[test]
    fn a_lost_packet_resends_the_whole_tail() {
        let mut pair = Pair::new(&go_back_n(Config::default()));
        pair.lose_data(2);
        pair.run(10);
        // Packets 3 to 9 were on the wire when the NACK arrived, so 2 to 9 go out again.
        assert_eq!(pair.sent, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((pair.retransmitted, pair.discarded, pair.duplicate), (8, 7, 0));
        assert_eq!((pair.nacks, pair.timeouts), (1, 0));
    }

    #[test]
    fn a_gap_is_nacked_once_so_its_second_loss_waits_for_the_timer() {
        let mut pair = Pair::new(&go_back_n(Config::default()));
        pair.lose_data(2);
        pair.lose_data(10); // transmission 10 is packet 2 again
        pair.run(10);
        assert_eq!((pair.nacks, pair.timeouts), (1, 1));
        assert!(pair.finished > Time::from_ms(1));
    }

    #[test]
    fn a_packet_sent_again_nacks_a_gap_that_its_sender_went_back_to() {
        let config = Config { renack_after_rewind: true, ..Config::default() };
        let mut pair = Pair::new(&go_back_n(config.clone()));
        pair.lose_data(2);
        pair.lose_data(10); // packet 2 again
        pair.lose_data(18); // and once more
        pair.run(10);
        assert_eq!((pair.nacks, pair.timeouts, pair.retransmitted), (3, 0, 24));
        let mut receiver = go_back_n(config).build().receiver();
        let mut nacked = |psn| {
            let answer = receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
            matches!(answer.reply, Some(Reply::Nack(_)))
        };
        assert_eq!(
            [2, 3, 7, 2, 3, 1, 0, 7, 8].map(&mut nacked),
            [true, false, false, true, false, true, false, true, false]
        );
    }

    #[test]
    fn an_interval_nacks_the_same_gap_again() {
        let config = Config { renack_interval: Some(Time::from_us(4)), ..Config::default() };
        let mut receiver = go_back_n(config).build().receiver();
        let mut nacked = |us, psn| {
            let answer = receiver.on_data(Time::from_us(us), Psn::new(psn), false, false);
            answer.reply == Some(Reply::Nack(Psn::new(0)))
        };
        assert!(nacked(1, 1));
        assert!(!nacked(2, 2) && !nacked(4, 3));
        assert!(nacked(5, 4));
    }

    #[test]
    fn one_nack_per_gap_without_an_interval() {
        let mut receiver = go_back_n(Config::default()).build().receiver();
        let mut on = |psn: u32| receiver.on_data(Time::from_ms(psn.into()), Psn::new(psn), false, false);
        assert_eq!(on(1).reply, Some(Reply::Nack(Psn::new(0))));
        assert_eq!((on(2).reply, on(2).fate), (None, Fate::Discarded));
        assert_eq!(on(0).reply, Some(Reply::Ack(Psn::new(0))));
        assert_eq!(on(2).reply, Some(Reply::Nack(Psn::new(1))));
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{PACKETS, check};
        let table = "transport.go-back-n";
        check(table, "max-outstanding", PACKETS.0, PACKETS.1);
        check(table, "renack-interval", &["\"1ps\""], &["\"0us\""]);
    }
}
