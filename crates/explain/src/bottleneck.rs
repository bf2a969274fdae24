//! The busiest link between two hosts.

use crate::failed::{Failed, failed};
use crate::links;
use model::{Plan, Time};
use results::Results;
use serde::Serialize;

/// The busiest link on the shortest paths between two hosts, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Share of the run in which the wire was busy.
    pub busy_share: f64,
    /// Longest queue before the link, bytes.
    pub max_queue_bytes: u64,
    /// Packets dropped before the link, or lost on it.
    pub lost: u64,
    /// Links on the shortest paths between the two hosts, this link included.
    pub of_links: usize,
    /// Median of their busy shares.
    pub median_busy_share: f64,
    /// Failures of links on these paths.
    pub failures: Vec<String>,
}

/// The busiest link on the shortest paths from one host to another; `None` if a host is unknown.
pub(crate) fn between(plan: &Plan, results: &Results, from: &str, to: &str) -> Option<Bottleneck> {
    let fabric = &plan.fabric;
    let (from, to) = (fabric.find_host(from)?, fabric.find_host(to)?);
    let links = links::between(fabric, from, to);
    let table = results.table("links")?;
    let (busy, queue) = (table.reals("busy_share")?, table.counts("max_queue_bytes")?);
    let (drops, lost) = (table.counts("drops")?, table.counts("lost")?);
    let mut shares: Vec<f64> = links.iter().map(|link| busy.value(link.index())).collect();
    // The first of equally busy links wins.
    let busiest =
        links.iter().rev().max_by(|a, b| busy.value(a.index()).total_cmp(&busy.value(b.index())))?;
    shares.sort_unstable_by(f64::total_cmp);
    let end = Time((results.summary.sim_time_us * 1e6) as u64);
    let failed = failed(plan, Time::ZERO, end, |link| links.contains(&link));
    let link = &fabric.links()[busiest.index()];
    Some(Bottleneck {
        from: fabric.name(link.from).to_owned(),
        to: fabric.name(link.to).to_owned(),
        busy_share: busy.value(busiest.index()),
        max_queue_bytes: queue.value(busiest.index()),
        lost: drops.value(busiest.index()) + lost.value(busiest.index()),
        of_links: links.len(),
        median_busy_share: shares[shares.len() / 2],
        failures: failed.iter().map(Failed::sentence).collect(),
    })
}
