//! The timers of a host: starts of messages, retransmissions, replies and grants.

use model::PortIndex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The purpose of a host timer; the order of the variants is their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Routes have changed, in runs whose NICs share ports.
    Routes,
    /// An own port may have changed, or a report on the ports was not confirmed, where queue pairs spread over the ports.
    Ports,
    /// The next messages of this queue pair may start.
    Start(u32),
    /// A retransmission timeout, or a deadline of the steering, of this queue pair.
    Retransmit(u32),
    /// A reply of the receiver of this number among those of its host.
    Reply(u32),
    Grant,
    /// The NIC pauses its links, or may resume them.
    Receive,
    /// A message asks whether this queue pair's own port works again.
    Recover(u32),
}

/// Places of the heap among which the timers of a window are sought, to prefetch their state: the first four levels. Our choice.
const FIRST: usize = 15;

/// Timers in a heap by time.
#[derive(Debug)]
pub(super) struct Timers {
    /// Time of the first timer, kept here because every departure and every arrival asks for it.
    first: u64,
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Timers { first: u64::MAX, heap: BinaryHeap::new() }
    }

    /// Time of the first timer; [`u64::MAX`] if there is none.
    #[inline]
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Timers before `close`, in any order. Some may be left out where there are many.
    pub(super) fn most_before(&self, close: u64) -> impl Iterator<Item = Timer> {
        let due = self.heap.iter().take(FIRST).filter(move |Reverse((at, _))| *at < close);
        due.map(|Reverse((_, timer))| *timer)
    }

    pub(super) fn push(&mut self, at: u64, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
        self.first = self.first.min(at);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes the first timer if it is due at `now`.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, Timer)> {
        if self.first > now {
            return None;
        }
        let Reverse(timer) = self.heap.pop()?;
        self.first = self.heap.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        Some(timer)
    }
}

/// The timer of a receiver, in one cache line in runs with SACKs.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct ReplyTimer<A> {
    /// Time of its entry in the heap; [`u64::MAX`] if there is none.
    pub(super) armed: u64,
    /// Annex of the last data packet, and the port by which it came.
    pub(super) annex: A,
    pub(super) port: PortIndex,
}
