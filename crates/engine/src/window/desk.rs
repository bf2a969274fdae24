//! A port whose classes are not plain, in a capped visit: the caps of queues are all that bounds them. Then its events depend on no
//! other port, and it is played forward like the ports of light visits ([`super::play`]).

use super::classed::Queues;
use super::out::Out;
use super::port::{LOSSY, Port, TAPPED, TO_HOST};
use crate::books::Lost;
use crate::buffer::Caps;
use crate::outcome::EventKind;
use crate::setup::LinkState;
use crate::switch::{may_be_cut, may_be_victim};
use model::plan::{Class, Cut, MarkAt, Overflow, Victim};
use model::{Annex, Packet, Parcel};

/// A port, borrowed from its switch while it is played forward.
pub(super) struct Desk<'d, 'v, A: Annex> {
    p: usize,
    port: &'d mut Port<A>,
    queues: &'d mut Queues<A>,
    out: &'d mut Out<'v, A>,
    classes: &'v [Class],
    caps: Caps,
}

impl<'d, 'v, A: Annex> Desk<'d, 'v, A> {
    /// Takes port `p`.
    #[inline(always)]
    pub(super) fn take(
        p: usize,
        port: &'d mut Port<A>,
        queues: &'d mut Queues<A>,
        out: &'d mut Out<'v, A>,
        caps: Caps,
    ) -> Self {
        let classes = out.setup.plan.classes.all();
        Desk { p, port, queues, out, classes, caps }
    }

    /// Updates the start of the next packet.
    #[inline(always)]
    pub(super) fn put_back(self) {
        self.port.due = if self.has_next() { self.port.busy } else { u64::MAX };
    }

    #[inline(always)]
    fn has_next(&self) -> bool {
        self.queues.has_next(self.classes, self.port)
    }

    /// Starts all packets that start before `limit`.
    #[inline(always)]
    pub(super) fn serve(&mut self, limit: u64) {
        while self.port.busy < limit && self.has_next() {
            self.depart(self.port.busy);
        }
    }

    /// A packet arrives, after all departures up to `now`.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now: u64, pkt: &Parcel<A>) {
        self.serve(now + 1);
        let class = self.out.setup.class_in_table(pkt);
        match self.has_room(class, pkt.frame()) {
            true => self.join(now, class, pkt),
            false => self.refuse(now, class, pkt),
        }
    }

    /// True if the queue of a class has room for a frame.
    #[inline(always)]
    fn has_room(&self, class: usize, frame: u32) -> bool {
        let (of, after) = (&self.classes[class], self.queues.bytes(class) + u64::from(frame));
        let is_capped =
            of.charged && after > self.caps.least && after > self.out.setup.cap(self.out.gp + self.p);
        !is_capped && of.cap.is_none_or(|most| after <= most.get())
    }

    /// A packet joins the queue of its class, or starts at once.
    #[inline(always)]
    pub(super) fn join(&mut self, now: u64, class: usize, pkt: &Parcel<A>) {
        let mut label = pkt.label;
        if self.may_mark(class, &label) {
            label = self.mark::<true>(class, now, label);
        }
        if self.port.busy <= now && self.queues.is_empty() && self.port.paused_channels() == 0 {
            self.queues.pass(class, self.classes);
            return self.start((class, now), label, Some(&pkt.annex));
        }
        self.queues.push_with(class, label, &pkt.annex);
        let has_data = self.queues.has_data(class);
        self.port.waiting += if has_data { pkt.frame().into() } else { 0 };
        if self.port.busy <= now && self.has_next() {
            self.depart(now);
        }
        let waiting = self.queues.bytes(class);
        let counts = &mut self.queues.counts[class];
        counts.longest = counts.longest.max(waiting);
        if has_data {
            self.port.most_waiting = self.port.most_waiting.max(self.port.waiting);
        }
    }

    /// Drops or cuts a packet that does not fit into its queue. In place of the arriving packet, a waiting one may be cut.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, now: u64, class: usize, pkt: &Parcel<A>) {
        match self.caps.overflow {
            Overflow::Cut(cut) if may_be_cut(pkt) => self.cut(now, class, pkt, cut),
            _ => {
                self.out.links[self.p].drops += 1;
                self.queues.counts[class].drops += 1;
                self.out.tally.lost(pkt, Lost::Buffer);
                self.out.note(now, EventKind::Dropped, pkt);
            }
        }
    }

    fn cut(&mut self, now: u64, class: usize, pkt: &Parcel<A>, rule: Cut) {
        let waiting = match rule.victim {
            Victim::Even if self.out.setup.coin(self.out.gp + self.p, now) => {
                self.queues.take_newest(class, |waiting| may_be_victim(waiting, pkt))
            }
            _ => None,
        };
        let mut victim = waiting.unwrap_or(*pkt);
        let last_hop = self.port.is(TO_HOST);
        self.out.tally.cut(last_hop);
        self.out.note(now, EventKind::Cut, &victim);
        if waiting.is_some() {
            self.port.waiting -= u64::from(victim.frame());
            self.join(now, class, pkt);
        }
        victim.label = victim.cut(rule.frame, last_hop);
        self.arrive(now, &victim);
    }

    /// Starts the next packet of the queues at `at`.
    #[inline(always)]
    fn depart(&mut self, at: u64) {
        if self.port.paused_channels() != 0 {
            return self.depart_beside_pauses(at);
        }
        if let Some((class, label)) = self.queues.remove_first(self.classes) {
            self.left(class, &label);
            self.start((class, at), label, None);
        }
    }

    /// [`Desk::depart`] if some packets may not start.
    #[inline(never)]
    fn depart_beside_pauses(&mut self, at: u64) {
        if let Some((class, pkt)) = self.queues.pop(self.classes, self.port) {
            self.left(class, &pkt);
            self.start((class, at), pkt.label, Some(&pkt.annex));
        }
    }

    /// Notes that a packet has left the queue of a class.
    #[inline(always)]
    fn left(&mut self, class: usize, pkt: &Packet) {
        self.port.waiting -= if self.queues.has_data(class) { pkt.frame().into() } else { 0 };
    }

    /// Starts a packet of a class. It has this annex, or that of the packet which has just left the queue.
    #[inline(always)]
    fn start(&mut self, (class, at): (usize, u64), mut label: Packet, annex: Option<&A>) {
        if self.may_mark(class, &label) {
            label = self.mark::<false>(class, at, label);
        }
        self.queues.counts[class].leaves(label.frame());
        if A::TELEMETRY || self.port.is(LOSSY | TAPPED) {
            let annex = *annex.unwrap_or_else(|| &self.queues.removed(class).annex);
            return self.start_specially((class, at), Parcel { label, annex });
        }
        let annex = annex.unwrap_or_else(|| &self.queues.removed(class).annex);
        self.out.launch_with(self.p, self.port, at, (label, annex));
    }

    /// [`Desk::start`] on a wire that loses packets or is tapped, or with telemetry.
    #[inline(never)]
    fn start_specially(&mut self, (class, at): (usize, u64), mut pkt: Parcel<A>) {
        let hop = self.out.setup.hop::<A>(self.out.gp + self.p, self.port.row);
        let link = LinkState { hop, at, sent: self.port.bytes, queue: self.queues.bytes(class) };
        self.out.setup.trace(&mut pkt, link, &mut self.port.meters);
        match self.port.is(LOSSY | TAPPED) {
            true => self.out.launch_special(self.p, self.port, at, pkt),
            false => self.out.launch(self.p, self.port, at, pkt),
        };
    }

    /// True if the queue of a class may cause a mark.
    #[inline(always)]
    fn may_mark(&self, class: usize, pkt: &Packet) -> bool {
        let is_short = self.queues.bytes(class) <= self.port.unmarked.into();
        pkt.is_data() && !(is_short && self.out.setup.marks_by_length)
    }

    /// Marks data that joins (`EARLY`) or leaves the queue of a class, if the port marks at that moment.
    #[inline(never)]
    fn mark<const EARLY: bool>(&mut self, class: usize, at: u64, pkt: Packet) -> Packet {
        mark_classed::<A, EARLY>((self.p, class), self.queues, self.out, at, pkt)
    }
}

/// Marks data that joins (`EARLY`) or leaves the queue of a class at a port, if the port marks at that moment.
#[inline(always)]
pub(super) fn mark_classed<A: Annex, const EARLY: bool>(
    (p, class): (usize, usize),
    queues: &mut Queues<A>,
    out: &mut Out<'_, A>,
    at: u64,
    pkt: Packet,
) -> Packet {
    let marking = out.setup.marking_in(class, out.gp + p);
    let moment = if EARLY { MarkAt::Enqueue } else { MarkAt::Dequeue };
    let waiting = queues.averages.follow(class, marking, moment, queues.bytes(class));
    let marks = out.links[p].marks;
    let pkt = out.mark_in::<EARLY>((p, class), at, waiting, pkt);
    queues.counts[class].marks += out.links[p].marks - marks;
    pkt
}
