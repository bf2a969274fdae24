//! What links did in a run, and why a link was paused.

use model::{Fabric, HostId, LinkId, NodeId, Plan, Time};
use results::Results;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a link did in the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Share of the run in which its wire was busy.
    pub(crate) busy: f64,
    /// Share of the run in which its sender was paused.
    pub(crate) paused: f64,
    /// Longest queue before it, bytes.
    pub(crate) queue: u64,
    /// Packets lost on it.
    pub(crate) lost: u64,
    /// Packets dropped before it for lack of buffer.
    pub(crate) drops: u64,
}

/// What all links did in the run.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    loads: Vec<Load>,
    /// Length of the run.
    pub(crate) run: Time,
}

impl Loads {
    /// `None` if the results have no table of links, or that of another fabric.
    pub(crate) fn of(plan: &Plan, results: &Results) -> Option<Self> {
        let table = results.table("links")?;
        let (busy, paused) = (table.reals("busy_share")?, table.reals("paused_us")?);
        let (queue, lost) = (table.counts("max_queue_bytes")?, table.counts("lost")?);
        let drops = table.counts("drops")?;
        let end_us = results.summary.sim_time_us;
        let load = |row: usize| Load {
            busy: busy.value(row),
            paused: if end_us > 0.0 { paused.value(row) / end_us } else { 0.0 },
            queue: queue.value(row),
            lost: lost.value(row),
            drops: drops.value(row),
        };
        let loads: Vec<Load> = (0..table.rows()).map(load).collect();
        (loads.len() == plan.fabric.links().len())
            .then(|| Loads { loads, run: Time((end_us * 1e6).round() as u64) })
    }

    pub(crate) fn get(&self, link: LinkId) -> Load {
        self.loads.get(link.index()).copied().unwrap_or_default()
    }

    /// Time for which the link's sender was paused, us.
    pub(crate) fn paused_us(&self, link: LinkId) -> f64 {
        self.get(link).paused * self.run.as_us()
    }

    /// The link for which `value` is largest, the first of equals; `None` if it is 0 everywhere.
    pub(crate) fn most(&self, value: impl Fn(&Load) -> u64) -> Option<LinkId> {
        let most = (0..self.loads.len()).rev().max_by_key(|&i| value(&self.loads[i]))?;
        (value(&self.loads[most]) > 0).then_some(LinkId(most as u32))
    }
}

/// All links on the shortest paths from one host to another.
pub(crate) fn between(fabric: &Fabric, from: HostId, to: HostId) -> BTreeSet<LinkId> {
    let mut links = BTreeSet::from([LinkId(from.0)]);
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    let mut next = vec![fabric.uplink(from).to];
    while let Some(node) = next.pop() {
        if node == fabric.node_of(to) || !seen.insert(node) {
            continue;
        }
        for &port in fabric.route(node, to) {
            let link = fabric.link(node, port);
            links.insert(link);
            next.push(fabric.links()[link.index()].to);
        }
    }
    links
}

/// Name of a link: `spine1 -> leaf0`.
pub(crate) fn name(fabric: &Fabric, link: LinkId) -> String {
    let link = &fabric.links()[link.index()];
    format!("{} -> {}", fabric.name(link.from), fabric.name(link.to))
}

/// Why a link was paused: links, each of which was paused because the queue before the next one was long. The last one was full, or
/// its host took data too slowly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pauses {
    /// Paused links, from the flow's to the last.
    pub paused: Vec<String>,
    /// Their pauses over the whole run, us.
    pub paused_us: Vec<u64>,
    /// The link that held all others up.
    pub cause: String,
    /// Node at the end of that link.
    pub to: String,
    /// True if that host paused its own link because it took data too slowly.
    pub slow_host: bool,
    /// Longest queue before that link, bytes.
    pub queue_bytes: u64,
}

/// Smallest share of a link's pauses that a next link must have to have caused them. Our choice.
const PASSED_ON: f64 = 0.5;

/// The last link of the chain of pauses that begins with `first`, which was paused, and the paused links before it.
pub(crate) fn chain(plan: &Plan, loads: &Loads, first: LinkId) -> (Vec<LinkId>, LinkId) {
    let fabric = &plan.fabric;
    let (mut paused, mut seen) = (vec![first], BTreeSet::from([first]));
    loop {
        let last = paused[paused.len() - 1];
        let node = fabric.links()[last.index()].to;
        if fabric.is_host(node) {
            // The host paused its own link.
            return (paused, last);
        }
        let back = fabric.reverse(last);
        let ports = (0..fabric.ports(node).len()).map(|port| LinkId(fabric.base(node) + port as u32));
        // The first of equally long queues wins.
        let next = ports
            .filter(|link| *link != back)
            .rev()
            .max_by_key(|link| loads.get(*link).queue)
            .filter(|link| loads.get(*link).queue > 0);
        let Some(next) = next else { return (paused, last) };
        let passed_on = loads.get(next).paused >= PASSED_ON * loads.get(last).paused;
        if !passed_on || !seen.insert(next) {
            return (paused, next);
        }
        paused.push(next);
    }
}

impl Pauses {
    /// The reason why `first` was paused; `None` if it was not.
    pub(crate) fn of(plan: &Plan, loads: &Loads, first: LinkId) -> Option<Self> {
        if loads.get(first).paused <= 0.0 {
            return None;
        }
        let (paused, cause) = chain(plan, loads, first);
        let fabric = &plan.fabric;
        let to = fabric.links()[cause.index()].to;
        Some(Pauses {
            slow_host: fabric.is_host(to) && paused.contains(&cause),
            paused_us: paused.iter().map(|link| loads.paused_us(*link).round() as u64).collect(),
            paused: paused.iter().map(|link| name(fabric, *link)).collect(),
            cause: name(fabric, cause),
            to: fabric.name(to).to_owned(),
            queue_bytes: loads.get(cause).queue,
        })
    }

    /// The chain in words, from its cause to the flow.
    pub(crate) fn sentence(&self) -> String {
        let mut text = match self.slow_host {
            true => format!("{} took data too slowly", self.to),
            false => format!(
                "the port {} was full (its queue reached {})",
                self.cause,
                results::text::bytes(self.queue_bytes)
            ),
        };
        let held = self.paused.iter().zip(&self.paused_us).rev();
        for (i, (link, us)) in held.enumerate() {
            let and = if i == 0 { ", so" } else { ", and so" };
            text += &format!("{and} {link} was paused for {} us", results::text::count(*us));
        }
        text
    }
}
