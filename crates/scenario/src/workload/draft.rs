//! Messages in the order in which a workload thinks of them; [`crate::build`] sorts them into a plan.

use super::QpUse;
use crate::error::{Fault, nearest};
use crate::footprint::Room;
use model::draw::Key;
use model::{Fabric, HostId, Time, Wire};
use std::collections::BTreeMap;

/// A message before it has a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rough {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    pub(crate) job: u16,
    pub(crate) group: u16,
    pub(crate) fresh_qp: bool,
}

/// What sets a message free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum On {
    /// Another one has arrived whole at this one's sender.
    Received,
    /// The last byte of another one of the same sender is acknowledged.
    Acked,
}

/// All messages of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) all: Vec<Rough>,
    /// (cause, effect, when).
    pub(crate) causes: Vec<(u32, u32, On)>,
}

/// What a workload sees while it is laid out.
pub(crate) struct Draft<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) hosts: &'a BTreeMap<&'a str, HostId>,
    /// For random choices of this job.
    pub(crate) key: Key,
    /// For random choices that all jobs share.
    pub(crate) common: Key,
    pub(crate) job: u16,
    pub(crate) start: Time,
    pub(crate) qp: QpUse,
    pub(crate) messages: &'a mut Messages,
    /// Name of the job's kind of workload.
    pub(crate) kind: &'static str,
    pub(crate) room: &'a mut Room,
    pub(crate) wire: &'a Wire,
    /// What is possible but probably not meant.
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Draft<'_> {
    /// The host of that name; `path` is where the name stands.
    pub(crate) fn host(&self, name: &str, path: &str) -> Result<HostId, Fault> {
        self.hosts.get(name).copied().ok_or_else(|| {
            let hint = match nearest(name, self.hosts.keys().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("hosts are named like `{}`", self.fabric.name(HostId(0).node())),
            };
            let what =
                if self.fabric.find(name).is_some() { "is a switch, not a host" } else { "does not exist" };
            Fault::new(path, format!("the host `{name}` {what}; {hint}"))
        })
    }

    /// Refuses a job of `messages` between `pairs` of hosts if that is too many, or too much for this machine.
    /// Every job asks before it adds any; `path` is the key that says how many, seen from its settings.
    pub(crate) fn room_for(&mut self, messages: u64, pairs: u64, path: &str) -> Result<(), Fault> {
        let qps = if self.qp == QpUse::PerMessage { messages } else { pairs };
        let path = format!("workload.{}.{}.{path}", self.job, self.kind);
        self.room.for_messages(messages, qps, path)
    }

    /// Adds a message that starts with the job; returns its number for [`Draft::after`].
    pub(crate) fn send(&mut self, group: usize, from: HostId, to: HostId, bytes: u64) -> u32 {
        self.send_at(group, from, to, bytes, Time::ZERO)
    }

    /// Adds a message that starts `after` the job's start.
    pub(crate) fn send_at(&mut self, group: usize, from: HostId, to: HostId, bytes: u64, after: Time) -> u32 {
        self.messages.all.push(Rough {
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

    /// `effect` is posted only after `cause`.
    pub(crate) fn after(&mut self, cause: u32, on: On, effect: u32) {
        self.messages.causes.push((cause, effect, on));
    }
}

/// The `i`-th of `n` parts of `bytes`; the first ones take the remainder, so that the sum is exact.
pub(crate) fn part(bytes: u64, n: usize, i: usize) -> u64 {
    let n = n.max(1) as u64;
    bytes / n + u64::from((i as u64) < bytes % n)
}

/// Refuses an empty message.
pub(crate) fn some_bytes(bytes: model::Bytes, path: &str) -> Result<u64, Fault> {
    match bytes.get() {
        0 => Err(Fault::new(path, "there is nothing to send: 0 bytes")),
        // A queue pair counts packets in 64 bits, but a result is a table that somebody wants to read.
        n if n > 1 << 50 => {
            Err(Fault::new(path, format!("{bytes} are too much for one message; at most 1 PiB")))
        }
        n => Ok(n),
    }
}
