//! Ports of the window engine. A port is advanced lazily: only when something concerns it, and at the end of
//! every window. Each start on the wire still gets its exact time.

use super::Engine;
use super::mail::Mail;
use super::ring::Ring;
use crate::buffer::Admission;
use crate::outcome::LinkRecord;
use crate::setup::{CLASSES, DATA, NO_TRACK, PortFacts, Setup};
use model::plan::{MarkAt, Marking};
use model::scheme::flow_hash;
use model::{NodeId, Packet, Parts, PortIndex, Time};

/// A port. What every packet touches fits into one cache line; queues follow.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    /// When the wire is free.
    pub(crate) busy: u64,
    delay: u64,
    /// Time on the wire, frames and bytes so far.
    busy_for: u64,
    frames: u64,
    bytes: u64,
    row: u32,
    peer: u32,
    /// Bytes of data that wait, now and at most.
    pub(crate) waiting: u32,
    most_waiting: u32,
    /// Longest queue of data that marks nothing.
    unmarked: u32,
    peer_port: PortIndex,
    /// Classes that have packets waiting, a bit each.
    classes: u8,
    /// Classes that may start, likewise: all, or all but data while it is paused.
    startable: u8,
    flags: u8,
    /// What waits, by class.
    queues: [Ring; CLASSES],
}

/// The far end is a host.
const TO_HOST: u8 = 1;
/// The scheme watches what leaves.
const WATCHED: u8 = 2;
/// The link loses packets.
const LOSSY: u8 = 4;
/// The link is recorded over time.
const TRACKED: u8 = 8;
/// Marks are decided when a packet joins the queue.
const MARKS_EARLY: u8 = 16;

impl Port {
    pub(crate) fn new(facts: &PortFacts, marking: Option<&Marking>) -> Self {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        let early = marking.is_some_and(|m| m.at == MarkAt::Enqueue);
        let unmarked = marking.filter(|m| m.at == MarkAt::Dequeue).map_or(u64::MAX, |m| m.kmin.get());
        Port {
            busy: 0,
            delay: facts.delay,
            busy_for: 0,
            frames: 0,
            bytes: 0,
            row: facts.row,
            peer: facts.peer,
            waiting: 0,
            most_waiting: 0,
            unmarked: unmarked.min(u32::MAX as u64) as u32,
            peer_port: facts.peer_port,
            classes: 0,
            startable: u8::MAX,
            flags: flag(facts.to_host, TO_HOST)
                | flag(!facts.loss.is_zero(), LOSSY)
                | flag(facts.track != NO_TRACK, TRACKED)
                | flag(early, MARKS_EARLY),
            queues: Default::default(),
        }
    }

    /// Has the scheme watch what leaves.
    pub(crate) fn watch(&mut self) {
        self.flags |= WATCHED;
    }

    #[inline]
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Data may not start.
    #[inline]
    pub(crate) fn paused(&self) -> bool {
        self.startable & (1 << DATA) == 0
    }

    /// Classes that wait and may start, a bit each.
    #[inline]
    pub(crate) fn open(&self) -> u8 {
        self.classes & self.startable
    }

    /// When the next packet starts; [`u64::MAX`] if none waits that may.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        if self.open() != 0 { self.busy } else { u64::MAX }
    }

    /// Takes the packet that is next by class and order, if one waits that may start.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let open = self.open();
        if open == 0 {
            return None;
        }
        let class = open.trailing_zeros() as usize % CLASSES;
        let (pkt, last) = self.queues[class].pop()?;
        if last {
            self.classes &= !(1 << class);
        }
        if class == DATA {
            self.waiting -= pkt.frame();
        }
        Some(pkt)
    }

    #[inline]
    pub(crate) fn push(&mut self, class: usize, pkt: Packet) {
        self.classes |= 1 << class;
        if class == DATA {
            self.waiting += pkt.frame();
        }
        self.queues[class].push(pkt);
    }

    /// Everything that waits, and of these the data.
    pub(crate) fn queued(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flat_map(Ring::iter)
    }

    pub(crate) fn queued_data(&self) -> impl Iterator<Item = &Packet> {
        self.queues[DATA].iter()
    }

    /// Puts a packet on the wire at `at`, in a window that opened at `opened`.
    #[inline(always)]
    fn launch(
        &mut self,
        setup: &Setup<'_>,
        mail: &mut Mail,
        opened: u64,
        at: u64,
        pkt: Packet,
        arrives: bool,
    ) {
        let time = setup.time_on_wire(self.row, pkt.frame());
        self.busy = at + time;
        self.busy_for += time;
        self.frames += 1;
        self.bytes += pkt.frame() as u64;
        if arrives {
            mail.push(self.peer, self.peer_port, at + time + self.delay - opened, pkt);
        }
    }

    /// Frames sent.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes what the port has counted.
    pub(crate) fn report(&self, link: &mut LinkRecord) {
        link.frames = self.frames;
        link.bytes = self.bytes;
        link.busy = Time(self.busy_for);
        link.max_queue = self.most_waiting as u64;
    }
}

impl<P: Parts> Engine<'_, P> {
    /// A packet joins port `gp` of switch `node`. `charged`: the buffer knows it already.
    #[inline]
    pub(crate) fn enqueue(&mut self, node: u32, gp: usize, now: u64, mut pkt: Packet, charged: bool) {
        if self.ports[gp].due() <= now {
            self.serve(node, gp, now + 1);
        }
        let data = self.one_class || pkt.is_data();
        let counts = data && pkt.ingress() != PortIndex::VIRTUAL;
        if self.heavy && counts && !charged && !self.admit(node, &pkt, now, self.ports[gp].waiting as u64) {
            self.links[gp].drops += 1;
            self.tally.lost(&pkt, true);
            return;
        }
        let charged = charged || self.heavy;
        let port = &mut self.ports[gp];
        if port.busy <= now && !(data && port.paused()) {
            if counts && charged {
                self.release(node, &pkt, now);
            }
            self.start(node, gp, now, pkt);
            return;
        }
        if self.reads_queues {
            self.queued[gp] += pkt.frame();
        }
        if !data {
            let class = self.setup.class(&pkt);
            port.push(class, pkt);
        } else {
            if port.is(MARKS_EARLY | TRACKED) {
                self.join_oddly(gp, now, &mut pkt);
            }
            if counts && !charged {
                self.switches[node as usize - self.hosts.len()].buffer.charge_light(pkt.frame() as u64);
            }
            let port = &mut self.ports[gp];
            port.push(DATA, pkt);
            port.most_waiting = port.most_waiting.max(port.waiting);
        }
        self.note_due(gp);
    }

    /// Notes when the next packet of a port starts, if that must be taken in order of time.
    #[inline]
    pub(crate) fn note_due(&mut self, gp: usize) {
        let port = &self.ports[gp];
        let due = port.due();
        self.due[gp] = due;
        if port.is(WATCHED) || self.heavy {
            self.next_own = self.next_own.min(due);
        }
    }

    /// What only some queues do with data that joins them: mark it, record their length.
    #[cold]
    fn join_oddly(&mut self, gp: usize, now: u64, pkt: &mut Packet) {
        let waiting = self.ports[gp].waiting as u64;
        if let Some(marking) = &self.setup.marking[gp]
            && marking.at == MarkAt::Enqueue
            && pkt.is_data()
            && self.setup.marks(marking, gp, now, waiting)
        {
            pkt.mark();
            self.links[gp].marks += 1;
        }
        if self.ports[gp].is(TRACKED) {
            self.recorder.queue(self.setup.ports[gp].track, now, waiting + pkt.frame() as u64);
        }
    }

    /// Marks a packet that leaves `waiting` bytes behind, by the queue's marking.
    #[cold]
    fn mark_late(&mut self, gp: usize, at: u64, waiting: u32, pkt: &mut Packet) {
        if let Some(marking) = &self.setup.marking[gp]
            && pkt.is_data()
            && self.setup.marks(marking, gp, at, waiting as u64)
        {
            pkt.mark();
            self.links[gp].marks += 1;
        }
    }

    /// Starts everything at port `gp` of a switch whose time lies before `limit`.
    #[inline]
    pub(crate) fn serve(&mut self, node: u32, gp: usize, limit: u64) {
        loop {
            let due = self.ports[gp].due();
            if due >= limit {
                return;
            }
            self.depart(node, gp, due);
        }
    }

    /// Starts the next packet that waits at port `gp` of a switch, at `at`.
    #[inline]
    pub(crate) fn depart(&mut self, node: u32, gp: usize, at: u64) {
        let port = &mut self.ports[gp];
        let Some(mut pkt) = port.pop() else {
            self.due[gp] = u64::MAX;
            return;
        };
        if self.reads_queues {
            self.queued[gp] -= pkt.frame();
        }
        if self.one_class || pkt.is_data() {
            let waiting = port.waiting;
            if waiting > port.unmarked {
                self.mark_late(gp, at, waiting, &mut pkt);
            }
            if pkt.ingress() != PortIndex::VIRTUAL {
                self.release(node, &pkt, at);
            }
        }
        self.start(node, gp, at, pkt);
        self.note_due(gp);
    }

    /// Puts a packet on the wire of port `gp` at `at`.
    #[inline(always)]
    pub(crate) fn start(&mut self, node: u32, gp: usize, at: u64, pkt: Packet) {
        self.tally.control_hops += !pkt.is_data() as u64;
        let port = &mut self.ports[gp];
        if port.is(LOSSY | TRACKED | WATCHED) {
            self.start_watched(node, gp, at, pkt);
        } else {
            port.launch(self.setup, &mut self.mail, self.opened, at, pkt, true);
        }
    }

    /// [`Engine::start`] at a port of which somebody takes notice.
    #[inline(never)]
    fn start_watched(&mut self, node: u32, gp: usize, at: u64, pkt: Packet) {
        let arrives = !self.ports[gp].is(LOSSY | TRACKED) || self.start_oddly(gp, at, &pkt);
        self.ports[gp].launch(self.setup, &mut self.mail, self.opened, at, pkt, arrives);
        if self.ports[gp].is(WATCHED) && pkt.is_data() {
            self.departed(node, gp, at, &pkt);
        }
    }

    /// What only some links do: record what they carry, lose it. True if the packet arrives.
    #[inline(never)]
    fn start_oddly(&mut self, gp: usize, at: u64, pkt: &Packet) -> bool {
        if self.ports[gp].is(TRACKED) {
            let on_wire = (pkt.frame() + self.setup.plan.wire.gap) as u64;
            self.recorder.sent(self.setup.ports[gp].track, at, on_wire, pkt.retransmission());
        }
        if self.ports[gp].is(LOSSY) && self.setup.loses(gp, at, pkt) {
            self.links[gp].lost += 1;
            self.tally.lost(pkt, false);
            return false;
        }
        true
    }

    /// Tells the scheme of a departure that it watches.
    fn departed(&mut self, node: u32, gp: usize, at: u64, pkt: &Packet) {
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        let port = PortIndex((gp - base) as u16);
        let index = node as usize - self.hosts.len();
        self.switches[index].departed(at, pkt, port, &mut self.effects);
        self.carry_out(node, at);
    }

    /// Does what a scheme asked for.
    #[inline]
    pub(crate) fn carry_out(&mut self, node: u32, now: u64) {
        if !self.effects.is_empty() {
            self.carry_out_some(node, now);
        }
    }

    #[cold]
    fn carry_out_some(&mut self, node: u32, now: u64) {
        let mut effects = std::mem::take(&mut self.effects);
        let fabric = self.setup.fabric();
        let base = fabric.base(NodeId(node)) as usize;
        let index = node as usize - self.hosts.len();
        for pkt in effects.emitted.drain(..) {
            let ports = fabric.route(NodeId(node), pkt.to());
            let port = match ports.len() {
                1 => ports[0],
                n => ports[flow_hash(self.switches[index].salt, &pkt, n)],
            };
            self.tally.forged += 1;
            self.enqueue(node, base + port.0 as usize, now, pkt.arriving(0, PortIndex::VIRTUAL), false);
        }
        for (handle, port) in effects.released.drain(..) {
            if let Some(pkt) = self.switches[index].unhold(handle) {
                self.enqueue(node, base + port.0 as usize, now, pkt, true);
            }
        }
        if let Some(at) = effects.wake.take() {
            let switch = &mut self.switches[index];
            if at.ps() < switch.wake {
                switch.wake = at.ps().max(now + 1);
                self.next_own = self.next_own.min(switch.wake + 1);
            }
        }
    }

    /// Asks the buffer for room, in a heavy visit; false if there is none.
    pub(crate) fn admit(&mut self, node: u32, pkt: &Packet, now: u64, queue: u64) -> bool {
        let switch = &mut self.switches[node as usize - self.hosts.len()];
        match switch.buffer.admit(pkt.ingress(), pkt.frame() as u64, queue) {
            Admission::Admitted => true,
            Admission::AdmittedPause => {
                self.send_pause(node, pkt.ingress(), now, true);
                true
            }
            Admission::Dropped => {
                switch.dropped_while_lossless |= switch.buffer.lossless();
                false
            }
        }
    }

    /// Gives back the room of a packet that leaves.
    #[inline]
    fn release(&mut self, node: u32, pkt: &Packet, at: u64) {
        let buffer = &mut self.switches[node as usize - self.hosts.len()].buffer;
        if !self.heavy {
            buffer.release_light(pkt.frame() as u64);
        } else if buffer.release(pkt.ingress(), pkt.frame() as u64) {
            self.send_pause(node, pkt.ingress(), at, false);
        }
    }

    /// Tells the neighbour behind `ingress` to pause or to go on.
    #[cold]
    fn send_pause(&mut self, node: u32, ingress: PortIndex, now: u64, on: bool) {
        let gp = self.setup.fabric().link(NodeId(node), ingress).index();
        let port = &self.ports[gp];
        let at = match self.setup.plan.wire.pfc {
            0 => now,
            frame => port.busy.max(now) + self.setup.time_on_wire(port.row, frame),
        } + port.delay;
        match on {
            true => self.tally.pause += 1,
            false => self.tally.resume += 1,
        }
        let peer = port.peer as usize;
        self.pauses[peer].push((at, port.peer_port.0, on));
        self.next[peer] = self.next[peer].min(at);
    }

    /// A pause or resume frame has reached the sender of link `gp`; true if data may start again.
    #[cold]
    pub(crate) fn on_pause(&mut self, gp: usize, now: u64, on: bool) -> bool {
        if self.ports[gp].paused() == on {
            return false;
        }
        self.ports[gp].startable ^= 1 << DATA;
        if on {
            self.links[gp].pauses += 1;
            self.paused_since[gp] = now;
        } else {
            self.links[gp].paused += Time(now - self.paused_since[gp]);
            self.paused_since[gp] = u64::MAX;
        }
        self.note_due(gp);
        !on
    }

    pub(crate) fn faces_host(&self, gp: usize) -> bool {
        self.ports[gp].is(TO_HOST)
    }
}
