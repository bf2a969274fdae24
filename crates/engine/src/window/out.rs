//! The egress side of a node: packets go onto lanes and into the counts.

use super::lanes::{Address, InnerMail, Lane, Outbox, Pause, Pool, add, add_with, bits};
use super::port::{LATER, LOSSY, Port, TAPPED};
use super::setup::Setup;
use crate::books::{Lost, Tally};
use crate::credits::{Ledger, PRIORITIES};
use crate::failing::{FailureEvent, LinkLoss};
use crate::outcome::{EventKind, LinkRecord, Passed};
use crate::record::{Note, Outlasts, Recorder};
use crate::setup::Crossing;
use model::plan::{MarkAt, Marking};
use model::{Annex, Packet, Parcel, PortIndex, Time};
use std::collections::VecDeque;

/// A window, or a step of a group through it, with times in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) number: u64,
    pub(super) opened: u64,
    /// Its end, or the end of the run if that is earlier.
    pub(super) close: u64,
    /// Its length, without regard to the end of the run.
    pub(super) length: u64,
    /// Start of the window in which its lanes are read, and the length of that window. Steps have those of their window.
    pub(super) next: u64,
    pub(super) span: u64,
    /// Start of the next window of the same nodes.
    pub(super) again: u64,
}

/// The egress side of one node in one window.
pub(super) struct Out<'v, A> {
    pub(super) setup: &'v Setup<'v>,
    pub(super) window: Window,
    /// The known view of all queues.
    pub(super) view: &'v [u32],
    /// Growth increment of a lane, in packets.
    pub(super) unit: u32,
    pub(super) outbox: &'v Outbox,
    pub(super) inner: &'v mut InnerMail,
    pub(super) pool: &'v mut Pool<A>,
    /// Number of the node's first port in the fabric.
    pub(super) gp: usize,
    /// Lanes by port of the node; the next three fields are by port, too.
    pub(super) lanes: &'v mut [Lane<A>],
    pub(super) addresses: &'v [Address],
    pub(super) links: &'v mut [LinkRecord],
    pub(super) paused_since: &'v mut [u64],
    /// A bit for every port with packets in flight that arrive after the next window.
    pub(super) far: &'v mut [u64],
    pub(super) tally: &'v mut Tally,
    pub(super) recorder: &'v mut Recorder,
}

impl<A: Annex> Out<'_, A> {
    /// The egress side of port `p` alone, as port 0; `far` is its word for packets that arrive after the next window.
    pub(super) fn one<'o>(&'o mut self, p: usize, far: &'o mut [u64]) -> Out<'o, A> {
        Out {
            gp: self.gp + p,
            lanes: &mut self.lanes[p..=p],
            addresses: &self.addresses[p..=p],
            links: &mut self.links[p..=p],
            paused_since: &mut self.paused_since[p..=p],
            far,
            inner: self.inner,
            pool: self.pool,
            tally: self.tally,
            recorder: self.recorder,
            ..*self
        }
    }

    /// Puts a packet on the wire of port `p` at `at`. Returns true, as it arrives.
    #[inline(always)]
    pub(super) fn launch(&mut self, p: usize, port: &mut Port<A>, at: u64, pkt: Parcel<A>) -> bool {
        let time = self.occupy(port, at, &pkt);
        self.send(p, port, at + time + port.delay, pkt);
        true
    }

    /// [`Out::launch`] for a link that loses packets or is tapped; true if the packet arrives.
    #[inline(never)]
    pub(super) fn launch_special(&mut self, p: usize, port: &mut Port<A>, at: u64, pkt: Parcel<A>) -> bool {
        let time = self.occupy(port, at, &pkt);
        let gp = self.gp + p;
        let Crossing { lost, late, replays } = match port.is(LOSSY) {
            true => self.setup.crosses(gp, at, time, &pkt),
            false => Crossing::default(),
        };
        if replays > 0 {
            self.links[p].replays += replays;
            port.busy += late;
            port.last = port.busy;
            port.schedule();
        }
        let arrival = at + late + time + port.delay;
        if port.is(TAPPED) {
            self.recorder.frame(self.setup, gp, at, Passed::Packet(pkt.label, lost.is_some()));
        }
        if let Some(how) = lost {
            self.lost(p, at, &pkt, how);
        } else {
            self.send(p, port, arrival, pkt);
        }
        lost.is_none()
    }

    /// [`Out::launch`] of a packet with this label and annex, which goes straight from place to place. The caller updates the start
    /// of the next packet.
    #[inline(always)]
    pub(super) fn launch_with(
        &mut self,
        p: usize,
        port: &mut Port<A>,
        at: u64,
        (label, annex): (Packet, &A),
    ) {
        let time = self.take_wire(port, at, &label);
        let (from, span) = self.lane_span(p);
        let after = port.busy + port.delay - from;
        debug_assert_eq!(port.busy, at + time);
        let label = label.arriving(after as u32, port.peer_port);
        if after < span {
            let unit = self.unit;
            add_with(self.lane(p).packets(), label, annex, unit);
        } else {
            self.send_far(p, port, after, &Parcel { label, annex: *annex });
        }
    }

    /// Counts a packet that the link of port `p` loses.
    #[cold]
    #[inline(never)]
    pub(super) fn lost(&mut self, p: usize, at: u64, pkt: &Parcel<A>, how: LinkLoss) {
        self.links[p].lose(how.cause());
        self.tally.lost(pkt, Lost::Link(how));
        self.recorder.lost(self.setup, self.gp + p, at, pkt, how);
    }

    /// Records an event of a packet, if its queue pair is followed.
    #[inline(always)]
    pub(super) fn note(&mut self, at: u64, what: EventKind, pkt: &Parcel<A>) {
        if self.setup.follows(pkt.qp()) {
            let node = self.setup.fabric().links()[self.gp].from;
            self.recorder.note(self.setup, Note::new(at, node, what), pkt);
        }
    }

    /// Marks data that joins (`EARLY`) or leaves a queue of `waiting` other bytes, if the port marks at that moment.
    #[inline(never)]
    pub(super) fn mark<const EARLY: bool>(&mut self, p: usize, at: u64, waiting: u64, pkt: Packet) -> Packet {
        let marking = self.setup.marking(self.gp + p);
        self.mark_by::<EARLY>(marking, p, at, waiting, pkt)
    }

    /// [`Out::mark`] for a port and a class in the plan's table.
    #[inline(never)]
    pub(super) fn mark_in<const EARLY: bool>(
        &mut self,
        (p, class): (usize, usize),
        at: u64,
        waiting: u64,
        pkt: Packet,
    ) -> Packet {
        let marking = self.setup.marking_in(class, self.gp + p);
        self.mark_by::<EARLY>(marking, p, at, waiting, pkt)
    }

    #[inline(always)]
    fn mark_by<const EARLY: bool>(
        &mut self,
        marking: Option<&Marking>,
        p: usize,
        at: u64,
        waiting: u64,
        mut pkt: Packet,
    ) -> Packet {
        let gp = self.gp + p;
        if let Some(marking) = marking
            && (marking.at == MarkAt::Enqueue) == EARLY
            && pkt.is_data()
            && self.setup.marks(marking, gp, at, waiting)
        {
            pkt.mark();
            self.links[p].marks += 1;
        }
        pkt
    }

    /// Occupies the wire from `at` on; returns the transmission time, ps.
    #[inline(always)]
    fn occupy(&mut self, port: &mut Port<A>, at: u64, pkt: &Packet) -> u64 {
        let time = self.take_wire(port, at, pkt);
        port.schedule();
        time
    }

    /// [`Out::occupy`] without an update of the start of the next packet.
    #[inline(always)]
    fn take_wire(&mut self, port: &mut Port<A>, at: u64, pkt: &Packet) -> u64 {
        let time = self.setup.time_on_wire(port.row, pkt.frame());
        port.busy = at + time;
        port.last = port.busy;
        port.busy_for += time;
        port.frames += 1;
        port.bytes += pkt.frame() as u64;
        self.tally.control_hops += !pkt.is_data() as u64;
        time
    }

    /// Start of the times on the lane of port `p`, and the time that the lane spans: the next window, or this window
    /// and the next one if the lane stays inside a group that steps.
    #[inline(always)]
    pub(super) fn lane_span(&self, p: usize) -> (u64, u64) {
        let Window { next, span, .. } = self.window;
        if self.addresses[p].inner { (next - span, 2 * span) } else { (next, span) }
    }

    /// Sends a packet to the far end, where it arrives at `arrival`.
    #[inline(always)]
    pub(super) fn send(&mut self, p: usize, port: &mut Port<A>, arrival: u64, pkt: Parcel<A>) {
        let (from, span) = self.lane_span(p);
        let after = arrival - from;
        if after < span {
            let (unit, pkt) = (self.unit, pkt.arriving(after as u32, port.peer_port));
            add(self.lane(p).packets(), pkt, unit);
        } else {
            self.send_far(p, port, after, &pkt);
        }
    }

    /// [`Out::send`] for a packet that arrives after the lane's span.
    #[inline(never)]
    pub(super) fn send_far(&mut self, p: usize, port: &mut Port<A>, after: u64, pkt: &Parcel<A>) {
        let Window { next, span, .. } = self.window;
        let from = self.lane_span(p).0;
        if from + after < next + 2 * span && !port.is(LATER) {
            port.far.add_soon(from + span, after - span, port.peer_port, pkt);
        } else {
            port.far.add_later(from + after, pkt);
            port.set(LATER, true);
        }
        self.far[p >> 6] |= 1 << (p & 63);
    }

    /// Takes the packets of a lane out, to add to them.
    #[inline(always)]
    pub(super) fn open_lane(&mut self, p: usize) -> Vec<Parcel<A>> {
        let lane = &mut self.lanes[p];
        match lane.window == self.window.number {
            true => std::mem::take(lane.packets()),
            false => self.pool.take(lane, self.unit),
        }
    }

    /// Puts the packets of a lane back.
    #[inline(always)]
    pub(super) fn close_lane(&mut self, p: usize, packets: Vec<Parcel<A>>) {
        let lane = &mut self.lanes[p];
        if lane.window == self.window.number {
            let address = self.addresses[p];
            if address.inner && !packets.is_empty() {
                self.inner.announce(address);
            }
            *lane.packets() = packets;
        } else if packets.is_empty() {
            self.pool.give(packets, self.unit);
        } else {
            self.begin_lane(p, packets);
        }
    }

    /// Moves packets that were sent some windows ago and arrive in the next one onto the lanes.
    #[inline(always)]
    pub(super) fn bring_near(&mut self, ports: &mut [Port<A>]) {
        for word in 0..self.far.len() {
            for p in bits(self.far[word], word * 64) {
                self.bring_near_from(p, &mut ports[p]);
            }
        }
    }

    #[inline(never)]
    fn bring_near_from(&mut self, p: usize, port: &mut Port<A>) {
        let ((from, span), unit) = (self.lane_span(p), self.unit);
        if port.far.is_due(from) {
            port.far.bring(self.lane_packets(p), unit);
        }
        if port.is(LATER) && port.far.is_near(from + span) {
            port.far.bring_later(self.lane_packets(p), (from, from + span), port.peer_port, unit);
            port.set(LATER, port.far.has_later());
        }
        if !port.far.has_soon() && !port.is(LATER) {
            self.far[p >> 6] &= !(1 << (p & 63));
        }
    }

    /// The packets of the lane of port `p`.
    #[inline(always)]
    pub(super) fn lane_packets(&mut self, p: usize) -> &mut Vec<Parcel<A>> {
        self.lane(p).packets()
    }

    #[inline(always)]
    fn lane(&mut self, p: usize) -> &mut Lane<A> {
        if self.lanes[p].window != self.window.number {
            let packets = self.pool.take(&mut self.lanes[p], self.unit);
            self.begin_lane(p, packets);
        } else if self.addresses[p].inner {
            self.inner.announce(self.addresses[p]);
        }
        &mut self.lanes[p]
    }

    #[inline(never)]
    fn begin_lane(&mut self, p: usize, packets: Vec<Parcel<A>>) {
        self.lanes[p].begin(self.window.number, packets);
        let address = self.addresses[p];
        match address.inner {
            true => self.inner.announce(address),
            false => self.outbox.announce(self.window.number, address),
        }
    }

    /// Sends a pause or resume frame for a channel to the neighbour at port `p`, whose wire is free from `free` on. Returns the time
    /// of its arrival.
    #[cold]
    pub(super) fn send_pause(
        &mut self,
        p: usize,
        port: &Port<A>,
        free: u64,
        now: u64,
        channel: u8,
        on: bool,
    ) -> u64 {
        let at = self.setup.pause_leaves(port.row, free, now) + port.delay;
        match on {
            true => self.tally.control.pause += 1,
            false => self.tally.control.resume += 1,
        }
        if port.is(TAPPED) {
            self.recorder.frame(self.setup, self.gp + p, now, Passed::Pause { channel, on });
        }
        if !self.setup.loses_pause(self.gp + p, now, at) {
            let peer_port = port.peer_port;
            self.lane(p).pauses.push(Pause { at, port: peer_port, channel, on, freed: 0 });
        }
        at
    }

    /// Sends a word that returns credits of a priority to the neighbour at port `p`. It starts at `start` and tells what is `freed`.
    pub(super) fn send_word(&mut self, p: usize, port: &Port<A>, (start, freed): (u64, u64), channel: u8) {
        let at = start + port.delay;
        if !self.setup.loses_pause(self.gp + p, start, at) {
            let peer_port = port.peer_port;
            self.lane(p).pauses.push(Pause { at, port: peer_port, channel, on: false, freed });
        }
    }

    /// Counts the credits of a frame that starts at port `p`, and stops its priority if no other may follow. Returns the bits of
    /// priorities that have changed.
    #[inline(never)]
    pub(super) fn spend(
        &mut self,
        p: usize,
        port: &mut Port<A>,
        ledgers: &mut [Ledger; PRIORITIES],
        now: u64,
        pkt: &Parcel<A>,
    ) -> u8 {
        let Some((priority, grant)) = self.setup.taken(self.gp + p, pkt) else { return 0 };
        match ledgers[usize::from(priority)].consume(&grant, pkt.frame()) {
            true => self.starve(p, port, now, priority, true),
            false => 0,
        }
    }

    /// Takes a word in at port `p`. Returns the bits of priorities that have changed.
    #[cold]
    pub(super) fn take_word(
        &mut self,
        p: usize,
        port: &mut Port<A>,
        ledgers: &mut [Ledger; PRIORITIES],
        word: Pause,
    ) -> u8 {
        let Some(grant) = self.setup.grant(self.gp + p, word.channel) else { return 0 };
        match ledgers[usize::from(word.channel)].free(&grant, word.freed) {
            true => self.starve(p, port, word.at, word.channel, false),
            false => 0,
        }
    }

    fn starve(&mut self, p: usize, port: &mut Port<A>, now: u64, priority: u8, on: bool) -> u8 {
        let change = |port: &mut Port<A>| {
            let before = port.by_credits();
            port.starve(priority, on);
            port.by_credits() != before
        };
        let (news, change) = self.repaused(p, port, now, change);
        // Words may come after the run's traffic, so nobody counts them.
        if news && on {
            self.links[p].pauses += 1;
            self.recorder.repaused(self.gp + p, priority, true);
        }
        change
    }

    /// Pauses or resumes all data of the neighbour of a host's port. Returns the time at which this has happened.
    #[cold]
    pub(super) fn pause_link(&mut self, p: usize, port: &Port<A>, now: u64, on: bool) -> u64 {
        let frames =
            (0..self.setup.priorities()).map(|channel| self.send_pause(p, port, port.busy, now, channel, on));
        frames.max().unwrap_or(now)
    }

    /// Time from which the wire of port `p` is free for the frame that resumes the sender of a packet, when the packet starts at
    /// port `from` at `now`. A packet may leave by the port by which it came.
    pub(super) fn free_beside(&self, p: usize, port: &Port<A>, (from, now): (usize, u64), frame: u32) -> u64 {
        if p == from { now + self.setup.time_on_wire(port.row, frame) } else { port.busy }
    }

    /// Pauses or resumes a channel of port `p`; false if nothing changed.
    #[cold]
    pub(super) fn paused(&mut self, p: usize, port: &mut Port<A>, now: u64, channel: u8, on: bool) -> bool {
        let by_frames = port.by_frames();
        let change = |port: &mut Port<A>| {
            port.pause(channel, on);
            port.by_frames() != by_frames
        };
        let (news, change) = self.repaused(p, port, now, change);
        self.links[p].pauses += u64::from(news && on);
        if news {
            self.recorder.repaused(self.gp + p, channel, on);
        }
        change != 0
    }

    /// Lets `change` change the pauses of port `p`. Returns its result, and a bit for each priority that is paused now and was not, or
    /// was and is not.
    #[cold]
    pub(super) fn repaused<R>(
        &mut self,
        p: usize,
        port: &mut Port<A>,
        now: u64,
        change: impl FnOnce(&mut Port<A>) -> R,
    ) -> (R, u8) {
        let before = port.paused_channels();
        let outlasts = Outlasts { storm: port.by_storm(), credits: port.by_credits() != 0 };
        let result = change(port);
        let held = port.paused_channels();
        self.recorder.held(self.gp + p, [before, held], [self.paused_since[p], now], outlasts);
        if before == 0 && held != 0 {
            self.paused_since[p] = now;
        } else if before != 0 && held == 0 {
            self.links[p].paused += Time(now - self.paused_since[p]);
            self.paused_since[p] = u64::MAX;
        }
        (result, before ^ held)
    }
}

/// Link events of a node in the open window: pause frames, failures and repairs.
#[derive(Debug)]
pub(super) struct LinkEvents {
    list: Vec<Pause>,
    next: usize,
    events: VecDeque<(u64, FailureEvent)>,
    /// Time of the first event, ps; [`u64::MAX`] if there is none.
    at: u64,
}

/// An event of a link, other than a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkEvent {
    /// A pause or resume frame at a port.
    Pause(Pause),
    /// A failure or a repair.
    Failure(FailureEvent),
}

impl Default for LinkEvents {
    fn default() -> Self {
        LinkEvents { list: Vec::new(), next: 0, events: VecDeque::new(), at: u64::MAX }
    }
}

impl LinkEvents {
    /// Takes the frames that come before `close` out of `pending`.
    #[inline]
    pub(super) fn collect(&mut self, pending: &mut Vec<Pause>, close: u64) {
        self.list.clear();
        self.next = 0;
        self.at = u64::MAX;
        if !pending.is_empty() {
            self.list.extend(pending.extract_if(.., |frame| frame.at < close));
            self.list.sort_by_key(|frame| (frame.at, frame.port));
            self.update_time();
        }
    }

    /// [`LinkEvents::collect`] for the frames of one port, in order of time.
    pub(super) fn collect_at(&mut self, port: PortIndex, pending: &mut Vec<Pause>, close: u64) {
        self.list.clear();
        self.next = 0;
        self.list.extend(pending.extract_if(.., |frame| frame.at < close && frame.port == port));
        self.list.sort_by_key(|frame| frame.at);
        self.update_time();
    }

    /// Adds failures and repairs, which come in this order.
    #[cold]
    pub(super) fn add_failures(&mut self, events: impl Iterator<Item = (u64, FailureEvent)>) {
        self.events.extend(events);
        self.update_time();
    }

    /// True if there are no failures or repairs.
    #[inline(always)]
    pub(super) fn only_pauses(&self) -> bool {
        self.events.is_empty()
    }

    fn update_time(&mut self) {
        let frame = self.list.get(self.next).map_or(u64::MAX, |frame| frame.at);
        self.at = self.events.front().map_or(frame, |(at, _)| frame.min(*at));
    }

    /// Time of the next event, ps; [`u64::MAX`] if there is none.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        self.at
    }

    /// Time of the next event, and its place among events of this instant: changes of rates, then resets, then pauses.
    pub(super) fn rank(&self) -> (u64, u8) {
        match self.events.front() {
            Some(&(at, FailureEvent::Rate { .. })) if at == self.at => (at, 0),
            Some(&(at, _)) if at == self.at => (at, 1),
            _ => (self.at, 2),
        }
    }

    /// Takes the next event; at one instant failures come first.
    pub(super) fn take(&mut self) -> Option<LinkEvent> {
        let taken = match self.events.front() {
            Some(&(at, event)) if at == self.at => {
                self.events.pop_front();
                LinkEvent::Failure(event)
            }
            _ => {
                let frame = self.list.get(self.next)?;
                self.next += 1;
                LinkEvent::Pause(*frame)
            }
        };
        self.update_time();
        Some(taken)
    }
}
