//! Leaf-spine fabrics: hosts on leaves, and links from every leaf to every spine.

use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::Chance;
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, Packet, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two tiers of switches: hosts on leaves, and links from every leaf to every spine.
///
/// Nodes are named `host0`, `host1`, ... (rack by rack), `leaf0`, ..., `spine0`, ...; the roles of switches are
/// `leaf` and `spine`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LeafSpine {
    /// Number of leaf switches. Default 16 (Themis paper, section 5).
    pub leaves: usize,
    /// Number of spine switches. Default 16 (Themis paper, section 5).
    pub spines: usize,
    /// Number of hosts on each leaf. Default 16 (Themis paper, section 5).
    pub hosts_per_leaf: usize,
    /// Rate of the links to hosts. Default 400 Gb/s (Themis paper, section 5).
    pub rate: Rate,
    /// Propagation delay of the links to hosts. Default 1 us (Themis paper, section 5).
    pub delay: Time,
    /// Rate of the links between leaves and spines. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
    /// Propagation delay of the links between leaves and spines. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_delay: Option<Time>,
    /// Number of parallel links between each leaf and each spine. Default 1 (our choice).
    pub uplinks_per_spine: usize,
    /// Probability that a link to a host loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Probability that a link between a leaf and a spine loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_loss: Option<Chance>,
}

impl Default for LeafSpine {
    fn default() -> Self {
        LeafSpine {
            leaves: 16,
            spines: 16,
            hosts_per_leaf: 16,
            rate: Rate::from_gbps(400),
            delay: Time::from_us(1),
            uplink_rate: None,
            uplink_delay: None,
            uplinks_per_spine: 1,
            loss: None,
            uplink_loss: None,
        }
    }
}

impl LeafSpine {
    fn possible(&self) -> Result<(), Finding> {
        let counts = [
            ("leaves", self.leaves, "leaf"),
            ("spines", self.spines, "spine"),
            ("hosts-per-leaf", self.hosts_per_leaf, "host on every leaf"),
            ("uplinks-per-spine", self.uplinks_per_spine, "link between a leaf and a spine"),
        ];
        for (key, count, what) in counts {
            if count == 0 {
                return Err(code::RANGE.at(key, format!("a leaf-spine fabric needs at least 1 {what}")));
            }
        }
        let most = Packet::MAX_PORTS;
        let up = self.spines.saturating_mul(self.uplinks_per_spine);
        let down = self.leaves.saturating_mul(self.uplinks_per_spine);
        for (key, ports, what) in [
            ("hosts-per-leaf", self.hosts_per_leaf, "leaf"),
            ("spines", up.saturating_add(self.hosts_per_leaf), "leaf"),
            ("leaves", down, "spine"),
        ] {
            if ports > most {
                return Err(
                    code::FIT.at(key, format!("a {what} needs {ports} ports; a switch has at most {most}"))
                );
            }
        }
        // A leaf and a spine have too few ports for more hosts than a packet can name.
        const { assert!(Packet::MAX_PORTS * Packet::MAX_PORTS <= HostId::MOST) };
        let (rate, delay) = (Some(self.rate), Some(self.delay));
        for (key, rate) in [("rate", rate), ("uplink-rate", self.uplink_rate)] {
            if let Some(rate) = rate {
                super::links::possible_rate(key, rate)?;
            }
        }
        for (key, delay) in [("delay", delay), ("uplink-delay", self.uplink_delay)] {
            if let Some(delay) = delay {
                super::links::possible_delay(key, delay)?;
            }
        }
        Ok(())
    }
}

impl Layout for LeafSpine {
    fn size(&self, _: &Ground<'_>) -> Result<Size, Finding> {
        self.possible()?;
        let counts =
            [("leaves", self.leaves), ("spines", self.spines), ("hosts-per-leaf", self.hosts_per_leaf)];
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        let hosts = self.leaves * self.hosts_per_leaf;
        Ok(Size {
            hosts,
            switches: self.leaves + self.spines,
            links: hosts + self.leaves * self.spines * self.uplinks_per_spine,
            racks: self.leaves,
            key: largest.map_or("leaves", |(key, _)| key),
        })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        let mut builder = ground.builder();
        let hosts: Vec<NodeId> =
            (0..self.leaves * self.hosts_per_leaf).map(|h| builder.host(format!("host{h}"))).collect();
        let leaves: Vec<NodeId> =
            (0..self.leaves).map(|l| builder.switch(format!("leaf{l}"), "leaf")).collect();
        let spines: Vec<NodeId> =
            (0..self.spines).map(|s| builder.switch(format!("spine{s}"), "spine")).collect();
        let chance = |own: Option<Chance>| own.map_or(ground.loss, Chance::probability);
        for (h, &host) in hosts.iter().enumerate() {
            let leaf = leaves[h / self.hosts_per_leaf];
            builder.connect(host, leaf, self.rate, self.delay, chance(self.loss));
        }
        let rate = self.uplink_rate.unwrap_or(self.rate);
        let delay = self.uplink_delay.unwrap_or(self.delay);
        for &leaf in &leaves {
            for &spine in &spines {
                for _ in 0..self.uplinks_per_spine {
                    builder.connect(leaf, spine, rate, delay, chance(self.uplink_loss));
                }
            }
        }
        builder.build().map_err(|e| code::RANGE.at("", e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::HostId;

    #[test]
    fn parallel_uplinks_are_equal_cost_paths() {
        let (leaves, spines, hosts_per_leaf, uplinks_per_spine) = (2, 3, 4, 2);
        let t = LeafSpine { leaves, spines, hosts_per_leaf, uplinks_per_spine, ..LeafSpine::default() };
        let fabric = t.lay(&Ground::plain()).unwrap();
        let leaf0 = fabric.find("leaf0").unwrap();
        assert_eq!(fabric.route(leaf0, HostId(7)).len(), 6);
        assert_eq!(fabric.name(NodeId(4)), "host4");
        assert!(fabric.same_rack(HostId(4), HostId(7)) && !fabric.same_rack(HostId(3), HostId(4)));
        assert_eq!(fabric.role(fabric.find("spine2").unwrap()), "spine");
    }
}
