//! Two datacentres joined by long links.

use super::links::{possible_delay, possible_rate};
use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::Chance;
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, Packet, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two equal datacentres of three tiers: hosts on ToR switches, a link from every ToR to every spine, and a link from
/// every spine to every external switch. A long link joins external switch i of one datacentre to external switch i of
/// the other. Traffic within a datacentre never crosses an external switch.
///
/// Nodes are named `host0`, `host1`, ... (rack by rack, the first datacentre before the second), `dc0-tor0`, ...,
/// `dc0-spine0`, ..., `dc0-external0`, ..., `dc1-tor0`, ...; the roles of switches are `tor`, `spine` and `external`.
///
/// The defaults are the fabric of the long-haul paper as its prototype builds it: 2 x 16 hosts, no oversubscription,
/// and 100 km between the datacentres.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Datacentres {
    /// Number of ToR switches in each datacentre. Default 4 (long-haul prototype, topology).
    pub tors: usize,
    /// Number of hosts on each ToR. Default 4 (long-haul prototype, topology).
    pub hosts_per_tor: usize,
    /// Number of spine switches in each datacentre. Default 4 (long-haul prototype, topology).
    pub spines: usize,
    /// Number of external switches in each datacentre. Default 1 (long-haul prototype, topology).
    pub externals: usize,
    /// Rate of the links to hosts. Default 100 Gb/s (long-haul prototype, topology).
    pub rate: Rate,
    /// Propagation delay of the links to hosts. Default 1 us (long-haul prototype, topology).
    pub delay: Time,
    /// Probability that a link to a host loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Rate of the links between ToRs and spines. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine_rate: Option<Rate>,
    /// Propagation delay of the links between ToRs and spines. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine_delay: Option<Time>,
    /// Probability that a link between a ToR and a spine loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine_loss: Option<Chance>,
    /// Rate of the links between spines and external switches. Default 400 Gb/s (long-haul prototype, topology).
    pub external_rate: Rate,
    /// Propagation delay of the links between spines and external switches. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_delay: Option<Time>,
    /// Probability that a link between a spine and an external switch loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_loss: Option<Chance>,
    /// Rate of a long link. Default 1600 Gb/s (long-haul prototype, topology).
    pub long_rate: Rate,
    /// Propagation delay of a long link. Default 500 us (long-haul paper: 100 km of fibre at 5 us per km).
    pub long_delay: Time,
    /// Probability that a long link loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_loss: Option<Chance>,
}

impl Default for Datacentres {
    fn default() -> Self {
        Datacentres {
            tors: 4,
            hosts_per_tor: 4,
            spines: 4,
            externals: 1,
            rate: Rate::from_gbps(100),
            delay: Time::from_us(1),
            loss: None,
            spine_rate: None,
            spine_delay: None,
            spine_loss: None,
            external_rate: Rate::from_gbps(400),
            external_delay: None,
            external_loss: None,
            long_rate: Rate::from_gbps(1600),
            long_delay: Time::from_us(500),
            long_loss: None,
        }
    }
}

/// Number of datacentres.
const SITES: usize = 2;

impl Datacentres {
    fn possible(&self) -> Result<(), Finding> {
        let counts = [
            ("tors", self.tors, "ToR switch"),
            ("hosts-per-tor", self.hosts_per_tor, "host on every ToR"),
            ("spines", self.spines, "spine"),
            ("externals", self.externals, "external switch"),
        ];
        for (key, count, what) in counts {
            if count == 0 {
                return Err(code::RANGE.at(key, format!("a datacentre needs at least 1 {what}")));
            }
        }
        let most = Packet::MAX_PORTS;
        for (key, ports, what) in [
            ("hosts-per-tor", self.hosts_per_tor, "ToR"),
            ("spines", self.spines.saturating_add(self.hosts_per_tor), "ToR"),
            ("tors", self.tors, "spine"),
            ("externals", self.tors.saturating_add(self.externals), "spine"),
            ("spines", self.spines.saturating_add(1), "external switch"),
        ] {
            if ports > most {
                let text =
                    format!("a switch of the role `{what}` needs {ports} ports; a switch has at most {most}");
                return Err(code::FIT.at(key, text));
            }
        }
        let hosts = SITES.saturating_mul(self.tors).saturating_mul(self.hosts_per_tor);
        if hosts > HostId::MOST {
            return Err(
                code::RANGE.at("tors", format!("expected at most {} hosts, found {hosts}", HostId::MOST))
            );
        }
        for (key, rate) in [
            ("rate", Some(self.rate)),
            ("spine-rate", self.spine_rate),
            ("external-rate", Some(self.external_rate)),
            ("long-rate", Some(self.long_rate)),
        ] {
            rate.map_or(Ok(()), |rate| possible_rate(key, rate))?;
        }
        for (key, delay) in [
            ("delay", Some(self.delay)),
            ("spine-delay", self.spine_delay),
            ("external-delay", self.external_delay),
            ("long-delay", Some(self.long_delay)),
        ] {
            delay.map_or(Ok(()), |delay| possible_delay(key, delay))?;
        }
        Ok(())
    }
}

impl Layout for Datacentres {
    fn size(&self, _: &Ground<'_>) -> Result<Size, Finding> {
        self.possible()?;
        let counts = [("tors", self.tors), ("spines", self.spines), ("hosts-per-tor", self.hosts_per_tor)];
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        let hosts = SITES * self.tors * self.hosts_per_tor;
        Ok(Size {
            hosts,
            switches: SITES * (self.tors + self.spines + self.externals),
            links: hosts + SITES * self.spines * (self.tors + self.externals) + self.externals,
            racks: SITES * self.tors,
            key: largest.map_or("tors", |(key, _)| key),
        })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        let mut builder = ground.builder();
        let per_site = self.tors * self.hosts_per_tor;
        let hosts: Vec<NodeId> = (0..SITES * per_site).map(|h| builder.host(format!("host{h}"))).collect();
        let chance = |own: Option<Chance>| own.map_or(ground.loss, Chance::probability);
        let mut edges = Vec::new();
        for (site, hosts) in hosts.chunks(per_site).enumerate() {
            let mut switches = |count: usize, role: &str| -> Vec<NodeId> {
                (0..count).map(|i| builder.switch(format!("dc{site}-{role}{i}"), role)).collect()
            };
            let tors = switches(self.tors, "tor");
            let spines = switches(self.spines, "spine");
            let externals = switches(self.externals, "external");
            for (hosts, &tor) in hosts.chunks(self.hosts_per_tor).zip(&tors) {
                for &host in hosts {
                    builder.connect(host, tor, self.rate, self.delay, chance(self.loss));
                }
            }
            let (rate, delay) =
                (self.spine_rate.unwrap_or(self.rate), self.spine_delay.unwrap_or(self.delay));
            for &tor in &tors {
                for &spine in &spines {
                    builder.connect(tor, spine, rate, delay, chance(self.spine_loss));
                }
            }
            let delay = self.external_delay.unwrap_or(self.delay);
            for &spine in &spines {
                for &external in &externals {
                    builder.connect(spine, external, self.external_rate, delay, chance(self.external_loss));
                }
            }
            edges.push(externals);
        }
        if let [here, there] = &edges[..] {
            for (&near, &far) in here.iter().zip(there) {
                builder.connect(near, far, self.long_rate, self.long_delay, chance(self.long_loss));
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
    fn local_traffic_stays_away_from_the_external_switches_and_remote_traffic_crosses_both() {
        let fabric = Datacentres { externals: 2, ..Datacentres::default() }.lay(&Ground::plain()).unwrap();
        let (tor, spine) = (fabric.find("dc0-tor0").unwrap(), fabric.find("dc0-spine3").unwrap());
        let external = fabric.find("dc0-external1").unwrap();
        let far = fabric.find("dc1-external1").unwrap();
        assert_eq!((fabric.hosts(), fabric.role(external)), (32, "external"));
        // Host 5 is in rack 1 of the same datacentre; host 16 is the first host of the other datacentre.
        let next = |node: NodeId, to: u32| -> Vec<NodeId> {
            let ports = fabric.route(node, HostId(to)).iter();
            ports.map(|port| fabric.ports(node)[usize::from(port.0)].to).collect()
        };
        assert_eq!((next(tor, 5).len(), next(tor, 16).len()), (4, 4));
        assert_eq!(next(spine, 5), [fabric.find("dc0-tor1").unwrap()]);
        assert_eq!(next(spine, 16).len(), 2);
        assert_eq!(next(external, 16), [far]);
        assert_eq!(next(far, 16).len(), 4);
        let long = fabric.links().iter().find(|l| l.from == external && l.to == far).unwrap();
        assert_eq!((long.rate, long.delay), (Rate::from_gbps(1600), Time::from_us(500)));
    }
}
