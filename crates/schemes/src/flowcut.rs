//! Flowcut switching: adaptive routing that never reorders.
//!
//! Bonato et al., "Flowcut Switching: High-Performance Adaptive Routing with In-Order Delivery Guarantees"
//! (arXiv 2506.21406). A flow keeps its path while anything of it is under way, and takes the best one when nothing is:
//! no packet can then overtake another. A *flowcut* is what travels between two such moments. Where a flow never
//! pauses by itself and its path is slow, it is *drained*: its source is told to stop until nothing is under way.
//!
//! * *In flight.* The switch of the receiver answers every data packet that leaves towards its host with an ACK of its
//!   own, 20 bytes, which brings back the packet's size, its timestamp and its number of hops. Data adds to the bytes
//!   in flight, ACKs take away; at 0 the entry is deleted.
//! * *Slow.* A round-trip time less the time for serialisation, divided by the least one seen over as many hops, is 1 on
//!   an idle path. Its moving average above `ratio`, or its slope above `gradient`, drains the flow.
//!
//! | deployment | who keeps entries | who chooses | the ACK |
//! |---|---|---|---|
//! | `full` | every switch on the way | each: the shortest queue, on a Dragonfly UGAL | goes back by the ports at which the data came in |
//! | `ingress` | the switch of the sender | it, likewise; others hash | takes any path |
//! | `nic` | the sending NIC | it: a UDP source port, drawn when the flow has drained | the transport's own |
//!
//! Our choices, where the paper leaves it open: control packets take the base path; a packet in an `ingress` deployment
//! is hashed by switches further up; a timestamp is the time of arrival at the sender's switch; hops are the links
//! between that and the receiver's; the state of a flow's average begins anew with every flowcut.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `flowcuts` | paths chosen; in `full`, by the sender's switch |
//! | `drains` | flows told to stop because their path was slow |
//! | `drains_ended_by_timer` | drained flows that went on, on their old path, when a timer fired |
//! | `drained_us` | time for which sources were held back, summed over queue pairs, microseconds |
//! | `entries_peak` | most entries at one time, summed over switches (not for `nic`, likewise the next) |
//! | `entries_left` | entries at the end: 0 unless something was lost |
//! | `in_flight_limit` | flows told to stop because three bytes could not count any more |

mod idle;
mod nic;
mod rtt;
mod signal;
mod switch;
#[cfg(test)]
mod tests;

pub use nic::Gate;
pub use switch::Flowcut;

use crate::{ConfigError, Facts, Feedback, Recipe, Steers};
use model::plan::Flow;
use model::{Bytes, Plan, QpSite, Site, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where Flowcut is deployed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deployment {
    /// In every switch.
    Full,
    /// In the switches of hosts.
    Ingress,
    /// In sending NICs.
    #[default]
    Nic,
}

/// How a switch stops a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backpressure {
    /// Flow by flow (XOFF, XON).
    #[default]
    Flow,
    /// All data of the host, by a PFC pause: the fallback for NICs that know nothing else.
    Class,
}

/// `[scheme.flowcut]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeFlowcut")]
pub struct Config {
    /// `full`, `ingress` or `nic`. Default `nic`: the paper evaluates it unless it says otherwise.
    pub deployment: Deployment,
    /// Weight of a new sample in the average, above 0 and up to 1. Default 0.12 (the authors' artefact).
    pub alpha: f64,
    /// Average of normalised round-trip times above which a flow is drained, at least 1. Default 4 (the paper's
    /// fat-tree results).
    pub ratio: f64,
    /// Slope of normalised round-trip times above which a flow is drained. Default: never (no value is published, and
    /// the artefact has no such test).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Weight of a new difference in the slope, above 0 and up to 1. Default 0.12 (our choice: as `alpha`).
    pub gradient_weight: f64,
    /// Packets of a flow that may still be under way when it takes a new path. So many at most are late at a time, that is
    /// missing at the receiver while one sent after them is there; how many others overtake one of them is not bounded.
    /// Default 0: never out of order (the paper; more is its section IV-C). `ingress` and `nic` only.
    pub overlap: u16,
    /// A flow is not drained if less than this is left of its message. Default 0 (the paper; more is its section
    /// IV-C). `nic` only: a switch does not know.
    pub drain_if_left: Bytes,
    /// How a switch stops a source: `flow` or `class`. Default `flow` (the paper).
    pub backpressure: Backpressure,
    /// What a source may still send when it has been told to stop (XOFF with credit). Default 0 (plain XOFF).
    pub credit: Bytes,
    /// Time after which a drained flow goes on, on its old path, whatever is still missing: it may be lost. Its source
    /// keeps the time (the paper), with `backpressure = "class"` its switch. Default 1 ms (our choice: as the
    /// retransmission timer's default; the paper gives none).
    pub drain_timeout: Time,
    /// Bits of timestamps in nanoseconds, 8 to 16; they wrap, at 16 bits every 65.5 us. Default 16 (the paper's two
    /// bytes). A NIC reads its own clock and does not wrap.
    pub timestamp_bits: u8,
    /// Data packets that one ACK of a switch answers, 1 to 16. Default 1 (the paper).
    pub ack_every: u8,
    /// Longest time for which such an ACK is put off. Default 1 us (our choice).
    pub ack_delay: Time,
    /// Size of an ACK of a switch on the wire, without preamble and gap. Default 20 B (the paper, Table III; Ethernet's
    /// smallest frame has 64).
    pub ack_size: Bytes,
    /// Source ports to draw from, 1 to 65535. Default 16384 (as `rps-nic`). `nic` only.
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            deployment: Deployment::Nic,
            alpha: 0.12,
            ratio: 4.0,
            gradient: None,
            gradient_weight: 0.12,
            overlap: 0,
            drain_if_left: Bytes(0),
            backpressure: Backpressure::Flow,
            credit: Bytes(0),
            drain_timeout: Time::from_ms(1),
            timestamp_bits: 16,
            ack_every: 1,
            ack_delay: Time::from_us(1),
            ack_size: Bytes(20),
            entropies: 16384,
        }
    }
}

impl Config {
    fn rules(&self) -> rtt::Rules {
        rtt::Rules {
            alpha: self.alpha,
            ratio: self.ratio,
            gradient: self.gradient.unwrap_or(f64::INFINITY),
            gradient_weight: self.gradient_weight,
        }
    }
}

impl Recipe for Config {
    type Scheme = Flowcut;

    fn facts(&self) -> Facts {
        let tags = self.deployment != Deployment::Nic;
        let signal = if tags { self.ack_size.get() as u32 } else { 0 };
        Facts { sprays: false, feedback: Feedback::Passed, tags, signal, view: None, nic: None }
    }

    fn build(&self, site: Site<'_>) -> Flowcut {
        Flowcut::new(self, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<String>, ConfigError> {
        let fail = |field, text: String| Err(ConfigError::new(field, text));
        for (field, weight) in [("alpha", self.alpha), ("gradient-weight", self.gradient_weight)] {
            if !(weight > 0.0 && weight <= 1.0) {
                return fail(field, format!("a weight of {weight}; it must be above 0 and at most 1"));
            }
        }
        if self.ratio.is_nan() || self.ratio < 1.0 {
            let text = format!("a ratio of {}; an idle path has 1, so it must be at least that", self.ratio);
            return fail("ratio", text);
        }
        if self.gradient.is_some_and(|slope| slope.is_nan() || slope <= 0.0) {
            return fail("gradient", "it must be above 0".to_owned());
        }
        if !(8..=16).contains(&self.timestamp_bits) {
            return fail("timestamp-bits", format!("{} bits; 8 to 16 are possible", self.timestamp_bits));
        }
        if !(1..=16).contains(&self.ack_every) {
            return fail("ack-every", format!("{} packets; 1 to 16 are possible", self.ack_every));
        }
        for (field, time) in [("ack-delay", self.ack_delay), ("drain-timeout", self.drain_timeout)] {
            if time == Time::ZERO {
                return fail(field, "it must be longer than 0".to_owned());
            }
        }
        if self.ack_size == Bytes(0) || self.ack_size.get() > u64::from(plan.wire.max_frame()) {
            let text = format!("{}; it must be above 0 and no larger than a frame of data", self.ack_size);
            return fail("ack-size", text);
        }
        if self.entropies == 0 {
            return fail("entropies", "at least one source port is needed".to_owned());
        }
        let most = Bytes(switch::MOST_CREDIT.into());
        if self.credit > most {
            let text = format!(
                "{}; with more than {most} three bytes could not count what is under way",
                self.credit
            );
            return fail("credit", text);
        }
        let nic = self.deployment == Deployment::Nic;
        let lossless = plan.switches.iter().all(|switch| matches!(switch.flow, Flow::Lossless(_)));
        if self.backpressure == Backpressure::Class && !lossless {
            return fail(
                "backpressure",
                "a switch that drops (`flow = \"lossy\"`) sends no pauses".to_owned(),
            );
        }
        if self.deployment == Deployment::Full && self.overlap > 0 {
            let text = "with `deployment = \"full\"` an ACK goes back the way of the newest packet, so flows whose \
                        packets are under way on two ways would never be accounted for";
            return fail("overlap", text.to_owned());
        }
        if !nic && self.drain_if_left > Bytes(0) {
            return fail("drain-if-left", "a switch does not know what is left; only a NIC does".to_owned());
        }
        let mut warnings = Vec::new();
        if let (false, Some(&node)) = (nic, plan.fabric.racks().iter().find(|n| !plan.fabric.is_host(**n))) {
            let site = Site { plan, node };
            let idle = idle::least_round_trips(site, self.deployment, self.ack_size.get() as u32);
            let (least, wraps) =
                (idle.into_iter().filter(|ns| *ns > 0).min().unwrap_or(0), 1u64 << self.timestamp_bits);
            if self.gradient.is_none() && least as f64 * self.ratio >= wraps as f64 {
                warnings.push(format!(
                    "timestamps of {} bits wrap every {wraps} ns, and a round trip takes {least} ns at the least: none ever looks \
                     {} times as long, so no flow is drained",
                    self.timestamp_bits, self.ratio
                ));
            }
        }
        let defaults = Config::default();
        for (field, set) in [
            ("backpressure", self.backpressure != defaults.backpressure),
            ("credit", self.credit != defaults.credit),
            ("timestamp-bits", self.timestamp_bits != defaults.timestamp_bits),
            ("ack-every", self.ack_every != defaults.ack_every),
            ("ack-delay", self.ack_delay != defaults.ack_delay),
            ("ack-size", self.ack_size != defaults.ack_size),
        ] {
            if nic && set {
                warnings.push(format!(
                    "`{field}` is about switches: with `deployment = \"nic\"` nobody reads it"
                ));
            }
        }
        Ok(warnings)
    }
}

impl Steers for Config {
    type Steering = Gate;

    fn steer(&self, site: QpSite<'_>) -> Gate {
        Gate::new(self, site)
    }
}
