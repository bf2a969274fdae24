//! One scheme per traffic class in a switch: every packet meets the scheme of its queue pair's class.

use crate::AnyScheme;
use model::fabric::Detours;
use model::scheme::{Acks, Arrived};
use model::{Cx, Interest, Packet, PortIndex, Reroute, Scheme, Time, Verdict};
use std::sync::Arc;

/// Schemes of one switch.
pub struct PerClass {
    /// Class of every queue pair.
    class_of: Arc<[u8]>,
    /// Schemes, by class.
    schemes: Vec<AnyScheme>,
}

impl PerClass {
    /// A switch with these schemes, by class. `class_of` gives the class of every queue pair; a queue pair beyond its end
    /// belongs to class 0.
    ///
    /// # Panics
    /// If `schemes` is empty.
    pub fn new(class_of: Arc<[u8]>, schemes: Vec<AnyScheme>) -> Self {
        assert!(!schemes.is_empty(), "a switch needs a scheme");
        PerClass { class_of, schemes }
    }

    #[inline]
    fn of(&self, pkt: &Packet) -> usize {
        let class = self.class_of.get(pkt.qp().index()).map_or(0, |class| usize::from(*class));
        class.min(self.schemes.len() - 1)
    }
}

/// What either of two schemes asks for. It names every field, so that a new one cannot be forgotten here.
fn both(one: Interest, other: Interest) -> Interest {
    Interest {
        queues: one.queues || other.queues,
        every_packet: one.every_packet || other.every_packet,
        plain_replies: one.plain_replies && other.plain_replies,
        host_departures: one.host_departures || other.host_departures,
        departures: one.departures || other.departures,
        makes_replies: one.makes_replies || other.makes_replies,
        makes_data: one.makes_data || other.makes_data,
        detours: one.detours || other.detours,
        // Schemes of one run ask for the same view: the scenario refuses others.
        view: one.view.or(other.view),
        // Only one scheme can take the ACKs of a host. A scheme that asks for all departures is not local.
        local: one.local && other.local && !(one.host_departures && other.host_departures),
        by_flow: one.by_flow && other.by_flow,
        by_arrivals: one.by_arrivals && other.by_arrivals,
        passes: one.passes || other.passes,
        announcements: one.announcements || other.announcements,
    }
}

impl Scheme for PerClass {
    /// Union of the schemes' interests: a scheme may be shown more than it asked for.
    fn interest(&self) -> Interest {
        self.schemes.iter().map(Scheme::interest).reduce(both).unwrap_or_default()
    }

    fn expect(&self, pkt: &Packet) {
        self.schemes[self.of(pkt)].expect(pkt);
    }

    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        let scheme = &self.schemes[self.of(pkt)];
        scheme.interest().queues && scheme.reads_queues(pkt, ports, detours)
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let class = self.of(pkt);
        let interest = self.schemes[class].interest();
        match ports {
            [port] if !(interest.every_packet || interest.detours && !cx.detours.is_empty()) => {
                Verdict::Forward(*port)
            }
            _ => self.schemes[class].on_packet(cx, pkt, ports),
        }
    }

    fn note_reply(&mut self, now: Time, pkt: &Packet, port: PortIndex) {
        let class = self.of(pkt);
        if self.schemes[class].interest().every_packet {
            self.schemes[class].note_reply(now, pkt, port);
        }
    }

    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        let class = self.of(pkt);
        if self.schemes[class].interest().host_departures {
            self.schemes[class].on_depart(cx, pkt, port);
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) {
        let class = self.of(pkt);
        if self.schemes[class].interest().departures {
            self.schemes[class].on_start(cx, pkt, port);
        }
    }

    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        self.schemes[self.of(pkt)].choose(arrived, pkt, ports)
    }

    fn on_pass(&mut self, now: Time, pkt: &Packet, tag: u64, port: PortIndex) -> u64 {
        let class = self.of(pkt);
        self.schemes[class].on_pass(now, pkt, tag, port)
    }

    fn on_nack(&mut self, pkt: &mut Packet, port: PortIndex, acks: &mut Acks<'_>) -> bool {
        let class = self.of(pkt);
        self.schemes[class].on_nack(pkt, port, acks)
    }

    fn on_leave(&mut self, pkt: &Packet, port: PortIndex, acks: &mut Acks<'_>) -> Option<Packet> {
        let class = self.of(pkt);
        self.schemes[class].on_leave(pkt, port, acks)
    }

    fn on_acks(&mut self, port: PortIndex, acks: &mut Acks<'_>) {
        let watching = self.schemes.iter_mut().find(|scheme| scheme.interest().host_departures);
        if let Some(watching) = watching {
            watching.on_acks(port, acks);
        }
    }

    fn is_quiet(&self, port: PortIndex) -> bool {
        self.schemes.iter().all(|scheme| scheme.is_quiet(port) || !scheme.interest().host_departures)
    }

    /// Wakes all schemes, whichever of them asked: each compares the time.
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.schemes.iter_mut().for_each(|scheme| scheme.on_wake(cx));
    }

    fn on_routes_change(&mut self, cx: &mut Cx<'_>, news: &Reroute<'_>) {
        self.schemes.iter_mut().for_each(|scheme| scheme.on_routes_change(cx, news));
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.schemes.iter().for_each(|scheme| scheme.counters(sink));
    }
}
