//! The state of a queue pair, split by frequency of use: a sender's packets and replies, its messages, its
//! receiver.

use super::timers::{Timer, Timers};
use crate::outcome::MessageRecord;
use model::transport::{Receiver, Sender};
use model::{
    Congestion, Dialogue, HostId, Pace, Parts, PortIndex, PortSharing, QpId, Stamped, Steering, Time,
};

/// Sender state that every packet and every reply needs. It takes two cache lines, because a host may have
/// thousands of queue pairs and serve another one with every packet. [`SendQueue`] has the rest.
#[repr(C, align(64))]
pub(super) struct Outgoing<P: Parts> {
    pub(super) sender: P::Sender,
    /// Earliest start of the next packet by pacing, ps.
    pub(super) next_at: u64,
    /// End of the message that new packets belong to, in packets of the queue pair.
    pub(super) current_end: u64,
    // The second cache line begins here.
    pub(super) congestion: P::Congestion,
    pub(super) steering: P::Steering,
    /// End of the oldest unacknowledged message; [`u64::MAX`] if there is none.
    pub(super) acked_end: u64,
    /// Time of the timer entry in the heap; [`u64::MAX`] if there is none.
    pub(super) armed: u64,
    /// First transmissions of full frames of the current message that its record does not count yet.
    pub(super) fresh: u64,
    /// End of the last of these transmissions, ps.
    pub(super) fresh_sent: u64,
    pub(super) qp: QpId,
    pub(super) peer: Peer,
}

/// The other end of a queue pair, the own port by which packets go there, and the sender's flags, in one word: a [`HostId`]
/// leaves bits free.
#[derive(Clone, Copy)]
pub(super) struct Peer(u32);

const QUEUED: u32 = 1 << 31;
const WATCHED: u32 = 1 << 30;
const TO: u32 = HostId::MOST as u32 - 1;
const PORT_SHIFT: u32 = HostId::MOST.trailing_zeros();
const PORTS: u32 = PortSharing::MOST as u32 - 1;

impl Peer {
    /// Host `to`, by an own port of a shared NIC, for a queue pair that is not queued.
    pub(super) fn new(to: HostId, port: usize, watched: bool) -> Self {
        let mut peer = Peer(if watched { WATCHED } else { 0 });
        peer.lead(to, port);
        peer
    }

    /// Changes the destination and the own port.
    pub(super) fn lead(&mut self, to: HostId, port: usize) {
        self.0 = self.0 & (QUEUED | WATCHED) | (port as u32) << PORT_SHIFT | to.0;
    }

    /// The own port, if the NIC is shared.
    #[inline(always)]
    pub(super) fn port(self) -> usize {
        (self.0 >> PORT_SHIFT & PORTS) as usize
    }

    /// Destination.
    #[inline(always)]
    pub(super) fn to(self) -> HostId {
        HostId(self.0 & TO)
    }

    /// True while the queue pair is in [`Host::ready`](super::Host).
    #[inline(always)]
    pub(super) fn queued(self) -> bool {
        self.0 & QUEUED != 0
    }

    /// Sets [`Peer::queued`].
    #[inline(always)]
    pub(super) fn set_queued(&mut self, on: bool) {
        self.0 = self.0 & !QUEUED | if on { QUEUED } else { 0 };
    }

    /// True if the queue pair is recorded over time or followed.
    #[inline(always)]
    pub(super) fn watched(self) -> bool {
        self.0 & WATCHED != 0
    }
}

impl<P: Parts> Outgoing<P> {
    /// True if a window of this size would let the queue pair send now.
    #[inline(always)]
    pub(super) fn can_send(&self, window: u64) -> bool {
        self.may_go_on(self.sender.ready(window), window)
    }

    /// [`Outgoing::can_send`] for a sender that is `ready` or not under this window.
    #[inline(always)]
    pub(super) fn may_go_on(&self, ready: bool, window: u64) -> bool {
        !self.steering.holds() && (ready || self.steering.has_aside() && window > 0)
    }

    /// [`Congestion::gap`], where `line` is the pace at line rate: such a pace is asked of no control.
    #[inline(always)]
    pub(super) fn gap(&self, now: u64, pace: Pace, line: Pace, bytes: u64) -> Time {
        match pace <= line {
            true => pace.gap(bytes),
            false => self.congestion.gap(Time(now), pace, bytes),
        }
    }

    /// Counts another full frame of the current message, whose transmission ends at `at`.
    #[inline]
    pub(super) fn note_fresh(&mut self, at: u64) {
        self.fresh += 1;
        self.fresh_sent = at;
    }

    /// Reports the packets that the sender takes for lost to the steering, at `now` by the host's clock.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: u64) {
        while let Some(seq) = self.sender.take_lost() {
            self.steering.on_lost(Time(now), seq);
        }
    }

    /// Tells the sender that this window holds it back.
    #[inline]
    pub(super) fn note_held(&mut self, now: u64, slot: u32, clock: u64, window: u64, timers: &mut Timers) {
        if self.sender.on_held(Time(now), window) {
            self.arm(now, slot, clock, timers);
        }
    }

    /// Time at which its timer must fire. The host's clock is ahead by `clock`.
    #[inline]
    pub(super) fn deadline(&self, clock: u64) -> u64 {
        self.deadline_with(self.sender.position().deadline, clock)
    }

    /// [`Outgoing::deadline`] if `deadline` is that of the sender.
    #[inline(always)]
    fn deadline_with(&self, deadline: Time, clock: u64) -> u64 {
        deadline.ps().min(self.steering_deadline(clock))
    }

    /// Deadline of the steering, converted from the host's clock.
    #[inline]
    pub(super) fn steering_deadline(&self, clock: u64) -> u64 {
        match self.steering.deadline() {
            Time::NEVER => u64::MAX,
            at => at.ps().saturating_sub(clock),
        }
    }

    /// Makes sure that a timer fires no later than the deadline. A timer that fires too early is set again when it
    /// fires; every ACK moves the deadline, and the heap entry stays. A deadline may lie in the past, where a
    /// shorter timeout applies once few packets are in flight; the timer then fires next.
    #[inline]
    pub(super) fn arm(&mut self, now: u64, slot: u32, clock: u64, timers: &mut Timers) {
        self.arm_for(self.sender.position().deadline, now, slot, clock, timers);
    }

    /// [`Outgoing::arm`] if `deadline` is that of the sender.
    #[inline(always)]
    pub(super) fn arm_for(&mut self, deadline: Time, now: u64, slot: u32, clock: u64, timers: &mut Timers) {
        let deadline = self.deadline_with(deadline, clock);
        if deadline < self.armed {
            self.armed = deadline.max(now + 1);
            timers.push(self.armed, Timer::Retransmit(slot));
        }
    }
}

/// Sender state that a queue pair needs at most once per message.
pub(super) struct SendQueue {
    /// Index of its first message in `Host::outbound`, and the number of its messages.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Numbers of messages posted and acknowledged.
    pub(super) posted: u32,
    pub(super) acked: u32,
    /// Index in `Host::outbound` of the message that new packets belong to.
    pub(super) current: u32,
    /// Index of its counts in `Host::sends`, or [`NO_TRACK`](crate::setup::NO_TRACK).
    pub(super) track: u32,
}

/// A message at its sender.
#[derive(Default)]
pub(super) struct OutboundMessage {
    pub(super) record: MessageRecord,
    /// Packets of the queue pair up to the end of this message.
    pub(super) end: u64,
    /// Triggers that must still fire before the message may start.
    pub(super) needs: u32,
}

impl OutboundMessage {
    /// Notes that a transmission ended at `at`. Calls may come out of order.
    pub(super) fn sent_until(&mut self, at: u64) {
        let last = &mut self.record.last_sent;
        if *last == Time::NEVER || last.ps() < at {
            *last = Time(at);
        }
    }
}

/// Adds the uncounted frames of the current message to its record.
pub(super) fn settle<P: Parts>(
    out: &mut Outgoing<P>,
    queue: &SendQueue,
    outbound: &mut [OutboundMessage],
    on_wire: u32,
) {
    if out.fresh > 0 {
        let message = &mut outbound[queue.current as usize];
        message.record.wire_bytes += out.fresh * u64::from(on_wire);
        message.sent_until(out.fresh_sent);
        out.fresh = 0;
    }
}

impl SendQueue {
    /// Makes room for another message at the end of the queue. A queue whose room is full moves to the end of `outbound`, with
    /// twice the room. Only queues of posted messages grow, by one message at a time, so their room is a power of two.
    pub(super) fn make_room(&mut self, outbound: &mut Vec<OutboundMessage>) {
        if self.count > 0 && !self.count.is_power_of_two() {
            return;
        }
        let (old, first) = (self.first, outbound.len() as u32);
        for i in old..old + self.count {
            let moved = std::mem::take(&mut outbound[i as usize]);
            outbound.push(moved);
        }
        let room = (2 * self.count).max(1);
        outbound.resize_with((first + room) as usize, OutboundMessage::default);
        self.current = self.current - old + first;
        self.first = first;
    }

    /// Index of the message to which packet `seq` of the queue pair belongs.
    pub(super) fn find(&self, outbound: &[OutboundMessage], seq: u64) -> u32 {
        let mine = &outbound[self.first as usize..(self.first + self.count) as usize];
        self.first + mine.partition_point(|m| m.end <= seq) as u32
    }
}

/// Receiver state of a queue pair, in one cache line.
#[repr(align(64))]
pub(super) struct Incoming<P: Parts> {
    pub(super) receiver: P::Receiver,
    /// End of the next message to arrive, in packets of the queue pair; [`u64::MAX`] if there is none.
    pub(super) message_end: u64,
    /// Number of the next message to arrive.
    pub(super) message: u32,
    /// The sender.
    pub(super) from: Peer,
}

impl<P: Parts> Incoming<P> {
    /// Annex of a reply by this port to a packet with this annex, marked or not, which has arrived at `at` by its host's clock.
    #[inline(always)]
    pub(super) fn answer(&self, at: Time, packet: &P::Annex, marked: bool, port: PortIndex) -> P::Annex {
        packet.answer(at, marked, || self.receiver.telling(packet.entropy(), port))
    }
}

/// Counts of a queue pair that is recorded over time or followed.
pub(super) struct Recorded<T> {
    /// Its track in the series, or [`NO_TRACK`](crate::setup::NO_TRACK) if it is only followed.
    pub(super) track: u32,
    pub(super) counts: T,
}
