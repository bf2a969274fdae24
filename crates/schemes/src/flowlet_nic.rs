//! Flowlet switching in the sending NIC: a flow draws a new UDP source port after every pause longer than the gap.
//!
//! This is the scheme that Flowcut's paper compares with under the name Flowlet. The sender measures the pause since the
//! last packet of the flow. Switches need nothing new, since their ECMP hash turns the source port into a path. The draw
//! covers all ports, so the new port may lead over the same path. [`crate::flowlet`] is the scheme in switches.
//!
//! If the sender's link is never idle, a flow pauses only where its congestion control makes it pause.

use crate::entropies::{Entropies, Mapping};
use crate::flowlet::check_gap;
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::draw::{Key, below};
use model::steering::Sent;
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.flowlet-nic]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeFlowletNic")]
pub struct Config {
    /// Pause after which a flow draws a new source port. Default "4080ns" (the artefact of Flowcut's paper: the gap of its
    /// permutations that reorders least; 990 ns gives the best completion time, and 1580 ns lies between the two).
    pub gap: Time,
    /// Source ports to draw from, 1 to 65535. Default 16384 (as `rps-nic`).
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config { gap: Time::from_ns(4080), entropies: 16384 }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct FlowletNic {
    key: Key,
    gap: Time,
    entropies: u16,
    /// Start of the last packet.
    last: Time,
    entropy: u16,
    flowlets: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(7, 3));
    const TRIALS: &'static [&'static str] = &["gap = \"300ns\"\nentropies = 5"];

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        check_gap(self.gap, "rps-nic")?;
        match self.entropies {
            0 => Err(code::RANGE.at("entropies", "at least one source port is needed")),
            _ => Ok(Vec::new()),
        }
    }
}

impl Steers for Config {
    type Steering = FlowletNic;

    fn steer(&self, site: QpSite<'_>) -> FlowletNic {
        let entropies = self.entropies.max(1);
        FlowletNic { key: site.key(), gap: self.gap, entropies, last: Time::ZERO, entropy: 0, flowlets: 0 }
    }
}

impl model::Steering for FlowletNic {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        if self.flowlets == 0 || now.ps().saturating_sub(self.last.ps()) > self.gap.ps() {
            self.flowlets += 1;
            self.entropy = below(self.key.draw(self.flowlets), self.entropies.into()) as u16;
        }
        self.last = now;
        Stamp::new(self.entropy, now)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("flowlets", self.flowlets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::{QpId, Steering as _};

    #[test]
    fn only_a_pause_longer_than_the_gap_draws_a_port() {
        let config = Config { gap: Time::from_us(2), ..Config::default() };
        let mut nic = config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) });
        let mut send = |ns: u64| {
            nic.on_send(Time::from_ns(5_000_000 + ns), Sent { seq: 0, again: false, left: 0, frame: 1500 })
                .entropy()
        };
        let first = send(0);
        assert_eq!([send(120), send(1_000), send(3_000)], [first; 3]);
        let second = send(5_001);
        assert_ne!(second, first);
        assert_eq!(send(7_001), second);
        assert_eq!(nic.flowlets, 2);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let field = |config: Config| config.validate(&leaf_spine(2, 2, 1)).unwrap_err().path();
        assert_eq!(field(Config { gap: Time::ZERO, ..Config::default() }), "gap");
        assert_eq!(field(Config { entropies: 0, ..Config::default() }), "entropies");
    }
}
