//! Runs whose messages a program posts: the queue pairs of its ranks, and the way that each of its sends takes.

use crate::config::Scenario;
use crate::workload::Workload;
use crate::workload::program::Program;
use crate::workload::ranks::{Ranks, Stream};
use model::plan::{Role, Task, Work};
use model::{Fabric, HostId, Plan, QpId, Time};
use std::collections::BTreeMap;

/// A queue pair of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Ranks, and number among the queue pairs of both ranks.
    key: (u32, u32, u32),
    pub(crate) from: HostId,
    pub(crate) to: HostId,
}

/// The queue pairs of a program. Ranks that share NVLink or a NIC port need none.
pub(crate) fn lines(program: &Program, ranks: &Ranks) -> Vec<Line> {
    let mut lines = Vec::new();
    for (a, b) in program.pairs(ranks.count() as u32) {
        if a == b || ranks.nvlink(a, b).is_some() {
            continue;
        }
        let (own, peers) = (ranks.ports(a), ranks.ports(b));
        let ports = own.len().min(peers.len());
        for q in 0..program.qps {
            let (from, to) = (own[q as usize % ports], peers[q as usize % ports]);
            if from != to {
                lines.push(Line { key: (a, b, q), from, to });
            }
        }
    }
    lines
}

/// Removes the messages that stand for the queue pairs of a program. The queue pairs stay, without messages.
pub(crate) fn open(scenario: &Scenario, plan: &mut Plan) {
    let program = scenario.workload.iter().position(Workload::is_driven);
    let Some(job) = program.map(|i| i as u16) else { return };
    plan.posted = Some(job);
    let mut left = 0;
    let mut moved = vec![0; plan.messages.len()];
    for qp in &mut plan.qps {
        let first = left;
        for m in qp.messages.clone() {
            moved[m as usize] = left;
            left += u32::from(plan.messages[m as usize].job != job);
        }
        qp.messages = first..left;
    }
    plan.messages.retain(|message| message.job != job);
    for part in plan.wholes.iter_mut().flat_map(|whole| whole.subflows.iter_mut().chain(&mut whole.request)) {
        part.0 = moved[part.index()];
    }
    for trigger in &mut plan.triggers {
        if let model::plan::Trigger::Message(m) = trigger {
            m.0 = moved[m.index()];
        }
    }
}

/// Removes all messages; the queue pairs stay, and the first job posts its messages when they start.
pub(crate) fn clear(plan: &mut Plan) {
    plan.posted = Some(0);
    plan.messages.clear();
    plan.qps.iter_mut().for_each(|qp| qp.messages = 0..0);
}

/// The way that a send of a program takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A message on this queue pair.
    Message(QpId),
    /// A task: a copy inside a server.
    Task(Task),
}

/// The ranks of a program, and the ways between them.
#[derive(Clone, Debug)]
pub struct ProgramRanks {
    ranks: Ranks,
    qps: u32,
    /// Queue pairs by sender, receiver and number.
    lines: BTreeMap<(u32, u32, u32), QpId>,
    /// Transmission rate of every host's link, for copies through a shared port.
    fabric: Fabric,
    job: u16,
}

impl ProgramRanks {
    /// The ranks of a plan whose queue pairs are `lines` of the program.
    pub(crate) fn new(program: &Program, ranks: Ranks, plan: &Plan, job: u16) -> Self {
        let mut sorted: Vec<(usize, Line)> = lines(program, &ranks).into_iter().enumerate().collect();
        // A plan sorts queue pairs by receiver, then by sender, then by lane.
        sorted.sort_by_key(|(lane, line)| (line.to, line.from, *lane));
        let qps = (0..).map(QpId).zip(&plan.qps).filter(|(_, qp)| qp.messages.is_empty());
        let lines = sorted.into_iter().zip(qps).map(|((_, line), (qp, _))| (line.key, qp)).collect();
        ProgramRanks { ranks, qps: program.qps, lines, fabric: plan.fabric.clone(), job }
    }

    /// Number of ranks.
    pub fn count(&self) -> u32 {
        self.ranks.count() as u32
    }

    /// The way of a message from one rank to another.
    ///
    /// # Errors
    /// If the pair has no queue pair, or a rank does not exist.
    pub fn way(&self, from: u32, to: u32, bytes: u64, tag: u32) -> Result<Way, String> {
        let ranks = &self.ranks;
        for rank in [from, to] {
            self.check(rank)?;
        }
        let copy = |work| {
            let (role, rank, job) = (Role::Inner, from, self.job);
            Ok(Way::Task(Task { role, rank, job, ..Task::new(ranks.node(from), work) }))
        };
        let (out, into) = (ranks.stream(from, Stream::Out), ranks.stream(to, Stream::In));
        if from == to {
            // A copy within the memory of one GPU. Our choice.
            return copy(Work::Free { time: Time::from_ns(1) });
        }
        if let Some(nvlink) = ranks.nvlink(from, to) {
            let time = nvlink.rate.time_for(bytes);
            return copy(Work::Copy { from: out, to: into, time, delay: nvlink.delay });
        }
        let q = tag % self.qps;
        if let Some(&qp) = self.lines.get(&(from, to, q)) {
            return Ok(Way::Message(qp));
        }
        let (own, peers) = (ranks.ports(from), ranks.ports(to));
        let port = q as usize % own.len().min(peers.len());
        if own[port] == peers[port] {
            // GPUs that share a NIC port: the port copies the bytes at its rate. Our choice.
            let time = self.fabric.uplink(own[port]).rate.time_for(bytes);
            return copy(Work::Copy { from: out, to: into, time, delay: Time::ZERO });
        }
        Err(format!("rank {from} has no queue pair to rank {to}; add [{from}, {to}] to `program.pairs`"))
    }

    /// A timer of a rank.
    ///
    /// # Errors
    /// If the rank does not exist.
    pub fn timer(&self, rank: u32, after: Time) -> Result<Task, String> {
        self.check(rank)?;
        let work = Work::Free { time: after };
        Ok(Task { role: Role::Inner, rank, job: self.job, ..Task::new(self.ranks.node(rank), work) })
    }

    fn check(&self, rank: u32) -> Result<(), String> {
        let count = self.count();
        if rank < count {
            return Ok(());
        }
        Err(format!("rank {rank} does not exist; the ranks are 0 to {}", count - 1))
    }
}
