//! The timers of a host: starts of messages, and retransmissions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a host timer is for; the order is the order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Start(u32),
    Retransmit(u32),
}

/// A heap by time.
#[derive(Debug)]
pub(super) struct Timers {
    /// When the first one fires: every departure and every arrival asks.
    first: u64,
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Timers { first: u64::MAX, heap: BinaryHeap::new() }
    }

    /// When the first one fires; [`u64::MAX`] if there is none.
    #[inline]
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn push(&mut self, at: u64, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
        self.first = self.first.min(at);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes the first one if it fires at `now` or before.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, Timer)> {
        if self.first > now {
            return None;
        }
        let Reverse(timer) = self.heap.pop()?;
        self.first = self.heap.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        Some(timer)
    }
}
