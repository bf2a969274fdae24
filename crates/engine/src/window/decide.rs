//! Decisions of a scheme that needs nothing but the arrivals of a visit, in order of time.
//!
//! The scheme decides on all of them before any port is computed. Each arrival, and each packet that the scheme makes, then
//! lies on the line of its port, in order, as in [`super::local`].

use super::line::{self, LOW};
use super::local::{Made, Play};
use super::port::TO_HOST;
use crate::switch::{Arrival, Switch};
use model::draw::below;
use model::fabric::Detours;
use model::packet::Kinds;
use model::scheme::{Effects, flow_of, flow_tuple};
use model::{Annex, Kind, NodeId, Parcel, Parts, PortIndex, Scheme, Switched, Time, Verdict};

/// Replies of hosts.
pub(super) const REPLIES: Kinds = Kinds::of(&[Kind::Ack, Kind::Nack, Kind::Cnp]);

impl<A: Annex> Play<'_, A> {
    /// Lets the scheme decide on all arrivals, and lays them onto lines.
    #[inline(never)]
    pub(super) fn decide<P: Parts<Annex = A>>(
        &mut self,
        switch: &mut Switch<P>,
        node: NodeId,
        arrivals: &[Parcel<A>],
        effects: &mut Effects,
    ) {
        let (opened, interest) = (self.out.window.opened, switch.interest);
        let plain = if interest.plain_replies { REPLIES } else { Kinds::of(&[]) };
        let router = self.out.setup.router(node, None);
        for arrival in arrivals {
            let now = opened + u64::from(arrival.offset());
            let (ports, to_host) = router.ports(arrival.to());
            if plain.take(arrival) {
                let port = base_path(switch, arrival, ports);
                if interest.every_packet {
                    switch.scheme.note_reply(Time(now), arrival, port);
                }
                self.lay_arrival(port, arrival);
                continue;
            }
            if let ([port], false) = (ports, interest.every_packet) {
                self.lay_arrival(*port, arrival);
                continue;
            }
            let ingress = arrival.ingress();
            let from_host = self.ports[ingress.index()].is(TO_HOST);
            let (detours, view) = (Detours::NONE, self.out.view);
            let at = Arrival { now, ingress, from_host, to_host, detours, view };
            let mut pkt = *arrival;
            match switch.judge(at, &[], &mut pkt, ports, effects) {
                Verdict::Forward(port) => self.lay_arrival(port, &pkt),
                verdict => {
                    debug_assert_eq!(verdict, Verdict::Drop, "the scheme said that it holds nothing");
                    self.out.tally.dropped_by_scheme(&pkt);
                }
            }
            if !effects.is_empty() {
                self.lay_made_at(arrival, (switch, node), effects);
            }
        }
        self.sorted = true;
    }

    #[inline(always)]
    fn lay_arrival(&mut self, port: PortIndex, pkt: &Parcel<A>) {
        let annex = self.shelf.put(&pkt.annex);
        self.layer.lay(port.index(), pkt.label, annex);
    }

    /// Lays the packets that the scheme has made at an arrival behind it.
    #[cold]
    #[inline(never)]
    fn lay_made_at<P: Parts<Annex = A>>(
        &mut self,
        arrival: &Parcel<A>,
        (switch, node): (&Switch<P>, NodeId),
        effects: &mut Effects,
    ) {
        let event = line::keyed(arrival.label, self.layer.tie).word();
        for emitted in effects.emitted.drain(..) {
            let (port, pkt) = switch.made(self.out.setup, node, emitted);
            self.out.tally.made(&pkt);
            let word = event & !LOW | pkt.word() & LOW;
            let (label, annex) = (pkt.label.with_word(word), self.shelf.put(&pkt.annex));
            self.made.push(Made { event, packet: emitted.packet, to: Some(port.index()), word });
            self.layer.lay_keyed(port.index(), Parcel { label, annex });
        }
        debug_assert!(effects.is_empty(), "the scheme said that it only makes packets");
    }
}

/// The base path of a reply, or that of its own entropy.
#[inline(always)]
pub(super) fn base_path<P: Parts>(
    switch: &Switch<P>,
    pkt: &Parcel<P::Annex>,
    ports: &[PortIndex],
) -> PortIndex {
    match ports {
        [port] => *port,
        _ => {
            let tuple = flow_tuple(pkt, pkt.annex.path_entropy(pkt.is_forward()));
            ports[below(flow_of(switch.salt, tuple), ports.len())]
        }
    }
}
