//! Equal-cost routes, derived from the links and kept small.
//!
//! Two things repeat in real fabrics, and each is worked out once:
//!
//! * Racks whose switches have the same neighbours are *twins*: from every switch but those neighbours, the paths to
//!   one twin are the paths to the other. One breadth-first search serves a whole pod.
//! * Switches with the same routes to all racks share one row of the table. The entry for a switch's own rack is never
//!   used, so all ToRs of a leaf-spine fabric share one row.

use super::gateways::Gateways;
use super::graph::{Distances, Graph};
use super::groups::Groups;
use super::port_sets::{PortSets, set};
use super::topology::{FabricError, NONE, Topology};
use crate::{LinkId, PortIndex};
use std::collections::BTreeMap;

/// The routes of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    racks: usize,
    /// Number of the row, by switch.
    row_of: Vec<u32>,
    /// Rack of the switch's own hosts, by switch.
    rack_at: Vec<u32>,
    /// By switch.
    tier: Vec<u32>,
    /// Rows with one entry per rack. The entry 0, an empty set, means that no path leads there.
    rows: Vec<u32>,
    pool: Vec<PortIndex>,
}

impl Routes {
    #[inline]
    pub(super) fn row(&self, switch: usize) -> &[u32] {
        let start = self.row_of[switch] as usize * self.racks;
        &self.rows[start..start + self.racks]
    }

    #[inline]
    pub(super) fn rack_at(&self, switch: usize) -> u32 {
        self.rack_at[switch]
    }

    #[inline]
    pub(super) fn pool(&self) -> &[PortIndex] {
        &self.pool
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    pub(super) fn tier(&self, switch: usize) -> usize {
        self.tier[switch] as usize
    }

    /// The routes of a whole fabric, and the gateways of its groups.
    pub(super) fn derive(
        topology: &Topology,
        groups: Option<&Groups>,
    ) -> Result<(Self, Option<Gateways>), FabricError> {
        let mut sets = PortSets::default();
        let gateways = groups.map(|groups| Gateways::find(topology, groups, &mut sets)).transpose()?;
        let graph = Graph::of(topology, &[]);
        let distances = |root| match groups {
            Some(groups) => Distances::by_group(&graph, root, groups),
            None => Distances::shortest(&graph, root),
        };
        Ok((Self::lay(topology, &graph, groups, distances, sets, None)?, gateways))
    }

    /// The routes of a fabric without groups that avoid the links of `dead`, which holds both directions in ascending
    /// order. `self` are the routes of the whole fabric.
    pub(super) fn around(
        &self,
        topology: &Topology,
        dead: &[LinkId],
        shape: Shape,
    ) -> Result<Self, FabricError> {
        let graph = Graph::of(topology, dead);
        let distances = |root| match shape {
            Shape::Graph => Distances::shortest(&graph, root),
            Shape::Tree => Distances::up_and_down(&graph, root, &self.tier),
        };
        let whole = (!dead.is_empty()).then_some(self);
        Self::lay(topology, &graph, None, distances, PortSets::default(), whole)
    }

    /// The shape of routes around dead links: [`Shape::Tree`] if the routes of the whole fabric go up, then down.
    pub(super) fn shape(&self, topology: &Topology) -> Shape {
        let tier = &self.tier;
        let graph = Graph::of(topology, &[]);
        let tiered = (0..tier.len()).all(|switch| {
            tier[switch] > 0 && graph.ports(switch).all(|(_, next)| tier[switch].abs_diff(tier[next]) == 1)
        });
        match tiered && self.around(topology, &[], Shape::Tree).as_ref() == Ok(self) {
            true => Shape::Tree,
            false => Shape::Graph,
        }
    }

    /// Routes by the distances from every switch to the root of each class of racks. Where no path exists, an entry stays
    /// empty, or becomes the set of `whole`.
    fn lay(
        topology: &Topology,
        graph: &Graph,
        groups: Option<&Groups>,
        distances: impl Fn(usize) -> Distances,
        mut sets: PortSets,
        whole: Option<&Routes>,
    ) -> Result<Self, FabricError> {
        let switches = graph.switches();
        let rack_at = topology.rack_at();
        let classes = Classes::of(graph, &rack_at, topology.racks().len(), groups);
        // By class and switch.
        let mut common = Vec::with_capacity(classes.roots.len() * switches);
        for &root in &classes.roots {
            let distances = distances(root);
            // In a fabric of groups no path enters a third group.
            let group = |switch: usize| groups.map_or(0, |groups| groups.of(switch).group);
            for switch in 0..switches {
                common.push(sets.entry(graph.ports(switch).filter_map(|(port, next)| {
                    // The root itself reaches its twins by all its neighbours.
                    let closer = distances.lead(switch, next) || switch == root;
                    let direct = group(next) == group(switch) || group(next) == group(root);
                    (closer && direct).then_some(port)
                }))?);
            }
        }
        let mut rows = Rows::new(topology);
        let mut row = vec![0; topology.racks().len()];
        for switch in 0..switches {
            for (entry, &class) in row.iter_mut().zip(&classes.of_rack) {
                *entry = if class == NONE { 0 } else { common[class as usize * switches + switch] };
            }
            let neighbours = graph.ports(switch).filter(|&(_, next)| rack_at[next] != NONE);
            let mut near: Vec<(u32, PortIndex)> =
                neighbours.map(|(port, next)| (rack_at[next], port)).collect();
            near.sort();
            for ports in near.chunk_by(|a, b| a.0 == b.0) {
                row[ports[0].0 as usize] = sets.entry(ports.iter().map(|&(_, port)| port))?;
            }
            if let Some(whole) = whole {
                whole.fill(&mut row, switch, &mut sets)?;
            }
            rows.push(&row);
        }
        let tors: Vec<usize> = (0..switches).filter(|&s| rack_at[s] != NONE).collect();
        let tier = graph.hops(&tors).into_iter().map(|hops| hops.wrapping_add(1)).collect();
        Ok(Routes { tier, rack_at, pool: sets.into_pool(), ..rows.routes })
    }

    /// Other routes of the same fabric: one row for every switch, in order, with entries of `sets`. An empty entry
    /// becomes the set of `self`.
    pub(super) fn with_rows(
        &self,
        topology: &Topology,
        all: impl Iterator<Item = Vec<u32>>,
        mut sets: PortSets,
    ) -> Result<Self, FabricError> {
        let mut rows = Rows::new(topology);
        for (switch, mut row) in all.enumerate() {
            self.fill(&mut row, switch, &mut sets)?;
            rows.push(&row);
        }
        let (rack_at, tier) = (self.rack_at.clone(), self.tier.clone());
        Ok(Routes { rack_at, tier, pool: sets.into_pool(), ..rows.routes })
    }

    /// Fills the empty entries of another row of the switch with the sets of its row here.
    fn fill(&self, row: &mut [u32], switch: usize, sets: &mut PortSets) -> Result<(), FabricError> {
        for (entry, &whole) in row.iter_mut().zip(self.row(switch)) {
            if *entry == 0 {
                *entry = sets.entry(set(&self.pool, whole).iter().copied())?;
            }
        }
        Ok(())
    }
}

/// Rows of routes, each stored once.
struct Rows {
    routes: Routes,
    numbers: BTreeMap<Vec<u32>, u32>,
}

impl Rows {
    fn new(topology: &Topology) -> Self {
        let routes = Routes { racks: topology.racks().len(), ..Routes::default() };
        Rows { routes, numbers: BTreeMap::new() }
    }

    /// Adds the row of the next switch.
    fn push(&mut self, row: &[u32]) {
        let next = self.numbers.len() as u32;
        let number = self.numbers.get(row).copied().unwrap_or_else(|| {
            self.numbers.insert(row.to_vec(), next);
            self.routes.rows.extend_from_slice(row);
            next
        });
        self.routes.row_of.push(number);
    }
}

/// The paths that routes take around dead links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Shortest paths.
    Graph,
    /// Up, then down.
    Tree,
}

/// Classes of racks whose switches have the same neighbours.
struct Classes {
    /// Class, by rack; [`NONE`] for a rack that is a host at the end of a direct link.
    of_rack: Vec<u32>,
    /// One switch of every class.
    roots: Vec<usize>,
}

impl Classes {
    fn of(graph: &Graph, rack_at: &[u32], racks: usize, groups: Option<&Groups>) -> Self {
        let mut classes = Classes { of_rack: vec![NONE; racks], roots: Vec::new() };
        let mut known = BTreeMap::<Vec<usize>, u32>::new();
        for (switch, &rack) in rack_at.iter().enumerate().filter(|&(_, &rack)| rack != NONE) {
            let mut neighbours: Vec<usize> = graph.ports(switch).map(|(_, next)| next).collect();
            neighbours.sort_unstable();
            neighbours.dedup();
            // Paths to another group differ from paths within one, so twins belong to one group.
            neighbours.extend(groups.map(|groups| usize::from(groups.of(switch).group)));
            classes.of_rack[rack as usize] = *known.entry(neighbours).or_insert_with(|| {
                classes.roots.push(switch);
                classes.roots.len() as u32 - 1
            });
        }
        classes
    }
}
