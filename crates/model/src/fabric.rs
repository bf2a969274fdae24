//! Nodes, links and equal-cost routes.
//!
//! Hosts have one port. Hosts that hang on the same switch form a *rack*; routes are kept per (switch, rack),
//! not per pair of hosts, and switches with the same routes share them: a k = 32 fat tree of 8192 hosts needs
//! 70 kB of routes.

mod builder;
mod groups;
mod names;
mod reroute;
mod routes;
mod surviving;
#[cfg(test)]
mod tests;

pub use builder::FabricBuilder;
pub use groups::{Detours, MinimalPaths, PortKind};
pub use reroute::{Rerouter, Routing};

use crate::{HostId, LinkId, NodeId, Packet, PortIndex, Probability, Rate, Time};
use groups::{Groups, Here};
use names::Names;
use routes::Routes;
use surviving::SurvivingRoutes;
use thiserror::Error;

/// Most virtual channels of a link: a way has at most three legs.
pub const MOST_CHANNELS: u8 = 3;

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
    /// In a fabric of groups every switch belongs to one.
    #[error("switch {0} belongs to no group, and others do")]
    NoGroup(String),
    /// In a fabric of groups hosts hang on every switch.
    #[error("switch {0} has no hosts; in a fabric of groups every switch has")]
    NoHosts(String),
    /// Ways inside a group are one link.
    #[error("{0} and {1} are in one group, and no link joins them")]
    NotMeshed(String, String),
    /// MinimalPaths ways between groups cross one link.
    #[error("no link joins the groups {0} and {1}")]
    GroupsApart(usize, usize),
    /// A packet names groups and switches of a group in 12 bits.
    #[error("more than {max} groups, or switches in a group", max = crate::RouteState::MOST)]
    TooManyGroups,
}

/// A fabric, checked and with its routes.
#[derive(Clone, Debug)]
pub struct Fabric {
    hosts: usize,
    names: Names,
    /// Distinct roles, and which of them every node has.
    roles: Vec<String>,
    role_of: Vec<u32>,
    base: Vec<u32>,
    links: Vec<Link>,
    /// By host: its rack, and the port of its switch that leads down to it.
    rack_of: Vec<u16>,
    down: Vec<PortIndex>,
    racks: Vec<NodeId>,
    routes: Routes,
    groups: Option<Groups>,
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
        self.names.get(node.index())
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        (0..self.nodes()).find(|&i| self.names.get(i) == name).map(|i| NodeId(i as u32))
    }

    /// The node's role, such as `host`, `leaf`, `spine`.
    pub fn role(&self, node: NodeId) -> &str {
        &self.roles[self.role_of[node.index()] as usize]
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
        self.racks[self.rack(host)]
    }

    /// Number of a host's rack, an index into [`Fabric::racks`].
    #[inline]
    pub fn rack(&self, host: HostId) -> usize {
        self.rack_of[host.index()] as usize
    }

    /// True if both hosts hang on the same switch.
    pub fn same_rack(&self, a: HostId, b: HostId) -> bool {
        self.rack_of[a.index()] == self.rack_of[b.index()]
    }

    /// The nodes that hosts hang on.
    pub fn racks(&self) -> &[NodeId] {
        &self.racks
    }

    /// How many switches stand between a host and what lies beyond this one, itself counted: 1 for a ToR, 2 for
    /// the switches above ToRs, and so on. 0 for a host, and for a switch that no host reaches.
    pub fn tier(&self, node: NodeId) -> usize {
        if self.is_host(node) { 0 } else { self.routes.tier(node.index() - self.hosts) }
    }

    /// The routes of one switch, for many look-ups.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router(&self, node: NodeId) -> Router<'_> {
        self.router_of(&self.routes, None, node)
    }

    #[inline]
    fn router_of<'a>(
        &'a self,
        routes: &'a Routes,
        left: Option<&'a SurvivingRoutes>,
        node: NodeId,
    ) -> Router<'a> {
        let switch = node.index() - self.hosts;
        Router {
            rack_of: &self.rack_of,
            own: routes.rack_at(switch),
            row: routes.row(switch),
            down: &self.down,
            pool: routes.pool(),
            here: self.groups.as_ref().map(|groups| Here {
                groups,
                switch,
                left: left.map(|left| (left, &self.routes)),
            }),
        }
    }

    /// Ports of `node` on shortest paths (fewest hops) to host `to`; empty if there is none.
    #[inline]
    pub fn route(&self, node: NodeId, to: HostId) -> &[PortIndex] {
        if self.attachment(to) == node {
            return std::slice::from_ref(&self.down[to.index()]);
        }
        if self.is_host(node) {
            return if node == to.node() { &[] } else { const { &[PortIndex(0)] } };
        }
        self.route_to_rack(node, self.rack(to))
    }

    /// Ports of the switch `node` on shortest paths to the switch of another rack; empty if there is none.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn route_to_rack(&self, node: NodeId, rack: usize) -> &[PortIndex] {
        routes::set(self.routes.pool(), self.routes.row(node.index() - self.hosts)[rack])
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
    /// The rack of its own hosts; no rack has the number that stands for none.
    own: u32,
    row: &'a [u32],
    down: &'a [PortIndex],
    pool: &'a [PortIndex],
    here: Option<Here<'a>>,
}

impl<'a> Router<'a> {
    /// Ports on shortest paths to host `to`, and whether they lead to it without another switch.
    #[inline]
    pub fn ports(&self, to: HostId) -> (&'a [PortIndex], bool) {
        let rack = self.rack_of[to.index()];
        if u32::from(rack) == self.own {
            return (std::slice::from_ref(&self.down[to.index()]), true);
        }
        (routes::set(self.pool, self.row[rack as usize]), false)
    }

    /// Ports to the switch of another rack; empty if there is none. See [`Fabric::route_to_rack`].
    #[inline]
    pub fn to_rack(&self, rack: usize) -> &'a [PortIndex] {
        routes::set(self.pool, self.row[rack])
    }
}
