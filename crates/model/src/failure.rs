//! Links that go down, come back, run at another rate or lose packets at random, and NICs that pause their links without end, as
//! events in time, and the changes of routes that follow.
//!
//! The engine follows these rules:
//!
//! * A packet of any kind is lost if its link is down at any time between the packet's start and its arrival. Packets that
//!   wait at a port with a dead link start as usual and are lost, so the queue behind a dead port is dropped at the rate of
//!   its link. This is our choice; switches flush such a queue. A queue that stayed would occupy buffer, and PFC would
//!   spread the failure to ports that have nothing to do with it.
//! * A new rate applies from the next packet's start on.
//! * A gray link loses packets at random. The chance at a packet's start counts. Neither routing nor either end notices.
//! * A pause frame is lost if either direction of its link is down while the frame is in flight. Pauses end when a link
//!   goes down and when it comes back; a switch that still needs a pause then sends a new one.
//! * All switches change their routes one delay after a link has gone down or come back, the *detection*, or each of them
//!   when it learns of it ([`Clocks`]). To routing a link is down if either direction is down. Routing ignores rates. It avoids links that are down from the start from the
//!   start on.
//! * Frozen routes never change: a detection of [`Time::NEVER`]. They lead over dead links for the whole run.
//! * In a storm of pauses a host sends a pause frame for each priority again and again. Routing does not notice. The host's own
//!   packets go on.
//! * At one instant links change first, then routes, then everything else.

mod detection;
mod words;

use crate::fabric::Routing;
use crate::{Fabric, FabricError, HostId, LinkId, NodeId, PortChoice, PortSharing, Probability, Rate, Time};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

pub use detection::{Clocks, Learned};
pub use words::{percent, rate_in_words, time_in_words, when};

/// What a fault does to one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The link is down.
    Down,
    /// The link runs at this rate.
    Slow(Rate),
    /// The link loses this share of its packets at random, a gray failure.
    Gray(Probability),
    /// The host at the start of the link pauses the other direction.
    Storm,
}

/// A time span in which one direction of a link is down, slow or gray, or in which its host pauses the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The link.
    pub link: LinkId,
    /// Start of the fault.
    pub at: Time,
    /// End of the fault; [`Time::NEVER`] if it is permanent.
    pub until: Time,
    /// What happens to the link.
    pub effect: Effect,
}

/// A change of a link's chance to lose a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossChange {
    /// The link, one direction.
    pub link: LinkId,
    /// Time of the change.
    pub at: Time,
    /// The chance from then on.
    pub loss: Probability,
}

/// A change of the state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The link, one direction.
    pub link: LinkId,
    /// Time of the change.
    pub at: Time,
    /// New rate; `None` if the link goes down.
    pub rate: Option<Rate>,
}

/// A stretch of time in which a link is down or gray, and the number of what made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// The link, one direction.
    pub link: LinkId,
    /// True if the link is gray rather than down.
    pub gray: bool,
    /// Start of the failure.
    pub at: Time,
    /// Number of the cause.
    pub entry: u32,
    /// End of the failure.
    pub until: Time,
}

/// A change of the routes of one switch or of all switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChange {
    /// Time of the change.
    pub at: Time,
    /// Index of the new routing; `None` for the routes of the whole fabric.
    routing: Option<usize>,
}

/// All failures of a run.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// By link, then by time. Consecutive entries of one link differ in rate.
    changes: Vec<LinkChange>,
    /// By link, then by time. Consecutive entries of one link differ in their chance.
    losses: Vec<LossChange>,
    /// Changes of routes in order of time, as all switches have them in the end.
    route_changes: Vec<RouteChange>,
    /// Changes of single switches, by switch and then by time, if each switch learns of failures by itself.
    of_switches: Vec<(NodeId, RouteChange)>,
    routings: Vec<Routing>,
    /// Faults that take links down or make them gray, each with the number of its cause; sorted.
    causes: Vec<Cause>,
    /// Storms of pauses by link and then by time, without overlaps: the link on which the frames travel, start and end.
    storms: Vec<(LinkId, Time, Time)>,
    /// Links that stay down for good, if routes are frozen. In a fabric of groups only links of hosts, as a detour may lead
    /// around the others.
    dead_for_good: BTreeSet<LinkId>,
}

impl Failures {
    /// The failures that result from faults, which may overlap: a link is down if one of its faults says so, else it runs at
    /// the lowest rate of its faults. Of several chances of loss, its own among them, the largest counts. A fault that does
    /// not end after its start has no effect. If `detection` is [`Time::NEVER`], routes are frozen.
    ///
    /// # Errors
    /// If the routes do not fit into their table.
    pub fn new(fabric: &Fabric, faults: &[Fault], detection: Time) -> Result<Self, FabricError> {
        let mut failures = Failures::without_routes(fabric, faults);
        match detection {
            Time::NEVER => {
                let last =
                    failures.changes.chunk_by(|a, b| a.link == b.link).filter_map(|of_link| of_link.last());
                let dead = last.filter(|change| change.rate.is_none()).map(|change| change.link);
                let of_host = |link: &LinkId| {
                    let link = &fabric.links()[link.index()];
                    fabric.is_host(link.from) || fabric.is_host(link.to)
                };
                failures.dead_for_good = dead.filter(|link| fabric.groups() == 0 || of_host(link)).collect();
            }
            _ => failures.find_route_changes(fabric, detection)?,
        }
        Ok(failures)
    }

    /// [`Failures::new`] without changes of routes; [`Failures::route_by`] adds them.
    pub fn without_routes(fabric: &Fabric, faults: &[Fault]) -> Self {
        let (changes, losses) = changes(fabric, faults);
        Failures { changes, losses, storms: storms(faults), ..Failures::default() }
    }

    /// Names the causes of failures, so that [`Failures::entry_of`] finds them.
    #[must_use]
    pub fn caused_by(mut self, mut causes: Vec<Cause>) -> Self {
        causes.sort();
        self.causes = causes;
        self
    }

    /// All outages by their causes, by link and time. They may overlap.
    pub fn outages(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter().filter(|cause| !cause.gray)
    }

    /// The number of the cause by which a link was down, or gray, from `since` on; without a link, of the last failure or recovery at
    /// that time. 0 if there is none. Of several causes, the one that began first counts.
    pub fn entry_of(&self, link: Option<LinkId>, gray: bool, since: Time) -> u32 {
        let found = match link {
            Some(link) => within(&self.causes, |cause| (cause.link, cause.gray).cmp(&(link, gray)))
                .iter()
                .find(|cause| cause.at <= since && since < cause.until),
            None => self.outages().find(|cause| cause.at == since || cause.until == since),
        };
        found.map_or(0, |cause| cause.entry)
    }

    /// True if no link ever goes down or changes its rate.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All changes, by link and then by time.
    pub fn changes(&self) -> &[LinkChange] {
        &self.changes
    }

    /// All changes of chances of loss, by link and then by time.
    pub fn losses(&self) -> &[LossChange] {
        &self.losses
    }

    /// Storms of pauses by link and then by time, without overlaps: the link on which the frames travel, start and end. A storm
    /// without an end lasts until [`Time::NEVER`].
    pub fn storms(&self) -> &[(LinkId, Time, Time)] {
        &self.storms
    }

    /// The links whose rate or chance of loss changes.
    pub fn changed_links(&self) -> BTreeSet<LinkId> {
        let rates = self.changes.iter().map(|change| change.link);
        rates.chain(self.losses.iter().map(|change| change.link)).collect()
    }

    /// True if the chance of loss of a link changes.
    pub fn is_gray(&self, link: LinkId) -> bool {
        self.losses.binary_search_by_key(&link, |change| change.link).is_ok()
    }

    /// The last change of the link's chance of loss until `at`; `None` before the first change.
    pub fn loss(&self, link: LinkId, at: Time) -> Option<LossChange> {
        let after = self.losses.partition_point(|change| (change.link, change.at) <= (link, at));
        let last = self.losses.get(after.checked_sub(1)?)?;
        (last.link == link).then_some(*last)
    }

    /// The faults of one direction of a link, in order of time: the worst of overlapping ones, as [`Failures::new`] has it.
    pub fn faults_of(&self, fabric: &Fabric, link: LinkId) -> Vec<Fault> {
        let own = &fabric.links()[link.index()];
        let rates = self.of(link).iter().map(|change| {
            let effect = change.rate.map_or(Effect::Down, Effect::Slow);
            (change.at, effect, change.rate == Some(own.rate))
        });
        let losses = within(&self.losses, |change| change.link.cmp(&link)).iter();
        let losses = losses.map(|change| (change.at, Effect::Gray(change.loss), change.loss == own.loss));
        let mut faults = Vec::new();
        for states in [rates.collect::<Vec<_>>(), losses.collect()] {
            for (i, &(at, effect, whole)) in states.iter().enumerate() {
                let until = states.get(i + 1).map_or(Time::NEVER, |next| next.0);
                if !whole {
                    faults.push(Fault { link, at, until, effect });
                }
            }
        }
        let storms = within(&self.storms, |storm| storm.0.cmp(&link)).iter();
        faults.extend(storms.map(|&(link, at, until)| Fault { link, at, until, effect: Effect::Storm }));
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    /// The rate at which the port before a link sends at a time. The port before a dead link keeps its rate, as its packets are
    /// lost on the link.
    pub fn rate(&self, fabric: &Fabric, link: LinkId, at: Time) -> Rate {
        let changes = self.of(link);
        let until = changes.partition_point(|change| change.at <= at);
        let last = changes[..until].iter().rev().find_map(|change| change.rate);
        last.unwrap_or(fabric.links()[link.index()].rate)
    }

    /// The mean of [`Failures::rate`] over a time span, bit/s; of an empty span the rate at its start.
    pub fn mean_rate(&self, fabric: &Fabric, link: LinkId, from: Time, until: Time) -> f64 {
        let (mut at, mut rate) = (from, self.rate(fabric, link, from));
        let whole = until.since(from).ps() as f64;
        if self.of(link).is_empty() || whole <= 0.0 {
            return rate.bps() as f64;
        }
        let mut bits = 0.0;
        for change in self.of(link).iter().filter(|change| from < change.at && change.at < until) {
            bits += rate.bps() as f64 * change.at.since(at).ps() as f64;
            (at, rate) = (change.at, change.rate.unwrap_or(rate));
        }
        (bits + rate.bps() as f64 * until.since(at).ps() as f64) / whole
    }

    /// Changes of one link, in order of time.
    pub fn of(&self, link: LinkId) -> &[LinkChange] {
        within(&self.changes, |change| change.link.cmp(&link))
    }

    /// All changes of routes, in order of time. If each switch learns of failures by itself, their times are those of the
    /// last switch.
    pub fn route_changes(&self) -> &[RouteChange] {
        &self.route_changes
    }

    /// True if each switch learns of failures by itself. Packets may then run in circles.
    pub fn is_by_switch(&self) -> bool {
        !self.of_switches.is_empty()
    }

    /// The changes of single switches, by switch and then by time; empty if all switches change their routes at once.
    pub fn of_switches(&self) -> &[(NodeId, RouteChange)] {
        &self.of_switches
    }

    /// A change of the routes of a switch: of [`Failures::of_switches`], or else of all.
    #[inline]
    pub fn change_at_switch(&self, index: usize) -> &RouteChange {
        match self.of_switches.is_empty() {
            true => &self.route_changes[index],
            false => &self.of_switches[index].1,
        }
    }

    /// The routing after a change; `None` stands for the routes of the whole fabric.
    #[inline]
    pub fn routing(&self, change: &RouteChange) -> Option<&Routing> {
        self.routings.get(change.routing?)
    }

    /// Time of the last repair of a link; zero if there is none.
    pub fn last_repair(&self) -> Time {
        let back = self.changes.windows(2).filter(|w| w[0].link == w[1].link && w[0].rate.is_none());
        back.map(|w| w[1].at).max().unwrap_or(Time::ZERO)
    }

    /// True if packets from `from` reach `to` by the last routes of the run, in a bond by any ports of their NICs. With frozen
    /// routes, this holds if packets on at least one of the paths do, in both directions; no queue pair then moves in its bond, but it
    /// may go to its next device.
    pub fn reach_in_the_end(
        &self,
        fabric: &Fabric,
        sharing: Option<PortSharing>,
        from: HostId,
        to: HostId,
    ) -> bool {
        if !self.dead_for_good.is_empty() {
            let over = |from, to| fabric.reaches_over(&self.dead_for_good, from, to);
            let both = |from, to| over(from, to) && over(to, from);
            let devices = sharing.filter(|sharing| matches!(sharing.choice, PortChoice::Devices(_)));
            let next = |sharing: PortSharing| both(sharing.turned(from, 1), sharing.turned(to, 1));
            return both(from, to) || devices.is_some_and(next);
        }
        let last = self.route_changes.last().and_then(|change| self.routing(change));
        let (from, to) = sharing.map_or((from, to), |sharing| sharing.joined(fabric, last, from, to));
        fabric.reaches_by(last, from, to)
    }

    /// Both directions of all links that ever go down.
    fn ever_dead(&self, fabric: &Fabric) -> Vec<LinkId> {
        let ever = self.changes.iter().filter(|change| change.rate.is_none());
        let ever: BTreeSet<LinkId> = ever.flat_map(|c| [c.link, fabric.reverse(c.link)]).collect();
        ever.into_iter().collect()
    }

    /// All changes of the set of dead links, in order of time.
    fn turns(&self, fabric: &Fabric) -> Vec<Turn> {
        let mut by_time: Vec<(Time, LinkId, bool)> =
            self.changes.iter().map(|c| (c.at, c.link, c.rate.is_none())).collect();
        by_time.sort();
        let mut down = vec![false; fabric.links().len()];
        // By link, under the lower number of its two directions: the number of directions that are down.
        let mut dead: BTreeMap<LinkId, u8> = BTreeMap::new();
        let mut turns: Vec<Turn> = Vec::new();
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
            if both != turns.last().map_or(&[][..], |turn| &turn.dead) {
                turns.push(Turn { at: events[0].0, dead: both });
            }
        }
        turns
    }

    fn find_route_changes(&mut self, fabric: &Fabric, detection: Time) -> Result<(), FabricError> {
        let mut known: BTreeMap<Vec<LinkId>, usize> = BTreeMap::new();
        let mut rerouter = None;
        for Turn { at, dead } in self.turns(fabric) {
            let routing = match known.get(&dead) {
                _ if dead.is_empty() => None,
                Some(&number) => Some(number),
                None => {
                    let rerouter = rerouter.get_or_insert_with(|| fabric.rerouter(&self.ever_dead(fabric)));
                    self.routings.push(rerouter.around(dead.clone())?);
                    known.insert(dead, self.routings.len() - 1);
                    Some(self.routings.len() - 1)
                }
            };
            let at = if at == Time::ZERO { at } else { Time(at.ps().saturating_add(detection.ps())) };
            self.route_changes.push(RouteChange { at, routing });
        }
        Ok(())
    }
}

/// A change of the set of dead links.
#[derive(Clone, Debug)]
struct Turn {
    at: Time,
    /// Both directions of every link that is dead from then on, in ascending order.
    dead: Vec<LinkId>,
}

/// The entries of a sorted list that are equal to what `order` compares with.
fn within<T>(all: &[T], order: impl Fn(&T) -> Ordering) -> &[T] {
    let first = all.partition_point(|entry| order(entry).is_lt());
    let last = all.partition_point(|entry| order(entry).is_le());
    &all[first..last]
}

/// The storms among faults; those of one link that touch are one.
fn storms(faults: &[Fault]) -> Vec<(LinkId, Time, Time)> {
    let storms = faults.iter().filter(|fault| fault.effect == Effect::Storm && fault.at < fault.until);
    let mut spans: Vec<_> = storms.map(|fault| (fault.link, fault.at, fault.until)).collect();
    spans.sort_unstable();
    let mut storms: Vec<(LinkId, Time, Time)> = Vec::new();
    for (link, at, until) in spans {
        match storms.last_mut() {
            Some(last) if last.0 == link && at <= last.2 => last.2 = last.2.max(until),
            _ => storms.push((link, at, until)),
        }
    }
    storms
}

/// The changes that faults cause, of rates and of chances of loss, by link and then by time.
fn changes(fabric: &Fabric, faults: &[Fault]) -> (Vec<LinkChange>, Vec<LossChange>) {
    let mut faults: Vec<Fault> = faults.iter().copied().filter(|f| f.at < f.until).collect();
    faults.sort_by_key(|f| (f.link, f.at));
    let (mut changes, mut losses) = (Vec::new(), Vec::new());
    for of_link in faults.chunk_by(|a, b| a.link == b.link) {
        let link = of_link[0].link;
        let own = &fabric.links()[link.index()];
        let mut times: Vec<Time> = of_link.iter().flat_map(|f| [f.at, f.until]).collect();
        times.sort();
        times.dedup();
        let (mut rate_before, mut loss_before) = (Some(own.rate), own.loss);
        for at in times.into_iter().filter(|&at| at != Time::NEVER) {
            let active = || of_link.iter().filter(|f| f.at <= at && at < f.until).map(|f| f.effect);
            // `None`, a link that is down, is less than any rate.
            let rates = active().filter_map(|effect| match effect {
                Effect::Down => Some(None),
                Effect::Slow(rate) => Some(Some(rate)),
                Effect::Gray(_) | Effect::Storm => None,
            });
            let rate = rates.min().unwrap_or(Some(own.rate));
            if rate != rate_before {
                changes.push(LinkChange { link, at, rate });
                rate_before = rate;
            }
            let chances = active().filter_map(|effect| match effect {
                Effect::Gray(loss) => Some(loss),
                Effect::Down | Effect::Slow(_) | Effect::Storm => None,
            });
            let loss = chances.fold(own.loss, Probability::max);
            if loss != loss_before {
                losses.push(LossChange { link, at, loss });
                loss_before = loss;
            }
        }
    }
    (changes, losses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FabricBuilder, PortIndex, Probability};

    const GBPS: Rate = Rate::from_gbps(100);

    /// Two leaves with one host each, and two spines.
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

    /// A cable that is down from `at` us until `until` us; 0 means for good.
    fn down(f: &Fabric, a: &str, b: &str, at: u64, until: u64) -> Vec<Fault> {
        let until = if until == 0 { Time::NEVER } else { us(until) };
        let fault = |link| Fault { link, at: us(at), until, effect: Effect::Down };
        cable(f, a, b).into_iter().map(fault).collect()
    }

    #[test]
    fn the_worst_of_overlapping_faults_applies() {
        let f = fabric();
        let link = cable(&f, "l0", "s0")[0];
        let fault = |at, until, gbps: Option<u64>| Fault {
            link,
            at: us(at),
            until: us(until),
            effect: gbps.map_or(Effect::Down, |gbps| Effect::Slow(Rate::from_gbps(gbps))),
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
    fn faults_rates_and_words_of_a_link_follow_its_changes() {
        let f = fabric();
        let link = cable(&f, "l0", "s0")[0];
        let fault = |at, until, effect| Fault { link, at: us(at), until: us(until), effect };
        let slow = |gbps| Effect::Slow(Rate::from_gbps(gbps));
        let gray = Effect::Gray(Probability::new(0.001));
        let faults = [
            fault(10, 20, slow(10)),
            fault(15, 18, Effect::Down),
            fault(30, 40, Effect::Down),
            fault(12, 90, gray),
            fault(95, 99, gray),
        ];
        let failures = Failures::new(&f, &faults, us(1)).unwrap();
        let seen = failures.faults_of(&f, link);
        let want = [
            fault(10, 15, slow(10)),
            fault(12, 90, gray),
            fault(15, 18, Effect::Down),
            fault(18, 20, slow(10)),
            fault(30, 40, Effect::Down),
            fault(95, 99, gray),
        ];
        assert_eq!(seen, want);
        assert_eq!(failures.faults_of(&f, f.reverse(link)), []);
        let gbps = |at: u64| failures.rate(&f, link, us(at)).bps() / 1_000_000_000;
        assert_eq!([9, 10, 16, 18, 20, 35].map(gbps), [100, 10, 10, 10, 100, 100]);
        // 10 of 40 us at 10 Gb/s; the port before a dead link keeps its rate.
        assert_eq!(failures.mean_rate(&f, link, us(0), us(40)), 77.5e9);
        assert_eq!(failures.mean_rate(&f, link, us(5), us(15)), 55e9);
        assert_eq!(failures.mean_rate(&f, link, us(12), us(12)), 10e9);
        assert_eq!(
            failures.words_of(&f, link, us(92)),
            "slowed to 10 Gb/s from 10 us until 15 us and from 18 us until 20 us; gray (loses 0.1 % of packets) from 12 us until \
             90 us; down from 15 us until 18 us and from 30 us until 40 us"
        );
        assert_eq!(failures.words_of(&f, link, us(9)), "", "the run ended before");
    }

    #[test]
    fn a_gray_link_has_the_largest_of_its_chances_of_loss_and_keeps_its_rate_and_routes() {
        let f = fabric();
        let link = cable(&f, "l0", "s0")[0];
        let chance = Probability::new;
        let fault =
            |at, until, p| Fault { link, at: us(at), until: us(until), effect: Effect::Gray(chance(p)) };
        let failures =
            Failures::new(&f, &[fault(10, 50, 0.01), fault(20, 30, 0.5), fault(20, 40, 0.001)], us(1))
                .unwrap();
        let seen: Vec<_> = failures.losses().iter().map(|c| (c.at, c.loss)).collect();
        let want = [(10, 0.01), (20, 0.5), (30, 0.01), (50, 0.0)].map(|(at, p)| (us(at), chance(p)));
        assert_eq!(seen, want);
        let at = |ns| failures.loss(link, Time::from_ns(ns)).map(|change| change.loss);
        assert_eq!([9_999, 10_000, 49_999].map(at), [None, Some(chance(0.01)), Some(chance(0.01))]);
        assert!(failures.is_gray(link) && !failures.is_gray(f.reverse(link)));
        assert!(failures.is_empty() && failures.route_changes().is_empty());
    }

    #[test]
    fn routes_avoid_a_dead_link_from_its_detection_until_its_repair_is_detected() {
        let f = fabric();
        let failures = Failures::new(&f, &down(&f, "l0", "s0", 10, 20), us(3)).unwrap();
        let [lost, back] = failures.route_changes() else { panic!("{:?}", failures.route_changes()) };
        assert_eq!((lost.at, back.at), (us(13), us(23)));
        assert!(failures.routing(back).is_none());
        let routing = failures.routing(lost);
        let route = |node: &str, to: u32| {
            let router = f.router_by(routing, f.find(node).unwrap());
            router.ports(HostId(to)).0.to_vec()
        };
        assert_eq!(route("l0", 1), [PortIndex(2)], "only by s1");
        assert_eq!(route("l1", 0), [PortIndex(2)], "the other leaf avoids s0, too");
        assert_eq!(route("s1", 0), [PortIndex(0)]);
        // No route goes down and up again, so a packet at s0 is lost.
        assert_eq!(route("s0", 0), [PortIndex(0)]);
        assert_eq!(route("s0", 1), [PortIndex(1)]);
        assert!(f.reaches_by(routing, HostId(0), HostId(1)));
    }

    #[test]
    fn routing_avoids_a_link_that_is_dead_from_the_start_at_once() {
        let f = fabric();
        let failures = Failures::new(&f, &down(&f, "l0", "s0", 0, 20), us(3)).unwrap();
        assert_eq!(failures.route_changes().iter().map(|t| t.at).collect::<Vec<_>>(), [us(0), us(23)]);
    }

    #[test]
    fn frozen_routes_never_change_and_hosts_with_a_path_left_still_reach_each_other() {
        let f = fabric();
        let frozen = |faults: &[Fault]| Failures::new(&f, faults, Time::NEVER).unwrap();
        let reach = |faults: &[Fault]| frozen(faults).reach_in_the_end(&f, None, HostId(0), HostId(1));
        let mut dead = down(&f, "l0", "s0", 0, 0);
        assert!(frozen(&dead).route_changes().is_empty());
        assert_eq!(frozen(&dead).changes().len(), 2);
        assert!(reach(&dead), "by s1");
        // A path there by s1 and a path back by s0 are enough, since each packet takes its own way.
        let [up, back] = cable(&f, "l1", "s1");
        let one_way = |link| Fault { link, at: us(5), until: Time::NEVER, effect: Effect::Down };
        assert!(reach(&[dead[0], one_way(up)]));
        assert!(!reach(&[dead[0], one_way(back)]), "no path leads there");
        assert!(!reach(&down(&f, "h1", "l1", 5, 0)) && reach(&down(&f, "h1", "l1", 5, 6)));
        dead.extend(down(&f, "l1", "s1", 5, 0));
        assert!(!reach(&dead));
    }

    #[test]
    fn routing_avoids_a_link_with_one_dead_direction_and_keeps_a_slow_link() {
        let f = fabric();
        let [there, back] = cable(&f, "l0", "s1");
        let slow =
            Fault { link: there, at: us(1), until: Time::NEVER, effect: Effect::Slow(Rate::from_gbps(1)) };
        assert!(Failures::new(&f, &[slow], us(1)).unwrap().route_changes().is_empty());
        let one = Fault { effect: Effect::Down, ..slow };
        let failures = Failures::new(&f, &[one, slow], us(1)).unwrap();
        let routing = failures.routing(&failures.route_changes()[0]).unwrap();
        assert!(routing.is_dead(there) && routing.is_dead(back));
        assert_eq!(routing.dead().len(), 2);
    }

    #[test]
    fn a_dead_host_link_and_leaves_without_a_common_spine_cut_hosts_off() {
        let f = fabric();
        let cut = |faults: &[Fault]| {
            let failures = Failures::new(&f, faults, us(1)).unwrap();
            !failures.reach_in_the_end(&f, None, HostId(0), HostId(1))
        };
        assert!(cut(&down(&f, "h0", "l0", 5, 0)) && cut(&down(&f, "h1", "l1", 5, 0)));
        assert!(!cut(&down(&f, "h1", "l1", 5, 6)));
        let mut both = down(&f, "l0", "s0", 5, 0);
        assert!(!cut(&both));
        both.extend(down(&f, "l1", "s1", 5, 0));
        assert!(cut(&both));
    }
}
