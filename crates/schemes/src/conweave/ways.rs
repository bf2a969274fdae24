//! Distances to other ToRs, and the number of paths to each.

use super::tags::MOST_PATHS;
use model::{NodeId, Plan, Time};

/// Distance from one ToR to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Time for a full frame there and a signal back, on an idle fabric.
    pub(super) round_trip: Time,
    /// Equal-cost paths, at most as many as a packet can name.
    pub(super) paths: usize,
    /// Links between the two ToRs.
    pub(super) links: u32,
}

/// Distances from a ToR to every rack; the default for its own rack and for unreachable ones.
///
/// Each distance is the maximum over the uplinks. Beyond an uplink the first port of every switch stands for all of its
/// ports, since they are alike in every fabric of tiers.
pub(super) fn from(plan: &Plan, node: NodeId, signal: u32) -> Vec<Way> {
    (0..plan.fabric.racks().len()).map(|rack| to_rack(plan, node, rack, signal)).collect()
}

/// Maximum of each field over some distances.
pub(super) fn longest(ways: &[Way]) -> Way {
    let most = |way: Way, other: &Way| Way {
        round_trip: way.round_trip.max(other.round_trip),
        paths: way.paths.max(other.paths),
        links: way.links.max(other.links),
    };
    ways.iter().fold(Way::default(), most)
}

/// Maximum of each field over all pairs of ToRs in a fabric.
pub(super) fn longest_of(plan: &Plan, signal: u32) -> Way {
    let tors = plan.fabric.racks().iter().copied().filter(|&node| !plan.fabric.is_host(node));
    longest(&tors.map(|tor| longest(&from(plan, tor, signal))).collect::<Vec<_>>())
}

fn to_rack(plan: &Plan, node: NodeId, rack: usize, signal: u32) -> Way {
    let fabric = &plan.fabric;
    let end = fabric.racks()[rack];
    if end == node || fabric.is_host(end) {
        return Way::default();
    }
    let uplinks = fabric.route_to_rack(node, rack);
    let beyond = uplinks.iter().map(|&uplink| {
        let mut way = Way { round_trip: Time::ZERO, paths: uplinks.len(), links: 0 };
        let (mut at, mut port) = (node, uplink);
        // Every link leads closer to `end`, so the loop ends.
        for _ in 0..fabric.nodes() {
            let link = fabric.ports(at)[port.index()];
            let frames = plan.wire.transmission(link.rate, plan.wire.max_frame())
                + plan.wire.transmission(link.rate, signal);
            let trip = link.delay.ps().saturating_mul(2).saturating_add(frames.ps());
            way.round_trip = Time(way.round_trip.ps().saturating_add(trip));
            way.links += 1;
            at = link.to;
            if at == end {
                break;
            }
            let Some(&next) = fabric.route_to_rack(at, rack).first() else { break };
            way.paths = way.paths.saturating_mul(fabric.route_to_rack(at, rack).len());
            port = next;
        }
        way
    });
    let way = longest(&beyond.collect::<Vec<_>>());
    Way { paths: way.paths.min(MOST_PATHS), ..way }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::{leaf_spine, pods};

    #[test]
    fn the_round_trip_and_the_paths_of_two_and_three_tiers() {
        let plan = leaf_spine(3, 4, 1);
        let node = plan.fabric.find("leaf0").unwrap();
        let ways = from(&plan, node, 64);
        assert_eq!(ways[0], Way::default(), "its own rack");
        // Two links of 1 us and back; 1520 and 84 bytes on them, 80 ps each.
        let round_trip = Time(4_000_000 + 2 * (1520 + 84) * 80);
        assert_eq!(ways[2], Way { round_trip, paths: 4, links: 2 });
        // Two aggregation switches with three cores each.
        let plan = pods(2, 2, &[3, 3]);
        let node = plan.fabric.find("edge0.0").unwrap();
        let ways = from(&plan, node, 64);
        assert_eq!((ways[1].paths, ways[1].links), (2, 2), "in the same pod");
        assert_eq!((ways[2].paths, ways[2].links), (6, 4));
        assert_eq!(ways[2].round_trip, Time(2 * round_trip.ps()));
        assert_eq!(longest_of(&plan, 64), ways[2]);
    }
}
