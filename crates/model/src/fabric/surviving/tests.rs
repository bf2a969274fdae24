//! Routes of a Dragonfly with dead links.

use super::*;
use crate::{Detour, Fabric, FabricBuilder, HostId, NodeId, Probability, Rate, Routing, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A buffer that a packet may wait in: the receiving end of a link between switches, and a channel.
type Buffer = (LinkId, u8);

/// Groups of routers with one host each, and `links` links between every two groups, whose ends go to routers in turn.
fn dragonfly(groups: usize, routers: usize, links: usize, minimal: MinimalPaths, channels: u8) -> Fabric {
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

/// All paths of a packet as lists of links between switches, each with the packet's leg; `None` if a path ends on a dead
/// link.
fn paths(
    f: &Fabric,
    routing: Option<&Routing>,
    (from, to): (HostId, HostId),
    detour: Option<Detour>,
) -> Option<BTreeSet<Vec<Buffer>>> {
    let mut done = BTreeSet::new();
    let start = f.uplink(from);
    let mut open = vec![(start.to, start.peer_port, RouteState::default(), vec![])];
    let mut first = detour;
    while let Some((at, ingress, state, path)) = open.pop() {
        assert!(path.len() <= f.nodes(), "the path is a circle: {path:?}");
        let router = f.router_by(routing, at);
        let mut state = router.arrived(state, ingress);
        if let Some(detour) = first.take() {
            state = state.with_detour(detour);
        }
        let (ports, home) = router.onward(state, ingress, to);
        assert!(!ports.is_empty());
        for &port in ports {
            let link = f.ports(at)[port.index()];
            let id = f.link(at, port);
            if routing.is_some_and(|routing| routing.is_dead(id)) {
                return None;
            }
            let mut path: Vec<Buffer> = path.clone();
            let twice = path.iter().any(|(id, _)| f.links()[id.index()].from == at);
            assert!(!twice, "the path visits a switch twice: {path:?}");
            if home {
                done.insert(path);
                continue;
            }
            path.push((id, state.leg()));
            open.push((link.to, link.peer_port, state, path));
        }
    }
    Some(done)
}

/// Every path that a routing allows, with and without detours. Panics if a path between two hosts that reach each other ends
/// on a dead link.
fn all_paths(f: &Fabric, routing: Option<&Routing>) -> BTreeSet<Vec<Buffer>> {
    let mut all = BTreeSet::new();
    let hosts = || (0..f.hosts() as u32).map(HostId);
    for (from, to) in hosts().flat_map(|a| hosts().map(move |b| (a, b))).filter(|(a, b)| a != b) {
        if !f.reaches_by(routing, from, to) {
            continue;
        }
        let detours = f.router_by(routing, first_switch(f, from)).detours(to);
        let chosen: Vec<Detour> =
            (0..detours.len()).map(|i| detours.get(i).expect("a detour below `len`").0).collect();
        assert!(detours.get(chosen.len()).is_none());
        for &detour in &chosen {
            assert_eq!(
                detours.toward(detour),
                detours.get(chosen.iter().position(|&d| d == detour).unwrap()).unwrap().1
            );
        }
        for detour in chosen.into_iter().map(Some).chain([None]) {
            let paths = paths(f, routing, (from, to), detour);
            all.extend(paths.unwrap_or_else(|| panic!("from {from} to {to} over {detour:?}: a dead link")));
        }
    }
    all
}

/// True if a buffer waits for itself.
fn circular(paths: &BTreeSet<Vec<Buffer>>, channels: u8) -> bool {
    let channel = |&(link, leg): &Buffer| (link, leg.min(channels - 1));
    let pairs = paths.iter().flat_map(|path| path.windows(2)).map(|w| (channel(&w[0]), channel(&w[1])));
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

/// True if a path over live links with at most two global links joins two hosts' switches.
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
fn without_dead_links_all_paths_survive() {
    for (groups, routers, links) in [(4, 3, 2), (5, 4, 1), (3, 2, 3), (1, 4, 1), (4, 1, 1)] {
        for minimal in [MinimalPaths::FewestHops, MinimalPaths::AnyLink] {
            let f = dragonfly(groups, routers, links, minimal, 3);
            assert_eq!(all_paths(&f, Some(&around(&f, &[]))), all_paths(&f, None));
        }
    }
}

#[test]
fn paths_take_the_second_link_between_two_groups_when_the_first_is_dead() {
    for minimal in [MinimalPaths::FewestHops, MinimalPaths::AnyLink] {
        let f = dragonfly(3, 4, 2, minimal, 3);
        let across = |f: &Fabric, routing: Option<&Routing>| {
            let paths = paths(f, routing, (HostId(0), HostId(4)), None).unwrap();
            assert!(paths.iter().all(|path| path.iter().all(|&(_, leg)| leg <= 1)));
            let links = paths.into_iter().flatten().map(|(link, _)| link);
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
fn groups_without_a_common_link_reach_each_other_over_a_third_group_on_three_legs() {
    let f = dragonfly(4, 3, 1, MinimalPaths::FewestHops, 3);
    let between: Vec<LinkId> = (0..f.links().len() as u32)
        .map(LinkId)
        .filter(|l| {
            let link = &f.links()[l.index()];
            [(Some(0), Some(1)), (Some(1), Some(0))].contains(&(f.group(link.from), f.group(link.to)))
        })
        .collect();
    let routing = around(&f, &between);
    let all = paths(&f, Some(&routing), (HostId(0), HostId(3)), None).unwrap();
    let groups = |path: &Vec<Buffer>| {
        path.iter().map(|(l, _)| f.group(f.links()[l.index()].to).unwrap()).collect::<BTreeSet<_>>()
    };
    assert!(all.iter().all(|path| path.last().unwrap().1 <= 2));
    let over: BTreeSet<usize> = all.iter().flat_map(groups).collect();
    assert!(over.contains(&2) || over.contains(&3), "{over:?}");
    // No detour leads from group 0 over group 1 or from group 1 over group 0.
    let detours = |from: u32, to: u32| {
        let detours = f.router_by(Some(&routing), f.attachment(HostId(from))).detours(HostId(to));
        (0..detours.len()).map(|i| detours.get(i).unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(detours(0, 6), [Detour::Group(3)], "to group 2");
    assert_eq!(detours(6, 0), [Detour::Group(3)]);
    assert_eq!(detours(6, 9), [Detour::Group(0), Detour::Group(1)]);
    // Detours inside a group have two links, and both are alive.
    let f = dragonfly(2, 4, 2, MinimalPaths::FewestHops, 3);
    let routing = around(&f, &cables(&f, &[("g0r0", "g0r1")]));
    let over = |from: u32, to: u32| {
        let detours = f.router_by(Some(&routing), f.attachment(HostId(from))).detours(HostId(to));
        (0..detours.len()).map(|i| detours.get(i).unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(over(0, 1), [Detour::Member(2), Detour::Member(3)]);
    assert_eq!(over(0, 2), [Detour::Member(3)]);
    assert_eq!(over(2, 3), [Detour::Member(0), Detour::Member(1)]);
    // With two channels a path has at most two legs.
    let f = dragonfly(4, 3, 1, MinimalPaths::FewestHops, 2);
    assert!(!f.reaches_by(Some(&around(&f, &between)), HostId(0), HostId(3)));
}

#[test]
fn inside_a_group_paths_lead_over_other_routers_on_one_leg() {
    let f = dragonfly(2, 4, 2, MinimalPaths::FewestHops, 3);
    // Every router of the group loses a link, and the first router loses two.
    let dead = cables(&f, &[("g0r0", "g0r1"), ("g0r0", "g0r2"), ("g0r1", "g0r3")]);
    let routing = around(&f, &dead);
    for (from, to, links) in [(0, 1, 3), (0, 2, 2), (1, 3, 2), (0, 3, 1), (2, 3, 1)] {
        for (from, to) in [(from, to), (to, from)] {
            let paths = paths(&f, Some(&routing), (HostId(from), HostId(to)), None).unwrap();
            assert!(paths.iter().all(|path| path.len() == links && path.iter().all(|&(_, leg)| leg == 0)));
        }
    }
}

#[test]
fn a_packet_without_any_route_left_goes_to_the_dead_link() {
    // The packet is on a detour in group 2, on leg 1, when the only link from there to its host's group dies.
    let f = dragonfly(4, 3, 1, MinimalPaths::FewestHops, 3);
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
    let mut path = RouteState::default().next(true, false);
    for _ in 0..3 {
        let router = f.router_by(Some(&routing), at);
        let (ports, home) = router.onward(path, ingress, HostId(3));
        assert!(!home && ports.len() == 1);
        let link = f.ports(at)[ports[0].index()];
        if routing.is_dead(f.link(at, link.port)) {
            return;
        }
        (at, ingress) = (link.to, link.peer_port);
        path = f.router_by(Some(&routing), at).arrived(path, ingress);
    }
    panic!("the packet has not come to the dead link");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths_use_live_links_and_no_buffer_waits_for_itself(
        (groups, routers, links) in (1..5usize, 1..5usize, 1..4usize),
        any in any::<bool>(),
        broken in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..9), 1..3),
    ) {
        let minimal = if any { MinimalPaths::AnyLink } else { MinimalPaths::FewestHops };
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
        let mut together = all_paths(&f, None);
        for dead in &sets {
            let dead: Vec<LinkId> = dead.iter().copied().collect();
            let routing = rerouter.around(dead.clone()).unwrap();
            for (from, to) in (0..f.hosts() as u32).flat_map(|a| (0..f.hosts() as u32).map(move |b| (HostId(a), HostId(b)))) {
                prop_assert_eq!(f.reaches_by(Some(&routing), from, to), joined(&f, &dead, from, to));
            }
            let paths = all_paths(&f, Some(&routing));
            prop_assert!(paths.iter().flatten().all(|(_, leg)| *leg <= 2));
            prop_assert!(!circular(&paths, 3));
            together.extend(paths);
        }
        // While routes change, packets of the old and the new routes are in flight.
        let fails = fails(&f, f.groups.as_ref().unwrap(), &ever);
        let steady = |group: usize| (0..routers).any(|r| fails[group * routers + r] == 0);
        if sets.len() == 1 || (0..groups).all(steady) {
            prop_assert!(!circular(&together, 3));
        }
    }
}
