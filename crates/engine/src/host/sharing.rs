//! A NIC with several ports that serve all its queue pairs. The host of its first port has the state of all of them.

use super::nic::Host;
use super::ports::End;
use super::queue_pair::Peer;
use super::ready::Turn;
use super::timers::Timer;
use crate::setup::Setup;
use model::{HostId, Packet, Parcel, Parts, PortChoice, PortIndex, PortSharing, QpId, Steering, Time};

/// Ports at one instant, for the queue pairs that spread over them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacancy {
    /// The port in whose turn the queue pair is chosen.
    pub(crate) port: usize,
    /// A bit for each port that may start a data packet.
    pub(crate) free: u32,
    /// Time at which another port is free, ps; it lies in the future.
    pub(crate) next_free: u64,
    /// Start of the port's row of transmission times.
    pub(crate) row: u32,
}

impl<P: Parts> Host<P> {
    /// The peer of a queue pair at its sender when the run starts.
    pub(super) fn first_peer(&mut self, setup: &Setup<'_>, id: QpId, watched: bool) -> Peer {
        let qp = &setup.plan.qps[id.index()];
        let (mut to, mut port) = (qp.to, 0);
        if let Some(ports) = &mut self.ports {
            match ports.sharing.choice {
                PortChoice::Spread => ports.open.push(setup.open(ports.sharing, qp.from, qp.to, 0)),
                PortChoice::Failover | PortChoice::Devices(_) => {
                    (port, to) = setup.joined(ports.sharing, qp.from, qp.to, 0);
                }
            }
        }
        Peer::new(to, port, watched)
    }

    /// The peer of a queue pair at its receiver when the run starts.
    pub(super) fn first_source(&self, setup: &Setup<'_>, id: QpId) -> Peer {
        let qp = &setup.plan.qps[id.index()];
        match &self.ports {
            Some(ports) if !ports.spreads() => {
                let (port, from) = setup.joined(ports.sharing, qp.to, qp.from, 0);
                Peer::new(from, port, false)
            }
            _ => Peer::new(qp.from, 0, false),
        }
    }

    /// Expects all changes of routes, which may change the ports of queue pairs.
    pub(super) fn expect_route_changes(&mut self, setup: &Setup<'_>) {
        if self.ports.as_ref().is_some_and(|ports| ports.resilience().is_none()) {
            for change in setup.plan.failures.route_changes().iter().filter(|change| change.at > Time::ZERO) {
                self.timers.push(change.at.ps(), Timer::Routes);
            }
        }
    }

    /// Chooses the ports of all queue pairs by the routes that apply from now on.
    #[cold]
    pub(super) fn on_route_change(&mut self, setup: &Setup<'_>, now: u64) {
        let Some(ports) = &mut self.ports else { return };
        let sharing = ports.sharing;
        if ports.spreads() {
            let mut changed = Vec::new();
            for (slot, (open, out)) in (0..).zip(ports.open.iter_mut().zip(&self.outgoing)) {
                let qp = &setup.plan.qps[out.qp.index()];
                let before = std::mem::replace(open, setup.open(sharing, qp.from, qp.to, now));
                if before != *open {
                    changed.push(slot);
                }
            }
            changed.into_iter().for_each(|slot| self.on_ports(setup, now, slot));
            return;
        }
        let mut turns: Vec<Turn> = self.ready.take_all();
        ports.others.iter_mut().for_each(|ready| turns.append(&mut ready.take_all()));
        for out in &mut self.outgoing {
            let qp = &setup.plan.qps[out.qp.index()];
            let (port, to) = setup.joined(sharing, qp.from, qp.to, now);
            out.peer.lead(to, port);
        }
        for (index, incoming) in self.incoming.iter_mut().enumerate() {
            let qp = &setup.plan.qps[self.first_incoming as usize + index];
            let (port, from) = setup.joined(sharing, qp.to, qp.from, now);
            incoming.from.lead(from, port);
        }
        for Turn { at, slot } in turns {
            self.give_turn(at, slot, now);
        }
    }

    /// Gives a turn to a queue pair that has none, at its port.
    #[inline]
    pub(super) fn give_turn(&mut self, at: u64, slot: u32, now: u64) {
        match &mut self.ports {
            None if self.holding.keep(Turn { at, slot }) => {}
            None => match &mut self.classes {
                None => self.ready.insert(at, slot, now),
                Some(classes) => classes.insert(at, slot, now),
            },
            Some(ports) => match self.outgoing[slot as usize].peer.port() {
                0 => self.ready.insert(at, slot, now),
                port => ports.others[port - 1].insert(at, slot, now),
            },
        }
    }

    /// True if its queue pairs spread over the ports of the NIC.
    #[inline(always)]
    pub(crate) fn spreads(&self) -> bool {
        self.ports.as_ref().is_some_and(|ports| ports.spreads())
    }

    /// [`Host::eligible_at`] for the queue pairs that send by `port` of a shared NIC.
    #[inline(always)]
    pub(crate) fn eligible_by(&self, port: usize) -> u64 {
        match &self.ports {
            Some(ports) if ports.spreads() => self.eligible_at().min(ports.waiters.until),
            Some(ports) if port > 0 => ports.others[port - 1].first().at,
            _ => self.eligible_at(),
        }
    }

    /// [`Host::pull`] for a shared NIC. Returns the packet, and the port by which it leaves.
    pub(crate) fn pull_by(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        vacancy: Vacancy,
    ) -> Option<(usize, Parcel<P::Annex>)> {
        if self.row != vacancy.row {
            self.set_rate(setup, vacancy.row);
        }
        if !self.spreads() {
            self.turn_to(vacancy.port);
            let pkt = self.pull(setup, now);
            self.turn_to(vacancy.port);
            return pkt.map(|pkt| (vacancy.port, pkt));
        }
        if let Some(ports) = &mut self.ports {
            (ports.free, ports.next_free) = (vacancy.free, vacancy.next_free);
            ports.waiters.begin(now, vacancy.free, (1 << ports.sharing.ports) - 1);
            // Two are enough, as the first or the second one in line sends.
            for Turn { at, slot } in [ports.waiters.next(), ports.waiters.next()].into_iter().flatten() {
                self.ready.insert(at, slot, now);
            }
            // Our choice: the second queue pair in line goes first every other time, by a draw. Strict turns would run in step with
            // the ports, which are free in turn, too: of two queue pairs each would keep half of the ports.
            if ports.turns.0.draw(ports.turns.1) >> 63 != 0 {
                self.ready.let_second_go(now);
            }
        }
        let pulled = self.pull(setup, now);
        let ports = self.ports.as_mut()?;
        ports.waiters.end(now, pulled.is_none().then_some(vacancy.next_free));
        let Parcel { label, annex } = pulled?;
        ports.turns.1 += 1;
        let to = HostId(ports.sharing.home(label.to()).0 + u32::from(ports.chosen));
        Some((usize::from(ports.chosen), Parcel { label: label.with_to(to), annex }))
    }

    /// Exchanges the queue pairs in line at the first port for those at another port; a second call undoes it.
    fn turn_to(&mut self, port: usize) {
        if port > 0
            && let Some(ports) = &mut self.ports
        {
            std::mem::swap(&mut self.ready, &mut ports.others[port - 1]);
        }
    }

    /// Chooses the port of the packet that the first queue pair in line may send now, under its window. If the queue pair has no path by a free
    /// port, it waits until another port is free, and false returns.
    #[inline(never)]
    pub(super) fn choose_port(&mut self, now: u64, slot: u32, window: u64) -> bool {
        let Some(ports) = self.ports.as_mut().filter(|ports| ports.spreads()) else { return true };
        let out = &mut self.outgoing[slot as usize];
        if !out.can_send(window) {
            return true;
        }
        let open = ports.usable(ports.open[slot as usize].into(), End::Sender(slot));
        // Without any route, packets go on as before and are lost.
        let allowed = if open == 0 { ports.free } else { ports.free & open };
        match out.steering.port(Time(now), allowed) {
            Some(port) => {
                ports.chosen = port;
                true
            }
            None => {
                ports.waiters.tried &= ports.free;
                ports.waiters.until = ports.waiters.until.min(ports.next_free);
                ports.waiters.failed.push(self.ready.first());
                self.ready.remove_first();
                if let Some(Turn { at, slot }) = ports.waiters.next() {
                    self.ready.insert(at, slot, now);
                }
                false
            }
        }
    }

    /// The ports that a queue pair of this sender may use.
    pub(super) fn usable(&self, slot: u32) -> u32 {
        let ports = self.ports.as_ref().filter(|ports| ports.spreads());
        ports.map_or(1, |ports| ports.usable(ports.open[slot as usize].into(), End::Sender(slot)))
    }

    /// The own port and the host for a packet to the sender of a queue pair that no arrival has caused.
    pub(super) fn way_back(&self, setup: &Setup<'_>, now: u64, qp: QpId) -> (PortIndex, HostId) {
        let index = qp.0 - self.first_incoming;
        let ends = (setup.plan.qps[qp.index()].to, self.incoming[index as usize].from);
        self.way_to(setup, now, ends, End::Receiver(index), 0)
    }

    /// The own port and the host for a control message from `own`, an end of a queue pair, to the other end. The usable ports
    /// take turns.
    pub(super) fn way_to(
        &self,
        setup: &Setup<'_>,
        now: u64,
        (own, other): (HostId, Peer),
        end: End,
        turn: u32,
    ) -> (PortIndex, HostId) {
        let Some(ports) = &self.ports else { return (PortIndex(0), other.to()) };
        if !ports.spreads() {
            return (PortIndex(other.port() as u16), other.to());
        }
        // Our choice: without turns, the first port that routes join.
        let open = ports.usable(setup.open(ports.sharing, own, other.to(), now).into(), end);
        let mut usable = (0..PortSharing::MOST as u32).filter(|port| open >> port & 1 != 0);
        let port = usable.nth((turn % open.count_ones().max(1)) as usize).unwrap_or(0);
        (PortIndex(port as u16), HostId(ports.sharing.home(other.to()).0 + port))
    }

    /// True if a message between two ports of one bond goes to the sending end. Planes are not joined, so no route leads from one port
    /// of a NIC that spreads to another.
    pub(super) fn is_for_sender(&self, setup: &Setup<'_>, pkt: &Packet) -> bool {
        let within = self.ports.as_ref().is_some_and(|ports| !ports.spreads());
        within && setup.plan.qps[pkt.qp().index()].from == pkt.to()
    }

    /// A port of the server, by its number in the NIC.
    pub(super) fn port_of_nic(&self, port: PortIndex) -> PortIndex {
        PortIndex(self.ports.as_ref().map_or(0, |ports| port.0 % ports.sharing.ports))
    }

    /// The host and the own port for a packet that this end of a queue pair sends back in answer to one that came by port `by`:
    /// that port, or the next one that is not down.
    #[inline]
    pub(super) fn back(&self, from: Peer, by: PortIndex, end: End) -> (HostId, PortIndex) {
        match &self.ports {
            None => (from.to(), PortIndex(0)),
            Some(ports) if ports.spreads() => {
                let (closed, count) = (ports.status.closed(end), usize::from(ports.sharing.ports));
                let mut turns = (0..count).map(|turn| (by.index() + turn) % count);
                let port = turns.find(|port| closed >> port & 1 == 0).unwrap_or(by.index() % count);
                (HostId(ports.sharing.home(from.to()).0 + port as u32), PortIndex(port as u16))
            }
            Some(_) => (from.to(), PortIndex(from.port() as u16)),
        }
    }
}
