//! Routes in a fabric of groups that avoid dead links.
//!
//! A path crosses as few global links as possible. Between two groups that is one link. Where two groups have lost all
//! their links, a path leads over a third group, as a detour does; so does a path to a switch that has lost all its local
//! links. Among paths with equally few crossings [`MinimalPaths`] decides, as in the whole fabric. Where two switches of a
//! group have lost the link between them, a path leads over other switches of the group.
//!
//! # Why these routes are free of deadlock
//!
//! They need the channels of [`super::groups`], and no more. A path over a third group has three legs, like a detour.
//! Inside a group several links may follow each other on one leg, and therefore in one channel. An order of the group's
//! switches keeps them from waiting for each other in a circle. A link to a switch that is earlier in the order leads
//! *up*, any other link leads *down*. On each leg a path goes up, then down, and never up again (up*\/down*: Schroeder et
//! al., "Autonet: a High-speed, Self-configuring Local Area Network Using Point-to-point Links", IEEE J. on Selected
//! Areas in Communications 9(8), 1991). A packet that came up waits for a link that lies further up or leads down; a
//! packet that came down waits for a link that lies further down. So the order of buffers in [`super::groups`] still
//! holds once the local links of each leg are sorted in this order.
//!
//! The order is that of a breadth-first search, so every switch has a path up to the first switch, and all switches have
//! paths to each other. The search begins at a switch that loses as few links as possible during the whole run. If that
//! switch loses none, the order never changes; nor does the order of one group change while only other groups fail.
//! Packets that are in flight when the order changes could wait in a circle with packets of the new order; nothing here
//! excludes that.
//!
//! A packet may have no route left where it is: routes have changed, and the packet has used up its legs, or it came down
//! and would have to go up. It then takes the route of the whole fabric, and is lost on the dead link there.

use super::graph::Graph;
use super::groups::{Groups, MOST_CHANNELS, MinimalPaths, PortKind};
use super::port_sets::PortSets;
use super::routes::Routes;
use super::topology::{FabricError, NONE, Topology};
use crate::{LinkId, PortIndex, RouteState};
use std::collections::VecDeque;

/// The local link by which a packet came to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CameBy {
    /// None: the packet's leg begins here.
    Nothing,
    /// A link that leads up.
    Up,
    /// A link that leads down.
    Down,
}

const ALL: [CameBy; 3] = [CameBy::Nothing, CameBy::Up, CameBy::Down];

/// A packet at a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) switch: usize,
    /// Port at which the packet came in, counted over all switches.
    pub(super) port: usize,
    pub(super) kind: PortKind,
    pub(super) state: RouteState,
}

/// The routes that avoid dead links.
///
/// A *target* is a rack or, numbered after all racks, a group, which stands for any of its switches.
#[derive(Clone, Debug)]
pub(super) struct SurvivingRoutes {
    racks: usize,
    groups: usize,
    /// By switch, [`CameBy`] and target: the entry of the ports by which a packet goes on; 0 if no route is left.
    entries: Vec<u32>,
    /// By switch, [`CameBy`] and target: number of global links that the packet has to cross.
    crossings: Vec<u8>,
    /// By port of a switch: whether packets that come in there have come down.
    down: Vec<bool>,
    /// Switch of a rack, by rack.
    switch_of: Vec<usize>,
    /// By switch and number in its group: whether a live link joins the two.
    joined: Vec<bool>,
    /// Most switches in a group.
    members: usize,
    /// By group and rack: whether a packet reaches the rack with one crossing from any switch at which it enters the
    /// group.
    over: Vec<bool>,
    /// Most crossings on leg 0.
    most: u8,
}

/// Distances to a target, in links, with a given number of crossings; by switch, [`NONE`] where no path exists.
struct Layer {
    /// 0 at the target, and the distance over a global link; [`NONE`] at switches that must take a local link first.
    direct: Vec<u32>,
    /// By paths that go up, then down.
    free: Vec<u32>,
    /// By paths that only go down.
    down_only: Vec<u32>,
}

impl Layer {
    fn from(&self, came_by: CameBy) -> &[u32] {
        if came_by == CameBy::Down { &self.down_only } else { &self.free }
    }
}

struct Search<'a> {
    groups: &'a Groups,
    graph: &'a Graph,
    /// All switches; those of one group are in its up/down order.
    order: Vec<usize>,
    /// Position of a switch in `order`, by switch.
    position: Vec<usize>,
}

impl<'a> Search<'a> {
    /// `fails`: local links that are ever dead, by switch.
    fn new(groups: &'a Groups, graph: &'a Graph, fails: &[u32]) -> Self {
        let switches = groups.switches();
        let mut steady: Vec<usize> = (0..switches).collect();
        steady.sort_by_key(|&switch| (fails[switch], switch));
        let mut steadiness = vec![0; switches];
        steady.iter().enumerate().for_each(|(i, &switch)| steadiness[switch] = i);
        let (mut order, mut seen) = (Vec::with_capacity(switches), vec![false; switches]);
        for &root in &steady {
            let mut queue = VecDeque::new();
            if !std::mem::replace(&mut seen[root], true) {
                queue.push_back(root);
            }
            while let Some(at) = queue.pop_front() {
                order.push(at);
                let group = groups.of(at).group;
                let beside = graph.ports(at).map(|(_, next)| next).filter(|&n| groups.of(n).group == group);
                let mut beside: Vec<usize> = beside.collect();
                beside.sort_by_key(|&next| steadiness[next]);
                queue.extend(beside.into_iter().filter(|&next| !std::mem::replace(&mut seen[next], true)));
            }
        }
        let mut position = vec![0; switches];
        order.iter().enumerate().for_each(|(i, &switch)| position[switch] = i);
        Search { groups, graph, order, position }
    }

    fn same_group(&self, a: usize, b: usize) -> bool {
        self.groups.of(a).group == self.groups.of(b).group
    }

    /// Whether the link from one switch to another switch of its group leads up.
    fn leads_up(&self, from: usize, to: usize) -> bool {
        self.position[to] < self.position[from]
    }

    /// Distances over local links to the switches whose distance `direct` gives.
    fn layer(&self, direct: Vec<u32>) -> Layer {
        let beside =
            |at: usize| self.graph.ports(at).map(|(_, n)| n).filter(move |&n| self.same_group(at, n));
        let mut down_only = direct.clone();
        for &at in self.order.iter().rev() {
            let below = beside(at).filter(|&next| !self.leads_up(at, next)).map(|next| down_only[next]);
            down_only[at] = down_only[at].min(below.min().unwrap_or(NONE).saturating_add(1));
        }
        let mut free = direct.clone();
        for &at in &self.order {
            let far = |next| if self.leads_up(at, next) { free[next] } else { down_only[next] };
            let nearest = beside(at).map(far).min().unwrap_or(NONE);
            free[at] = free[at].min(nearest.saturating_add(1));
        }
        Layer { direct, free, down_only }
    }

    /// Distances with one crossing more.
    fn beyond(&self, layer: &Layer) -> Layer {
        let over = |at: usize| {
            let across = self.graph.ports(at).filter(|&(_, next)| !self.same_group(at, next));
            across.map(|(_, next)| layer.free[next]).min().unwrap_or(NONE).saturating_add(1)
        };
        self.layer((0..self.order.len()).map(over).collect())
    }

    /// Layers of a target, by number of crossings, until every switch has a path or `most` crossings are reached.
    fn layers(&self, is_target: impl Fn(usize) -> bool, most: u8) -> Vec<Layer> {
        let switches = self.order.len();
        let direct = (0..switches).map(|switch| if is_target(switch) { 0 } else { NONE }).collect();
        let mut layers = vec![self.layer(direct)];
        let reached = |layers: &[Layer], at: usize| layers.iter().any(|layer| layer.free[at] != NONE);
        while layers.len() <= usize::from(most) && !(0..switches).all(|at| reached(&layers, at)) {
            layers.extend(layers.last().map(|last| self.beyond(last)));
        }
        layers
    }

    /// The ports by which a packet goes on from a switch, and the crossings before it; `None` if no path is left.
    fn onward(&self, layers: &[Layer], at: usize, came_by: CameBy) -> Option<(Vec<PortIndex>, u8)> {
        let crossings = layers.iter().position(|layer| layer.from(came_by)[at] != NONE)?;
        let (layer, beyond) = (&layers[crossings], crossings.checked_sub(1).map(|less| &layers[less]));
        let far = layer.from(came_by)[at];
        if crossings == 1 && self.groups.minimal == MinimalPaths::AnyLink {
            let leads = |next: usize| match self.same_group(at, next) {
                true => came_by == CameBy::Nothing && layer.direct[next] != NONE,
                false => beyond.is_some_and(|layer| layer.free[next] != NONE),
            };
            let ports = self.graph.ports(at).filter(|&(_, next)| leads(next));
            let ports: Vec<PortIndex> = ports.map(|(port, _)| port).collect();
            if !ports.is_empty() {
                return Some((ports, 1));
            }
        }
        let closer = |next: usize| {
            let rest = match () {
                () if !self.same_group(at, next) => beyond.map_or(NONE, |layer| layer.free[next]),
                () if !self.leads_up(at, next) => layer.down_only[next],
                () if came_by != CameBy::Down => layer.free[next],
                () => NONE,
            };
            rest.checked_add(1) == Some(far)
        };
        let ports = self.graph.ports(at).filter(|&(_, next)| closer(next));
        Some((ports.map(|(port, _)| port).collect(), crossings as u8))
    }
}

/// Number of local links that are dead at any time of the run, by switch; `ever` names all links that are ever dead.
pub(super) fn fails(topology: &Topology, groups: &Groups, ever: &[LinkId]) -> Vec<u32> {
    let mut fails = vec![0; groups.switches()];
    for link in ever.iter().map(|link| &topology.links()[link.index()]) {
        if !topology.is_host(link.from) {
            let from = topology.switch_number(link.from);
            fails[from] += u32::from(groups.kind(from, link.port) == PortKind::Local);
        }
    }
    fails
}

impl SurvivingRoutes {
    /// Finds the routes without the links of `dead`, which holds both directions in ascending order. The first result are
    /// the routes of packets that begin at a switch; `whole` are those of the fabric without dead links. `fails` counts
    /// the failures of the whole run, see [`fails`].
    pub(super) fn find(
        topology: &Topology,
        whole: &Routes,
        groups: &Groups,
        fails: &[u32],
        dead: &[LinkId],
    ) -> Result<(Routes, SurvivingRoutes), FabricError> {
        let graph = Graph::of(topology, dead);
        let search = Search::new(groups, &graph, fails);
        let (switches, racks) = (groups.switches(), topology.racks().len());
        let mut surviving = SurvivingRoutes::empty(topology, groups);
        let mut sets = PortSets::default();
        for target in 0..racks + groups.count() {
            surviving.find_target(&search, target, &mut sets)?;
        }
        for switch in 0..switches {
            surviving.note_links(topology, &search, switch);
        }
        let row = |at: usize| {
            let first = surviving.step(at, CameBy::Nothing, 0);
            surviving.entries[first..first + racks].to_vec()
        };
        let routes = whole.with_rows(topology, (0..switches).map(row), sets)?;
        Ok((routes, surviving))
    }

    fn empty(topology: &Topology, groups: &Groups) -> Self {
        let (switches, racks) = (groups.switches(), topology.racks().len());
        let steps = switches * ALL.len() * (racks + groups.count());
        let members = (0..groups.count()).map(|group| groups.size(group as u16)).max().unwrap_or(0);
        SurvivingRoutes {
            racks,
            groups: groups.count(),
            entries: vec![0; steps],
            crossings: vec![u8::MAX; steps],
            down: Vec::new(),
            switch_of: topology.racks().iter().map(|&node| topology.switch_number(node)).collect(),
            joined: vec![false; switches * members],
            members,
            over: vec![true; groups.count() * racks],
            // A path over a third group has one leg more than minimal paths, for which two channels are enough.
            most: if groups.channels < MOST_CHANNELS { 1 } else { 2 },
        }
    }

    /// Finds the ports by which packets go on to a target from every switch.
    fn find_target(
        &mut self,
        search: &Search<'_>,
        target: usize,
        sets: &mut PortSets,
    ) -> Result<(), FabricError> {
        let layers = match self.switch_of.get(target) {
            Some(&root) => search.layers(|switch| switch == root, self.most),
            None => {
                let group = target - self.racks;
                search.layers(|switch| usize::from(search.groups.of(switch).group) == group, 1)
            }
        };
        for at in 0..search.groups.switches() {
            for came_by in ALL {
                if let Some((ports, crossings)) = search.onward(&layers, at, came_by) {
                    let step = self.step(at, came_by, target);
                    self.entries[step] = sets.entry(ports.into_iter())?;
                    self.crossings[step] = crossings;
                }
            }
        }
        Ok(())
    }

    /// Fills what depends on one switch's links: `down`, `joined` and `over`. Switches come in order, after all targets.
    fn note_links(&mut self, topology: &Topology, search: &Search<'_>, at: usize) {
        let Search { groups, graph, .. } = search;
        for link in topology.ports(topology.switch(at)) {
            let is_local = groups.kind(at, link.port) == PortKind::Local;
            self.down.push(is_local && search.leads_up(at, topology.switch_number(link.to)));
        }
        for (_, next) in graph.ports(at).filter(|&(_, next)| search.same_group(at, next)) {
            self.joined[at * self.members + usize::from(groups.of(next).number)] = true;
        }
        if graph.ports(at).any(|(_, next)| !search.same_group(at, next)) {
            for rack in 0..self.racks {
                let near = self.crossings[self.step(at, CameBy::Nothing, rack)] <= 1;
                self.over[usize::from(groups.of(at).group) * self.racks + rack] &= near;
            }
        }
    }

    fn step(&self, switch: usize, came_by: CameBy, target: usize) -> usize {
        (switch * ALL.len() + came_by as usize) * (self.racks + self.groups) + target
    }

    fn came_by(&self, arrival: Arrival) -> CameBy {
        let Arrival { port, kind, state, .. } = arrival;
        match self.down.get(port) {
            _ if kind != PortKind::Local || state.came_on() != state.leg() => CameBy::Nothing,
            Some(true) => CameBy::Down,
            _ => CameBy::Up,
        }
    }

    fn step_of(&self, arrival: Arrival, target: usize) -> usize {
        self.step(arrival.switch, self.came_by(arrival), target)
    }

    /// The entry of the ports by which a packet goes on to a rack; 0 if no route is left.
    pub(super) fn to_rack(&self, arrival: Arrival, rack: usize) -> u32 {
        let step = self.step_of(arrival, rack);
        let most = match arrival.state.leg() {
            0 => self.most,
            leg => 2u8.saturating_sub(leg),
        };
        if self.crossings[step] <= most { self.entries[step] } else { 0 }
    }

    /// The entry of the ports by which a packet goes on to a rack inside its group; 0 if no route is left.
    pub(super) fn to_member(&self, arrival: Arrival, rack: usize) -> u32 {
        let step = self.step_of(arrival, rack);
        if self.crossings[step] == 0 { self.entries[step] } else { 0 }
    }

    /// The entry of the ports by which a packet goes on to any switch of another group; 0 if no route is left.
    pub(super) fn to_group(&self, arrival: Arrival, group: usize) -> u32 {
        self.entries[self.step_of(arrival, self.racks + group)]
    }

    /// Whether a packet that begins at a switch may take a detour over a group to a rack.
    pub(super) fn leads_over(&self, switch: usize, group: usize, rack: usize) -> bool {
        let there = self.entries[self.step(switch, CameBy::Nothing, self.racks + group)];
        there != 0 && self.over[group * self.racks + rack]
    }

    /// Whether a packet that begins at a switch may take a detour over the switch of number `middle` in its group to a rack
    /// of the group: live links must join both pairs of switches. A path of more links could lead through the destination.
    pub(super) fn leads_inside(&self, switch: usize, middle: usize, rack: usize) -> bool {
        let joined =
            |switch: usize| self.joined.get(switch * self.members + middle).is_some_and(|&joined| joined);
        joined(switch) && joined(self.switch_of[rack])
    }
}

#[cfg(test)]
mod tests;
