//! A host with several ports in one window.
//!
//! The ports of a host share nothing but triggers: a message that arrives at one port may start a message at another port at
//! the same instant. So every port is computed like the port of a host with a single port ([`super::host`]), in steps. All
//! arrivals of the host are taken in one order, and a trigger is handed on before the next arrival.

use super::classed::Queues;
use super::out::{LinkEvents, Out};
use super::port::Port;
use super::{classed_host, host};
use crate::host::Host;
use model::packet::Kinds;
use model::{MessageId, Parcel, Parts};

/// A step in the computation of one port.
pub(super) enum Step<'s, A> {
    /// A packet arrives.
    Arrival(&'s Parcel<A>),
    /// A trigger, collected at another port at this time in ps, fires for a message that leaves by this port.
    Trigger(u64, MessageId),
    /// The window ends.
    End,
}

/// Events and far packets of one port.
#[derive(Debug, Default)]
pub(super) struct PortEvents {
    pub(super) links: LinkEvents,
    /// The port's bit in [`Out::far`], as if it was the only port.
    far: [u64; 1],
}

/// The visit of one host in one window; all slices are by port.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) hosts: &'v mut [Host<P>],
    pub(super) ports: &'v mut [Port<P::Annex>],
    /// Empty if the plan's classes are a preset.
    pub(super) classed: &'v mut [Queues<P::Annex>],
    pub(super) events: &'v mut [PortEvents],
    pub(super) out: Out<'v, P::Annex>,
    pub(super) with_data: Kinds,
}

impl<P: Parts> Visit<'_, P> {
    /// Computes the window with these arrivals, in their order. Returns the time of the host's next event; [`u64::MAX`]
    /// for none.
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        let plan = self.out.setup.plan;
        for pkt in arrivals {
            let p = pkt.ingress().index();
            self.step(p, Step::Arrival(pkt));
            while let Some(m) = self.hosts[p].take_abroad() {
                let sender = plan.qps[plan.messages[m.index()].qp.index()].from;
                let now = self.out.window.opened + pkt.offset() as u64;
                self.step(sender.index() - self.out.gp, Step::Trigger(now, m));
            }
        }
        let mut next = u64::MAX;
        for p in 0..self.ports.len() {
            next = next.min(self.step(p, Step::End));
            self.out.far[p / 64] |= std::mem::take(&mut self.events[p].far[0]) << (p % 64);
        }
        next
    }

    fn step(&mut self, p: usize, step: Step<'_, P::Annex>) -> u64 {
        let PortEvents { links: events, far } = &mut self.events[p];
        let (host, port, out) = (&mut self.hosts[p], &mut self.ports[p], self.out.one(p, far));
        match self.classed.get_mut(p) {
            None => host::Visit { host, port, out, events, with_data: self.with_data }.step(step),
            Some(queues) => classed_host::Visit { host, port, queues, out, events }.step(step),
        }
    }
}
