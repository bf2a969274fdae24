//! Queue pairs that leave a dead port, where the ports of a NIC are devices. Each finds out for itself, by its own timeouts, and no
//! second one of its ports may die before the first is back.
//!
//! Two things are clocks alone, without packets. The probe over the next port asks what has arrived, and the sender goes on after
//! [`Resilience::probe`](model::Resilience). The messages that ask whether the own port works arrive if its links work at their start.

use super::nic::{Host, Replies};
use super::ports::Away;
use super::ready::Turn;
use super::timers::Timer;
use crate::outcome::Failover;
use crate::setup::Setup;
use model::{HostId, Parcel, Parts, Sender, Time};

impl<P: Parts> Host<P> {
    /// Moves a queue pair whose retries are used up to the next port; false if it has left a port before, or if there is no other. The
    /// caller must let it send.
    #[cold]
    #[inline(never)]
    pub(super) fn fail_over(&mut self, setup: &Setup<'_>, now: u64, slot: u32) -> bool {
        let Some(ports) = &mut self.ports else { return false };
        let Some(resilience) = ports.resilience().filter(|_| !ports.away.contains_key(&slot)) else {
            return false;
        };
        let out = &mut self.outgoing[slot as usize];
        let qp = &setup.plan.qps[out.qp.index()];
        let [from, to] = [qp.from, qp.to].map(|host| ports.sharing.turned(host, 1));
        if !setup.fabric().reaches_by(None, from, to) {
            return false;
        }
        let failover = Failover { at: Time(now), qp: out.qp, from: qp.from, to: from, back: Time::NEVER };
        ports.away.insert(slot, Away { failover: ports.failovers.len(), attempts: 0, arrived: false });
        ports.failovers.push(failover);
        out.sender.restart();
        out.next_at = out.next_at.max(now + resilience.probe.ps());
        let port = ports.sharing.place(from);
        self.timers.push(now + resilience.recovery.ps(), Timer::Recover(slot));
        self.lead(now, slot, to, port);
        true
    }

    /// Asks whether the own port of a queue pair works again. After two answers in a row the queue pair returns.
    #[cold]
    pub(super) fn on_recovery(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let Some(ports) = &mut self.ports else { return };
        let (Some(resilience), Some(away)) = (ports.resilience(), ports.away.get_mut(&slot)) else { return };
        let qp = &setup.plan.qps[self.outgoing[slot as usize].qp.index()];
        let arrives = setup.connects(qp.from, qp.to, now);
        if arrives && away.arrived {
            ports.failovers[away.failover].back = Time(now);
            ports.away.remove(&slot);
            let port = ports.sharing.place(qp.from);
            return self.lead(now, slot, qp.to, port);
        }
        (away.attempts, away.arrived) = (away.attempts + 1, arrives);
        if away.attempts < resilience.attempts {
            self.timers.push(now + resilience.interval.ps(), Timer::Recover(slot));
        }
    }

    /// Leads a queue pair to a host by a port, and takes it out of the line of its old port.
    fn lead(&mut self, now: u64, slot: u32, to: HostId, port: usize) {
        let out = &mut self.outgoing[slot as usize];
        let (old, next_at) = (out.peer.port(), out.next_at);
        out.peer.lead(to, port);
        if !out.peer.queued() {
            return;
        }
        let turns = match (&mut self.ports, old) {
            (Some(ports), 1..) => ports.others[old - 1].take_all(),
            _ => self.ready.take_all(),
        };
        for Turn { at, slot: other } in turns {
            self.give_turn(if other == slot { at.max(next_at) } else { at }, other, now);
        }
    }

    /// [`Host::on_arrival`] at a NIC whose ports may be devices: replies to data leave by the port by which it came.
    pub(crate) fn on_arrival_by(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Replies<P::Annex> {
        if let Some(ports) = &self.ports
            && ports.resilience().is_some()
            && pkt.is_data()
        {
            let (sharing, qp) = (ports.sharing, &setup.plan.qps[pkt.qp().index()]);
            let count = usize::from(sharing.ports);
            let port = pkt.ingress().index() % count;
            let from = sharing.turned(qp.from, port + count - sharing.place(qp.to));
            self.incoming[(pkt.qp().0 - self.first_incoming) as usize].from.lead(from, port);
        }
        self.on_arrival(setup, now, pkt)
    }

    /// The moves of its queue pairs to other ports.
    pub(crate) fn failovers(&self) -> &[Failover] {
        self.ports.as_ref().map_or(&[], |ports| &ports.failovers)
    }
}
