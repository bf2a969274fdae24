//! Nodes and links of a fabric, without routes.

use super::names::Names;
use crate::{HostId, LinkId, NodeId, Packet, PortIndex, Probability, Rate, Time};
use std::borrow::Cow;
use thiserror::Error;

/// Stands for no rack, no switch and no path.
pub(super) const NONE: u32 = u32::MAX;

/// One direction of a link: the port that sends into it and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sending node.
    pub from: NodeId,
    /// The sending port.
    pub port: PortIndex,
    /// The receiving node.
    pub to: NodeId,
    /// The receiving port.
    pub peer_port: PortIndex,
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Probability that the link loses a data packet.
    pub loss: Probability,
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// A host needs a link.
    #[error("host {0} has no link")]
    HostWithoutLink(String),
    /// All servers have the same number of ports.
    #[error("a server has {ports} NIC ports, and {found} are left for the last server, {server}")]
    PartOfServer {
        /// Name of the server.
        server: String,
        /// Ports of a server.
        ports: usize,
        /// Ports that this server has.
        found: usize,
    },
    /// The packet layout holds 10 bits of port number.
    #[error("node {0} has {1} links; at most {max} are possible", max = Packet::MAX_PORTS)]
    TooManyPorts(String, usize),
    /// The packet layout holds 20 bits of endpoint number.
    #[error("{0} ports of hosts; at most {max} are possible", max = HostId::MOST)]
    TooManyHosts(usize),
    /// Numbers of racks have 16 bits.
    #[error("hosts are attached to {0} switches; at most {max} are possible", max = Topology::MOST_RACKS)]
    TooManyRacks(usize),
    /// Windows need a positive delay.
    #[error("the link {0} - {1} has no delay; every link needs a delay above 0")]
    NoDelay(String, String),
    /// The transmission time of a frame must fit into 32 bits of picoseconds.
    #[error("the link {0} - {1} runs at {2}; at least 100 Mb/s are needed")]
    TooSlow(String, String, Rate),
    /// A link from a node to itself.
    #[error("the link {0} - {0} connects a node with itself")]
    Loop(String),
    /// More distinct sets of equal-cost ports than the route table can name.
    #[error("the fabric has too many different sets of equal-cost ports")]
    TooManyRoutes,
    /// A fabric needs hosts.
    #[error("the fabric has no hosts")]
    Empty,
    /// In a fabric of groups every switch belongs to one.
    #[error("switch {0} belongs to no group, and others do")]
    NoGroup(String),
    /// In a fabric of groups every switch has hosts.
    #[error("switch {0} has no hosts; in a fabric of groups every switch has")]
    NoHosts(String),
    /// Two switches of one group must share a link.
    #[error("{0} and {1} are in one group, and no link joins them")]
    NotMeshed(String, String),
    /// Two groups must share a link.
    #[error("no link joins the groups {0} and {1}")]
    GroupsApart(usize, usize),
    /// A packet names groups and switches of a group in 12 bits.
    #[error("more than {max} groups, or switches in a group", max = crate::RouteState::MOST)]
    TooManyGroups,
}

/// Nodes, links and racks.
///
/// A host has one port or several, each with a link of its own. A port of a host is an *endpoint*: queue pairs, packets
/// and routes name endpoints. Hosts come first among the nodes, so endpoints are the first directed links, and an
/// endpoint has the number of its link. The endpoints that are attached to one node form a *rack*. That node is a
/// switch, or the other host of a direct link.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Number of nodes that are hosts.
    servers: usize,
    names: Names,
    /// Names of endpoints; empty if they follow from the names of hosts.
    endpoints: Names,
    /// Distinct roles.
    roles: Vec<String>,
    /// Index into `roles`, by node.
    role_of: Vec<u32>,
    /// Global number of a node's first port, by node; the last entry is the number of ports.
    base: Vec<u32>,
    links: Vec<Link>,
    /// Rack, by endpoint.
    rack_of: Vec<u16>,
    /// Port of the rack's node that leads down to the endpoint, by endpoint.
    down: Vec<PortIndex>,
    /// Node that the endpoints of a rack are attached to, by rack.
    racks: Vec<NodeId>,
}

/// Names and roles of all nodes: hosts first, then switches.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    pub(super) hosts: usize,
    pub(super) names: Names,
    /// Names of the ports of servers, if hosts are servers.
    pub(super) endpoints: Names,
    pub(super) roles: Vec<String>,
    pub(super) role_of: Vec<u32>,
}

impl Topology {
    /// Most racks of a fabric: routes and headers of schemes hold 16 bits of rack number.
    pub const MOST_RACKS: usize = 1 << 16;

    /// The topology of these nodes and links; `base` is the global number of every node's first port.
    pub(super) fn new(nodes: Nodes, base: Vec<u32>, links: Vec<Link>) -> Self {
        let Nodes { hosts: servers, names, endpoints, roles, role_of } = nodes;
        let mut number = vec![None; names.len()];
        let (mut rack_of, mut down, mut racks) = (Vec::new(), Vec::new(), Vec::new());
        for link in &links[..base[servers] as usize] {
            let rack = *number[link.to.index()].get_or_insert_with(|| {
                racks.push(link.to);
                (racks.len() - 1) as u16
            });
            rack_of.push(rack);
            down.push(link.peer_port);
        }
        Topology { servers, names, endpoints, roles, role_of, base, links, rack_of, down, racks }
    }

    /// Number of endpoints: the ports of all hosts.
    #[inline]
    pub fn hosts(&self) -> usize {
        self.base[self.servers] as usize
    }

    /// Number of nodes that are hosts, with any number of ports.
    #[inline]
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// The link by which an endpoint sends.
    #[inline]
    pub fn uplink(&self, host: HostId) -> &Link {
        &self.links[host.index()]
    }

    /// Lowers the rate at which an endpoint sends.
    pub(super) fn limit_uplink(&mut self, host: HostId, rate: Rate) {
        let link = &mut self.links[host.index()];
        link.rate = link.rate.min(rate);
    }

    /// The host to which an endpoint belongs.
    #[inline]
    pub fn node_of(&self, host: HostId) -> NodeId {
        self.uplink(host).from
    }

    /// The endpoint at a port of a host.
    #[inline]
    pub fn endpoint(&self, node: NodeId, port: PortIndex) -> HostId {
        HostId(self.link(node, port).0)
    }

    /// The name of an endpoint. A port of a server has a name of its own; else it is the name of the host, with the port's
    /// number if the host has several ports (`h3p1`).
    pub fn host_name(&self, host: HostId) -> Cow<'_, str> {
        if self.endpoints.len() > 0 {
            return self.endpoints.get(host.index()).into();
        }
        let (name, link) = (self.name(self.node_of(host)), self.uplink(host));
        match self.ports(link.from).len() {
            1 => name.into(),
            _ => format!("{name}p{}", link.port).into(),
        }
    }

    /// Number of nodes: hosts, then switches.
    #[inline]
    pub fn nodes(&self) -> usize {
        self.names.len()
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + use<> {
        (self.servers as u32..self.nodes() as u32).map(NodeId)
    }

    /// True if `node` is a host.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        node.index() < self.servers
    }

    /// The node's name, unique in the fabric.
    pub fn name(&self, node: NodeId) -> &str {
        self.names.get(node.index())
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        (0..self.nodes()).find(|&i| self.names.get(i) == name).map(|i| NodeId(i as u32))
    }

    /// The endpoint of that name, see [`Topology::host_name`].
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        if self.endpoints.len() > 0 {
            return (0..self.hosts()).find(|&h| self.endpoints.get(h) == name).map(|h| HostId(h as u32));
        }
        let port = |(host, port): (&str, &str)| {
            let node = self.find(host).filter(|&node| self.is_host(node) && self.ports(node).len() > 1)?;
            let port = port.parse().ok().filter(|&port| usize::from(port) < self.ports(node).len())?;
            Some(self.endpoint(node, PortIndex(port)))
        };
        let alone = self.find(name).filter(|&node| self.is_host(node) && self.ports(node).len() == 1);
        alone.map(|node| self.endpoint(node, PortIndex(0))).or_else(|| name.rsplit_once('p').and_then(port))
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

    /// The node that an endpoint is attached to: its switch, or the other host of a direct link.
    #[inline]
    pub fn attachment(&self, host: HostId) -> NodeId {
        self.racks[self.rack(host)]
    }

    /// Number of an endpoint's rack, an index into [`Topology::racks`].
    #[inline]
    pub fn rack(&self, host: HostId) -> usize {
        self.rack_of[host.index()] as usize
    }

    /// True if both endpoints are attached to the same node.
    pub fn same_rack(&self, a: HostId, b: HostId) -> bool {
        self.rack_of[a.index()] == self.rack_of[b.index()]
    }

    /// The nodes that endpoints are attached to, by rack.
    pub fn racks(&self) -> &[NodeId] {
        &self.racks
    }

    /// Rack of every endpoint.
    #[inline]
    pub(super) fn rack_of(&self) -> &[u16] {
        &self.rack_of
    }

    /// Port that leads down to an endpoint from the node it is attached to, by endpoint.
    #[inline]
    pub(super) fn down(&self) -> &[PortIndex] {
        &self.down
    }

    /// Number of a switch, counted from the first switch.
    #[inline]
    pub fn switch_number(&self, node: NodeId) -> usize {
        node.index() - self.servers
    }

    /// The switch of that number.
    #[inline]
    pub fn switch(&self, number: usize) -> NodeId {
        NodeId((self.servers + number) as u32)
    }

    /// Number of switches.
    pub fn switch_count(&self) -> usize {
        self.nodes() - self.servers
    }

    /// Start of every switch's ports among all ports of switches, by switch; the last entry is their number.
    pub(super) fn switch_bases(&self) -> Vec<u32> {
        let first = self.base[self.servers];
        self.base[self.servers..].iter().map(|base| base - first).collect()
    }

    /// Directed links that leave switches, in the order of their ports.
    pub(super) fn switch_links(&self) -> &[Link] {
        &self.links[self.hosts()..]
    }

    /// Rack of a switch's own hosts, by switch; [`NONE`] if it has no hosts.
    pub(super) fn rack_at(&self) -> Vec<u32> {
        let mut rack_at = vec![NONE; self.switch_count()];
        for (rack, &root) in (0..).zip(&self.racks).filter(|&(_, &root)| !self.is_host(root)) {
            rack_at[self.switch_number(root)] = rack;
        }
        rack_at
    }
}
