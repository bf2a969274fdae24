//! Sender of MP-RDMA: its window bounds the packets in flight instead of the unacknowledged packets.

use crate::limits::PSN_LIMIT;
use crate::timeout::Timing;
use model::annex::Selective;
use model::transport::{Progress, Reply};
use model::{Psn, Time};
use std::sync::Arc;

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Number of packets that the receiver can note, from the first unacknowledged one on.
    pub(crate) bitmap: u64,
}

/// Packet counters of a queue pair, `una <= next <= posted`.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    /// First packet that the application has not posted.
    posted: u64,
    /// The sender recovers until all packets before this one are acknowledged.
    recovery: u64,
    /// Next packet to retransmit during a recovery.
    again: u64,
    /// Estimate of the packets in flight: sent and not answered, at most the unacknowledged packets.
    in_flight: u64,
    /// Deadline of the timer; [`Time::NEVER`] if it does not run.
    deadline: Time,
    /// Number of timeouts since the last progress.
    fired: u8,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) const fn new(rules: Arc<Rules>) -> Self {
        let (una, next, posted, recovery, again, in_flight) = (0, 0, 0, 0, 0, 0);
        Sender { una, next, posted, recovery, again, in_flight, deadline: Time::NEVER, fired: 0, rules }
    }

    fn recover(&mut self) {
        self.recovery = self.next;
        self.again = self.una;
    }

    /// First packet that must not be sent yet: during a recovery, the first that the receiver would drop.
    fn end(&self) -> u64 {
        if self.una < self.recovery { self.una + self.rules.bitmap } else { u64::MAX }
    }

    /// Number of packets to retransmit now.
    fn to_repeat(&self) -> u64 {
        self.recovery.min(self.end()).saturating_sub(self.again.max(self.una))
    }
}

impl model::Sender for Sender {
    fn post(&mut self, packets: u64) {
        self.posted = self.posted.saturating_add(packets);
    }

    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        self.in_flight += 1;
        if self.deadline == Time::NEVER {
            self.deadline = self.rules.timing.deadline(now, self.fired);
        }
        if self.to_repeat() > 0 {
            let seq = self.again.max(self.una);
            self.again = seq + 1;
            return Some((seq, true));
        }
        self.next += 1;
        Some((self.next - 1, false))
    }

    fn ready(&self, window: u64) -> bool {
        self.room(window) > 0
    }

    fn room(&self, window: u64) -> u64 {
        let limit = u64::from(PSN_LIMIT) - (self.next - self.una);
        let new = self.posted.min(self.end()).saturating_sub(self.next);
        let wanted = self.to_repeat() + new.min(limit);
        wanted.min(window.saturating_sub(self.in_flight))
    }

    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = expected.distance_from(Psn::from_seq(self.una));
        if distance > 0 && distance as u64 > self.next - self.una {
            return Progress::default(); // the packet was never sent
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let acked = u64::try_from(distance).unwrap_or(0);
        if acked > 0 {
            self.una += acked;
            self.fired = 0;
            let open = self.una < self.next;
            self.deadline = if open { self.rules.timing.deadline(now, 0) } else { Time::NEVER };
            // Replies may be lost, and lost packets are never answered, so the count may be too high.
            self.in_flight = self.in_flight.min(self.next - self.una);
        }
        let lost = is_nack && distance >= 0 && self.una < self.next && self.una >= self.recovery;
        if lost {
            self.recover();
        }
        Progress { acked, nack: lost }
    }

    /// Handles the cumulative part alone: only the steering needs the packet that has arrived.
    fn on_selective(&mut self, now: Time, reply: Reply, _selective: Selective) -> Progress {
        self.on_reply(now, reply)
    }

    fn una(&self) -> u64 {
        self.una
    }

    fn high(&self) -> u64 {
        self.next
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timeout(&mut self, now: Time) {
        if self.deadline != Time::NEVER && now >= self.deadline {
            self.fired = self.fired.saturating_add(1);
            self.deadline = self.rules.timing.deadline(now, self.fired);
            self.in_flight = 0;
            self.recover();
        }
    }
}
