//! Where the state of every node is: a [`Location`] gives the node's group, and its place there.

use super::lanes::{MailWords, WORDS_PER_LINE};
use crate::division;
use model::{Fabric, NodeId, PortIndex};

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

/// Parts of a step from one group to the next.
const FINE: u64 = 1 << 16;

impl Layout {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let groups = division::groups(fabric);
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

    /// The groups, with neighbours close to each other: those with hosts come in the order of their numbers, and each of the others
    /// where the groups beside it have their middle.
    pub(super) fn neighbourhoods(&self, fabric: &Fabric) -> Vec<usize> {
        let middle = |group: usize| {
            let links = || self.groups[group].iter().flat_map(|node| fabric.ports(*node));
            if links().any(|link| fabric.is_host(link.from)) {
                return group as u64 * FINE;
            }
            let beside: Vec<u64> = links().map(|link| self.locate(link.to).group.into()).collect();
            beside.iter().sum::<u64>() * FINE / beside.len().max(1) as u64
        };
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by_cached_key(|group| (middle(*group), *group));
        order
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
