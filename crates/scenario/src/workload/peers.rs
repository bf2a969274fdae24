//! To whom a host sends that draws its peers.

use super::draft::Draft;
use crate::error::Fault;
use model::draw::below;
use model::{Fabric, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which hosts a host may draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Peers {
    /// Any other host.
    #[default]
    Any,
    /// Hosts of other racks.
    CrossRack,
    /// Hosts of other pods: all traffic passes the aggregation switches, and those above them. On a Dragonfly, hosts of
    /// other groups.
    CrossPod,
}

impl Peers {
    /// What a host may not send into.
    pub(crate) fn part(self, fabric: &Fabric) -> &'static str {
        match self {
            Peers::CrossPod if fabric.groups() > 0 => "group",
            Peers::CrossPod => "pod",
            Peers::CrossRack | Peers::Any => "rack",
        }
    }

    /// The part of the fabric that each host may not send into, by host: itself, its rack, or its pod or group.
    pub(crate) fn parts(self, fabric: &Fabric, path: &str) -> Result<Vec<usize>, Fault> {
        let hosts = (0..fabric.hosts()).map(|h| HostId(h as u16));
        Ok(match self {
            Peers::Any => hosts.map(HostId::index).collect(),
            Peers::CrossRack => hosts.map(|h| fabric.rack(h)).collect(),
            Peers::CrossPod if fabric.groups() > 0 => {
                hosts.filter_map(|h| fabric.group(fabric.attachment(h))).collect()
            }
            Peers::CrossPod => {
                let pods = pods(fabric);
                let why = if fabric.switches().all(|switch| fabric.tier(switch) != 2) {
                    Some("it has no switches above those of the racks")
                } else if pods.iter().all(|pod| *pod == pods[0]) {
                    Some("its racks share the switches above them")
                } else {
                    None
                };
                if let Some(why) = why {
                    let text = format!("this fabric is not made of pods: {why}");
                    return Err(Fault::new(path, text).with_help("\"cross-rack\" is possible"));
                }
                hosts.map(|h| pods[fabric.rack(h)]).collect()
            }
        })
    }
}

/// The pod of every rack, named by the least of its racks: racks that have an aggregation switch in common, directly or
/// by others, are in one pod.
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
    /// Sorted so that hosts that may not send to each other stand in a row.
    hosts: Vec<HostId>,
    /// That row, by position: its first position and the one after its last.
    rows: Vec<(u32, u32)>,
}

impl PeerSet {
    /// Of these hosts; there must be somebody to send to for each of them.
    pub(crate) fn new(draft: &Draft<'_>, mut hosts: Vec<HostId>, peers: Peers) -> Result<Self, Fault> {
        if hosts.len() < 2 {
            let what = if hosts.is_empty() { "no host" } else { "1 host" };
            let text = format!("{what}: there is no other one to send to");
            return Err(Fault::new("hosts", text));
        }
        let parts = peers.parts(draft.fabric, "peers")?;
        hosts.sort_by_key(|host| (parts[host.index()], *host));
        let mut rows = Vec::with_capacity(hosts.len());
        for row in hosts.chunk_by(|a, b| parts[a.index()] == parts[b.index()]) {
            let (from, to) = (rows.len() as u32, (rows.len() + row.len()) as u32);
            if row.len() == hosts.len() {
                let what = peers.part(draft.fabric);
                let text =
                    format!("all {} hosts are in one {what}: there is no other one to send to", row.len());
                return Err(Fault::new("peers", text));
            }
            rows.resize(rows.len() + row.len(), (from, to));
        }
        Ok(PeerSet { hosts, rows })
    }

    /// All hosts; their positions are what [`PeerSet::peer`] takes.
    pub(crate) fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// Whom the host at a position sends to, every possible host with the same probability.
    pub(crate) fn peer(&self, position: usize, draw: u64) -> HostId {
        let (from, to) = self.rows[position];
        let others = self.hosts.len() - (to - from) as usize;
        let drawn = below(draw, others);
        self.hosts[if drawn < from as usize { drawn } else { drawn + (to - from) as usize }]
    }

    /// Whom the host at a position sends to among those that [`PeerSet::peer`] leaves out, itself excepted; there must be
    /// [one](PeerSet::near).
    pub(crate) fn neighbour(&self, position: usize, draw: u64) -> HostId {
        let from = self.rows[position].0 as usize;
        let drawn = from + below(draw, self.near(position));
        self.hosts[if drawn < position { drawn } else { drawn + 1 }]
    }

    /// How many hosts [`PeerSet::neighbour`] chooses from.
    pub(crate) fn near(&self, position: usize) -> usize {
        let (from, to) = self.rows[position];
        (to - from) as usize - 1
    }

    /// How many hosts [`PeerSet::peer`] chooses from.
    pub(crate) fn far(&self, position: usize) -> usize {
        self.hosts.len() - 1 - self.near(position)
    }
}
