//! The departures of one port over a stretch of time, from what is queued and from lines of arrivals.
//!
//! A port that no other port affects needs nothing but its own events: the wire becomes free, a packet arrives, a pause
//! frame comes. The next departure is the earliest of what may start: at one instant, queued packets by class, then
//! arrivals by rank. See [`super::line`] for the keys that make this one comparison.

use super::lanes::Pause;
use super::line::{LOW, NEVER, WHOLE_TICKS, departure, instant, key, spent, time};
use super::out::Out;
use super::port::{LOSSY, MARKS_EARLY, Port, TAPPED};
use super::shelf::Shelf;
use crate::outcome::Passed;
use crate::setup::LinkState;
use model::telemetry::TracedLink;
use model::{Annex, Packet, Parcel};
use std::marker::PhantomData;

/// The lines of one port in one visit, by class.
pub(super) struct Lines<'l, A: Annex> {
    /// Data that was queued when the window opened.
    pub(super) queued: &'l [Parcel<A>],
    /// Arrivals in the class of data.
    pub(super) data: &'l mut [Parcel<A::Held>],
    /// Queued replies, then arrivals.
    pub(super) replies: &'l [Parcel<A::Held>],
    /// Queued CNPs, then arrivals.
    pub(super) cnps: &'l [Parcel<A::Held>],
    /// Annexes of the packets on the lines.
    pub(super) shelf: Shelf<'l, A>,
    /// Room for all packets of the queue and the lines, except in runs with telemetry.
    pub(super) sent: &'l mut [Parcel<A>],
}

/// Numbers of packets that have left a port in a visit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Packets of the port's own data queue.
    pub(super) queued: usize,
    /// Packets of each line.
    pub(super) data: usize,
    pub(super) replies: usize,
    pub(super) cnps: usize,
}

/// A port whose departures are being computed.
pub(super) struct Departures<A> {
    p: usize,
    pub(super) left: Left,
    /// Key of the next departure from the queue: the time at which the wire is free.
    free: u64,
    /// What the time of arrival adds to the time at which the wire is free, in a first word.
    reach: u64,
    /// The link in records, for telemetry.
    hop: TracedLink,
    /// Number of packets sent, and of packets in [`Lines::sent`], which await the lane.
    frames: u64,
    sent: usize,
    /// The lane in runs with large annexes, which go from their places onto the lane.
    lane: Vec<Parcel<A>>,
    /// First word of packets that arrive after the lane's span.
    far: u64,
    /// Sum of the costs of all frames, see [`super::line::cost`].
    spent: u64,
    control: u64,
    /// Arrivals of the line of data that have joined the queue.
    joined: usize,
    /// Bytes of data in the queue: now, and the maximum.
    waiting: u64,
    most: u64,
    /// Longest queue that causes no mark: on a packet that leaves, and on one that joins.
    unmarked: u64,
    unmarked_early: u64,
    /// Most packets that the queue surely may hold without exceeding its maximum or being marked.
    few: usize,
    /// True as long as the queue has held at most `few` packets in this visit, and no packet records its length: only the
    /// bytes of the port's own queue are counted then.
    short: bool,
    /// True if the link loses packets, is tapped, or is long, or if arrivals may be marked.
    special: bool,
    paused: bool,
    /// Number of pause frames that have taken effect in [`Departures::run_to_pauses`].
    pauses: usize,
    annex: PhantomData<A>,
}

impl<A: Annex> Departures<A> {
    #[inline(always)]
    pub(super) fn begin(port: &Port<A>, out: &mut Out<'_, A>, p: usize, arrivals: usize) -> Self {
        let (opened, (from, span)) = (out.window.opened, out.lane_span(p));
        let unnoticed = port.most_waiting.min(port.unmarked.into());
        let may_mark = port.waiting + arrivals as u64 * u64::from(out.setup.largest_frame);
        let special = port.is(LOSSY | TAPPED)
            || port.is(MARKS_EARLY) && may_mark > port.unmarked.into()
            || port.delay >= super::line::LONGEST;
        let short = !A::TELEMETRY && !special && port.waiting <= unnoticed;
        Departures {
            p,
            left: Left::default(),
            free: departure(port.busy.saturating_sub(opened)),
            reach: reach(port, opened, from),
            hop: out.setup.hop::<A>(out.gp + p, port.row),
            frames: 0,
            sent: 0,
            lane: if A::LARGE { out.open_lane(p) } else { Vec::new() },
            far: span << Packet::TIME_SHIFT,
            spent: 0,
            control: 0,
            joined: 0,
            waiting: port.waiting,
            most: port.most_waiting,
            unmarked: if port.is(MARKS_EARLY) { u64::MAX } else { port.unmarked.into() },
            unmarked_early: if port.is(MARKS_EARLY) { port.unmarked.into() } else { u64::MAX },
            few: if short { (unnoticed / u64::from(out.setup.largest_frame)) as usize } else { 0 },
            short,
            special,
            paused: port.paused(),
            pauses: 0,
            annex: PhantomData,
        }
    }

    /// Computes all departures before `limit`, a key. Calls `departed` with the key and the packet for all data.
    #[inline(always)]
    pub(super) fn run<const WATCHED: bool>(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        mut departed: impl FnMut(u64, &Packet),
    ) {
        if self.special || self.paused || self.left.cnps < lines.cnps.len() {
            return self.run_slowly(port, lines, limit, out, &mut departed);
        }
        if self.short {
            if self.run_both::<true, WATCHED>(port, lines, limit, out, &mut departed) {
                return;
            }
            self.lengthen();
        }
        self.run_both::<false, WATCHED>(port, lines, limit, out, &mut departed);
    }

    /// [`Departures::run`] of a port whose departures nobody watches.
    #[inline(never)]
    pub(super) fn run_unwatched(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
    ) {
        self.run::<false>(port, lines, limit, out, |_, _| {});
    }

    /// Computes departures of the port's own queue, then those of the line of data. Returns false if the queue is no longer
    /// `SHORT`.
    #[inline(always)]
    fn run_both<const SHORT: bool, const WATCHED: bool>(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut impl FnMut(u64, &Packet),
    ) -> bool {
        if self.left.queued < lines.queued.len() {
            if !self.run_some::<SHORT, WATCHED, true>(port, lines, limit, out, departed) {
                return false;
            }
            if self.left.queued < lines.queued.len() {
                return true;
            }
        }
        self.run_some::<SHORT, WATCHED, false>(port, lines, limit, out, departed)
    }

    /// Departures of replies, and of data from the port's queue (`QUEUED`) or from the line.
    #[inline(always)]
    fn run_some<const SHORT: bool, const WATCHED: bool, const QUEUED: bool>(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut impl FnMut(u64, &Packet),
    ) -> bool {
        let costs = out.setup.costs(port.row);
        let reach = self.reach;
        let (mut free, mut sum) = (self.free, 0u64);
        let mut r = self.left.replies;
        let mut d = if QUEUED { self.left.queued } else { self.left.data };
        let mut next_reply = key(lines.replies, r);
        let mut next_data = if QUEUED { 0 } else { key(lines.data, d) };
        let few = self.few;
        let mut sent = self.sent;
        let mut lane = std::mem::take(&mut self.lane);
        // Bytes that have been sent before.
        let mut bytes = port.bytes + spent(self.spent, self.frames).1;
        let mut is_short = true;
        loop {
            let data = free.max(next_data);
            let (event, mut pkt, annex, holder);
            if next_reply < data {
                event = free.max(next_reply);
                if event >= limit {
                    break;
                }
                let reply = &lines.replies[r];
                pkt = reply.label;
                (annex, holder) = lines.shelf.holder(&reply.annex);
                r += 1;
                next_reply = key(lines.replies, r);
            } else {
                event = data;
                if event >= limit {
                    break;
                }
                if SHORT {
                    // The packet that makes the queue long, if it comes before the wire is free.
                    let one_more =
                        if QUEUED { (few + d).checked_sub(lines.queued.len()) } else { Some(few + d) };
                    if one_more.is_none_or(|i| key(lines.data, i) < free) {
                        is_short = false;
                        break;
                    }
                }
                if QUEUED {
                    let queued = &lines.queued[d];
                    (pkt, annex, holder) = (queued.label, &queued.annex, Some(queued));
                } else {
                    let arrived = &lines.data[d];
                    pkt = arrived.label;
                    (annex, holder) = lines.shelf.holder(&arrived.annex);
                }
                if !SHORT {
                    if QUEUED || next_data < free {
                        self.count(lines, free);
                        self.waiting -= u64::from(pkt.frame());
                        if self.waiting > self.unmarked {
                            pkt =
                                out.mark::<false>(self.p, out.window.opened + time(event), self.waiting, pkt);
                        }
                    } else {
                        self.joined = d + 1;
                    }
                } else if QUEUED {
                    self.waiting -= u64::from(pkt.frame());
                }
                if WATCHED && pkt.is_data() {
                    departed(event, &pkt);
                }
                d += 1;
                if !QUEUED {
                    next_data = key(lines.data, d);
                }
            }
            let cost = costs[pkt.frame() as usize];
            free = (event & WHOLE_TICKS) + cost;
            sum = sum.wrapping_add(cost);
            let word = ((free & WHOLE_TICKS) >> 1).wrapping_add(reach) | pkt.word() & LOW;
            let label = pkt.with_word(word);
            if A::LARGE
                && let Some(holder) = holder
            {
                if A::TELEMETRY {
                    let leaving = super::lanes::add_copy(&mut lane, holder, label, out.unit);
                    let (at, queue) = (out.window.opened + time(event), self.waiting);
                    let link = LinkState { hop: self.hop, at, sent: bytes, queue };
                    out.setup.trace(leaving, link, &mut port.meters);
                    bytes += u64::from(pkt.frame());
                } else {
                    super::lanes::add_with(&mut lane, label, &holder.annex, out.unit);
                }
            } else {
                lines.sent[sent] = Parcel { label, annex: *annex };
            }
            sent += 1;
            if QUEUED && d == lines.queued.len() {
                break;
            }
        }
        self.free = free;
        self.spent = self.spent.wrapping_add(sum);
        self.frames += (sent - self.sent) as u64;
        self.lane = lane;
        if !A::LARGE {
            self.sent = sent;
        }
        self.control += (r - self.left.replies) as u64;
        self.left.replies = r;
        match QUEUED {
            true => self.left.queued = d,
            false => self.left.data = d,
        }
        is_short
    }

    /// From now on the queue is counted: it may grow beyond its maximum, or to a mark.
    #[cold]
    #[inline(never)]
    fn lengthen(&mut self) {
        self.short = false;
        self.joined = self.left.data;
    }

    /// [`Departures::join`] for ports that mark no arrival. Mostly one or two packets have arrived since the last call, so
    /// two are added without a branch.
    #[inline(always)]
    fn count(&mut self, lines: &Lines<'_, A>, now: u64) {
        if let [first, second, ..] = lines.data[self.joined..] {
            let one = first.word() < now;
            let two = second.word() < now;
            let joined = if one { first.frame() } else { 0 } + if two { second.frame() } else { 0 };
            self.waiting += u64::from(joined);
            self.joined += usize::from(one) + usize::from(two);
        }
        while let Some(pkt) = lines.data.get(self.joined)
            && pkt.word() < now
        {
            self.waiting += u64::from(pkt.frame());
            self.joined += 1;
        }
        self.most = self.most.max(self.waiting);
    }

    /// Adds all arrivals of data before `now`, a key, to the queue, and marks those that find a long queue.
    #[inline(always)]
    fn join(&mut self, lines: &mut Lines<'_, A>, now: u64, out: &mut Out<'_, A>) {
        while let Some(pkt) = lines.data.get_mut(self.joined)
            && pkt.word() < now
        {
            if self.waiting > self.unmarked_early {
                let at = out.window.opened + time(pkt.word());
                pkt.label = out.mark::<true>(self.p, at, self.waiting, pkt.label);
            }
            self.waiting += u64::from(pkt.frame());
            self.joined += 1;
        }
        self.most = self.most.max(self.waiting);
    }

    /// [`Departures::join`] of all arrivals for ports that mark no arrival.
    #[inline(always)]
    fn join_all(&mut self, lines: &Lines<'_, A>) {
        let rest = lines.data.get(self.joined..).unwrap_or_default();
        self.waiting += rest.iter().map(|pkt| u64::from(pkt.frame())).sum::<u64>();
        self.most = self.most.max(self.waiting);
    }

    /// Bytes of data that wait at `limit`, a key, when all departures before it have been computed.
    #[inline(always)]
    pub(super) fn waiting_before(&self, lines: &Lines<'_, A>, limit: u64) -> u64 {
        let counted = if self.short { self.left.data } else { self.joined };
        let arrived = lines.data[counted..].iter().take_while(|pkt| pkt.word() < limit);
        self.waiting + arrived.map(|pkt| u64::from(pkt.frame())).sum::<u64>()
    }

    /// [`Departures::run`] for rare cases: CNPs, pauses, and links that lose packets, are tapped or are long.
    #[inline(never)]
    fn run_slowly(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut dyn FnMut(u64, &Packet),
    ) {
        self.flush(port, lines, out);
        if std::mem::take(&mut self.short) {
            self.lengthen();
        }
        self.run_one_by_one(port, lines, limit, out, departed);
        if A::LARGE {
            self.lane = out.open_lane(self.p);
        }
    }

    fn run_one_by_one(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut dyn FnMut(u64, &Packet),
    ) {
        loop {
            let next_cnp = key(lines.cnps, self.left.cnps);
            let next_reply = key(lines.replies, self.left.replies);
            let queued = self.left.queued < lines.queued.len();
            let next_data = match queued {
                _ if self.paused => NEVER,
                true => 0,
                false => key(lines.data, self.left.data),
            };
            let free = self.free;
            let (event, pkt);
            if next_cnp < free.max(next_reply.min(next_data)) {
                event = free.max(next_cnp);
                if event >= limit {
                    return;
                }
                pkt = lines.shelf.parcel(&lines.cnps[self.left.cnps]);
                self.left.cnps += 1;
            } else if next_reply < free.max(next_data) {
                event = free.max(next_reply);
                if event >= limit {
                    return;
                }
                pkt = lines.shelf.parcel(&lines.replies[self.left.replies]);
                self.left.replies += 1;
                self.control += 1;
            } else {
                event = free.max(next_data);
                if event >= limit {
                    return;
                }
                pkt = self.take_data(lines, event, (queued, next_data), out);
                if pkt.is_data() {
                    departed(event, &pkt);
                }
            }
            self.start(port, event, pkt, out);
        }
    }

    /// Takes the next packet of the class of data, which starts at `event`.
    fn take_data(
        &mut self,
        lines: &mut Lines<'_, A>,
        event: u64,
        (queued, next_data): (bool, u64),
        out: &mut Out<'_, A>,
    ) -> Parcel<A> {
        let waited = queued || next_data < self.free;
        if waited {
            self.join(lines, self.free, out);
        }
        let mut pkt = match queued {
            true => lines.queued[self.left.queued],
            false => lines.shelf.parcel(&lines.data[self.left.data]),
        };
        match queued {
            true => self.left.queued += 1,
            false => self.left.data += 1,
        }
        if waited {
            self.waiting -= u64::from(pkt.frame());
            if self.waiting > self.unmarked {
                let at = out.window.opened + time(event);
                pkt.label = out.mark::<false>(self.p, at, self.waiting, pkt.label);
            }
        } else {
            self.joined = self.left.data;
        }
        pkt
    }

    /// Puts a packet on the wire.
    fn start(&mut self, port: &mut Port<A>, event: u64, mut pkt: Parcel<A>, out: &mut Out<'_, A>) {
        let (setup, at) = (out.setup, out.window.opened + time(event));
        let cost = setup.costs(port.row)[pkt.frame() as usize];
        let gp = out.gp + self.p;
        let link = LinkState {
            hop: self.hop,
            at,
            sent: port.bytes + spent(self.spent, self.frames).1,
            queue: self.waiting,
        };
        setup.trace(&mut pkt, link, &mut port.meters);
        self.free = (event & WHOLE_TICKS) + cost;
        self.spent = self.spent.wrapping_add(cost);
        self.frames += 1;
        let (from, span) = out.lane_span(self.p);
        let arrival = out.window.opened + time(self.free) + port.delay;
        let after = arrival - from;
        if port.is(LOSSY | TAPPED) {
            let lost = if port.is(LOSSY) { setup.loses(gp, at, arrival, &pkt) } else { None };
            if port.is(TAPPED) {
                out.recorder.frame(setup, gp, at, Passed::Packet(pkt.label, lost.is_some()));
            }
            if let Some(how) = lost {
                return out.lost(self.p, at, &pkt, how);
            }
        }
        let sent = pkt.arriving(after as u32, port.peer_port);
        match after < span {
            true => out.lane_packets(self.p).push(sent),
            false => out.send_far(self.p, port, after, &sent),
        }
    }

    /// A pause or resume frame takes effect `after` ps from the window's start, after all earlier departures. `paused`
    /// is the port's state from now on.
    #[cold]
    #[inline(never)]
    pub(super) fn pause(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        after: u64,
        paused: bool,
        out: &mut Out<'_, A>,
        departed: &mut dyn FnMut(u64, &Packet),
    ) {
        let resumed = self.paused && !paused;
        self.paused = paused;
        if resumed {
            // A waiting packet starts now, before all departures of this instant, even if another frame pauses the port
            // again.
            if time(self.free) <= after {
                self.free = instant(after);
            }
            self.run::<true>(port, lines, instant(after) + 1, out, departed);
        }
    }

    /// Computes all departures before the port's last pause frame before `limit`, a key, and lets the frames take effect.
    #[cold]
    #[inline(never)]
    pub(super) fn run_to_pauses(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        (pauses, limit): (&[Pause], u64),
        out: &mut Out<'_, A>,
    ) {
        let p = self.p;
        while let Some(pause) = pauses.iter().filter(|pause| pause.port.index() == p).nth(self.pauses)
            && instant(pause.at - out.window.opened) < limit
        {
            self.pauses += 1;
            let after = pause.at - out.window.opened;
            self.run_unwatched(port, lines, instant(after), out);
            out.paused(p, port, pause.at, pause.channel, pause.on);
            let paused = port.paused();
            self.pause(port, lines, after, paused, out, &mut |_, _| {});
        }
    }

    /// Puts the packets that have been sent onto the lane.
    #[inline(always)]
    fn flush(&mut self, port: &mut Port<A>, lines: &Lines<'_, A>, out: &mut Out<'_, A>) {
        match A::LARGE {
            true => close_lane(out, self.p, port, std::mem::take(&mut self.lane), self.far),
            false => {
                let sent = &lines.sent[..std::mem::take(&mut self.sent)];
                lay_on_lane(out, self.p, port, sent, self.far);
            }
        }
    }

    /// Writes the end of the last frame to the port.
    pub(super) fn note_busy(&self, port: &mut Port<A>, out: &Out<'_, A>) {
        if self.frames > 0 {
            port.busy = out.window.opened + time(self.free);
        }
    }

    /// Puts counts and lanes back, and returns what has left. `mixed` is true if other kinds share a class with data.
    #[inline(always)]
    pub(super) fn end(
        mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        mixed: bool,
        out: &mut Out<'_, A>,
    ) -> Left {
        self.flush(port, lines, out);
        if self.frames > 0 {
            count_sent(port, out.window.opened + time(self.free), self.spent, self.frames);
            if mixed {
                let queued = lines.queued[..self.left.queued].iter().filter(|pkt| !pkt.is_data());
                let arrived = lines.data[..self.left.data].iter().filter(|pkt| !pkt.is_data());
                self.control += (queued.count() + arrived.count()) as u64;
            }
            self.control += self.left.cnps as u64;
            out.tally.control_hops += self.control;
        }
        match self.short {
            true => {
                self.waiting +=
                    lines.data[self.left.data..].iter().map(|pkt| u64::from(pkt.frame())).sum::<u64>()
            }
            false if self.unmarked_early == u64::MAX => self.join_all(lines),
            false => self.join(lines, NEVER, out),
        }
        (port.waiting, port.most_waiting) = (self.waiting, self.most.max(self.waiting));
        self.left
    }
}

/// Puts the lane of port `p` back, without the packets that arrive after its span: their first words are at least `far`. They are
/// the last ones, as the wire sends packets in order.
#[inline(always)]
pub(super) fn close_lane<A: Annex>(
    out: &mut Out<'_, A>,
    p: usize,
    port: &mut Port<A>,
    mut lane: Vec<Parcel<A>>,
    far: u64,
) {
    let late = lane.iter().rev().take_while(|pkt| pkt.word() >= far).count();
    if late > 0 {
        let near = lane.len() - late;
        for pkt in &lane[near..] {
            out.send_far(p, port, pkt.word() >> Packet::TIME_SHIFT, pkt);
        }
        lane.truncate(near);
    }
    out.close_lane(p, lane);
}

/// Adds frames with this sum of costs to the counts of a port. The last one ends at `end`, ps.
#[inline(always)]
pub(super) fn count_sent<A: Annex>(port: &mut Port<A>, end: u64, costs: u64, frames: u64) {
    let (time, bytes) = spent(costs, frames);
    (port.busy, port.last) = (end, end);
    port.busy_for += time;
    port.frames += frames;
    port.bytes += bytes;
}

/// What the time of arrival adds to the time at which the wire is free, in a first word. `from` is the start of times on the
/// port's lane.
#[inline(always)]
pub(super) fn reach<A: Annex>(port: &Port<A>, opened: u64, from: u64) -> u64 {
    ((port.delay + opened).wrapping_sub(from + 1) << Packet::TIME_SHIFT)
        .wrapping_add(u64::from(port.peer_port.0) << Packet::PORT_SHIFT)
}

/// Puts packets that port `p` has sent onto its lane. The wire sends them in order, so only the last ones can arrive after
/// the lane's span: their first words are at least `far`.
#[inline(always)]
pub(super) fn lay_on_lane<A: Annex>(
    out: &mut Out<'_, A>,
    p: usize,
    port: &mut Port<A>,
    sent: &[Parcel<A>],
    far: u64,
) {
    let near = match sent.last() {
        Some(last) if last.word() >= far => sent.partition_point(|pkt| pkt.word() < far),
        _ => sent.len(),
    };
    if near > 0 {
        let unit = out.unit;
        super::lanes::add_all(out.lane_packets(p), &sent[..near], unit);
    }
    for pkt in &sent[near..] {
        out.send_far(p, port, pkt.word() >> Packet::TIME_SHIFT, pkt);
    }
}
