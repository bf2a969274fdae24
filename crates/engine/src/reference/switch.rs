//! A switch of the reference engine: where a packet goes, whether it finds room, and what a scheme makes of it.

use super::port::Position;
use super::{NodeEvent, Reference};
use crate::books::Lost;
use crate::buffer::Admission;
use crate::cells::Place;
use crate::outcome::{EventKind, Passed};
use crate::switch::{Arrival, Egress, may_be_victim};
use crate::view::shown;
use model::fabric::Detours;
use model::plan::{Cut, MarkAt, Victim};
use model::scheme::Effects;
use model::{NodeId, Parcel, Parts, PortIndex, Switched, Verdict};

impl<P: Parts> Reference<'_, P> {
    pub(super) fn forward(&mut self, now: u64, node: u32, mut pkt: Parcel<P::Annex>) {
        let fabric = self.setup.fabric();
        let route_change = self.switches[node as usize - self.servers].route_change;
        let base = fabric.base(NodeId(node)) as usize;
        let router = self.setup.router(NodeId(node), route_change);
        let ingress = pkt.ingress();
        if self.setup.has_loops() && self.setup.counts_out(&mut pkt) {
            self.tally.lost(&pkt, Lost::Loop);
            self.recorder.lost_in_loop(&self.setup, now, &pkt);
            self.refund(now, node, &pkt);
            return self.note(now, node, EventKind::Lost, &pkt);
        }
        let route = router.arrived(pkt.annex.route_state(), ingress);
        pkt.annex.set_route_state(route);
        if self.switches[node as usize - self.servers].discards_in(&self.setup, &pkt) {
            self.links[base + ingress.index()].storm_drops_in += 1;
            self.tally.lost(&pkt, Lost::Watchdog);
            return self.note(now, node, EventKind::Lost, &pkt);
        }
        let (ports, to_host) = router.onward(route, ingress, pkt.to());
        let switch = &mut self.switches[node as usize - self.servers];
        let from_host = self.setup.ports[base + ingress.0 as usize].to_host;
        let mut detours = Detours::default();
        if switch.interest.detours && from_host && pkt.is_data() {
            detours = router.detours(pkt.to());
        }
        let mut port = ports.first().copied().unwrap_or(PortIndex::VIRTUAL);
        if ports.len() != 1 || switch.interest.every_packet || !detours.is_empty() {
            let arrival =
                Arrival { now, ingress, from_host, to_host, detours: &detours, view: self.views.known() };
            let mut effects = Effects::default();
            let count = fabric.ports(NodeId(node)).len();
            let queued: Vec<u32> =
                self.queued[base..base + count].iter().map(|&bytes| shown(bytes)).collect();
            let before = pkt;
            let verdict = switch.judge(arrival, &queued, &mut pkt, ports, &mut effects);
            if pkt.kind() != before.kind() {
                self.rebook(now, node, &before, &mut pkt);
            }
            match verdict {
                Verdict::Forward(p) => port = p,
                Verdict::Drop => {
                    self.tally.dropped_by_scheme(&pkt);
                    self.refund(now, node, &pkt);
                    self.note(now, node, EventKind::Blocked, &pkt);
                    return self.carry_out(now, node, effects);
                }
                Verdict::Hold => {
                    let room = self.admit(now, node, &pkt, None) != Admission::Dropped;
                    if !room {
                        self.tally.lost(&pkt, Lost::Buffer);
                        self.refund(now, node, &pkt);
                        self.note(now, node, EventKind::Dropped, &pkt);
                    }
                    self.switches[node as usize - self.servers].hold(room.then_some(pkt));
                    return self.carry_out(now, node, effects);
                }
            }
            self.enqueue(now, node, base + port.0 as usize, pkt, false);
            return self.carry_out(now, node, effects);
        }
        self.enqueue(now, node, base + port.0 as usize, pkt, false);
    }

    pub(super) fn carry_out(&mut self, now: u64, node: u32, effects: Effects) {
        let fabric = self.setup.fabric();
        let base = fabric.base(NodeId(node)) as usize;
        let index = node as usize - self.servers;
        for emitted in effects.emitted {
            let (port, pkt) = self.switches[index].made(&self.setup, NodeId(node), emitted);
            self.tally.made(&pkt);
            self.note(now, node, EventKind::Made, &pkt);
            self.enqueue(now, node, base + port.0 as usize, pkt, false);
        }
        for (handle, port) in effects.released {
            if let Some(pkt) = self.switches[index].unhold(handle) {
                self.switches[index].join(&self.setup, &pkt, port.index());
                self.enqueue(now, node, base + port.0 as usize, pkt, true);
            }
        }
        for (port, on) in effects.pauses {
            for priority in 0..self.setup.priorities() {
                if self.switches[index].set_scheme_pause(port, priority, on) {
                    self.send_pause(now, node, port, priority, on);
                }
            }
        }
        if let Some(at) = effects.wake {
            let switch = &mut self.switches[index];
            if at.ps() < switch.wake {
                switch.wake = at.ps().max(now + 1);
                let wake = switch.wake;
                self.schedule(wake, node, NodeEvent::Wake { port: 0 });
            }
        }
    }

    /// Asks for room for a packet that arrives at a switch.
    pub(super) fn admit(
        &mut self,
        now: u64,
        node: u32,
        pkt: &Parcel<P::Annex>,
        egress: Option<Egress>,
    ) -> Admission {
        let switch = &mut self.switches[node as usize - self.servers];
        let admission = switch.admit(&self.setup, pkt, egress);
        if admission == Admission::AdmittedPause {
            let priority = switch.priority_of(switch.account(&self.setup, pkt));
            self.send_pause(now, node, pkt.ingress(), priority, true);
        }
        admission
    }

    /// Drops a packet that finds no room at port `gp`; its buffer has not been charged.
    pub(super) fn drop(&mut self, now: u64, node: u32, gp: usize, pkt: &Parcel<P::Annex>) {
        self.links[gp].drops += 1;
        self.ports[gp].counts[self.setup.class_in_table(pkt)].drops += 1;
        self.tally.lost(pkt, Lost::Buffer);
        self.refund(now, node, pkt);
        self.note(now, node, EventKind::Dropped, pkt);
    }

    /// Drops all packets of a priority that wait at port `gp` of a switch.
    pub(super) fn flush(&mut self, now: u64, node: u32, gp: usize, priority: u8) {
        let (index, channels) = (node as usize - self.servers, self.ports[gp].channels);
        for class in 0..self.setup.plan.classes.all().len() {
            let first = |run: &Self| {
                let (switch, setup) = (&run.switches[index], &run.setup);
                let of = |pkt: &Parcel<P::Annex>| switch.priority_out(setup, pkt, channels);
                run.ports[gp].queues[class].iter().position(|pkt| of(pkt) == Some(priority))
            };
            while let Some(place) = first(self)
                && let Some(pkt) = self.ports[gp].remove(Position { class, place })
            {
                self.queued[gp] -= u64::from(pkt.frame());
                self.discard_charged(now, node, gp, &pkt);
            }
        }
    }

    /// Drops a packet that has its room, because of the watchdog of port `gp`.
    fn discard_charged(&mut self, now: u64, node: u32, gp: usize, pkt: &Parcel<P::Annex>) {
        let index = node as usize - self.servers;
        if pkt.ingress() != PortIndex::VIRTUAL {
            let account = self.switches[index].account(&self.setup, pkt);
            let port = gp - self.setup.fabric().base(NodeId(node)) as usize;
            let place = Place::new(port, self.setup.class_in_table(pkt));
            if self.switches[index].buffer.release(account, pkt.frame() as u64, place) {
                let priority = self.switches[index].priority_of(account);
                self.send_pause(now, node, pkt.ingress(), priority, false);
            }
        }
        self.discard_at(now, node, gp, pkt);
    }

    fn discard_at(&mut self, now: u64, node: u32, gp: usize, pkt: &Parcel<P::Annex>) {
        self.links[gp].storm_drops += 1;
        self.tally.lost(pkt, Lost::Watchdog);
        self.note(now, node, EventKind::Lost, pkt);
    }

    /// Cuts a packet that does not fit into its queue, or one that waits there: then the arriving packet takes its
    /// place. Returns the packet that is to join the queue, if any, and the headers of the other one.
    fn cut(
        &mut self,
        now: u64,
        node: u32,
        gp: usize,
        pkt: Parcel<P::Annex>,
        rule: Cut,
    ) -> (Option<Parcel<P::Annex>>, Parcel<P::Annex>) {
        let class = self.setup.class_in_table(&pkt);
        let queue = &self.ports[gp].queues[class];
        let newest = match rule.victim {
            Victim::Even if self.setup.coin(gp, now) => queue.iter().rposition(|waiting| waiting.is_data()),
            _ => None,
        };
        let place = newest.filter(|place| may_be_victim(&queue[*place], &pkt));
        let (joins, mut victim) =
            match place.and_then(|place| self.ports[gp].remove(Position { class, place })) {
                Some(waiting) => {
                    self.queued[gp] -= u64::from(waiting.frame());
                    let port = gp - self.setup.fabric().base(NodeId(node)) as usize;
                    self.switches[node as usize - self.servers].replace(&self.setup, &waiting, &pkt, port);
                    (Some(pkt), waiting)
                }
                None => (None, pkt),
            };
        let last_hop = self.setup.ports[gp].to_host;
        self.tally.cut(last_hop);
        self.note(now, node, EventKind::Cut, &victim);
        let before = victim;
        victim.label = victim.cut(rule.frame, last_hop);
        self.rebook(now, node, &before, &mut victim);
        (joins, victim)
    }

    /// Adds a packet to its queue at port `gp` of a switch. `charged` is true if it has its room already.
    pub(super) fn enqueue(&mut self, now: u64, node: u32, gp: usize, pkt: Parcel<P::Annex>, charged: bool) {
        self.serve(now, node, gp);
        let class = self.setup.class_in_table(&pkt);
        if self.setup.follows(pkt.qp()) && pkt.is_data() && !charged && pkt.ingress() != PortIndex::VIRTUAL {
            self.recorder.hop(&self.setup, gp, &pkt, self.ports[gp].bytes[class]);
        }
        let port = gp - self.setup.fabric().base(NodeId(node)) as usize;
        let at = (port, self.ports[gp].channels);
        if self.switches[node as usize - self.servers].discards_out(&self.setup, &pkt, at) {
            match charged {
                true => self.discard_charged(now, node, gp, &pkt),
                false => self.discard_at(now, node, gp, &pkt),
            }
            return;
        }
        let cap = self.setup.port_settings(class, gp).cap.get();
        let egress = Egress { queue: self.ports[gp].bytes[class], cap, place: Some(Place::new(port, class)) };
        let (joins, headers) =
            match if charged { Admission::Admitted } else { self.admit(now, node, &pkt, Some(egress)) } {
                Admission::Admitted | Admission::AdmittedPause => (Some(pkt), None),
                Admission::Dropped => return self.drop(now, node, gp, &pkt),
                Admission::Cut(rule) => {
                    let (joins, headers) = self.cut(now, node, gp, pkt, rule);
                    (joins, Some(headers))
                }
            };
        if let Some(pkt) = joins {
            self.join(now, node, gp, pkt);
        }
        if let Some(headers) = headers {
            self.enqueue(now, node, gp, headers, false);
        }
    }

    /// Adds a packet to its queue, where there is room.
    fn join(&mut self, now: u64, node: u32, gp: usize, mut pkt: Parcel<P::Annex>) {
        let class = self.setup.class_in_table(&pkt);
        if pkt.is_data()
            && let Some(marking) = self.setup.marking_in(class, gp)
            && marking.at == MarkAt::Enqueue
            && let queue = self.ports[gp].bytes[class]
            && let seen = self.ports[gp].averages.follow(class, Some(marking), MarkAt::Enqueue, queue)
            && self.setup.marks(marking, gp, now, seen)
        {
            pkt.mark();
            self.links[gp].marks += 1;
            self.ports[gp].counts[class].marks += 1;
        }
        self.ports[gp].push(class, pkt);
        self.queued[gp] += u64::from(pkt.frame());
        self.serve(now, node, gp);
        let port = &mut self.ports[gp];
        port.counts[class].longest = port.counts[class].longest.max(port.bytes[class]);
        let waiting = self.ports[gp].waiting_data(&self.setup);
        if self.setup.has_data(class) && waiting > 0 {
            self.links[gp].max_queue = self.links[gp].max_queue.max(waiting);
            self.longest[gp] = self.longest[gp].max(waiting);
        }
    }

    /// Sends a pause or resume frame for a channel to the neighbour behind `ingress`.
    pub(super) fn send_pause(
        &mut self,
        now: u64,
        node: u32,
        ingress: PortIndex,
        channel: u8,
        on: bool,
    ) -> u64 {
        let gp = self.setup.fabric().link(NodeId(node), ingress);
        let facts = self.setup.ports[gp.index()];
        let port = &self.ports[gp.index()];
        let at = self.setup.pause_leaves(port.row, port.busy, now) + facts.delay;
        match on {
            true => self.tally.control.pause += 1,
            false => self.tally.control.resume += 1,
        }
        if facts.tapped {
            self.recorder.frame(&self.setup, gp.index(), now, Passed::Pause { channel, on });
        }
        if self.setup.loses_pause(gp.index(), now, at) {
            return at;
        }
        self.sequence += 1;
        let what =
            NodeEvent::Pause { port: facts.peer_port.0, sequence: self.sequence, channel, on, freed: 0 };
        self.schedule(at, facts.peer, what);
        at
    }
}
