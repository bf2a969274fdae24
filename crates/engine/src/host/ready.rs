//! The order in which the queue pairs of a host send.
//!
//! The queue pair whose pacing has allowed it to send for the longest time goes first. The order is (time, number),
//! which is round robin among queue pairs of equal rate. It does not depend on when the host asks.
//!
//! This priority queue is fast on busy hosts. Queue pairs at line rate, or at half of it, become ready in the order
//! in which they sent, so they wait in a FIFO. Slower queue pairs wait in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The turn of a queue pair. Turns are ordered by time, then by slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// Time from which the queue pair may send, ps.
    pub(super) at: u64,
    /// Number of the queue pair among those of its sender.
    pub(super) slot: u32,
}

/// No queue pair: the host has nothing to send.
const NONE: Turn = Turn { at: u64::MAX, slot: u32::MAX };

/// Position in the FIFO whose state is prefetched. The departures before it take longer than a fetch from the last
/// cache level. Our choice.
const AHEAD: usize = 2;

#[derive(Debug)]
pub(super) struct Ready {
    /// The first turn; all others are below. A host with one queue pair needs nothing else.
    first: Turn,
    /// Turns in order.
    fifo: VecDeque<Turn>,
    heap: BinaryHeap<Reverse<Turn>>,
    /// A turn further ahead than this goes to the heap, ps, because later turns could not follow it in the FIFO.
    near: u64,
}

impl Ready {
    /// `frame` is the time of a full frame on the wire, ps.
    pub(super) const fn new(frame: u64) -> Self {
        // Two packets start at least one frame apart. So with gaps of up to two frames, each packet is allowed
        // later than the one before it.
        Ready { first: NONE, fifo: VecDeque::new(), heap: BinaryHeap::new(), near: 2 * frame }
    }

    /// The first turn; its time is [`u64::MAX`] if no queue pair has anything to send.
    #[inline]
    pub(super) const fn first(&self) -> Turn {
        self.first
    }

    /// True if no queue pair has a turn.
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Number of queue pairs with a turn, at least 1.
    #[inline]
    pub(super) fn len(&self) -> usize {
        1 + self.fifo.len() + self.heap.len()
    }

    /// True if at most one queue pair has a turn.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.fifo.is_empty() && self.heap.is_empty()
    }

    /// A queue pair that sends soon, if there are many: its state may have left the first caches.
    #[inline]
    pub(super) fn upcoming(&self) -> Option<u32> {
        self.fifo.get(AHEAD).map(|turn| turn.slot)
    }

    /// Turns in their order, without those of slow queue pairs.
    pub(super) fn most(&self) -> impl Iterator<Item = Turn> {
        std::iter::once(self.first).chain(self.fifo.iter().copied())
    }

    /// Adds a queue pair that has no turn. `at` may lie before `now`.
    #[inline]
    pub(super) fn insert(&mut self, at: u64, slot: u32, now: u64) {
        let turn = Turn { at, slot };
        if self.first == NONE {
            self.first = turn;
        } else if turn < self.first {
            self.fifo.push_front(self.first);
            self.first = turn;
        } else {
            self.file(turn, now);
        }
    }

    /// Gives the first queue pair its next turn, at `at`.
    #[inline]
    pub(super) fn replace_first(&mut self, at: u64, now: u64) {
        let turn = Turn { at, slot: self.first.slot };
        if self.is_alone() {
            self.first = turn;
        } else {
            self.requeue(turn, now);
        }
    }

    fn requeue(&mut self, turn: Turn, now: u64) {
        if turn < self.next() {
            self.first = turn;
        } else {
            self.file(turn, now);
            self.remove_first();
        }
    }

    /// Lets the second queue pair go before the first, if it may send by `now`. Its next turn, or its removal, must follow before
    /// any other change.
    pub(super) fn let_second_go(&mut self, now: u64) {
        if self.next().at <= now {
            let first = self.first;
            self.remove_first();
            self.fifo.push_front(first);
        }
    }

    /// Removes the first queue pair, which has nothing more to send.
    #[inline]
    pub(super) fn remove_first(&mut self) {
        self.first = match (self.fifo.front(), self.heap.peek()) {
            (Some(fifo), Some(Reverse(heap))) if fifo < heap => self.fifo.pop_front(),
            (_, Some(_)) => self.heap.pop().map(|Reverse(turn)| turn),
            (_, None) => self.fifo.pop_front(),
        }
        .unwrap_or(NONE);
    }

    /// Takes all turns out, in any order.
    pub(super) fn take_all(&mut self) -> Vec<Turn> {
        let first = (self.first != NONE).then_some(std::mem::replace(&mut self.first, NONE));
        let heap = std::mem::take(&mut self.heap).into_iter().map(|Reverse(turn)| turn);
        first.into_iter().chain(self.fifo.drain(..)).chain(heap).collect()
    }

    /// The second turn.
    fn next(&self) -> Turn {
        let fifo = self.fifo.front().copied().unwrap_or(NONE);
        let heap = self.heap.peek().map_or(NONE, |Reverse(turn)| *turn);
        fifo.min(heap)
    }

    fn file(&mut self, turn: Turn, now: u64) {
        let behind = self.fifo.back().is_none_or(|last| *last < turn);
        if behind && turn.at <= now.saturating_add(self.near) {
            self.fifo.push_back(turn);
        } else {
            self.heap.push(Reverse(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const FRAME: u64 = 30_400;

    #[test]
    fn at_line_rate_no_queue_pair_goes_to_the_heap() {
        let mut ready = Ready::new(FRAME);
        for slot in 0..300 {
            ready.insert(0, slot, 0);
        }
        let mut sent = Vec::new();
        for packet in 0..900 {
            let now = packet * FRAME;
            sent.push(ready.first().slot);
            ready.replace_first(now + FRAME + u64::from(ready.first().slot), now);
            assert!(ready.heap.is_empty());
        }
        assert!(sent.iter().enumerate().all(|(i, slot)| i % 300 == *slot as usize));
    }

    #[test]
    fn one_slow_queue_pair_does_not_send_the_others_to_the_heap() {
        let mut ready = Ready::new(FRAME);
        for slot in 0..300 {
            ready.insert(0, slot, 0);
        }
        let mut most = 0;
        for packet in 0..3000 {
            let now = packet * FRAME;
            let slow = ready.first().slot == 7;
            ready.replace_first(now + if slow { 40 * FRAME } else { FRAME }, now);
            most = most.max(ready.heap.len());
        }
        assert_eq!(most, 1);
    }

    #[test]
    fn the_second_queue_pair_may_go_first_and_the_first_one_follows() {
        let mut ready = Ready::new(FRAME);
        ready.insert(0, 0, 0);
        ready.let_second_go(0);
        assert_eq!(ready.first().slot, 0, "it is alone");
        ready.insert(1, 1, 0);
        ready.insert(9 * FRAME, 2, 0);
        ready.let_second_go(0);
        assert_eq!(ready.first().slot, 0, "the second one has to wait");
        ready.let_second_go(FRAME);
        assert_eq!(ready.first().slot, 1);
        ready.replace_first(2 * FRAME, FRAME);
        let order: Vec<u32> =
            std::iter::repeat_with(|| (ready.first().slot, ready.remove_first()).0).take(3).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    proptest! {
        /// After any sequence of steps, the order equals that of a sorted list.
        #[test]
        fn turns_come_in_the_order_of_a_sorted_list(
            steps in prop::collection::vec((0..4u8, 0..3 * FRAME, prop_oneof![Just(FRAME), 0..9 * FRAME]), 1..400),
        ) {
            let mut ready = Ready::new(FRAME);
            let mut list = BTreeSet::new();
            let (mut now, mut slots) = (0, 0);
            for (what, later, gap) in steps {
                now += later;
                match (what, list.pop_first()) {
                    (0, None) | (1.., None) => {
                        slots += 1;
                        list.insert(Turn { at: now, slot: slots });
                        ready.insert(now, slots, now);
                    }
                    (0, Some(first)) => {
                        slots += 1;
                        list.insert(first);
                        list.insert(Turn { at: now + gap, slot: slots });
                        ready.insert(now + gap, slots, now);
                    }
                    (1, Some(_)) => ready.remove_first(),
                    (_, Some(Turn { slot, .. })) => {
                        list.insert(Turn { at: now + gap, slot });
                        ready.replace_first(now + gap, now);
                    }
                }
                prop_assert_eq!(ready.first(), list.first().copied().unwrap_or(NONE));
            }
        }
    }
}
