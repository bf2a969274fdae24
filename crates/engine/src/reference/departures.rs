//! Departures in the reference engine: which packet starts at a port, and what happens when it does.

use super::{NodeEvent, Reference};
use crate::books::Lost;
use crate::cells::Place;
use crate::gentle::Gentle;
use crate::host::Vacancy;
use crate::outcome::Passed;
use crate::setup::{Crossing, LinkState};
use model::plan::MarkAt;
use model::scheme::Effects;
use model::{NodeId, Parcel, Parts, PortIndex, Time};

impl<P: Parts> Reference<'_, P> {
    /// Starts all packets that may start at port `gp`, and schedules the next departure.
    pub(super) fn serve(&mut self, now: u64, node: u32, gp: usize) {
        let host = (node as usize) < self.servers;
        if host && let Some(sharing) = self.setup.plan.sharing {
            return self.serve_nic(now, node, self.home(gp), sharing.ports.into());
        }
        let classes = self.setup.plan.classes.all();
        while self.ports[gp].busy <= now {
            let port = &mut self.ports[gp];
            if let Some(pkt) = port.pop(classes, host) {
                self.queued[gp] -= u64::from(pkt.frame());
                self.start(now, node, gp, pkt);
            } else if host && !self.setup.holds_data(port.paused()) {
                match self.hosts[gp].pull(&self.setup, now) {
                    Some(pkt) => self.start(now, node, gp, pkt),
                    None => break,
                }
            } else {
                break;
            }
        }
        let port = &self.ports[gp];
        let mut due = if port.has_next(classes) { port.busy } else { u64::MAX };
        if host && !self.setup.holds_data(port.paused()) {
            due = due.min(self.hosts[gp].eligible_at().max(port.busy));
        }
        if due != u64::MAX && due != port.planned {
            self.ports[gp].planned = due;
            let base = self.setup.fabric().base(NodeId(node)) as usize;
            self.schedule(due, node, NodeEvent::Depart { port: (gp - base) as u16 });
        }
    }

    /// [`Reference::serve`] for the ports of a shared NIC, `count` from `home` on.
    fn serve_nic(&mut self, now: u64, node: u32, home: usize, count: usize) {
        let classes = self.setup.plan.classes.all();
        for port in 0..count {
            while self.ports[home + port].busy <= now {
                if let Some(pkt) = self.ports[home + port].pop(classes, true) {
                    self.queued[home + port] -= u64::from(pkt.frame());
                    self.start(now, node, home + port, pkt);
                } else if !self.holds_data(home + port) {
                    let vacancy = self.vacancy(now, home, count, port);
                    match self.hosts[home].pull_by(&self.setup, now, vacancy) {
                        Some((port, pkt)) => self.start(now, node, home + port, pkt),
                        None => break,
                    }
                } else {
                    break;
                }
            }
        }
        for gp in home..home + count {
            let port = &self.ports[gp];
            let mut due = if port.has_next(classes) { port.busy } else { u64::MAX };
            if !self.holds_data(gp) {
                due = due.min(self.hosts[home].eligible_by(gp - home).max(port.busy));
            }
            if due != u64::MAX && due != port.planned {
                self.ports[gp].planned = due;
                let base = self.setup.fabric().base(NodeId(node)) as usize;
                self.schedule(due, node, NodeEvent::Depart { port: (gp - base) as u16 });
            }
        }
    }

    /// True if a pause keeps the data of a host's port back.
    fn holds_data(&self, gp: usize) -> bool {
        self.setup.holds_data(self.ports[gp].paused())
    }

    /// The free ports of a shared NIC in the turn of one of them.
    fn vacancy(&self, now: u64, home: usize, count: usize, port: usize) -> Vacancy {
        let classes = self.setup.plan.classes.all();
        let (mut free, mut next_free) = (0, u64::MAX);
        for (other, gp) in (home..home + count).enumerate() {
            if self.ports[gp].busy > now {
                next_free = next_free.min(self.ports[gp].busy);
            } else if !self.ports[gp].has_next(classes) && !self.holds_data(gp) {
                free |= 1 << other;
            }
        }
        let row = self.ports[home + port].row;
        let frame = self.setup.plan.wire.max_frame();
        let next_free = next_free.min(now + self.setup.time_on_wire(row, frame));
        Vacancy { port, free, next_free, row }
    }

    pub(super) fn start(&mut self, now: u64, node: u32, gp: usize, mut pkt: Parcel<P::Annex>) {
        let facts = self.setup.ports[gp];
        let port = &mut self.ports[gp];
        let time = self.setup.time_on_wire(port.row, pkt.frame());
        port.busy = now + time;
        if (node as usize) >= self.servers {
            let (sent, queue) = (self.links[gp].bytes, port.bytes[self.setup.class_in_table(&pkt)]);
            let hop = self.setup.hop::<P::Annex>(gp, port.row);
            self.setup.trace(&mut pkt, LinkState { hop, at: now, sent, queue }, &mut port.meters);
        }
        let link = &mut self.links[gp];
        link.frames += 1;
        link.bytes += pkt.frame() as u64;
        link.busy += Time(time);
        self.tally.hop(&pkt);
        let mut effects = Effects::default();
        if (node as usize) >= self.servers {
            let index = node as usize - self.servers;
            let own = gp - self.setup.fabric().base(NodeId(node)) as usize;
            let class = self.setup.class_in_table(&pkt);
            let queue = port.bytes[class];
            port.counts[class].leaves(pkt.frame());
            let channels = port.channels;
            self.switches[index].starts(&self.setup, now, &pkt, (own, channels));
            if self.setup.plan.classes.all()[class].charged && pkt.ingress() != PortIndex::VIRTUAL {
                let account = self.switches[index].account(&self.setup, &pkt);
                let place = Place::new(own, class);
                if self.switches[index].buffer.release(account, pkt.frame() as u64, place) {
                    let priority = self.switches[index].priority_of(account);
                    match self.switches[index].buffer.returned(account).is_some() {
                        true => self.return_credits(now, node, pkt.ingress(), priority),
                        false => _ = self.send_pause(now, node, pkt.ingress(), priority, false),
                    }
                }
            }
            if pkt.is_data()
                && let Some(marking) = self.setup.marking_in(class, gp)
                && marking.at == MarkAt::Dequeue
                && let seen = self.ports[gp].averages.follow(class, Some(marking), MarkAt::Dequeue, queue)
                && self.setup.marks(marking, gp, now, seen)
            {
                pkt.mark();
                self.links[gp].marks += 1;
                self.ports[gp].counts[class].marks += 1;
            }
            if self.switches[index].interest.departures && pkt.is_data() {
                self.switches[index].starting(now, &mut pkt, PortIndex(own as u16), &mut effects);
            }
            if facts.to_host && pkt.is_data() && self.switches[index].interest.host_departures {
                self.switches[index].departed(now, &pkt, PortIndex(own as u16), &mut effects);
            }
        }
        let Crossing { lost, late, replays } = match facts.lossy() {
            true => self.setup.crosses(gp, now, time, &pkt),
            false => Crossing::default(),
        };
        self.ports[gp].busy += late;
        self.links[gp].replays += replays;
        let at = now + late + time + facts.delay;
        if facts.tapped {
            self.recorder.frame(&self.setup, gp, now, Passed::Packet(pkt.label, lost.is_some()));
        }
        if let Some(how) = lost {
            self.links[gp].lose(how.cause());
            self.tally.lost(&pkt, Lost::Link(how));
            self.recorder.lost(&self.setup, gp, now, &pkt, how);
        } else {
            let tie = self.ties.rank(facts.peer, self.setup.by_run(at), facts.peer_port);
            let slot = self.landed.pop().unwrap_or_else(|| {
                self.flying.make_room();
                self.flying.push(None);
                self.flying.len() - 1
            });
            self.flying[slot] = Some(pkt.arriving(0, facts.peer_port));
            self.schedule(at, facts.peer, NodeEvent::Arrive { tie, slot });
            self.spend(now, node, gp, &pkt);
        }
        if (node as usize) >= self.servers {
            self.carry_out(now, node, effects);
        }
    }
}
