//! Messages in the order in which workloads generate them; [`Messages::sorted`] brings them into the order of a plan.

use super::QpUse;
use crate::error::{KeyError, nearest};
use crate::footprint::MemoryBudget;
use model::draw::Key;
use model::plan::{Message, Qp, Trigger};
use model::{Fabric, HostId, MessageId, QpId, Time, Wire};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A message before it has a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftMessage {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    pub(crate) job: u16,
    pub(crate) group: u16,
    pub(crate) fresh_qp: bool,
}

/// Event of one message that starts another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartOn {
    /// The receiver, which sends the other message, has the whole message.
    Received,
    /// The sender, which sends the other message, too, has the ACK of the last byte.
    Acked,
}

/// Messages generated so far.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) all: Vec<DraftMessage>,
    /// Pairs of messages (cause, effect), each with the event of the cause that starts the effect.
    pub(crate) causes: Vec<(u32, u32, StartOn)>,
}

/// The queue pairs, messages and triggers of a plan.
type Sorted = (Vec<Qp>, Vec<Message>, Vec<Trigger>);

impl Messages {
    /// Gives messages their queue pairs and final numbers, in the order of a plan.
    pub(crate) fn sorted(self) -> Sorted {
        let Messages { all, mut causes } = self;
        let qp_key = |i: u32| {
            let DraftMessage { from, to, job, fresh_qp, .. } = all[i as usize];
            (to, from, job, if fresh_qp { i + 1 } else { 0 })
        };
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|&i| (qp_key(i), i));
        let mut place = vec![0u32; all.len()];
        for (position, &i) in order.iter().enumerate() {
            place[i as usize] = position as u32;
        }
        let mut qps: Vec<Qp> = Vec::new();
        let mut sorted: Vec<Message> = Vec::with_capacity(all.len());
        for (position, &i) in order.iter().enumerate() {
            let m = &all[i as usize];
            let at = position as u32;
            if position == 0 || qp_key(order[position - 1]) != qp_key(i) {
                qps.push(Qp { from: m.from, to: m.to, messages: at..at });
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
            });
        }
        for (cause, effect, _) in &mut causes {
            (*cause, *effect) = (place[*cause as usize], place[*effect as usize]);
            sorted[*effect as usize].needs += 1;
        }
        causes.sort_by_key(|&(cause, effect, on)| (cause, on, effect));
        let mut triggers = Vec::with_capacity(causes.len());
        for (cause, effect, on) in causes {
            let at = triggers.len() as u32;
            triggers.push(Trigger::Message(MessageId(effect)));
            let m = &mut sorted[cause as usize];
            let range = if on == StartOn::Received { &mut m.on_received } else { &mut m.on_acked };
            if range.start == range.end {
                range.start = at;
            }
            range.end = at + 1;
        }
        (qps, sorted, triggers)
    }
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
    pub(crate) messages: &'a mut Messages,
    /// Name of the job's kind of workload.
    pub(crate) kind: &'static str,
    pub(crate) memory: &'a mut MemoryBudget,
    pub(crate) wire: &'a Wire,
    /// Warnings so far.
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Draft<'_> {
    /// Finds a host by its name; errors point at `path`.
    pub(crate) fn host(&self, name: &str, path: &str) -> Result<HostId, KeyError> {
        self.hosts.get(name).copied().ok_or_else(|| {
            let hint = match nearest(name, self.hosts.keys().map(AsRef::as_ref)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("hosts are named like `{}`", self.fabric.host_name(HostId(0))),
            };
            let what = match self.fabric.find(name) {
                Some(node) if self.fabric.is_host(node) => "has several ports",
                Some(_) => "is a switch, not a host",
                None => "does not exist",
            };
            KeyError::new(path, format!("the host `{name}` {what}; {hint}"))
        })
    }

    /// Refuses a job with too many messages, or with more than fit into the machine's memory. Every job calls this
    /// before it adds a message. `pairs` is its number of pairs of hosts; `path` is the key, within the settings of the
    /// job, that determines the number of messages.
    pub(crate) fn reserve(&mut self, messages: u64, pairs: u64, path: &str) -> Result<(), KeyError> {
        let qps = if self.qp == QpUse::PerMessage { messages } else { pairs };
        let path = format!("workload.{}.{}.{path}", self.job, self.kind);
        self.memory.add_messages(messages, qps, path)
    }

    /// Adds a message that starts with the job and returns its number, for [`Draft::after`].
    pub(crate) fn send(&mut self, group: usize, from: HostId, to: HostId, bytes: u64) -> u32 {
        self.send_at(group, from, to, bytes, Time::ZERO)
    }

    /// Adds a message that starts `after` the start of the job.
    pub(crate) fn send_at(&mut self, group: usize, from: HostId, to: HostId, bytes: u64, after: Time) -> u32 {
        self.messages.all.push(DraftMessage {
            from,
            to,
            bytes,
            start: Time(self.start.ps().saturating_add(after.ps())),
            job: self.job,
            group: group as u16,
            fresh_qp: self.qp == QpUse::PerMessage,
        });
        self.messages.all.len() as u32 - 1
    }

    /// Lets `effect` start at an event of `cause`.
    pub(crate) fn after(&mut self, cause: u32, on: StartOn, effect: u32) {
        self.messages.causes.push((cause, effect, on));
    }
}

/// Size of the `i`-th of `n` parts of `bytes`; the first parts are one byte larger if `n` does not divide `bytes`.
pub(crate) fn part(bytes: u64, n: usize, i: usize) -> u64 {
    let n = n.max(1) as u64;
    bytes / n + u64::from((i as u64) < bytes % n)
}

/// Refuses an empty message.
pub(crate) fn some_bytes(bytes: model::Bytes, path: &str) -> Result<u64, KeyError> {
    match bytes.get() {
        0 => Err(KeyError::new(path, "expected at least 1 byte, found 0")),
        // Our choice: a queue pair counts packets in 64 bits and would allow more.
        n if n > 1 << 50 => Err(KeyError::new(path, format!("expected at most 1 PiB, found {bytes}"))),
        n => Ok(n),
    }
}
