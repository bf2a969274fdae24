//! The ways that are left in a fabric of groups when links are dead.
//!
//! A way crosses as few links between groups as can be. That is one to another group; where none is left between two
//! groups, it leads over a third one, as a detour does; and so does one to a switch that has lost all links inside its
//! group. Among ways with as few crossings [`Minimal`] says which count, as in the whole fabric. Where two switches of a
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

use super::groups::{Groups, Minimal, Reach};
use super::routes::{Graph, NONE, Routes, Sets};
use super::{Fabric, FabricError, MOST_CHANNELS};
use crate::{LinkId, PortIndex, Way};
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
pub(super) struct Left {
    racks: usize,
    groups: usize,
    /// By switch, how a packet came there, and where it goes (a rack, or, after those, any switch of a group): the ports by
    /// which it goes on, none if no way is left.
    entries: Vec<u32>,
    /// Likewise: links between groups that it has to cross.
    crossings: Vec<u8>,
    /// By port of a switch, like [`Groups::reach`]: whether what comes in there has come down.
    down: Vec<bool>,
    /// By rack: its switch.
    at: Vec<usize>,
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
        if crossings == 1 && self.groups.minimal == Minimal::AnyLink {
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

impl Left {
    /// Finds the ways without the links of `dead`, which holds both directions in ascending order, and the routes of packets
    /// that begin at a switch. `fails` says which links come to be dead at any time, see [`fails`].
    pub(super) fn find(
        fabric: &Fabric,
        groups: &Groups,
        fails: &[u32],
        dead: &[LinkId],
    ) -> Result<(Routes, Left), FabricError> {
        let graph = Graph::of(fabric, dead);
        let search = Search::new(groups, &graph, fails);
        let (switches, racks) = (groups.of.len(), fabric.racks.len());
        // Over a third group a way has a leg more than minimal ways, for which two channels do.
        let most = if groups.channels < MOST_CHANNELS { 1 } else { 2 };
        let targets = racks + groups.count;
        let mut left = Left {
            racks,
            groups: groups.count,
            entries: vec![0; switches * ALL.len() * targets],
            crossings: vec![u8::MAX; switches * ALL.len() * targets],
            down: Vec::with_capacity(groups.reach.len()),
            at: fabric.racks.iter().map(|node| node.index() - fabric.hosts).collect(),
            over: vec![true; groups.count * racks],
            most,
        };
        let mut sets = Sets::default();
        for target in 0..targets {
            let home = left.at.get(target).copied();
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
                left.down.push(reach == Reach::Inside && search.leads_up(at, from(link)));
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
    fn came(&self, way: Way, port: usize, reach: Reach) -> Came {
        match reach {
            Reach::Inside if way.came_on() == way.leg() => {
                if self.down.get(port).is_some_and(|&down| down) {
                    Came::Down
                } else {
                    Came::Up
                }
            }
            _ => Came::Fresh,
        }
    }

    /// The entry of the ports by which a packet goes on to a rack that came to a switch at a port; 0 if no way is left.
    pub(super) fn to_rack(&self, switch: usize, (way, port, reach): (Way, usize, Reach), rack: usize) -> u32 {
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
        (way, port, reach): (Way, usize, Reach),
        rack: usize,
    ) -> u32 {
        let step = self.step(switch, self.came(way, port, reach), rack);
        if self.crossings[step] == 0 { self.entries[step] } else { 0 }
    }

    /// The same to any switch of another group.
    pub(super) fn to_group(
        &self,
        switch: usize,
        (way, port, reach): (Way, usize, Reach),
        group: usize,
    ) -> u32 {
        self.entries[self.step(switch, self.came(way, port, reach), self.racks + group)]
    }

    /// Whether a packet that begins at a switch may go over a group to a rack.
    pub(super) fn leads_over(&self, switch: usize, group: usize, rack: usize) -> bool {
        let there = self.entries[self.step(switch, Came::Fresh, self.racks + group)];
        there != 0 && self.over[group * self.racks + rack]
    }

    /// Whether it may go over the switch of the rack `middle` of its group.
    pub(super) fn leads_inside(&self, switch: usize, middle: usize, rack: usize) -> bool {
        let near = |from: usize, to: usize| self.crossings[self.step(from, Came::Fresh, to)] == 0;
        near(switch, middle) && near(self.at[middle], rack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detour, FabricBuilder, HostId, NodeId, Probability, Rate, Routing, Time};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What may wait: the receiving end of a link between switches, and a channel.
    type Buffer = (LinkId, u8);

    /// Groups of routers of one host each, `links` links between every two groups, dealt out in turn.
    fn dragonfly(groups: usize, routers: usize, links: usize, minimal: Minimal, channels: u8) -> Fabric {
        let mut b = FabricBuilder::new();
        let all = groups * routers;
        let hosts: Vec<_> = (0..all).map(|h| b.host(format!("h{h}"))).collect();
        let name = |r: usize| format!("g{}r{}", r / routers, r % routers);
        let router: Vec<_> = (0..all).map(|r| b.switch(name(r), "router")).collect();
        let mut join = |x, y| b.connect(x, y, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
        (0..all).for_each(|h| join(hosts[h], router[h]));
        for group in router.chunks(routers) {
            (0..routers).for_each(|i| group[i + 1..].iter().for_each(|&other| join(group[i], other)));
        }
        let mut ends = vec![0; groups];
        for (x, y) in (0..groups).flat_map(|x| (x + 1..groups).map(move |y| (x, y))) {
            for _ in 0..links {
                join(router[x * routers + ends[x] % routers], router[y * routers + ends[y] % routers]);
                ends[x] += 1;
                ends[y] += 1;
            }
        }
        b.groups((0..all).map(|r| (r / routers) as u16).collect(), channels, minimal);
        b.build().unwrap()
    }

    /// Both directions of the links between routers of these names.
    fn cables(f: &Fabric, ends: &[(&str, &str)]) -> Vec<LinkId> {
        let find = |name: &str| f.find(name).unwrap();
        let of = |(a, b): (NodeId, NodeId)| {
            f.ports(a).iter().filter(move |l| l.to == b).map(|l| f.link(l.from, l.port)).collect::<Vec<_>>()
        };
        let both = ends.iter().flat_map(|(a, b)| [(find(a), find(b)), (find(b), find(a))]);
        both.flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn around(f: &Fabric, dead: &[LinkId]) -> Routing {
        f.rerouter(dead).around(dead.to_vec()).unwrap()
    }

    fn first_switch(f: &Fabric, host: HostId) -> NodeId {
        f.attachment(host)
    }

    /// All ways of a packet, as links between switches and the leg on each; `None` if one ends on a dead link.
    fn ways(
        f: &Fabric,
        routing: Option<&Routing>,
        (from, to): (HostId, HostId),
        detour: Option<Detour>,
    ) -> Option<BTreeSet<Vec<Buffer>>> {
        let mut done = BTreeSet::new();
        let start = &f.ports(from.node())[0];
        let mut open = vec![(start.to, start.peer_port, Way::default(), vec![])];
        let mut first = detour;
        while let Some((at, ingress, way, path)) = open.pop() {
            assert!(path.len() <= f.nodes(), "it goes round: {path:?}");
            let router = f.router_by(routing, at);
            let mut way = router.arrived(way, ingress);
            if let Some(detour) = first.take() {
                way = way.by(detour);
            }
            let (ports, home) = router.onward(way, ingress, to);
            assert!(!ports.is_empty());
            for &port in ports {
                let link = f.ports(at)[port.index()];
                let id = f.link(at, port);
                if routing.is_some_and(|routing| routing.is_dead(id)) {
                    return None;
                }
                let mut path: Vec<Buffer> = path.clone();
                if home {
                    done.insert(path);
                    continue;
                }
                path.push((id, way.leg()));
                open.push((link.to, link.peer_port, way, path));
            }
        }
        Some(done)
    }

    /// Every way that a routing allows, over detours and none; panics if one ends on a dead link though its ends are said to
    /// reach each other.
    fn all_ways(f: &Fabric, routing: Option<&Routing>) -> BTreeSet<Vec<Buffer>> {
        let mut all = BTreeSet::new();
        let hosts = || (0..f.hosts() as u16).map(HostId);
        for (from, to) in hosts().flat_map(|a| hosts().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            if !f.reaches_by(routing, from, to) {
                continue;
            }
            let detours = f.router_by(routing, first_switch(f, from)).detours(to);
            let chosen: Vec<Detour> =
                (0..detours.len()).map(|i| detours.get(i).expect("as many as it says").0).collect();
            assert!(detours.get(chosen.len()).is_none());
            for &detour in &chosen {
                assert_eq!(
                    detours.toward(detour),
                    detours.get(chosen.iter().position(|&d| d == detour).unwrap()).unwrap().1
                );
            }
            for detour in chosen.into_iter().map(Some).chain([None]) {
                let ways = ways(f, routing, (from, to), detour);
                all.extend(
                    ways.unwrap_or_else(|| panic!("from {from} to {to} over {detour:?}: a dead link")),
                );
            }
        }
        all
    }

    /// Whether some buffer waits for itself.
    fn circular(ways: &BTreeSet<Vec<Buffer>>, channels: u8) -> bool {
        let channel = |&(link, leg): &Buffer| (link, leg.min(channels - 1));
        let pairs = ways.iter().flat_map(|way| way.windows(2)).map(|w| (channel(&w[0]), channel(&w[1])));
        let mut left: BTreeSet<(Buffer, Buffer)> = pairs.collect();
        loop {
            let waiting: BTreeSet<_> = left.iter().map(|(a, _)| *a).collect();
            let before = left.len();
            left.retain(|(_, b)| waiting.contains(b));
            if left.len() == before {
                return !left.is_empty();
            }
        }
    }

    /// Whether a way over live links with at most two crossings joins two hosts' switches.
    fn joined(f: &Fabric, dead: &[LinkId], from: HostId, to: HostId) -> bool {
        let mut seen = BTreeSet::from([(first_switch(f, from), 0)]);
        let mut open: Vec<(NodeId, u8)> = seen.iter().copied().collect();
        while let Some((at, crossed)) = open.pop() {
            for l in f.ports(at).iter().filter(|l| !f.is_host(l.to)) {
                let next = (l.to, crossed + u8::from(f.group(l.to) != f.group(at)));
                if !dead.contains(&f.link(at, l.port)) && next.1 <= 2 && seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen.iter().any(|&(at, _)| at == first_switch(f, to))
    }

    #[test]
    fn with_nothing_dead_all_ways_are_left() {
        for (groups, routers, links) in [(4, 3, 2), (5, 4, 1), (3, 2, 3), (1, 4, 1), (4, 1, 1)] {
            for minimal in [Minimal::FewestHops, Minimal::AnyLink] {
                let f = dragonfly(groups, routers, links, minimal, 3);
                assert_eq!(all_ways(&f, Some(&around(&f, &[]))), all_ways(&f, None));
            }
        }
    }

    #[test]
    fn of_two_links_between_groups_the_other_one_is_taken() {
        for minimal in [Minimal::FewestHops, Minimal::AnyLink] {
            let f = dragonfly(3, 4, 2, minimal, 3);
            let across = |f: &Fabric, routing: Option<&Routing>| {
                let ways = ways(f, routing, (HostId(0), HostId(4)), None).unwrap();
                assert!(ways.iter().all(|way| way.iter().all(|&(_, leg)| leg <= 1)));
                let links = ways.into_iter().flatten().map(|(link, _)| link);
                let between =
                    links.filter(|l| f.group(f.links()[l.index()].from) != f.group(f.links()[l.index()].to));
                between.collect::<BTreeSet<_>>()
            };
            let whole = across(&f, None);
            let lost = *whole.first().unwrap();
            let mut dead = vec![lost, f.reverse(lost)];
            dead.sort();
            let left = across(&f, Some(&around(&f, &dead)));
            assert!(left.len() == 1 && !left.contains(&lost), "{left:?} of {whole:?}");
        }
    }

    #[test]
    fn groups_without_a_link_between_them_reach_each_other_over_a_third_one_on_three_legs() {
        let f = dragonfly(4, 3, 1, Minimal::FewestHops, 3);
        let between: Vec<LinkId> = (0..f.links().len() as u32)
            .map(LinkId)
            .filter(|l| {
                let link = &f.links()[l.index()];
                [(Some(0), Some(1)), (Some(1), Some(0))].contains(&(f.group(link.from), f.group(link.to)))
            })
            .collect();
        let routing = around(&f, &between);
        let all = ways(&f, Some(&routing), (HostId(0), HostId(3)), None).unwrap();
        let groups = |way: &Vec<Buffer>| {
            way.iter().map(|(l, _)| f.group(f.links()[l.index()].to).unwrap()).collect::<BTreeSet<_>>()
        };
        assert!(all.iter().all(|way| way.last().unwrap().1 <= 2));
        let over: BTreeSet<usize> = all.iter().flat_map(groups).collect();
        assert!(over.contains(&2) || over.contains(&3), "{over:?}");
        // No detour between others leads from group 0 over 1, nor back.
        let detours = |from: u16, to: u16| {
            let detours = f.router_by(Some(&routing), f.attachment(HostId(from))).detours(HostId(to));
            (0..detours.len()).map(|i| detours.get(i).unwrap().0).collect::<Vec<_>>()
        };
        assert_eq!(detours(0, 6), [Detour::Group(3)], "to group 2");
        assert_eq!(detours(6, 0), [Detour::Group(3)]);
        assert_eq!(detours(6, 9), [Detour::Group(0), Detour::Group(1)]);
        // Two channels are for ways of two legs.
        let f = dragonfly(4, 3, 1, Minimal::FewestHops, 2);
        assert!(!f.reaches_by(Some(&around(&f, &between)), HostId(0), HostId(3)));
    }

    #[test]
    fn inside_a_group_ways_lead_over_another_router_on_one_leg() {
        let f = dragonfly(2, 4, 2, Minimal::FewestHops, 3);
        // Every router of the group loses a link, the first one two.
        let dead = cables(&f, &[("g0r0", "g0r1"), ("g0r0", "g0r2"), ("g0r1", "g0r3")]);
        let routing = around(&f, &dead);
        for (from, to, links) in [(0, 1, 3), (0, 2, 2), (1, 3, 2), (0, 3, 1), (2, 3, 1)] {
            for (from, to) in [(from, to), (to, from)] {
                let ways = ways(&f, Some(&routing), (HostId(from), HostId(to)), None).unwrap();
                assert!(ways.iter().all(|way| way.len() == links && way.iter().all(|&(_, leg)| leg == 0)));
            }
        }
    }

    #[test]
    fn a_packet_that_is_caught_is_lost_and_goes_nowhere_else() {
        // It is in group 2 on its way over it, on leg 1, when the only link from there to its host's group dies.
        let f = dragonfly(4, 3, 1, Minimal::FewestHops, 3);
        let link = (0..f.links().len() as u32).map(LinkId).find(|l| {
            let link = &f.links()[l.index()];
            (f.group(link.from), f.group(link.to)) == (Some(2), Some(1))
        });
        let mut dead = vec![link.unwrap(), f.reverse(link.unwrap())];
        dead.sort();
        let routing = around(&f, &dead);
        let (mut at, mut ingress) = (f.links()[dead[0].index()].from, PortIndex::VIRTUAL);
        if f.group(at) != Some(2) {
            at = f.links()[dead[0].index()].to;
        }
        let mut way = Way::default().next(true, false);
        for _ in 0..3 {
            let router = f.router_by(Some(&routing), at);
            let (ports, home) = router.onward(way, ingress, HostId(3));
            assert!(!home && ports.len() == 1);
            let link = f.ports(at)[ports[0].index()];
            if routing.is_dead(f.link(at, link.port)) {
                return;
            }
            (at, ingress) = (link.to, link.peer_port);
            way = f.router_by(Some(&routing), at).arrived(way, ingress);
        }
        panic!("it should have come to the dead link");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_dead_ways_keep_to_what_is_left_and_no_buffer_waits_for_itself(
            (groups, routers, links) in (1..5usize, 1..5usize, 1..4usize),
            any in any::<bool>(),
            broken in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..9), 1..3),
        ) {
            let minimal = if any { Minimal::AnyLink } else { Minimal::FewestHops };
            let f = dragonfly(groups, routers, links, minimal, 3);
            let between: Vec<LinkId> = (0..f.links().len() as u32)
                .map(LinkId)
                .filter(|l| !f.is_host(f.links()[l.index()].from) && !f.is_host(f.links()[l.index()].to))
                .collect();
            prop_assume!(!between.is_empty());
            let both = |index: &prop::sample::Index| {
                let link = *index.get(&between);
                [link, f.reverse(link)]
            };
            let sets: Vec<BTreeSet<LinkId>> = broken.iter().map(|set| set.iter().flat_map(both).collect()).collect();
            let ever: Vec<LinkId> = sets.iter().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
            let rerouter = f.rerouter(&ever);
            let mut together = all_ways(&f, None);
            for dead in &sets {
                let dead: Vec<LinkId> = dead.iter().copied().collect();
                let routing = rerouter.around(dead.clone()).unwrap();
                for (from, to) in (0..f.hosts() as u16).flat_map(|a| (0..f.hosts() as u16).map(move |b| (HostId(a), HostId(b)))) {
                    prop_assert_eq!(f.reaches_by(Some(&routing), from, to), joined(&f, &dead, from, to));
                }
                let ways = all_ways(&f, Some(&routing));
                prop_assert!(ways.iter().flatten().all(|(_, leg)| *leg <= 2));
                prop_assert!(!circular(&ways, 3));
                together.extend(ways);
            }
            // While routes change, packets of all of them are under way.
            let fails = fails(&f, &ever);
            let steady = |group: usize| (0..routers).any(|r| fails[group * routers + r] == 0);
            if sets.len() == 1 || (0..groups).all(steady) {
                prop_assert!(!circular(&together, 3));
            }
        }
    }
}
