//! Loss recovery of Multipath Reliable Connection (MRC; OCP specification 1.0 and the authors' reports of 2026): RoCEv2 Writes that
//! arrive in any order.
//!
//! The two ends are those of `uec`: ACKs with a map of 64 packets and the bytes that have arrived, and a NACK for every packet
//! that a switch has cut. In addition, a sender takes a packet for lost if a packet that was sent later has been acknowledged
//! and the packet itself is old. MRC gives no time for that; here it is a multiple of the least round trip that the queue pair
//! has seen, because the base round trip plus twice the target delay of the window control is three of them.
//!
//! * Lost packets are sent again before new ones, oldest first, in the class of data (our choice: the specification has a code
//!   point for it; the authors' NIC has a class of its own).
//! * MRC's timer grows linearly first and exponentially later, with unpublished numbers; set `nic.timeout` and `nic.backoff`.
//! * A NIC whose port goes down or comes back tells its peers, over its other ports (*port status*). MRC has one report per peer;
//!   here it is one per queue pair, repeated until the peer confirms it (our choices).
//! * NACKs for other reasons than a cut (no bitmap, no buffer, out of window) do not occur: the receiver's bitmap has the
//!   size of the sender's reach.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Acks, Recovery, SilentLoss, TransportFacts};
use crate::limits::outstanding;
use crate::sack::penalty::{self, Penalty};
use crate::sack::reply_paths::ReplyPaths;
use crate::sack::{receiver, sender};
use crate::timeout::Timing;
use finding::{Finding, code};
use model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.mrc]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportMrc")]
pub struct Config {
    /// Number of packets from ePSN on that the receiver can note, and the sender may have sent: a multiple of 128. Default 4096
    /// (the largest MPR).
    pub reorder_window: u32,
    /// Bytes after which the receiver sends an ACK. Default 16 KiB (our choice, as in `uec`).
    pub ack_bytes: Bytes,
    /// Paths of ACKs and NACKs. Default `"probed"` (a reverse entropy per plane that is known to work, and a probe in every
    /// round trip).
    pub reply_paths: ReplyPaths,
    /// Age from which a packet is taken for lost if a later one has been acknowledged, in least round trips of the queue pair; 0
    /// turns this off. Default 3 (our choice).
    pub lost_after: u32,
    /// Whether NICs with planes tell their peers which of their ports are down. Both ends then leave these planes. Default
    /// true (MRC: NICs report their ports to their peers).
    pub port_status: bool,
    /// Time from a change of a port to the report; a change that is over by then is not reported. Default 10 us (our choice; MRC
    /// gives no time).
    pub port_notice: Time,
    /// Times in which receivers make their senders shrink their windows, for congestion controls that heed it: `nscc`, alone or
    /// in `rccc`, and `smartt`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<Penalty>,
}

/// Least number of bytes that a packet counts towards the next ACK: our choice, as in `uec`.
const ACK_LEAST: u64 = 1 << 10;

impl Default for Config {
    fn default() -> Self {
        Config {
            reorder_window: 4096,
            ack_bytes: Bytes(16 << 10),
            reply_paths: ReplyPaths::Probed,
            lost_after: 3,
            port_status: true,
            port_notice: Time::from_us(10),
            penalties: Vec::new(),
        }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &["[nic]\ntimeout = { fixed = \"80us\" }"];

    fn facts(&self) -> TransportFacts {
        TransportFacts {
            silent: match self.lost_after {
                0 => SilentLoss::FoundWith("lost-after = 3"),
                _ => SilentLoss::Found,
            },
            acks: Acks::Bytes { owed: self.ack_bytes.get(), least: ACK_LEAST },
            ..TransportFacts::SACKING
        }
    }

    fn port_notice(&self) -> Option<Time> {
        self.port_status.then_some(self.port_notice)
    }

    fn penalises(&self) -> bool {
        !self.penalties.is_empty()
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("reorder-window", self.reorder_window)?;
        if !self.reorder_window.is_multiple_of(128) {
            return Err(code::RANGE.at("reorder-window", "must be a multiple of 128"));
        }
        if self.ack_bytes.get() > u64::from(u32::MAX / 2) {
            return Err(code::RANGE.at("ack-bytes", "must be at most 2 GiB"));
        }
        if self.lost_after > 1000 {
            return Err(code::RANGE.at("lost-after", "must be at most 1000"));
        }
        penalty::validate(&self.penalties)
    }

    fn sending(&self, timing: Timing) -> Sending {
        let infer = (self.lost_after > 0).then_some(sender::Infer::Age(self.lost_after));
        // As in `uec`, the last packet that the window allows asks for an ACK.
        let ask_below = self.ack_bytes.get();
        Sending::Sack(Arc::new(sender::Rules { timing, reach: self.reorder_window, ask_below, infer }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Sack(Arc::new(receiver::Rules {
            marks: answers.marks,
            window: self.reorder_window,
            ack_bytes: self.ack_bytes.get() as u32,
            least: ACK_LEAST as u32,
            ack_wait: Time::NEVER,
            reply_paths: self.reply_paths,
            penalties: self.penalties.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl Fn(&mut Config)) -> Option<String> {
        let mut config = Config::default();
        change(&mut config);
        config.validate().err().map(|wrong| wrong.to_string())
    }

    #[test]
    fn settings_have_bounds() {
        assert_eq!(wrong(|_| ()), None);
        assert_eq!(wrong(|config| config.lost_after = 1000), None);
        assert!(wrong(|config| config.lost_after = 1001).is_some());
        assert_eq!(wrong(|config| config.ack_bytes = Bytes(u64::from(u32::MAX / 2))), None);
        assert!(wrong(|config| config.ack_bytes = Bytes(u64::from(u32::MAX / 2) + 1)).is_some());
        for (window, fits) in [(0, false), (128, true), (129, false), (1 << 24, false)] {
            assert_eq!(wrong(|config| config.reorder_window = window).is_none(), fits, "{window}");
        }
    }

    #[test]
    fn a_sender_that_infers_no_loss_says_which_setting_finds_silent_ones() {
        let of = |lost_after| {
            let timing = Timing::new(crate::timeout::Timeout::Fixed(Time::from_us(50)), None);
            let config = Config { lost_after, ..Config::default() };
            let Sending::Sack(rules) = config.sending(timing) else { panic!("MRC has SACKs") };
            (rules.infer.is_some(), config.facts().silent)
        };
        assert_eq!(of(0), (false, SilentLoss::FoundWith("lost-after = 3")));
        assert_eq!(of(1), (true, SilentLoss::Found));
    }

    #[test]
    fn a_port_tells_its_state_and_a_receiver_has_no_penalties_unless_they_are_set() {
        let config = Config::default();
        assert_eq!((config.port_notice(), config.penalises()), (Some(Time::from_us(10)), false));
        let penalty = Penalty { share: 1, at: Time::ZERO, until: None };
        let silent = Config { port_status: false, penalties: vec![penalty], ..config };
        assert_eq!((silent.port_notice(), silent.penalises()), (None, true));
    }
}
