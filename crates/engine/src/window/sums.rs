//! The charges of a switch's buffer, from the packets in its queues.

use super::classed::Queues;
use super::port::Port;
use super::setup::Setup;
use crate::switch::Switch;
use model::Parts;

/// The queues of a switch by port, with plain classes and with others.
type QueuesOf<'q, A> = (&'q [Port<A>], &'q [Queues<A>]);

/// Recounts the buffer's charges by account, which light and capped visits do not keep.
pub(super) fn recount<P: Parts>(
    switch: &mut Switch<P>,
    (ports, classed): QueuesOf<'_, P::Annex>,
    setup: &Setup<'_>,
) {
    if !switch.buffer.detailed() {
        let plain = ports.iter().filter(|p| p.waiting > 0).flat_map(|p| p.queued_data());
        match classed.is_empty() {
            true => switch.recount(plain, setup.with_data),
            false => {
                let queued = classed.iter().flat_map(Queues::queued);
                switch.recount(queued.filter(|pkt| setup.charged.take(pkt)), setup.charged);
            }
        }
    }
}

/// Sets the buffer's charges after a light visit that leaves so many bytes of data in the queues.
#[inline(always)]
pub(super) fn settle<P: Parts>(
    switch: &mut Switch<P>,
    ports: &[Port<P::Annex>],
    waiting: u64,
    setup: &Setup<'_>,
) {
    match switch.buffer.counts_always() {
        false => switch.buffer.settle(waiting + switch.held_charge - switch.uncharged),
        true => count(switch, ports, setup),
    }
}

#[inline(never)]
fn count<P: Parts>(switch: &mut Switch<P>, ports: &[Port<P::Annex>], setup: &Setup<'_>) {
    let queued = ports.iter().enumerate().filter(|(_, port)| port.waiting > 0);
    switch.count(setup, queued.flat_map(|(p, port)| port.queued_data().iter().map(move |pkt| (p, pkt))));
}
