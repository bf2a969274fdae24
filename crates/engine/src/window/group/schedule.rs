//! When the nodes of a group have something to do that no arrival tells.

use crate::window::lanes::{Bit, bits};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times of a node, ps; [`u64::MAX`] for never.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Its next event that needs no arrival.
    next: u64,
    /// [`Times::next`] without packets that are only handed on to lanes.
    event: u64,
    /// Its valid entry among the sleepers.
    booked: u64,
}

/// The schedule of a group's visits, by number of a node in its group.
#[derive(Debug)]
pub(super) struct Schedule {
    times: Vec<Times>,
    /// A bit for every node with an event in the next window that needs no arrival.
    soon: Vec<u64>,
    /// [`Schedule::soon`] of the window after the open one.
    later: Vec<u64>,
    /// Time of the first event among nodes in `soon`, ps.
    soon_at: u64,
    /// Later events of nodes, by time. An entry is stale unless its time is the node's [`Times::booked`].
    sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    /// A bit for every node of each side, in a run in which two sides take turns.
    sides: [Vec<u64>; 2],
}

impl Schedule {
    /// The schedule of so many nodes without events.
    pub(super) fn new(nodes: usize) -> Self {
        let words = nodes.div_ceil(64);
        Schedule {
            times: vec![Times { next: u64::MAX, event: u64::MAX, booked: u64::MAX }; nodes],
            soon: vec![0; words],
            later: vec![0; words],
            soon_at: u64::MAX,
            sleepers: BinaryHeap::new(),
            sides: [Vec::new(), Vec::new()],
        }
    }

    /// Number of words in tables with a bit for every node.
    #[inline(always)]
    pub(super) fn words(&self) -> usize {
        self.soon.len()
    }

    /// Prepares for turns of two sides; the nodes come in order.
    pub(super) fn take_sides(&mut self, side_of: impl Iterator<Item = u8>) {
        self.sides = [vec![0; self.words()], vec![0; self.words()]];
        for (n, side) in (0..).zip(side_of) {
            Bit::of(0, n).set(&mut self.sides[usize::from(side)]);
        }
    }

    /// True if two sides take turns.
    #[inline(always)]
    pub(super) fn has_sides(&self) -> bool {
        !self.sides[0].is_empty()
    }

    /// The nodes of a side in a word.
    pub(super) fn side(&self, side: usize, word: usize) -> u64 {
        self.sides[side][word]
    }

    /// Plans the next visit of a node: its next event comes at `next`, and the next one that is more than handing packets on at
    /// `event`. An event before `soon` belongs to the next window.
    #[inline]
    pub(super) fn plan(&mut self, n: usize, (next, event): (u64, u64), soon: u64) {
        debug_assert!(next <= event, "{next} {event}");
        let times = &mut self.times[n];
        (times.next, times.event) = (next, event);
        if next < soon {
            self.later[n / 64] |= 1 << (n % 64);
            self.soon_at = self.soon_at.min(next);
        } else if next < times.booked {
            self.book(n);
        }
    }

    fn book(&mut self, n: usize) {
        let times = &mut self.times[n];
        times.booked = times.next;
        if times.next != u64::MAX {
            self.sleepers.push(Reverse((times.next, n as u32)));
        }
    }

    /// Brings the next event of a node forward to `at`, between two windows.
    pub(super) fn hasten(&mut self, n: usize, at: u64) {
        let times = &mut self.times[n];
        (times.next, times.event) = (times.next.min(at), times.event.min(at));
        if times.next < times.booked {
            self.book(n);
        }
    }

    /// Opens a window that closes at `close`.
    #[inline]
    pub(super) fn open(&mut self, close: u64) {
        self.wake(close);
        self.soon_at = u64::MAX;
    }

    /// Marks nodes whose next event comes before `close` for a visit.
    #[inline]
    pub(super) fn wake(&mut self, close: u64) {
        while let Some(&Reverse((at, n))) = self.sleepers.peek()
            && at < close
        {
            self.sleepers.pop();
            let times = &mut self.times[n as usize];
            if at == times.booked {
                times.booked = u64::MAX;
                if times.next < close {
                    self.soon[n as usize / 64] |= 1 << (n % 64);
                } else {
                    self.book(n as usize);
                }
            }
        }
    }

    /// Takes those of `members` in a word that are to be visited.
    #[inline(always)]
    pub(super) fn take(&mut self, word: usize, members: u64) -> u64 {
        let soon = &mut self.soon[word];
        let due = *soon & members;
        *soon &= !members;
        due
    }

    /// Closes a window in which all nodes had their visits.
    #[inline]
    pub(super) fn close(&mut self) {
        debug_assert!(self.soon.iter().all(|word| *word == 0), "a node was not visited");
        std::mem::swap(&mut self.soon, &mut self.later);
    }

    /// Closes a step of a window: the nodes planned in it belong to the next one.
    pub(super) fn close_step(&mut self) {
        for (soon, later) in self.soon.iter_mut().zip(&mut self.later) {
            *soon |= std::mem::take(later);
        }
    }

    /// Closes the last step of a window.
    pub(super) fn close_steps(&mut self) {
        let soon = self.soon.iter().enumerate().flat_map(|(word, soon)| bits(*soon, word * 64));
        self.soon_at = soon.map(|n| self.times[n].next).min().unwrap_or(u64::MAX);
    }

    /// Closes the turn of a side for the nodes in a word. Those of the other side still wait for theirs.
    pub(super) fn close_turn(&mut self, word: usize) {
        let others = self.soon[word];
        self.soon[word] |= std::mem::take(&mut self.later[word]);
        let first = bits(others, word * 64).map(|n| self.times[n].next).min();
        self.soon_at = self.soon_at.min(first.unwrap_or(u64::MAX));
    }

    /// Time of the first event that needs no arrival, ps.
    pub(super) fn first(&mut self) -> u64 {
        while let Some(&Reverse((at, n))) = self.sleepers.peek() {
            let times = &self.times[n as usize];
            if at == times.booked && at == times.next {
                return at.min(self.soon_at);
            }
            // The entry is stale: the event was postponed, or another entry has replaced it.
            self.sleepers.pop();
            if at == times.booked {
                self.book(n as usize);
            }
        }
        self.soon_at
    }

    /// Time of the first event other than packets that are only handed on to lanes, ps.
    pub(super) fn first_event(&self) -> u64 {
        self.times.iter().map(|times| times.event).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits nodes in windows of 10 ps up to 100 ps. Each visit postpones the node by what `after` says. Returns windows and nodes.
    fn visits(schedule: &mut Schedule, after: impl Fn(usize, u64) -> u64) -> Vec<(u64, usize)> {
        let mut visits = Vec::new();
        for opened in (0..100).step_by(10) {
            schedule.open(opened + 10);
            for word in 0..schedule.words() {
                for n in bits(schedule.take(word, u64::MAX), word * 64) {
                    visits.push((opened, n));
                    let next = after(n, opened);
                    schedule.plan(n, (next, next), opened + 20);
                }
            }
            schedule.close();
        }
        visits
    }

    fn ready(nexts: &[u64]) -> Schedule {
        let mut schedule = Schedule::new(nexts.len());
        for (n, next) in nexts.iter().enumerate() {
            schedule.plan(n, (*next, *next), 10);
        }
        schedule.close();
        schedule
    }

    #[test]
    fn each_node_is_visited_in_the_window_of_its_event() {
        let mut schedule = ready(&[5, 47, u64::MAX, 9]);
        assert_eq!(schedule.first(), 5);
        let once = visits(&mut schedule, |_, _| u64::MAX);
        assert_eq!(once, [(0, 0), (0, 3), (40, 1)]);
        assert_eq!(schedule.first(), u64::MAX);
    }

    #[test]
    fn a_node_of_a_second_word_has_its_next_event_in_the_next_window_or_sleeps() {
        let mut nexts = vec![u64::MAX; 70];
        nexts[69] = 0;
        let mut schedule = ready(&nexts);
        let twice = visits(&mut schedule, |_, opened| if opened == 0 { 12 } else { opened + 50 });
        assert_eq!(twice, [(0, 69), (10, 69), (60, 69)]);
        assert_eq!(schedule.first(), 110);
    }

    #[test]
    fn a_postponed_event_has_a_stale_entry_and_a_hastened_one_replaces_it() {
        let mut schedule = ready(&[50]);
        schedule.plan(0, (80, 80), 10);
        assert_eq!(schedule.first(), 80, "the entry at 50 was stale");
        schedule.hasten(0, 30);
        assert_eq!((schedule.first(), schedule.first_event()), (30, 30));
        assert_eq!(visits(&mut schedule, |_, _| u64::MAX), [(30, 0)]);
    }

    #[test]
    fn packets_to_hand_on_are_a_visit_and_no_event() {
        let mut schedule = ready(&[u64::MAX]);
        schedule.plan(0, (30, 90), 10);
        assert_eq!((schedule.first(), schedule.first_event()), (30, 90));
    }

    #[test]
    fn a_side_waits_for_its_turn() {
        let mut schedule = ready(&[3, 4]);
        schedule.take_sides([0, 1].into_iter());
        schedule.open(10);
        let members = schedule.side(0, 0);
        assert_eq!(schedule.take(0, members), 0b01);
        schedule.plan(0, (15, 15), 30);
        schedule.close_turn(0);
        assert_eq!(schedule.first(), 4, "the other side has the next event");
        assert_eq!(schedule.take(0, schedule.side(1, 0)), 0b10);
        assert_eq!(schedule.take(0, members), 0b01);
    }

    #[test]
    fn a_step_hands_its_plans_to_the_next_one() {
        let mut schedule = ready(&[3]);
        assert_eq!(schedule.take(0, u64::MAX), 1);
        schedule.plan(0, (7, 7), 10);
        schedule.close_step();
        schedule.close_steps();
        assert_eq!((schedule.first(), schedule.take(0, u64::MAX)), (7, 1));
    }
}
