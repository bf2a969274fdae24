//! A sender that repeats a packet when its headers come back, and a whole message when its timer fires. It takes no packet for
//! lost because of the order of arrival.

use crate::limits::PSN_LIMIT;
use crate::timeout::Timing;
use model::Sender as _;
use model::annex::{Envelope, Sack};
use model::transport::{Departure, Due, Heard, Position, Progress, Reply, Returned, Sacked};
use model::{Delivery, Psn, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Most packets of a message; the packets of longer ones travel as several messages.
    pub(crate) most: u32,
}

/// A message that the application has posted and that is not all sent.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Posted {
    /// First packet after the message.
    end: u64,
    /// Bytes of its last frame.
    last: u32,
}

/// A message, or a part of a long one, of which packets were sent and that is not acknowledged.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Message {
    first: u64,
    /// First packet after it.
    end: u64,
    /// Bytes of its last frame.
    last: u32,
    /// Number of times that it was begun anew.
    attempt: u8,
    /// Time of the last transmission of one of its packets, or of the last return of headers.
    at: Time,
    /// Number of its packets in the resend queue.
    due: u32,
}

/// The sender of a queue pair.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged: the first of a message.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    posted: VecDeque<Posted>,
    /// From the oldest unacknowledged message on.
    messages: VecDeque<Message>,
    /// The resend queue: packets whose headers have come back.
    resend: VecDeque<u64>,
    /// Next packet of the oldest message, if it is sent anew.
    anew: Option<u64>,
    /// Bytes of a full frame.
    full: u32,
    /// Bytes of packets never sent.
    unsent: u64,
    /// Bytes in flight, as far as the receiver's reports and returned headers tell.
    flight: u64,
    /// The receiver's count of bytes.
    arrived: u32,
    envelope: Envelope,
    /// True if the window is finite, by the last transmission, or later by a reply or by a packet that it held back.
    bounded: bool,
    /// Time of the last acknowledgement.
    progress: Time,
    fired: u8,
    /// Time since which a window of 0 has held packets back while no message is under way; [`Time::NEVER`] if it has not.
    held: Time,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Sender {
            una: 0,
            next: 0,
            posted: VecDeque::new(),
            messages: VecDeque::new(),
            resend: VecDeque::new(),
            anew: None,
            full: 0,
            unsent: 0,
            flight: 0,
            arrived: 0,
            envelope: Envelope::default(),
            bounded: false,
            progress: Time::ZERO,
            fired: 0,
            held: Time::NEVER,
            rules,
        }
    }

    /// True if a full frame more may be in flight.
    fn fits(&self, window: u64) -> bool {
        self.flight.saturating_add(self.full.into()) <= window
    }

    /// True if packets of the oldest unacknowledged message wait to be sent.
    fn waits(&self) -> bool {
        let oldest = self.messages.front();
        self.anew.is_some() || oldest.is_some_and(|message| message.due > 0 || self.next < message.end)
    }

    /// Place of the message under way with this packet.
    fn find(&self, seq: u64) -> Option<usize> {
        let at = self.messages.partition_point(|message| message.end <= seq);
        self.messages.get(at).filter(|message| message.first <= seq).map(|_| at)
    }

    /// Takes the next packet that was never sent.
    fn take_new(&mut self) -> Option<u64> {
        let Posted { end, last } = *self.posted.front()?;
        let seq = self.next;
        if self.messages.back().is_none_or(|message| message.end == seq) {
            let part_end = end.min(seq + u64::from(self.rules.most));
            let last = if part_end == end { last } else { self.full };
            let (attempt, at, due) = (0, Time::ZERO, 0);
            self.messages.push_back(Message { first: seq, end: part_end, last, attempt, at, due });
        }
        self.next += 1;
        self.unsent -= u64::from(if self.next == end { last } else { self.full });
        if self.next == end {
            self.posted.pop_front();
        }
        Some(seq)
    }

    /// The next packet, and whether it was sent before: first those of the resend queue, then those of a message that is
    /// sent anew, then new ones.
    fn take(&mut self) -> Option<(u64, bool)> {
        if let Some(seq) = self.resend.pop_front() {
            if let Some(at) = self.find(seq) {
                self.messages[at].due -= 1;
            }
            return Some((seq, true));
        }
        if let Some(seq) = self.anew {
            let more = self.messages.front().is_some_and(|message| seq + 1 < message.end);
            self.anew = more.then_some(seq + 1);
            return Some((seq, true));
        }
        self.take_new().map(|seq| (seq, false))
    }

    /// Forgets messages that an ACK of all packets before `seq` covers; returns the number of their packets.
    fn acknowledge(&mut self, now: Time, seq: u64) -> u64 {
        let before = self.una;
        while let Some(message) = self.messages.front().filter(|message| message.end <= seq.min(self.next)) {
            self.una = message.end;
            self.messages.pop_front();
            self.anew = None;
        }
        if self.una > before {
            self.resend.retain(|seq| *seq >= self.una);
            (self.progress, self.fired) = (now, 0);
            if self.una == self.next {
                self.flight = 0;
            }
        }
        self.una - before
    }

    /// The packet to send now: its number, and whether it was sent before.
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        self.bounded = window != u64::MAX;
        let (seq, again) = self.take()?;
        let at = self.find(seq)?;
        let message = &mut self.messages[at];
        message.at = now;
        let Message { first, end, last, attempt, .. } = *message;
        let frame = u64::from(if seq + 1 == end { last } else { self.full });
        self.envelope = Envelope { first: Psn::from_seq(first), packets: (end - first) as u32, attempt };
        self.flight += frame;
        self.held = Time::NEVER;
        Some((seq, again))
    }

    fn on_sack(&mut self, now: Time, reply: Reply, sack: &Sack, window: u64) -> (Progress, Delivery) {
        let expected = match reply {
            Reply::Ack(psn) => psn.next(),
            Reply::Nack(psn) => psn,
        };
        let ahead = u64::try_from(expected.distance_from(Psn::from_seq(self.una))).unwrap_or(0);
        if ahead > self.next - self.una {
            return Default::default(); // the packet was never sent
        }
        self.bounded |= window != u64::MAX;
        let mut arrived = 0;
        let more = sack.arrived.wrapping_sub(self.arrived) as i32;
        if more > 0 {
            self.arrived = sack.arrived;
            arrived = more as u64;
            self.flight = self.flight.saturating_sub(arrived);
        }
        let acked = self.acknowledge(now, self.una + ahead);
        let delivery = Delivery { arrived, flight: self.flight, ..Delivery::default() };
        (Progress { acked, nack: false }, delivery)
    }

    /// Headers of an older attempt are ignored: the packet is sent again in any case.
    fn on_returned(&mut self, now: Time, returned: Returned) -> (Progress, Delivery) {
        let Returned { psn, envelope, last_hop, window } = returned;
        self.bounded |= window != u64::MAX;
        let ignored = (Progress::default(), Delivery { flight: self.flight, ..Delivery::default() });
        let Ok(ahead) = u64::try_from(psn.distance_from(Psn::from_seq(self.una))) else { return ignored };
        let seq = self.una + ahead;
        let Some(at) = self.find(seq).filter(|_| seq < self.next) else { return ignored };
        let message = &mut self.messages[at];
        let packets = (message.end - message.first) as u32;
        let mine = Envelope { first: Psn::from_seq(message.first), packets, attempt: message.attempt };
        if envelope != mine || message.due >= packets {
            return ignored;
        }
        message.at = now;
        message.due += 1;
        let frame = u64::from(if seq + 1 == message.end { message.last } else { self.full });
        self.resend.push_back(seq);
        self.flight = self.flight.saturating_sub(frame);
        let delivery = Delivery { flight: self.flight, cut: frame, last_hop, ..Delivery::default() };
        (Progress { acked: 0, nack: true }, delivery)
    }

    fn backlog(&self) -> u64 {
        let oldest = self.messages.front();
        let anew = self.anew.zip(oldest).map_or(0, |(seq, message)| message.end - seq);
        self.unsent + (self.resend.len() as u64 + anew) * u64::from(self.full)
    }

    /// The timer runs for the oldest unacknowledged message, from its last transmission on. While packets of it wait to be
    /// sent, it runs only if a window may hold them back.
    fn deadline(&self) -> Time {
        match self.messages.front() {
            Some(_) if self.waits() && !self.bounded => Time::NEVER,
            Some(message) => self.rules.timing.deadline(message.at.max(self.progress), self.fired),
            None if self.held != Time::NEVER => self.rules.timing.deadline(self.held, self.fired),
            None => Time::NEVER,
        }
    }

    fn on_timeout(&mut self, now: Time) {
        self.fired = self.fired.saturating_add(1);
        let waits = self.waits();
        let Some(oldest) = self.messages.front_mut() else {
            self.held = if self.held == Time::NEVER { Time::NEVER } else { now };
            return;
        };
        // What is in flight counts as lost, so that the window opens.
        (oldest.at, self.flight) = (now, 0);
        if !waits {
            oldest.attempt = oldest.attempt.wrapping_add(1);
            self.anew = Some(oldest.first);
        }
    }
}

impl model::Sender for Sender {
    fn post_message(&mut self, packets: u64, full: u32, last: u32) {
        if packets == 0 {
            return;
        }
        let end = self.posted.back().map_or(self.next, |message| message.end).saturating_add(packets);
        self.posted.push_back(Posted { end, last });
        self.full = full;
        let bytes = (packets - 1).saturating_mul(full.into()).saturating_add(last.into());
        self.unsent = self.unsent.saturating_add(bytes);
    }

    /// A window cannot wait for the end of a message, so every packet asks for an ACK.
    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let (asks, envelope, backlog) = (self.bounded, self.envelope, self.backlog());
        let (deadline, goes_on) = (self.deadline(), self.ready(window));
        Some(Departure { seq, again, asks, envelope, backlog, deadline, goes_on })
    }

    fn ready(&self, window: u64) -> bool {
        let room = self.next - self.una < u64::from(PSN_LIMIT);
        let new = !self.posted.is_empty() && room;
        (!self.resend.is_empty() || self.anew.is_some() || new) && self.fits(window)
    }

    /// A window that is 0 or infinite, as credit is, may close after it has let out the last packet that was sent.
    fn on_held(&mut self, now: Time, window: u64) -> bool {
        let starts =
            window == 0 && self.messages.is_empty() && self.held == Time::NEVER && !self.posted.is_empty();
        self.held = if starts { now } else { self.held };
        let stood = self.waits() && !self.bounded;
        self.bounded |= window != u64::MAX;
        starts || stood && self.bounded
    }

    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        match *heard {
            Heard::Returned(returned) => self.on_returned(now, returned),
            Heard::Sacked(reply, Sacked { ref sack, window, .. }) => self.on_sack(now, reply, sack, window),
            Heard::Reply(reply) | Heard::Named(reply, _) => {
                self.on_sack(now, reply, &Sack::default(), u64::MAX)
            }
        }
    }

    fn position(&self) -> Position {
        Position { una: self.una, high: self.next, deadline: self.deadline() }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let timeout = self.deadline() <= now;
        let in_flight = timeout && !self.messages.is_empty();
        if timeout {
            self.on_timeout(now);
        }
        Due { probe: None, timeout, fired: if in_flight { self.fired } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SenderCalls as _;
    use crate::timeout::Timeout;

    const US: fn(u64) -> Time = Time::from_us;
    const OPEN: u64 = u64::MAX;

    /// A sender with a timer of 50 us and messages of at most `most` packets, and these messages posted: frames of 1000 B, the
    /// last of 300 B.
    fn sender(most: u32, posted: &[u64]) -> Sender {
        let timing = Timing::new(Timeout::Fixed(US(50)), None);
        let mut sender = Sender::new(Arc::new(Rules { timing, most }));
        posted.iter().for_each(|packets| sender.post_message(*packets, 1000, 300));
        sender
    }

    /// Sends all that a window lets pass at this time.
    fn send(sender: &mut Sender, us: u64, window: u64) -> Vec<u64> {
        std::iter::from_fn(|| sender.next(US(us), window)).map(|(seq, _)| seq).collect()
    }

    /// An ACK of all packets before `seq`, with the receiver's count of bytes.
    fn ack(sender: &mut Sender, us: u64, seq: u64, arrived: u32) -> (u64, u64) {
        let sack = Sack { arrived, ..Sack::default() };
        let reply = Reply::Ack(Psn::from_seq(seq.wrapping_sub(1)));
        let (progress, delivery) = sender.on_sack(US(us), reply, &sack, OPEN);
        (progress.acked, delivery.flight)
    }

    /// The headers of a packet of the message from `first` on come back.
    fn back(
        sender: &mut Sender,
        us: u64,
        seq: u64,
        (first, packets): (u64, u32),
        attempt: u8,
    ) -> Option<u64> {
        let envelope = Envelope { first: Psn::from_seq(first), packets, attempt };
        let returned = Returned { psn: Psn::from_seq(seq), envelope, last_hop: true, window: OPEN };
        let (progress, delivery) = sender.on_returned(US(us), returned);
        assert_eq!(progress.nack, delivery.last_hop);
        progress.nack.then_some(delivery.cut)
    }

    #[test]
    fn a_packet_is_sent_again_once_for_every_return_of_its_headers_and_before_new_ones() {
        let mut sender = sender(100, &[4, 4]);
        (0..3).for_each(|_| assert!(sender.next(Time::ZERO, OPEN).is_some()));
        assert_eq!(back(&mut sender, 1, 2, (0, 4), 0), Some(1000));
        assert_eq!(back(&mut sender, 1, 0, (0, 4), 0), Some(1000));
        assert_eq!(sender.next(US(1), OPEN), Some((2, true)), "in the order of return");
        assert_eq!(back(&mut sender, 1, 2, (0, 4), 0), Some(1000), "cut once more");
        assert_eq!(send(&mut sender, 2, OPEN), [0, 2, 3, 4, 5, 6, 7]);
        assert_eq!(back(&mut sender, 3, 7, (4, 4), 0), Some(300), "the last frame is short");
        assert_eq!(send(&mut sender, 3, OPEN), [7]);
        assert_eq!((sender.envelope.first, sender.envelope.packets), (Psn::new(4), 4));
    }

    #[test]
    fn headers_of_no_use_are_ignored() {
        let mut sender = sender(100, &[4, 4]);
        send(&mut sender, 0, OPEN);
        assert_eq!(back(&mut sender, 1, 2, (0, 4), 1), None, "another attempt");
        assert_eq!(back(&mut sender, 1, 2, (1, 4), 0), None, "another message");
        assert_eq!(back(&mut sender, 1, 9, (8, 4), 0), None, "never sent");
        ack(&mut sender, 2, 4, 3300);
        assert_eq!(back(&mut sender, 3, 2, (0, 4), 0), None, "acknowledged");
        assert_eq!(sender.next(US(3), OPEN), None);
    }

    #[test]
    fn an_ack_covers_whole_messages_and_takes_their_packets_out_of_the_resend_queue() {
        let mut sender = sender(100, &[3, 3, 3]);
        send(&mut sender, 0, OPEN);
        assert_eq!(back(&mut sender, 1, 4, (3, 3), 0), Some(1000));
        assert_eq!(back(&mut sender, 1, 7, (6, 3), 0), Some(1000));
        assert_eq!((ack(&mut sender, 2, 5, 0).0, sender.una()), (3, 3), "half a message is not acknowledged");
        assert_eq!((ack(&mut sender, 2, 6, 0).0, sender.una()), (3, 6));
        assert_eq!(ack(&mut sender, 2, 3, 0).0, 0, "a late ACK");
        assert_eq!(ack(&mut sender, 2, 12, 0).0, 0, "packets that were never sent");
        assert_eq!(send(&mut sender, 3, OPEN), [7]);
        assert_eq!((ack(&mut sender, 4, 9, 0), sender.deadline()), ((3, 0), Time::NEVER));
    }

    #[test]
    fn the_timer_sends_the_oldest_message_anew_with_the_next_attempt() {
        let mut sender = sender(100, &[3, 2]);
        send(&mut sender, 10, OPEN);
        assert_eq!(sender.deadline(), US(60));
        assert_eq!(back(&mut sender, 20, 1, (0, 3), 0), Some(1000));
        assert_eq!(sender.deadline(), Time::NEVER, "a packet of it waits to be sent");
        assert_eq!(send(&mut sender, 30, OPEN), [1]);
        assert_eq!(sender.deadline(), US(80));
        sender.on_timeout(US(80));
        assert_eq!(sender.backlog(), 3000);
        assert_eq!(sender.next(US(81), OPEN), Some((0, true)));
        assert_eq!(sender.envelope.attempt, 1);
        assert_eq!(back(&mut sender, 82, 0, (0, 3), 0), None, "headers of the first attempt");
        assert_eq!(back(&mut sender, 82, 0, (0, 3), 1), Some(1000));
        assert_eq!(send(&mut sender, 83, OPEN), [0, 1, 2]);
        // The next message begins anew only when it is the oldest.
        assert_eq!((ack(&mut sender, 90, 3, 0).0, sender.deadline()), (3, US(140)));
        sender.on_timeout(US(140));
        assert_eq!(send(&mut sender, 141, OPEN), [3, 4]);
        assert_eq!(sender.envelope, Envelope { first: Psn::new(3), packets: 2, attempt: 1 });
    }

    #[test]
    fn credit_that_ends_within_a_message_starts_the_timer() {
        let mut sender = sender(100, &[3]);
        assert_eq!(sender.next(US(10), OPEN), Some((0, false)));
        assert_eq!(sender.deadline(), Time::NEVER, "the next packet goes out at once");
        assert_eq!(sender.next(US(11), 0), None);
        assert!(sender.on_held(US(11), 0) && !sender.on_held(US(12), 0));
        assert_eq!(sender.deadline(), US(60));
        sender.on_timeout(US(60));
        assert_eq!(send(&mut sender, 61, OPEN), [1, 2]);
        assert_eq!(sender.envelope.attempt, 0, "it goes on with the message");
    }

    #[test]
    fn an_ack_ends_a_message_that_is_sent_anew() {
        let mut sender = sender(100, &[3]);
        send(&mut sender, 0, OPEN);
        sender.on_timeout(US(50));
        assert_eq!(sender.next(US(51), OPEN), Some((0, true)));
        assert_eq!(ack(&mut sender, 52, 3, 0).0, 3);
        assert_eq!((sender.next(US(53), OPEN), sender.deadline()), (None, Time::NEVER));
    }

    #[test]
    fn long_messages_are_counted_in_parts() {
        let mut sender = sender(3, &[7, 2]);
        let mut parts = Vec::new();
        while sender.next(Time::ZERO, OPEN).is_some() {
            parts.push((sender.envelope.first.value(), sender.envelope.packets));
        }
        assert_eq!(parts, [(0, 3), (0, 3), (0, 3), (3, 3), (3, 3), (3, 3), (6, 1), (7, 2), (7, 2)]);
        assert_eq!(sender.flight, 5 * 1000 + 2 * 300 + 2000);
        assert_eq!((ack(&mut sender, 1, 6, 0).0, sender.una()), (6, 6));
    }

    #[test]
    fn a_sender_with_a_window_asks_for_acks_and_its_window_counts_bytes_in_flight() {
        let mut sender = sender(100, &[40]);
        assert_eq!(send(&mut sender, 1, 8_500).len(), 8);
        assert!(sender.bounded);
        assert_eq!(ack(&mut sender, 2, 0, 5_000), (0, 3_000));
        assert_eq!(send(&mut sender, 2, 8_500).len(), 5);
        assert_eq!(back(&mut sender, 3, 9, (0, 40), 0), Some(1000));
        assert_eq!(send(&mut sender, 3, 8_500), [9]);
        let mut free = self::sender(100, &[40]);
        assert!((0..40).all(|_| free.next(US(1), OPEN).is_some() && !free.bounded));
    }

    #[test]
    fn the_timer_opens_a_window_whose_packets_are_lost() {
        let mut sender = sender(100, &[40]);
        assert_eq!(send(&mut sender, 10, 4_000), [0, 1, 2, 3]);
        assert_eq!(sender.deadline(), US(60), "nothing else would wake the sender");
        sender.on_timeout(US(60));
        assert_eq!(
            send(&mut sender, 61, 4_000),
            [4, 5, 6, 7],
            "the message is sent once before it is sent anew"
        );
        assert_eq!(sender.deadline(), US(111));
    }

    #[test]
    fn a_sender_without_credit_has_a_timer_all_the_same() {
        let mut sender = sender(100, &[3]);
        assert!(sender.on_held(US(5), 0));
        assert_eq!(sender.deadline(), US(55));
        sender.on_timeout(US(55));
        assert_eq!(sender.deadline(), US(105));
        send(&mut sender, 60, OPEN);
        assert_eq!((ack(&mut sender, 61, 3, 0).0, sender.deadline()), (3, Time::NEVER));
    }
}
