//! The division of a fabric into groups, which threads share: a rack with its hosts, or a few switches above the
//! racks. A [`Location`] gives a node's group, and where its state is.

use super::lanes::{MailWords, WORDS_PER_LINE};
use model::{Fabric, NodeId, PortIndex, Time};

/// Most groups: many more than threads, and few enough that the step between two windows costs nothing. Our choice.
const MOST_GROUPS: usize = 64;

/// The place of a node's state in the engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Location {
    pub(super) group: u32,
    /// Index of the node among the nodes of its group, and of its first port among the ports of its group.
    pub(super) index: u32,
    pub(super) first_port: u32,
    /// First word of the node in the mail table of ports.
    pub(super) word: u32,
}

/// Groups of nodes, and the location of every node.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) groups: Vec<Vec<NodeId>>,
    locations: Vec<Location>,
    /// First word of each group in the mail table of nodes, and the length of the table.
    node_words: Vec<u32>,
    /// Length of the mail table of ports, in words.
    port_words: u32,
}

impl Layout {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let groups = groups(fabric);
        let mut locations = vec![Location::default(); fabric.nodes()];
        let mut node_words = vec![0];
        let mut port_words = 0;
        for (g, nodes) in groups.iter().enumerate() {
            let mut first_port = 0;
            for (index, node) in nodes.iter().enumerate() {
                let ports = fabric.ports(*node).len() as u32;
                locations[node.index()] =
                    Location { group: g as u32, index: index as u32, first_port, word: port_words };
                first_port += ports;
                port_words += ports.div_ceil(64);
            }
            let line = |words: u32| words.next_multiple_of(WORDS_PER_LINE as u32);
            node_words.push(line(node_words[g] + (nodes.len() as u32).div_ceil(64)));
            port_words = line(port_words);
        }
        Layout { groups, locations, node_words, port_words }
    }

    pub(super) fn locate(&self, node: NodeId) -> Location {
        self.locations[node.index()]
    }

    /// Index of a port among the ports of its group.
    pub(super) fn port(&self, node: NodeId, port: PortIndex) -> u32 {
        self.locate(node).first_port + port.0 as u32
    }

    /// First word of a group in the mail table of nodes.
    pub(super) fn node_word(&self, group: usize) -> u32 {
        self.node_words[group]
    }

    /// Lengths of the tables of nodes and of ports that have mail.
    pub(super) fn mail_words(&self) -> MailWords {
        MailWords { nodes: *self.node_words.last().unwrap_or(&0) as usize, ports: self.port_words as usize }
    }
}

/// Groups of whole units. Units with hosts come first, then others in the order of their numbers, so that neighbours
/// share a group.
fn groups(fabric: &Fabric) -> Vec<Vec<NodeId>> {
    let fair = fabric.links().len().div_ceil(MOST_GROUPS);
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    let mut room = 0;
    for unit in units(fabric) {
        let weight = weight(fabric, &unit);
        match groups.last_mut() {
            Some(group) if room >= weight => group.extend(unit),
            _ => {
                groups.push(unit);
                room = fair;
            }
        }
        room = room.saturating_sub(weight);
    }
    groups
}

/// Fewest units of equal size that are left when short links join nodes. Our choice: enough for as many threads.
const FEWEST_UNITS: usize = 8;

/// Nodes that must share a group. Short links join their ends, so that the window can be longer than their delay. The
/// longest link that counts as short leaves enough units, or none larger than a rack.
fn units(fabric: &Fabric) -> Vec<Vec<NodeId>> {
    let mut delays: Vec<Time> = fabric.links().iter().map(|link| link.delay).collect();
    delays.sort_unstable();
    delays.dedup();
    let heaviest = |units: &[Vec<NodeId>]| units.iter().map(|unit| weight(fabric, unit)).max().unwrap_or(0);
    let racks = clusters(fabric, Time::ZERO);
    let most = heaviest(&racks).max(fabric.links().len() / FEWEST_UNITS);
    let fits = |short: &Time| heaviest(&clusters(fabric, *short)) <= most;
    // The shortest delay joins no nodes.
    match delays.get(1..).unwrap_or_default().partition_point(fits) {
        0 => racks,
        count => clusters(fabric, delays[count]),
    }
}

/// Nodes joined by links shorter than `short`. A host with no such link joins its switch: together they are a rack.
fn clusters(fabric: &Fabric, short: Time) -> Vec<Vec<NodeId>> {
    let mut leader: Vec<usize> = (0..fabric.nodes()).collect();
    fn find(leader: &mut [usize], mut node: usize) -> usize {
        while leader[node] != node {
            leader[node] = leader[leader[node]];
            node = leader[node];
        }
        node
    }
    let mut join = |a: NodeId, b: NodeId| {
        let (a, b) = (find(&mut leader, a.index()), find(&mut leader, b.index()));
        leader[a.max(b)] = a.min(b);
    };
    for link in fabric.links().iter().filter(|link| link.delay < short) {
        join(link.from, link.to);
    }
    for host in (0..fabric.servers() as u32).map(NodeId) {
        let links = fabric.ports(host);
        if !fabric.is_host(links[0].to) && links.iter().all(|link| link.delay >= short) {
            join(host, links[0].to);
        }
    }
    // A leader has the lowest number of its cluster.
    let mut unit_of = vec![0; fabric.nodes()];
    let mut units: Vec<Vec<NodeId>> = Vec::new();
    for node in 0..fabric.nodes() {
        let leader = find(&mut leader, node);
        if leader == node {
            unit_of[node] = units.len();
            units.push(Vec::new());
        }
        units[unit_of[leader]].push(NodeId(node as u32));
    }
    units
}

/// Number of ports of some nodes.
fn weight(fabric: &Fabric, nodes: &[NodeId]) -> usize {
    nodes.iter().map(|node| fabric.ports(*node).len()).sum()
}

/// Number of the group of every node.
pub(crate) fn group_of_each_node(fabric: &Fabric) -> Vec<u32> {
    let mut group_of = vec![0; fabric.nodes()];
    for (number, group) in (0..).zip(groups(fabric)) {
        group.iter().for_each(|node| group_of[node.index()] = number);
    }
    group_of
}

/// Number of groups that the window engine makes of a fabric.
pub(crate) fn count(fabric: &Fabric) -> usize {
    groups(fabric).len()
}
