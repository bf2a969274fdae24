//! Peers: the hosts that a host may draw as receivers.

use super::draft::Draft;
use finding::{Finding, code};
use model::draw::below;
use model::{Fabric, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts that a host may draw as receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Peers {
    /// Any other host.
    #[default]
    Any,
    /// Hosts in other racks.
    CrossRack,
    /// Hosts in other pods, so that all traffic crosses the aggregation and core switches. On a Dragonfly, hosts in
    /// other groups.
    CrossPod,
}

impl Peers {
    /// The name of the part of the fabric that a host may not send into.
    pub(crate) fn part(self, fabric: &Fabric) -> &'static str {
        match self {
            Peers::CrossPod if fabric.groups() > 0 => "group",
            Peers::CrossPod => "pod",
            Peers::CrossRack | Peers::Any => "rack",
        }
    }

    /// For each host, the number of the part of the fabric that it may not send into: itself, its rack, its pod or its
    /// group.
    pub(crate) fn parts(self, fabric: &Fabric, path: &str) -> Result<Vec<usize>, Finding> {
        let hosts = (0..fabric.hosts()).map(|h| HostId(h as u32));
        Ok(match self {
            Peers::Any => hosts.map(HostId::index).collect(),
            Peers::CrossRack => hosts.map(|h| fabric.rack(h)).collect(),
            Peers::CrossPod if fabric.groups() > 0 => {
                hosts.filter_map(|h| fabric.group(fabric.attachment(h))).collect()
            }
            Peers::CrossPod => {
                let pods = pods(fabric);
                let why = if fabric.switches().all(|switch| fabric.tier(switch) != 2) {
                    Some("it has no switches above the ToR switches")
                } else if pods.iter().all(|pod| *pod == pods[0]) {
                    Some("all its racks share the switches above them")
                } else {
                    None
                };
                if let Some(why) = why {
                    let text = format!("this fabric has no pods: {why}");
                    return Err(code::NO_NODE.at(path, text).with_help("use \"cross-rack\""));
                }
                hosts.map(|h| pods[fabric.rack(h)]).collect()
            }
        })
    }
}

/// The pod of every rack, as the smallest number of a rack in it. Racks with an aggregation switch in common are in one
/// pod, also if only further racks connect them.
fn pods(fabric: &Fabric) -> Vec<usize> {
    let mut pod: Vec<usize> = (0..fabric.racks().len()).collect();
    let mut above: Vec<Option<usize>> = vec![None; fabric.nodes()];
    fn root(pod: &mut [usize], mut rack: usize) -> usize {
        while pod[rack] != rack {
            pod[rack] = pod[pod[rack]];
            rack = pod[rack];
        }
        rack
    }
    for (rack, switch) in fabric.racks().iter().enumerate() {
        for link in fabric.ports(*switch).iter().filter(|link| fabric.tier(link.to) == 2) {
            let first = *above[link.to.index()].get_or_insert(rack);
            let (a, b) = (root(&mut pod, first), root(&mut pod, rack));
            pod[a.max(b)] = a.min(b);
        }
    }
    (0..pod.len()).map(|rack| root(&mut pod, rack)).collect()
}

/// Hosts that draw peers among each other.
pub(crate) struct PeerSet {
    /// The hosts; hosts that may not send to each other are consecutive.
    hosts: Vec<HostId>,
    /// For each position, the positions of the hosts that its host may not send to: the first and the one after the last.
    rows: Vec<(u32, u32)>,
}

impl PeerSet {
    /// Checks that each of `hosts` has at least one peer.
    pub(crate) fn new(draft: &Draft<'_>, mut hosts: Vec<HostId>, peers: Peers) -> Result<Self, Finding> {
        if hosts.len() < 2 {
            return Err(code::FIT.at("hosts", format!("expected at least 2 hosts, found {}", hosts.len())));
        }
        let parts = peers.parts(draft.fabric, "peers")?;
        hosts.sort_by_key(|host| (parts[host.index()], *host));
        let mut rows = Vec::with_capacity(hosts.len());
        for row in hosts.chunk_by(|a, b| parts[a.index()] == parts[b.index()]) {
            let (from, to) = (rows.len() as u32, (rows.len() + row.len()) as u32);
            if row.len() == hosts.len() {
                let what = peers.part(draft.fabric);
                let text =
                    format!("all {} hosts are in one {what}; there is no other {what} to send to", row.len());
                return Err(code::FIT.at("peers", text));
            }
            rows.resize(rows.len() + row.len(), (from, to));
        }
        Ok(PeerSet { hosts, rows })
    }

    /// All hosts; [`PeerSet::peer`] takes a position in this list.
    pub(crate) fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// Peer of the host at `position`; a uniform `draw` gives every possible peer the same probability.
    pub(crate) fn peer(&self, position: usize, draw: u64) -> HostId {
        let (from, to) = self.rows[position];
        let others = self.hosts.len() - (to - from) as usize;
        let drawn = below(draw, others);
        self.hosts[if drawn < from as usize { drawn } else { drawn + (to - from) as usize }]
    }

    /// Another host of the same part of the fabric, of which there must be [at least one](PeerSet::near).
    pub(crate) fn neighbour(&self, position: usize, draw: u64) -> HostId {
        let from = self.rows[position].0 as usize;
        let drawn = from + below(draw, self.near(position));
        self.hosts[if drawn < position { drawn } else { drawn + 1 }]
    }

    /// Number of hosts that [`PeerSet::neighbour`] chooses from.
    pub(crate) fn near(&self, position: usize) -> usize {
        let (from, to) = self.rows[position];
        (to - from) as usize - 1
    }

    /// Number of hosts that [`PeerSet::peer`] chooses from.
    pub(crate) fn far(&self, position: usize) -> usize {
        self.hosts.len() - 1 - self.near(position)
    }
}
