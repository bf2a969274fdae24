//! The egress side of the ports: how a frame joins its queue, is marked, leaves, and reaches the far end; and pause frames.

use super::{Meta, OWN_ADDRESS, Source, Tor, mark, note, packet, write_port};
use crate::counters::FailOpen;
use crate::frame::{self, Class, Kind, Link, Roce};
use crate::guard::Departed;
use crate::out::{Drop, Event, Out};
use crate::pool::{Frame, Pool};
use crate::qp::{Departure, NextPacket};
use crate::queues::{self, CLASSES, MarkAt, Next};
use crate::recent::Ticket;
use crate::units::{PortId, Span, Time};
use std::cmp::Reverse;
use wire::ethernet::Address;

impl Tor {
    /// Puts a frame onto its port's queue.
    pub(super) fn enqueue(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        if meta.undo != 0
            && let Some(roce) = &meta.roce
        {
            let bytes = pool.bytes_mut(&frame);
            let port = roce.source_port;
            if self.is_uplink(meta.ingress) {
                write_port(bytes, roce.udp, port ^ meta.undo);
            } else if !self.is_uplink(meta.egress) {
                write_port(bytes, roce.udp, port);
            }
            meta.undo = 0;
        }
        let classes = &self.settings.classes;
        let (port, class, len) = (meta.egress, usize::from(meta.class), frame.len() as u64);
        let leaf = usize::from(self.leaf(port));
        let egress = &mut self.ports[port.index()];
        let free = classes.buffer.size.saturating_sub(self.buffered[leaf]);
        let most = if classes.lossless[class] {
            u64::MAX
        } else {
            free.saturating_mul(classes.buffer.alpha_percent) / 100
        };
        if len > free || egress.depth(class) + len > most {
            self.counters.ports[port.index()].classes[class].dropped += 1;
            return self.drop_frame(now, meta.ingress, frame, Drop::Full, pool);
        }
        let depth = egress.depth(class) + len;
        if let Some(marking) = classes.marking[class]
            && marking.at == MarkAt::Enqueue
            && mark(&mut egress.draw, marking.chance(depth), meta, &frame, pool)
        {
            self.counters.ports[port.index()].classes[class].marked += 1;
        }
        if egress.is_free(now) {
            // The frame would leave its queue at once, so it occupies the buffer for no time.
            self.depart(now, port, meta, &frame, pool);
            return self.start(now, port, frame);
        }
        self.buffered[leaf] += len;
        self.meta[frame.slot()] = *meta;
        egress.push(frame, class);
        if classes.lossless[class] {
            let ingress = &mut self.ingress[meta.ingress.index()];
            ingress.bytes[class] += len;
            if ingress.bytes[class] > classes.buffer.xoff && ingress.paused[class].is_none() {
                self.send_pause(now, meta.ingress, class, u16::MAX, pool);
            }
        }
        self.transmit(now, port, pool);
    }

    /// Sends what a port may send now, and asks to be called when it may send more.
    pub(super) fn transmit(&mut self, now: Time, port: PortId, pool: &mut Pool) {
        let watchdog = self.settings.classes.watchdog;
        while let Some((class, frame)) = self.ports[port.index()].bitten(now, watchdog) {
            self.release(now, class, &frame, pool);
            self.counters.ports[port.index()].classes[class].watchdog += 1;
            let ingress = self.meta[frame.slot()].ingress;
            self.drop_frame(now, ingress, frame, Drop::Watchdog, pool);
        }
        while let Some(next) = self.ports[port.index()].next(now, &self.settings.classes) {
            let frame = match next {
                Next::Pause(frame) => frame,
                Next::Data(frame, class) => {
                    self.release(now, class, &frame, pool);
                    let mut meta = self.meta[frame.slot()];
                    self.depart(now, port, &mut meta, &frame, pool);
                    frame
                }
            };
            self.start(now, port, frame);
        }
        if let Some(at) = self.ports[port.index()].due(watchdog) {
            self.wake(now, port, at);
        }
    }

    /// Starts a transmission.
    fn start(&mut self, now: Time, port: PortId, frame: Frame) {
        let was_empty = self.ports[port.index()].line_due().is_none();
        if let Some(frame) = self.ports[port.index()].transmit(now, frame) {
            self.send(now, now, port, frame);
        } else if was_empty && let Some(at) = self.ports[port.index()].line_due() {
            self.agenda.push(Reverse((at, Source::Line(port.0))));
        }
    }

    /// Asks for a call of `transmit`. A port has one such request at a time, the earliest.
    fn wake(&mut self, now: Time, port: PortId, at: Time) {
        let wake = &mut self.wakes[port.index()];
        if *wake <= now || at < *wake {
            *wake = at;
            self.agenda.push(Reverse((at, Source::Egress(port.0))));
        }
    }

    /// A frame's transmission starts.
    fn depart(&mut self, now: Time, port: PortId, meta: &mut Meta, frame: &Frame, pool: &mut Pool) {
        let class = usize::from(meta.class);
        if let Some(marking) = self.settings.classes.marking[class]
            && marking.at == MarkAt::Dequeue
        {
            let egress = &mut self.ports[port.index()];
            let chance = marking.chance(egress.depth(class));
            if mark(&mut egress.draw, chance, meta, frame, pool) {
                self.counters.ports[port.index()].classes[class].marked += 1;
            }
        }
        self.counters.departed(port, class, meta.roce.as_ref());
        let Some(roce) = &meta.roce else { return };
        let Kind::Request { span } = roce.kind else { return };
        let Some(guard) = &mut self.guard else { return };
        if !meta.crossed || meta.unrecorded || self.places[port.index()].uplink {
            return;
        }
        let known = self.recent.entry(meta.ticket);
        let hint = known.as_ref().and_then(|entry| entry.flow);
        let next =
            NextPacket { source_mac: meta.link.source, source_port: roce.source_port, psn: roce.psn, port };
        if span == 1
            && let Some(hint) = hint
            && guard.depart_usual(now, &next, hint)
        {
            return;
        }
        self.depart_fully(now, port, meta, pool);
    }

    /// Themis-D records a packet of the request stream that has come from another ToR.
    #[inline(never)]
    fn depart_fully(&mut self, now: Time, port: PortId, meta: &Meta, pool: &mut Pool) {
        let (Some(roce), Some(guard)) = (&meta.roce, &mut self.guard) else { return };
        let Kind::Request { span } = roce.kind else { return };
        let known = self.recent.entry(meta.ticket);
        let hint = known.as_ref().and_then(|entry| entry.flow);
        let departed = guard.depart(now, &packet(meta, roce), span, port, hint);
        if departed.flow != hint
            && let Some(entry) = known
        {
            entry.flow = departed.flow;
        }
        if !departed.is_usual() {
            self.departed(now, port, roce, &departed, pool);
        }
    }

    /// Says what a departure means, and sends the NACK that it proves right.
    #[inline(never)]
    fn departed(&mut self, now: Time, port: PortId, roce: &Roce, departed: &Departed, pool: &mut Pool) {
        match departed.change {
            Some(Departure::Refused) => self.counters.fail_open(FailOpen::Refused, false),
            Some(Departure::Again(_, learnt)) => {
                self.counters.again += 1;
                self.counters.unlearnt += u64::from(learnt);
                self.outs.push_back(note(now, Event::Again { responder: roce.qp }));
            }
            _ => {}
        }
        if departed.breach {
            self.counters.breaches += 1;
            self.outs.push_back(note(now, Event::NoFifo { responder: roce.qp }));
        }
        if departed.drops.is_some() {
            self.counters.go_back_n += 1;
            self.outs.push_back(note(now, Event::DropsOutOfOrder { responder: roce.qp }));
        }
        let (Some(number), Some(guard)) = (departed.owed, &mut self.guard) else { return };
        let held = guard.take_held(number);
        match pool.copy_of(held) {
            Some(nack) => {
                let ingress = guard.connections.flow(number).port;
                let bytes = pool.bytes(&nack);
                let Some(link) = Link::of(bytes) else { return pool.put_back(nack) };
                let Class::Roce(kept) = frame::classify(&link, bytes) else { return pool.put_back(nack) };
                self.counters.compensated += 1;
                self.outs.push_back(note(now, Event::Compensated { responder: roce.qp, psn: kept.psn }));
                let class = self.class(&link, pool.bytes(&nack));
                let mut meta = Meta {
                    link,
                    roce: Some(kept),
                    ingress,
                    egress: ingress,
                    class,
                    crossed: false,
                    unrecorded: false,
                    undo: 0,
                    ticket: Ticket::NONE,
                };
                self.forward(now, &mut meta, nack, pool);
            }
            None => self.count_drop(now, port, Drop::NoBuffer),
        }
    }

    /// A frame no longer occupies the buffer.
    fn release(&mut self, now: Time, class: usize, frame: &Frame, pool: &mut Pool) {
        let meta = &self.meta[frame.slot()];
        let (ingress, len) = (meta.ingress, frame.len() as u64);
        let leaf = usize::from(self.leaf(meta.egress));
        self.buffered[leaf] -= len;
        if self.settings.classes.lossless[class] {
            let own = &mut self.ingress[ingress.index()];
            own.bytes[class] -= len;
            if own.bytes[class] <= self.settings.classes.buffer.xon && own.paused[class].is_some() {
                self.send_pause(now, ingress, class, 0, pool);
            }
        }
    }

    /// Pauses or resumes a class of a host.
    fn send_pause(&mut self, now: Time, port: PortId, class: usize, quanta: u16, pool: &mut Pool) {
        let half = Span::from_nanos(self.ports[port.index()].pause_time(quanta).nanos() / 2);
        // A pause is sent again at half of its time, so that it never ends by itself. Our choice, usual for switches.
        let again = (quanta > 0).then_some(now + half);
        self.ingress[port.index()].paused[class] = again;
        if let Some(at) = again {
            self.agenda.push(Reverse((at, Source::Refresh(port.0))));
        }
        let Some(mut frame) = pool.take() else { return self.count_drop(now, port, Drop::NoBuffer) };
        let source = Address::local(OWN_ADDRESS | u32::from(port.0));
        match queues::write_pause(pool.buffer(&mut frame), source, class, quanta) {
            Some(len) => pool.set_len(&mut frame, len),
            None => return pool.put_back(frame),
        }
        self.counters.ports[port.index()].classes[class].pfc_out += 1;
        self.ports[port.index()].push_pause(frame);
        let busy = self.ports[port.index()].busy;
        self.wake(now, port, busy.max(now));
    }

    pub(super) fn refresh(&mut self, now: Time, port: PortId, pool: &mut Pool) {
        for class in 0..CLASSES {
            if self.ingress[port.index()].paused[class].is_some_and(|at| at <= now) {
                self.send_pause(now, port, class, u16::MAX, pool);
            }
        }
    }

    /// A frame is at the end of its last hop.
    pub(super) fn arrive(&mut self, now: Time, port: PortId) {
        let own = &mut self.ports[port.index()];
        let Some((started, frame)) = own.arrive() else { return };
        if let Some(at) = own.line_due() {
            self.agenda.push(Reverse((at, Source::Line(port.0))));
        }
        self.send(now, started, port, frame);
    }

    fn send(&mut self, at: Time, started: Time, port: PortId, frame: Frame) {
        let counters = &mut self.counters.ports[port.index()];
        counters.out_frames += 1;
        counters.out_bytes += frame.len() as u64;
        self.outs.push_back(Out::Send { at, started, port, frame });
    }
}
