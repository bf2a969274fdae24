//! `manifest.json`: the configuration of a run, and the command that repeats it.

use crate::data::RunData;
use crate::summary::Summary;
use crate::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;

/// The resolved configuration of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The scenario as TOML with every default filled in.
    pub text: String,
    /// Hash of the configuration; equal hashes mean equal configurations.
    pub hash: String,
}

/// Size of a run.
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

/// Size of a table in the directory.
#[derive(Clone, Copy, Debug, Serialize)]
struct StoredTable {
    rows: usize,
    /// The table holds every n-th row; this is n.
    every: usize,
}

/// Recordings over time, and how many events were not kept.
#[derive(Clone, Copy, Debug, Serialize)]
struct Recorded {
    /// Width of a bin of the series, and the number of bins.
    bin_us: f64,
    bins: usize,
    /// Events beyond the limits of `[record]`.
    events_left_out: u64,
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
    recorded: Recorded,
    tables: BTreeMap<&'static str, StoredTable>,
    config: String,
}

impl Manifest {
    /// Manifest of a run that `command` started, with its tables.
    pub fn new(
        summary: &Summary,
        config: Config,
        command: Vec<String>,
        run: RunData<'_>,
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
            config_hash: config.hash,
            digest: summary.digest.clone(),
            complete: summary.complete,
            counts: Counts {
                hosts: fabric.hosts(),
                switches: fabric.switch_count(),
                links: fabric.links().len(),
                queue_pairs: plan.qps.len(),
                flows: plan.flows(),
                data_packets: outcome.data.sent,
                data_hops: outcome.data_hops,
                control_hops: outcome.control_hops,
            },
            recorded: Recorded {
                bin_us: outcome.recording.width.as_us(),
                bins: outcome.recording.bins,
                events_left_out: outcome.notes.more_events,
            },
            tables: tables
                .iter()
                .map(|(name, t)| (*name, StoredTable { rows: t.rows(), every: t.every }))
                .collect(),
            config: config.text,
        }
    }
}
