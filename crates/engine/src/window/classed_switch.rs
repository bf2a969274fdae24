//! What visits of switches do at ports whose classes are not plain. A heavy visit keeps the account of the buffer at each event. In
//! a capped one, [`super::desk`] plays each port forward.
//!
//! A capped visit needs no order among the ports where the scheme acts on every port by itself: it notes each arrival on a line of
//! the port by which it leaves, puts every line in order, and computes one port after the other.

use super::desk::{Desk, mark_classed};
use super::line;
use super::local::Ways;
use super::out::Out;
use super::port::TO_HOST;
use super::shelf::{in_lanes, place_of};
use super::switch::{CAPPED, SwitchState, Visit};
use crate::buffer::Caps;
use model::{Parcel, Parts, PortIndex, Scheme, Switched};

impl<'v, P: Parts> Visit<'v, P, CAPPED, false> {
    /// A visit of a switch whose queues are bounded by these caps alone.
    pub(super) fn capped(state: SwitchState<'v, P>, out: Out<'v, P::Annex>, caps: Caps) -> Self {
        let mut visit = Visit::new(state, out);
        visit.caps = caps;
        visit
    }

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

impl<'v, P: Parts, const WEIGHT: u8, const FOLLOWS: bool> Visit<'v, P, WEIGHT, FOLLOWS> {
    /// Bytes in the queues of port `p` that the buffer charges.
    #[inline(always)]
    pub(super) fn charged(&self, p: usize) -> u64 {
        if !Self::CAPPED {
            return self.ports[p].waiting;
        }
        let classes = self.out.setup.plan.classes.all().iter().enumerate();
        classes.filter(|(_, of)| of.charged).map(|(class, _)| self.classed[p].bytes(class)).sum()
    }

    /// Port `p`, to be played forward in a visit whose queues are bounded by caps alone.
    #[inline(always)]
    pub(super) fn desk(&mut self, p: usize) -> Desk<'_, 'v, P::Annex> {
        Desk::take(p, &mut self.ports[p], &mut self.classed[p], &mut self.out, self.caps)
    }

    /// [`Visit::serve`] in a visit whose queues are bounded by caps alone.
    #[inline(never)]
    pub(super) fn serve_capped(&mut self, p: usize, limit: u64) {
        let mut desk = self.desk(p);
        desk.serve(limit);
        desk.put_back();
    }

    /// [`Visit::enqueue`] in a visit whose queues are bounded by caps alone.
    #[inline(never)]
    pub(super) fn enqueue_capped(&mut self, p: usize, now: u64, pkt: &Parcel<P::Annex>) {
        let mut desk = self.desk(p);
        desk.arrive(now, pkt);
        desk.put_back();
        if !self.classed[p].is_empty() {
            self.backlog[p >> 6] |= 1 << (p & 63);
        }
    }

    /// Queues a packet that the scheme has held, in a visit whose queues are bounded by caps alone.
    #[cold]
    pub(super) fn rejoin_capped(&mut self, p: usize, now: u64, pkt: &Parcel<P::Annex>) {
        let class = self.out.setup.class_in_table(pkt);
        let mut desk = self.desk(p);
        desk.serve(now + 1);
        desk.join(now, class, pkt);
        desk.put_back();
        self.backlog[p >> 6] |= 1 << (p & 63);
    }

    /// True if a packet that the scheme holds fits, where caps are all that bounds queues.
    pub(super) fn has_room_to_hold(&self, pkt: &Parcel<P::Annex>) -> bool {
        let class = &self.out.setup.plan.classes.all()[self.out.setup.class_in_table(pkt)];
        class.cap.is_none_or(|most| u64::from(pkt.frame()) <= most.get())
    }

    /// [`Visit::enqueue_now`] if the plan's classes are not plain.
    #[inline(never)]
    pub(super) fn enqueue_classed(&mut self, p: usize, now: u64, mut pkt: Parcel<P::Annex>, charged: bool) {
        let setup = self.out.setup;
        let class = setup.class_in_table(&pkt);
        if !charged && !self.has_room(p, now, self.classed[p].bytes(class), &pkt) {
            return;
        }
        let (port, queues) = (&mut self.ports[p], &mut self.classed[p]);
        if pkt.is_data() {
            pkt.label = mark_classed::<_, true>((p, class), queues, &mut self.out, now, pkt.label);
        }
        queues.push(class, pkt);
        self.backlog[p >> 6] |= 1 << (p & 63);
        let has_data = setup.has_data(class);
        if has_data {
            port.waiting += u64::from(pkt.frame());
        }
        self.schedule_classed(p);
        match self.ports[p].due <= now {
            true => self.depart_classed(p, now),
            false => self.note_start(p),
        }
        let (port, queues) = (&mut self.ports[p], &mut self.classed[p]);
        let waiting = queues.bytes(class);
        let counts = &mut queues.counts[class];
        counts.longest = counts.longest.max(waiting);
        if has_data {
            port.most_waiting = port.most_waiting.max(port.waiting);
        }
    }

    /// [`Visit::depart`] if the plan's classes are not plain.
    #[inline(never)]
    pub(super) fn depart_classed(&mut self, p: usize, at: u64) {
        let setup = self.out.setup;
        let classes = setup.plan.classes.all();
        let (port, queues) = (&mut self.ports[p], &mut self.classed[p]);
        let Some((class, mut pkt)) = queues.pop(classes, port) else { return };
        if setup.has_data(class) {
            port.waiting -= u64::from(pkt.frame());
        }
        if pkt.is_data() {
            pkt.label = mark_classed::<_, false>((p, class), queues, &mut self.out, at, pkt.label);
        }
        queues.counts[class].leaves(pkt.frame());
        if self.guarded {
            self.switch.starts(setup, at, &pkt, (p, self.ports[p].channels()));
        }
        if classes[class].charged && pkt.ingress() != PortIndex::VIRTUAL {
            self.release(&pkt, p, at);
        }
        let arrives = self.start(p, at, pkt);
        if arrives && setup.grants.any() {
            self.out.spend(p, &mut self.ports[p], &mut self.classed[p].ledgers, at, &pkt);
        }
        self.schedule_classed(p);
        self.note_start(p);
    }

    /// Updates the start of a port's next packet if the plan's classes are not plain.
    #[inline(always)]
    pub(super) fn schedule_classed(&mut self, p: usize) {
        let has_next = self.classed[p].has_next(self.out.setup.plan.classes.all(), &self.ports[p]);
        let port = &mut self.ports[p];
        port.due = if has_next { port.busy } else { u64::MAX };
    }
}
