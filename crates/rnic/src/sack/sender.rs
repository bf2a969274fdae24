//! A sender that knows the fate of every packet, and counts the bytes in flight.

use crate::timeout::Timing;
use model::Sender as _;
use model::annex::Sack;
use model::transport::{Departure, Due, Heard, Position, Progress, Reply, Sacked};
use model::{Delivery, Kind, Psn, Time};
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Index, IndexMut};
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
    /// Whether packets are taken for lost when many later ones have arrived.
    pub(crate) infer: Option<Infer>,
}

/// Rule by which packets are taken for lost although no switch reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Infer {
    /// Once so much has arrived beyond ePSN. Probes find losses after which nothing arrives.
    Beyond {
        /// Windows that must have arrived, up to the largest window so far.
        windows: f64,
        /// Packets that must have arrived at least.
        least: u16,
    },
    /// Once they are so many least round trips old, and a packet that was sent later has arrived.
    Age(u32),
}

#[cfg(test)]
impl std::hash::Hash for Infer {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match *self {
            Infer::Beyond { windows, least } => (windows.to_bits(), u32::from(least)),
            Infer::Age(times) => (0, times),
        }
        .hash(state);
    }
}

/// A packet that has been sent and is not below the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
struct Sent {
    /// Time at which it was sent last.
    at: Time,
    frame: u32,
    state: State,
    /// True if the packet was sent more than once.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
enum State {
    Flying,
    /// Cut or lost; waits to be sent again.
    Missing,
    Arrived,
}

impl Sent {
    /// True for a packet in flight that was sent once.
    #[inline]
    fn is_fresh(&self) -> bool {
        self.state == State::Flying && !self.again
    }
}

/// The packets that have been sent and are not acknowledged: a ring, in which a packet has the slot of its number modulo the
/// number of slots, a power of two. So an acknowledgement moves nothing.
#[derive(Clone, Debug)]
struct Open {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    slots: Vec<Sent>,
}

impl Open {
    const fn new() -> Self {
        Open { una: 0, next: 0, slots: Vec::new() }
    }

    /// Number of packets.
    #[inline]
    fn len(&self) -> u64 {
        self.next - self.una
    }

    /// Adds packet `next`.
    #[inline]
    fn push(&mut self, packet: Sent) {
        if self.len() == self.slots.len() as u64 {
            self.grow(packet);
        }
        let seq = self.next;
        self.next += 1;
        self[seq] = packet;
    }

    /// Doubles the number of slots; new ones have `any` packet.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, any: Sent) {
        let count = (2 * self.slots.len()).max(FIRST_SLOTS);
        let mut grown = Open { slots: vec![any; count], ..*self };
        (self.una..self.next).for_each(|seq| grown[seq] = self[seq]);
        *self = grown;
    }
}

/// Slots of the first packets. Our choice: as many as a `VecDeque` begins with.
const FIRST_SLOTS: usize = 4;

impl Index<u64> for Open {
    type Output = Sent;

    #[inline]
    fn index(&self, seq: u64) -> &Sent {
        &self.slots[seq as usize & self.slots.len().wrapping_sub(1)]
    }
}

impl IndexMut<u64> for Open {
    #[inline]
    fn index_mut(&mut self, seq: u64) -> &mut Sent {
        let mask = self.slots.len().wrapping_sub(1);
        &mut self.slots[seq as usize & mask]
    }
}

/// Only packets matter, not what is left in other slots.
#[cfg(test)]
impl std::hash::Hash for Open {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.una, self.next).hash(state);
        (self.una..self.next).for_each(|seq| self[seq].hash(state));
    }
}

/// Frames of a posted message.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Packets that have been sent and are not acknowledged.
    open: Open,
    /// The message of the next new packet; empty before the first one. The last message stays after its packets were sent.
    message: Posted,
    /// Messages after it.
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
    /// The last map of packets that have arrived, without those below `una`: its first packet, and its bits.
    map: (u64, u64),
    /// Packets before this one are not in flight, or were sent again. First transmissions are in the order of packets.
    fresh: u64,
    /// Packets that were sent again, in the order of their last transmissions, with outdated entries: (time, packet).
    repeats: VecDeque<(Time, u64)>,
    /// Time at which the timer fires.
    due: Time,
    fired: u8,
    /// Time since which a window of 0 has held packets back while none is in flight; [`Time::NEVER`] if it has not.
    held: Time,
    asks: bool,
    /// Packets taken for lost that nobody has asked for.
    lost: VecDeque<u64>,
    /// Packets before this one are taken for lost while they are missing; it ends when all of them have arrived.
    recovery: u64,
    /// Packets of the recovery before this one were judged.
    judged: u64,
    /// Least time from a transmission to the news of its arrival. Under [`Infer::Beyond`] it starts from the longest trip of an
    /// idle fabric, if the path is known.
    least_trip: Time,
    /// The longest trip of an idle fabric; 0 if the path is unknown, or not needed.
    longest_trip: Time,
    /// Latest transmission of a packet that has arrived.
    latest_arrived: Time,
    /// Largest window so far, bytes.
    largest: u64,
    /// Time of the next probe. There is one under [`Infer::Beyond`] whenever no ACK comes, otherwise while the window holds packets
    /// back and no packet in flight has asked for an ACK.
    probe_at: Time,
    /// Time of the last probe, and the round trip by which the last answer is judged.
    probed: Time,
    answered: Time,
    /// The last packet that asked for an ACK, and the time of its transmission.
    asked: (u64, Time),
    rules: Arc<Rules>,
}

/// Round trips without an ACK after which a sender probes (uet-htsim).
const FIRST_PROBE: u64 = 3;
/// Round trips between probes without any ACK (uet-htsim).
const NEXT_PROBE: u64 = 5;

impl Sender {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Sender {
            open: Open::new(),
            message: Posted::default(),
            posted: VecDeque::new(),
            missing: BTreeSet::new(),
            unsent: 0,
            again: 0,
            flight: 0,
            arrived: 0,
            map: (0, 0),
            fresh: 0,
            repeats: VecDeque::new(),
            due: Time::NEVER,
            fired: 0,
            held: Time::NEVER,
            asks: false,
            lost: VecDeque::new(),
            recovery: 0,
            judged: 0,
            least_trip: Time::NEVER,
            longest_trip: Time::ZERO,
            latest_arrived: Time::ZERO,
            largest: 0,
            probe_at: Time::NEVER,
            probed: Time::ZERO,
            answered: Time::ZERO,
            asked: (0, Time::NEVER),
            rules,
        }
    }

    /// Packets that a window of so many bytes holds.
    fn packets_of(&self, bytes: u64) -> u64 {
        bytes / u64::from(self.message.full.max(1))
    }

    /// Takes missing packets for lost if enough later ones have arrived, or during a recovery; returns their bytes.
    fn infer(&mut self, ahead: u16, window: u64) -> u64 {
        let Some(Infer::Beyond { windows, least }) = self.rules.infer else { return 0 };
        if !self.recovers() {
            let many = ((window.min(1 << 40) as f64 * windows) as u64).min(self.largest);
            if u64::from(ahead) < self.packets_of(many).max(least.into()) || !self.missing.is_empty() {
                return 0;
            }
            (self.recovery, self.judged) = (self.open.next, self.open.una);
        }
        // Each packet is judged once per recovery, when the window has reached it.
        let reach = self.open.una.saturating_add(self.packets_of(window).max(1));
        let end = self.recovery.min(reach);
        let mut bytes = 0;
        for seq in self.judged.max(self.open.una)..end {
            if self.open[seq].state == State::Flying {
                bytes += self.give_up(seq);
                self.lost.push_back(seq);
            }
        }
        self.judged = self.judged.max(end);
        bytes
    }

    /// True during a recovery.
    fn recovers(&self) -> bool {
        self.open.una < self.recovery
    }

    /// Sets the time of the next probe after an ACK, and begins a recovery if the ACK answers a probe without delay: what was
    /// sent before is no longer on its way.
    fn plan_probe(&mut self, now: Time, sack: &Sack) {
        if !self.probes_when_silent() {
            return;
        }
        if sack.probe && self.answered < self.prompt() {
            (self.recovery, self.judged) = (self.open.next, self.open.una);
        }
        let patience = match self.unsent {
            0 => self.prompt(),
            _ => Time(self.least_trip.ps().saturating_mul(FIRST_PROBE)),
        };
        let open = self.open.una < self.open.next || self.unsent > 0;
        self.probe_at = match open && self.least_trip != Time::NEVER {
            true => now + patience,
            false => Time::NEVER,
        };
    }

    /// Time within which the answer to a probe must come that starts a recovery: the base round trip and the target of the
    /// queueing delay, which is the longest round trip where switches drop (uet-htsim). A sender that has nothing more to send
    /// for the first time probes after the same time.
    fn prompt(&self) -> Time {
        Time(self.least_trip.ps().saturating_add(self.longest_trip.max(self.least_trip).ps()))
    }

    /// Notes the longest trip of an idle fabric: the start of the base round trip, which samples of full queues may exceed.
    pub(crate) fn expect(&mut self, longest: Time) {
        if self.probes_when_silent() {
            (self.longest_trip, self.least_trip) = (longest, longest);
        }
    }

    /// True under [`Infer::Beyond`].
    fn probes_when_silent(&self) -> bool {
        matches!(self.rules.infer, Some(Infer::Beyond { .. }))
    }

    /// Drops the probe of a sender that its window holds back.
    #[inline]
    fn drop_request(&mut self) {
        if self.probe_at != Time::NEVER && !self.probes_when_silent() {
            self.probe_at = Time::NEVER;
        }
    }

    /// True if a packet in flight has asked for an ACK.
    fn awaits_ack(&mut self) -> bool {
        let (seq, at) = self.asked;
        (self.open.una..self.open.next).contains(&seq)
            && self.open[seq].state == State::Flying
            && self.open[seq].at == at
    }

    /// Takes old packets for lost if a packet that was sent later has arrived; returns their bytes.
    fn infer_by_age(&mut self, now: Time) -> u64 {
        let Some(Infer::Age(times)) = self.rules.infer else { return 0 };
        let age = self.least_trip.ps().saturating_mul(times.into());
        let mut bytes = 0;
        self.tidy();
        while let Some((at, seq)) = self.oldest()
            && at < self.latest_arrived
            && now.ps() - at.ps() > age
        {
            bytes += self.give_up(seq);
            self.lost.push_back(seq);
            self.tidy();
        }
        bytes
    }

    /// Packet with that PSN, if it was sent and is not acknowledged by ePSN.
    fn outstanding(&self, psn: Psn) -> Option<u64> {
        let distance = psn.distance_from(Psn::from_seq(self.open.una));
        let seq = self.open.una + u64::try_from(distance).ok()?;
        (seq < self.open.next).then_some(seq)
    }

    /// True if a new packet may be sent under some window.
    #[inline]
    fn has_new(&self) -> bool {
        self.unsent > 0 && self.open.len() < u64::from(self.rules.reach)
    }

    /// Goes on to the next message if all packets of this one were sent.
    #[inline]
    fn forget_sent(&mut self) {
        if self.message.end == self.open.next
            && let Some(message) = self.posted.pop_front()
        {
            self.message = message;
        }
    }

    /// Takes the first packet to send again out of the list, and notes its transmission.
    #[cold]
    fn repeat(&mut self, now: Time) -> Option<(u64, u32)> {
        let seq = self.missing.pop_first()?;
        let packet = &mut self.open[seq];
        (packet.at, packet.state, packet.again) = (now, State::Flying, true);
        let frame = packet.frame;
        self.again -= u64::from(frame);
        self.repeats.push_back((now, seq));
        Some((seq, frame))
    }

    /// True if a full frame more may be in flight. Packets to send again pass during a recovery.
    #[inline(always)]
    fn fits(&self, window: u64) -> bool {
        if self.recovers() && !self.missing.is_empty() && window > 0 {
            return true;
        }
        let after = self.flight.saturating_add(self.message.full.into());
        window == u64::MAX || after <= window.min(i64::MAX as u64) as i64
    }

    /// Notes that a packet has arrived.
    fn note_arrival(&mut self, now: Time, seq: u64) {
        let packet = self.open[seq];
        if packet.state == State::Flying && self.rules.infer.is_some() {
            let at = self.open[seq].at;
            // The news may concern an earlier transmission of a packet that was sent again.
            if !packet.again {
                self.least_trip = self.least_trip.min(Time(now.ps().saturating_sub(at.ps())));
            }
            self.latest_arrived = self.latest_arrived.max(at);
        }
        self.open[seq].state = State::Arrived;
        if packet.state == State::Missing {
            // The receiver's count has it, and it was taken off before.
            self.missing.remove(&seq);
            self.again -= u64::from(packet.frame);
            self.flight += i64::from(packet.frame);
            if self.unsent + self.again == 0 {
                self.held = Time::NEVER;
            }
        }
    }

    /// Notes the packets of a report's map. Successive maps overlap, and what has arrived once stays so.
    #[inline]
    fn note_map(&mut self, now: Time, sack: &Sack) {
        let ahead = sack.base.distance_from(Psn::from_seq(self.open.una));
        let (first, bits) = match ahead {
            ..0 => (self.open.una, sack.bits.checked_shr(ahead.unsigned_abs()).unwrap_or(0)),
            _ => (self.open.una + ahead as u64, sack.bits),
        };
        let sent = self.open.next.saturating_sub(first);
        let bits = if sent < 64 { bits & ((1 << sent) - 1) } else { bits };
        let (before, known) = self.map;
        let known = match first >= before {
            true => u32::try_from(first - before).ok().and_then(|by| known.checked_shr(by)),
            false => u32::try_from(before - first).ok().and_then(|by| known.checked_shl(by)),
        };
        self.map = (first, bits);
        let mut new = bits & !known.unwrap_or(0);
        while new != 0 {
            self.note_arrival(now, first + u64::from(new.trailing_zeros()));
            new &= new - 1;
        }
    }

    /// The packet in flight whose last transmission is the oldest, and the time of that transmission.
    #[inline]
    fn oldest(&self) -> Option<(Time, u64)> {
        let fresh = match self.fresh < self.open.next {
            true => Some((self.open[self.fresh].at, self.fresh)),
            false => None,
        };
        match self.repeats.front() {
            Some(&repeat) if fresh.is_none_or(|(at, _)| repeat.0 <= at) => Some(repeat),
            _ => fresh,
        }
    }

    /// Sets the timer. It runs for the oldest packet in flight, or while a window of 0 holds packets back.
    #[inline(never)]
    fn set_timer(&mut self) {
        let since = self.oldest().map_or(self.held, |(at, _)| at);
        self.due = match since {
            Time::NEVER => Time::NEVER,
            since => self.rules.timing.deadline(since, self.fired),
        };
    }

    /// The packet to send now: its number, and whether it was sent before.
    #[inline(always)]
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        let again = !self.missing.is_empty();
        let (seq, frame) = match again {
            true => self.repeat(now)?,
            false => {
                let seq = self.open.next;
                let frame = if seq + 1 == self.message.end { self.message.last } else { self.message.full };
                self.open.push(Sent { at: now, frame, state: State::Flying, again: false });
                self.unsent -= u64::from(frame);
                (seq, frame)
            }
        };
        self.flight += i64::from(frame);
        if self.due == Time::NEVER || self.held != Time::NEVER {
            self.held = Time::NEVER;
            self.set_timer();
        }
        let left = window.saturating_sub(self.flight.max(0) as u64);
        self.asks = again
            || self.unsent + self.again == 0
            || left < u64::from(self.message.full)
            || window < self.rules.ask_below
            || self.open.len() >= u64::from(self.rules.reach);
        if self.asks {
            self.asked = (seq, now);
        }
        self.drop_request();
        self.forget_sent();
        Some((seq, again))
    }

    /// Takes a flying packet out of flight, to send it again; returns its bytes.
    fn give_up(&mut self, seq: u64) -> u64 {
        let frame = self.open[seq].frame;
        self.open[seq].state = State::Missing;
        self.missing.insert(seq);
        self.again += u64::from(frame);
        self.flight -= i64::from(frame);
        frame.into()
    }

    /// Finds the oldest packet in flight, and sets the timer. A recovery judges its packets itself, so their timers run only
    /// once they were sent again.
    fn tidy(&mut self) {
        self.fresh = self.fresh.max(self.open.una).max(self.recovery);
        while self.fresh < self.open.next && !self.open[self.fresh].is_fresh() {
            self.fresh += 1;
        }
        while let Some(&(at, seq)) = self.repeats.front() {
            let current =
                seq >= self.open.una && self.open[seq].state == State::Flying && self.open[seq].at == at;
            if current {
                break;
            }
            self.repeats.pop_front();
        }
        self.set_timer();
    }

    #[inline(always)]
    fn on_sack(&mut self, now: Time, reply: Reply, sack: &Sack, window: u64) -> (Progress, Delivery) {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let acked = u64::try_from(expected.distance_from(Psn::from_seq(self.open.una))).unwrap_or(0);
        if acked > self.open.len() {
            return Default::default(); // the packet was never sent
        }
        let mut delivery = Delivery::default();
        let more = sack.arrived.wrapping_sub(self.arrived) as i32;
        if more > 0 {
            self.arrived = sack.arrived;
            self.flight -= i64::from(more);
            delivery.arrived = more as u64;
        }
        self.largest = self.largest.max(window);
        self.drop_request();
        if !matches!(self.rules.infer, Some(Infer::Age(_)))
            && !sack.probe
            && let Some(seq) = self.outstanding(sack.cause)
            && !self.open[seq].again
        {
            self.least_trip = self.least_trip.min(Time(now.ps() - self.open[seq].at.ps()));
        }
        // What has arrived matters for packets that wait to be sent again, and for round trips.
        if !self.missing.is_empty() || matches!(self.rules.infer, Some(Infer::Age(_))) {
            (self.open.una..self.open.una + acked).for_each(|seq| self.note_arrival(now, seq));
        }
        self.open.una += acked;
        self.note_map(now, sack);
        if is_nack
            && sack.cut
            && let Some(seq) = self.outstanding(sack.cause)
            && self.open[seq].state == State::Flying
        {
            (delivery.cut, delivery.last_hop) = (self.give_up(seq), sack.last_hop);
        }
        if acked > 0 || more > 0 {
            self.fired = 0;
        }
        if !is_nack {
            self.plan_probe(now, sack);
        }
        delivery.lost = self.infer(sack.ahead, window) + self.infer_by_age(now);
        self.tidy();
        delivery.flight = self.flight.max(0) as u64;
        (delivery.penalty, delivery.restore) = (sack.penalty, sack.restore);
        (Progress { acked, nack: delivery.cut > 0 }, delivery)
    }

    fn backlog(&self) -> u64 {
        self.unsent + self.again
    }

    /// A probe that is to tell whether the queues on the way are empty waits in those of data. A mere request for an ACK does not.
    fn take_probe(&mut self, now: Time) -> Option<Kind> {
        if self.probe_at > now {
            return None;
        }
        (self.probe_at, self.probed) = (now + Time(NEXT_PROBE * self.least_trip.ps()), now);
        Some(if self.probes_when_silent() { Kind::Probe } else { Kind::Control })
    }

    /// Notes the round trip of a probe whose answer the sender is about to take, and the delay to assume if it was not the latest
    /// probe.
    fn on_answer(&mut self, now: Time, trip: Time, assumed: Option<Time>) {
        let latest = now.ps() - trip.ps() == self.probed.ps();
        self.answered = match assumed {
            Some(delay) if !latest => self.least_trip + delay,
            _ => trip,
        };
    }

    fn on_timeout(&mut self, now: Time) {
        let fired = self.fired;
        if self.oldest().is_none() && self.held != Time::NEVER {
            (self.held, self.fired) = (now, fired.saturating_add(1));
        }
        while let Some((at, seq)) = self.oldest()
            && self.rules.timing.deadline(at, fired) <= now
        {
            self.give_up(seq);
            self.lost.push_back(seq);
            self.fired = fired.saturating_add(1);
            self.tidy();
        }
        self.set_timer();
    }
}

impl model::Sender for Sender {
    fn post_message(&mut self, packets: u64, full: u32, last: u32) {
        let end = self.posted.back().map_or(self.message.end, |message| message.end) + packets;
        self.posted.push_back(Posted { end, full, last });
        self.forget_sent();
        self.unsent += (packets - 1) * u64::from(full) + u64::from(last);
    }

    #[inline(always)]
    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let Position { deadline, .. } = self.position();
        let (asks, backlog, goes_on) = (self.asks, self.backlog(), self.ready(window));
        Some(Departure { seq, again, asks, backlog, deadline, goes_on, ..Departure::default() })
    }

    #[inline(always)]
    fn ready(&self, window: u64) -> bool {
        (self.has_new() || !self.missing.is_empty()) && self.fits(window)
    }

    fn take_lost(&mut self) -> Option<u64> {
        self.lost.pop_front()
    }

    /// Packets in flight may all have arrived without an ACK: a window that shrinks can hold the sender back before any of
    /// them has asked for one.
    fn on_held(&mut self, now: Time, window: u64) -> bool {
        let flies = self.oldest().is_some();
        if window == 0 {
            let starts = !flies && self.held == Time::NEVER && self.backlog() > 0;
            if starts {
                self.held = now;
                self.set_timer();
            }
            starts
        } else {
            let starts = flies
                && self.least_trip != Time::NEVER
                && self.probe_at == Time::NEVER
                && !self.probes_when_silent()
                && self.backlog() > 0
                && !self.awaits_ack();
            if starts {
                self.probe_at = now + Time(FIRST_PROBE.saturating_mul(self.least_trip.ps()));
            }
            starts
        }
    }

    #[inline(always)]
    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        match *heard {
            Heard::Sacked(reply, Sacked { ref sack, trip, assumed, window, .. }) => {
                if sack.probe {
                    self.on_answer(now, trip, assumed);
                }
                self.on_sack(now, reply, sack, window)
            }
            Heard::Reply(reply) | Heard::Named(reply, _) => {
                self.on_sack(now, reply, &Sack::default(), u64::MAX)
            }
            Heard::Returned(_) => Default::default(),
        }
    }

    #[inline]
    fn position(&self) -> Position {
        Position { una: self.open.una, high: self.open.next, deadline: self.due.min(self.probe_at) }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let probe = self.take_probe(now);
        let timeout = self.position().deadline <= now;
        if timeout {
            self.on_timeout(now);
        }
        Due { probe, timeout }
    }
}

#[cfg(test)]
mod stories;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SenderCalls as _;
    use crate::timeout::Timeout;

    const US: fn(u64) -> Time = Time::from_us;

    /// A sender of frames of 1000 B that has sent `sent` of `posted` packets at time 0.
    fn sender(posted: u64, sent: usize, infer: Option<Infer>) -> Sender {
        let timing = Timing::new(Timeout::Fixed(US(50)), None);
        let mut sender = Sender::new(Arc::new(Rules { timing, reach: 100, ask_below: 0, infer }));
        sender.post_message(posted, 1000, 300);
        (0..sent).for_each(|_| assert!(sender.next(Time::ZERO, 1 << 40).is_some()));
        sender
    }

    /// A reply with this ePSN and these packets beyond it; all of them count as arrived.
    fn reply(sender: &mut Sender, expected: u32, beyond: &[u32]) -> Delivery {
        reply_in(sender, expected, beyond, u64::MAX)
    }

    fn reply_in(sender: &mut Sender, expected: u32, beyond: &[u32], window: u64) -> Delivery {
        let sack = Sack {
            base: Psn::new(expected + 1),
            bits: beyond.iter().map(|packet| 1 << (packet - expected - 1)).sum(),
            arrived: 1000 * (expected + beyond.len() as u32),
            ahead: beyond.len() as u16,
            ..Sack::default()
        };
        sender.on_sack(US(1), Reply::Ack(Psn::new(expected.wrapping_sub(1))), &sack, window).1
    }

    fn cut(sender: &mut Sender, expected: u32, cause: u32) -> Delivery {
        let sack = Sack { cause: Psn::new(cause), cut: true, ..Sack::default() };
        sender.on_sack(US(1), Reply::Nack(Psn::new(expected)), &sack, u64::MAX).1
    }

    #[test]
    fn bytes_in_flight_are_those_sent_less_those_reported() {
        let mut sender = sender(9, 9, None);
        assert_eq!((sender.flight, sender.backlog()), (8_300, 0));
        let delivery = reply(&mut sender, 2, &[4, 5]);
        assert_eq!((delivery.arrived, delivery.flight, sender.una()), (4_000, 4_300, 2));
        assert_eq!(
            reply(&mut sender, 1, &[]),
            Delivery { flight: 4_300, ..Delivery::default() },
            "a late reply"
        );
    }

    #[test]
    fn a_cut_packet_is_sent_again_once_per_cut_and_before_new_ones() {
        let mut sender = sender(9, 6, None);
        assert_eq!(cut(&mut sender, 0, 3), Delivery { cut: 1000, flight: 5_000, ..Delivery::default() });
        assert_eq!(cut(&mut sender, 0, 3).cut, 0, "it waits to be sent again");
        assert_eq!(sender.next(US(2), 1 << 40), Some((3, true)));
        assert!(sender.asks, "a repeated packet asks for an ACK");
        assert_eq!(cut(&mut sender, 0, 3).cut, 1000, "it was cut again");
        // The packet has arrived after all: the receiver's count has it.
        assert_eq!(reply(&mut sender, 4, &[]).flight, 2_000);
        assert_eq!(sender.next(US(2), 1 << 40), Some((6, false)));
    }

    /// The packets from ePSN on that are neither missing nor in flight, after these maps: a first packet, and bits.
    fn noted(maps: &[(u32, u64)]) -> Vec<u64> {
        let mut sender = sender(99, 90, None);
        for &(base, bits) in maps {
            let sack = Sack { base: Psn::new(base), bits, ..Sack::default() };
            let una = u32::try_from(sender.open.una).unwrap();
            sender.on_sack(US(1), Reply::Ack(Psn::new(una.wrapping_sub(1))), &sack, u64::MAX);
        }
        let una = sender.open.una;
        (una..90).filter(|seq| sender.open[*seq].state == State::Arrived).collect()
    }

    #[test]
    fn maps_that_overlap_note_every_packet_however_they_follow_each_other() {
        assert_eq!(noted(&[(5, 0b101)]), [5, 7]);
        assert_eq!(noted(&[(5, 0b101), (6, 0b1010)]), [5, 7, 9], "a later map");
        assert_eq!(noted(&[(6, 0b1010), (3, 0b1_0001)]), [3, 7, 9], "an earlier map");
        assert_eq!(noted(&[(2, 1), (70, 0b11), (2, 0b11)]), [2, 3, 70, 71], "maps without common packets");
        assert_eq!(noted(&[(80, u64::MAX)]), (80..90).collect::<Vec<_>>(), "packets that were never sent");
        assert_eq!(noted(&[(1, u64::MAX), (2, u64::MAX)]), (1..66).collect::<Vec<_>>());
    }

    #[test]
    fn a_map_may_begin_before_the_first_open_packet() {
        let mut sender = sender(99, 20, None);
        reply(&mut sender, 10, &[12]);
        let sack = Sack { base: Psn::new(7), bits: 0b1_0000_1011, arrived: 11_000, ..Sack::default() };
        sender.on_sack(US(2), Reply::Ack(Psn::new(9)), &sack, u64::MAX);
        let states: Vec<_> = (10..17).map(|seq| sender.open[seq].state).collect();
        let arrived = |seq: usize| states[seq - 10] == State::Arrived;
        assert!(arrived(10) && arrived(12) && arrived(15) && !arrived(11) && !arrived(13) && !arrived(14));
    }

    #[test]
    fn a_window_of_bytes_and_the_reach_bound_new_packets() {
        let mut few = sender(9, 2, None);
        assert!(!few.ready(2_999) && few.ready(3_000));
        assert!(few.next(US(1), 3_500).is_some() && few.asks, "less than a frame is left of the window");
        let full = sender(500, 100, None);
        assert!(!full.ready(u64::MAX), "the receiver can note 100 packets");
        assert!(
            full.asks && !sender(500, 99, None).asks,
            "the last of them asks, or nobody would send again"
        );
    }

    #[test]
    fn the_timer_runs_for_each_packet_from_its_last_transmission() {
        let mut sender = sender(3, 2, None);
        assert!(sender.next(US(20), 1 << 40).is_some());
        sender.on_timeout(US(50));
        assert_eq!((sender.take_lost(), sender.take_lost(), sender.take_lost()), (Some(0), Some(1), None));
        assert_eq!((sender.flight, sender.deadline()), (300, US(70)));
        assert_eq!(sender.next(US(60), 1 << 40), Some((0, true)));
        reply(&mut sender, 0, &[2]);
        assert_eq!(sender.deadline(), US(110));
    }

    #[test]
    fn a_sender_without_credit_and_packets_in_flight_has_a_timer_all_the_same() {
        let mut sender = sender(3, 2, None);
        reply(&mut sender, 2, &[]);
        assert_eq!(sender.deadline(), Time::NEVER);
        sender.on_held(US(5), 0);
        assert_eq!(sender.deadline(), US(55));
        sender.on_timeout(US(55));
        assert_eq!((sender.deadline(), sender.take_lost()), (US(105), None));
    }

    #[test]
    fn the_timer_stops_when_the_last_packet_that_a_closed_window_held_back_has_arrived() {
        let mut sender = sender(2, 2, None);
        sender.on_timeout(US(50));
        sender.on_held(US(50), 0);
        assert_eq!((sender.backlog(), sender.deadline()), (1_300, US(100)));
        reply(&mut sender, 1, &[]);
        assert_eq!((sender.backlog(), sender.deadline()), (300, US(100)), "packet 1 still waits");
        sender.on_sack(US(60), Reply::Ack(Psn::new(1)), &Sack::default(), 0);
        assert_eq!((sender.backlog(), sender.deadline()), (0, Time::NEVER));
    }

    /// A sender of 20 packets that has sent four of them at time 0 under a large window, and whose window then shrinks to two.
    fn held_back(asks: bool) -> Sender {
        let mut sender = sender(20, 4, None);
        sender.asked = if asks { (3, Time::ZERO) } else { sender.asked };
        reply_in(&mut sender, 1, &[], 2_000);
        assert!(!sender.ready(2_000), "three packets are in flight");
        sender
    }

    #[test]
    fn a_window_that_shrinks_before_any_packet_has_asked_for_an_ack_makes_the_sender_ask() {
        let mut sender = held_back(false);
        assert!(sender.on_held(US(1), 2_000));
        assert_eq!(sender.deadline(), US(4), "three round trips of 1 us");
        assert!(!sender.on_held(US(2), 2_000) && sender.deadline() == US(4));
        assert_eq!((sender.take_probe(US(3)), sender.take_probe(US(4))), (None, Some(Kind::Control)));
        assert_eq!(sender.deadline(), US(9), "the probe may be lost");
        // The answer reports that all have arrived.
        let sack = Sack { cause: Psn::new(4), arrived: 4_000, probe: true, ..Sack::default() };
        sender.on_sack(US(5), Reply::Ack(Psn::new(3)), &sack, 2_000);
        assert!(sender.ready(2_000) && sender.deadline() == Time::NEVER);
    }

    #[test]
    fn a_sender_that_awaits_an_ack_does_not_ask_again() {
        let mut sender = held_back(true);
        assert!(!sender.on_held(US(1), 2_000));
        assert_eq!(sender.deadline(), US(50), "the timer of the oldest packet");
    }

    #[test]
    fn an_old_packet_is_lost_once_a_later_one_has_arrived() {
        let mut sender = sender(9, 3, Some(Infer::Age(3)));
        assert_eq!(reply(&mut sender, 0, &[1]).lost, 0, "the first round trip takes 1 us");
        let _ = sender.next(Time::from_ns(1_500), 1 << 40);
        let sack =
            |arrived: u32| Sack { base: Psn::new(1), bits: 0b101, arrived, ahead: 2, ..Sack::default() };
        let ack = Reply::Ack(Psn::new(u32::MAX));
        let late =
            |sender: &mut Sender, at: Time, bytes| sender.on_sack(at, ack, &sack(bytes), u64::MAX).1.lost;
        // Packet 3, which was sent at 1.5 us, has arrived; packets 0 and 2 were sent at 0.
        assert_eq!(late(&mut sender, US(3), 2_000), 0, "three round trips have not passed");
        assert_eq!(late(&mut sender, Time::from_ns(3_001), 2_000), 2_000);
        assert_eq!((sender.take_lost(), sender.take_lost(), sender.take_lost()), (Some(0), Some(2), None));
        assert_eq!(sender.next(US(4), 1 << 40), Some((0, true)));
    }

    #[test]
    fn many_later_arrivals_make_missing_packets_lost_once_per_recovery() {
        let mut sender = sender(40, 20, Some(Infer::Beyond { windows: 1.5, least: 5 }));
        reply_in(&mut sender, 0, &[], 9_000); // the window was larger before
        assert_eq!(reply_in(&mut sender, 1, &[3, 4, 5, 6, 7], 4_000).lost, 0, "six packets are 1.5 windows");
        let delivery = reply_in(&mut sender, 1, &[3, 4, 5, 6, 7, 8], 4_000);
        assert_eq!(
            (delivery.lost, sender.take_lost()),
            (2_000, Some(1)),
            "1 and 2, within the window from 1 on"
        );
        assert_eq!(sender.next(US(2), 1 << 40), Some((1, true)));
        assert_eq!(sender.next(US(2), 1 << 40), Some((2, true)));
        assert_eq!(reply_in(&mut sender, 1, &[3, 4, 5, 6, 7, 8], 4_000).lost, 0, "judged once");
        // The window moves on within the recovery.
        assert_eq!(reply_in(&mut sender, 9, &[], 4_000).lost, 4_000);
    }

    /// A sender that has sent 20 of 40 packets at time 0, and has got the ACK of the first one at 1 us, under a window of
    /// 4000 B.
    fn inferring() -> Sender {
        let mut sender = sender(40, 20, Some(Infer::Beyond { windows: 1.5, least: 5 }));
        let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
        sender.on_sack(US(1), Reply::Ack(Psn::new(0)), &first, 4_000);
        sender
    }

    /// Bytes that are lost by the answer to a probe that was sent `trip` before.
    fn probed(sender: &mut Sender, at: Time, trip: Time) -> u64 {
        probed_assuming(sender, at, trip, None)
    }

    fn probed_assuming(sender: &mut Sender, at: Time, trip: Time, assumed: Option<Time>) -> u64 {
        let (cause, base) = (Psn::new(1), Psn::new(2));
        let sack = Sack { cause, base, arrived: 1000, probe: true, ..Sack::default() };
        sender.on_answer(at, trip, assumed);
        sender.on_sack(at, Reply::Ack(Psn::new(0)), &sack, 4_000).1.lost
    }

    #[test]
    fn a_sender_that_hears_nothing_probes_after_three_round_trips_and_then_every_five() {
        let mut sender = inferring();
        assert_eq!(sender.deadline(), US(4));
        assert_eq!(sender.take_probe(Time::from_ns(3_999)), None);
        assert_eq!(sender.take_probe(US(4)), Some(Kind::Probe), "it waits where data waits");
        assert!(sender.take_probe(US(4)).is_none() && sender.deadline() == US(9));
        assert!(sender.take_probe(US(9)).is_some() && sender.deadline() == US(14));
        // Nothing is left to send for the first time.
        let mut last = self::sender(2, 2, Some(Infer::Beyond { windows: 1.5, least: 5 }));
        let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
        last.on_sack(US(1), Reply::Ack(Psn::new(0)), &first, 4_000);
        assert_eq!(last.deadline(), US(3));
        last.on_sack(US(2), Reply::Ack(Psn::new(1)), &first, 4_000);
        assert_eq!(last.deadline(), Time::NEVER, "everything has arrived");
    }

    #[test]
    fn a_probe_that_comes_back_without_delay_starts_a_recovery() {
        let mut late = inferring();
        assert!(late.take_probe(US(4)).is_some());
        assert_eq!(probed(&mut late, US(6), US(2)), 0, "data may be on its way behind other data");
        let mut prompt = inferring();
        assert!(prompt.take_probe(US(4)).is_some());
        assert_eq!(probed(&mut prompt, US(5), US(1)), 4_000, "as much as the window holds");
        let repeated: Vec<_> = (0..4).map_while(|_| prompt.next(US(6), 1_000)).collect();
        assert_eq!(repeated, [1, 2, 3, 4].map(|seq| (seq, true)), "they pass the window");
        assert!(!prompt.ready(1_000));
        // The timers of the rest of the recovery do not run, but those of repeated packets do.
        assert_eq!(prompt.due, US(56));
        // Another prompt answer starts anew.
        let again = prompt.probe_at;
        assert!(prompt.take_probe(again).is_some());
        assert_eq!(probed(&mut prompt, again, Time::ZERO), 4_000);
    }

    #[test]
    fn an_answer_that_comes_after_the_next_probe_was_long_on_its_way_all_the_same() {
        let mut sender = inferring();
        assert!(sender.take_probe(US(4)).is_some() && sender.take_probe(US(9)).is_some());
        assert_eq!(probed(&mut sender, US(10), US(6)), 0, "the queue took five round trips");
        assert!(sender.take_probe(US(13)).is_some());
        assert_eq!(probed(&mut sender, US(14), US(1)), 4_000);
    }

    /// uet-htsim keeps the time of the latest probe only.
    #[test]
    fn a_control_may_assume_the_delay_of_an_answer_to_an_earlier_probe() {
        for (delay, lost) in [(Time(999_999), 4_000), (US(1), 0)] {
            let mut sender = inferring();
            assert!(sender.take_probe(US(4)).is_some() && sender.take_probe(US(9)).is_some());
            assert_eq!(probed_assuming(&mut sender, US(10), US(6), Some(delay)), lost);
            sender.on_answer(US(11), US(2), Some(Time::ZERO));
            assert_eq!(sender.answered, US(2), "it answers the latest probe, whose time is known");
        }
    }

    /// The first ACK of an incast may have met a full queue.
    #[test]
    fn a_sender_whose_first_ack_is_late_probes_after_the_round_trips_of_an_idle_fabric() {
        let mut sender = sender(40, 20, Some(Infer::Beyond { windows: 1.5, least: 5 }));
        sender.expect(US(4));
        let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
        sender.on_sack(US(30), Reply::Ack(Psn::new(0)), &first, 4_000);
        assert_eq!(sender.deadline(), US(42));
        assert!(sender.take_probe(US(42)).is_some() && sender.deadline() == US(50), "the timer");
        assert_eq!(probed(&mut sender, US(49), US(7)), 4_000, "below the round trip and the target");
        let mut others = self::sender(40, 20, None);
        others.expect(US(4));
        assert_eq!((others.least_trip, others.longest_trip), (Time::NEVER, Time::ZERO));
    }
}
