//! The switches of a fabric as a graph, and distances in it.

use super::groups::Groups;
use super::topology::{NONE, Topology};
use crate::{LinkId, PortIndex};
use std::collections::VecDeque;

/// The switches and the live links between them.
pub(super) struct Graph {
    /// Start of every switch's ports in `next`.
    base: Vec<u32>,
    /// The switch at the far end of every port; [`NONE`] for a host or a dead link.
    next: Vec<u32>,
}

impl Graph {
    /// All switches, and the links between them that are not in `dead`.
    pub(super) fn of(topology: &Topology, dead: &[LinkId]) -> Self {
        let next = topology.switch_links().iter().map(|link| match topology.is_host(link.to) {
            true => NONE,
            false => topology.switch_number(link.to) as u32,
        });
        let mut next: Vec<u32> = next.collect();
        let first = topology.base(topology.switch(0));
        for link in dead.iter().filter(|link| link.0 >= first) {
            next[(link.0 - first) as usize] = NONE;
        }
        Graph { base: topology.switch_bases(), next }
    }

    /// Number of switches.
    pub(super) fn switches(&self) -> usize {
        self.base.len() - 1
    }

    /// The ports of a switch that lead to switches, each with the switch at its far end.
    pub(super) fn ports(&self, switch: usize) -> impl Iterator<Item = (PortIndex, usize)> + '_ {
        let next = &self.next[self.base[switch] as usize..self.base[switch + 1] as usize];
        let all = (0..).map(PortIndex).zip(next);
        all.filter(|&(_, &next)| next != NONE).map(|(port, &next)| (port, next as usize))
    }

    /// Links from every switch to the nearest of `roots`; [`NONE`] where no path exists.
    pub(super) fn hops(&self, roots: &[usize]) -> Vec<u32> {
        let mut hops = vec![NONE; self.switches()];
        let mut queue: VecDeque<usize> = roots.iter().copied().collect();
        roots.iter().for_each(|&root| hops[root] = 0);
        while let Some(at) = queue.pop_front() {
            for (_, next) in self.ports(at) {
                if hops[next] == NONE {
                    hops[next] = hops[at] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }
}

/// Distances from every switch to one root.
pub(super) struct Distances {
    /// Number of links; [`NONE`] where no path exists.
    hops: Vec<u32>,
    /// On trees, by switch: whether the path begins with a link up, and the switch's tier.
    up: Option<Vec<(bool, u32)>>,
}

impl Distances {
    /// Whether the link from a switch to the next one is the first link of a shortest path.
    pub(super) fn lead(&self, switch: usize, next: usize) -> bool {
        let closer = self.hops[next].checked_add(1) == Some(self.hops[switch]);
        closer && self.up.as_ref().is_none_or(|up| (up[next].1 > up[switch].1) == up[switch].0)
    }

    /// Distances by the shortest paths of a graph.
    pub(super) fn shortest(graph: &Graph, root: usize) -> Self {
        Distances { hops: graph.hops(&[root]), up: None }
    }

    /// Distances by paths that go up through the tiers, then down.
    pub(super) fn up_and_down(graph: &Graph, root: usize, tier: &[u32]) -> Self {
        let switches = graph.switches();
        let mut hops = vec![NONE; switches];
        let mut up = tier.iter().map(|&tier| (true, tier)).collect::<Vec<_>>();
        let mut queue = VecDeque::from([root]);
        (hops[root], up[root].0) = (0, false);
        // From the root upwards: the switches whose path to the root only goes down.
        while let Some(at) = queue.pop_front() {
            for (_, next) in graph.ports(at) {
                if tier[next] > tier[at] && hops[next] == NONE {
                    (hops[next], up[next].0) = (hops[at] + 1, false);
                    queue.push_back(next);
                }
            }
        }
        // The other switches, from the top tier down: up to the nearest switch that reaches the root.
        let mut others: Vec<usize> = (0..switches).filter(|&switch| up[switch].0).collect();
        others.sort_by_key(|&switch| std::cmp::Reverse(tier[switch]));
        for switch in others {
            let above = graph.ports(switch).filter(|&(_, next)| tier[next] > tier[switch]);
            let nearest = above.map(|(_, next)| hops[next]).min().unwrap_or(NONE);
            hops[switch] = nearest.saturating_add(1);
        }
        Distances { hops, up: Some(up) }
    }

    /// Distances by paths over at most one global link, in groups that are fully meshed.
    pub(super) fn by_group(graph: &Graph, root: usize, groups: &Groups) -> Self {
        let group = |switch: usize| groups.of(switch).group;
        let home = group(root);
        let inside = |switch: usize| if switch == root { 0 } else { 1 };
        // Over a switch's own links to the root's group.
        let mut hops: Vec<u32> = (0..graph.switches())
            .map(|switch| match group(switch) == home {
                true => inside(switch),
                false => {
                    let over = graph.ports(switch).filter(|&(_, next)| group(next) == home);
                    over.map(|(_, next)| inside(next) + 1).min().unwrap_or(NONE)
                }
            })
            .collect();
        let mut best = vec![NONE; groups.count()];
        for (switch, &own) in hops.iter().enumerate() {
            let best = &mut best[usize::from(group(switch))];
            *best = own.min(*best);
        }
        for (switch, own) in hops.iter_mut().enumerate() {
            *own = (*own).min(best[usize::from(group(switch))].saturating_add(1));
        }
        Distances { hops, up: None }
    }
}
