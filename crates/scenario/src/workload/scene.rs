//! The scene of a job: the fabric, its GPUs, and the job's own start, keys and use of queue pairs.

use super::laid::DraftMessage;
use super::ranks::Ranks;
use crate::nccl::Nccl;
use collective::{Algorithm, Kind};
use finding::{Finding, code, nearest};
use model::draw::Key;
use model::plan::{Operation, Task, Work};
use model::{Fabric, HostId, NodeId, Time, Wire};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the messages and tasks of a job depend on beside the workload.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) hosts: &'a BTreeMap<Cow<'a, str>, HostId>,
    /// Key of this job's random draws.
    pub(crate) key: Key,
    /// Key of random draws that all jobs share.
    pub(crate) common: Key,
    pub(crate) job: u16,
    pub(crate) start: Time,
    /// True if every message has a queue pair of its own.
    pub(crate) fresh_qps: bool,
    /// GPUs of the fabric.
    pub(crate) ranks: &'a Ranks,
    /// NCCL's version and variables.
    pub(crate) nccl: &'a Nccl,
    /// Name of the job's kind of workload.
    pub(crate) kind: &'static str,
    pub(crate) wire: &'a Wire,
}

impl Scene<'_> {
    /// The path of the job's settings.
    pub(crate) fn settings(&self) -> String {
        format!("workload.{}.{}", self.job, self.kind)
    }

    /// The path of a key of the job's settings.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.settings())
    }

    /// The algorithm that a collective has by default.
    pub(crate) fn usual_algorithm(&self, kind: Kind) -> Algorithm {
        if self.nccl.given { Algorithm::Nccl } else { kind.usual_algorithm() }
    }

    /// Finds a host by its name; errors point at `path`.
    pub(crate) fn host(&self, name: &str, path: &str) -> Result<HostId, Finding> {
        self.hosts.get(name).copied().ok_or_else(|| {
            let like = || format!("hosts are named like `{}`", self.fabric.host_name(HostId(0)));
            let text = match self.fabric.find(name) {
                Some(node) if self.fabric.is_host(node) => {
                    format!("the host `{name}` has several ports; did you mean {}?", self.ports(node))
                }
                Some(_) => format!("the host `{name}` is a switch, not a host; {}", like()),
                None => match nearest(name, self.hosts.keys().map(AsRef::as_ref)) {
                    Some(near) => format!("the host `{name}` does not exist; did you mean `{near}`?"),
                    None => format!("the host `{name}` does not exist; {}", like()),
                },
            };
            code::NO_NODE.at(path, text)
        })
    }

    /// The names of a host's ports, as words.
    fn ports(&self, node: NodeId) -> String {
        let mine =
            (0..self.fabric.hosts() as u32).map(HostId).filter(|&port| self.fabric.node_of(port) == node);
        let names: Vec<String> = mine.map(|port| format!("`{}`", self.fabric.host_name(port))).collect();
        match names.as_slice() {
            [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
            names => names.concat(),
        }
    }

    /// A message that starts with the job.
    pub(crate) fn new_message(&self, group: usize, from: HostId, to: HostId, bytes: u64) -> DraftMessage {
        DraftMessage {
            from,
            to,
            bytes,
            start: self.start,
            job: self.job,
            group: group as u16,
            operation: Operation::NONE,
            lane: 0,
            fresh_qp: self.fresh_qps,
            path: None,
            line: 0,
            asks: false,
        }
    }

    /// A task that is ready when the job starts.
    pub(crate) fn new_task(&self, node: NodeId, work: Work) -> Task {
        Task { start: self.start, job: self.job, ..Task::new(node, work) }
    }
}
