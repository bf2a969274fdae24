//! Sender of MP-RDMA: its window bounds the packets in flight instead of the unacknowledged packets.

use crate::limits::PSN_LIMIT;
use crate::timeout::Timing;
use model::Sender as _;
use model::transport::{Departure, Due, Heard, Position, Progress, Reply};
use model::{Delivery, Psn, Time};
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

    /// The packet to send now: its number, and whether it was sent before.
    pub(crate) fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
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

    pub(crate) fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = expected.distance_from(Psn::from_seq(self.una));
        let acked = u64::try_from(distance).unwrap_or(0);
        if acked > self.next - self.una {
            return Progress::default(); // the packet was never sent
        }
        self.in_flight = self.in_flight.saturating_sub(1);
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

    /// Handles the expiry of the timer; returns whether it has expired.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        let fires = self.deadline != Time::NEVER && now >= self.deadline;
        if fires {
            self.fired = self.fired.saturating_add(1);
            self.deadline = self.rules.timing.deadline(now, self.fired);
            self.in_flight = 0;
            self.recover();
        }
        fires
    }
}

impl model::Sender for Sender {
    fn post_message(&mut self, packets: u64, _: u32, _: u32) {
        self.posted = self.posted.saturating_add(packets);
    }

    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let (deadline, goes_on) = (self.deadline, self.ready(window));
        Some(Departure { seq, again, deadline, goes_on, ..Departure::default() })
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

    /// Handles the cumulative part alone: only the steering needs the packet that has arrived.
    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        let progress = heard.reply().map(|(reply, _)| self.on_reply(now, reply));
        (progress.unwrap_or_default(), Delivery::default())
    }

    fn position(&self) -> Position {
        Position { una: self.una, high: self.next, deadline: self.deadline }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let timeout = self.on_timeout(now);
        Due { probe: None, timeout, fired: if timeout { self.fired } else { 0 } }
    }

    fn restart(&mut self) {
        (self.in_flight, self.fired, self.deadline) = (0, 0, Time::NEVER);
        self.recover();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SenderCalls as _;
    use crate::timeout::{Backoff, Timeout};

    const MS: fn(u64) -> Time = Time::from_ms;

    /// A sender with a bitmap of four packets, after its first `sent` packets at time 0.
    fn sender(posted: u64, sent: usize) -> Sender {
        let timing = Timing::new(Timeout::Fixed(MS(1)), Some(Backoff { factor: 2, cap: MS(8) }));
        let mut sender = Sender::new(Arc::new(Rules { timing, bitmap: 4 }));
        sender.post(posted);
        assert_eq!(send(&mut sender, 0, u64::MAX, sent).len(), sent);
        sender
    }

    fn send(sender: &mut Sender, ms: u64, window: u64, most: usize) -> Vec<(u64, bool)> {
        (0..most).map_while(|_| sender.next(MS(ms), window)).collect()
    }

    fn reply(sender: &mut Sender, ms: u64, reply: Reply) -> Progress {
        sender.on_reply(MS(ms), reply)
    }

    fn ack(psn: u32) -> Reply {
        Reply::Ack(Psn::new(psn))
    }

    fn nack(psn: u32) -> Reply {
        Reply::Nack(Psn::new(psn))
    }

    #[test]
    fn at_most_half_the_psn_space_is_outstanding() {
        let mut sender = sender(1 << 24, 3);
        assert_eq!(sender.room(u64::MAX), u64::from(PSN_LIMIT) - 3);
        assert_eq!(reply(&mut sender, 0, ack(0)).acked, 1);
        assert_eq!((sender.una(), sender.high(), sender.room(u64::MAX)), (1, 3, u64::from(PSN_LIMIT) - 2));
    }

    #[test]
    fn the_window_counts_packets_in_flight_and_every_reply_takes_one_out() {
        let mut sender = sender(20, 6);
        assert!(!sender.ready(6) && sender.ready(7), "the bitmap matters only during a recovery");
        // An ACK without progress answers a packet, too.
        assert_eq!(reply(&mut sender, 0, Reply::Ack(Psn::from_seq(u64::MAX))), Progress::default());
        assert_eq!((sender.room(6), sender.room(9)), (1, 4));
        // Three packets were answered by one ACK, so at most three are in flight.
        assert_eq!(reply(&mut sender, 0, ack(2)).acked, 3);
        assert_eq!(sender.room(6), 3);
        assert_eq!(reply(&mut sender, 0, ack(7)), Progress::default(), "it was never sent");
        assert_eq!(sender.room(6), 3);
    }

    #[test]
    fn the_timer_restarts_on_progress_alone_and_stops_with_the_last_packet() {
        let mut sender = sender(5, 3);
        assert_eq!(sender.deadline(), MS(1));
        sender.on_timeout(Time(MS(1).ps() - 1));
        assert_eq!(sender.deadline(), MS(1), "not due yet");
        sender.on_timeout(MS(1));
        assert_eq!(sender.deadline(), MS(3), "the timeout doubles");
        reply(&mut sender, 2, nack(0));
        assert_eq!(sender.deadline(), MS(3), "no progress");
        reply(&mut sender, 2, ack(0));
        assert_eq!(sender.deadline(), MS(3), "progress at 2 ms, and the first timeout again");
        sender.on_timeout(MS(3));
        assert_eq!(sender.deadline(), MS(5));
        assert_eq!(reply(&mut sender, 4, ack(2)).acked, 2);
        assert_eq!(sender.deadline(), Time::NEVER);
        sender.on_timeout(MS(9));
        assert_eq!(send(&mut sender, 9, u64::MAX, 9), [(3, false), (4, false)]);
        assert_eq!(sender.deadline(), MS(10));
    }

    #[test]
    fn a_nack_repeats_once_all_packets_that_the_receiver_can_note() {
        let mut sender = sender(20, 8);
        assert_eq!(reply(&mut sender, 0, nack(1)), Progress { acked: 1, nack: true });
        assert_eq!(
            reply(&mut sender, 0, nack(1)),
            Progress { acked: 0, nack: false },
            "one recovery at a time"
        );
        assert_eq!(sender.room(u64::MAX), 4);
        assert_eq!(send(&mut sender, 0, u64::MAX, 9), [(1, true), (2, true), (3, true), (4, true)]);
        assert_eq!(reply(&mut sender, 0, ack(5)).acked, 5);
        // Packets 6 and 7 are the rest of the recovery; 8 and 9 are new and fit into the bitmap.
        assert_eq!(send(&mut sender, 0, u64::MAX, 9), [(6, true), (7, true), (8, false), (9, false)]);
        assert_eq!(reply(&mut sender, 0, ack(7)).acked, 2);
        assert_eq!(send(&mut sender, 0, u64::MAX, 9).len(), 9, "the recovery is over");
        assert_eq!(reply(&mut sender, 0, nack(8)), Progress { acked: 0, nack: true }, "the next recovery");
    }

    #[test]
    fn stale_nacks_and_nacks_of_nothing_begin_no_recovery() {
        let mut sender = sender(8, 4);
        reply(&mut sender, 0, ack(1));
        assert_eq!(reply(&mut sender, 0, nack(1)), Progress::default());
        assert_eq!(reply(&mut sender, 0, nack(4)), Progress { acked: 2, nack: false }, "all has arrived");
        assert_eq!(send(&mut sender, 0, u64::MAX, 9)[0], (4, false));
    }

    #[test]
    fn after_a_timeout_nothing_counts_as_in_flight() {
        let mut sender = sender(8, 4);
        assert!(!sender.ready(4));
        sender.on_timeout(MS(1));
        assert_eq!(send(&mut sender, 1, 2, 9), [(0, true), (1, true)]);
    }
}
