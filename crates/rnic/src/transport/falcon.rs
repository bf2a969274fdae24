//! Delivery of Falcon, Google's hardware transport (Singhvi et al., "Falcon: A Reliable, Low Latency Hardware Transport",
//! SIGCOMM'25), as Isekai has it, the simulator that Google published.
//!
//! The receiver keeps packets in any order. It acknowledges after some packets, after a time, and where the sender asks; an ACK
//! brings a map of arrived packets, and the time at which the packet was sent that it answers. From these times a sender finds
//! losses as RACK does (RFC 8985): a packet is lost if one that was sent no earlier has arrived, and a round trip and a part of
//! another have passed since. If replies fail to come, the first packet in flight is sent again (tail loss probe). Last comes the
//! timer.
//!
//! * Requests and data have one space of PSNs here; Falcon has two, with maps of 64 and 128 packets. Maps have 64 packets here, and
//!   end with the packet that the ACK answers.
//! * Isekai's senders ask for an ACK with one packet in ten at random, and with each while the window has at most two. Here they
//!   ask where those of `uec` do, as the receiver's count makes as many ACKs.
//! * Falcon's timer is twice the smoothed round trip, 1 ms at least; set `nic.timeout`.
//! * At most 16 early retransmissions of a packet ("virtually unlimited", says Isekai), NACKs for a lack of resources, and drops
//!   beyond the receiver's window are left out: senders stay within that window.
//! * A first packet without any reply waits for the timer, as no round trip is known (our choice; RFC 8985 waits 1 s).

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::facts::{Acks, Recovery, TransportFacts};
use crate::limits::outstanding;
use crate::sack::rack::Rule;
use crate::sack::reply_paths::ReplyPaths;
use crate::sack::{receiver, sender};
use crate::timeout::Timing;
use finding::{Finding, code};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.transport.falcon]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportFalcon")]
pub struct Config {
    /// Number of packets from ePSN on that the receiver can note, and the sender may have sent. Default 128 (Isekai, data of the
    /// first generation; the third has 512).
    pub reorder_window: u32,
    /// Packets after which the receiver sends an ACK. Default 10 (Isekai).
    pub ack_packets: u32,
    /// Time after which the receiver acknowledges a packet at the latest. Default 8 us (Isekai).
    pub ack_wait: Time,
    /// Time by which packets may overtake each other without being taken for lost, in quarters of the smoothed round trip. Default
    /// 1 (Isekai, after RFC 8985).
    pub reordering: u32,
    /// Silence after which the first packet in flight is sent again, in smoothed round trips; `ack-wait` is added. Default 2
    /// (Isekai, after RFC 8985).
    pub probe_after: u32,
    /// The least such silence. Default 50 us (Isekai: twice its target delay).
    pub probe_least: Time,
    /// Paths of ACKs. Default `"of-packet"` (Isekai: the flow label of the packet).
    pub reply_paths: ReplyPaths,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            reorder_window: 128,
            ack_packets: 10,
            ack_wait: Time::from_us(8),
            reordering: 1,
            probe_after: 2,
            probe_least: Time::from_us(50),
            reply_paths: ReplyPaths::OfPacket,
        }
    }
}

/// Bytes as which a packet counts towards the next ACK, more than any frame has: the receiver of this family counts bytes.
const PACKET: u32 = 1 << 16;
/// Largest value of settings in packets per ACK and in round trips: our choice.
const MOST: u32 = 1000;

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "",
        "reorder-window = 40\nack-packets = 3\nprobe-least = \"4us\"\n[nic]\ntimeout = { fixed = \"90us\" }",
    ];

    fn facts(&self) -> TransportFacts {
        TransportFacts {
            acks: Acks::Bytes { owed: u64::from(self.ack_packets * PACKET), least: PACKET.into() },
            ..TransportFacts::SACKING
        }
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("reorder-window", self.reorder_window)?;
        let counts = [("ack-packets", self.ack_packets, 1), ("reordering", self.reordering, 0)];
        for (key, value, least) in counts.into_iter().chain([("probe-after", self.probe_after, 1)]) {
            if !(least..=MOST).contains(&value) {
                return Err(code::RANGE.at(key, format!("must be between {least} and {MOST}")));
            }
        }
        if self.ack_wait == Time::ZERO {
            return Err(code::RANGE.at("ack-wait", "must be above 0; `ack-packets = 1` answers every packet"));
        }
        Ok(())
    }

    fn sending(&self, timing: Timing) -> Sending {
        let Config { reordering, probe_after, ack_wait, probe_least, .. } = *self;
        let rule = Rule { quarters: reordering, trips: probe_after, ack_wait, least: probe_least };
        let (reach, infer) = (self.reorder_window, Some(sender::Infer::Rack(rule)));
        Sending::Sack(Arc::new(sender::Rules { timing, reach, ask_below: 0, infer }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Sack(Arc::new(receiver::Rules {
            marks: answers.marks,
            window: self.reorder_window,
            ack_bytes: self.ack_packets * PACKET,
            least: PACKET,
            ack_wait: self.ack_wait,
            reply_paths: self.reply_paths,
            penalties: Vec::new(),
        }))
    }
}
