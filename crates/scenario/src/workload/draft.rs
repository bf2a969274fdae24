//! The context in which a workload generates the outline of its job.

use super::QpUse;
use super::communicator::{Communicator, shown};
use super::laid::{DraftMessage, Item};
use super::outline::{Event, Outline};
use super::planned::Planned;
use super::scene::Scene;
use crate::footprint::{Exists, MemoryBudget};
use finding::{Finding, code};
use model::plan::{Operation, Work};
use model::{HostId, NodeId, Time};
use std::ops::Deref;
use std::rc::Rc;

/// Event of one message that starts another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartOn {
    /// The receiver, which sends the other message, has the whole message.
    Received,
    /// The sender, which sends the other message, too, has the ACK of the last byte.
    Acked,
}

/// Context in which a workload generates the outline of its job.
pub(crate) struct Draft<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) qp: QpUse,
    pub(crate) outline: Outline,
    /// Messages, tasks and steps of earlier jobs.
    pub(crate) earlier: u64,
    /// Streams of each host that earlier jobs use, or more.
    pub(crate) streams: u32,
    pub(crate) memory: &'a mut MemoryBudget,
    /// Warnings about the settings of this job's kind.
    pub(crate) warnings: Vec<Finding>,
    /// Tokens that each step trains on; 0 if the job is no training of a whole model.
    pub(crate) tokens: u64,
}

impl<'a> Deref for Draft<'a> {
    type Target = Scene<'a>;

    fn deref(&self) -> &Scene<'a> {
        &self.scene
    }
}

impl Draft<'_> {
    /// Refuses a job with too many messages, or with more than fit into the machine's memory. Every job calls this
    /// before it adds a message. `pairs` is its number of pairs of hosts; `path` is the key, within the settings of the
    /// job, that determines the number of messages.
    pub(crate) fn reserve(&mut self, messages: u64, pairs: u64, path: &str) -> Result<(), Finding> {
        self.reserve_for(messages, pairs, path, Exists::Now)
    }

    /// [`Draft::reserve`] for the messages of exchanges.
    pub(crate) fn expect(&mut self, messages: u64, pairs: u64, path: &str) -> Result<(), Finding> {
        self.reserve_for(messages, pairs, path, Exists::InRuns)
    }

    fn reserve_for(&mut self, messages: u64, pairs: u64, path: &str, exists: Exists) -> Result<(), Finding> {
        let qps = match self.qp {
            QpUse::PerMessage => messages,
            QpUse::Persistent => pairs,
            QpUse::InTurn(count) => pairs.saturating_mul(u64::from(count.get())).min(messages),
        };
        self.memory.add_messages(messages, qps, self.path(path), exists)
    }

    /// Refuses a job with more tasks than fit into the machine's memory.
    pub(crate) fn reserve_tasks(&mut self, tasks: u64, path: &str) -> Result<(), Finding> {
        self.memory.add_tasks(tasks, self.path(path), Exists::Now)
    }

    /// [`Draft::reserve_tasks`] for the tasks of all cells of a job and of its exchanges.
    pub(crate) fn expect_tasks(&mut self, tasks: u64, path: &str) -> Result<(), Finding> {
        self.memory.add_tasks(tasks, self.path(path), Exists::InRuns)
    }

    /// Refuses so many more messages and tasks if they were not counted and do not fit into the machine's memory.
    pub(crate) fn fits(&mut self, more: u64) -> Result<(), Finding> {
        let items = self.earlier + self.outline.items() + more;
        self.memory.laid(items, self.settings())
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
        let operation = shown(&self.scene, &communicator, planned, operation)?;
        self.fits(planned.steps)?;
        let path = self.settings();
        self.memory.outline(EXCHANGE + MEMBER * communicator.ranks.len() as u64, &path)?;
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

/// Bytes of an exchange in an outline, and of each of its members. Our estimate from the sizes of the types.
const EXCHANGE: u64 = 400;
const MEMBER: u64 = 60;

/// Refuses an empty message.
pub(crate) fn some_bytes(bytes: model::Bytes, path: &str) -> Result<u64, Finding> {
    match bytes.get() {
        0 => Err(code::RANGE.at(path, "expected at least 1 byte, found 0")),
        // Our choice: a queue pair counts packets in 64 bits and would allow more.
        n if n > 1 << 50 => Err(code::RANGE.at(path, format!("expected at most 1 PiB, found {bytes}"))),
        n => Ok(n),
    }
}
