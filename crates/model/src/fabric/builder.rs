//! Construction of a fabric.

use super::Fabric;
use super::groups::{GroupSpec, Groups, MinimalPaths};
use super::routes::Routes;
use super::topology::{FabricError, Link, Nodes, Topology};
use crate::{HostId, NodeId, Packet, PortIndex, Probability, Rate, Time};
use std::collections::BTreeMap;

/// Builds a fabric node by node and link by link.
#[derive(Clone, Debug, Default)]
pub struct FabricBuilder {
    nodes: Nodes,
    role_numbers: BTreeMap<String, u32>,
    cables: Vec<Cable>,
    groups: Option<GroupSpec>,
    /// Ports of a server, if hosts are ports of servers.
    per_server: Option<usize>,
}

/// A link, both directions, before its ends have port numbers.
#[derive(Clone, Copy, Debug)]
struct Cable {
    a: NodeId,
    b: NodeId,
    rate: Rate,
    delay: Time,
    loss: Probability,
}

impl FabricBuilder {
    /// An empty fabric.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty fabric of servers: every `ports` hosts are the ports of one node, named `s0`, `s1`, and so on. Each host has one
    /// link, and the hosts get their links in their order.
    pub fn of_servers(ports: usize) -> Self {
        FabricBuilder { per_server: Some(ports.max(1)), ..Self::default() }
    }

    /// Adds a host, or a port of a server. All hosts come before the first switch.
    ///
    /// # Panics
    /// If a switch was added before: a mistake of the caller, not of a user.
    pub fn host(&mut self, name: impl AsRef<str>) -> NodeId {
        assert_eq!(self.nodes.hosts, self.nodes.names.len(), "hosts come before switches");
        if let Some(ports) = self.per_server {
            let before = self.nodes.endpoints.len();
            self.nodes.endpoints.push(name.as_ref());
            if !before.is_multiple_of(ports) {
                return NodeId(self.nodes.hosts as u32 - 1);
            }
            let server = format!("s{}", self.nodes.hosts);
            self.nodes.hosts += 1;
            return self.node(&server, "host");
        }
        self.nodes.hosts += 1;
        self.node(name.as_ref(), "host")
    }

    /// Adds a switch of a role such as `leaf`.
    pub fn switch(&mut self, name: impl AsRef<str>, role: &str) -> NodeId {
        self.node(name.as_ref(), role)
    }

    /// Makes this a fabric of groups. `of` holds the group of every switch, in order, counted from 0. `channels` is the
    /// number of virtual channels of links between switches, from 1 to [`super::MOST_CHANNELS`]. `minimal` chooses the
    /// paths of packets that leave their group.
    pub fn groups(&mut self, of: Vec<u16>, channels: u8, minimal: MinimalPaths) {
        self.groups = Some(GroupSpec { of, channels, minimal });
    }

    fn node(&mut self, name: &str, role: &str) -> NodeId {
        let Nodes { names, roles, role_of, .. } = &mut self.nodes;
        let number = self.role_numbers.get(role).copied().unwrap_or_else(|| {
            roles.push(role.to_owned());
            self.role_numbers.insert(role.to_owned(), roles.len() as u32 - 1);
            roles.len() as u32 - 1
        });
        names.push(name);
        role_of.push(number);
        NodeId(names.len() as u32 - 1)
    }

    /// Joins two nodes by a link with equal properties in both directions. Parallel links are allowed.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Time, loss: Probability) {
        self.cables.push(Cable { a, b, rate, delay, loss });
    }

    /// Checks the fabric and derives its routes.
    ///
    /// # Errors
    /// A [`FabricError`] for the first fault that the checks find.
    pub fn build(self) -> Result<Fabric, FabricError> {
        if self.nodes.hosts == 0 {
            return Err(FabricError::Empty);
        }
        let base = self.check()?;
        let endpoints = base[self.nodes.hosts] as usize;
        if endpoints > HostId::MOST {
            return Err(FabricError::TooManyHosts(endpoints));
        }
        let links = self.links(&base);
        let topology = Topology::new(self.nodes, base, links);
        if topology.racks().len() > Topology::MOST_RACKS {
            return Err(FabricError::TooManyRacks(topology.racks().len()));
        }
        let groups = self.groups.map(|spec| Groups::new(&topology, spec)).transpose()?;
        let (routes, gateways) = Routes::derive(&topology, groups.as_ref())?;
        Ok(Fabric { topology, routes, groups, gateways })
    }

    /// Checks links and port numbers; returns the global number of every node's first port.
    fn check(&self) -> Result<Vec<u32>, FabricError> {
        let Nodes { hosts, names, .. } = &self.nodes;
        let name = |n: NodeId| names.get(n.index()).to_owned();
        let mut count = vec![0usize; names.len()];
        for &Cable { a, b, rate, delay, .. } in &self.cables {
            if a == b {
                return Err(FabricError::Loop(name(a)));
            }
            if delay == Time::ZERO {
                return Err(FabricError::NoDelay(name(a), name(b)));
            }
            if rate.bps() < 100_000_000 {
                return Err(FabricError::TooSlow(name(a), name(b), rate));
            }
            count[a.index()] += 1;
            count[b.index()] += 1;
        }
        let mut base = Vec::with_capacity(count.len() + 1);
        let mut first = 0;
        for (i, &links) in count.iter().enumerate() {
            if i < *hosts && links == 0 {
                return Err(FabricError::HostWithoutLink(name(NodeId(i as u32))));
            }
            if let Some(ports) = self.per_server.filter(|&ports| i < *hosts && ports != links) {
                return Err(FabricError::PartOfServer {
                    server: name(NodeId(i as u32)),
                    ports,
                    found: links,
                });
            }
            if links > Packet::MAX_PORTS {
                return Err(FabricError::TooManyPorts(name(NodeId(i as u32)), links));
            }
            base.push(first);
            first += links as u32;
        }
        base.push(first);
        Ok(base)
    }

    /// Both directions of every link, by sending port.
    fn links(&self, base: &[u32]) -> Vec<Link> {
        let mut next = base.to_vec();
        let mut port = |n: NodeId| {
            next[n.index()] += 1;
            PortIndex((next[n.index()] - 1 - base[n.index()]) as u16)
        };
        let ends: Vec<_> = self.cables.iter().map(|cable| (port(cable.a), port(cable.b))).collect();
        let Some(Cable { a, rate, delay, loss, .. }) = self.cables.first().copied() else {
            return Vec::new();
        };
        let filler = Link { from: a, port: PortIndex(0), to: a, peer_port: PortIndex(0), rate, delay, loss };
        let mut links = vec![filler; 2 * self.cables.len()];
        for (&Cable { a, b, rate, delay, loss }, (pa, pb)) in self.cables.iter().zip(ends) {
            let mut lay = |from: NodeId, port: PortIndex, to, peer_port| {
                let index = base[from.index()] as usize + usize::from(port.0);
                links[index] = Link { from, port, to, peer_port, rate, delay, loss };
            };
            lay(a, pa, b, pb);
            lay(b, pb, a, pa);
        }
        links
    }
}
