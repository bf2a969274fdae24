//! The division of a fabric into groups of nodes, which threads share: a rack with its hosts, or a few switches above the
//! racks. Links between groups bound the length of a window.

use model::{Fabric, NodeId, Time};

/// Most groups: many more than threads, and few enough that the step between two windows costs nothing. Our choice.
const MOST_GROUPS: usize = 64;

/// Groups of whole units. Units with hosts come first, then others in the order of their numbers, so that neighbours
/// share a group.
pub(crate) fn groups(fabric: &Fabric) -> Vec<Vec<NodeId>> {
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
