//! The sender whose window bounds the packets that are under way, and not those that are not acknowledged.

use crate::limits::PSN_LIMIT;
use crate::timeout::Timing;
use model::annex::Selective;
use model::transport::{Progress, Reply};
use model::{Psn, Time};
use std::sync::Arc;

/// What all senders of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Packets from the first that is not acknowledged on that the receiver can note.
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
    /// It recovers until all packets before this one are acknowledged.
    recovery: u64,
    /// Packet to send again next, while it recovers.
    again: u64,
    /// Packets that were sent and not answered, as far as it can know: at most what is not acknowledged.
    under_way: u64,
    /// When the timer fires, [`Time::NEVER`] if it does not run.
    deadline: Time,
    /// How often it has fired since the last progress.
    fired: u8,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) const fn new(rules: Arc<Rules>) -> Self {
        let (una, next, posted, recovery, again, under_way) = (0, 0, 0, 0, 0, 0);
        Sender { una, next, posted, recovery, again, under_way, deadline: Time::NEVER, fired: 0, rules }
    }

    fn recover(&mut self) {
        self.recovery = self.next;
        self.again = self.una;
    }

    /// First packet that it must not send yet: while it recovers, one that the receiver would have to drop.
    fn end(&self) -> u64 {
        if self.una < self.recovery { self.una + self.rules.bitmap } else { u64::MAX }
    }

    /// Packets to be sent again now.
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
        self.under_way += 1;
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
        wanted.min(window.saturating_sub(self.under_way))
    }

    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = expected.distance_from(Psn::from_seq(self.una));
        if distance > 0 && distance as u64 > self.next - self.una {
            return Progress::default(); // never sent
        }
        self.under_way = self.under_way.saturating_sub(1);
        let acked = u64::try_from(distance).unwrap_or(0);
        if acked > 0 {
            self.una += acked;
            self.fired = 0;
            let open = self.una < self.next;
            self.deadline = if open { self.rules.timing.deadline(now, 0) } else { Time::NEVER };
            // Replies get lost, and packets that were lost are never answered.
            self.under_way = self.under_way.min(self.next - self.una);
        }
        let lost = is_nack && distance >= 0 && self.una < self.next && self.una >= self.recovery;
        if lost {
            self.recover();
        }
        Progress { acked, nack: lost }
    }

    /// Which packet has arrived matters to the steering alone.
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
            self.under_way = 0;
            self.recover();
        }
    }
}
