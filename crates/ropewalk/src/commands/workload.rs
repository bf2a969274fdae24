//! `ropewalk workload show`.

use crate::cli::{WorkloadArgs, WorkloadCommand};
use crate::print;
use comfy_table::CellAlignment;
use lab::failure::Failure;
use model::plan::{Operation, Role, Work};
use model::{HostId, Plan};
use results::text;
use scenario::import::bytes_in;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Prints who sends how much to whom, before anything runs.
///
/// # Errors
/// The first error of the scenario.
pub fn run(args: &WorkloadArgs) -> Result<(), Failure> {
    let WorkloadCommand::Show { scenario, json } = &args.command;
    let checked = crate::input::load(scenario, None)?.checked;
    let nvlink = checked.scenario.nvlink().map_or(0, |nvlink| nvlink.rate.bps());
    let traffic = Traffic::of(&checked.plan, nvlink);
    print::out(&if *json { print::json(&traffic) } else { traffic.page(&checked.name) })
}

/// What a workload sends.
#[derive(Debug, Serialize)]
struct Traffic {
    operations: Vec<Row>,
    /// Computation of a rank, us, least and most.
    compute_us: Option<(f64, f64)>,
    /// Messages by the way that they take.
    ways: Vec<Way>,
    /// Bytes that a NIC port sends, least and most over all ports.
    sent_per_port: (u64, u64),
}

/// Operations of one kind.
#[derive(Debug, Default, Serialize)]
struct Row {
    job: String,
    dimension: String,
    operation: String,
    /// Algorithm of a collective.
    algorithm: String,
    /// NCCL's protocol of a collective.
    protocol: String,
    /// Number of channels of a collective.
    channels: u32,
    /// NCCL's second choice, if it takes 10 % longer at most by NCCL's model.
    near_tie: Option<String>,
    /// Number of operations.
    count: u64,
    /// Ranks of an operation, least and most.
    ranks: (u32, u32),
    /// Bytes of an operation, least and most.
    bytes: (u64, u64),
    /// Bytes of all operations over NICs.
    nic_bytes: u64,
    /// Bytes of all operations over NVLink.
    nvlink_bytes: u64,
    /// Ranks that take part.
    members: u64,
}

/// Messages that take one kind of way.
#[derive(Debug, Serialize)]
struct Way {
    way: &'static str,
    messages: u64,
    bytes: u64,
}

impl Traffic {
    /// `nvlink` is the rate of NVLink, bits/s.
    fn of(plan: &Plan, nvlink: u64) -> Self {
        Traffic {
            operations: rows(plan, nvlink),
            compute_us: compute(plan),
            ways: ways(plan),
            sent_per_port: sent(plan),
        }
    }

    fn page(&self, name: &str) -> String {
        let mut page = format!("{name}\n\n");
        if !self.operations.is_empty() {
            let header =
                ["", "by", "operations", "ranks", "size", "NIC bytes\nper rank", "NVLink bytes\nper rank"];
            let mut table = text::table(&header.map(str::to_owned), 1);
            for column in 0..2 {
                if let Some(words) = table.column_mut(column) {
                    words.set_cell_alignment(CellAlignment::Left);
                }
            }
            for row in &self.operations {
                let dimension =
                    if row.dimension.is_empty() { String::new() } else { format!("{} ", row.dimension) };
                let by = match row.algorithm.as_str() {
                    "" => String::new(),
                    algorithm => format!("{algorithm} {} {}", row.protocol, row.channels),
                };
                let per_rank = |bytes: u64| text::count(bytes / row.members.max(1));
                table.add_row([
                    format!("{}: {dimension}{}", row.job, row.operation),
                    by,
                    text::count(row.count),
                    range(row.ranks.0.into(), row.ranks.1.into()),
                    range(row.bytes.0, row.bytes.1),
                    per_rank(row.nic_bytes),
                    per_rank(row.nvlink_bytes),
                ]);
            }
            page += &format!("{table}\n\n");
            for row in &self.operations {
                if let Some(tie) = &row.near_tie {
                    let (job, name, size) = (&row.job, &row.operation, range(row.bytes.0, row.bytes.1));
                    page += &format!("A near-tie by NCCL's model: {job}: {name} of {size} B by {tie}.\n\n");
                }
            }
        }
        if let Some((least, most)) = self.compute_us {
            let (least, most) = (text::number(least / 1000.0), text::number(most / 1000.0));
            page += &match least == most {
                true => format!("Every rank computes for {least} ms.\n\n"),
                false => format!("Ranks compute for {least} to {most} ms.\n\n"),
            };
        }
        let mut table = text::table(&["messages", "number", "bytes"].map(str::to_owned), 0);
        for way in &self.ways {
            table.add_row([way.way.to_owned(), text::count(way.messages), text::count(way.bytes)]);
        }
        let (least, most) = (text::count(self.sent_per_port.0), text::count(self.sent_per_port.1));
        page + &format!("{table}\n\nA NIC port sends {least} to {most} B.\n")
    }
}

/// One number, or two if they differ.
fn range(least: u64, most: u64) -> String {
    if least == most {
        text::count(least)
    } else {
        format!("{} to {}", text::count(least), text::count(most))
    }
}

/// Bytes of a copy over NVLink.
fn copied(plan: &Plan, work: Work, bps: u64) -> u64 {
    match work {
        Work::Copy { time, .. } => bytes_in(time, bps),
        Work::Slice { times, .. } => plan.slices[times as usize].bytes,
        Work::Free { .. } | Work::On { .. } => 0,
    }
}

fn rows(plan: &Plan, nvlink: u64) -> Vec<Row> {
    type How<'p> = (&'p str, &'p str, u32, Option<(&'p str, &'p str, u8)>);
    type Key<'p> = (u16, &'p str, &'p str, How<'p>);
    let mut rows: BTreeMap<Key<'_>, (Row, BTreeSet<u32>)> = BTreeMap::new();
    let key = |o: &Operation| (o.job, o.dimension, o.name, (o.algorithm, o.protocol, o.channels, o.near_tie));
    for operation in plan.operations.iter().filter(|operation| operation.ranks > 0) {
        let (row, _) = rows.entry(key(operation)).or_insert_with(|| {
            let (ranks, bytes) = ((operation.ranks, operation.ranks), (operation.bytes, operation.bytes));
            (Row { ranks, bytes, ..Row::default() }, BTreeSet::new())
        });
        row.count += 1;
        row.ranks = (row.ranks.0.min(operation.ranks), row.ranks.1.max(operation.ranks));
        row.bytes = (row.bytes.0.min(operation.bytes), row.bytes.1.max(operation.bytes));
    }
    for message in &plan.messages {
        let Some(operation) = plan.operations.get(message.operation as usize) else { continue };
        if let Some((row, _)) = rows.get_mut(&key(operation)) {
            row.nic_bytes += message.bytes;
        }
    }
    for task in &plan.tasks {
        let Some(operation) = plan.operations.get(task.operation as usize) else { continue };
        if let Some((row, members)) = rows.get_mut(&key(operation)) {
            row.nvlink_bytes += copied(plan, task.work, nvlink);
            members.insert(task.rank);
        }
    }
    let named = |((job, dimension, name, how), (row, members)): (Key<'_>, (Row, BTreeSet<u32>))| Row {
        algorithm: how.0.to_owned(),
        protocol: how.1.to_owned(),
        channels: how.2,
        near_tie: how.3.map(|(algorithm, protocol, more)| format!("{algorithm} {protocol}, {more} % longer")),
        job: plan.jobs[usize::from(job)].name.clone(),
        dimension: dimension.to_owned(),
        operation: name.to_owned(),
        members: members.len() as u64,
        ..row
    };
    rows.into_iter().map(named).collect()
}

/// Least and most computation of a rank, us.
fn compute(plan: &Plan) -> Option<(f64, f64)> {
    let mut by_rank: BTreeMap<u32, u64> = BTreeMap::new();
    for task in plan.tasks.iter().filter(|task| task.role == Role::Compute) {
        if let Work::On { time, .. } = task.work {
            *by_rank.entry(task.rank).or_default() += time.ps();
        }
    }
    let us = |ps: &u64| *ps as f64 / 1e6;
    Some((us(by_rank.values().min()?), us(by_rank.values().max()?)))
}

fn ways(plan: &Plan) -> Vec<Way> {
    let mut ways = [("to the same server", 0, 0), ("over one switch", 0, 0), ("over several switches", 0, 0)];
    for message in &plan.messages {
        let qp = &plan.qps[message.qp.index()];
        let way = match () {
            () if plan.fabric.node_of(qp.from) == plan.fabric.node_of(qp.to) => 0,
            () if plan.fabric.same_rack(qp.from, qp.to) => 1,
            () => 2,
        };
        ways[way].1 += 1;
        ways[way].2 += message.bytes;
    }
    ways.into_iter().map(|(way, messages, bytes)| Way { way, messages, bytes }).collect()
}

fn sent(plan: &Plan) -> (u64, u64) {
    let mut sent = vec![0u64; plan.fabric.hosts()];
    for message in &plan.messages {
        let HostId(from) = plan.qps[message.qp.index()].from;
        sent[from as usize] += message.bytes;
    }
    (sent.iter().copied().min().unwrap_or(0), sent.iter().copied().max().unwrap_or(0))
}
