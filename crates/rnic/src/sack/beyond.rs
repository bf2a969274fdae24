//! Losses inferred from what has arrived beyond ePSN.

use super::flight::Flight;
use super::ring::State;

/// Once so much has arrived beyond ePSN, packets are taken for lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beyond {
    /// Windows that must have arrived, up to the largest window so far.
    pub(crate) windows: f64,
    /// Packets that must have arrived at least.
    pub(crate) least: u16,
}

/// A window in bytes, and the frames that fill it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes of the window.
    pub(super) window: u64,
    /// Bytes of a full frame; 0 counts as 1.
    pub(super) frame: u32,
}

impl Room {
    /// Packets that so many bytes hold.
    fn packets_of(self, bytes: u64) -> u64 {
        bytes / u64::from(self.frame.max(1))
    }
}

/// A span of packets that are taken for lost while they are missing.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Recovery {
    /// First packet after the recovery, which ends when all packets before it have arrived.
    end: u64,
    /// Packets of the recovery before this one were judged.
    judged: u64,
    /// Largest window so far, bytes.
    largest: u64,
}

impl Recovery {
    /// True if the recovery has not ended, where `una` is the first packet not acknowledged.
    #[inline(always)]
    pub(super) fn is_open(&self, una: u64) -> bool {
        una < self.end
    }

    /// First packet after the latest recovery; 0 before the first one.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Notes a window in bytes.
    #[inline(always)]
    pub(super) fn note_window(&mut self, window: u64) {
        self.largest = self.largest.max(window);
    }

    /// Begins a recovery of all packets that have been sent.
    pub(super) fn begin(&mut self, flight: &Flight) {
        (self.end, self.judged) = (flight.ring().next(), flight.ring().una());
    }

    /// Takes missing packets for lost if enough later ones have arrived, or during a recovery; returns their bytes. `ahead` is
    /// the number of packets that have arrived beyond ePSN.
    pub(super) fn infer(&mut self, flight: &mut Flight, rule: Beyond, ahead: u16, room: Room) -> u64 {
        let una = flight.ring().una();
        if !self.is_open(una) {
            let many = ((room.window.min(1 << 40) as f64 * rule.windows) as u64).min(self.largest);
            if u64::from(ahead) < room.packets_of(many).max(rule.least.into()) || flight.misses() {
                return 0;
            }
            self.begin(flight);
        }
        // Each packet is judged once per recovery, when the window has reached it.
        let reach = una.saturating_add(room.packets_of(room.window).max(1));
        let end = self.end.min(reach);
        debug_assert!(end <= flight.ring().next(), "a recovery of a packet that was never sent");
        let mut bytes = 0;
        for seq in self.judged.max(una)..end {
            if flight.ring()[seq].state == State::Flying {
                bytes += flight.lose(seq);
            }
        }
        self.judged = self.judged.max(end);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Time;

    const RULE: Beyond = Beyond { windows: 1.5, least: 2 };
    const ROOM: Room = Room { window: 400, frame: 100 };

    /// Ten packets of 100 B in flight.
    fn ten() -> Flight {
        let mut flight = Flight::new();
        (0..10).for_each(|_| flight.launch(Time::ZERO, 100));
        flight
    }

    #[test]
    fn a_recovery_begins_when_enough_has_arrived_and_judges_each_packet_once() {
        let (mut flight, mut recovery) = (ten(), Recovery::default());
        recovery.note_window(900);
        assert_eq!(recovery.infer(&mut flight, RULE, 5, ROOM), 0, "six packets are 1.5 windows");
        assert_eq!((recovery.infer(&mut flight, RULE, 6, ROOM), recovery.end()), (400, 10));
        assert_eq!(recovery.infer(&mut flight, RULE, 6, ROOM), 0);
        (0..4).for_each(|seq| _ = flight.arrive(seq));
        flight.acknowledge(4);
        assert_eq!(recovery.infer(&mut flight, RULE, 0, ROOM), 400, "the window moves on");
        assert!(recovery.is_open(9) && !recovery.is_open(10));
    }

    #[test]
    fn the_largest_window_and_the_least_number_bound_what_must_arrive() {
        let (mut flight, mut recovery) = (ten(), Recovery::default());
        assert_eq!(recovery.infer(&mut flight, RULE, 1, ROOM), 0, "two packets at least");
        assert_eq!(recovery.infer(&mut flight, RULE, 2, ROOM), 400, "no window was noted");
    }

    #[test]
    fn no_recovery_begins_while_packets_wait_to_be_sent_again() {
        let (mut flight, mut recovery) = (ten(), Recovery::default());
        flight.give_up(0);
        assert_eq!(recovery.infer(&mut flight, RULE, 9, ROOM), 0);
        recovery.begin(&flight);
        assert_eq!(recovery.infer(&mut flight, RULE, 0, ROOM), 300, "but one that has begun goes on");
    }
}
