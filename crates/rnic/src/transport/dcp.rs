//! DCP (SIGCOMM 2025): switches trim packets instead of dropping them, the receiver sends the headers back, and a message is
//! complete when all its packets have been counted.
//!
//! The receiver has no bitmap. Every packet names its message, and the receiver counts the packets of each message in any
//! order. It acknowledges a message once the count has reached the message's length. The headers of a trimmed packet go back to
//! their sender in the class of control messages, and leave no state at the receiver. The sender puts the packet into its
//! resend queue, from which it leaves before new packets, as the congestion control allows. No other evidence makes a sender
//! repeat a single packet. A coarse timer covers lost packets and lost headers: it sends the whole of the oldest
//! unacknowledged message anew, with the next attempt number, and the receiver counts from 0.
//!
//! * Messages complete in the order in which they were posted, and an ACK covers all messages up to its own, as verbs
//!   require.
//! * `nic.timeout` is the timer. It runs from the last transmission of a packet of the oldest unacknowledged message.
//! * A window needs ACKs before the end of a message. A sender with a window asks for them with every packet (our choice).
//! * The resend queue is in host memory, from which real NICs fetch it in batches. This takes no time here.
//! * A message's end is found by counting alone. The model also notes which packets have ever arrived, for statistics.

use crate::ack::Answers;
use crate::counted::{receiver, sender};
use crate::ends::{Receiving, Sending};
use crate::facts::{Acks, CutReport, Golden, Recovery, SilentLoss, TransportFacts};
use crate::timeout::Timing;
use finding::{Finding, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most packets of a message that 24-bit PSNs allow: half of the packets that may be outstanding, so that a message can begin
/// while another one is under way.
const MOST_PACKETS: u32 = 1 << 22;

/// `[nic.transport.dcp]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportDcp")]
pub struct Config {
    /// Most packets that are counted, acknowledged and sent anew together; longer messages are counted in parts. Default
    /// 524288 (2 GiB in packets of 4 KiB, the longest message of InfiniBand; our choice, as we know no figure of DCP's).
    pub message_packets: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { message_packets: 1 << 19 }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "message-packets = 9\n[nic]\ntimeout = { fixed = \"60us\" }",
        "message-packets = 7\n[nic]\ntimeout = { fixed = \"60us\" }\n[nic.congestion.none]",
        "[nic]\ntimeout = { fixed = \"50us\" }\non-nack = \"as-cnp\"\nwindow = { bytes = \"9kB\" }",
        "message-packets = 20\n[nic]\ntimeout = { fixed = \"40us\" }\n[nic.congestion.nscc]",
    ];
    const GOLDEN: Option<Golden> = Some((
        "DCP",
        &[
            "nic.transport.dcp={}",
            "switch.pfc=off",
            "switch.queue-cap=60kB",
            "switch.cut={frame='57B'}",
            "switch.ecn={kmin='20kB',kmax='50kB'}",
        ],
    ));

    fn facts(&self) -> TransportFacts {
        TransportFacts {
            cuts: CutReport::Headers,
            silent: SilentLoss::Unfound,
            acks: Acks::Messages(self.message_packets),
            ..TransportFacts::SACKING
        }
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(1..=MOST_PACKETS).contains(&self.message_packets) {
            return Err(code::RANGE.at("message-packets", "must be between 1 and 4194304 (24-bit PSNs)"));
        }
        Ok(())
    }

    fn sending(&self, timing: Timing) -> Sending {
        Sending::Counted(Arc::new(sender::Rules { timing, most: self.message_packets }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Counted(Arc::new(receiver::Rules { answers }))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::check;
        let table = "transport.dcp";
        check(table, "message-packets", &["1", "4194304"], &["0", "4194305"]);
    }
}
