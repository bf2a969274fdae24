//! A host's NIC: its queue pairs, the order in which they send, its timers, and its part in the workload.
//!
//! Both engines use it; it knows nothing of ports, queues or windows. Queue pairs with something to send
//! stand in a heap by the time at which their pacing lets them: the one that has been allowed longest goes
//! first, which is round robin among queue pairs of equal rate.

use crate::outcome::{Control, Data, MessageRecord, Waiting};
use crate::series::Recorder;
use crate::setup::Setup;
use model::congestion::Congestion;
use model::transport::{Fate, Receiver, Reply, Sender};
use model::wire::Clock;
use model::{HostId, Kind, MessageId, Packet, Parts, Psn, QpId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The sending side of a queue pair.
struct Outgoing<P: Parts> {
    sender: P::Sender,
    congestion: P::Congestion,
    qp: QpId,
    to: HostId,
    /// First of its records in [`Host::records`], and how many there are.
    first: u32,
    count: u32,
    /// Messages posted, and acknowledged.
    posted: u32,
    acked: u32,
    /// Record of the message that new packets belong to, and where it ends.
    current: u32,
    current_end: u64,
    /// Earliest start of the next packet by pacing.
    next_at: u64,
    /// Time for which a timer entry exists in the heap; [`u64::MAX`] if none does.
    armed: u64,
    /// It stands in [`Host::ready`].
    queued: bool,
    /// Track in the series.
    track: u32,
}

impl<P: Parts> Outgoing<P> {
    /// Makes sure that a timer fires no later than the sender's deadline.
    #[inline]
    fn arm(&mut self, slot: u32, timers: &mut BinaryHeap<Reverse<(u64, Timer)>>) {
        let deadline = self.sender.deadline().ps();
        if deadline < self.armed {
            self.armed = deadline;
            timers.push(Reverse((deadline, Timer::Retransmit(slot))));
        }
    }
}

/// The receiving side of a queue pair.
struct Incoming<P: Parts> {
    receiver: P::Receiver,
    from: HostId,
    /// Next message to be received whole, and the packet count at which it is.
    message: u32,
    last_message: u32,
    message_end: u64,
}

/// A message as its sender keeps it.
struct Outbound {
    record: MessageRecord,
    /// Packets of the queue pair up to and including this message.
    end: u64,
    /// Triggers still to fire.
    needs: u32,
}

/// A host.
pub(crate) struct Host<P: Parts> {
    outgoing: Vec<Outgoing<P>>,
    incoming: Vec<Incoming<P>>,
    first_incoming: u32,
    outbound: Vec<Outbound>,
    /// When messages to this host arrived whole; its messages are numbered in a row.
    received: Vec<Time>,
    first_received: u32,
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    freed: Vec<MessageId>,
    full_frame: u32,
    /// Row of transmission times of its port.
    row: u32,
    pub(crate) data: Data,
    pub(crate) control: Control,
    /// Messages that count and are not yet acknowledged.
    pub(crate) unfinished: u64,
    pub(crate) finished: u64,
    pub(crate) recorder: Recorder,
    /// When something last reached this host.
    pub(crate) last_event: u64,
    /// When a packet was last accepted or a message posted.
    last_progress: u64,
    /// Messages whose start lies in the future.
    pending_starts: u64,
}

/// What a host timer is for; the order is the order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start(u32),
    Retransmit(u32),
}

/// Packets that a host sends in answer to one arrival: a reply and a CNP at most.
pub(crate) type Replies = [Option<Packet>; 2];

impl<P: Parts> Host<P> {
    pub(crate) fn new(setup: &Setup<'_>, parts: &P, id: HostId) -> Self {
        let plan = setup.plan;
        let mut host = Host {
            outgoing: Vec::new(),
            incoming: Vec::new(),
            first_incoming: plan.qps.partition_point(|qp| qp.to < id) as u32,
            outbound: Vec::new(),
            received: Vec::new(),
            first_received: 0,
            ready: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            freed: Vec::new(),
            full_frame: plan.wire.max_frame(),
            row: setup.ports[plan.fabric.base(id.node()) as usize].row,
            data: Data::default(),
            control: Control::default(),
            unfinished: 0,
            finished: 0,
            recorder: Recorder::new(&plan.series),
            last_event: 0,
            last_progress: 0,
            pending_starts: 0,
        };
        let end = plan.qps.partition_point(|qp| qp.to <= id) as u32;
        for q in host.first_incoming..end {
            let qp = &plan.qps[q as usize];
            if q == host.first_incoming {
                host.first_received = qp.messages.start;
            }
            host.received.resize((qp.messages.end - host.first_received) as usize, Time::NEVER);
            let receiver = parts.receiver(plan, QpId(q));
            let (message, last_message) = (qp.messages.start, qp.messages.end);
            let mut incoming = Incoming { receiver, from: qp.from, message, last_message, message_end: 0 };
            if message < last_message {
                incoming.message_end = plan.wire.packets(plan.messages[message as usize].bytes);
            }
            host.incoming.push(incoming);
        }
        host
    }

    /// Adds the sending side of a queue pair; called in the order of queue pairs.
    pub(crate) fn add_outgoing(&mut self, setup: &Setup<'_>, parts: &P, id: QpId) {
        let plan = setup.plan;
        let qp = &plan.qps[id.index()];
        let first = self.outbound.len() as u32;
        let mut end = 0;
        for m in qp.messages.clone() {
            let message = &plan.messages[m as usize];
            end += plan.wire.packets(message.bytes);
            self.outbound.push(Outbound { record: MessageRecord::default(), end, needs: message.needs });
            if !plan.jobs[message.job as usize].background {
                self.unfinished += 1;
            }
            if message.needs == 0 {
                self.pending_starts += 1;
                self.timers.push(Reverse((message.start.ps(), Timer::Start(m))));
            }
        }
        let track = plan.series.qps.iter().position(|q| *q == id);
        self.outgoing.push(Outgoing {
            sender: parts.sender(plan, id),
            congestion: parts.congestion(plan, id),
            qp: id,
            to: qp.to,
            first,
            count: qp.messages.len() as u32,
            posted: 0,
            acked: 0,
            current: first,
            current_end: self.outbound.get(first as usize).map_or(0, |o| o.end),
            next_at: 0,
            armed: u64::MAX,
            queued: false,
            track: track.map_or(crate::setup::NO_TRACK, |t| t as u32),
        });
    }

    /// When the queue pair that may send first may do so; [`u64::MAX`] if none wants to.
    #[inline]
    pub(crate) fn eligible_at(&self) -> u64 {
        self.ready.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    /// When the next timer fires; [`u64::MAX`] if none runs.
    #[inline]
    pub(crate) fn timer_at(&self) -> u64 {
        self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    pub(crate) fn last_progress(&self) -> u64 {
        self.last_progress
    }

    pub(crate) fn pending_starts(&self) -> u64 {
        self.pending_starts
    }

    /// The data packet that starts on the wire now. `None` if no queue pair may send at `now` after all; then
    /// [`Host::eligible_at`] has moved.
    pub(crate) fn pull(&mut self, setup: &Setup<'_>, now: u64) -> Option<Packet> {
        let wire = &setup.plan.wire;
        while let Some(mut top) = self.ready.peek_mut() {
            let Reverse((at, slot)) = *top;
            if at > now {
                return None;
            }
            let out = &mut self.outgoing[slot as usize];
            let allowed = out.congestion.allowance(Time(now));
            if allowed.not_before.ps() > now {
                *top = Reverse((allowed.not_before.ps(), slot));
                continue;
            }
            let Some((seq, again)) = out.sender.next(Time(now), allowed.window) else {
                out.queued = false;
                std::collections::binary_heap::PeekMut::pop(top);
                continue;
            };
            while seq >= out.current_end {
                out.current += 1;
                out.current_end = self.outbound[out.current as usize].end;
            }
            let index = if again { find(&self.outbound, out, seq) } else { out.current };
            let message = &mut self.outbound[index as usize];
            let last = seq + 1 == message.end;
            let frame = if last {
                let m = setup.plan.qps[out.qp.index()].messages.start + (index - out.first);
                let bytes = setup.plan.messages[m as usize].bytes;
                wire.data_frame(wire.payload_of(bytes, wire.packets(bytes) - 1))
            } else {
                self.full_frame
            };
            let on_wire = (frame + wire.gap) as u64;
            message.record.wire_bytes += on_wire;
            message.record.retransmitted += again as u64;
            message.record.last_sent = Time(now + setup.time_on_wire(self.row, frame));
            self.data.sent += 1;
            self.data.retransmitted += again as u64;
            if out.track != crate::setup::NO_TRACK {
                self.recorder.sent(out.track, now, on_wire, again);
            }
            let gap = allowed.pace.gap(on_wire);
            out.next_at = now + if wire.clock == Clock::Picosecond { gap } else { whole_ns(gap) }.ps();
            let packet = Packet::new(Kind::Data, out.qp, out.to, Psn::from_seq(seq), frame)
                .with_last(last)
                .with_retransmission(again);
            out.arm(slot, &mut self.timers);
            if out.sender.ready(allowed.window) {
                *top = Reverse((out.next_at, slot));
            } else {
                out.queued = false;
                std::collections::binary_heap::PeekMut::pop(top);
            }
            return Some(packet);
        }
        None
    }

    /// A packet has arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self, setup: &Setup<'_>, now: u64, pkt: &Packet) -> Replies {
        self.last_event = now;
        if pkt.is_data() {
            self.on_data(setup, now, pkt)
        } else {
            self.control.arrived += 1;
            self.on_control(setup, now, pkt);
            [None, None]
        }
    }

    fn on_data(&mut self, setup: &Setup<'_>, now: u64, pkt: &Packet) -> Replies {
        let incoming = &mut self.incoming[(pkt.qp().0 - self.first_incoming) as usize];
        let got = incoming.receiver.on_data(Time(now), pkt.psn(), pkt.marked(), pkt.last());
        match got.fate {
            Fate::Accepted => {
                self.data.accepted += 1;
                self.last_progress = now;
            }
            Fate::Duplicate => {
                self.data.duplicate += 1;
                self.data.spurious += 1;
            }
            Fate::Discarded => self.data.discarded += 1,
        }
        self.data.out_of_order += got.out_of_order as u64;
        let wire = &setup.plan.wire;
        let (from, qp) = (incoming.from, pkt.qp());
        let reply = got.reply.map(|reply| {
            let (kind, psn) = match reply {
                Reply::Ack(psn) => (Kind::Ack, psn),
                Reply::Nack(psn) => (Kind::Nack, psn),
            };
            match kind {
                Kind::Nack => self.control.nack += 1,
                _ => self.control.ack += 1,
            }
            self.control.created += 1;
            Packet::new(kind, qp, from, psn, wire.ack).with_echo(got.echo)
        });
        let cnp = got.cnp.then(|| {
            self.control.cnp += 1;
            self.control.created += 1;
            Packet::new(Kind::Cnp, qp, from, pkt.psn(), wire.cnp)
        });
        if got.fate == Fate::Accepted {
            self.complete(setup, now, qp);
        }
        [reply, cnp]
    }

    /// Notes the messages of `qp` that have now arrived whole, and fires their triggers.
    #[inline]
    fn complete(&mut self, setup: &Setup<'_>, now: u64, qp: QpId) {
        let incoming = &mut self.incoming[(qp.0 - self.first_incoming) as usize];
        let expected = incoming.receiver.expected();
        while incoming.message < incoming.last_message && expected >= incoming.message_end {
            let message = &setup.plan.messages[incoming.message as usize];
            self.received[(incoming.message - self.first_received) as usize] = Time(now);
            let triggers =
                &setup.plan.triggers[message.on_received.start as usize..message.on_received.end as usize];
            self.freed.extend_from_slice(triggers);
            incoming.message += 1;
            if incoming.message < incoming.last_message {
                let next = &setup.plan.messages[incoming.message as usize];
                incoming.message_end += setup.plan.wire.packets(next.bytes);
            }
        }
        self.fire(setup, now);
    }

    fn on_control(&mut self, setup: &Setup<'_>, now: u64, pkt: &Packet) {
        let slot = setup.sender_slot[pkt.qp().index()];
        let out = &mut self.outgoing[slot as usize];
        let reply = match pkt.kind() {
            Kind::Ack => Reply::Ack(pkt.psn()),
            Kind::Nack => Reply::Nack(pkt.psn()),
            Kind::Cnp => {
                out.congestion.on_cnp(Time(now));
                return;
            }
            Kind::Data => return,
        };
        let progress = out.sender.on_reply(Time(now), reply);
        // Progress after a long (backed off) timeout brings the next one forward.
        out.arm(slot, &mut self.timers);
        out.congestion.on_ack(Time(now), progress.acked, pkt.echo());
        if progress.nack {
            out.congestion.on_nack(Time(now));
        }
        if progress.acked > 0 {
            let una = out.sender.una();
            while out.acked < out.posted && self.outbound[(out.first + out.acked) as usize].end <= una {
                let m = setup.plan.qps[out.qp.index()].messages.start + out.acked;
                let message = &setup.plan.messages[m as usize];
                self.outbound[(out.first + out.acked) as usize].record.acked = Time(now);
                if !setup.plan.jobs[message.job as usize].background {
                    self.unfinished -= 1;
                    self.finished += 1;
                }
                let triggers =
                    &setup.plan.triggers[message.on_acked.start as usize..message.on_acked.end as usize];
                self.freed.extend_from_slice(triggers);
                out.acked += 1;
            }
        }
        self.enqueue(slot, now);
        self.fire(setup, now);
    }

    /// Carries out the triggers in `freed`: each fires at a message that this host sends.
    #[inline]
    fn fire(&mut self, setup: &Setup<'_>, now: u64) {
        while let Some(m) = self.freed.pop() {
            let message = &setup.plan.messages[m.index()];
            let slot = setup.sender_slot[message.qp.index()];
            let first = setup.plan.qps[message.qp.index()].messages.start;
            let out = &self.outgoing[slot as usize];
            let needs = &mut self.outbound[(out.first + (m.0 - first)) as usize].needs;
            *needs = needs.saturating_sub(1);
            if *needs > 0 {
                continue;
            }
            if message.start.ps() > now {
                self.pending_starts += 1;
                self.timers.push(Reverse((message.start.ps(), Timer::Start(m.0))));
            } else {
                self.post(setup, now, slot);
            }
        }
    }

    /// Posts the messages of a queue pair that may start, in their order.
    fn post(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let out = &mut self.outgoing[slot as usize];
        let first = setup.plan.qps[out.qp.index()].messages.start;
        while out.posted < out.count {
            let message = &setup.plan.messages[(first + out.posted) as usize];
            let outbound = &mut self.outbound[(out.first + out.posted) as usize];
            if outbound.needs > 0 || message.start.ps() > now {
                break;
            }
            outbound.record.start = Time(now);
            self.last_progress = now;
            out.sender.post(setup.plan.wire.packets(message.bytes));
            out.posted += 1;
        }
        self.enqueue(slot, now);
    }

    /// Puts a queue pair into the heap if it has something to send and does not stand there.
    #[inline]
    fn enqueue(&mut self, slot: u32, now: u64) {
        let out = &mut self.outgoing[slot as usize];
        if out.queued {
            return;
        }
        let allowed = out.congestion.allowance(Time(now));
        if out.sender.ready(allowed.window) {
            out.queued = true;
            self.ready.push(Reverse((out.next_at.max(now), slot)));
        }
    }

    /// Fires what is due at `now`.
    pub(crate) fn on_timer(&mut self, setup: &Setup<'_>, now: u64) {
        while let Some(&Reverse((at, timer))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Start(m) => {
                    self.pending_starts -= 1;
                    let qp = setup.plan.messages[m as usize].qp;
                    self.post(setup, now, setup.sender_slot[qp.index()]);
                }
                Timer::Retransmit(slot) => {
                    let out = &mut self.outgoing[slot as usize];
                    if at != out.armed {
                        continue; // an earlier entry took its place
                    }
                    out.armed = u64::MAX;
                    let mut deadline = out.sender.deadline().ps();
                    if deadline <= now {
                        out.sender.on_timeout(Time(now));
                        out.congestion.on_timeout(Time(now));
                        self.control.timeout += 1;
                        deadline = out.sender.deadline().ps();
                    }
                    if deadline != u64::MAX {
                        out.armed = deadline.max(now + 1);
                        self.timers.push(Reverse((out.armed, Timer::Retransmit(slot))));
                    }
                    self.enqueue(slot, now);
                }
            }
        }
    }

    /// Copies this host's records into the outcome's table.
    pub(crate) fn collect(&self, setup: &Setup<'_>, records: &mut [MessageRecord]) {
        for out in &self.outgoing {
            let first = setup.plan.qps[out.qp.index()].messages.start;
            for i in 0..out.count {
                let record = &mut records[(first + i) as usize];
                let received = record.received;
                *record = self.outbound[(out.first + i) as usize].record;
                record.received = received;
            }
        }
        for (i, at) in self.received.iter().enumerate() {
            records[self.first_received as usize + i].received = *at;
        }
    }

    /// Messages of this host that count and are not finished, with what they wait for.
    pub(crate) fn waiting(&self, setup: &Setup<'_>) -> Vec<(MessageId, Waiting)> {
        let mut list = Vec::new();
        for out in &self.outgoing {
            let first = setup.plan.qps[out.qp.index()].messages.start;
            for i in out.acked..out.count {
                let id = MessageId(first + i);
                if setup.plan.job(id).background {
                    continue;
                }
                let outbound = &self.outbound[(out.first + i) as usize];
                let waiting = if outbound.needs > 0 {
                    Waiting::Triggers
                } else if i >= out.posted {
                    Waiting::Predecessor
                } else {
                    let total = setup.plan.wire.packets(setup.plan.messages[id.index()].bytes);
                    let acked = (out.sender.una() + total).saturating_sub(outbound.end);
                    Waiting::Packets { acked, total }
                };
                list.push((id, waiting));
            }
        }
        list
    }
}

/// As the ns-3 family paces: in whole nanoseconds, as its links count.
const fn whole_ns(gap: Time) -> Time {
    Time(gap.ps() / 1000 * 1000)
}

/// The record of the message that packet `seq` of a queue pair belongs to.
fn find<P: Parts>(outbound: &[Outbound], out: &Outgoing<P>, seq: u64) -> u32 {
    let mine = &outbound[out.first as usize..(out.first + out.count) as usize];
    out.first + mine.partition_point(|m| m.end <= seq) as u32
}
