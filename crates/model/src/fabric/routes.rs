//! Equal-cost routes, derived from the links and kept small.
//!
//! Two things repeat in real fabrics, and each is worked out once:
//!
//! * Racks whose switches have the same neighbours are *twins*: seen from any switch but those neighbours, the
//!   way to one is the way to the other. One breadth-first search serves a whole pod.
//! * Switches with the same routes to all racks share one row of the table. (What a row says of the switch's own
//!   rack is not used, so all ToRs of a leaf-spine fabric share one.)

use super::groups::Groups;
use super::{Fabric, FabricError};
use crate::{LinkId, PortIndex};
use std::collections::{BTreeMap, VecDeque};

/// Stands for no rack and no switch.
pub(super) const NONE: u32 = u32::MAX;
/// An entry holds the length of its set in this many bits, and above them where the set starts in the pool.
const LENGTH_BITS: u32 = 10;

/// The routes of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    racks: usize,
    /// By switch: number of its row, the rack of its own hosts, its tier.
    row_of: Vec<u32>,
    rack_at: Vec<u32>,
    tier: Vec<u32>,
    /// Rows of one entry per rack. The entry 0, an empty set, says that no path leads there.
    rows: Vec<u32>,
    pool: Vec<PortIndex>,
}

/// The ports that an entry names.
#[inline]
pub(super) fn set(pool: &[PortIndex], entry: u32) -> &[PortIndex] {
    let start = (entry >> LENGTH_BITS) as usize;
    &pool[start..start + (entry & ((1 << LENGTH_BITS) - 1)) as usize]
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

    /// The routes of a fabric whose links and racks are laid.
    pub(super) fn derive(
        fabric: &Fabric,
        groups: Option<Groups>,
    ) -> Result<(Self, Option<Groups>), FabricError> {
        Self::lay(fabric, groups, &[], Shape::Graph)
    }

    /// How routes around dead links go: up and then down if the routes of the whole fabric do.
    pub(super) fn shape(fabric: &Fabric) -> Shape {
        let tier = &fabric.routes.tier;
        let graph = Graph::of(fabric, &[]);
        let tiered = (0..tier.len()).all(|switch| {
            tier[switch] > 0 && graph.ports(switch).all(|(_, next)| tier[switch].abs_diff(tier[next]) == 1)
        });
        match tiered && Self::around(fabric, &[], Shape::Tree).as_ref() == Ok(&fabric.routes) {
            true => Shape::Tree,
            false => Shape::Graph,
        }
    }

    /// The routes without links of `dead`, which holds both directions in ascending order.
    pub(super) fn around(fabric: &Fabric, dead: &[LinkId], shape: Shape) -> Result<Self, FabricError> {
        Ok(Self::lay(fabric, None, dead, shape)?.0)
    }

    fn lay(
        fabric: &Fabric,
        mut groups: Option<Groups>,
        dead: &[LinkId],
        shape: Shape,
    ) -> Result<(Self, Option<Groups>), FabricError> {
        let graph = Graph::of(fabric, dead);
        let switches = graph.base.len() - 1;
        let mut rack_at = vec![NONE; switches];
        for (rack, &root) in (0..).zip(&fabric.racks) {
            if !fabric.is_host(root) {
                rack_at[root.index() - fabric.hosts] = rack;
            }
        }
        let mut sets = Sets::default();
        let classes = Classes::of(&graph, &rack_at, fabric.racks.len(), groups.as_ref());
        // By class and switch.
        let mut common = Vec::with_capacity(classes.roots.len() * switches);
        if let Some(groups) = &mut groups {
            groups.find_ways(fabric, |ports| sets.entry(ports.iter().copied()))?;
        }
        for &root in &classes.roots {
            let ways = match (&groups, shape) {
                (Some(groups), _) => Ways { hops: graph.hops_by_group(root, groups), up: None },
                (None, Shape::Graph) => Ways { hops: graph.hops(&[root]), up: None },
                (None, Shape::Tree) => graph.up_and_down(root, &fabric.routes.tier),
            };
            // In a fabric of groups nobody goes through a third one.
            let group = |switch: usize| groups.as_ref().map_or(0, |groups| groups.of[switch].0);
            for switch in 0..switches {
                common.push(sets.entry(graph.ports(switch).filter_map(|(port, next)| {
                    // From the root itself: the way to its twins, by all its neighbours.
                    let closer = ways.lead(switch, next) || switch == root;
                    let direct = group(next) == group(switch) || group(next) == group(root);
                    (closer && direct).then_some(port)
                }))?);
            }
        }
        let mut rows = Rows::new(fabric);
        let mut row = vec![0; fabric.racks.len()];
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
            if !dead.is_empty() {
                sets.fill(&mut row, fabric, switch)?;
            }
            rows.push(&row);
        }
        let Rows { mut routes, .. } = rows;
        let tors: Vec<usize> = (0..switches).filter(|&s| rack_at[s] != NONE).collect();
        routes.tier = graph.hops(&tors).into_iter().map(|hops| hops.wrapping_add(1)).collect();
        routes.rack_at = rack_at;
        routes.pool = sets.pool;
        Ok((routes, groups))
    }
}

impl Routes {
    /// From the row of every switch, in their order, with entries of `sets`. Where nothing is left: as in the whole fabric.
    pub(super) fn from_rows(
        fabric: &Fabric,
        all: impl Iterator<Item = Vec<u32>>,
        mut sets: Sets,
    ) -> Result<Self, FabricError> {
        let mut rows = Rows::new(fabric);
        for (switch, mut row) in all.enumerate() {
            sets.fill(&mut row, fabric, switch)?;
            rows.push(&row);
        }
        let (rack_at, tier) = (fabric.routes.rack_at.clone(), fabric.routes.tier.clone());
        Ok(Routes { rack_at, tier, pool: sets.pool, ..rows.routes })
    }
}

/// Rows of routes, each kept once.
struct Rows {
    routes: Routes,
    numbers: BTreeMap<Vec<u32>, u32>,
}

impl Rows {
    fn new(fabric: &Fabric) -> Self {
        let routes = Routes { racks: fabric.racks.len(), ..Routes::default() };
        Rows { routes, numbers: BTreeMap::new() }
    }

    /// The row of the next switch.
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

/// How routes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// By the shortest paths.
    Graph,
    /// Up, then down.
    Tree,
}

/// How far it is from every switch to a root.
struct Ways {
    /// Links, [`NONE`] where no way leads there.
    hops: Vec<u32>,
    /// On trees: whether the way from a switch begins with a link up, and its tier.
    up: Option<Vec<(bool, u32)>>,
}

impl Ways {
    /// Whether the link from a switch to the next one is on such a way.
    fn lead(&self, switch: usize, next: usize) -> bool {
        let closer = self.hops[next].checked_add(1) == Some(self.hops[switch]);
        closer && self.up.as_ref().is_none_or(|up| (up[next].1 > up[switch].1) == up[switch].0)
    }
}

/// Sets of ports, each kept once.
#[derive(Default)]
pub(super) struct Sets {
    pool: Vec<PortIndex>,
    known: BTreeMap<Vec<PortIndex>, u32>,
    set: Vec<PortIndex>,
}

impl Sets {
    /// The entry for a set of ports in ascending order.
    pub(super) fn entry(&mut self, ports: impl Iterator<Item = PortIndex>) -> Result<u32, FabricError> {
        self.set.clear();
        self.set.extend(ports);
        if self.set.is_empty() {
            return Ok(0);
        }
        if let Some(&entry) = self.known.get(&self.set) {
            return Ok(entry);
        }
        if self.pool.len() >= 1 << (32 - LENGTH_BITS) {
            return Err(FabricError::TooManyRoutes);
        }
        let entry = (self.pool.len() as u32) << LENGTH_BITS | self.set.len() as u32;
        self.pool.extend_from_slice(&self.set);
        self.known.insert(self.set.clone(), entry);
        Ok(entry)
    }

    /// Fills the empty entries of a switch's row with those of the whole fabric.
    fn fill(&mut self, row: &mut [u32], fabric: &Fabric, switch: usize) -> Result<(), FabricError> {
        for (entry, &whole) in row.iter_mut().zip(fabric.routes.row(switch)) {
            if *entry == 0 {
                *entry = self.entry(set(fabric.routes.pool(), whole).iter().copied())?;
            }
        }
        Ok(())
    }
}

/// The switches and what joins them.
pub(super) struct Graph {
    /// Start of every switch's ports in `next`.
    base: Vec<u32>,
    /// The switch at the far end of every port, [`NONE`] for a host.
    next: Vec<u32>,
}

impl Graph {
    /// All switches, and the links between them that are not in `dead`.
    pub(super) fn of(fabric: &Fabric, dead: &[LinkId]) -> Self {
        let first = fabric.base[fabric.hosts];
        let next = fabric.links[first as usize..].iter().map(|link| match fabric.is_host(link.to) {
            true => NONE,
            false => link.to.0 - fabric.hosts as u32,
        });
        let mut next: Vec<u32> = next.collect();
        for link in dead.iter().filter(|link| link.0 >= first) {
            next[(link.0 - first) as usize] = NONE;
        }
        Graph { base: fabric.base[fabric.hosts..].iter().map(|b| b - first).collect(), next }
    }

    /// The ports of a switch that lead to switches, and to which.
    pub(super) fn ports(&self, switch: usize) -> impl Iterator<Item = (PortIndex, usize)> + '_ {
        let next = &self.next[self.base[switch] as usize..self.base[switch + 1] as usize];
        let all = (0..).map(PortIndex).zip(next);
        all.filter(|&(_, &next)| next != NONE).map(|(port, &next)| (port, next as usize))
    }

    /// Links from every switch to the nearest of `roots`; [`NONE`] where none leads there.
    fn hops(&self, roots: &[usize]) -> Vec<u32> {
        let mut hops = vec![NONE; self.base.len() - 1];
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

    /// The ways to `root` that go up through the tiers, then down.
    fn up_and_down(&self, root: usize, tier: &[u32]) -> Ways {
        let switches = self.base.len() - 1;
        let mut hops = vec![NONE; switches];
        let mut up = tier.iter().map(|&tier| (true, tier)).collect::<Vec<_>>();
        let mut queue = VecDeque::from([root]);
        (hops[root], up[root].0) = (0, false);
        // From the root up: switches from which it is all the way down.
        while let Some(at) = queue.pop_front() {
            for (_, next) in self.ports(at) {
                if tier[next] > tier[at] && hops[next] == NONE {
                    (hops[next], up[next].0) = (hops[at] + 1, false);
                    queue.push_back(next);
                }
            }
        }
        // The others, from the top: up to the nearest of those.
        let mut others: Vec<usize> = (0..switches).filter(|&switch| up[switch].0).collect();
        others.sort_by_key(|&switch| std::cmp::Reverse(tier[switch]));
        for switch in others {
            let above = self.ports(switch).filter(|&(_, next)| tier[next] > tier[switch]);
            let nearest = above.map(|(_, next)| hops[next]).min().unwrap_or(NONE);
            hops[switch] = nearest.saturating_add(1);
        }
        Ways { hops, up: Some(up) }
    }
}

impl Graph {
    /// Links from every switch to `root` over one link between groups at most, in groups whose switches are all joined
    /// with each other.
    fn hops_by_group(&self, root: usize, groups: &Groups) -> Vec<u32> {
        let group = |switch: usize| groups.of[switch].0;
        let home = group(root);
        let inside = |switch: usize| if switch == root { 0 } else { 1 };
        // Over its own links to the root's group.
        let mut hops: Vec<u32> = (0..groups.of.len())
            .map(|switch| match group(switch) == home {
                true => inside(switch),
                false => {
                    let over = self.ports(switch).filter(|&(_, next)| group(next) == home);
                    over.map(|(_, next)| inside(next) + 1).min().unwrap_or(NONE)
                }
            })
            .collect();
        let mut best = vec![NONE; groups.count];
        for (switch, &own) in hops.iter().enumerate() {
            let best = &mut best[usize::from(group(switch))];
            *best = own.min(*best);
        }
        for (switch, own) in hops.iter_mut().enumerate() {
            *own = (*own).min(best[usize::from(group(switch))].saturating_add(1));
        }
        hops
    }
}

/// Racks whose switches have the same neighbours.
struct Classes {
    /// [`NONE`] for a rack that is a host at the end of a cable.
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
            // Ways to another group are not those to the own one.
            neighbours.extend(groups.map(|groups| usize::from(groups.of[switch].0)));
            classes.of_rack[rack as usize] = *known.entry(neighbours).or_insert_with(|| {
                classes.roots.push(switch);
                classes.roots.len() as u32 - 1
            });
        }
        classes
    }
}
