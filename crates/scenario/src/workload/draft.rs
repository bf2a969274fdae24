//! The context in which a workload generates the outline of its job.

use super::QpUse;
use super::collective::Planned;
use super::communicator::{Communicator, shown};
use super::outline::Outline;
use super::ranks::Ranks;
use crate::footprint::MemoryBudget;
use crate::nccl::Nccl;
use collective::{Algorithm, Kind};
use finding::{Finding, code, nearest};
use model::draw::Key;
use model::plan::{Operation, Task, Work};
use model::{Fabric, HostId, NodeId, Time, Wire};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A message before it has a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftMessage {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    pub(crate) job: u16,
    pub(crate) group: u16,
    pub(crate) operation: u32,
    /// Queue pairs between two hosts that belong together, such as those of one communicator, have one number.
    pub(crate) lane: u32,
    pub(crate) fresh_qp: bool,
    /// Path to which the message's queue pair is pinned.
    pub(crate) path: Option<u16>,
    /// Messages of one connection with different numbers have different queue pairs: subflows of one message on the same path
    /// or without a path, and messages that take queue pairs in turn.
    pub(crate) line: u16,
    /// True for the request of a READ. Requests have queue pairs of their own.
    pub(crate) asks: bool,
}

/// Event of one message that starts another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartOn {
    /// The receiver, which sends the other message, has the whole message.
    Received,
    /// The sender, which sends the other message, too, has the ACK of the last byte.
    Acked,
}

/// The end of something in an outline, which may start something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The receiver has the whole message.
    Received(u32),
    /// The sender has the ACK of the message's last byte.
    Acked(u32),
    /// The task has ended.
    Done(u32),
    /// A member has left an exchange. These events are numbered by themselves.
    Left(u32),
}

/// A message or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// The message of that number.
    Message(u32),
    /// The task of that number.
    Task(u32),
}

/// Context in which a workload generates the outline of its job.
pub(crate) struct Draft<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) hosts: &'a BTreeMap<Cow<'a, str>, HostId>,
    /// Key of this job's random draws.
    pub(crate) key: Key,
    /// Key of random draws that all jobs share.
    pub(crate) common: Key,
    pub(crate) job: u16,
    pub(crate) start: Time,
    pub(crate) qp: QpUse,
    pub(crate) outline: Outline,
    /// Messages, tasks and steps of earlier jobs.
    pub(crate) earlier: u64,
    /// Streams of each host that earlier jobs use, or more.
    pub(crate) streams: u32,
    /// GPUs of the fabric.
    pub(crate) ranks: &'a Ranks,
    /// NCCL's version and variables.
    pub(crate) nccl: &'a Nccl,
    /// Name of the job's kind of workload.
    pub(crate) kind: &'static str,
    pub(crate) memory: &'a mut MemoryBudget,
    pub(crate) wire: &'a Wire,
    /// Warnings about the settings of this job's kind.
    pub(crate) warnings: Vec<Finding>,
    /// Tokens that each step trains on; 0 if the job is no training of a whole model.
    pub(crate) tokens: u64,
}

impl Draft<'_> {
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

    /// Refuses a job with too many messages, or with more than fit into the machine's memory. Every job calls this
    /// before it adds a message. `pairs` is its number of pairs of hosts; `path` is the key, within the settings of the
    /// job, that determines the number of messages.
    pub(crate) fn reserve(&mut self, messages: u64, pairs: u64, path: &str) -> Result<(), Finding> {
        let qps = match self.qp {
            QpUse::PerMessage => messages,
            QpUse::Persistent => pairs,
            QpUse::InTurn(count) => pairs.saturating_mul(u64::from(count.get())).min(messages),
        };
        let path = format!("workload.{}.{}.{path}", self.job, self.kind);
        self.memory.add_messages(messages, qps, path)
    }

    /// Refuses a job with more tasks than fit into the machine's memory.
    pub(crate) fn reserve_tasks(&mut self, tasks: u64, path: &str) -> Result<(), Finding> {
        let path = format!("workload.{}.{}.{path}", self.job, self.kind);
        self.memory.add_tasks(tasks, path)
    }

    /// Refuses so many more messages and tasks if they were not counted and do not fit into the machine's memory.
    pub(crate) fn fits(&mut self, more: usize) -> Result<(), Finding> {
        let items = self.earlier + self.outline.items() + more as u64;
        self.memory.laid(items, format!("workload.{}.{}", self.job, self.kind))
    }

    /// Adds a message that starts with the job and returns its number, for [`Draft::after`].
    pub(crate) fn send(&mut self, group: usize, from: HostId, to: HostId, bytes: u64) -> u32 {
        self.send_at(group, from, to, bytes, Time::ZERO)
    }

    /// Adds a message that starts `after` the start of the job.
    pub(crate) fn send_at(&mut self, group: usize, from: HostId, to: HostId, bytes: u64, after: Time) -> u32 {
        let start = Time(self.start.ps().saturating_add(after.ps()));
        let message = DraftMessage { start, ..self.new_message(group, from, to, bytes) };
        self.outline.messages.push(message);
        self.outline.messages.len() as u32 - 1
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
            fresh_qp: self.qp == QpUse::PerMessage,
            path: None,
            line: 0,
            asks: false,
        }
    }

    /// Lets the message `effect` start at an event of the message `cause`.
    pub(crate) fn after(&mut self, cause: u32, on: StartOn, effect: u32) {
        let cause = match on {
            StartOn::Received => Event::Received(cause),
            StartOn::Acked => Event::Acked(cause),
        };
        self.join(cause, Item::Message(effect));
    }

    /// Lets `effect` start at `cause`.
    pub(crate) fn join(&mut self, cause: Event, effect: Item) {
        self.outline.causes.push((cause, effect));
    }

    /// Adds a task that is ready when the job starts.
    pub(crate) fn task(&mut self, node: NodeId, work: Work) -> u32 {
        self.outline.tasks.push(self.new_task(node, work));
        self.outline.tasks.len() as u32 - 1
    }

    /// A task that is ready when the job starts.
    pub(crate) fn new_task(&self, node: NodeId, work: Work) -> Task {
        Task { start: self.start, job: self.job, ..Task::new(node, work) }
    }

    /// Adds a collective, if there is memory. Each member enters after its `causes`, or when the job starts. Returns the event at which
    /// each member has left.
    pub(crate) fn collective(
        &mut self,
        communicator: Communicator,
        planned: &Rc<Planned>,
        operation: Operation,
        causes: Vec<Vec<Event>>,
    ) -> Result<Vec<Event>, Finding> {
        self.collective_in_cells(communicator, Some(0), planned, operation, causes)
    }

    /// [`Draft::collective`] where the job has several cells, see [`Exchange::stride`](super::outline::Exchange::stride).
    pub(crate) fn collective_in_cells(
        &mut self,
        communicator: Communicator,
        stride: Option<u32>,
        planned: &Rc<Planned>,
        operation: Operation,
        causes: Vec<Vec<Event>>,
    ) -> Result<Vec<Event>, Finding> {
        let operation = shown(self, &communicator, planned, operation)?;
        self.fits(planned.schedule.steps.len())?;
        Ok(self.outline.collective(Rc::clone(planned), communicator, stride, operation, causes))
    }

    /// Adds a transfer from the first to the second member of a communicator. Returns the events at which its bytes have arrived, and
    /// are sent.
    pub(crate) fn transfer(
        &mut self,
        communicator: Communicator,
        bytes: u64,
        operation: u32,
        causes: Vec<Event>,
    ) -> (Event, Event) {
        self.transfer_in_cells(communicator, Some(0), bytes, operation, causes)
    }

    /// [`Draft::transfer`] where the job has several cells.
    pub(crate) fn transfer_in_cells(
        &mut self,
        communicator: Communicator,
        stride: Option<u32>,
        bytes: u64,
        operation: u32,
        causes: Vec<Event>,
    ) -> (Event, Event) {
        self.outline.transfer(bytes, communicator, stride, operation, causes)
    }

    /// Adds an operation and returns its number.
    pub(crate) fn operation(&mut self, operation: Operation) -> u32 {
        self.outline.operations.push(Operation { job: self.job, ..operation });
        self.outline.operations.len() as u32 - 1
    }
}

/// Size of the `i`-th of `n` parts of `bytes`; the first parts are one byte larger if `n` does not divide `bytes`.
pub(crate) fn part(bytes: u64, n: usize, i: usize) -> u64 {
    let n = n.max(1) as u64;
    bytes / n + u64::from((i as u64) < bytes % n)
}

/// Refuses an empty message.
pub(crate) fn some_bytes(bytes: model::Bytes, path: &str) -> Result<u64, Finding> {
    match bytes.get() {
        0 => Err(code::RANGE.at(path, "expected at least 1 byte, found 0")),
        // Our choice: a queue pair counts packets in 64 bits and would allow more.
        n if n > 1 << 50 => Err(code::RANGE.at(path, format!("expected at most 1 PiB, found {bytes}"))),
        n => Ok(n),
    }
}
