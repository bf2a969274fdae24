//! A sender that knows the fate of every packet, and counts the bytes in flight.

use crate::timeout::Timing;
use model::annex::{Sack, Selective};
use model::transport::{Delivery, Progress, Reply};
use model::{Psn, Time};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Number of packets from the oldest unacknowledged one on that may have been sent.
    pub(crate) reach: u32,
    /// A packet asks for an ACK if it leaves less than this window, bytes.
    pub(crate) ask_below: u64,
}

/// A packet that has been sent and is not below the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
struct Sent {
    at: Time,
    frame: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
enum State {
    Flying,
    /// Cut or lost; waits to be sent again.
    Missing,
    Arrived,
}

/// Frames of a posted message.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Posted {
    /// First packet after the message.
    end: u64,
    full: u32,
    last: u32,
}

/// The sender of a queue pair.
///
/// The bytes in flight are those of packets sent, less the bytes that the receiver reports, less those of packets that are
/// cut or lost and not sent again.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Sender {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    /// Packets from `una` to `next`.
    packets: VecDeque<Sent>,
    /// Messages with packets that were never sent.
    posted: VecDeque<Posted>,
    /// Packets to send again, before new ones.
    missing: BTreeSet<u64>,
    /// Bytes never sent, and bytes to send again.
    unsent: u64,
    again: u64,
    /// Bytes in flight. Reports may run ahead of the fate of single packets, so it may be negative for a while.
    flight: i64,
    /// The receiver's count of bytes.
    arrived: u32,
    /// Packets in the order in which they were sent last, with outdated entries: (time, packet).
    order: VecDeque<(Time, u64)>,
    fired: u8,
    /// Time since which a window of 0 has held packets back while none is in flight; [`Time::NEVER`] if it has not.
    held: Time,
    asks: bool,
    /// Packets taken for lost that nobody has asked for.
    lost: VecDeque<u64>,
    rules: Arc<Rules>,
}

impl Sender {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Sender {
            una: 0,
            next: 0,
            packets: VecDeque::new(),
            posted: VecDeque::new(),
            missing: BTreeSet::new(),
            unsent: 0,
            again: 0,
            flight: 0,
            arrived: 0,
            order: VecDeque::new(),
            fired: 0,
            held: Time::NEVER,
            asks: false,
            lost: VecDeque::new(),
            rules,
        }
    }

    /// Packet with that PSN, if it was sent and is not acknowledged by ePSN.
    fn outstanding(&self, psn: Psn) -> Option<u64> {
        let distance = psn.distance_from(Psn::from_seq(self.una));
        let seq = self.una + u64::try_from(distance).ok()?;
        (seq < self.next).then_some(seq)
    }

    fn packet(&mut self, seq: u64) -> &mut Sent {
        &mut self.packets[(seq - self.una) as usize]
    }

    /// The frame of the next new packet, if the reach allows one.
    fn next_frame(&self) -> Option<u32> {
        let message = self.posted.front()?;
        let free = self.next - self.una < u64::from(self.rules.reach);
        free.then_some(if self.next + 1 == message.end { message.last } else { message.full })
    }

    /// Forgets messages whose packets were all sent, but keeps the last one for the length of a full frame.
    fn forget_sent(&mut self) {
        if self.posted.len() > 1 && self.posted.front().is_some_and(|message| message.end == self.next) {
            self.posted.pop_front();
        }
    }

    /// True if a full frame more may be in flight.
    fn fits(&self, window: u64) -> bool {
        let full = self.posted.front().map_or(0, |message| message.full);
        window == u64::MAX || self.flight.saturating_add(full.into()) <= window.min(i64::MAX as u64) as i64
    }

    /// Notes that a packet has arrived.
    fn note_arrival(&mut self, seq: u64) {
        let packet = *self.packet(seq);
        self.packet(seq).state = State::Arrived;
        if packet.state == State::Missing {
            // The receiver's count has it, and it was taken off before.
            self.missing.remove(&seq);
            self.again -= u64::from(packet.frame);
            self.flight += i64::from(packet.frame);
        }
    }

    /// Takes a flying packet out of flight, to send it again; returns its bytes.
    fn give_up(&mut self, seq: u64) -> u64 {
        let frame = self.packet(seq).frame;
        self.packet(seq).state = State::Missing;
        self.missing.insert(seq);
        self.again += u64::from(frame);
        self.flight -= i64::from(frame);
        frame.into()
    }

    /// Removes outdated entries from the front of `order`.
    fn tidy(&mut self) {
        while let Some(&(at, seq)) = self.order.front() {
            let current = seq >= self.una
                && matches!(*self.packet(seq), Sent { at: latest, state: State::Flying, .. } if latest == at);
            if current {
                break;
            }
            self.order.pop_front();
        }
    }
}

impl model::Sender for Sender {
    /// For senders of other modes: the packets count as frames of 1 B.
    fn post(&mut self, packets: u64) {
        self.post_message(packets, 1, 1);
    }

    fn post_message(&mut self, packets: u64, full: u32, last: u32) {
        let end = self.posted.back().map_or(self.next, |message| message.end) + packets;
        self.posted.push_back(Posted { end, full, last });
        self.forget_sent();
        self.unsent += (packets - 1) * u64::from(full) + u64::from(last);
    }

    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        let (seq, frame, again) = match self.missing.pop_first() {
            Some(seq) => {
                let packet = self.packet(seq);
                (packet.at, packet.state) = (now, State::Flying);
                let frame = packet.frame;
                self.again -= u64::from(frame);
                (seq, frame, true)
            }
            None => {
                let frame = self.next_frame()?;
                self.packets.push_back(Sent { at: now, frame, state: State::Flying });
                self.unsent -= u64::from(frame);
                self.next += 1;
                (self.next - 1, frame, false)
            }
        };
        self.flight += i64::from(frame);
        self.held = Time::NEVER;
        self.order.push_back((now, seq));
        let left = window.saturating_sub(self.flight.max(0) as u64);
        let full = self.posted.front().map_or(frame, |message| message.full);
        self.asks =
            again || self.unsent + self.again == 0 || left < u64::from(full) || window < self.rules.ask_below;
        self.forget_sent();
        Some((seq, again))
    }

    fn ready(&self, window: u64) -> bool {
        (!self.missing.is_empty() || self.unsent > 0 && self.next_frame().is_some()) && self.fits(window)
    }

    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        self.on_sack(now, reply, Selective::Nothing, &Sack::default()).0
    }

    fn on_sack(&mut self, _: Time, reply: Reply, _: Selective, sack: &Sack) -> (Progress, Delivery) {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let acked = u64::try_from(expected.distance_from(Psn::from_seq(self.una))).unwrap_or(0);
        if acked > self.next - self.una {
            return Default::default(); // the packet was never sent
        }
        let mut delivery = Delivery::default();
        let more = sack.arrived.wrapping_sub(self.arrived) as i32;
        if more > 0 {
            self.arrived = sack.arrived;
            self.flight -= i64::from(more);
            delivery.arrived = more as u64;
        }
        for seq in self.una..self.una + acked {
            self.note_arrival(seq);
        }
        self.packets.drain(..acked as usize);
        self.una += acked;
        let mut bits = sack.bits;
        while bits != 0 {
            let psn = Psn::new(sack.base.value().wrapping_add(bits.trailing_zeros()));
            if let Some(seq) = self.outstanding(psn) {
                self.note_arrival(seq);
            }
            bits &= bits - 1;
        }
        if is_nack
            && sack.cut
            && let Some(seq) = self.outstanding(sack.cause)
            && self.packet(seq).state == State::Flying
        {
            (delivery.cut, delivery.last_hop) = (self.give_up(seq), sack.last_hop);
        }
        if acked > 0 || more > 0 {
            self.fired = 0;
        }
        self.tidy();
        delivery.flight = self.flight.max(0) as u64;
        (Progress { acked, nack: delivery.cut > 0 }, delivery)
    }

    fn asks(&self) -> bool {
        self.asks
    }

    fn backlog(&self) -> u64 {
        self.unsent + self.again
    }

    fn take_lost(&mut self) -> Option<u64> {
        self.lost.pop_front()
    }

    fn una(&self) -> u64 {
        self.una
    }

    fn high(&self) -> u64 {
        self.next
    }

    /// The timer runs for the packet that was sent first among those in flight, or while a window of 0 holds packets back.
    fn deadline(&self) -> Time {
        match self.order.front() {
            Some((at, _)) => self.rules.timing.deadline(*at, self.fired),
            None if self.held != Time::NEVER => self.rules.timing.deadline(self.held, self.fired),
            None => Time::NEVER,
        }
    }

    fn on_held(&mut self, now: Time) {
        if self.order.is_empty() && self.held == Time::NEVER && self.unsent + self.again > 0 {
            self.held = now;
        }
    }

    fn on_timeout(&mut self, now: Time) {
        let fired = self.fired;
        if self.order.is_empty() && self.held != Time::NEVER {
            (self.held, self.fired) = (now, fired.saturating_add(1));
        }
        while let Some(&(at, seq)) = self.order.front()
            && self.rules.timing.deadline(at, fired) <= now
        {
            self.give_up(seq);
            self.lost.push_back(seq);
            self.fired = fired.saturating_add(1);
            self.order.pop_front();
            self.tidy();
        }
    }
}
