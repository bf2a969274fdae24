//! A capped visit of a switch whose scheme acts on every port by itself: one port is computed after the other.
//!
//! The visit notes each arrival on a line of the port by which it leaves, puts every line in order, and plays the ports
//! forward ([`super::desk`]).

use super::line;
use super::local::Ways;
use super::port::TO_HOST;
use super::shelf::{in_lanes, place_of};
use super::switch::{CAPPED, Visit};
use model::{Parcel, Parts, Scheme, Switched};

impl<P: Parts> Visit<'_, P, CAPPED, false> {
    /// Computes the window with the arrivals of these lanes. Returns the time of the switch's next event of its own, ps.
    #[inline(never)]
    pub(super) fn run_by_port(mut self, lanes: &[Vec<Parcel<P::Annex>>]) -> u64 {
        self.lay(lanes);
        let (window, shift) = (self.out.window, line::bin_shift(self.out.window.length));
        self.close_ports(|visit, p| {
            let mut line = std::mem::take(&mut visit.scratch.lines[p]);
            line::sort(&mut line, &mut visit.scratch.room, shift);
            let mut desk = visit.desk(p);
            for pkt in &line {
                desk.arrive(window.opened + line::time(pkt.word()), in_lanes(lanes, pkt.annex));
            }
            desk.serve(window.close);
            desk.put_back();
            line.clear();
            visit.scratch.lines[p] = line;
        })
    }

    /// Notes arrivals on lines: each with its key ([`super::line`]) and its place in its lane.
    #[inline(always)]
    fn lay(&mut self, lanes: &[Vec<Parcel<P::Annex>>]) {
        let mut ways = Ways::new(self.switch, self.router, self.out.window.opened);
        let (scheme, tie, lines) = (&mut self.switch.scheme, self.tie, &mut self.scratch.lines);
        if lines.len() < self.ports.len() {
            lines.resize(self.ports.len(), Vec::new());
        }
        for (number, lane) in lanes.iter().enumerate() {
            let Some(first) = lane.first() else { continue };
            if self.interest.announcements {
                lane.iter().for_each(|pkt| scheme.expect(pkt));
            }
            let from_host = self.ports[first.ingress().index()].is(TO_HOST);
            for (slot, pkt) in lane.iter().enumerate() {
                let p = match from_host {
                    true => ways.port_from_host(scheme, pkt, pkt.annex.path_entropy(pkt.is_forward())).0,
                    false => ways.port(scheme, pkt),
                };
                self.backlog[p >> 6] |= 1 << (p & 63);
                lines[p].push(Parcel { label: line::keyed(pkt.label, tie), annex: place_of(number, slot) });
            }
        }
    }
}
