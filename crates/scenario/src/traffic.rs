//! What the workloads of a scenario send, counted without a message for each of their steps.

use crate::workload::laid::{Cells, Connection, DraftMessage, Graph};
use model::plan::{Job, Operation, Role, SliceTimes, Task, Work};
use model::{Fabric, HostId, Plan, Time, Wire};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What workloads send.
#[derive(Debug, Default, Serialize)]
pub struct Traffic {
    /// Collectives and transfers, those of one kind in a row.
    pub operations: Vec<Row>,
    /// Computation of a rank, us, least and most.
    pub compute_us: Option<(f64, f64)>,
    /// Messages by the way that they take.
    pub ways: Vec<Way>,
    /// Bytes that a NIC port sends, least and most over all ports.
    pub sent_per_port: (u64, u64),
    /// Number of messages.
    pub messages: u64,
    /// Number of queue pairs.
    pub queue_pairs: u64,
    /// Number of data packets.
    pub packets: u64,
    /// Number of tasks.
    pub tasks: u64,
}

/// Operations of one kind.
#[derive(Debug, Default, Serialize)]
pub struct Row {
    /// Name of the job.
    pub job: String,
    /// Kind of parallelism; empty for none.
    pub dimension: String,
    /// What is done.
    pub operation: String,
    /// Algorithm of a collective.
    pub algorithm: String,
    /// NCCL's protocol of a collective.
    pub protocol: String,
    /// Number of channels of a collective.
    pub channels: u32,
    /// NCCL's second choice, if it takes 10 % longer at most by NCCL's model.
    pub near_tie: Option<String>,
    /// Number of operations.
    pub count: u64,
    /// Ranks of an operation, least and most.
    pub ranks: (u32, u32),
    /// Bytes of an operation, least and most.
    pub bytes: (u64, u64),
    /// Bytes of all operations over NICs.
    pub nic_bytes: u64,
    /// Bytes of all operations over NVLink.
    pub nvlink_bytes: u64,
    /// Ranks that take part.
    pub members: u64,
}

/// Messages that take one kind of way.
#[derive(Debug, Serialize)]
pub struct Way {
    /// The way.
    pub way: &'static str,
    /// Number of messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Packets and bytes of a plan's messages.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Packets that each host sends.
    pub(crate) by_host: Vec<u64>,
    /// Packets of each queue pair.
    pub(crate) by_qp: Vec<u64>,
    /// Bytes of all messages.
    pub(crate) bytes: u64,
}

impl Load {
    /// The load of a whole plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let (by_host, by_qp) = (vec![0; plan.fabric.hosts()], vec![0; plan.qps.len()]);
        let mut load = Load { by_host, by_qp, bytes: 0 };
        for message in &plan.messages {
            let packets = plan.wire.packets(message.bytes);
            load.by_host[plan.qps[message.qp.index()].from.index()] += packets;
            load.by_qp[message.qp.index()] += packets;
            load.bytes = load.bytes.saturating_add(message.bytes);
        }
        load
    }
}

/// Job, kind of parallelism, name, and algorithm, protocol, channels and second choice of operations.
pub(crate) type Kind = (u16, &'static str, &'static str, How);
pub(crate) type How = (&'static str, &'static str, u32, Option<(&'static str, &'static str, u8)>);

pub(crate) fn kind(o: &Operation) -> Kind {
    (o.job, o.dimension, o.name, (o.algorithm, o.protocol, o.channels, o.near_tie))
}

/// The messages of a queue pair.
struct Carried {
    longest: DraftMessage,
    packets: u64,
}

/// Counts messages and tasks.
pub(crate) struct Counter<'a> {
    fabric: &'a Fabric,
    wire: &'a Wire,
    /// Rate of NVLink, bits/s.
    nvlink: u64,
    rows: BTreeMap<Kind, Members>,
    /// By job and rank of the first cell: computation in ps, and the cells of the job.
    compute: BTreeMap<(u16, u32), (u64, Cells)>,
    ways: [(u64, u64); 3],
    /// By host: bytes and packets.
    sent: Vec<(u64, u64)>,
    connections: BTreeMap<Connection, Carried>,
    /// Queue pairs for which others stand.
    alike: u64,
    fresh: u32,
    messages: u64,
    tasks: u64,
    /// The job of a program, whose messages stand for its queue pairs: they are no traffic.
    driven: Option<u16>,
}

/// A row, and the ranks of its first cell.
#[derive(Default)]
struct Members {
    row: Row,
    ranks: BTreeSet<u32>,
    cells: u64,
}

impl<'a> Counter<'a> {
    /// `nvlink` is the rate of NVLink, bits/s; a program drives the job `driven`.
    pub(crate) fn new(fabric: &'a Fabric, wire: &'a Wire, nvlink: u64, driven: Option<u16>) -> Self {
        Counter {
            fabric,
            wire,
            nvlink,
            rows: BTreeMap::new(),
            compute: BTreeMap::new(),
            ways: [(0, 0); 3],
            sent: vec![(0, 0); fabric.hosts()],
            connections: BTreeMap::new(),
            alike: 0,
            fresh: 0,
            messages: 0,
            tasks: 0,
            driven,
        }
    }

    /// Counts `times` such operations.
    pub(crate) fn operation(&mut self, operation: &Operation, times: u64) {
        if operation.ranks == 0 {
            return;
        }
        let row = &mut self.rows.entry(kind(operation)).or_default().row;
        let (ranks, bytes) = (operation.ranks, operation.bytes);
        if row.count == 0 {
            (row.ranks, row.bytes) = ((ranks, ranks), (bytes, bytes));
        }
        row.count += times;
        row.ranks = (row.ranks.0.min(ranks), row.ranks.1.max(ranks));
        row.bytes = (row.bytes.0.min(bytes), row.bytes.1.max(bytes));
    }

    /// Bytes and packets that every host sends so far.
    pub(crate) fn sent(&self) -> &[(u64, u64)] {
        &self.sent
    }

    /// Lets a host send what another one has sent since `before`.
    pub(crate) fn sends_as(&mut self, like: HostId, host: HostId, before: &[(u64, u64)]) {
        let (now, then) = (self.sent[like.index()], before[like.index()]);
        let sent = &mut self.sent[host.index()];
        *sent = (sent.0.saturating_add(now.0 - then.0), sent.1.saturating_add(now.1 - then.1));
    }

    /// Counts `times` such messages of an operation, which `like` senders have. The host counts one sender.
    pub(crate) fn message(
        &mut self,
        message: &DraftMessage,
        operation: Option<&Operation>,
        times: u64,
        like: u64,
    ) {
        let packets = self.wire.packets(message.bytes).saturating_mul(times);
        let of_host = message.bytes.saturating_mul(times);
        let (bytes, times) = (of_host.saturating_mul(like), times.saturating_mul(like));
        self.messages += times;
        if let Some(members) = operation.and_then(|operation| self.rows.get_mut(&kind(operation))) {
            members.row.nic_bytes = members.row.nic_bytes.saturating_add(bytes);
        }
        let DraftMessage { from, to, fresh_qp, .. } = *message;
        let way = match () {
            () if self.fabric.node_of(from) == self.fabric.node_of(to) => 0,
            () if self.fabric.same_rack(from, to) => 1,
            () => 2,
        };
        let stands = self.driven == Some(message.job);
        let (of_host, shown) = if stands { (0, (0, 0)) } else { (of_host, (times, bytes)) };
        self.ways[way].0 += shown.0;
        self.ways[way].1 = self.ways[way].1.saturating_add(shown.1);
        let sent = &mut self.sent[from.index()];
        *sent = (sent.0.saturating_add(of_host), sent.1.saturating_add(packets));
        self.fresh += u32::from(fresh_qp);
        let carried = self.connections.entry(message.connection(self.fresh));
        let carried = carried.or_insert_with(|| {
            self.alike += like - 1;
            Carried { longest: *message, packets: 0 }
        });
        carried.packets = carried.packets.saturating_add(packets);
        if message.bytes > carried.longest.bytes {
            carried.longest = *message;
        }
    }

    /// Counts a task of an operation, which is `times` times in each cell. Its rank is that of the first cell.
    pub(crate) fn task(
        &mut self,
        task: &Task,
        slices: &[SliceTimes],
        operation: Option<&Operation>,
        times: u64,
        cells: Cells,
    ) {
        let all = times * u64::from(cells.count);
        self.tasks += all;
        if let (Role::Compute, Work::On { time, .. }) = (task.role, task.work) {
            self.compute.entry((task.job, task.rank)).or_insert((0, cells)).0 += time.ps() * times;
        }
        let Some(members) = operation.and_then(|operation| self.rows.get_mut(&kind(operation))) else {
            return;
        };
        let copied = match task.work {
            Work::Copy { time, .. } => bytes_in(time, self.nvlink),
            Work::Slice { times, .. } => slices[times as usize].bytes,
            Work::Free { .. } | Work::On { .. } => 0,
        };
        let copied = copied.saturating_mul(all);
        members.row.nvlink_bytes = members.row.nvlink_bytes.saturating_add(copied);
        members.ranks.insert(task.rank);
        members.cells = cells.count.into();
    }

    /// Counts a job with all its messages and tasks.
    pub(crate) fn graph(&mut self, graph: &Graph) {
        graph.operations.iter().for_each(|operation| self.operation(operation, 1));
        let operation = |number: u32| graph.operations.get(number as usize);
        for message in &graph.messages {
            self.message(message, operation(message.operation), 1, 1);
        }
        for task in &graph.tasks {
            self.task(task, graph.slices.all(), operation(task.operation), 1, Cells::ONE);
        }
    }

    /// What was counted, and the graph of the longest message of every queue pair.
    pub(crate) fn done(self, jobs: &[Job]) -> (Traffic, Load, Graph) {
        let us = |ps: &u64| *ps as f64 / 1e6;
        let mut compute: BTreeMap<u32, u64> = BTreeMap::new();
        for ((_, rank), (time, cells)) in self.compute {
            let ranks = (0..cells.count).map(|cell| rank + cell * cells.stride);
            ranks.for_each(|rank| *compute.entry(rank).or_default() += time);
        }
        let (least, most) = (compute.values().min(), compute.values().max());
        let names = ["to the same server", "over one switch", "over several switches"];
        let ways = names.into_iter().zip(self.ways);
        let sent = || self.sent.iter().map(|(bytes, _)| *bytes);
        let load = Load {
            by_host: self.sent.iter().map(|(_, packets)| *packets).collect(),
            by_qp: self.connections.values().map(|carried| carried.packets).collect(),
            bytes: sent().fold(0, u64::saturating_add),
        };
        let traffic = Traffic {
            compute_us: least.zip(most).map(|(least, most)| (us(least), us(most))),
            ways: ways.map(|(way, (messages, bytes))| Way { way, messages, bytes }).collect(),
            sent_per_port: (sent().min().unwrap_or(0), sent().max().unwrap_or(0)),
            messages: self.messages,
            queue_pairs: self.connections.len() as u64 + self.alike,
            packets: load.by_host.iter().copied().fold(0, u64::saturating_add),
            tasks: self.tasks,
            operations: self.rows.into_iter().map(|row| named(row, jobs)).collect(),
        };
        let graph = Graph {
            messages: self.connections.into_values().map(|carried| carried.longest).collect(),
            ..Graph::default()
        };
        (traffic, load, graph)
    }
}

fn named(((job, dimension, name, how), members): (Kind, Members), jobs: &[Job]) -> Row {
    Row {
        algorithm: how.0.to_owned(),
        protocol: how.1.to_owned(),
        channels: how.2,
        near_tie: how.3.map(|(algorithm, protocol, more)| format!("{algorithm} {protocol}, {more} % longer")),
        job: jobs[usize::from(job)].name.clone(),
        dimension: dimension.to_owned(),
        operation: name.to_owned(),
        members: members.ranks.len() as u64 * members.cells,
        ..members.row
    }
}

/// Bytes that take a time at a rate: the time is that of whole bytes, rounded to picoseconds.
pub(crate) fn bytes_in(time: Time, bps: u64) -> u64 {
    ((u128::from(time.ps()) * u128::from(bps) + 4_000_000_000_000) / 8_000_000_000_000) as u64
}
