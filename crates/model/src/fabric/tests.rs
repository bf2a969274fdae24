//! Routes compared with their definition.

use super::*;
use crate::{Probability, Rate, Time};
use proptest::prelude::*;

fn leaf_spine(leaves: usize, spines: usize, per_leaf: usize) -> Fabric {
    let mut b = FabricBuilder::new();
    let hosts: Vec<_> = (0..leaves * per_leaf).map(|h| b.host(format!("h{h}"))).collect();
    let leaf: Vec<_> = (0..leaves).map(|l| b.switch(format!("leaf{l}"), "leaf")).collect();
    let spine: Vec<_> = (0..spines).map(|s| b.switch(format!("spine{s}"), "spine")).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
    for (h, &host) in hosts.iter().enumerate() {
        b.connect(host, leaf[h / per_leaf], rate, delay, Probability::ZERO);
    }
    for &l in &leaf {
        for &s in &spine {
            b.connect(l, s, rate, delay, Probability::ZERO);
        }
    }
    b.build().unwrap()
}

#[test]
fn a_leaf_sends_up_over_every_spine_and_down_over_one_port() {
    let f = leaf_spine(4, 3, 2);
    let leaf0 = f.find("leaf0").unwrap();
    assert_eq!(f.route(leaf0, HostId(1)), &[PortIndex(1)]);
    assert_eq!(f.route(leaf0, HostId(7)), &[PortIndex(2), PortIndex(3), PortIndex(4)]);
    let spine1 = f.find("spine1").unwrap();
    assert_eq!(f.route(spine1, HostId(7)), &[PortIndex(3)]);
    for to in (0..8).map(HostId) {
        assert_eq!(f.router(leaf0).ports(to), (f.route(leaf0, to), to.0 < 2));
    }
    assert!(f.same_rack(HostId(0), HostId(1)) && !f.same_rack(HostId(1), HostId(2)));
    assert!(f.reaches(HostId(0), HostId(7)));
    let up = f.link(leaf0, PortIndex(2));
    assert_eq!(f.links()[f.reverse(up).index()].to, leaf0);
}

#[test]
fn oversubscription_is_the_rate_of_hosts_over_that_of_uplinks() {
    let of = |spines, per_leaf| leaf_spine(4, spines, per_leaf).oversubscription();
    assert_eq!((of(2, 8), of(4, 4), of(8, 4)), (4.0, 1.0, 1.0));
}

#[test]
fn two_hosts_on_one_link_need_no_switch() {
    let mut b = FabricBuilder::new();
    let (x, y) = (b.host("x"), b.host("y"));
    b.connect(x, y, Rate::from_gbps(100), Time::from_ns(5), Probability::ZERO);
    let f = b.build().unwrap();
    assert!(f.reaches(HostId(0), HostId(1)));
    assert_eq!(f.route(NodeId(0), HostId(1)), &[PortIndex(0)]);
}

#[test]
fn the_error_names_a_host_without_a_link() {
    let mut b = FabricBuilder::new();
    b.host("lonely");
    assert_eq!(b.build().unwrap_err(), FabricError::HostWithoutLink("lonely".into()));
}

/// Links from every node to `root`, by simple relaxation.
fn hops(f: &Fabric, root: NodeId) -> Vec<Option<usize>> {
    let mut hops = vec![None; f.nodes()];
    hops[root.index()] = Some(0);
    for far in 1..f.nodes() {
        for link in f.links().iter().filter(|l| !f.is_host(l.to)) {
            if hops[link.from.index()] == Some(far - 1) {
                hops[link.to.index()].get_or_insert(far);
            }
        }
    }
    hops
}

/// Compares every route with its definition.
fn routes_are_shortest(f: &Fabric) {
    for (rack, &root) in f.racks().iter().enumerate().filter(|&(_, &root)| !f.is_host(root)) {
        let hops = hops(f, root);
        for node in f.switches().filter(|&node| node != root) {
            let far = hops[node.index()];
            let closer = |l: &&Link| far.is_some() && hops[l.to.index()].map(|h| h + 1) == far;
            let expected: Vec<_> = f.ports(node).iter().filter(closer).map(|l| l.port).collect();
            assert_eq!(f.route_to_rack(node, rack), expected, "{} to {}", f.name(node), f.name(root));
            for to in (0..f.hosts() as u32).map(HostId).filter(|&to| f.rack(to) == rack) {
                assert_eq!(f.router(node).ports(to), (f.route(node, to), false));
            }
        }
    }
    for to in (0..f.hosts() as u32).map(HostId) {
        let tor = f.attachment(to);
        if !f.is_host(tor) {
            let down = f.uplink(to).peer_port;
            assert_eq!((f.route(tor, to), f.router(tor).ports(to)), (&[down][..], (&[down][..], true)));
        }
    }
}

#[test]
fn switches_with_the_same_routes_share_a_row() {
    let f = leaf_spine(16, 16, 4);
    routes_are_shortest(&f);
    assert_eq!(f.routes.rows().len(), 2 * 16, "one row for leaves, one for spines");
    // A k = 4 fat tree: 4 pods of 2 x 2 switches and 4 core switches.
    let mut b = FabricBuilder::new();
    let hosts: Vec<_> = (0..16).map(|h| b.host(format!("h{h}"))).collect();
    let [edge, above, core] =
        [8, 8, 4].map(|n| (0..n).map(|i| b.switch(format!("{n}.{i}"), "")).collect::<Vec<_>>());
    let mut join = |a, c| b.connect(a, c, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
    (0..16).for_each(|h| join(hosts[h], edge[h / 2]));
    (0..16).for_each(|i| join(edge[i / 2], above[i / 4 * 2 + i % 2]));
    (0..16).for_each(|i| join(above[i / 2], core[i / 2 % 2 * 2 + i % 2]));
    let f = b.build().unwrap();
    routes_are_shortest(&f);
    assert_eq!(
        f.routes.rows().len(),
        (1 + 4 + 1) * 8,
        "edge switches, aggregation switches of each pod, core"
    );
}

#[test]
fn a_tier_is_the_number_of_switches_up_from_a_host() {
    let mut b = FabricBuilder::new();
    let host = b.host("h");
    let up: Vec<_> = (0..3).map(|i| b.switch(format!("s{i}"), "switch")).collect();
    let alone = b.switch("alone", "switch");
    let mut join = |a, c| b.connect(a, c, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
    join(host, up[0]);
    join(up[0], up[1]);
    join(up[1], up[2]);
    let f = b.build().unwrap();
    assert_eq!([host, up[0], up[1], up[2], alone].map(|node| f.tier(node)), [0, 1, 2, 3, 0]);
}

proptest! {
    #[test]
    fn on_any_graph_routes_are_the_shortest_paths(
        switches in 1..9usize,
        hosts in proptest::collection::vec(0..9usize, 1..12),
        links in proptest::collection::vec((0..9usize, 0..9usize), 0..30),
    ) {
        let mut b = FabricBuilder::new();
        let hosts: Vec<_> = hosts.iter().enumerate().map(|(i, at)| (b.host(format!("h{i}")), at % switches)).collect();
        let switch: Vec<_> = (0..switches).map(|i| b.switch(format!("s{i}"), "switch")).collect();
        let ends = links.iter().map(|(x, y)| (x % switches, y % switches)).filter(|(x, y)| x != y);
        let cables = ends.map(|(x, y)| (switch[x], switch[y])).chain(hosts.iter().map(|&(h, at)| (h, switch[at])));
        for (x, y) in cables {
            b.connect(x, y, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
        }
        routes_are_shortest(&b.build().unwrap());
    }
}
