//! Detection by each switch on its own: when it learns of a dead link, and what it knows meanwhile.

use super::{Failures, RouteChange, Turn};
use crate::draw::{Key, Purpose, scaled};
use crate::{Fabric, FabricError, LinkId, NodeId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Clocks of a switch that learns of failures by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// From a change of a switch's own port until it acts.
    pub local: Time,
    /// For each switch that passes the news on.
    pub per_hop: Time,
    /// Longest time from the news until the routes apply; each switch draws its own, uniform from 0.
    pub install: Time,
}

/// What every switch knows, and when.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Different sets of dead links that a switch holds at any time; all of them are routed around.
    sets: Vec<Vec<LinkId>>,
    /// Changes of each switch, by switch and then by time: the index of its set; `None` for the whole fabric.
    changes: Vec<(NodeId, Time, Option<usize>)>,
    /// For each change of the dead links, the time at which the last switch knows, and the set.
    last: Vec<(Time, Option<usize>)>,
}

/// Most changes of single links at single switches. Our choice: about 100 MB of events.
const MOST: usize = 1 << 22;

/// News of a cable that reaches a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct News {
    at: Time,
    turn: usize,
    cable: LinkId,
    dead: bool,
}

impl Learned {
    /// Number of sets of dead links that need routes.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    fn number(&mut self, known: &mut BTreeMap<Vec<LinkId>, usize>, dead: &[LinkId]) -> Option<usize> {
        if dead.is_empty() {
            return None;
        }
        Some(*known.entry(dead.to_vec()).or_insert_with(|| {
            self.sets.push(dead.to_vec());
            self.sets.len() - 1
        }))
    }
}

impl Failures {
    /// What every switch learns of these failures. News of a link travels over live links between switches, and of two news
    /// of one link the later one counts, in whatever order they arrive. `None` if there is too much of it.
    pub fn learned(&self, fabric: &Fabric, seed: u64, clocks: Clocks) -> Option<Learned> {
        let turns = self.turns(fabric);
        let switches = fabric.switch_count();
        let mut news: Vec<Vec<News>> = vec![Vec::new(); switches];
        let mut last = Vec::new();
        let mut before: &[LinkId] = &[];
        let mut count = 0;
        for (number, Turn { at, dead }) in turns.iter().enumerate() {
            let is_in = |set: &[LinkId], link: &LinkId| set.binary_search(link).is_ok();
            let died = dead.iter().filter(|link| !is_in(before, link));
            let back = before.iter().filter(|link| !is_in(dead, link));
            let one_of_two = |link: &&LinkId| **link < fabric.reverse(**link);
            let mut latest = Time::ZERO;
            for &cable in died.chain(back).filter(one_of_two) {
                count += switches;
                if count > MOST {
                    return None;
                }
                let is_dead = is_in(dead, &cable);
                for (switch, hops) in distances(fabric, cable, dead).into_iter().enumerate() {
                    let Some(hops) = hops else { continue };
                    let node = fabric.switch(switch);
                    let key = Key::new(seed, Purpose::Install, node.0.into());
                    let after = match hops {
                        _ if *at == Time::ZERO => 0,
                        0 => clocks.local.ps(),
                        hops => {
                            let way = clocks.per_hop.ps().saturating_mul(hops.into());
                            let install = scaled(key.draw(number as u64), clocks.install.ps());
                            clocks.local.ps().saturating_add(way).saturating_add(install)
                        }
                    };
                    let at = Time(at.ps().saturating_add(after));
                    latest = latest.max(at);
                    news[switch].push(News { at, turn: number, cable, dead: is_dead });
                }
            }
            last.push(latest);
            before = dead;
        }
        let (mut learned, mut known) = (Learned::default(), BTreeMap::new());
        for (switch, mut news) in news.into_iter().enumerate() {
            news.sort();
            let mut newest: BTreeMap<LinkId, (usize, bool)> = BTreeMap::new();
            let mut now = Vec::new();
            for at_once in news.chunk_by(|a, b| a.at == b.at) {
                for one in at_once {
                    let entry = newest.entry(one.cable).or_insert((one.turn, one.dead));
                    *entry = (*entry).max((one.turn, one.dead));
                }
                let dead = newest.iter().filter(|(_, (_, dead))| *dead);
                let mut dead: Vec<LinkId> = dead.flat_map(|(&l, _)| [l, fabric.reverse(l)]).collect();
                dead.sort();
                if dead != now {
                    let set = learned.number(&mut known, &dead);
                    learned.changes.push((fabric.switch(switch), at_once[0].at, set));
                    now = dead;
                }
            }
        }
        let mut until = Time::ZERO;
        for (Turn { dead, .. }, at) in turns.iter().zip(last) {
            until = until.max(at);
            let set = learned.number(&mut known, dead);
            learned.last.push((until, set));
        }
        Some(learned)
    }

    /// Gives every switch the routes that follow from what it knows.
    ///
    /// # Errors
    /// If the routes do not fit into their table.
    pub fn route_by(&mut self, fabric: &Fabric, learned: Learned) -> Result<(), FabricError> {
        let rerouter = fabric.rerouter(&self.ever_dead(fabric));
        for set in learned.sets {
            self.routings.push(rerouter.around(set)?);
        }
        self.route_changes =
            learned.last.into_iter().map(|(at, routing)| RouteChange { at, routing }).collect();
        let change = |(node, at, routing)| (node, RouteChange { at, routing });
        self.of_switches = learned.changes.into_iter().map(change).collect();
        Ok(())
    }
}

/// By switch: the number of switches that pass on the news of a cable, 0 at its ends; `None` where the news does not arrive.
/// It travels over live links between switches.
fn distances(fabric: &Fabric, cable: LinkId, dead: &[LinkId]) -> Vec<Option<u32>> {
    let mut found = vec![None; fabric.switch_count()];
    let mut next = VecDeque::new();
    let link = &fabric.links()[cable.index()];
    for node in [link.from, link.to] {
        if !fabric.is_host(node) {
            found[fabric.switch_number(node)] = Some(0);
            next.push_back((node, 0));
        }
    }
    while let Some((node, hops)) = next.pop_front() {
        for link in fabric.ports(node).iter().filter(|link| !fabric.is_host(link.to)) {
            let place = &mut found[fabric.switch_number(link.to)];
            if place.is_none() && dead.binary_search(&fabric.link(link.from, link.port)).is_err() {
                *place = Some(hops + 1);
                next.push_back((link.to, hops + 1));
            }
        }
    }
    found
}
