//! Probes, which ask the receiver for an ACK.

use super::ring::Ring;
use super::trips::Trips;
use model::Time;

/// Round trips without an ACK after which a sender probes (uet-htsim).
pub(super) const FIRST_PROBE: u64 = 3;
/// Round trips between probes without any ACK (uet-htsim).
const NEXT_PROBE: u64 = 5;

/// The probes of a sender.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Probe {
    /// Time of the next probe. Under `Infer::Beyond` there is one whenever no ACK comes, otherwise while the window holds packets
    /// back and no packet in flight has asked for an ACK.
    at: Time,
    /// Time of the last probe.
    sent: Time,
    /// The round trip by which the last answer is judged.
    answered: Time,
    /// The last packet that asked for an ACK, and the time of its transmission.
    asked: (u64, Time),
}

impl Probe {
    pub(super) const fn new() -> Self {
        Probe { at: Time::NEVER, sent: Time::ZERO, answered: Time::ZERO, asked: (0, Time::NEVER) }
    }

    /// Time of the next probe; [`Time::NEVER`] without one.
    #[inline(always)]
    pub(super) fn at(&self) -> Time {
        self.at
    }

    /// The round trip by which the last answer is judged.
    pub(super) fn answered(&self) -> Time {
        self.answered
    }

    /// Plans the next probe after so long.
    pub(super) fn plan(&mut self, now: Time, patience: Time) {
        self.at = now + patience;
    }

    /// Drops the next probe.
    #[inline(always)]
    pub(super) fn drop_plan(&mut self) {
        self.at = Time::NEVER;
    }

    /// Takes the probe that is due, and plans the next one; false if none is due.
    pub(super) fn take(&mut self, now: Time, trips: &Trips) -> bool {
        if self.at > now {
            return false;
        }
        debug_assert!(trips.least() != Time::NEVER, "a probe without a round trip");
        (self.at, self.sent) = (now + trips.times(NEXT_PROBE), now);
        true
    }

    /// Notes the round trip of a probe whose answer the sender is about to take, and the delay to assume if it was not the latest
    /// probe.
    pub(super) fn note_answer(&mut self, now: Time, trip: Time, assumed: Option<Time>, trips: &Trips) {
        let latest = now.ps() - trip.ps() == self.sent.ps();
        self.answered = match assumed {
            Some(delay) if !latest => trips.least() + delay,
            _ => trip,
        };
    }

    /// Notes a packet that asks for an ACK.
    #[inline(always)]
    pub(super) fn note_request(&mut self, now: Time, seq: u64) {
        self.asked = (seq, now);
    }

    /// True if a packet in flight has asked for an ACK.
    pub(super) fn awaits_ack(&self, ring: &Ring) -> bool {
        ring.flies(self.asked.0, self.asked.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sack::ring::{Sent, State};

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn a_probe_is_taken_once_when_it_is_due_and_planned_again_after_five_round_trips() {
        let (mut probe, mut trips) = (Probe::new(), Trips::new());
        trips.sample(US(1));
        assert!(!probe.take(US(9), &trips), "none is planned");
        probe.plan(US(1), trips.times(FIRST_PROBE));
        assert!(!probe.take(US(3), &trips) && probe.take(US(4), &trips) && !probe.take(US(4), &trips));
        assert_eq!(probe.at(), US(9));
        probe.drop_plan();
        assert_eq!(probe.at(), Time::NEVER);
    }

    #[test]
    fn the_delay_is_assumed_only_for_an_answer_to_an_earlier_probe() {
        let (mut probe, mut trips) = (Probe::new(), Trips::new());
        trips.sample(US(1));
        probe.sent = US(4);
        probe.note_answer(US(6), US(2), Some(US(9)), &trips);
        assert_eq!(probe.answered(), US(2), "it answers the latest probe");
        probe.note_answer(US(6), US(3), Some(US(9)), &trips);
        assert_eq!(probe.answered(), US(10));
        probe.note_answer(US(6), US(3), None, &trips);
        assert_eq!(probe.answered(), US(3));
    }

    #[test]
    fn an_ack_is_awaited_while_the_transmission_that_asked_for_it_flies() {
        let (mut probe, mut ring) = (Probe::new(), Ring::new());
        ring.push(Sent { at: US(1), frame: 1, state: State::Flying, again: false });
        assert!(!probe.awaits_ack(&ring));
        probe.note_request(US(1), 0);
        assert!(probe.awaits_ack(&ring));
        ring[0].at = US(2);
        assert!(!probe.awaits_ack(&ring), "it was sent again and did not ask");
    }
}
