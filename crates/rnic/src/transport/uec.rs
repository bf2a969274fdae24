//! Ultra Ethernet's reliable unordered delivery (RUD; Ultra Ethernet Specification 1.0.3, section 3.5), as far as loss recovery
//! goes.
//!
//! The receiver keeps packets in any order. Its ACKs carry ePSN, a map of 64 packets, and the bytes that have arrived. An
//! ACK goes out after some bytes, for a marked packet, for a duplicate, and where the sender asks for one. The headers of a
//! packet that a switch has cut are answered by a NACK at once, so the sender repeats just this packet. Packets that are
//! lost without headers wait for the timer, which runs for each packet by itself.
//!
//! * A sender asks for an ACK with the last packet that it has, with every repeated packet, and when its window is nearly
//!   full (NSCC.AckRequest) or the receiver can note no packet beyond it (our choice).
//! * Windows count bytes of frames in flight. A control with a window in packets has it multiplied by a full frame.
//! * With `infer-loss`, a recovery lasts until all packets sent before it have arrived. Each of them is sent again once the window
//!   reaches it; then it passes the window's limit, and has a timer of its own. Without a recovery, timers are as above.
//! * Probes wait with data, so an answer without delay tells that no data is left on its way.
//! * Messages complete in order of their PSNs, as everywhere in ropewalk; Ultra Ethernet delivers them in any order.
//! * Frames have the sizes of `[wire]`; set those of Ultra Ethernet there. Acknowledgements of acknowledgements, PDC set-up and
//!   the ordered mode are left out.
//! * ropewalk's NACK names ePSN, and its annex the cut packet.

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

/// `[nic.transport.uec]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "TransportUec")]
pub struct Config {
    /// Number of packets from ePSN on that the receiver can note, and the sender may have sent. Default 4096 (our choice; the
    /// field MPR has no default for open connections, and the consortium's simulator has 16384).
    pub reorder_window: u32,
    /// Bytes after which the receiver sends an ACK. Default 16 KiB (ACK_Gen_Trigger, and the consortium's simulator).
    pub ack_bytes: Bytes,
    /// Least number of bytes that a packet counts towards the next ACK. Default 1 KiB (ACK_Gen_Min_Pkt_Add).
    pub ack_least: Bytes,
    /// A packet asks for an ACK if the window is smaller than this. Default 16 KiB (the consortium's simulator).
    pub ask_below: Bytes,
    /// Paths of ACKs and NACKs. Default `"of-packet"` (the consortium's simulator).
    pub reply_paths: ReplyPaths,
    /// Whether a sender infers losses, for switches that drop instead of cutting: when 1.5 windows of later packets have
    /// arrived (at most the largest window so far, and at least five packets), or when a probe comes back without delay. A
    /// sender that has got no ACK for three round trips probes. Default false (the consortium's simulator, `-sleek`; the
    /// specification leaves it to the maker).
    pub infer_loss: bool,
    /// Times in which receivers make their senders shrink their windows, for congestion controls that heed it: `nscc`, alone or
    /// in `rccc`, and `smartt`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<Penalty>,
}

impl Default for Config {
    fn default() -> Self {
        let kib = |n: u64| Bytes(n << 10);
        Config {
            reorder_window: 4096,
            ack_bytes: kib(16),
            ack_least: kib(1),
            ask_below: kib(16),
            reply_paths: ReplyPaths::OfPacket,
            infer_loss: false,
            penalties: Vec::new(),
        }
    }
}

impl Recovery for Config {
    const TRIALS: &'static [&'static str] = &[
        "reorder-window = 90\ninfer-loss = true\n[nic]\ntimeout = { fixed = \"60us\" }\n[nic.congestion.nscc]",
        "ack-bytes = \"4kB\"\n[nic]\ntimeout = { fixed = \"90us\" }",
        "ack-bytes = \"2kB\"\nack-least = \"700B\"\n[nic]\ntimeout = { fixed = \"70us\" }\non-nack = \"as-cnp\"",
    ];

    fn facts(&self) -> TransportFacts {
        TransportFacts {
            silent: match self.infer_loss {
                true => SilentLoss::FoundBy("infer-loss"),
                false => SilentLoss::FoundWith("infer-loss = true"),
            },
            acks: Acks::Bytes { owed: self.ack_bytes.get(), least: self.ack_least.get() },
            ..TransportFacts::SACKING
        }
    }

    fn penalises(&self) -> bool {
        !self.penalties.is_empty()
    }

    fn probes(&self) -> bool {
        self.infer_loss
    }

    fn validate(&self) -> Result<(), Finding> {
        outstanding("reorder-window", self.reorder_window)?;
        for (key, bytes) in [("ack-bytes", self.ack_bytes), ("ack-least", self.ack_least)] {
            if bytes.get() > u64::from(u32::MAX / 2) {
                return Err(code::RANGE.at(key, "must be at most 2 GiB"));
            }
        }
        penalty::validate(&self.penalties)
    }

    fn sending(&self, timing: Timing) -> Sending {
        let (reach, ask_below) = (self.reorder_window, self.ask_below.get());
        let infer =
            self.infer_loss.then_some(sender::Infer::Beyond(sender::Beyond { windows: 1.5, least: 5 }));
        Sending::Sack(Arc::new(sender::Rules { timing, reach, ask_below, infer }))
    }

    fn receiving(&self, answers: Answers) -> Receiving {
        Receiving::Sack(Arc::new(receiver::Rules {
            marks: answers.marks,
            window: self.reorder_window,
            ack_bytes: self.ack_bytes.get() as u32,
            least: self.ack_least.get() as u32,
            ack_wait: Time::NEVER,
            reply_paths: self.reply_paths,
            penalties: self.penalties.clone(),
        }))
    }
}
