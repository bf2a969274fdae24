//! The state of a queue pair, by how often it is used: a sender's packets and replies, its messages, its receiver.

use super::timers::{Timer, Timers};
use crate::outcome::MessageRecord;
use model::transport::Sender;
use model::{Annex, HostId, Parts, QpId, Steering, Time};

/// What every packet and every reply of a queue pair needs: two cache lines, as a host may have thousands of
/// queue pairs and serves another one with every packet. The rest is in [`SendQueue`].
#[repr(C, align(64))]
pub(super) struct Outgoing<P: Parts> {
    pub(super) sender: P::Sender,
    /// Earliest start of the next packet by pacing.
    pub(super) next_at: u64,
    /// Where the message ends that new packets belong to.
    pub(super) current_end: u64,
    // The second line begins here.
    pub(super) congestion: P::Congestion,
    pub(super) steering: P::Steering,
    /// Where the oldest unacknowledged message ends; [`u64::MAX`] if there is none.
    pub(super) acked_end: u64,
    /// Time for which a timer entry exists; [`u64::MAX`] if none does.
    pub(super) armed: u64,
    /// Full frames of the current message, sent for the first time, that its record does not count yet.
    pub(super) fresh: u64,
    /// When the last of them had left.
    pub(super) fresh_sent: u64,
    pub(super) qp: QpId,
    pub(super) to: HostId,
    /// It stands in [`Host::ready`].
    pub(super) queued: bool,
    /// It is recorded over time, or followed.
    pub(super) watched: bool,
}

impl<P: Parts> Outgoing<P> {
    /// It would send something now if the window is that large.
    #[inline]
    pub(super) fn wants(&self, window: u64) -> bool {
        if !P::Annex::CARRIES {
            return self.sender.ready(window);
        }
        !self.steering.holds() && (self.sender.ready(window) || self.steering.has_aside() && window > 0)
    }

    /// Another full frame of the current message; it has left at `at`.
    #[inline]
    pub(super) fn note_fresh(&mut self, at: u64) {
        self.fresh += 1;
        self.fresh_sent = at;
    }

    /// When its timer must fire. The host's clock is ahead by `clock`.
    #[inline]
    pub(super) fn deadline(&self, clock: u64) -> u64 {
        let deadline = self.sender.deadline().ps();
        match P::Annex::CARRIES {
            true => deadline.min(self.steering_deadline(clock)),
            false => deadline,
        }
    }

    /// The steering's part of that.
    #[inline]
    pub(super) fn steering_deadline(&self, clock: u64) -> u64 {
        match self.steering.deadline() {
            Time::NEVER => u64::MAX,
            at => at.ps().saturating_sub(clock),
        }
    }

    /// Makes sure that a timer fires no later than the sender's deadline. An entry that fires earlier than needed
    /// stays and comes again then: with every ACK the deadline moves, and the entry need not. IRN's deadline can move into
    /// the past, when so few packets are left that its shorter timeout holds: then it fires next.
    #[inline]
    pub(super) fn arm(&mut self, now: u64, slot: u32, clock: u64, timers: &mut Timers) {
        let deadline = self.deadline(clock);
        if deadline < self.armed {
            self.armed = deadline.max(now + 1);
            timers.push(self.armed, Timer::Retransmit(slot));
        }
    }
}

/// What a queue pair needs once per message or less.
pub(super) struct SendQueue {
    /// First of its messages in [`Host::outbound`], and how many there are.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Messages posted, and acknowledged.
    pub(super) posted: u32,
    pub(super) acked: u32,
    /// Message that new packets belong to, in [`Host::outbound`].
    pub(super) current: u32,
    /// Where it is counted over time, in [`Host::sends`], or [`NO_TRACK`].
    pub(super) track: u32,
}

/// A message as its sender keeps it.
pub(super) struct OutboundMessage {
    pub(super) record: MessageRecord,
    /// Packets of the queue pair up to and including this message.
    pub(super) end: u64,
    /// Triggers still to fire.
    pub(super) needs: u32,
}

impl OutboundMessage {
    /// The time of a transmission that ended at `at`, or of an earlier one.
    pub(super) fn sent_until(&mut self, at: u64) {
        let last = &mut self.record.last_sent;
        if *last == Time::NEVER || last.ps() < at {
            *last = Time(at);
        }
    }
}

/// Enters what was sent of the current message into its record.
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
    /// The message that packet `seq` of the queue pair belongs to.
    pub(super) fn find(&self, outbound: &[OutboundMessage], seq: u64) -> u32 {
        let mine = &outbound[self.first as usize..(self.first + self.count) as usize];
        self.first + mine.partition_point(|m| m.end <= seq) as u32
    }
}

/// The receiving side of a queue pair: one cache line.
#[repr(align(64))]
pub(super) struct Incoming<P: Parts> {
    pub(super) receiver: P::Receiver,
    /// Packets at which the next message has arrived whole; [`u64::MAX`] if there is none.
    pub(super) message_end: u64,
    /// That message.
    pub(super) message: u32,
    pub(super) from: HostId,
}
