//! The messages of a host: when they are posted, what has been sent of them, and which messages they trigger.

use super::nic::{Abroad, Host};
use super::queue_pair::settle;
use super::timers::Timer;
use crate::outcome::MessageRecord;
use crate::posted::{AnyMessage, PostedMessage};
use crate::setup::Setup;
use model::plan::Trigger;
use model::transport::Sender;
use model::{MessageId, Parts, QpId, Time};

/// A data packet as it goes onto the wire.
pub(super) struct Framed {
    /// Bytes of the frame.
    pub(super) frame: u32,
    /// True for the last packet of its message.
    pub(super) last: bool,
}

impl<P: Parts> Host<P> {
    /// Counts a packet of any other kind than a full frame of the current message that is sent for the first time.
    #[inline(never)]
    pub(super) fn send_special(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        slot: u32,
        seq: u64,
        again: bool,
    ) -> Framed {
        let (out, queue) = (&mut self.outgoing[slot as usize], &mut self.send_queues[slot as usize]);
        while seq >= out.current_end {
            settle(out, queue, &mut self.outbound, self.full_frame + self.gap);
            queue.current += 1;
            out.current_end = self.outbound[queue.current as usize].end;
        }
        if !again && seq + 1 < out.current_end {
            out.note_fresh(now + self.full_time);
            return Framed { frame: self.full_frame, last: false };
        }
        let index = if again { queue.find(&self.outbound, seq) } else { queue.current };
        let last = seq + 1 == self.outbound[index as usize].end;
        let frame = if last {
            let bytes = setup.message(out.qp, index - queue.first).bytes();
            let wire = &setup.plan.wire;
            wire.data_frame(wire.payload_of(bytes, wire.packets(bytes) - 1))
        } else {
            self.full_frame
        };
        settle(out, queue, &mut self.outbound, self.full_frame + self.gap);
        let outbound = &mut self.outbound[index as usize];
        outbound.record.wire_bytes += u64::from(frame + self.gap);
        outbound.record.retransmitted += u64::from(again);
        outbound.sent_until(now + setup.time_on_wire(self.row, frame));
        self.data.retransmitted += u64::from(again);
        Framed { frame, last }
    }

    /// Counts a copy that a scheme makes of a packet.
    pub(super) fn copy_of(&mut self, setup: &Setup<'_>, now: u64, slot: u32, seq: u64) -> Framed {
        let framed = self.send_special(setup, now, slot, seq, true);
        // A copy is no retransmission.
        let queue = &self.send_queues[slot as usize];
        let index = queue.find(&self.outbound, seq);
        self.outbound[index as usize].record.retransmitted -= 1;
        self.data.retransmitted -= 1;
        framed
    }

    /// Notes the messages that are now acknowledged, and collects the triggers that they fire.
    #[inline(never)]
    pub(super) fn acknowledged(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let (out, queue) = (&mut self.outgoing[slot as usize], &mut self.send_queues[slot as usize]);
        let una = out.sender.position().una;
        while queue.acked < queue.posted && out.acked_end <= una {
            self.outbound[(queue.first + queue.acked) as usize].record.acked = Time(now);
            let job = match setup.message(out.qp, queue.acked) {
                AnyMessage::Planned(message) => {
                    let triggers = message.on_acked.start as usize..message.on_acked.end as usize;
                    self.freed.extend_from_slice(&setup.plan.triggers[triggers]);
                    Some(message.job)
                }
                AnyMessage::Posted(_) => {
                    self.abroad.push(Abroad::Acked(out.qp));
                    None
                }
            };
            if !job.is_some_and(|job| setup.plan.jobs[usize::from(job)].background) {
                self.unfinished -= 1;
                self.finished += 1;
            }
            queue.acked += 1;
            let more = queue.acked < queue.count;
            out.acked_end =
                if more { self.outbound[(queue.first + queue.acked) as usize].end } else { u64::MAX };
        }
    }

    /// Takes a trigger or a report for the engine, which hands it on at the same instant.
    #[inline]
    pub(crate) fn take_abroad(&mut self) -> Option<Abroad> {
        self.abroad.pop()
    }

    /// Fires a trigger that a task, or another port of the host, has collected for a message that this port sends.
    pub(crate) fn on_trigger(&mut self, setup: &Setup<'_>, now: u64, m: MessageId) {
        self.last_event = now;
        self.freed.push(Trigger::Message(m));
        self.fire(setup, now);
    }

    /// Fires the collected triggers. Each targets a message that this port sends, another port of the host, or a task.
    pub(super) fn fire(&mut self, setup: &Setup<'_>, now: u64) {
        while let Some(trigger) = self.freed.pop() {
            let own = match trigger {
                Trigger::Message(m) => Some((m, &setup.plan.messages[m.index()])),
                Trigger::Task(_) => None,
            };
            let own =
                own.filter(|(_, message)| setup.home(setup.plan.qps[message.qp.index()].from) == self.id);
            let Some((m, message)) = own else {
                self.abroad.push(Abroad::Trigger(trigger));
                continue;
            };
            let slot = setup.sender_slot[message.qp.index()];
            let first = setup.plan.qps[message.qp.index()].messages.start;
            let queue = &self.send_queues[slot as usize];
            let needs = &mut self.outbound[(queue.first + (m.0 - first)) as usize].needs;
            *needs = needs.saturating_sub(1);
            if *needs > 0 {
                continue;
            }
            if message.start.ps() > now {
                self.liveness.pending_starts += 1;
                self.timers.push(message.start.ps(), Timer::Start(slot));
            } else {
                self.post(setup, now, slot);
            }
        }
    }

    /// Posts the messages of a queue pair that may start, in order.
    pub(super) fn post(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let (out, queue) = (&mut self.outgoing[slot as usize], &mut self.send_queues[slot as usize]);
        while queue.posted < queue.count {
            let message = setup.message(out.qp, queue.posted);
            let outbound = &mut self.outbound[(queue.first + queue.posted) as usize];
            if outbound.needs > 0 || message.start().ps() > now {
                break;
            }
            outbound.record.start = Time(now);
            self.liveness.last_progress = now;
            let (wire, bytes) = (&setup.plan.wire, message.bytes());
            let packets = wire.packets(bytes);
            let last = wire.data_frame(wire.payload_of(bytes, packets - 1));
            out.sender.post_message(packets, self.full_frame, last);
            queue.posted += 1;
        }
        self.enqueue(slot, now);
    }

    /// Adds the newest posted message of a queue pair, and posts it at once.
    pub(crate) fn on_post(&mut self, setup: &Setup<'_>, now: u64, qp: QpId) {
        self.last_event = now;
        self.add_posted(setup, qp);
        self.post(setup, now, setup.sender_slot[qp.index()]);
    }

    /// Adds the newest posted message of a queue pair, and posts it when a timer fires at its start.
    pub(crate) fn post_later(&mut self, setup: &Setup<'_>, qp: QpId) {
        let start = self.add_posted(setup, qp);
        self.liveness.pending_starts += 1;
        self.timers.push(start.ps(), Timer::Start(setup.sender_slot[qp.index()]));
    }

    /// Adds the newest posted message of a queue pair. Returns its start.
    fn add_posted(&mut self, setup: &Setup<'_>, qp: QpId) -> Time {
        let slot = setup.sender_slot[qp.index()] as usize;
        let Some(&PostedMessage { start, end, .. }) = setup.posted(qp).and_then(<[_]>::last) else {
            return Time::NEVER;
        };
        let (out, queue) = (&mut self.outgoing[slot], &mut self.send_queues[slot]);
        queue.make_room(&mut self.outbound);
        self.outbound[(queue.first + queue.count) as usize].end = end;
        if queue.count == 0 {
            out.current_end = end;
        }
        if queue.acked == queue.count {
            out.acked_end = end;
        }
        queue.count += 1;
        self.unfinished += 1;
        start
    }

    /// The current record of message `i` of a queue pair.
    pub(super) fn record(&self, slot: usize, i: u32) -> MessageRecord {
        let (out, queue) = (&self.outgoing[slot], &self.send_queues[slot]);
        let index = queue.first + i;
        let mut record = self.outbound[index as usize].record;
        if index == queue.current && out.fresh > 0 {
            record.wire_bytes += out.fresh * u64::from(self.full_frame + self.gap);
            // No retransmission of this message has been sent since these packets.
            record.last_sent = Time(out.fresh_sent);
        }
        record
    }
}
