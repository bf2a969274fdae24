//! The NIC that reordering does not hurt: the upper bound for every other one.
//!
//! The receiver keeps what comes out of order and never NACKs; its ACKs are cumulative, so they stall at a gap.
//! The sender heeds no NACK either (one from elsewhere acknowledges what is before it). What is really lost
//! comes back by the timer, one packet per timeout, or with `resend = "all"` everything from the gap on, as
//! NICs do in their adaptive-routing mode.

use super::nic_sr::Resend;
use crate::ack::Acks;
use crate::bitmap::{Bitmap, Insert};
use crate::config::{Invalid, outstanding};
use crate::flight::Flight;
use crate::notification::Marks;
use crate::timeout::Timer;
use model::transport::{Fate, Progress, Reception, Reply};
use model::{Psn, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.transport.ideal]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Most packets outstanding, up to 8388607. Default 1048576 (our choice: 1.5 GB of 1438-byte payloads, so
    /// that no fabric fills it).
    pub max_outstanding: u32,
    /// Packets from ePSN on that the receiver can note; it discards those beyond. Default 1048576 (our
    /// choice, as above).
    pub reorder_window: u32,
    /// What a timeout sends again: `oldest` or `all`. Default `oldest` (our choice: retransmit what was lost
    /// and nothing else).
    pub resend: Resend,
}

const WINDOW: u32 = 1 << 20;

impl Default for Config {
    fn default() -> Self {
        Config { max_outstanding: WINDOW, reorder_window: WINDOW, resend: Resend::Oldest }
    }
}

impl Config {
    /// Whether the values are possible.
    pub fn validate(&self) -> Result<(), Invalid> {
        outstanding("max-outstanding", self.max_outstanding)?;
        outstanding("reorder-window", self.reorder_window)
    }

    /// A sender.
    pub fn sender(&self, timer: Timer) -> Sender {
        Sender { flight: Flight::new(self.max_outstanding, timer), resend: self.resend }
    }

    /// A receiver.
    pub fn receiver(&self, acks: Acks, marks: Marks) -> Receiver {
        Receiver { expected: 0, ahead: Bitmap::new(self.reorder_window), acks, marks }
    }
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    flight: Flight,
    resend: Resend,
}

impl model::Sender for Sender {
    #[inline]
    fn post(&mut self, packets: u64) {
        self.flight.post(packets);
    }

    #[inline]
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        self.flight.take(now, window)
    }

    #[inline]
    fn ready(&self, window: u64) -> bool {
        self.flight.ready(window)
    }

    #[inline]
    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        Progress { nack: false, ..self.flight.hear(now, reply) }
    }

    #[inline]
    fn una(&self) -> u64 {
        self.flight.una()
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.flight.deadline()
    }

    fn on_timeout(&mut self, now: Time) {
        if self.flight.times_out(now) {
            match self.resend {
                Resend::Oldest => self.flight.resend_oldest(),
                Resend::All => self.flight.rewind(),
            }
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    expected: u64,
    ahead: Bitmap,
    acks: Acks,
    marks: Marks,
}

impl model::Receiver for Receiver {
    #[inline]
    fn on_data(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception {
        let distance = psn.distance_from(Psn::from_seq(self.expected));
        let (fate, reply) = if distance == 0 {
            let next = self.expected.wrapping_add(1);
            self.expected = self.ahead.advance(self.expected);
            (Fate::Accepted, self.acks.on_packet(self.expected, last || self.expected != next))
        } else if distance < 0 {
            (Fate::Duplicate, self.acks.on_duplicate(self.expected))
        } else {
            match self.ahead.insert(self.expected, distance as u32) {
                Insert::New => (Fate::Accepted, self.acks.on_packet(self.expected, last)),
                Insert::Present => (Fate::Duplicate, self.acks.on_duplicate(self.expected)),
                Insert::Beyond => (Fate::Discarded, self.acks.on_packet(self.expected, last)),
            }
        };
        self.marks.reception(now, marked, fate, distance > 0, reply)
    }

    #[inline]
    fn expected(&self) -> u64 {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportConfig;
    use crate::tests::{Pair, nic};
    use model::Sender as _;

    #[test]
    fn reordering_costs_nothing() {
        let mut pair = Pair::new(&nic(TransportConfig::Ideal(Config::default())));
        for packet in [3, 9, 10, 40] {
            pair.delay_data(packet, Time::from_us(7));
        }
        pair.run(50);
        assert_eq!((pair.nacks, pair.retransmitted, pair.timeouts), (0, 0, 0));
        assert_eq!((pair.accepted, pair.duplicate, pair.discarded), (50, 0, 0));
        assert!(pair.out_of_order > 0);
    }

    #[test]
    fn each_loss_costs_one_timeout_and_one_packet() {
        let mut pair = Pair::new(&nic(TransportConfig::Ideal(Config::default())));
        pair.lose_data(3);
        pair.lose_data(7);
        pair.run(50);
        assert_eq!((pair.timeouts, pair.retransmitted, pair.duplicate), (2, 2, 0));
    }

    #[test]
    fn a_nack_from_elsewhere_only_acknowledges() {
        let mut sender = Config::default().sender(Timer::new(crate::timeout::Timeout::None, None));
        sender.post(4);
        for _ in 0..4 {
            sender.next(Time::ZERO, u64::MAX);
        }
        let progress = sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(2)));
        assert_eq!(progress, Progress { acked: 2, nack: false });
        assert!(!sender.ready(u64::MAX));
    }
}
