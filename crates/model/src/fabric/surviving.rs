//! The ways that are left in a fabric of groups when links are dead.
//!
//! A way crosses as few links between groups as can be. That is one to another group; where none is left between two
//! groups, it leads over a third one, as a detour does; and so does one to a switch that has lost all links inside its
//! group. Among ways with as few crossings [`MinimalPaths`] says which count, as in the whole fabric. Where two switches of a
//! group have lost the link that joins them, a way leads over others of the group.
//!
//! # Why they are free of deadlock
//!
//! With the channels of [`super::groups`], and no more. A way over a third group has three legs, like a detour. Inside a
//! group several links may follow each other on one leg, so in one channel; that they do not wait for each other in a
//! circle is seen to by an order of the group's switches. A link to a switch that comes earlier leads *up*, and any other
//! *down*; on each leg a way goes up, then down, and never up again (up*\/down*: Schroeder et al., "Autonet: a
//! High-speed, Self-configuring Local Area Network Using Point-to-point Links", IEEE J. on Selected Areas in
//! Communications 9(8), 1991). What a packet waits for that came up lies further up, or leads down; what one waits for
//! that came down lies further down. So the order of buffers in [`super::groups`] holds, with those inside a group on one
//! leg put into this order.
//!
//! The order is that of a breadth-first search, so every switch has a way up to the first one, and all have ways to each
//! other. The search begins at a switch that loses as few links as possible during the whole run. If it loses none, the
//! order never changes, nor does it for one group as long as the others fail. Packets that are under way when it changes
//! could wait in a circle with those of the new order; nothing here excludes that.
//!
//! A packet for which no way is left where it is (routes have changed, and it has spent its legs, or came down and would
//! have to go up) takes the way of the whole fabric, and is lost on the dead link there.

use super::groups::{Groups, MinimalPaths, PortKind};
use super::routes::{Graph, NONE, Routes, Sets};
use super::{Fabric, FabricError, MOST_CHANNELS};
use crate::{LinkId, PortIndex, RouteState};
use std::collections::VecDeque;

/// How a packet came to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// Its leg begins here.
    Fresh,
    /// By a link that leads up.
    Up,
    /// By a link that leads down.
    Down,
}

const ALL: [Came; 3] = [Came::Fresh, Came::Up, Came::Down];

/// The ways that are left.
#[derive(Clone, Debug)]
pub(super) struct SurvivingRoutes {
    racks: usize,
    groups: usize,
    /// By switch, how a packet came there, and where it goes (a rack, or, after those, any switch of a group): the ports by
    /// which it goes on, none if no way is left.
    entries: Vec<u32>,
    /// Likewise: links between groups that it has to cross.
    crossings: Vec<u8>,
    /// By port of a switch, like [`Groups::reach`]: whether what comes in there has come down.
    down: Vec<bool>,
    /// By rack: its switch, and that one's number in its group.
    at: Vec<(usize, usize)>,
    /// By switch and number in its group: whether a live link joins them.
    joined: Vec<bool>,
    /// Most switches in a group.
    members: usize,
    /// By group and rack: whether a packet reaches the rack with one crossing wherever it enters the group.
    over: Vec<bool>,
    /// Most crossings on leg 0.
    most: u8,
}

/// Distances to a target with a given number of crossings.
struct Layer {
    /// Of switches that need no further link inside their group.
    seeds: Vec<u32>,
    /// Links from a switch, if one may still go up.
    free: Vec<u32>,
    /// Links from it, if one may go down only.
    falling: Vec<u32>,
}

impl Layer {
    fn from(&self, came: Came) -> &[u32] {
        if came == Came::Down { &self.falling } else { &self.free }
    }
}

struct Search<'a> {
    groups: &'a Groups,
    graph: &'a Graph,
    /// All switches, those of one group in its order.
    order: Vec<usize>,
    /// By switch: its place there.
    place: Vec<usize>,
}

impl<'a> Search<'a> {
    /// `fails`: by switch, how many links inside its group are ever dead.
    fn new(groups: &'a Groups, graph: &'a Graph, fails: &[u32]) -> Self {
        let switches = groups.of.len();
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
                let beside =
                    graph.ports(at).map(|(_, next)| next).filter(|&n| groups.of[n].0 == groups.of[at].0);
                let mut beside: Vec<usize> = beside.collect();
                beside.sort_by_key(|&next| steadiness[next]);
                queue.extend(beside.into_iter().filter(|&next| !std::mem::replace(&mut seen[next], true)));
            }
        }
        let mut place = vec![0; switches];
        order.iter().enumerate().for_each(|(i, &switch)| place[switch] = i);
        Search { groups, graph, order, place }
    }

    fn inside(&self, a: usize, b: usize) -> bool {
        self.groups.of[a].0 == self.groups.of[b].0
    }

    /// Whether the link from one switch to another one of its group leads up.
    fn leads_up(&self, from: usize, to: usize) -> bool {
        self.place[to] < self.place[from]
    }

    /// Distances inside groups from those of `seeds`.
    fn layer(&self, seeds: Vec<u32>) -> Layer {
        let beside = |at: usize| self.graph.ports(at).map(|(_, n)| n).filter(move |&n| self.inside(at, n));
        let mut falling = seeds.clone();
        for &at in self.order.iter().rev() {
            let below = beside(at).filter(|&next| !self.leads_up(at, next)).map(|next| falling[next]);
            falling[at] = falling[at].min(below.min().unwrap_or(NONE).saturating_add(1));
        }
        let mut free = seeds.clone();
        for &at in &self.order {
            let far = |next| if self.leads_up(at, next) { free[next] } else { falling[next] };
            let nearest = beside(at).map(far).min().unwrap_or(NONE);
            free[at] = free[at].min(nearest.saturating_add(1));
        }
        Layer { seeds, free, falling }
    }

    /// Distances with one crossing more.
    fn beyond(&self, layer: &Layer) -> Layer {
        let over = |at: usize| {
            let across = self.graph.ports(at).filter(|&(_, next)| !self.inside(at, next));
            across.map(|(_, next)| layer.free[next]).min().unwrap_or(NONE).saturating_add(1)
        };
        self.layer((0..self.order.len()).map(over).collect())
    }

    /// The ports by which a packet goes on that came to a switch, and the crossings before it.
    fn onward(&self, layers: &[Layer], at: usize, came: Came) -> Option<(Vec<PortIndex>, u8)> {
        let crossings = layers.iter().position(|layer| layer.from(came)[at] != NONE)?;
        let (layer, next_layer) = (&layers[crossings], crossings.checked_sub(1).map(|less| &layers[less]));
        let far = layer.from(came)[at];
        if crossings == 1 && self.groups.minimal == MinimalPaths::AnyLink {
            let any = |next: usize| match self.inside(at, next) {
                true => came == Came::Fresh && layer.seeds[next] != NONE,
                false => next_layer.is_some_and(|layer| layer.free[next] != NONE),
            };
            let ports = self.graph.ports(at).filter(|&(_, next)| any(next));
            let ports: Vec<PortIndex> = ports.map(|(port, _)| port).collect();
            if !ports.is_empty() {
                return Some((ports, 1));
            }
        }
        let closer = |next: usize| {
            let left = match () {
                () if !self.inside(at, next) => next_layer.map_or(NONE, |layer| layer.free[next]),
                () if !self.leads_up(at, next) => layer.falling[next],
                () if came != Came::Down => layer.free[next],
                () => NONE,
            };
            left.checked_add(1) == Some(far)
        };
        let ports = self.graph.ports(at).filter(|&(_, next)| closer(next));
        Some((ports.map(|(port, _)| port).collect(), crossings as u8))
    }
}

/// How many links inside its group each switch loses at any time.
pub(super) fn fails(fabric: &Fabric, ever: &[LinkId]) -> Vec<u32> {
    let mut fails = vec![0; fabric.nodes() - fabric.hosts];
    for link in ever.iter().map(|link| &fabric.links[link.index()]) {
        if !fabric.is_host(link.from) && fabric.group(link.from) == fabric.group(link.to) {
            fails[link.from.index() - fabric.hosts] += 1;
        }
    }
    fails
}

impl SurvivingRoutes {
    /// Finds the ways without the links of `dead`, which holds both directions in ascending order, and the routes of packets
    /// that begin at a switch. `fails` says which links come to be dead at any time, see [`fails`].
    pub(super) fn find(
        fabric: &Fabric,
        groups: &Groups,
        fails: &[u32],
        dead: &[LinkId],
    ) -> Result<(Routes, SurvivingRoutes), FabricError> {
        let graph = Graph::of(fabric, dead);
        let search = Search::new(groups, &graph, fails);
        let (switches, racks) = (groups.of.len(), fabric.racks.len());
        // Over a third group a way has a leg more than minimal ways, for which two channels do.
        let most = if groups.channels < MOST_CHANNELS { 1 } else { 2 };
        let targets = racks + groups.count;
        let at = |node: &crate::NodeId| {
            let switch = node.index() - fabric.hosts;
            (switch, usize::from(groups.of[switch].1))
        };
        let members = groups.of.iter().map(|&(_, member)| usize::from(member) + 1).max().unwrap_or(0);
        let mut left = SurvivingRoutes {
            racks,
            groups: groups.count,
            entries: vec![0; switches * ALL.len() * targets],
            crossings: vec![u8::MAX; switches * ALL.len() * targets],
            down: Vec::with_capacity(groups.reach.len()),
            at: fabric.racks.iter().map(at).collect(),
            joined: vec![false; switches * members],
            members,
            over: vec![true; groups.count * racks],
            most,
        };
        let mut sets = Sets::default();
        for target in 0..targets {
            let home = left.at.get(target).map(|&(switch, _)| switch);
            let is_there = |switch: usize| match home {
                Some(root) => switch == root,
                None => usize::from(groups.of[switch].0) == target - racks,
            };
            let seeds = (0..switches).map(|switch| if is_there(switch) { 0 } else { NONE }).collect();
            let mut layers = vec![search.layer(seeds)];
            let most = if home.is_some() { most } else { 1 };
            let near = |layers: &[Layer], at: usize| layers.iter().any(|layer| layer.free[at] != NONE);
            while layers.len() <= usize::from(most) && !(0..switches).all(|at| near(&layers, at)) {
                layers.extend(layers.last().map(|last| search.beyond(last)));
            }
            for at in 0..switches {
                for came in ALL {
                    if let Some((ports, crossings)) = search.onward(&layers, at, came) {
                        let step = left.step(at, came, target);
                        left.entries[step] = sets.entry(ports.into_iter())?;
                        left.crossings[step] = crossings;
                    }
                }
            }
        }
        for (at, &(group, _)) in groups.of.iter().enumerate() {
            let first = groups.base[at] as usize;
            let ports = fabric.ports(crate::NodeId((fabric.hosts + at) as u32));
            let from = |link: &super::Link| link.to.index() - fabric.hosts;
            for (link, &reach) in ports.iter().zip(&groups.reach[first..]) {
                left.down.push(reach == PortKind::Local && search.leads_up(at, from(link)));
            }
            for (_, next) in graph.ports(at).filter(|&(_, next)| search.inside(at, next)) {
                left.joined[at * members + usize::from(groups.of[next].1)] = true;
            }
            if graph.ports(at).any(|(_, next)| !search.inside(at, next)) {
                for rack in 0..racks {
                    let near = left.crossings[left.step(at, Came::Fresh, rack)] <= 1;
                    left.over[usize::from(group) * racks + rack] &= near;
                }
            }
        }
        let row = |at: usize| {
            let first = left.step(at, Came::Fresh, 0);
            left.entries[first..first + racks].to_vec()
        };
        let routes = Routes::from_rows(fabric, (0..switches).map(row), sets)?;
        Ok((routes, left))
    }

    fn step(&self, switch: usize, came: Came, target: usize) -> usize {
        (switch * ALL.len() + came as usize) * (self.racks + self.groups) + target
    }

    /// How a packet came to the switch whose port `port` of all ports of switches it came in at.
    fn came(&self, way: RouteState, port: usize, reach: PortKind) -> Came {
        match reach {
            PortKind::Local if way.came_on() == way.leg() => {
                if self.down.get(port).is_some_and(|&down| down) { Came::Down } else { Came::Up }
            }
            _ => Came::Fresh,
        }
    }

    /// The entry of the ports by which a packet goes on to a rack that came to a switch at a port; 0 if no way is left.
    pub(super) fn to_rack(
        &self,
        switch: usize,
        (way, port, reach): (RouteState, usize, PortKind),
        rack: usize,
    ) -> u32 {
        let step = self.step(switch, self.came(way, port, reach), rack);
        let most = match way.leg() {
            0 => self.most,
            leg => 2u8.saturating_sub(leg),
        };
        if self.crossings[step] <= most { self.entries[step] } else { 0 }
    }

    /// The same without leaving the group.
    pub(super) fn to_member(
        &self,
        switch: usize,
        (way, port, reach): (RouteState, usize, PortKind),
        rack: usize,
    ) -> u32 {
        let step = self.step(switch, self.came(way, port, reach), rack);
        if self.crossings[step] == 0 { self.entries[step] } else { 0 }
    }

    /// The same to any switch of another group.
    pub(super) fn to_group(
        &self,
        switch: usize,
        (way, port, reach): (RouteState, usize, PortKind),
        group: usize,
    ) -> u32 {
        self.entries[self.step(switch, self.came(way, port, reach), self.racks + group)]
    }

    /// Whether a packet that begins at a switch may go over a group to a rack.
    pub(super) fn leads_over(&self, switch: usize, group: usize, rack: usize) -> bool {
        let there = self.entries[self.step(switch, Came::Fresh, self.racks + group)];
        there != 0 && self.over[group * self.racks + rack]
    }

    /// Whether it may go over the switch of that number in its group to another one of it: by one link and one more. (A way
    /// over several could lead through its destination.)
    pub(super) fn leads_inside(&self, switch: usize, middle: usize, rack: usize) -> bool {
        let (end, _) = self.at[rack];
        let joined =
            |switch: usize| self.joined.get(switch * self.members + middle).is_some_and(|&joined| joined);
        joined(switch) && joined(end)
    }
}

#[cfg(test)]
mod tests;
