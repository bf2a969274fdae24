//! Port status: a NIC whose queue pairs spread over its ports tells its peers which of its ports are down, and neither end uses
//! them then.
//!
//! A port is down while its link is dead in either direction. A change that lasts for a while gets a numbered report to each queue
//! pair, and the peer confirms it. Reports may be lost or overtaken: the one with the highest number counts. A report that nobody
//! confirms is sent again, over other ports and paths.

use super::nic::Host;
use super::ports::{End, PORTS, PortStatus, Told};
use super::queue_pair::Peer;
use super::timers::Timer;
use crate::setup::Setup;
use model::{
    Dialogue, HostId, Kind, LinkId, Packet, Parcel, Parts, PortSharing, QpId, Steering, Switched, Time,
};

/// Wait for the first confirmation; it doubles from one repetition to the next. Our choice: above the round trip of most fabrics.
const FIRST_REPETITION: Time = Time::from_us(50);
/// Repetitions after which the NIC gives its peers up. Our choice: they take 50 ms.
const REPETITIONS: u32 = 10;

impl<P: Parts> Host<P> {
    /// Notes whether a queue pair takes part in port status, when the run starts; ends must come in their order.
    pub(super) fn expect_port_status(&mut self, setup: &Setup<'_>, notice: Option<Time>, end: End) {
        let own = self.id;
        let Some((sharing, status)) = self.status_mut() else { return };
        let told = Told { takes_part: notice.is_some(), ..Told::default() };
        match end {
            End::Sender(_) => status.outgoing.push(told),
            End::Receiver(_) => status.incoming.push(told),
        }
        if !told.takes_part || status.notice.is_some() {
            return;
        }
        // The NIC watches its ports for all its queue pairs; the first one that takes part gives the time.
        status.notice = notice;
        let delay = notice.unwrap_or_default().ps();
        let failures = &setup.plan.failures;
        let links = (0..sharing.ports).flat_map(|port| port_links(setup, own, port));
        let changes =
            links.flat_map(|link| failures.of(link)).map(|change| change.at.ps().saturating_add(delay));
        let times: Vec<u64> = changes.collect();
        times.into_iter().for_each(|at| self.timers.push(at.max(1), Timer::Ports));
    }

    fn status_mut(&mut self) -> Option<(PortSharing, &mut PortStatus)> {
        let ports = self.ports.as_mut().filter(|ports| ports.spreads())?;
        Some((ports.sharing, &mut ports.status))
    }

    /// Handles a timer of [`PortStatus`]: an own port may have changed, or a report was not confirmed.
    #[cold]
    pub(super) fn on_ports_timer(&mut self, setup: &Setup<'_>, now: u64) {
        let own = self.id;
        let Some((sharing, status)) = self.status_mut() else { return };
        let is_down = |port: &u16| port_links(setup, own, *port).iter().any(|link| setup.is_dead(*link, now));
        let down = (0..sharing.ports).filter(is_down).fold(0, |down, port| down | 1 << port);
        let changed = down != status.down;
        if changed {
            status.down = down;
            status.any_down = true;
            status.report += 1;
            (status.repetitions, status.repeat_at) = (0, now);
        }
        if status.repeat_at > now {
            return; // a stale entry
        }
        let ends = |list: &[Told]| (0..list.len() as u32).collect::<Vec<_>>();
        let (outgoing, incoming) = (ends(&status.outgoing), ends(&status.incoming));
        let all = outgoing.iter().map(|slot| End::Sender(*slot));
        let all: Vec<End> = all.chain(incoming.iter().map(|index| End::Receiver(*index))).collect();
        let mut told = false;
        for end in all {
            told |= self.tell(setup, now, end);
        }
        let Some((_, status)) = self.status_mut() else { return };
        status.repeat_at = u64::MAX;
        if told && status.repetitions < REPETITIONS {
            status.repeat_at = now + (FIRST_REPETITION.ps() << status.repetitions);
            status.repetitions += 1;
            let at = status.repeat_at;
            self.timers.push(at, Timer::Ports);
        }
        if changed {
            (0..self.outgoing.len() as u32).for_each(|slot| self.on_ports(setup, now, slot));
        }
    }

    /// Sends the last report to the other end of a queue pair, unless it has confirmed it; true if it was sent.
    fn tell(&mut self, setup: &Setup<'_>, now: u64, end: End) -> bool {
        let Some((_, status)) = self.status_mut() else { return false };
        let told = status.told(end);
        if !told.takes_part || told.confirmed == status.report || self.is_over(setup, end) {
            return false;
        }
        let Some((_, status)) = self.status_mut() else { return false };
        let (report, repetitions) = (status.report << PORTS | u64::from(status.down), status.repetitions);
        let qp = self.qp_of(end);
        let ends = &setup.plan.qps[qp.index()];
        let own = match end {
            End::Sender(_) => ends.from,
            End::Receiver(_) => ends.to,
        };
        // No arrival has caused this message, so it takes the open ports in turn.
        let (port, to) = self.way_to(setup, now, (own, self.peer_of(end)), end, repetitions);
        let annex = P::Annex::message(report, repetitions as u16);
        // Our choice: a report has the size of an ACK.
        let label = Packet::new(Kind::Control, qp, to, Packet::PORTS, setup.plan.wire.ack);
        self.control.port_status += 1;
        self.control.created += 1;
        self.made.push(Parcel { label: label.arriving(0, port), annex });
        true
    }

    /// Takes the peer's report; returns the confirmation.
    pub(super) fn on_port_report(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        end: End,
    ) -> Option<Parcel<P::Annex>> {
        let report = pkt.annex.amount();
        let peer = self.peer_of(end);
        let (_, status) = self.status_mut()?;
        status.any_down = true;
        let told = status.told_mut(end)?;
        let news = report > told.heard;
        told.heard = told.heard.max(report);
        if news && let End::Sender(slot) = end {
            self.on_ports(setup, now, slot);
        }
        let (to, port) = self.back(peer, pkt.ingress(), end);
        let annex = P::Annex::message(report, pkt.annex.path_entropy(false));
        self.control.port_status += 1;
        self.control.created += 1;
        let label = Packet::new(Kind::Control, pkt.qp(), to, Packet::PORTS_HEARD, setup.plan.wire.ack);
        Some(Parcel { label: label.arriving(0, port), annex })
    }

    /// Takes the confirmation of a report.
    pub(super) fn on_port_report_heard(&mut self, report: u64, end: End) {
        if let Some((_, status)) = self.status_mut()
            && let Some(told) = status.told_mut(end)
        {
            told.confirmed = told.confirmed.max(report >> PORTS);
        }
    }

    /// Tells the steering of a queue pair which ports it may use from now on.
    pub(super) fn on_ports(&mut self, setup: &Setup<'_>, now: u64, slot: u32) {
        let usable = self.usable(slot);
        self.outgoing[slot as usize].steering.on_ports(usable);
        if !self.is_over(setup, End::Sender(slot)) {
            self.enqueue(slot, now);
        }
    }

    /// True if no message of this queue pair is left at this end; a program may post others at any time.
    fn is_over(&self, setup: &Setup<'_>, end: End) -> bool {
        let over = match end {
            End::Sender(slot) => {
                let queue = &self.send_queues[slot as usize];
                queue.acked == queue.count
            }
            End::Receiver(index) => self.incoming[index as usize].message_end == u64::MAX,
        };
        over && setup.posted(self.qp_of(end)).is_none()
    }

    /// The queue pair of an end.
    fn qp_of(&self, end: End) -> QpId {
        match end {
            End::Sender(slot) => self.outgoing[slot as usize].qp,
            End::Receiver(index) => QpId(self.first_incoming + index),
        }
    }

    /// The other end's host and port.
    fn peer_of(&self, end: End) -> Peer {
        match end {
            End::Sender(slot) => self.outgoing[slot as usize].peer,
            End::Receiver(index) => self.incoming[index as usize].from,
        }
    }
}

/// The two directions of the link of a NIC's port.
fn port_links(setup: &Setup<'_>, home: HostId, port: u16) -> [LinkId; 2] {
    let link = LinkId(home.0 + u32::from(port));
    [link, setup.plan.fabric.reverse(link)]
}
