//! The sender's side of the window: what is posted, sent and acknowledged.

use crate::timeout::Timer;
use model::transport::{Progress, Reply};
use model::{Psn, Time};

/// Most packets that may be outstanding with 24-bit PSNs: serial numbers compare rightly only while they are
/// less than 2^23 apart.
pub(crate) const PSN_LIMIT: u32 = (1 << 23) - 1;

/// Packet counters of a sender, `una <= next <= high <= posted`, and its timer. Recovery modes differ in what
/// they do with a NACK and a timeout: [`Flight::rewind`] or [`Flight::resend_oldest`].
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// First packet not acknowledged.
    una: u64,
    /// Packet to send next.
    next: u64,
    /// First packet that was never sent.
    high: u64,
    /// First packet that the application has not posted.
    posted: u64,
    timer: Timer,
    /// Most packets from `una` on.
    limit: u32,
    /// Packet `una` is to be sent once more, ahead of all others.
    resend: bool,
}

impl Flight {
    pub(crate) fn new(limit: u32, timer: Timer) -> Self {
        Flight { una: 0, next: 0, high: 0, posted: 0, timer, limit: limit.min(PSN_LIMIT), resend: false }
    }

    #[inline]
    pub(crate) fn post(&mut self, packets: u64) {
        self.posted = self.posted.saturating_add(packets);
    }

    #[inline]
    pub(crate) fn take(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        if self.resend {
            return Some(self.take_oldest());
        }
        let seq = self.next;
        let again = seq < self.high;
        self.next = seq + 1;
        self.high = self.high.max(self.next);
        self.timer.start(now);
        Some((seq, again))
    }

    #[cold]
    fn take_oldest(&mut self) -> (u64, bool) {
        self.resend = false;
        // After a rewind the oldest packet is also the next one; it goes out once.
        self.next = self.next.max(self.una + 1);
        (self.una, true)
    }

    #[inline]
    pub(crate) fn ready(&self, window: u64) -> bool {
        let open = self.next < self.posted && self.next - self.una < window.min(u64::from(self.limit));
        open || self.resend && window > 0
    }

    /// Learns from a reply. ACK(n) says that all before n + 1 have arrived, NACK(e) that all before e have.
    /// What reaches back before `una` is stale, what reaches beyond `high` was never sent: both are ignored.
    #[inline]
    pub(crate) fn hear(&mut self, now: Time, reply: Reply) -> Progress {
        let (psn, nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = psn.distance_from(Psn::from_seq(self.una));
        if distance < 0 || distance as u64 > self.high - self.una {
            return Progress::default();
        }
        let acked = distance as u64;
        if acked > 0 {
            self.una += acked;
            self.next = self.next.max(self.una);
            self.resend = false;
            self.timer.progress(now, self.outstanding());
        }
        Progress { acked, nack: nack && self.outstanding() }
    }

    /// True if the timer fires at `now`.
    pub(crate) fn times_out(&mut self, now: Time) -> bool {
        self.timer.fires(now)
    }

    /// Send again everything from `una` on.
    pub(crate) fn rewind(&mut self) {
        self.next = self.una;
    }

    /// Send `una` again, ahead of all others, and then go on.
    pub(crate) fn resend_oldest(&mut self) {
        self.resend = self.outstanding();
    }

    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.timer.deadline()
    }

    #[inline]
    fn outstanding(&self) -> bool {
        self.una < self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::Timeout;

    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::new(PSN_LIMIT, Timer::new(Timeout::Fixed(Time::from_ms(1)), None));
        flight.post(packets);
        flight
    }

    fn send(flight: &mut Flight, n: u64) -> Vec<(u64, bool)> {
        (0..n).map_while(|_| flight.take(Time::ZERO, u64::MAX)).collect()
    }

    #[test]
    fn an_ack_of_the_psn_before_zero_acknowledges_nothing() {
        let mut flight = flight(3);
        send(&mut flight, 3);
        assert_eq!(flight.hear(Time::ZERO, Reply::Ack(Psn::new(0xFF_FFFF))), Progress::default());
        assert_eq!(flight.una(), 0);
        assert_eq!(flight.hear(Time::ZERO, Reply::Ack(Psn::new(0))).acked, 1);
    }

    #[test]
    fn replies_to_packets_that_were_never_sent_are_ignored() {
        let mut flight = flight(10);
        send(&mut flight, 3);
        assert_eq!(flight.hear(Time::ZERO, Reply::Ack(Psn::new(3))), Progress::default());
        assert_eq!(flight.hear(Time::ZERO, Reply::Nack(Psn::new(4))), Progress::default());
        // Nothing is outstanding at 3: an acknowledgement, and no loss.
        assert_eq!(flight.hear(Time::ZERO, Reply::Nack(Psn::new(3))), Progress { acked: 3, nack: false });
    }

    #[test]
    fn the_window_counts_from_the_oldest_unacknowledged_packet() {
        let mut flight = flight(10);
        assert!(!flight.ready(0) && flight.take(Time::ZERO, 0).is_none());
        assert_eq!(flight.take(Time::ZERO, 2), Some((0, false)));
        assert_eq!(flight.take(Time::ZERO, 2), Some((1, false)));
        assert!(!flight.ready(2) && flight.take(Time::ZERO, 2).is_none());
        flight.hear(Time::ZERO, Reply::Ack(Psn::new(0)));
        assert_eq!(flight.take(Time::ZERO, 2), Some((2, false)));
        // A shrunken window still lets a retransmission out.
        flight.resend_oldest();
        assert_eq!(flight.take(Time::ZERO, 1), Some((1, true)));
        assert_eq!(flight.take(Time::ZERO, 1), None);
    }

    #[test]
    fn after_a_rewind_the_oldest_goes_out_once() {
        let mut flight = flight(5);
        send(&mut flight, 4);
        flight.rewind();
        flight.resend_oldest();
        assert_eq!(send(&mut flight, 9), [(0, true), (1, true), (2, true), (3, true), (4, false)]);
    }

    #[test]
    fn the_timer_stops_when_all_is_acknowledged() {
        let mut flight = flight(2);
        assert_eq!(flight.deadline(), Time::NEVER);
        send(&mut flight, 2);
        assert_eq!(flight.deadline(), Time::from_ms(1));
        flight.hear(Time::from_us(10), Reply::Ack(Psn::new(0)));
        assert_eq!(flight.deadline(), Time::from_us(1010));
        flight.hear(Time::from_us(20), Reply::Ack(Psn::new(0))); // no progress
        assert_eq!(flight.deadline(), Time::from_us(1010));
        flight.hear(Time::from_us(20), Reply::Ack(Psn::new(1)));
        assert_eq!(flight.deadline(), Time::NEVER);
        assert!(!flight.times_out(Time::from_ms(9)));
    }
}
