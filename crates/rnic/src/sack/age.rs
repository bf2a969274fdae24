//! The order of packets by the time of their last transmission, and losses inferred from it.

use super::flight::Flight;
use super::ring::Ring;
use model::Time;
use std::collections::VecDeque;

/// The packets in flight by age.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Ages {
    /// Packets before this one are not in flight, or were sent again. First transmissions are in the order of packets.
    fresh: u64,
    /// Packets that were sent again, in the order of their last transmissions, with outdated entries: (time, packet). They stand
    /// apart, since most queue pairs have none.
    #[expect(clippy::box_collection, reason = "a queue takes four times the room of a pointer")]
    repeats: Option<Box<VecDeque<(Time, u64)>>>,
    /// Latest transmission of a packet that has arrived.
    latest_arrived: Time,
}

impl Ages {
    /// Notes that a packet was sent again.
    pub(super) fn note_repeat(&mut self, now: Time, seq: u64) {
        self.repeats.get_or_insert_default().push_back((now, seq));
    }

    /// Notes that a packet has arrived whose last transmission was at `at`.
    pub(super) fn note_arrival(&mut self, at: Time) {
        self.latest_arrived = self.latest_arrived.max(at);
    }

    /// The packet in flight whose last transmission is the oldest, and the time of that transmission.
    #[inline]
    pub(super) fn oldest(&self, ring: &Ring) -> Option<(Time, u64)> {
        let fresh = match self.fresh < ring.next() {
            true => Some((ring[self.fresh].at, self.fresh)),
            false => None,
        };
        match self.repeats.as_ref().and_then(|repeats| repeats.front()) {
            Some(&repeat) if fresh.is_none_or(|(at, _)| repeat.0 <= at) => Some(repeat),
            _ => fresh,
        }
    }

    /// Finds the oldest packet in flight. A recovery judges its packets itself, so those before its end `recovery` count only
    /// once they were sent again.
    #[inline]
    pub(super) fn tidy(&mut self, ring: &Ring, recovery: u64) {
        self.fresh = self.fresh.max(ring.una()).max(recovery);
        while self.fresh < ring.next() && !ring[self.fresh].is_fresh() {
            self.fresh += 1;
        }
        if let Some(repeats) = &mut self.repeats {
            while let Some(&(at, seq)) = repeats.front()
                && !ring.flies(seq, at)
            {
                repeats.pop_front();
            }
        }
    }

    /// Time before which packets were sent that are older than `age`, and before one that has arrived.
    pub(super) fn lost_before(&self, now: Time, age: Time) -> Time {
        Time(now.ps().saturating_sub(age.ps())).min(self.latest_arrived)
    }

    /// Takes packets for lost whose last transmission was before `end`; returns their bytes.
    pub(super) fn infer(&mut self, flight: &mut Flight, end: Time) -> u64 {
        let mut bytes = 0;
        self.tidy(flight.ring(), 0);
        while let Some((at, seq)) = self.oldest(flight.ring())
            && at < end
        {
            bytes += flight.lose(seq);
            self.tidy(flight.ring(), 0);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    /// Four packets of 100 B, sent 1 us apart.
    fn four() -> (Flight, Ages) {
        let mut flight = Flight::new();
        (0..4).for_each(|us| flight.launch(US(us), 100));
        (flight, Ages::default())
    }

    #[test]
    fn a_repeated_packet_is_as_old_as_its_last_transmission() {
        let (mut flight, mut ages) = four();
        assert_eq!(ages.oldest(flight.ring()), Some((US(0), 0)));
        flight.give_up(0);
        flight.repeat(US(9));
        ages.note_repeat(US(9), 0);
        ages.tidy(flight.ring(), 0);
        assert_eq!(ages.oldest(flight.ring()), Some((US(1), 1)));
        ages.tidy(flight.ring(), 4);
        assert_eq!(ages.oldest(flight.ring()), Some((US(9), 0)), "a recovery judges the others");
        flight.arrive(0);
        ages.tidy(flight.ring(), 4);
        assert_eq!(ages.oldest(flight.ring()), None);
    }

    #[test]
    fn packets_are_lost_that_are_old_and_were_sent_before_one_that_has_arrived() {
        let (mut flight, mut ages) = four();
        assert_eq!(ages.lost_before(US(9), Time::ZERO), Time::ZERO, "none has arrived");
        ages.note_arrival(flight.arrive(2).at);
        let ends = [US(8), US(9), US(10), US(99)].map(|now| ages.lost_before(now, US(8)));
        assert_eq!(ends, [US(0), US(1), US(2), US(2)]);
        assert_eq!(ends.map(|end| ages.infer(&mut flight, end)), [0, 100, 100, 0], "packet 3 was sent later");
        assert_eq!((flight.take_lost(), flight.take_lost(), flight.take_lost()), (Some(0), Some(1), None));
    }
}
