//! The sender of the recovery modes whose receivers speak of single packets: it sends again just those.

use crate::sender::Resend;
use crate::timeout::Timing;
use model::annex::Selective;
use model::transport::{Progress, Reply};
use model::{Psn, Time};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// What all senders of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Another timer while no more than this many packets are outstanding.
    pub(crate) few: Option<(u32, Timing)>,
    /// Most packets outstanding.
    pub(crate) limit: u32,
    /// What a timeout brings back besides what is known to be missing.
    pub(crate) on_timeout: Resend,
}

/// Packet counters of a queue pair, `una <= next <= posted`; what is missing, and what has arrived ahead.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    /// First packet that the application has not posted.
    posted: u64,
    /// To be sent again, ahead of new packets: ranges in order, apart, between `una` and `next`, and nothing that
    /// is in `arrived`.
    missing: VecDeque<Range<u64>>,
    /// Packets ahead of `una` that have arrived.
    arrived: BTreeSet<u64>,
    /// Gaps before this packet have been judged since the last timeout: what is missing there was sent again.
    judged: u64,
    deadline: Time,
    /// When the timer started.
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

    /// The deadline of the timer that has started, by how many packets are outstanding.
    fn set_timer(&mut self) {
        let timing = match &self.rules.few {
            Some((few, timing)) if self.next - self.una <= u64::from(*few) => timing,
            _ => &self.rules.timing,
        };
        self.deadline = timing.deadline(self.started, self.fired);
    }

    /// The packet of that PSN, if it is outstanding.
    fn outstanding(&self, psn: Psn) -> Option<u64> {
        let distance = psn.distance_from(Psn::from_seq(self.una));
        let seq = self.una + u64::try_from(distance).ok()?;
        (seq < self.next).then_some(seq)
    }

    /// Acknowledges all before `una`.
    fn advance(&mut self, una: u64) {
        self.una = una;
        self.judged = self.judged.max(una);
        // What comes next may have arrived long ago; the receiver knows better what it expects.
        self.arrived = self.arrived.split_off(&una);
        while let Some(first) = self.missing.front_mut() {
            if first.end > una {
                first.start = first.start.max(una);
                break;
            }
            self.missing.pop_front();
        }
    }

    /// Has `range` sent again, but for what has arrived; true if that is anything.
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

    /// Packet `seq` has arrived ahead of a gap.
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
}

impl model::Sender for Sender {
    fn post(&mut self, packets: u64) {
        self.posted = self.posted.saturating_add(packets);
    }

    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
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
            self.set_timer(); // they may be few no more
        }
        Some(sent)
    }

    fn ready(&self, window: u64) -> bool {
        let room = window.min(u64::from(self.rules.limit));
        !self.missing.is_empty() && window > 0 || self.next < self.posted && self.next - self.una < room
    }

    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        self.on_selective(now, reply, Selective::Nothing)
    }

    /// What is missing counts as lost, and the congestion control hears of it, if the reply is a NACK; with an ACK it
    /// is a wish. A NACK that says nothing more means the packet that it names.
    fn on_selective(&mut self, now: Time, reply: Reply, selective: Selective) -> Progress {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let distance = expected.distance_from(Psn::from_seq(self.una));
        if distance > 0 && distance as u64 > self.next - self.una {
            return Progress::default(); // never sent
        }
        let acked = u64::try_from(distance).unwrap_or(0);
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
            Selective::Nothing if distance < 0 => {} // stale
            Selective::Nothing => {
                lost = is_nack && self.una < self.next && self.send_again(self.una..self.una + 1);
            }
            Selective::Missing { first, count } => {
                // It may begin before `una`: the rest counts.
                let before = first.distance_from(Psn::from_seq(self.una));
                let start = self.una.saturating_add_signed(i64::from(before));
                lost = self.send_again(start..start + u64::from(count)) && is_nack;
            }
            Selective::Arrived(psn) => {
                if let Some(seq) = self.outstanding(psn) {
                    self.note_arrival(seq);
                    let from = self.judged;
                    self.judged = self.judged.max(seq);
                    lost = from < seq && self.send_again(from..seq) && is_nack;
                }
            }
        }
        Progress { acked, nack: lost }
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
        if self.deadline == Time::NEVER || now < self.deadline {
            return;
        }
        self.fired = self.fired.saturating_add(1);
        self.start_timer(now);
        self.arrived.remove(&self.una);
        // What was sent again may have been lost again.
        let highest = self.arrived.last().copied().unwrap_or(self.una);
        let end = match self.rules.on_timeout {
            Resend::Oldest => highest.max(self.una + 1),
            Resend::All => self.next,
        };
        self.send_again(self.una..end);
        self.judged = self.una.max(highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::Timeout;
    use model::Sender as _;

    fn sender(packets: u64) -> Sender {
        let timing = |ms| Timing::new(Timeout::Fixed(Time::from_ms(ms)), None);
        let rules =
            Rules { timing: timing(4), few: Some((3, timing(1))), limit: 100, on_timeout: Resend::Oldest };
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
    fn just_what_is_missing_goes_out_again_and_before_new_packets() {
        let mut s = sender(20);
        send(&mut s, 10);
        let missing = |first, count| Selective::Missing { first: Psn::new(first), count };
        assert_eq!(nack(&mut s, 2, missing(2, 2)), Progress { acked: 2, nack: true });
        assert_eq!(nack(&mut s, 2, missing(6, 1)), Progress { acked: 0, nack: true });
        assert_eq!(send(&mut s, 4), [2, 3, 6, 10]);
    }

    #[test]
    fn a_wish_is_no_loss() {
        let mut s = sender(20);
        send(&mut s, 10);
        let wish = Selective::Missing { first: Psn::new(4), count: 3 };
        let progress = s.on_selective(Time::ZERO, Reply::Ack(Psn::new(4)), wish);
        // 4 arrived while the reply was written.
        assert_eq!(progress, Progress { acked: 5, nack: false });
        assert_eq!(send(&mut s, 3), [5, 6, 10]);
    }

    #[test]
    fn every_gap_before_an_arrival_is_sent_again_once() {
        let mut s = sender(20);
        send(&mut s, 10);
        let arrived = |psn| Selective::Arrived(Psn::new(psn));
        assert!(nack(&mut s, 1, arrived(3)).nack);
        assert!(nack(&mut s, 1, arrived(6)).nack);
        assert!(!nack(&mut s, 1, arrived(7)).nack);
        assert_eq!(send(&mut s, 5), [1, 2, 4, 5, 10]);
        assert!(nack(&mut s, 1, arrived(9)).nack); // 8
        assert_eq!(send(&mut s, 2), [8, 11]);
    }

    #[test]
    fn after_a_timeout_all_gaps_are_sent_again_and_nothing_that_arrived() {
        let mut s = sender(20);
        send(&mut s, 8);
        nack(&mut s, 1, Selective::Arrived(Psn::new(3)));
        nack(&mut s, 1, Selective::Arrived(Psn::new(5)));
        assert_eq!(send(&mut s, 3), [1, 2, 4]);
        s.on_timeout(s.deadline());
        assert_eq!(send(&mut s, 4), [1, 2, 4, 8]);
    }

    #[test]
    fn what_arrives_meanwhile_is_not_sent_again() {
        let mut s = sender(20);
        send(&mut s, 8);
        nack(&mut s, 1, Selective::Arrived(Psn::new(6)));
        nack(&mut s, 1, Selective::Arrived(Psn::new(3)));
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(1)));
        assert_eq!(send(&mut s, 4), [2, 4, 5, 8]);
    }

    #[test]
    fn few_outstanding_packets_wait_less() {
        let mut s = sender(5);
        send(&mut s, 5);
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(0)));
        assert_eq!(s.deadline(), Time::from_ms(4));
        s.on_reply(Time::ZERO, Reply::Ack(Psn::new(1)));
        assert_eq!(s.deadline(), Time::from_ms(1));
        // The timer that starts with the first packet is not that of a few, if many follow.
        let mut s = sender(9);
        send(&mut s, 3);
        assert_eq!(s.deadline(), Time::from_ms(1));
        send(&mut s, 1);
        assert_eq!(s.deadline(), Time::from_ms(4));
    }

    #[test]
    fn a_nack_without_more_means_the_packet_that_it_names() {
        let mut s = sender(9);
        send(&mut s, 6);
        assert_eq!(nack(&mut s, 2, Selective::Nothing), Progress { acked: 2, nack: true });
        assert_eq!(nack(&mut s, 1, Selective::Nothing), Progress::default());
        assert_eq!(send(&mut s, 2), [2, 6]);
    }
}
