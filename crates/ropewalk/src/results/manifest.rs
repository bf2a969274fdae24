//! `manifest.json`: what was run, and enough to run it again.

use super::Run;
use super::table::Table;
use crate::summary::Summary;
use scenario::Checked;
use serde::Serialize;
use std::collections::BTreeMap;

/// How large a run was.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counts {
    hosts: usize,
    switches: usize,
    links: usize,
    queue_pairs: usize,
    flows: usize,
    data_packets: u64,
    data_hops: u64,
    control_hops: u64,
}

/// How much of a table was kept.
#[derive(Clone, Copy, Debug, Serialize)]
struct Kept {
    rows: usize,
    /// Every how many-th row was kept; 1 is all.
    every: usize,
}

/// The manifest of a run. The digest names the results, the hash names the configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    ropewalk: &'static str,
    scenario: String,
    scheme: String,
    seed: u64,
    command: Vec<String>,
    config_hash: String,
    digest: String,
    complete: bool,
    counts: Counts,
    tables: BTreeMap<&'static str, Kept>,
    config: String,
}

impl Manifest {
    /// Of a run that `command` started, and the tables made of it.
    pub fn new(
        summary: &Summary,
        checked: &Checked,
        command: Vec<String>,
        run: Run<'_>,
        tables: &BTreeMap<&'static str, Table>,
    ) -> Self {
        let (plan, outcome) = (run.plan, run.outcome);
        let fabric = &plan.fabric;
        Manifest {
            ropewalk: env!("CARGO_PKG_VERSION"),
            scenario: summary.scenario.clone(),
            scheme: summary.scheme.clone(),
            seed: summary.seed,
            command,
            config_hash: checked.hash(),
            digest: summary.digest.clone(),
            complete: summary.complete,
            counts: Counts {
                hosts: fabric.hosts(),
                switches: fabric.nodes() - fabric.hosts(),
                links: fabric.links().len(),
                queue_pairs: plan.qps.len(),
                flows: plan.messages.len(),
                data_packets: outcome.data.sent,
                data_hops: outcome.data_hops,
                control_hops: outcome.control_hops,
            },
            tables: tables.iter().map(|(name, t)| (*name, Kept { rows: t.rows(), every: t.every })).collect(),
            config: checked.to_toml(),
        }
    }
}
