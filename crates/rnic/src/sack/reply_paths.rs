//! The paths of ACKs and NACKs.

use model::draw::Key;
use model::{PortIndex, PortSharing, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule by which the receiver chooses the entropy of an ACK or a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyPaths {
    /// The entropy of the packet that the reply answers.
    OfPacket,
    /// An entropy for each port that has worked last. While data arrives, the receiver probes a random entropy in every round
    /// trip, and an answered one is the next to use. Until the first answer, replies by a port take the entropies of their
    /// packets.
    Probed,
    /// The path to which the queue pair hashes.
    Flow,
}

/// Round trip between the receiver's probes until the first answer. Our choice: above the idle round trip of most fabrics.
const FIRST: Time = Time::from_us(20);

/// The entropies that have worked last, and the probes that find them.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
#[repr(align(64))]
pub(crate) struct Probed {
    /// Entropies by port of the NIC.
    working: [Option<u16>; PortSharing::MOST],
    /// Number of probes so far, which is also the key of the next random entropy.
    probes: u64,
    /// Start of the last probe.
    sent: Time,
    /// Round trip of the probe that was answered last.
    round_trip: Time,
    /// True if data has arrived since the last probe.
    heard: bool,
}

impl Probed {
    pub(crate) fn new() -> Self {
        Probed {
            working: [None; PortSharing::MOST],
            probes: 0,
            sent: Time::ZERO,
            round_trip: FIRST,
            heard: false,
        }
    }

    /// The entropy of a reply by this port, if one is known to work.
    pub(crate) fn entropy(&self, port: PortIndex) -> Option<u16> {
        self.working[port.index()]
    }

    /// Notes that data has arrived.
    pub(crate) fn note_data(&mut self) {
        self.heard = true;
    }

    /// Time of the next probe.
    pub(crate) fn deadline(&self) -> Time {
        match (self.heard, self.probes) {
            (false, _) => Time::NEVER,
            (true, 0) => Time::ZERO,
            (true, _) => self.sent + self.round_trip,
        }
    }

    /// The entropy to probe now, if a probe is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<u16> {
        if self.deadline() > now {
            return None;
        }
        self.probes += 1;
        // Switches hash the entropy with the queue pair, so all receivers may draw the same ones.
        let entropy = Key::from_salt(0).draw(self.probes) as u16;
        (self.sent, self.heard) = (now, false);
        Some(entropy)
    }

    /// Handles an answer that has come by this port. It brings back the time of its probe, so its round trip counts even if a
    /// later probe has started.
    pub(crate) fn on_answer(&mut self, entropy: u16, round_trip: Time, port: PortIndex) {
        self.working[port.index()] = Some(entropy);
        self.round_trip = round_trip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn while_data_arrives_a_random_entropy_is_probed_in_every_round_trip() {
        let mut probed = Probed::new();
        assert_eq!((probed.deadline(), probed.take(US(9))), (Time::NEVER, None));
        probed.note_data();
        let first = probed.take(US(9)).unwrap();
        assert_eq!(probed.deadline(), Time::NEVER, "no data since");
        probed.note_data();
        assert_eq!((probed.deadline(), probed.take(US(28))), (US(29), None));
        probed.on_answer(first, US(5), PortIndex(0));
        assert_eq!(probed.deadline(), US(14), "the round trip takes 5 us");
        let second = probed.take(US(14)).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn the_interval_grows_with_the_round_trip_although_a_later_probe_has_started() {
        let mut probed = Probed::new();
        let probe = |probed: &mut Probed, at| {
            probed.note_data();
            probed.take(US(at)).unwrap()
        };
        let first = probe(&mut probed, 0);
        probed.on_answer(first, US(5), PortIndex(0));
        // From now on a round trip takes 12 us, so each answer comes after two later probes.
        let slow = probe(&mut probed, 5);
        (10..20).step_by(5).for_each(|at| _ = probe(&mut probed, at));
        probed.on_answer(slow, US(12), PortIndex(0));
        probed.note_data();
        assert_eq!((probed.deadline(), probed.take(US(20))), (US(27), None));
    }

    #[test]
    fn each_port_uses_the_entropy_that_was_answered_last() {
        let mut probed = Probed::new();
        assert_eq!(probed.entropy(PortIndex(2)), None);
        probed.on_answer(7, US(1), PortIndex(2));
        probed.on_answer(9, US(1), PortIndex(0));
        assert_eq!([0, 1, 2, 3].map(|port| probed.entropy(PortIndex(port))), [Some(9), None, Some(7), None]);
        probed.on_answer(8, US(1), PortIndex(2));
        assert_eq!(probed.entropy(PortIndex(2)), Some(8));
    }
}
