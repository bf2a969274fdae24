//! Nodes, links and equal-cost routes.
//!
//! Hosts have one port. Hosts that hang on the same switch form a *rack*; routes are kept per (switch, rack),
//! not per pair of hosts, so that a fabric of 8192 hosts needs about a megabyte of them.

use crate::{HostId, LinkId, NodeId, Packet, PortIndex, Probability, Rate, Time};
use std::collections::{BTreeMap, VecDeque};
use thiserror::Error;

/// One direction of a link: the port that sends into it and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node that sends.
    pub from: NodeId,
    /// Its port.
    pub port: PortIndex,
    /// The node that receives.
    pub to: NodeId,
    /// The port at which packets arrive there.
    pub peer_port: PortIndex,
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Probability that a data packet is lost on it.
    pub loss: Probability,
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// A host needs exactly one link.
    #[error("host {0} has {1} links; a host has exactly one")]
    HostLinks(String, usize),
    /// The packet layout holds 10 bits of port number.
    #[error("node {0} has {1} links; at most {max} are possible", max = Packet::MAX_PORTS)]
    TooManyPorts(String, usize),
    /// The packet layout holds 16 bits of host number.
    #[error("{0} hosts; at most 65536 are possible")]
    TooManyHosts(usize),
    /// Windows need a positive delay.
    #[error("the link {0} - {1} has no delay; every link needs a delay above 0")]
    NoDelay(String, String),
    /// A frame must fit into 32 bits of picoseconds.
    #[error("the link {0} - {1} runs at {2}; at least 100 Mb/s are needed")]
    TooSlow(String, String, Rate),
    /// A link from a node to itself.
    #[error("the link {0} - {0} connects a node with itself")]
    Loop(String),
    /// More distinct sets of equal-cost ports than the route table can name.
    #[error("the fabric has too many different sets of equal-cost ports")]
    TooManyRoutes,
    /// There is nothing to send between.
    #[error("the fabric has no hosts")]
    Empty,
}

/// A fabric, checked and with its routes.
#[derive(Clone, Debug)]
pub struct Fabric {
    hosts: usize,
    names: Vec<String>,
    roles: Vec<String>,
    base: Vec<u32>,
    links: Vec<Link>,
    rack_of: Vec<u16>,
    racks: Vec<NodeId>,
    down: Vec<PortIndex>,
    routes: Vec<u32>,
    pool: Vec<PortIndex>,
}

impl Fabric {
    /// Number of hosts.
    #[inline]
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Number of nodes: hosts, then switches.
    #[inline]
    pub fn nodes(&self) -> usize {
        self.names.len()
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + use<> {
        (self.hosts as u32..self.nodes() as u32).map(NodeId)
    }

    /// True if `node` is a host.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        node.index() < self.hosts
    }

    /// The node's name, unique in the fabric.
    pub fn name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|n| n == name).map(|i| NodeId(i as u32))
    }

    /// The node's role, such as `host`, `leaf`, `spine`.
    pub fn role(&self, node: NodeId) -> &str {
        &self.roles[node.index()]
    }

    /// Directed links; the index is the global number of the sending port.
    #[inline]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The directed links that leave `node`, by port.
    #[inline]
    pub fn ports(&self, node: NodeId) -> &[Link] {
        &self.links[self.base[node.index()] as usize..self.base[node.index() + 1] as usize]
    }

    /// The global number of a port.
    #[inline]
    pub fn link(&self, node: NodeId, port: PortIndex) -> LinkId {
        LinkId(self.base[node.index()] + port.0 as u32)
    }

    /// The global number of the node's first port.
    #[inline]
    pub fn base(&self, node: NodeId) -> u32 {
        self.base[node.index()]
    }

    /// The opposite direction of a link.
    pub fn reverse(&self, link: LinkId) -> LinkId {
        let l = &self.links[link.index()];
        self.link(l.to, l.peer_port)
    }

    /// The node that a host hangs on: its switch, or the other host of a direct link.
    #[inline]
    pub fn attachment(&self, host: HostId) -> NodeId {
        self.racks[self.rack_of[host.index()] as usize]
    }

    /// True if both hosts hang on the same switch.
    pub fn same_rack(&self, a: HostId, b: HostId) -> bool {
        self.rack_of[a.index()] == self.rack_of[b.index()]
    }

    /// The nodes that hosts hang on.
    pub fn racks(&self) -> &[NodeId] {
        &self.racks
    }

    /// The routes of one switch, for many look-ups.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router(&self, node: NodeId) -> Router<'_> {
        let row = (node.index() - self.hosts) * self.racks.len();
        Router {
            rack_of: &self.rack_of,
            row: &self.routes[row..row + self.racks.len()],
            down: &self.down,
            pool: &self.pool,
        }
    }

    /// Ports of `node` on shortest paths (fewest hops) to host `to`; empty if there is none.
    #[inline]
    pub fn route(&self, node: NodeId, to: HostId) -> &[PortIndex] {
        let rack = self.rack_of[to.index()] as usize;
        if self.racks[rack] == node {
            return std::slice::from_ref(&self.down[to.index()]);
        }
        if node.index() < self.hosts {
            return if node.index() == to.index() { &[] } else { const { &[PortIndex(0)] } };
        }
        let entry = self.routes[(node.index() - self.hosts) * self.racks.len() + rack];
        let (start, len) = ((entry >> 10) as usize, (entry & 1023) as usize);
        &self.pool[start..start + len]
    }

    /// True if packets from `from` reach `to`.
    pub fn reaches(&self, from: HostId, to: HostId) -> bool {
        let next = self.ports(from.node())[0].to;
        next == to.node() || !self.is_host(next) && !self.route(next, to).is_empty()
    }
}

/// The routes of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    rack_of: &'a [u16],
    row: &'a [u32],
    down: &'a [PortIndex],
    pool: &'a [PortIndex],
}

impl<'a> Router<'a> {
    /// Ports on shortest paths to host `to`, and whether they lead to it without another switch.
    #[inline]
    pub fn ports(&self, to: HostId) -> (&'a [PortIndex], bool) {
        let entry = self.row[self.rack_of[to.index()] as usize];
        let len = (entry & 1023) as usize;
        if len == 0 {
            return (std::slice::from_ref(&self.down[to.index()]), true);
        }
        let start = (entry >> 10) as usize;
        (&self.pool[start..start + len], false)
    }
}

/// Lays a fabric node by node and link by link.
#[derive(Clone, Debug, Default)]
pub struct FabricBuilder {
    names: Vec<String>,
    roles: Vec<String>,
    hosts: usize,
    wires: Vec<(NodeId, NodeId, Rate, Time, Probability)>,
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
    pub fn host(&mut self, name: impl Into<String>) -> NodeId {
        assert_eq!(self.hosts, self.names.len(), "hosts come before switches");
        self.hosts += 1;
        self.node(name, "host")
    }

    /// Adds a switch of a role such as `leaf`.
    pub fn switch(&mut self, name: impl Into<String>, role: &str) -> NodeId {
        self.node(name, role)
    }

    fn node(&mut self, name: impl Into<String>, role: &str) -> NodeId {
        self.names.push(name.into());
        self.roles.push(role.to_owned());
        NodeId(self.names.len() as u32 - 1)
    }

    /// Joins two nodes by a link, both directions alike. Parallel links are allowed.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Time, loss: Probability) {
        self.wires.push((a, b, rate, delay, loss));
    }

    /// Checks the fabric and derives its routes.
    ///
    /// # Errors
    /// A [`FabricError`] for the first thing that cannot work.
    pub fn build(self) -> Result<Fabric, FabricError> {
        let nodes = self.names.len();
        if self.hosts == 0 {
            return Err(FabricError::Empty);
        }
        if self.hosts > 65_536 {
            return Err(FabricError::TooManyHosts(self.hosts));
        }
        let name = |n: NodeId| self.names[n.index()].clone();
        let mut of_node: Vec<Vec<Link>> = vec![Vec::new(); nodes];
        for &(a, b, rate, delay, loss) in &self.wires {
            if a == b {
                return Err(FabricError::Loop(name(a)));
            }
            if delay == Time::ZERO {
                return Err(FabricError::NoDelay(name(a), name(b)));
            }
            if rate.bps() < 100_000_000 {
                return Err(FabricError::TooSlow(name(a), name(b), rate));
            }
            let at = |n: NodeId| PortIndex(of_node[n.index()].len() as u16);
            let (pa, pb) = (at(a), at(b));
            of_node[a.index()].push(Link { from: a, port: pa, to: b, peer_port: pb, rate, delay, loss });
            of_node[b.index()].push(Link { from: b, port: pb, to: a, peer_port: pa, rate, delay, loss });
        }
        for (i, links) in of_node.iter().enumerate() {
            if i < self.hosts && links.len() != 1 {
                return Err(FabricError::HostLinks(self.names[i].clone(), links.len()));
            }
            if links.len() > Packet::MAX_PORTS {
                return Err(FabricError::TooManyPorts(self.names[i].clone(), links.len()));
            }
        }
        let mut base = vec![0u32];
        for links in &of_node {
            base.push(base.last().copied().unwrap_or(0) + links.len() as u32);
        }
        let links: Vec<Link> = of_node.into_iter().flatten().collect();
        let mut fabric = Fabric {
            hosts: self.hosts,
            names: self.names,
            roles: self.roles,
            base,
            links,
            rack_of: Vec::new(),
            racks: Vec::new(),
            down: Vec::new(),
            routes: Vec::new(),
            pool: Vec::new(),
        };
        fabric.find_racks();
        fabric.find_routes()?;
        Ok(fabric)
    }
}

impl Fabric {
    fn find_racks(&mut self) {
        let mut index = BTreeMap::new();
        for h in 0..self.hosts {
            let link = self.links[self.base[h] as usize];
            let rack = *index.entry(link.to).or_insert_with(|| {
                self.racks.push(link.to);
                self.racks.len() as u16 - 1
            });
            self.rack_of.push(rack);
            self.down.push(link.peer_port);
        }
    }

    /// One breadth-first search per rack, from the rack outwards over switches.
    fn find_routes(&mut self) -> Result<(), FabricError> {
        let switches = self.nodes() - self.hosts;
        self.routes = vec![0; switches * self.racks.len()];
        let mut sets: BTreeMap<Vec<PortIndex>, u32> = BTreeMap::new();
        let mut hops = vec![u32::MAX; self.nodes()];
        let mut queue = VecDeque::new();
        let mut set = Vec::new();
        for (rack, &root) in self.racks.iter().enumerate() {
            hops.fill(u32::MAX);
            hops[root.index()] = 0;
            queue.push_back(root);
            while let Some(at) = queue.pop_front() {
                for link in self.ports(at) {
                    if link.to.index() >= self.hosts && hops[link.to.index()] == u32::MAX {
                        hops[link.to.index()] = hops[at.index()] + 1;
                        queue.push_back(link.to);
                    }
                }
            }
            for s in 0..switches {
                let node = NodeId((self.hosts + s) as u32);
                let mine = hops[node.index()];
                if mine == u32::MAX || mine == 0 {
                    continue;
                }
                set.clear();
                let closer = |l: &&Link| hops[l.to.index()] == mine - 1;
                set.extend(self.ports(node).iter().filter(closer).map(|l| l.port));
                let entry = match sets.get(&set) {
                    Some(&entry) => entry,
                    None => {
                        if self.pool.len() >= 1 << 22 {
                            return Err(FabricError::TooManyRoutes);
                        }
                        let entry = (self.pool.len() as u32) << 10 | set.len() as u32;
                        self.pool.extend_from_slice(&set);
                        sets.insert(set.clone(), entry);
                        entry
                    }
                };
                self.routes[s * self.racks.len() + rack] = entry;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf_spine(leaves: usize, spines: usize, per_leaf: usize) -> Fabric {
        let mut b = FabricBuilder::new();
        let hosts: Vec<_> = (0..leaves * per_leaf).map(|h| b.host(format!("h{h}"))).collect();
        let leaf: Vec<_> = (0..leaves).map(|l| b.switch(format!("leaf{l}"), "leaf")).collect();
        let spine: Vec<_> = (0..spines).map(|s| b.switch(format!("spine{s}"), "spine")).collect();
        let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
        for (h, &host) in hosts.iter().enumerate() {
            b.connect(host, leaf[h / per_leaf], rate, delay, Probability::ZERO);
        }
        for &l in &leaf {
            for &s in &spine {
                b.connect(l, s, rate, delay, Probability::ZERO);
            }
        }
        b.build().unwrap()
    }

    #[test]
    fn a_leaf_sends_up_over_every_spine_and_down_over_one_port() {
        let f = leaf_spine(4, 3, 2);
        let leaf0 = f.find("leaf0").unwrap();
        assert_eq!(f.route(leaf0, HostId(1)), &[PortIndex(1)]);
        assert_eq!(f.route(leaf0, HostId(7)), &[PortIndex(2), PortIndex(3), PortIndex(4)]);
        let spine1 = f.find("spine1").unwrap();
        assert_eq!(f.route(spine1, HostId(7)), &[PortIndex(3)]);
        for to in (0..8).map(HostId) {
            assert_eq!(f.router(leaf0).ports(to), (f.route(leaf0, to), to.0 < 2));
        }
        assert!(f.same_rack(HostId(0), HostId(1)) && !f.same_rack(HostId(1), HostId(2)));
        assert!(f.reaches(HostId(0), HostId(7)));
        let up = f.link(leaf0, PortIndex(2));
        assert_eq!(f.links()[f.reverse(up).index()].to, leaf0);
    }

    #[test]
    fn two_hosts_on_one_cable_need_no_switch() {
        let mut b = FabricBuilder::new();
        let (x, y) = (b.host("x"), b.host("y"));
        b.connect(x, y, Rate::from_gbps(100), Time::from_ns(5), Probability::ZERO);
        let f = b.build().unwrap();
        assert!(f.reaches(HostId(0), HostId(1)));
        assert_eq!(f.route(NodeId(0), HostId(1)), &[PortIndex(0)]);
    }

    #[test]
    fn a_host_without_a_link_is_named() {
        let mut b = FabricBuilder::new();
        b.host("lonely");
        assert_eq!(b.build().unwrap_err(), FabricError::HostLinks("lonely".into(), 0));
    }
}
