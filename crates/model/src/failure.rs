//! Links that go down, come back or run at another rate, as events in time, and what routing makes of it.
//!
//! The rules, which the engine obeys:
//!
//! * A packet of any kind is lost if its link is down at any time between its start and its arrival. What waits at a
//!   port whose link is down starts as it would otherwise, and is lost: the queue behind a dead port is dropped at the
//!   pace of its link. (Our choice. Switches flush such a queue; if it were kept it would hold buffer, and PFC would
//!   carry the failure to ports that have nothing to do with it.)
//! * A rate holds from the next start on.
//! * A pause frame is lost if either direction of its link is down on its way. Pauses end when a link goes down and
//!   when it comes back; a switch that still needs one asks for it again when the link is back.
//! * Routing takes note of links that went down or came back after one delay for all switches, the *detection*. To it
//!   a link is down if either direction is. It does not take note of rates. What is down from the start it knows from
//!   the start.
//! * At one instant links change first, then routes, then everything else.

use crate::fabric::Routing;
use crate::{Fabric, FabricError, HostId, LinkId, Rate, Time};
use std::collections::{BTreeMap, BTreeSet};

/// One direction of a link that is not as it should be for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The link.
    pub link: LinkId,
    /// From when on.
    pub at: Time,
    /// Until when; [`Time::NEVER`] for good.
    pub until: Time,
    /// The rate that is left; `None`: it is down.
    pub rate: Option<Rate>,
}

/// A link from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The link, one direction.
    pub link: LinkId,
    /// From when on.
    pub at: Time,
    /// Its rate from then on; `None`: it is down.
    pub rate: Option<Rate>,
}

/// The routes of all switches change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChange {
    /// When.
    pub at: Time,
    /// To which routing; `None`: that of the whole fabric.
    routing: Option<usize>,
}

/// All failures of a run.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// By link, then by time; consecutive ones of one link differ.
    changes: Vec<LinkChange>,
    /// In order of time.
    route_changes: Vec<RouteChange>,
    routings: Vec<Routing>,
}

impl Failures {
    /// From faults, which may overlap: a link is down if any of them says so, else it runs at the lowest rate that
    /// one of them leaves. Faults that end before they begin are none.
    ///
    /// # Errors
    /// If the routes are too many for their table.
    pub fn new(fabric: &Fabric, faults: &[Fault], detection: Time) -> Result<Self, FabricError> {
        let mut failures = Failures { changes: changes(fabric, faults), ..Failures::default() };
        failures.find_route_changes(fabric, detection)?;
        Ok(failures)
    }

    /// Nothing ever fails.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All changes, by link and then by time.
    pub fn changes(&self) -> &[LinkChange] {
        &self.changes
    }

    /// Those of one link.
    pub fn of(&self, link: LinkId) -> &[LinkChange] {
        let first = self.changes.partition_point(|change| change.link < link);
        let last = self.changes.partition_point(|change| change.link <= link);
        &self.changes[first..last]
    }

    /// When routes change, in order of time.
    pub fn route_changes(&self) -> &[RouteChange] {
        &self.route_changes
    }

    /// The routing that holds from a turn on; `None`: that of the whole fabric.
    #[inline]
    pub fn routing(&self, change: &RouteChange) -> Option<&Routing> {
        self.routings.get(change.routing?)
    }

    /// The last time at which a link comes back; zero if none does.
    pub fn last_repair(&self) -> Time {
        let back = self.changes.windows(2).filter(|w| w[0].link == w[1].link && w[0].rate.is_none());
        back.map(|w| w[1].at).max().unwrap_or(Time::ZERO)
    }

    /// Whether packets from `from` reach `to` by the routes that hold in the end.
    pub fn reach_in_the_end(&self, fabric: &Fabric, from: HostId, to: HostId) -> bool {
        let last = self.route_changes.last().and_then(|turn| self.routing(turn));
        fabric.reaches_by(last, from, to)
    }

    fn find_route_changes(&mut self, fabric: &Fabric, detection: Time) -> Result<(), FabricError> {
        let mut by_time: Vec<(Time, LinkId, bool)> =
            self.changes.iter().map(|c| (c.at, c.link, c.rate.is_none())).collect();
        by_time.sort();
        let mut down = vec![false; fabric.links().len()];
        // Directions that are down, of every link, under the lower of its numbers.
        let mut dead: BTreeMap<LinkId, u8> = BTreeMap::new();
        let mut known: BTreeMap<Vec<LinkId>, usize> = BTreeMap::new();
        let (mut rerouter, mut now) = (None, Vec::new());
        for events in by_time.chunk_by(|a, b| a.0 == b.0) {
            for &(_, link, is_down) in events {
                if down[link.index()] != is_down {
                    down[link.index()] = is_down;
                    let cable = link.min(fabric.reverse(link));
                    let directions = dead.entry(cable).or_insert(0);
                    *directions = if is_down { *directions + 1 } else { *directions - 1 };
                    if *directions == 0 {
                        dead.remove(&cable);
                    }
                }
            }
            let mut both: Vec<LinkId> = dead.keys().flat_map(|&l| [l, fabric.reverse(l)]).collect();
            both.sort();
            if both == now {
                continue;
            }
            now.clone_from(&both);
            let routing = match known.get(&both) {
                _ if both.is_empty() => None,
                Some(&number) => Some(number),
                None => {
                    let rerouter = rerouter.get_or_insert_with(|| {
                        let ever = self.changes.iter().filter(|change| change.rate.is_none());
                        let ever: BTreeSet<LinkId> =
                            ever.flat_map(|c| [c.link, fabric.reverse(c.link)]).collect();
                        fabric.rerouter(&ever.into_iter().collect::<Vec<_>>())
                    });
                    self.routings.push(rerouter.around(both.clone())?);
                    known.insert(both, self.routings.len() - 1);
                    Some(self.routings.len() - 1)
                }
            };
            let at = events[0].0;
            let at = if at == Time::ZERO { at } else { Time(at.ps().saturating_add(detection.ps())) };
            self.route_changes.push(RouteChange { at, routing });
        }
        Ok(())
    }
}

/// What faults come to, link by link.
fn changes(fabric: &Fabric, faults: &[Fault]) -> Vec<LinkChange> {
    let mut faults: Vec<Fault> = faults.iter().copied().filter(|f| f.at < f.until).collect();
    faults.sort_by_key(|f| (f.link, f.at));
    let mut changes: Vec<LinkChange> = Vec::new();
    for of_link in faults.chunk_by(|a, b| a.link == b.link) {
        let link = of_link[0].link;
        let whole = Some(fabric.links()[link.index()].rate);
        let mut times: Vec<Time> = of_link.iter().flat_map(|f| [f.at, f.until]).collect();
        times.sort();
        times.dedup();
        let mut before = whole;
        for at in times.into_iter().filter(|&at| at != Time::NEVER) {
            let active = of_link.iter().filter(|f| f.at <= at && at < f.until);
            // Down, which is `None`, is less than any rate.
            let rate = active.map(|f| f.rate).min().unwrap_or(whole);
            if rate != before {
                changes.push(LinkChange { link, at, rate });
                before = rate;
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FabricBuilder, PortIndex, Probability};

    const GBPS: Rate = Rate::from_gbps(100);

    /// Two leaves with a host each, two spines; `l0 - s0` is the first link between switches.
    fn fabric() -> Fabric {
        let mut b = FabricBuilder::new();
        let hosts: Vec<_> = (0..2).map(|h| b.host(format!("h{h}"))).collect();
        let leaves: Vec<_> = (0..2).map(|l| b.switch(format!("l{l}"), "leaf")).collect();
        let spines: Vec<_> = (0..2).map(|s| b.switch(format!("s{s}"), "spine")).collect();
        let mut join = |a, z| b.connect(a, z, GBPS, Time::from_us(1), Probability::ZERO);
        (0..2).for_each(|i| join(hosts[i], leaves[i]));
        for &leaf in &leaves {
            spines.iter().for_each(|&spine| join(leaf, spine));
        }
        b.build().unwrap()
    }

    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    /// Both directions between two neighbours.
    fn cable(f: &Fabric, a: &str, b: &str) -> [LinkId; 2] {
        let (a, b) = (f.find(a).unwrap(), f.find(b).unwrap());
        let link = f.ports(a).iter().find(|l| l.to == b).unwrap();
        let link = f.link(a, link.port);
        [link, f.reverse(link)]
    }

    /// Down from `at` us until `until` us, 0 for good.
    fn down(f: &Fabric, a: &str, b: &str, at: u64, until: u64) -> Vec<Fault> {
        let until = if until == 0 { Time::NEVER } else { us(until) };
        let fault = |link| Fault { link, at: us(at), until, rate: None };
        cable(f, a, b).into_iter().map(fault).collect()
    }

    #[test]
    fn of_overlapping_faults_the_worst_holds() {
        let f = fabric();
        let link = cable(&f, "l0", "s0")[0];
        let fault = |at, until, gbps: Option<u64>| Fault {
            link,
            at: us(at),
            until: us(until),
            rate: gbps.map(Rate::from_gbps),
        };
        let faults =
            [fault(10, 50, Some(10)), fault(20, 30, None), fault(5, 60, Some(40)), fault(7, 7, None)];
        let failures = Failures::new(&f, &faults, us(1)).unwrap();
        let seen: Vec<_> = failures.of(link).iter().map(|c| (c.at, c.rate)).collect();
        let gbps = |n| Some(Rate::from_gbps(n));
        let want =
            [(us(5), gbps(40)), (us(10), gbps(10)), (us(20), None), (us(30), gbps(10)), (us(50), gbps(40))];
        assert_eq!(seen[..5], want);
        assert_eq!(seen[5..], [(us(60), gbps(100))]);
        assert_eq!(failures.route_changes().iter().map(|t| t.at).collect::<Vec<_>>(), [us(21), us(31)]);
        assert_eq!(failures.last_repair(), us(30));
    }

    #[test]
    fn routes_avoid_a_dead_link_after_its_detection_and_come_back() {
        let f = fabric();
        let failures = Failures::new(&f, &down(&f, "l0", "s0", 10, 20), us(3)).unwrap();
        let [lost, back] = failures.route_changes() else { panic!("{:?}", failures.route_changes()) };
        assert_eq!((lost.at, back.at), (us(13), us(23)));
        assert!(failures.routing(back).is_none());
        let routing = failures.routing(lost);
        let route = |node: &str, to: u16| {
            let router = f.router_by(routing, f.find(node).unwrap());
            router.ports(HostId(to)).0.to_vec()
        };
        assert_eq!(route("l0", 1), [PortIndex(2)], "by s1 alone");
        assert_eq!(route("l1", 0), [PortIndex(2)], "the other leaf knows it, too");
        assert_eq!(route("s1", 0), [PortIndex(0)]);
        // Never down and up again: a packet that is caught at s0 is lost.
        assert_eq!(route("s0", 0), [PortIndex(0)]);
        assert_eq!(route("s0", 1), [PortIndex(1)]);
        assert!(f.reaches_by(routing, HostId(0), HostId(1)));
    }

    #[test]
    fn what_is_dead_from_the_start_is_known_from_the_start() {
        let f = fabric();
        let failures = Failures::new(&f, &down(&f, "l0", "s0", 0, 20), us(3)).unwrap();
        assert_eq!(failures.route_changes().iter().map(|t| t.at).collect::<Vec<_>>(), [us(0), us(23)]);
    }

    #[test]
    fn to_routing_a_link_is_dead_if_one_direction_is_and_a_slow_one_is_not() {
        let f = fabric();
        let [there, back] = cable(&f, "l0", "s1");
        let slow = Fault { link: there, at: us(1), until: Time::NEVER, rate: Some(Rate::from_gbps(1)) };
        assert!(Failures::new(&f, &[slow], us(1)).unwrap().route_changes().is_empty());
        let one = Fault { rate: None, ..slow };
        let failures = Failures::new(&f, &[one, slow], us(1)).unwrap();
        let routing = failures.routing(&failures.route_changes()[0]).unwrap();
        assert!(routing.is_dead(there) && routing.is_dead(back));
        assert_eq!(routing.dead().len(), 2);
    }

    #[test]
    fn a_host_behind_a_dead_link_is_cut_off_and_so_are_leaves_without_a_common_spine() {
        let f = fabric();
        let cut = |faults: &[Fault]| {
            let failures = Failures::new(&f, faults, us(1)).unwrap();
            !failures.reach_in_the_end(&f, HostId(0), HostId(1))
        };
        assert!(cut(&down(&f, "h0", "l0", 5, 0)) && cut(&down(&f, "h1", "l1", 5, 0)));
        assert!(!cut(&down(&f, "h1", "l1", 5, 6)));
        let mut both = down(&f, "l0", "s0", 5, 0);
        assert!(!cut(&both));
        both.extend(down(&f, "l1", "s1", 5, 0));
        assert!(cut(&both));
    }
}
