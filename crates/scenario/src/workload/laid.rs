//! Messages and tasks of all jobs in the order in which they were laid out; [`Graph::sorted`] brings them into the order of a plan.

use model::plan::{Message, Operation, Qp, SliceTimes, Task, Trigger, Whole};
use model::{HostId, MessageId, NodeId, QpId, TaskId, Time};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::ops::Range;

/// Ranks that do the same on other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    /// Number of cells.
    pub(crate) count: u32,
    /// Ranks from a rank to the one that does the same in the next cell.
    pub(crate) stride: u32,
}

impl Cells {
    /// A single cell, of all ranks.
    pub(crate) const ONE: Cells = Cells { count: 1, stride: 0 };
}

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

/// What the messages of a queue pair have in common, in the order of queue pairs: receiver, sender, job, lane, path, line, whether they
/// ask, and the number of a message that has a queue pair for itself.
pub(crate) type Connection = (HostId, HostId, u16, u32, Option<u16>, u16, bool, u32);

impl DraftMessage {
    /// The connection of the message, whose number counts from 1.
    pub(crate) fn connection(&self, number: u32) -> Connection {
        let DraftMessage { from, to, job, lane, path, line, asks, fresh_qp, .. } = *self;
        (to, from, job, lane, path, line, asks, if fresh_qp { number } else { 0 })
    }
}

/// A message or a task.
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

/// A message of a workload that is several messages of the draft, see [`Whole`].
#[derive(Clone, Debug)]
pub(crate) struct DraftWhole {
    pub(crate) subflows: Range<u32>,
    pub(crate) request: Option<u32>,
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
    /// The values, by number.
    pub(crate) fn all(&self) -> &[T] {
        &self.all
    }

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
        let Graph { messages: all, tasks, operations, slices, causes, wholes, .. } = self;
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
        let target = |item: Item| match item {
            Item::Message(m) => Trigger::Message(MessageId(place[m as usize])),
            Item::Task(t) => Trigger::Task(TaskId(rank[t as usize])),
        };
        // Triggers stand in the order of their causes: those of a message follow each other.
        let slot = |cause: Event| match cause {
            Event::Received(m) => 2 * place[m as usize] as usize,
            Event::Acked(m) => 2 * place[m as usize] as usize + 1,
            Event::Done(t) => 2 * place.len() + rank[t as usize] as usize,
        };
        let mut ends = vec![0u32; 2 * place.len() + rank.len() + 1];
        causes.iter().for_each(|&(cause, _)| ends[slot(cause) + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        // `ends` has the first trigger of every cause, and in the end the first one of the next cause.
        let mut triggers = vec![Trigger::Task(TaskId(0)); causes.len()];
        for (cause, effect) in causes {
            let next = &mut ends[slot(cause)];
            triggers[*next as usize] = target(effect);
            *next += 1;
        }
        let mut from = 0;
        let mut range = |slot: usize| {
            let range = from..ends[slot];
            from = range.end;
            triggers[range.start as usize..range.end as usize].sort_unstable();
            if range.is_empty() { 0..0 } else { range }
        };
        for (m, message) in messages.iter_mut().enumerate() {
            (message.on_received, message.on_acked) = (range(2 * m), range(2 * m + 1));
        }
        for (t, task) in tasks.iter_mut().enumerate() {
            task.on_done = range(2 * place.len() + t);
        }
        for trigger in &triggers {
            match *trigger {
                Trigger::Message(m) => messages[m.index()].needs += 1,
                Trigger::Task(t) => tasks[t.index()].needs += 1,
            }
        }
        qps.shrink_to_fit();
        Sorted { qps, messages, tasks, operations, slices: slices.all, triggers, wholes }
    }
}

/// The queue pairs, the messages in the order of a plan, and the place of every message of the draft in it.
fn on_queue_pairs(all: &[DraftMessage]) -> (Vec<Qp>, Vec<Message>, Vec<u32>) {
    let mut numbers: BTreeMap<_, u32> = BTreeMap::new();
    let mut last = None;
    // Messages by connection: a connection's messages mostly come in a row.
    let mut connection = Vec::with_capacity(all.len());
    for (i, m) in (1..).zip(all) {
        let key = m.connection(i);
        let number = match last {
            Some((known, number)) if known == key => number,
            _ => {
                let next = numbers.len() as u32;
                *numbers.entry(key).or_insert(next)
            }
        };
        last = Some((key, number));
        connection.push(number);
    }
    let mut qp_of = vec![0u32; numbers.len()];
    let mut qps: Vec<Qp> = Vec::with_capacity(numbers.len());
    for (&(to, from, _, _, path, ..), &number) in &numbers {
        qp_of[number as usize] = qps.len() as u32;
        qps.push(Qp { from, to, messages: 0..0, path });
    }
    drop(numbers);
    connection.iter().for_each(|&number| qps[qp_of[number as usize] as usize].messages.end += 1);
    let mut first = 0;
    for qp in &mut qps {
        let end = first + qp.messages.end;
        qp.messages = first..first;
        first = end;
    }
    let mut place = Vec::with_capacity(all.len());
    let mut order = vec![0u32; all.len()];
    for (i, &number) in (0..).zip(&connection) {
        let next = &mut qps[qp_of[number as usize] as usize].messages.end;
        order[*next as usize] = i;
        place.push(*next);
        *next += 1;
    }
    let of = |&i: &u32| {
        let (m, number) = (&all[i as usize], connection[i as usize]);
        let plain = Message::plain(QpId(qp_of[number as usize]), m.bytes, m.start, m.job);
        Message { group: m.group, operation: m.operation, ..plain }
    };
    let sorted = order.iter().map(of).collect();
    (qps, sorted, place)
}

/// The tasks in the order of their hosts, and the place of every task in it.
fn by_host(mut tasks: Vec<Task>) -> (Vec<Task>, Vec<u32>) {
    let nodes = tasks.iter().map(|task| task.node.index() + 1).max().unwrap_or(0);
    let mut next = vec![0u32; nodes + 1];
    tasks.iter().for_each(|task| next[task.node.index() + 1] += 1);
    for node in 1..next.len() {
        next[node] += next[node - 1];
    }
    let mut place = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let next = &mut next[task.node.index()];
        place.push(*next);
        *next += 1;
    }
    tasks.sort_by_key(|task| task.node);
    (tasks, place)
}

/// Size of the `i`-th of `n` parts of `bytes`; the first parts are one byte larger if `n` does not divide `bytes`.
pub(crate) fn part(bytes: u64, n: usize, i: usize) -> u64 {
    let n = n.max(1) as u64;
    bytes / n + u64::from((i as u64) < bytes % n)
}
