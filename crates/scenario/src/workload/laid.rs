//! Messages and tasks of all jobs in the order in which they were laid out; [`Graph::sorted`] brings them into the order of a plan.

use super::draft::{DraftMessage, Item};
use model::plan::{Message, Operation, Qp, SliceTimes, Task, Trigger, Whole};
use model::{HostId, MessageId, NodeId, QpId, TaskId, Time};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::ops::Range;

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
