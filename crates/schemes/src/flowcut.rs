//! Flowcut switching: adaptive routing that never reorders.
//!
//! Bonato et al., "Flowcut Switching: High-Performance Adaptive Routing with In-Order Delivery Guarantees"
//! (arXiv 2506.21406). A flow keeps its path while any of its packets is in flight, and takes the best path when none is.
//! So no packet can overtake another. A *flowcut* is what the flow sends between two such moments. If a flow does not pause
//! by itself and its path is slow, it is *drained*: its source must stop until nothing is in flight.
//!
//! * *In flight.* The receiver's switch answers every data packet that leaves for its host with an ACK of its own, 20 bytes.
//!   That ACK returns the packet's size, timestamp and number of hops. Data adds to the bytes in flight and ACKs subtract
//!   from them; at 0 the entry is deleted.
//! * *Slow.* The normalised round-trip time is the round-trip time less the serialisation time, divided by the least
//!   one seen over as many hops. It is 1 on an idle path. A flow is drained when the moving average exceeds `ratio` or
//!   the slope exceeds `gradient`.
//!
//! | deployment | who keeps entries | who chooses the path | the ACK |
//! |---|---|---|---|
//! | `full` | every switch on the path | every switch: the shortest queue, on a Dragonfly UGAL | returns by the ports at which the data came in |
//! | `ingress` | the sender's switch | the sender's switch, in the same way; the others hash | takes any path |
//! | `nic` | the sending NIC | the sending NIC: a UDP source port, drawn when the flow has drained | the transport's own |
//!
//! Our choices, where the paper leaves it open: control packets take the base path. In an `ingress` deployment, switches
//! further up hash the packet. A timestamp is the time of arrival at the sender's switch. Hops are the links between that
//! switch and the receiver's. The moving average of a flow starts afresh with every flowcut, unless `keep-average` is set.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `flowcuts` | paths chosen; in `full`, by the sender's switch |
//! | `drains` | flows that had to stop because their path was slow |
//! | `drains_ended_by_timer` | drained flows that resumed on their old path when a timer fired |
//! | `drained_us` | time for which sources were held back, summed over queue pairs, microseconds |
//! | `entries_peak` | most entries at one time, summed over switches (not for `nic`) |
//! | `entries_left` | entries at the end of the run; 0 unless packets were lost (not for `nic`) |
//! | `in_flight_limit` | flows that had to stop because three bytes could not count any more bytes in flight |

mod idle;
mod nic;
mod rtt;
mod signal;
mod switch;
#[cfg(test)]
mod tests;

use finding::{Finding, code};
pub use nic::Gate;
pub use switch::Flowcut;

use crate::{Facts, Golden, Recipe, Steers, palette::Look};
use model::{Bytes, Plan, QpSite, Site, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Place where Flowcut is deployed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deployment {
    /// Every switch.
    Full,
    /// Switches to which hosts are attached.
    Ingress,
    /// Sending NICs.
    #[default]
    Nic,
}

/// Signal by which a switch stops a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backpressure {
    /// XOFF and XON for the flow.
    #[default]
    Flow,
    /// A PFC pause for all data of the host: the fallback for NICs without XOFF.
    Class,
}

/// `[scheme.flowcut]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeFlowcut")]
pub struct Config {
    /// Place of deployment: `full`, `ingress` or `nic`. Default `nic` (the paper evaluates it unless it says otherwise).
    pub deployment: Deployment,
    /// Weight of a new sample in the moving average, above 0 and up to 1. Default 0.12 (the authors' artefact).
    pub alpha: f64,
    /// Moving average of normalised round-trip times above which a flow is drained, at least 1. Default 4 (the paper's
    /// fat-tree results).
    pub ratio: f64,
    /// Slope of normalised round-trip times above which a flow is drained. Default: never (no value is published, and the
    /// artefact has no such test).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Weight of a new difference in the slope, above 0 and up to 1. Default 0.12 (our choice: the same as `alpha`).
    pub gradient_weight: f64,
    /// Whether a flow keeps its moving average when it takes a new path, as in the authors' artefact. The next samples
    /// then drain the flow again until the average has fallen. For `nic` only: a switch deletes the average with the
    /// entry. Default false (our choice: the average of the old path tells nothing about the new one; the paper does not
    /// say).
    pub keep_average: bool,
    /// Packets of a flow that may still be in flight when it takes a new path. It also bounds the packets that
    /// are late at any time; a packet is late while a packet sent after it has arrived. The setting does not bound the number of packets that
    /// overtake a late packet. For `ingress` and `nic` only. Default 0: never out of order (the paper; its section IV-C
    /// describes more).
    pub overlap: u16,
    /// Bytes of its message that a flow must still have to send to be drained. For `nic` only: a switch does not know the
    /// rest of a message. Default 0 (the paper; its section IV-C describes more).
    pub drain_if_left: Bytes,
    /// Signal by which a switch stops a source: `flow` or `class`. Default `flow` (the paper).
    pub backpressure: Backpressure,
    /// Bytes that a source may still send after XOFF (XOFF with credit). Default 0 (plain XOFF).
    pub credit: Bytes,
    /// Time after which a drained flow resumes on its old path even if packets are unanswered, since those may be lost. The
    /// source keeps the time (the paper); with `backpressure = "class"` its switch does. Default 1 ms (our choice: the
    /// retransmission timer's default, since the paper gives none).
    pub drain_timeout: Time,
    /// Bits of timestamps in nanoseconds, 8 to 16. They wrap; with 16 bits every 65.5 us. A NIC reads its own clock, which
    /// does not wrap. Default 16 (the paper's two bytes).
    pub timestamp_bits: u8,
    /// Data packets that one ACK of a switch answers, 1 to 16. Default 1 (the paper).
    pub ack_every: u8,
    /// Longest delay of such an ACK. Default 1 us (our choice).
    pub ack_delay: Time,
    /// Size of a switch's ACK on the wire, without preamble and gap. Default 20 B (the paper, Table III; Ethernet's smallest
    /// frame has 64 B).
    pub ack_size: Bytes,
    /// Source ports to draw from, 1 to 65535. For `nic` only. Default 16384 (as `rps-nic`).
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
            keep_average: false,
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
    const LOOK: Option<Look> = Some(Look::new(3, 4));
    const TRIALS: &'static [&'static str] = &[
        "ratio = 1.2\nalpha = 0.5\noverlap = 1\ndrain-timeout = \"90us\"",
        "deployment = \"full\"\nratio = 1.1\ngradient = 0.5\ndrain-timeout = \"50us\"",
        "deployment = \"ingress\"\nratio = 1.2\noverlap = 3\nack-every = 4\ncredit = \"3000B\"\ntimestamp-bits = 9",
        "deployment = \"full\"\nbackpressure = \"class\"\nratio = 1.1\ndrain-timeout = \"20us\"",
    ];
    const GOLDEN: Golden = Golden::LeafSpine(&[("", ""), ("flowcut full", "deployment = \"full\"")]);

    fn facts(&self) -> Facts {
        let tags = self.deployment != Deployment::Nic;
        let signal = if tags { self.ack_size.get() as u32 } else { 0 };
        Facts { tags, signal, ..Facts::plain(false) }
    }

    fn build(&self, site: Site<'_>) -> Flowcut {
        Flowcut::new(self, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let fail = |field, text: String| Err(code::RANGE.at(field, text));
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
            let text =
                format!("{}; above {most}, three bytes could not count the bytes in flight", self.credit);
            return fail("credit", text);
        }
        let nic = self.deployment == Deployment::Nic;
        let lossless = plan.switches.iter().all(|switch| switch.flow_control.is_lossless());
        if self.backpressure == Backpressure::Class && !lossless {
            return fail(
                "backpressure",
                "a switch that drops (`flow = \"lossy\"`) sends no pauses".to_owned(),
            );
        }
        if self.deployment == Deployment::Full && self.overlap > 0 {
            let text = "with `deployment = \"full\"` an ACK retraces the path of the newest packet, so packets in flight on \
                        two paths could not be counted";
            return fail("overlap", text.to_owned());
        }
        if !nic && self.drain_if_left > Bytes(0) {
            return fail(
                "drain-if-left",
                "a switch does not know the rest of a message; only a NIC does".to_owned(),
            );
        }
        if !nic && self.keep_average {
            let text = "a switch deletes the moving average together with the entry; only a NIC can keep it";
            return fail("keep-average", text.to_owned());
        }
        let mut warnings = Vec::new();
        if let (false, Some(&node)) = (nic, plan.fabric.racks().iter().find(|n| !plan.fabric.is_host(**n))) {
            let site = Site { plan, node };
            let idle = idle::least_round_trips(site, self.deployment, self.ack_size.get() as u32);
            let (least, wraps) =
                (idle.into_iter().filter(|ns| *ns > 0).min().unwrap_or(0), 1u64 << self.timestamp_bits);
            if self.gradient.is_none() && least as f64 * self.ratio >= wraps as f64 {
                let text = format!(
                    "timestamps of {} bits wrap every {wraps} ns, and a round trip takes at least {least} ns: no measured \
                     round trip is {} times as long, so no flow is drained",
                    self.timestamp_bits, self.ratio
                );
                warnings.push(code::TOO_SHORT.at("timestamp-bits", text));
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
                let text =
                    format!("`{field}` concerns switches: it has no effect with `deployment = \"nic\"`");
                warnings.push(code::NO_EFFECT.at(field, text));
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
