//! The receiver's ToR: packets that have overtaken the old path wait for its TAIL.

use super::Thetas;
use super::tags::{EPOCHS, Header, TorSignal, between};
use crate::flows::Flows;
use crate::racks::Racks;
use model::scheme::Handle;
use model::{Cx, Packet, PortIndex, QpId, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A flow whose receiver is a host of this ToR.
#[derive(Clone, Debug, Default)]
struct Incoming {
    epoch: u8,
    /// Newest packet of this epoch's old path: when the sender's ToR sent it (its stamp), and when it arrived here.
    old: Option<(u16, Time)>,
    /// The TAIL of this epoch has come, or its timer has fired.
    closed: bool,
    queue: Option<Box<Queue>>,
}

/// A reorder queue.
#[derive(Clone, Debug)]
struct Queue {
    port: PortIndex,
    held: Vec<Handle>,
    bytes: u64,
    /// Stamp of the TAIL: when the sender's ToR sent it.
    tail: u16,
    /// When the timer fires.
    resume: Time,
}

/// A count and its peak.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    now: u64,
    peak: u64,
}

impl Gauge {
    fn add(&mut self, n: u64) {
        self.now += n;
        self.peak = self.peak.max(self.now);
    }

    fn take(&mut self, n: u64) {
        self.now -= n;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    holds: u64,
    timers: u64,
    full: u64,
    held_over: u64,
    notices: u64,
    packets: Gauge,
    bytes: Gauge,
    queues: Gauge,
}

/// Receiving part of a ToR.
#[derive(Clone, Debug)]
pub(super) struct Far {
    thetas: Thetas,
    signal: u32,
    most_queues: u32,
    /// Reorder queues in use, by port.
    queues: Vec<u32>,
    flows: Flows<Incoming>,
    timers: BTreeSet<(Time, QpId)>,
    /// Earliest time of the next NOTIFY, by the sender's rack and path.
    next_notice: BTreeMap<(u16, u16), Time>,
    counts: Counts,
}

impl Far {
    pub(super) fn new(ports: usize, most_queues: u32, signal: u32, thetas: Thetas) -> Self {
        Far {
            thetas,
            signal,
            most_queues,
            queues: vec![0; ports],
            flows: Flows::new(),
            timers: BTreeSet::new(),
            next_notice: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Data from another rack to the host behind `port`.
    pub(super) fn arrive(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        port: PortIndex,
        racks: &Racks,
    ) -> Verdict {
        let (qp, header) = (pkt.qp(), Header::read(cx.tag));
        if pkt.marked() {
            self.notify(cx, qp, header.path, racks);
        }
        if header.request {
            self.send_signal(cx, qp, TorSignal::Reply(header.epoch), racks);
        }
        let fresh = || Incoming { epoch: header.epoch, old: None, closed: false, queue: None };
        let flow = self.flows.entry_or(qp, fresh);
        // At most one older epoch is in flight: a reply in time proves that all earlier packets have arrived.
        match header.epoch.wrapping_sub(flow.epoch) % EPOCHS {
            0 => {}
            behind if behind == EPOCHS - 1 => return Verdict::Forward(port),
            _ => {
                let queue = flow.queue.take();
                *flow = fresh();
                if let Some(queue) = queue {
                    self.counts.held_over += 1;
                    self.timers.remove(&(queue.resume, qp));
                    self.release(cx, *queue);
                }
            }
        }
        match header.rerouted {
            true => self.overtaking(cx, pkt, port, header),
            false => {
                self.in_order(cx, qp, header, racks);
                Verdict::Forward(port)
            }
        }
    }

    /// A packet of the old path.
    fn in_order(&mut self, cx: &mut Cx<'_>, qp: QpId, header: Header, racks: &Racks) {
        if header.tail {
            self.send_signal(cx, qp, TorSignal::Clear(header.epoch), racks);
        }
        let Some(flow) = self.flows.get_mut(qp) else { return };
        flow.old = Some((header.stamp, cx.now));
        flow.closed |= header.tail;
        if header.tail {
            // Released packets join the port's queue behind this packet.
            if let Some(queue) = flow.queue.take() {
                self.timers.remove(&(queue.resume, qp));
                self.release(cx, *queue);
            }
        } else if let Some(queue) = &mut flow.queue {
            self.timers.remove(&(queue.resume, qp));
            queue.resume = cx.now + between(header.stamp, queue.tail) + self.thetas.resume_extra;
            queue.resume = queue.resume.max(Time(cx.now.ps() + 1));
            self.timers.insert((queue.resume, qp));
            cx.wake_at(queue.resume);
        }
    }

    /// A packet of the new path.
    fn overtaking(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex, header: Header) -> Verdict {
        let (qp, now) = (pkt.qp(), cx.now);
        let forward = Verdict::Forward(port);
        let Some(flow) = self.flows.get_mut(qp).filter(|flow| !flow.closed) else { return forward };
        if flow.queue.is_none() {
            let Some(used) = self.queues.get_mut(port.index()) else { return forward };
            if *used >= self.most_queues {
                self.counts.full += 1;
                return forward;
            }
            *used += 1;
            self.counts.queues.add(1);
            let resume = match flow.old {
                Some((sent, came)) => came + between(sent, header.stamp) + self.thetas.resume_extra,
                None => now + self.thetas.resume_default,
            };
            let resume = resume.max(Time(now.ps() + 1));
            flow.queue =
                Some(Box::new(Queue { port, held: Vec::new(), bytes: 0, tail: header.stamp, resume }));
            self.timers.insert((resume, qp));
            cx.wake_at(resume);
        }
        let Some(queue) = &mut flow.queue else { return forward };
        let bytes = u64::from(pkt.frame());
        queue.held.push(cx.handle());
        queue.bytes += bytes;
        self.counts.holds += 1;
        self.counts.packets.add(1);
        self.counts.bytes.add(bytes);
        Verdict::Hold
    }

    /// Releases every reorder queue whose timer is due, and sets the alarm for the next one.
    pub(super) fn wake(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, qp)) = self.timers.first() {
            if at > cx.now {
                return cx.wake_at(at);
            }
            self.timers.pop_first();
            if let Some(flow) = self.flows.get_mut(qp) {
                flow.closed = true;
                if let Some(queue) = flow.queue.take() {
                    self.counts.timers += 1;
                    self.release(cx, *queue);
                }
            }
        }
    }

    /// Releases the packets of a reorder queue, in order.
    fn release(&mut self, cx: &mut Cx<'_>, queue: Queue) {
        self.counts.packets.take(queue.held.len() as u64);
        self.counts.bytes.take(queue.bytes);
        self.counts.queues.take(1);
        if let Some(used) = self.queues.get_mut(queue.port.index()) {
            *used -= 1;
        }
        for handle in queue.held {
            cx.release(handle, queue.port);
        }
    }

    /// Sends NOTIFY for a path that marks packets, unless one was sent recently.
    fn notify(&mut self, cx: &mut Cx<'_>, qp: QpId, path: u16, racks: &Racks) {
        let Some(rack) = racks.sender(qp).and_then(|host| racks.rack(host)) else { return };
        let quiet = self.next_notice.entry((rack, path)).or_insert(Time::ZERO);
        if *quiet <= cx.now {
            *quiet = cx.now + Time(self.thetas.busy.ps() / 2);
            self.counts.notices += 1;
            self.send_signal(cx, qp, TorSignal::Notify(path), racks);
        }
    }

    fn send_signal(&self, cx: &mut Cx<'_>, qp: QpId, signal: TorSignal, racks: &Racks) {
        if let Some(packet) = racks.signal(qp, self.signal) {
            cx.signal(packet, signal.tag(), None);
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("holds", self.counts.holds);
        sink("resume_timers", self.counts.timers);
        sink("reorder_queues_full", self.counts.full);
        sink("held_over", self.counts.held_over);
        sink("path_notices", self.counts.notices);
        sink("held_peak", self.counts.packets.peak);
        sink("held_bytes_peak", self.counts.bytes.peak);
        sink("reorder_queues_peak", self.counts.queues.peak);
    }
}
