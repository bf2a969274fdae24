//! The scheme: every data packet joins the shortest of a few queues that are drawn at random.
//!
//! Two choices in place of one shorten the longest queue exponentially (Mitzenmacher, "The power of two choices in randomized load balancing",
//! IEEE TPDS 12(10), 2001). Replace this file by your own idea; docs/own-scheme.md of ropewalk explains each part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strand::{
    Cx, Detours, Facts, Finding, Interest, Packet, Plan, PortIndex, Recipe, Scheme, Site, Verdict, code,
};

/// Settings: a field for each key of the scheme's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Queues drawn for a packet, at least 1. Default 2 (Mitzenmacher 2001).
    pub choices: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { choices: 2 }
    }
}

/// State of one switch.
#[derive(Clone, Debug)]
pub struct State {
    choices: usize,
}

impl Recipe for Config {
    type Scheme = State;
    /// The tests run each of these settings.
    const TRIALS: &'static [&'static str] = &["", "choices = 1", "choices = 9"];

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, _: Site<'_>) -> State {
        State { choices: self.choices }
    }

    fn validate(&self, _: &Plan) -> Result<Vec<Finding>, Finding> {
        match self.choices {
            0 => Err(code::RANGE.at("choices", "a packet needs at least one queue")),
            _ => Ok(Vec::new()),
        }
    }
}

impl Scheme for State {
    /// What the switch must show: the lengths of its queues.
    fn interest(&self) -> Interest {
        Interest { queues: true, plain_replies: true, ..Interest::default() }
    }

    /// Whether this packet's choice depends on queues.
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], _: &Detours<'_>) -> bool {
        pkt.is_data() && ports.len() > 1
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        // Control packets are few, and their order carries meaning.
        if !pkt.is_data() || ports.len() == 1 {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let mut best = ports[cx.pick(ports.len())];
        for _ in 1..self.choices {
            let other = ports[cx.pick(ports.len())];
            if cx.queued[other.index()] < cx.queued[best.index()] {
                best = other;
            }
        }
        Verdict::Forward(best)
    }
}
