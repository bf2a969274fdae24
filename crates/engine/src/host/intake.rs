//! What a NIC does not take in: losses at a full port, and a host that takes data slowly, with its timers and pauses.

use super::nic::Host;
use super::receive_queue::Arrival;
use super::timers::Timer;
use crate::setup::Setup;
use model::transport::Reception;
use model::{Parcel, Parts, Time};

impl<P: Parts> Host<P> {
    /// Takes a data packet into the NIC; false if it is lost at the port, or the queue of the NIC has no room for it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_in(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) -> bool {
        let taken = !self.lost_at_port(setup, now, pkt) && self.queue_received(setup, now, pkt);
        if !taken {
            self.data.discarded += 1;
            self.heard.no_room += 1;
            self.note_arrival(setup, now, 0, pkt, &Reception::IGNORED);
        }
        taken
    }

    /// True if the packet is lost at the port.
    fn lost_at_port(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) -> bool {
        let Some(ingress) = &mut self.ingress else { return false };
        let (class, port) = (setup.plan.class_of(pkt.qp()).into(), pkt.ingress().index());
        let bytes = u64::from(pkt.frame() + self.gap);
        let lost = ingress.loses(Time(now), class, port, bytes);
        if lost && let Some(own) = &mut self.self_cnps {
            own.count(Time(now), port, bytes);
        }
        lost
    }

    /// Takes data into the queue of the NIC; false if the NIC discards it.
    fn queue_received(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) -> bool {
        let Some(queue) = &mut self.receive_queue else { return true };
        let arrival = queue.take(now, pkt.frame().saturating_sub(setup.plan.wire.header));
        if arrival == Arrival::Pauses {
            self.timers.push(now, Timer::Receive);
        }
        arrival != Arrival::Discarded
    }

    /// Pauses the links of the NIC, or resumes them if its queue is short again.
    pub(super) fn on_receive_timer(&mut self, now: u64) {
        if let Some(at) = self.receive_queue.as_mut().and_then(|queue| queue.on_timer(now)) {
            self.timers.push(at, Timer::Receive);
        }
    }

    /// Takes the pause (true) or resume frame that the last timer has made for all links of the NIC.
    #[inline]
    pub(crate) fn take_pause(&mut self) -> Option<bool> {
        self.receive_queue.as_mut()?.take_frame()
    }
}
