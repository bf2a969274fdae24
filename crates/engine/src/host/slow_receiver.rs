//! A NIC whose host takes data slowly: arrivals, timers, and the pauses of its links.

use super::nic::Host;
use super::receive_queue::Arrival;
use super::timers::Timer;
use crate::setup::Setup;
use model::transport::Reception;
use model::{Parcel, Parts};

impl<P: Parts> Host<P> {
    /// Takes data into the queue of the NIC; false if the NIC discards it.
    #[cold]
    #[inline(never)]
    pub(super) fn queue_received(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) -> bool {
        let Some(queue) = &mut self.receive_queue else { return true };
        let arrival = queue.take(now, pkt.frame().saturating_sub(setup.plan.wire.header));
        match arrival {
            Arrival::Kept => {}
            Arrival::Pauses => self.timers.push(now, Timer::Receive),
            Arrival::Discarded => {
                self.data.discarded += 1;
                self.note_arrival(setup, now, 0, pkt, &Reception::IGNORED);
            }
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
