//! Sender of most recovery modes: counters of posted, sent and acknowledged packets, and its retransmissions.

use crate::timeout::Timing;
use model::Sender as _;
use model::transport::{Departure, Due, Heard, Position, Progress, Reply};
use model::{Delivery, Psn, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Packets to retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(test, derive(Hash))]
#[serde(rename_all = "kebab-case")]
pub enum Resend {
    /// Only the oldest unacknowledged packet.
    #[default]
    Oldest,
    /// All packets from the oldest unacknowledged one on.
    All,
}

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Most packets outstanding.
    pub(crate) limit: u32,
    /// Packets that a NACK brings back; with `None` a NACK only acknowledges.
    pub(crate) on_nack: Option<Resend>,
    /// Packets that a timeout brings back.
    pub(crate) on_timeout: Resend,
}

/// Packet counters of a queue pair, `una <= next <= high <= posted`, and its timer. Recovery modes that use this sender
/// differ in their [`Rules`] alone.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that the application has not posted.
    posted: u64,
    /// Next packet to send, relative to `una`.
    next: u32,
    /// First packet that was never sent, relative to `una`.
    high: u32,
    /// Deadline of the timer; [`Time::NEVER`] if it does not run.
    deadline: Time,
    /// Number of timeouts since the last progress. It stays at 255: doubling has reached any cap by then.
    fired: u8,
    /// True if packet `una` must be retransmitted before all others.
    resend: bool,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) const fn new(rules: Arc<Rules>) -> Self {
        Sender { una: 0, posted: 0, next: 0, high: 0, deadline: Time::NEVER, fired: 0, resend: false, rules }
    }

    #[cold]
    fn take_oldest(&mut self) -> (u64, bool) {
        self.resend = false;
        // After a rewind the oldest packet is also the next one, and must be sent only once.
        self.next = self.next.max(1);
        (self.una, true)
    }

    fn again(&mut self, resend: Resend) {
        match resend {
            Resend::Oldest => self.resend = self.outstanding(),
            Resend::All => self.next = 0,
        }
    }

    #[inline]
    const fn outstanding(&self) -> bool {
        self.high > 0
    }

    /// The packet to send now: its number, and whether it was sent before.
    #[inline]
    pub(crate) fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        if self.resend {
            return Some(self.take_oldest());
        }
        let seq = self.una + u64::from(self.next);
        let again = self.next < self.high;
        self.next += 1;
        self.high = self.high.max(self.next);
        if self.deadline == Time::NEVER {
            self.deadline = self.rules.timing.deadline(now, self.fired);
        }
        Some((seq, again))
    }

    /// Handles a reply. ACK(n) acknowledges all packets before n + 1, and NACK(e) all before e. A reply that ends before
    /// `una` is stale, and one that reaches beyond `high` names packets that were never sent: both are ignored.
    #[inline]
    pub(crate) fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        let (psn, nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = psn.distance_from(Psn::from_seq(self.una));
        if distance < 0 || distance as u32 > self.high {
            return Progress::default();
        }
        let acked = distance as u32;
        if acked > 0 {
            self.una += u64::from(acked);
            self.next = self.next.saturating_sub(acked);
            self.high -= acked;
            self.resend = false;
            self.fired = 0;
            self.deadline = if self.outstanding() { self.rules.timing.deadline(now, 0) } else { Time::NEVER };
        }
        let mut heeded = false;
        if nack
            && self.outstanding()
            && let Some(resend) = self.rules.on_nack
        {
            self.again(resend);
            heeded = true;
        }
        Progress { acked: u64::from(acked), nack: heeded }
    }

    /// Handles the expiry of the timer; returns whether it has expired.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        let fires = self.deadline != Time::NEVER && now >= self.deadline;
        if fires {
            self.fired = self.fired.saturating_add(1);
            self.deadline = self.rules.timing.deadline(now, self.fired);
            self.again(self.rules.on_timeout);
        }
        fires
    }
}

impl model::Sender for Sender {
    #[inline]
    fn post_message(&mut self, packets: u64, _: u32, _: u32) {
        self.posted = self.posted.saturating_add(packets);
    }

    #[inline]
    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let (deadline, goes_on) = (self.deadline, self.ready(window));
        Some(Departure { seq, again, deadline, goes_on, ..Departure::default() })
    }

    #[inline]
    fn ready(&self, window: u64) -> bool {
        let next = u64::from(self.next);
        let open = next < self.posted - self.una && next < window.min(u64::from(self.rules.limit));
        open || self.resend && window > 0
    }

    #[inline]
    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        let progress = heard.reply().map(|(reply, _)| self.on_reply(now, reply));
        (progress.unwrap_or_default(), Delivery::default())
    }

    #[inline]
    fn position(&self) -> Position {
        Position { una: self.una, high: self.una + u64::from(self.high), deadline: self.deadline }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let timeout = self.on_timeout(now);
        Due { probe: None, timeout, fired: if timeout { self.fired } else { 0 } }
    }

    fn restart(&mut self) {
        (self.next, self.resend, self.fired, self.deadline) = (0, false, 0, Time::NEVER);
    }

    fn may_shorten(&self) -> bool {
        true
    }

    fn shorten(&mut self, packets: u64) {
        self.posted -= packets;
    }

    #[inline]
    fn row(&self) -> u64 {
        let plain = self.next == self.high && !self.resend && self.deadline != Time::NEVER;
        let end = (self.posted - self.una).min(u64::from(self.rules.limit));
        if plain { end.saturating_sub(u64::from(self.next) + 1) } else { 0 }
    }

    #[inline]
    fn send_row(&mut self, packets: u64) {
        self.next += packets as u32;
        self.high += packets as u32;
    }

    /// Takes an ACK while neither the window nor the timer nor a retransmission depends on it.
    #[inline]
    fn on_free_ack(&mut self, now: Time, psn: Psn, burst: u32) -> bool {
        let acked = psn.next().distance_from(Psn::from_seq(self.una));
        if acked <= 0 {
            return true;
        }
        let acked = acked as u32;
        let free = self.next == self.high && acked < self.high && !self.resend && self.fired == 0;
        if !free || u64::from(self.next) + u64::from(burst) > u64::from(self.rules.limit) {
            return false;
        }
        self.una += u64::from(acked);
        self.next -= acked;
        self.high -= acked;
        self.deadline = self.rules.timing.deadline(now, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PSN_LIMIT;
    use crate::tests::SenderCalls as _;
    use crate::timeout::{Backoff, Timeout};

    fn sender(packets: u64) -> Sender {
        let timing = Timing::new(Timeout::Fixed(Time::from_ms(1)), None);
        let (on_nack, on_timeout) = (Some(Resend::Oldest), Resend::All);
        let mut sender = Sender::new(Arc::new(Rules { timing, limit: PSN_LIMIT, on_nack, on_timeout }));
        sender.post(packets);
        sender
    }

    fn send(sender: &mut Sender, n: u64) -> Vec<(u64, bool)> {
        (0..n).map_while(|_| sender.next(Time::ZERO, u64::MAX)).collect()
    }

    #[test]
    fn an_ack_of_the_psn_before_zero_acknowledges_nothing() {
        let mut sender = sender(3);
        send(&mut sender, 3);
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(0xFF_FFFF))), Progress::default());
        assert_eq!(sender.una(), 0);
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(0))).acked, 1);
    }

    #[test]
    fn replies_to_packets_that_were_never_sent_are_ignored() {
        let mut sender = sender(10);
        send(&mut sender, 3);
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(3))), Progress::default());
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(4))), Progress::default());
        // No packet is outstanding at 3, so this NACK only acknowledges.
        assert_eq!(sender.on_reply(Time::ZERO, Reply::Nack(Psn::new(3))), Progress { acked: 3, nack: false });
    }

    #[test]
    fn the_window_counts_from_the_oldest_unacknowledged_packet() {
        let mut sender = sender(10);
        assert!(!sender.ready(0) && sender.next(Time::ZERO, 0).is_none());
        assert_eq!(sender.next(Time::ZERO, 2), Some((0, false)));
        assert_eq!(sender.next(Time::ZERO, 2), Some((1, false)));
        assert!(!sender.ready(2) && sender.next(Time::ZERO, 2).is_none());
        sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(0)));
        assert_eq!(sender.next(Time::ZERO, 2), Some((2, false)));
        // A smaller window still allows a retransmission.
        sender.again(Resend::Oldest);
        assert!(!sender.ready(0), "a closed window holds back retransmissions, too");
        assert_eq!(sender.next(Time::ZERO, 1), Some((1, true)));
        assert_eq!(sender.next(Time::ZERO, 1), None);
    }

    #[test]
    fn after_a_rewind_the_oldest_packet_is_sent_once() {
        let mut sender = sender(5);
        send(&mut sender, 4);
        sender.again(Resend::All);
        sender.again(Resend::Oldest);
        assert_eq!(send(&mut sender, 9), [(0, true), (1, true), (2, true), (3, true), (4, false)]);
    }

    #[test]
    fn a_shortened_message_ends_earlier_and_all_else_stays() {
        let mut sender = sender(100);
        send(&mut sender, 10);
        sender.on_reply(Time::ZERO, Reply::Ack(Psn::new(5)));
        let before = sender.position();
        model::Sender::shorten(&mut sender, 80);
        assert_eq!(sender.position(), before);
        assert_eq!(send(&mut sender, 99), (10..20).map(|seq| (seq, false)).collect::<Vec<_>>());
    }

    #[test]
    fn the_timer_stops_when_all_is_acknowledged() {
        let mut sender = sender(2);
        assert_eq!(sender.deadline(), Time::NEVER);
        send(&mut sender, 2);
        assert_eq!(sender.deadline(), Time::from_ms(1));
        sender.on_reply(Time::from_us(10), Reply::Ack(Psn::new(0)));
        assert_eq!(sender.deadline(), Time::from_us(1010));
        sender.on_reply(Time::from_us(20), Reply::Ack(Psn::new(0))); // no progress
        assert_eq!(sender.deadline(), Time::from_us(1010));
        sender.on_reply(Time::from_us(20), Reply::Ack(Psn::new(1)));
        assert_eq!(sender.deadline(), Time::NEVER);
        sender.on_timeout(Time::from_ms(9));
        assert!(!sender.ready(u64::MAX));
    }

    #[test]
    fn consecutive_timeouts_back_off_until_progress() {
        let ms = Time::from_ms;
        let timing = Timing::new(Timeout::Fixed(ms(1)), Some(Backoff { factor: 2, cap: ms(3) }));
        let (on_nack, on_timeout) = (None, Resend::Oldest);
        let mut sender = Sender::new(Arc::new(Rules { timing, limit: 2, on_nack, on_timeout }));
        sender.post(3);
        let mut fired = Vec::new();
        sender.next(ms(0), u64::MAX);
        sender.next(Time::from_us(500), u64::MAX); // the timer runs already
        for _ in 0..4 {
            let now = sender.deadline();
            sender.on_timeout(Time(now.ps() - 1)); // too early
            assert_eq!((sender.deadline(), sender.ready(u64::MAX)), (now, false));
            sender.on_timeout(now);
            assert_eq!(sender.next(now, u64::MAX), Some((0, true)));
            fired.push(now);
        }
        assert_eq!(fired, [ms(1), ms(3), ms(6), ms(9)]);
        // An ACK is progress, so the timeouts start over: 1 ms after the ACK, and 2 ms after the first of them.
        sender.on_reply(ms(10), Reply::Ack(Psn::new(0)));
        assert_eq!(sender.deadline(), ms(11));
        sender.on_timeout(ms(11));
        assert_eq!(sender.deadline(), ms(13));
    }
}
