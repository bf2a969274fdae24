//! Sender of the recovery modes whose receivers name single packets: it retransmits just those.

use crate::psn::sender::Resend;
use crate::timeout::Timing;
use model::Sender as _;
use model::annex::Selective;
use model::transport::{Departure, Due, Heard, Position, Progress, Reply};
use model::{Delivery, Psn, Time};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Second timer, for senders with no more than this many packets outstanding.
    pub(crate) few: Option<(u32, Timing)>,
    /// Most packets outstanding.
    pub(crate) limit: u32,
    /// Packets that a timeout retransmits in addition to the known gaps.
    pub(crate) on_timeout: Resend,
    /// Packets that a gap retransmits: those before a packet that has arrived, or all that have not been reported as arrived. The
    /// latter happens once until they are acknowledged.
    pub(crate) on_gap: Resend,
}

/// Packet counters of a queue pair, `una <= next <= posted`, with its gaps and the packets that arrived ahead of them.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    /// First packet that the application has not posted.
    posted: u64,
    /// Packets to retransmit before new ones: disjoint ranges in order, between `una` and `next`, without packets in
    /// `arrived`.
    missing: VecDeque<Range<u64>>,
    /// Packets ahead of `una` that have arrived.
    arrived: BTreeSet<u64>,
    /// Gaps before this packet have been judged since the last timeout: the missing packets there were retransmitted.
    judged: u64,
    deadline: Time,
    /// Time at which the timer started.
    started: Time,
    fired: u8,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Sender {
            una: 0,
            next: 0,
            posted: 0,
            missing: VecDeque::new(),
            arrived: BTreeSet::new(),
            judged: 0,
            deadline: Time::NEVER,
            started: Time::ZERO,
            fired: 0,
            rules,
        }
    }

    /// Starts the timer.
    fn start_timer(&mut self, now: Time) {
        self.started = now;
        self.set_timer();
    }

    /// Sets the deadline of the running timer by the number of outstanding packets.
    fn set_timer(&mut self) {
        let timing = match &self.rules.few {
            Some((few, timing)) if self.next - self.una <= u64::from(*few) => timing,
            _ => &self.rules.timing,
        };
        self.deadline = timing.deadline(self.started, self.fired);
    }

    /// Packet with that PSN, if it is outstanding.
    fn outstanding(&self, psn: Psn) -> Option<u64> {
        let distance = psn.distance_from(Psn::from_seq(self.una));
        let seq = self.una + u64::try_from(distance).ok()?;
        (seq < self.next).then_some(seq)
    }

    /// Acknowledges all packets before `una`.
    fn advance(&mut self, una: u64) {
        self.una = una;
        self.judged = self.judged.max(una);
        // `una` itself may have been reported as arrived; the receiver's ePSN is more reliable.
        self.arrived = self.arrived.split_off(&una);
        while let Some(first) = self.missing.front_mut() {
            if first.end > una {
                first.start = first.start.max(una);
                break;
            }
            self.missing.pop_front();
        }
    }

    /// Schedules the packets of `range` that have not arrived for retransmission; true if there are any.
    fn send_again(&mut self, range: Range<u64>) -> bool {
        let mut wanted = Vec::new();
        let mut from = range.start.max(self.una);
        let end = range.end.min(self.next);
        while from < end {
            let gap_end = self.arrived.range(from..end).next().copied().unwrap_or(end);
            if from < gap_end {
                wanted.push(from..gap_end);
            }
            from = gap_end + 1;
        }
        let any = !wanted.is_empty();
        if any {
            let mut all: Vec<Range<u64>> = self.missing.drain(..).chain(wanted).collect();
            all.sort_by_key(|r| r.start);
            for r in all {
                match self.missing.back_mut() {
                    Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
                    _ => self.missing.push_back(r),
                }
            }
        }
        any
    }

    /// Notes that packet `seq` has arrived ahead of a gap.
    fn note_arrival(&mut self, seq: u64) {
        if !self.arrived.insert(seq) {
            return;
        }
        if let Some(i) = self.missing.iter().position(|r| r.contains(&seq)) {
            let Range { start, end } = self.missing[i].clone();
            self.missing[i] = start..seq;
            self.missing.insert(i + 1, seq + 1..end);
            self.missing.retain(|r| !r.is_empty());
        }
    }

    /// The packet to send now: its number, and whether it was sent before.
    pub(crate) fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        let sent = if let Some(first) = self.missing.front_mut() {
            let seq = first.start;
            first.start += 1;
            if first.is_empty() {
                self.missing.pop_front();
            }
            (seq, true)
        } else {
            self.next += 1;
            (self.next - 1, false)
        };
        if self.deadline == Time::NEVER {
            self.start_timer(now);
        } else if self.rules.few.is_some() {
            self.set_timer(); // many packets may be outstanding now
        }
        Some(sent)
    }

    /// Missing packets count as lost, and the congestion control learns of them, if the reply is a NACK; in an ACK they
    /// are only requested. A NACK without further information means the packet that it names.
    pub(crate) fn on_selective(&mut self, now: Time, reply: Reply, selective: Selective) -> Progress {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = expected.distance_from(Psn::from_seq(self.una));
        let acked = u64::try_from(distance).unwrap_or(0);
        if acked > self.next - self.una {
            return Progress::default(); // the packet was never sent
        }
        if acked > 0 {
            self.advance(self.una + acked);
            self.fired = 0;
            self.deadline = Time::NEVER;
            if self.una < self.next {
                self.start_timer(now);
            }
        }
        let mut lost = false;
        match selective {
            Selective::Nothing if distance < 0 => {} // the reply is stale
            Selective::Nothing => {
                lost = is_nack && self.send_again(self.una..self.una + 1);
                if !is_nack && self.rules.on_gap == Resend::All {
                    // No gap is left.
                    self.judged = self.una;
                }
            }
            Selective::Missing { first, count } => {
                // The range may begin before `una`; its rest counts.
                let before = first.distance_from(Psn::from_seq(self.una));
                let start = self.una.saturating_add_signed(i64::from(before));
                lost = self.send_again(start..start + u64::from(count)) && is_nack;
            }
            Selective::Arrived(psn) => {
                if let Some(seq) = self.outstanding(psn) {
                    self.note_arrival(seq);
                    let from = self.judged;
                    match self.rules.on_gap {
                        Resend::Oldest => {
                            self.judged = self.judged.max(seq);
                            lost = self.send_again(from..seq) && is_nack;
                        }
                        Resend::All => {
                            if self.una == self.judged {
                                self.judged = self.next;
                                self.send_again(from..self.next);
                            }
                            lost = is_nack;
                        }
                    }
                }
            }
        }
        Progress { acked, nack: lost }
    }

    /// Handles the expiry of the timer; returns whether it has expired.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        if self.deadline == Time::NEVER || now < self.deadline {
            return false;
        }
        self.fired = self.fired.saturating_add(1);
        self.start_timer(now);
        self.repeat(self.rules.on_timeout);
        true
    }

    /// Plans retransmissions from the oldest unacknowledged packet on.
    fn repeat(&mut self, resend: Resend) {
        self.arrived.remove(&self.una);
        // Retransmitted packets may have been lost again.
        let highest = self.arrived.last().copied().unwrap_or(self.una);
        let end = match resend {
            Resend::Oldest => highest.max(self.una + 1),
            Resend::All => self.next,
        };
        self.send_again(self.una..end);
        self.judged = match self.rules.on_gap {
            Resend::Oldest => self.una.max(highest),
            Resend::All => self.next,
        };
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
        let room = window.min(u64::from(self.rules.limit));
        !self.missing.is_empty() && window > 0 || self.next < self.posted && self.next - self.una < room
    }

    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        let progress = heard.reply().map(|(reply, selective)| self.on_selective(now, reply, selective));
        (progress.unwrap_or_default(), Delivery::default())
    }

    fn position(&self) -> Position {
        Position { una: self.una, high: self.next, deadline: self.deadline }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let timeout = self.on_timeout(now);
        Due { probe: None, timeout, fired: if timeout { self.fired } else { 0 } }
    }

    fn may_shorten(&self) -> bool {
        self.missing.is_empty() && self.arrived.is_empty()
    }

    fn shorten(&mut self, packets: u64) {
        self.posted -= packets;
    }

    fn restart(&mut self) {
        self.repeat(Resend::All);
        (self.fired, self.deadline) = (0, Time::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SenderCalls as _;
    use crate::timeout::{Backoff, Timeout};

    fn sender(packets: u64) -> Sender {
        let timing = |ms| Timing::new(Timeout::Fixed(Time::from_ms(ms)), None);
        let rules = Rules {
            timing: timing(4),
            few: Some((3, timing(1))),
            limit: 100,
            on_timeout: Resend::Oldest,
            on_gap: Resend::Oldest,
        };
        let mut sender = Sender::new(Arc::new(rules));
        sender.post(packets);
        sender
    }

    fn send(sender: &mut Sender, n: u64) -> Vec<u64> {
        (0..n).map_while(|_| sender.next(Time::ZERO, u64::MAX)).map(|(seq, _)| seq).collect()
    }

    fn nack(sender: &mut Sender, expected: u32, selective: Selective) -> Progress {
        sender.on_selective(Time::ZERO, Reply::Nack(Psn::new(expected)), selective)
    }

    #[test]
    fn only_missing_packets_are_retransmitted_before_new_ones() {
        let mut s = sender(20);
        send(&mut s, 10);
        let missing = |first, count| Selective::Missing { first: Psn::new(first), count };
        assert_eq!(nack(&mut s, 2, missing(2, 2)), Progress { acked: 2, nack: true });
        assert_eq!(nack(&mut s, 2, missing(6, 1)), Progress { acked: 0, nack: true });
        assert_eq!(send(&mut s, 4), [2, 3, 6, 10]);
    }

    #[test]
    fn a_request_in_an_ack_is_no_loss() {
        let mut s = sender(20);
        send(&mut s, 10);
        let wish = Selective::Missing { first: Psn::new(4), count: 3 };
        let progress = s.on_selective(Time::ZERO, Reply::Ack(Psn::new(4)), wish);
        // The ACK covers packet 4, which arrived after the request was made.
        assert_eq!(progress, Progress { acked: 5, nack: false });
        assert_eq!(send(&mut s, 3), [5, 6, 10]);
    }

    #[test]
    fn every_gap_before_an_arrival_is_retransmitted_once() {
        let mut s = sender(20);
        send(&mut s, 10);
        let arrived = |psn| Selective::Arrived(Psn::new(psn));
        assert!(nack(&mut s, 1, arrived(3)).nack);
        assert!(nack(&mut s, 1, arrived(6)).nack);
        assert!(!nack(&mut s, 1, arrived(7)).nack);
        assert_eq!(send(&mut s, 5), [1, 2, 4, 5, 10]);
        assert!(nack(&mut s, 1, arrived(9)).nack); // packet 8 is missing
        assert_eq!(send(&mut s, 2), [8, 11]);
    }

    #[test]
    fn a_timeout_retransmits_all_gaps_and_no_arrived_packet() {
        let mut s = sender(20);
        send(&mut s, 8);
        nack(&mut s, 1, Selective::Arrived(Psn::new(3)));
        nack(&mut s, 1, Selective::Arrived(Psn::new(5)));
        assert_eq!(send(&mut s, 3), [1, 2, 4]);
        s.on_timeout(s.deadline());
        assert_eq!(send(&mut s, 4), [1, 2, 4, 8]);
    }

    #[test]
    fn packets_that_arrive_meanwhile_are_not_retransmitted() {
        let mut s = sender(20);
        send(&mut s, 8);
        nack(&mut s, 1, Selective::Arrived(Psn::new(6)));
        nack(&mut s, 1, Selective::Arrived(Psn::new(3)));
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(1)));
        assert_eq!(send(&mut s, 4), [2, 4, 5, 8]);
    }

    #[test]
    fn few_outstanding_packets_have_a_shorter_timeout() {
        let mut s = sender(5);
        send(&mut s, 5);
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(0)));
        assert_eq!(s.deadline(), Time::from_ms(4));
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(1)));
        assert_eq!(s.deadline(), Time::from_ms(1));
        // The timer starts with the first packet; when many follow, the deadline is that of many.
        let mut s = sender(9);
        send(&mut s, 3);
        assert_eq!(s.deadline(), Time::from_ms(1));
        send(&mut s, 1);
        assert_eq!(s.deadline(), Time::from_ms(4));
    }

    #[test]
    fn a_plain_nack_means_the_packet_that_it_names() {
        let mut s = sender(9);
        send(&mut s, 6);
        assert_eq!(nack(&mut s, 2, Selective::Nothing), Progress { acked: 2, nack: true });
        assert_eq!(nack(&mut s, 1, Selective::Nothing), Progress::default());
        assert_eq!(send(&mut s, 2), [2, 6]);
    }

    #[test]
    fn the_timer_restarts_on_progress_alone() {
        let timing =
            Timing::new(Timeout::Fixed(Time::from_ms(1)), Some(Backoff { factor: 2, cap: Time::from_ms(8) }));
        let rules =
            Rules { timing, few: None, limit: 100, on_timeout: Resend::Oldest, on_gap: Resend::Oldest };
        let mut s = Sender::new(Arc::new(rules));
        s.post(5);
        send(&mut s, 5);
        s.on_timeout(Time(Time::from_ms(1).ps() - 1));
        assert_eq!(s.deadline(), Time::from_ms(1), "not due yet");
        s.on_timeout(Time::from_ms(1));
        assert_eq!(s.deadline(), Time::from_ms(3), "the timeout doubles");
        let reply = |s: &mut Sender, reply| s.on_reply(Time::from_ms(2), reply);
        reply(&mut s, Reply::Nack(Psn::new(0)));
        assert_eq!(s.deadline(), Time::from_ms(3), "no progress");
        reply(&mut s, Reply::Ack(Psn::new(0)));
        assert_eq!(s.deadline(), Time::from_ms(3), "progress at 2 ms, and the first timeout again");
        s.on_timeout(Time::from_ms(3));
        assert_eq!(s.deadline(), Time::from_ms(5));
        assert_eq!(reply(&mut s, Reply::Ack(Psn::new(5))), Progress::default(), "it was never sent");
        assert_eq!(reply(&mut s, Reply::Ack(Psn::new(4))).acked, 4);
        assert_eq!(s.deadline(), Time::NEVER);
    }

    #[test]
    fn a_timeout_without_arrivals_retransmits_the_oldest_packet_or_all() {
        for (on_timeout, again) in [(Resend::Oldest, vec![1, 4]), (Resend::All, vec![1, 2, 3, 4])] {
            let timing = Timing::new(Timeout::Fixed(Time::from_ms(1)), None);
            let mut s = Sender::new(Arc::new(Rules {
                timing,
                few: None,
                limit: 100,
                on_timeout,
                on_gap: Resend::Oldest,
            }));
            s.post(5);
            send(&mut s, 4);
            s.on_reply(Time::ZERO, Reply::Ack(Psn::new(0)));
            s.on_timeout(s.deadline());
            assert!(s.ready(1) && !s.ready(0), "a closed window holds back retransmissions, too");
            assert_eq!(send(&mut s, 9), again);
        }
    }

    #[test]
    fn a_nack_of_packets_that_have_arrived_is_no_loss() {
        let mut s = sender(20);
        send(&mut s, 10);
        assert!(nack(&mut s, 0, Selective::Arrived(Psn::new(1))).nack);
        assert_eq!(send(&mut s, 1), [0]);
        let missing = |first, count| Selective::Missing { first: Psn::new(first), count };
        assert!(!nack(&mut s, 0, missing(1, 1)).nack, "packet 1 has arrived");
        assert!(!nack(&mut s, 0, Selective::Arrived(Psn::new(2))).nack, "no gap before 2 is new");
        assert!(nack(&mut s, 0, Selective::Nothing).nack, "packet 0 is lost once more");
        assert_eq!(send(&mut s, 2), [0, 10]);
        // A gap that an ACK covers to its last packet is forgotten.
        assert!(nack(&mut s, 0, missing(3, 2)).nack);
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(4)));
        assert_eq!(send(&mut s, 1), [11]);
    }

    #[test]
    fn the_limit_counts_from_the_oldest_packet() {
        let mut s = sender(300);
        assert_eq!(send(&mut s, 300).len(), 100);
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(9)));
        assert_eq!(send(&mut s, 300).len(), 10);
        assert_eq!((s.una(), s.high()), (10, 110));
    }
}
