//! Switch part of schemes whose queue pairs keep explicit paths: an entropy is the number of a path, not a value to hash.

use crate::entropies::choices_below;
use model::{Cx, Interest, Packet, PortIndex, Scheme, Site, Verdict};

/// Entropy of a packet without a path of its own, which takes its flow's base path.
pub const HASHED: u16 = 0;

/// Entropy of path `path`. In every tier the next digit of the number selects an uplink, beginning with the tier of the ToRs.
/// Numbers wrap around, so every number is a path.
pub fn entropy(path: u16) -> u16 {
    path.saturating_add(1)
}

/// The scheme of one switch. ACKs and NACKs take the path with the number of the packet that they answer.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// Number of paths among which switches closer to the hosts choose.
    below: u16,
    /// Uplinks of the whole fabric; empty if different racks are reached over different sets of several ports.
    uplinks: Box<[PortIndex]>,
}

impl Pinned {
    /// The scheme of the switch of `site`.
    pub fn new(site: Site<'_>) -> Self {
        let fabric = site.fabric();
        let routes = (0..fabric.racks().len()).map(|rack| fabric.route_to_rack(site.node, rack));
        let mut choices = routes.filter(|ports| ports.len() > 1);
        let first = choices.next().unwrap_or_default();
        let uplinks = if choices.all(|ports| ports == first) { first } else { &[] };
        Pinned { below: choices_below(site), uplinks: uplinks.into() }
    }

    /// The port of a path. While its uplink leads to the destination, a path keeps it, whatever became of other uplinks.
    #[inline]
    fn port(&self, path: u16, ports: &[PortIndex]) -> PortIndex {
        let digit = usize::from(path / self.below);
        if ports.len() < self.uplinks.len() {
            let own = self.uplinks[digit % self.uplinks.len()];
            if ports.contains(&own) {
                return own;
            }
        }
        ports[digit % ports.len()]
    }
}

impl Scheme for Pinned {
    #[inline]
    fn interest(&self) -> Interest {
        Interest::default()
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        // A reply may have an entropy of its own, which the path of its packet overrides.
        let pinned = if cx.echoed > 0 { cx.echoed } else { cx.entropy };
        Verdict::Forward(match pinned.checked_sub(entropy(0)) {
            Some(path) => self.port(path, ports),
            None => cx.base_path(pkt, ports),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnyScheme;
    use crate::bench::{Bench, leaf_spine, pods, qp};
    use model::{Kind, Psn};
    use std::collections::BTreeSet;

    fn bench(plan: &model::Plan, switch: &str) -> Bench {
        let site = Site { plan, node: plan.fabric.find(switch).unwrap() };
        Bench::with(plan, switch, AnyScheme::Custom(Box::new(Pinned::new(site))))
    }

    fn port(seen: crate::bench::Seen) -> usize {
        match seen.verdict {
            Verdict::Forward(port) => port.index(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_flow_takes_the_uplink_with_the_number_of_its_path() {
        let plan = leaf_spine(2, 4, 2);
        let mut bench = bench(&plan, "leaf0");
        for (from, to) in [(0, 2), (0, 3), (1, 3)] {
            let ports = (0..8).map(|path| {
                bench.entropy = entropy(path);
                port(bench.see(bench.data(qp(&plan, from, to), Psn::new(0))))
            });
            // Ports 0 and 1 lead to hosts.
            assert_eq!(ports.collect::<Vec<_>>(), [2, 3, 4, 5, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn a_reply_takes_the_path_of_the_packet_that_it_answers() {
        let plan = leaf_spine(2, 4, 1);
        let mut bench = bench(&plan, "leaf1");
        for path in 0..4 {
            bench.echoed = entropy(path);
            // Receivers of UEC and MRC may give a reply an entropy of its own.
            for own in [0, entropy(0), u16::MAX] {
                bench.entropy = own;
                let ack = crate::bench::reply(&plan, Kind::Ack, qp(&plan, 0, 1), Psn::new(0));
                assert_eq!(port(bench.see(ack)), 1 + usize::from(path));
            }
        }
    }

    #[test]
    fn without_a_path_a_flow_takes_its_base_path() {
        let plan = leaf_spine(2, 8, 8);
        let mut bench = bench(&plan, "leaf0");
        let used: BTreeSet<usize> =
            (8..16).map(|to| port(bench.see(bench.data(qp(&plan, 0, to), Psn::new(0))))).collect();
        assert!(used.len() > 2, "{used:?}");
    }

    #[test]
    fn tiers_divide_the_digits_of_a_path() {
        let plan = pods(2, 1, &[3, 3]);
        let ports = |switch: &str| {
            let mut bench = bench(&plan, switch);
            let of = |path| {
                bench.entropy = entropy(path);
                port(bench.see(bench.data(qp(&plan, 0, 1), Psn::new(0))))
            };
            (0..6).map(of).collect::<Vec<_>>()
        };
        let paths: BTreeSet<_> = ports("edge0.0").into_iter().zip(ports("up0.0")).collect();
        assert_eq!(paths.len(), 6, "{paths:?}");
    }

    #[test]
    fn a_dead_uplink_moves_its_own_paths_only() {
        let plan = leaf_spine(2, 4, 1);
        let site = Site { plan: &plan, node: plan.fabric.find("leaf0").unwrap() };
        let pinned = Pinned::new(site);
        let left: Vec<PortIndex> = [1, 2, 4].map(PortIndex).into();
        let ports = (0..4).map(|path| pinned.port(path, &left).index());
        assert_eq!(ports.collect::<Vec<_>>(), [1, 2, 4, 4]);
    }
}
