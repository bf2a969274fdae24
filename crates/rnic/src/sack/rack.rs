//! Losses inferred from the latest transmission that is known to have arrived (RACK, RFC 8985), and probes of the tail (TLP).

use model::Time;

/// The times of RACK and TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    /// Time by which packets may overtake each other, in quarters of the smoothed round trip.
    pub(crate) quarters: u32,
    /// Silence after which the first packet in flight is sent again, in smoothed round trips.
    pub(crate) trips: u32,
    /// Time for which the receiver may hold an ACK back, which is added to that silence.
    pub(crate) ack_wait: Time,
    /// The least such silence.
    pub(crate) least: Time,
}

/// What a sender knows of the latest arrivals.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Rack {
    /// Start of the latest transmission that is known to have arrived.
    latest: Time,
    /// Age from which packets are lost that were sent no later; [`Time::NEVER`] before the first reply.
    age: Time,
    /// Smoothed round trip; [`Time::NEVER`] before the first reply.
    smoothed: Time,
    /// Time of the next probe of the tail; [`Time::NEVER`] without one.
    probe: Time,
    /// Time at which the next packet in flight has that age, or a probe is due.
    due: Time,
    /// Bytes taken for lost since the last reply.
    lost: u64,
}

impl Rack {
    pub(super) const fn new() -> Self {
        let never = Time::NEVER;
        Rack { latest: Time::ZERO, age: never, smoothed: never, probe: never, due: never, lost: 0 }
    }

    /// Time of the next loss or probe; [`Time::NEVER`] if none is due.
    #[inline(always)]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Takes the round trip of the packet that a reply answers; zero is unknown.
    pub(super) fn note_trip(&mut self, rule: Rule, now: Time, trip: Time) {
        if trip == Time::ZERO {
            return;
        }
        debug_assert!(trip <= now, "a packet that was sent before the start of the run");
        self.smoothed = match self.smoothed {
            Time::NEVER => trip,
            // The weight of a sample in Isekai, `rtt_smoothing_alpha`.
            smoothed => Time((3 * smoothed.ps() + trip.ps()) / 4),
        };
        let sent = Time(now.ps() - trip.ps());
        if sent > self.latest || self.age == Time::NEVER {
            let reordering = self.smoothed.ps() * u64::from(rule.quarters) / 4;
            (self.latest, self.age) = (sent, Time(trip.ps() + reordering));
        }
    }

    /// The time before which a lost packet was sent, at `now`; zero if none is lost.
    pub(super) fn lost_before(&self, now: Time) -> Time {
        let old = now.ps().checked_sub(self.age.ps());
        old.map_or(Time::ZERO, |old| Time(old.min(self.latest.ps()) + 1))
    }

    /// Plans the next probe after a transmission or a reply, if packets are in flight, the oldest of which was sent at `oldest`.
    #[inline]
    pub(super) fn plan(&mut self, rule: Rule, now: Time, oldest: Option<Time>) {
        self.probe = match oldest.is_some() && self.smoothed != Time::NEVER {
            true => {
                let silence = (self.smoothed.ps() * u64::from(rule.trips)).saturating_add(rule.ack_wait.ps());
                Time(now.ps().saturating_add(silence.max(rule.least.ps())))
            }
            false => Time::NEVER,
        };
        self.set_due(oldest);
    }

    /// Notes the oldest packet in flight.
    #[inline]
    fn set_due(&mut self, oldest: Option<Time>) {
        let aged = oldest.filter(|at| *at <= self.latest && self.age != Time::NEVER);
        self.due = aged.map_or(Time::NEVER, |at| at + self.age).min(self.probe);
    }

    /// Takes the probe that is due; false if none is.
    pub(super) fn take_probe(&mut self, now: Time) -> bool {
        let due = self.probe <= now;
        if due {
            self.probe = Time::NEVER;
        }
        due
    }

    /// Notes losses without a reply, after which `oldest` is the oldest packet in flight.
    pub(super) fn note_lost(&mut self, bytes: u64, oldest: Option<Time>) {
        self.lost += bytes;
        self.set_due(oldest);
    }

    /// Bytes taken for lost since the last reply.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;
    const RULE: Rule = Rule { quarters: 1, trips: 2, ack_wait: US8, least: Time::ZERO };
    const US8: Time = Time(8_000_000);

    #[test]
    fn packets_are_lost_a_round_trip_and_a_quarter_after_they_were_sent_if_a_later_one_has_arrived() {
        let mut rack = Rack::new();
        assert_eq!((rack.lost_before(US(99)), rack.due()), (Time::ZERO, Time::NEVER));
        rack.note_trip(RULE, US(14), US(8));
        // The packet was sent at 6 us. At 14 us, packets are lost that are 10 us old, so those that were sent up to 4 us.
        assert_eq!(rack.lost_before(US(14)), Time(US(4).ps() + 1));
        assert_eq!(rack.lost_before(US(50)), Time(US(6).ps() + 1), "but none that was sent later");
        rack.plan(RULE, US(14), Some(US(5)));
        assert_eq!(rack.due(), US(15), "the age of the oldest packet");
        rack.plan(RULE, US(14), Some(US(7)));
        assert_eq!(rack.due(), US(38), "two round trips, and the time of an ACK that is held back");
    }

    #[test]
    fn a_reply_to_an_earlier_packet_smooths_the_round_trip_and_leaves_the_age() {
        let mut rack = Rack::new();
        rack.note_trip(RULE, US(14), US(8));
        rack.note_trip(RULE, US(18), US(16)); // sent at 2 us
        assert_eq!((rack.latest, rack.age, rack.smoothed), (US(6), US(10), US(10)));
        rack.note_trip(RULE, US(20), US(10));
        assert_eq!((rack.latest, rack.age), (US(10), Time(12_500_000)));
    }

    #[test]
    fn a_tail_is_probed_once_after_a_silence_that_is_at_least_so_long() {
        let mut rack = Rack::new();
        rack.plan(RULE, US(1), Some(US(0)));
        assert!(!rack.take_probe(US(99)), "no round trip is known");
        rack.note_trip(RULE, US(8), US(8));
        rack.plan(Rule { least: US(50), ..RULE }, US(8), Some(US(1)));
        assert!(
            !rack.take_probe(Time(US(58).ps() - 1)) && rack.take_probe(US(58)) && !rack.take_probe(US(99))
        );
        rack.plan(RULE, US(60), None);
        assert!(!rack.take_probe(US(99)), "nothing is in flight");
    }
}
