//! Messages and tasks in the order in which workloads generate them; [`Graph::sorted`] brings them into the order of a plan.

use super::QpUse;
use super::ranks::Ranks;
use crate::footprint::MemoryBudget;
use crate::nccl::Nccl;
use collective::{Algorithm, Kind};
use finding::{Finding, code, nearest};
use model::draw::Key;
use model::plan::{Message, Operation, Qp, SliceTimes, Task, Trigger, Whole, Work};
use model::{Fabric, HostId, MessageId, NodeId, QpId, TaskId, Time, Wire};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::ops::Range;

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

/// A message of a workload that is several messages of the draft, see [`Whole`].
#[derive(Clone, Debug)]
pub(crate) struct DraftWhole {
    pub(crate) subflows: Range<u32>,
    pub(crate) request: Option<u32>,
}

/// Event of one message that starts another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartOn {
    /// The receiver, which sends the other message, has the whole message.
    Received,
    /// The sender, which sends the other message, too, has the ACK of the last byte.
    Acked,
}

/// A message or a task of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// The message of that number.
    Message(u32),
    /// The task of that number.
    Task(u32),
}

/// The end of a message or task, which may start others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The receiver has the whole message.
    Received(u32),
    /// The sender has the ACK of the message's last byte.
    Acked(u32),
    /// The task has ended.
    Done(u32),
}

/// Different values, with the numbers of their first appearance.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    numbers: BTreeMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { numbers: BTreeMap::new(), all: Vec::new() }
    }
}

impl<T: Copy + Ord> Numbered<T> {
    /// The number of a value.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(value).or_insert(next);
        if number == next {
            self.all.push(value);
        }
        number
    }
}

/// Messages and tasks generated so far.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) messages: Vec<DraftMessage>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) operations: Vec<Operation>,
    /// Times of slices.
    pub(crate) slices: Numbered<SliceTimes>,
    /// Engines of each host, by communicator, rank and channel.
    pub(crate) engines: BTreeMap<NodeId, Numbered<(u16, u32, u32, u32)>>,
    /// Pairs of cause and effect.
    pub(crate) causes: Vec<(Event, Item)>,
    pub(crate) wholes: Vec<DraftWhole>,
}

/// The parts of a plan that come from workloads.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) qps: Vec<Qp>,
    pub(crate) messages: Vec<Message>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) slices: Vec<SliceTimes>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) wholes: Vec<Whole>,
}

impl Graph {
    /// Lets every host start the messages and tasks from these numbers on later, by `late`. Receivers start `reads`.
    pub(crate) fn delay(
        &mut self,
        (message, task): (usize, usize),
        node_of: impl Fn(HostId) -> NodeId,
        late: impl Fn(NodeId) -> Time,
        reads: bool,
    ) {
        let delayed = |start: Time, node| Time(start.ps().saturating_add(late(node).ps()));
        for message in &mut self.messages[message..] {
            let first = if reads { message.to } else { message.from };
            message.start = delayed(message.start, node_of(first));
        }
        for task in &mut self.tasks[task..] {
            task.start = delayed(task.start, task.node);
        }
    }

    /// Gives every message from number `first` on one of `count` queue pairs of its connection, in turn.
    pub(crate) fn take_turns(&mut self, first: usize, count: NonZeroU16) {
        let mut next: BTreeMap<(HostId, HostId, u32), u16> = BTreeMap::new();
        for message in &mut self.messages[first..] {
            let line = next.entry((message.from, message.to, message.lane)).or_default();
            message.line = *line;
            *line = (*line + 1) % count;
        }
    }

    /// Gives messages their queue pairs, and messages and tasks their final numbers, in the order of a plan.
    pub(crate) fn sorted(self) -> Sorted {
        let Graph { messages: all, tasks, operations, slices, mut causes, wholes, .. } = self;
        let (mut qps, mut messages, place) = on_queue_pairs(&all);
        drop(all);
        let id = |m: u32| MessageId(place[m as usize]);
        let whole = |whole: DraftWhole| {
            let mut subflows: Vec<MessageId> = whole.subflows.map(id).collect();
            subflows.sort_unstable_by_key(|subflow| subflow.0);
            Whole { subflows: subflows.into(), request: whole.request.map(id) }
        };
        let wholes = wholes.into_iter().map(whole).collect();
        let (mut tasks, rank) = by_host(tasks);
        let numbered = |item: Item| match item {
            Item::Message(m) => Item::Message(place[m as usize]),
            Item::Task(t) => Item::Task(rank[t as usize]),
        };
        for (cause, effect) in &mut causes {
            *effect = numbered(*effect);
            *cause = match *cause {
                Event::Received(m) => Event::Received(place[m as usize]),
                Event::Acked(m) => Event::Acked(place[m as usize]),
                Event::Done(t) => Event::Done(rank[t as usize]),
            };
        }
        // All triggers of a message follow each other.
        causes.sort_unstable_by_key(|&(cause, effect)| {
            let cause = match cause {
                Event::Received(m) => (false, m, 0),
                Event::Acked(m) => (false, m, 1),
                Event::Done(t) => (true, t, 0),
            };
            (cause, effect)
        });
        let mut triggers = Vec::with_capacity(causes.len());
        for (cause, effect) in causes {
            let at = triggers.len() as u32;
            let range = match cause {
                Event::Received(m) => &mut messages[m as usize].on_received,
                Event::Acked(m) => &mut messages[m as usize].on_acked,
                Event::Done(t) => &mut tasks[t as usize].on_done,
            };
            if range.start == range.end {
                range.start = at;
            }
            range.end = at + 1;
            triggers.push(match effect {
                Item::Message(m) => {
                    messages[m as usize].needs += 1;
                    Trigger::Message(MessageId(m))
                }
                Item::Task(t) => {
                    tasks[t as usize].needs += 1;
                    Trigger::Task(TaskId(t))
                }
            });
        }
        qps.shrink_to_fit();
        Sorted { qps, messages, tasks, operations, slices: slices.all, triggers, wholes }
    }
}

/// The queue pairs, the messages in the order of a plan, and the place of every message of the draft in it.
fn on_queue_pairs(all: &[DraftMessage]) -> (Vec<Qp>, Vec<Message>, Vec<u32>) {
    let qp_key = |i: u32| {
        let DraftMessage { from, to, job, lane, fresh_qp, path, line, asks, .. } = all[i as usize];
        (to, from, job, lane, path, line, asks, if fresh_qp { i + 1 } else { 0 })
    };
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_by_key(|&i| (qp_key(i), i));
    let mut place = vec![0u32; all.len()];
    let mut qps: Vec<Qp> = Vec::new();
    let mut sorted: Vec<Message> = Vec::with_capacity(all.len());
    for (position, &i) in order.iter().enumerate() {
        place[i as usize] = position as u32;
        let m = &all[i as usize];
        let at = position as u32;
        if position == 0 || qp_key(order[position - 1]) != qp_key(i) {
            qps.push(Qp { from: m.from, to: m.to, messages: at..at, path: m.path });
        }
        if let Some(qp) = qps.last_mut() {
            qp.messages.end = at + 1;
        }
        sorted.push(Message {
            qp: QpId(qps.len() as u32 - 1),
            bytes: m.bytes,
            start: m.start,
            needs: 0,
            on_received: 0..0,
            on_acked: 0..0,
            job: m.job,
            group: m.group,
            operation: m.operation,
        });
    }
    (qps, sorted, place)
}

/// The tasks in the order of their hosts, and the place of every task in it.
fn by_host(mut tasks: Vec<Task>) -> (Vec<Task>, Vec<u32>) {
    let mut order: Vec<u32> = (0..tasks.len() as u32).collect();
    order.sort_by_key(|&t| tasks[t as usize].node);
    let mut place = vec![0u32; tasks.len()];
    for (position, &t) in order.iter().enumerate() {
        place[t as usize] = position as u32;
    }
    tasks.sort_by_key(|task| task.node);
    (tasks, place)
}

/// Context in which a workload generates its messages.
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
    pub(crate) graph: &'a mut Graph,
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
        let items = self.graph.messages.len() + self.graph.tasks.len() + more;
        self.memory.laid(items as u64, format!("workload.{}.{}", self.job, self.kind))
    }

    /// Adds a message that starts with the job and returns its number, for [`Draft::after`].
    pub(crate) fn send(&mut self, group: usize, from: HostId, to: HostId, bytes: u64) -> u32 {
        self.send_at(group, from, to, bytes, Time::ZERO)
    }

    /// Adds a message that starts `after` the start of the job.
    pub(crate) fn send_at(&mut self, group: usize, from: HostId, to: HostId, bytes: u64, after: Time) -> u32 {
        self.graph.messages.push(DraftMessage {
            from,
            to,
            bytes,
            start: Time(self.start.ps().saturating_add(after.ps())),
            job: self.job,
            group: group as u16,
            operation: Operation::NONE,
            lane: 0,
            fresh_qp: self.qp == QpUse::PerMessage,
            path: None,
            line: 0,
            asks: false,
        });
        self.graph.messages.len() as u32 - 1
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
        self.graph.causes.push((cause, effect));
    }

    /// Adds a task that is ready when the job starts.
    pub(crate) fn task(&mut self, node: NodeId, work: Work) -> u32 {
        let task = Task { start: self.start, job: self.job, ..Task::new(node, work) };
        self.graph.tasks.push(task);
        self.graph.tasks.len() as u32 - 1
    }

    /// Adds an operation and returns its number.
    pub(crate) fn operation(&mut self, operation: Operation) -> u32 {
        self.graph.operations.push(Operation { job: self.job, ..operation });
        self.graph.operations.len() as u32 - 1
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
