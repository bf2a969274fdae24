//! Laying a fabric.

use super::groups::{GroupSpec, Groups, MinimalPaths};
use super::names::Names;
use super::routes::Routes;
use super::{Fabric, FabricError, Link};
use crate::{NodeId, Packet, PortIndex, Probability, Rate, Time};
use std::collections::BTreeMap;

/// Lays a fabric node by node and link by link.
#[derive(Clone, Debug, Default)]
pub struct FabricBuilder {
    names: Names,
    roles: Vec<String>,
    role_numbers: BTreeMap<String, u32>,
    role_of: Vec<u32>,
    hosts: usize,
    cables: Vec<Cable>,
    groups: Option<GroupSpec>,
}

/// A link before its ends have port numbers.
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

    /// Adds a host. All hosts come before the first switch.
    ///
    /// # Panics
    /// If a switch was added before: a mistake of the caller, not of a user.
    pub fn host(&mut self, name: impl AsRef<str>) -> NodeId {
        assert_eq!(self.hosts, self.names.len(), "hosts come before switches");
        self.hosts += 1;
        self.node(name.as_ref(), "host")
    }

    /// Adds a switch of a role such as `leaf`.
    pub fn switch(&mut self, name: impl AsRef<str>, role: &str) -> NodeId {
        self.node(name.as_ref(), role)
    }

    /// The groups of all switches, in their order, counted from 0; the virtual channels of links between switches, 1 to
    /// [`super::MOST_CHANNELS`]; and among which ways packets choose that leave their group.
    pub fn groups(&mut self, of: Vec<u16>, channels: u8, minimal: MinimalPaths) {
        self.groups = Some(GroupSpec { of, channels, minimal });
    }

    fn node(&mut self, name: &str, role: &str) -> NodeId {
        let number = self.role_numbers.get(role).copied().unwrap_or_else(|| {
            self.roles.push(role.to_owned());
            self.role_numbers.insert(role.to_owned(), self.roles.len() as u32 - 1);
            self.roles.len() as u32 - 1
        });
        self.names.push(name);
        self.role_of.push(number);
        NodeId(self.names.len() as u32 - 1)
    }

    /// Joins two nodes by a link, both directions alike. Parallel links are allowed.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Time, loss: Probability) {
        self.cables.push(Cable { a, b, rate, delay, loss });
    }

    /// Checks the fabric and derives its routes.
    ///
    /// # Errors
    /// A [`FabricError`] for the first thing that cannot work.
    pub fn build(self) -> Result<Fabric, FabricError> {
        if self.hosts == 0 {
            return Err(FabricError::Empty);
        }
        if self.hosts > 65_536 {
            return Err(FabricError::TooManyHosts(self.hosts));
        }
        let base = self.check()?;
        let links = self.links(&base);
        let mut fabric = Fabric {
            hosts: self.hosts,
            names: self.names,
            roles: self.roles,
            role_of: self.role_of,
            base,
            links,
            rack_of: Vec::new(),
            down: Vec::new(),
            racks: Vec::new(),
            routes: Routes::default(),
            groups: None,
        };
        fabric.find_racks();
        let groups = self.groups.map(|draft| {
            let mut rack_at = vec![usize::MAX; fabric.nodes() - fabric.hosts];
            for (rack, &node) in fabric.racks.iter().enumerate().filter(|(_, node)| !fabric.is_host(**node)) {
                rack_at[node.index() - fabric.hosts] = rack;
            }
            Groups::new(&fabric, draft, &rack_at)
        });
        let (routes, groups) = Routes::derive(&fabric, groups.transpose()?)?;
        Ok(Fabric { routes, groups, ..fabric })
    }

    /// Checks links and numbers of ports; returns the global number of every node's first port.
    fn check(&self) -> Result<Vec<u32>, FabricError> {
        let name = |n: NodeId| self.names.get(n.index()).to_owned();
        let mut count = vec![0usize; self.names.len()];
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
            if i < self.hosts && links != 1 {
                return Err(FabricError::HostLinks(name(NodeId(i as u32)), links));
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
                let place = base[from.index()] as usize + usize::from(port.0);
                links[place] = Link { from, port, to, peer_port, rate, delay, loss };
            };
            lay(a, pa, b, pb);
            lay(b, pb, a, pa);
        }
        links
    }
}

impl Fabric {
    fn find_racks(&mut self) {
        let mut number = vec![None; self.nodes()];
        for h in 0..self.hosts {
            let link = self.links[self.base[h] as usize];
            let rack = *number[link.to.index()].get_or_insert_with(|| {
                self.racks.push(link.to);
                (self.racks.len() - 1) as u16
            });
            self.rack_of.push(rack);
            self.down.push(link.peer_port);
        }
    }
}
