//! Distances to other ToRs, and the number of paths to each.

use super::tags::MOST_PATHS;
use model::{NodeId, Plan, Time};

/// Distance from one ToR to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Distance {
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
pub(super) fn from_tor(plan: &Plan, node: NodeId, signal: u32) -> Vec<Distance> {
    (0..plan.fabric.racks().len()).map(|rack| to_rack(plan, node, rack, signal)).collect()
}

/// Maximum of each field over some distances.
pub(super) fn longest(distances: &[Distance]) -> Distance {
    let most = |distance: Distance, other: &Distance| Distance {
        round_trip: distance.round_trip.max(other.round_trip),
        paths: distance.paths.max(other.paths),
        links: distance.links.max(other.links),
    };
    distances.iter().fold(Distance::default(), most)
}

/// Maximum of each field over all pairs of ToRs in a fabric.
pub(super) fn longest_in(plan: &Plan, signal: u32) -> Distance {
    let tors = plan.fabric.racks().iter().copied().filter(|&node| !plan.fabric.is_host(node));
    longest(&tors.map(|tor| longest(&from_tor(plan, tor, signal))).collect::<Vec<_>>())
}

fn to_rack(plan: &Plan, node: NodeId, rack: usize, signal: u32) -> Distance {
    let fabric = &plan.fabric;
    let end = fabric.racks()[rack];
    if end == node || fabric.is_host(end) {
        return Distance::default();
    }
    let uplinks = fabric.route_to_rack(node, rack);
    let beyond = uplinks.iter().map(|&uplink| {
        let mut distance = Distance { round_trip: Time::ZERO, paths: uplinks.len(), links: 0 };
        let (mut at, mut port) = (node, uplink);
        // Every link leads closer to `end`, so the loop ends.
        for _ in 0..fabric.nodes() {
            let link = fabric.ports(at)[port.index()];
            let frames = plan.wire.transmission(link.rate, plan.wire.max_frame())
                + plan.wire.transmission(link.rate, signal);
            let trip = link.delay.ps().saturating_mul(2).saturating_add(frames.ps());
            distance.round_trip = Time(distance.round_trip.ps().saturating_add(trip));
            distance.links += 1;
            at = link.to;
            if at == end {
                break;
            }
            let Some(&next) = fabric.route_to_rack(at, rack).first() else { break };
            distance.paths = distance.paths.saturating_mul(fabric.route_to_rack(at, rack).len());
            port = next;
        }
        distance
    });
    let distance = longest(&beyond.collect::<Vec<_>>());
    Distance { paths: distance.paths.min(MOST_PATHS), ..distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{leaf_spine, pods};

    #[test]
    fn the_round_trip_and_the_paths_of_two_and_three_tiers() {
        let plan = leaf_spine(3, 4, 1);
        let node = plan.fabric.find("leaf0").unwrap();
        let distances = from_tor(&plan, node, 64);
        assert_eq!(distances[0], Distance::default(), "its own rack");
        // Two links of 1 us and back; 1520 and 84 bytes on them, 80 ps each.
        let round_trip = Time(4_000_000 + 2 * (1520 + 84) * 80);
        assert_eq!(distances[2], Distance { round_trip, paths: 4, links: 2 });
        // Two aggregation switches with three cores each.
        let plan = pods(2, 2, &[3, 3]);
        let node = plan.fabric.find("edge0.0").unwrap();
        let distances = from_tor(&plan, node, 64);
        assert_eq!((distances[1].paths, distances[1].links), (2, 2), "in the same pod");
        assert_eq!((distances[2].paths, distances[2].links), (6, 4));
        assert_eq!(distances[2].round_trip, Time(2 * round_trip.ps()));
        assert_eq!(longest_in(&plan, 64), distances[2]);
    }
}
