//! The departures of one port over a stretch of time, from what is queued and from lines of arrivals.
//!
//! A port that no other port affects needs nothing but its own events: the wire becomes free, a packet arrives, a pause
//! frame comes. The next departure is the earliest of what may start: at one instant, queued packets by class, then
//! arrivals by rank. See [`super::line`] for the keys that make this one comparison.

use super::line::{AT_DEPARTURE, LOW, NEVER, TICK_SHIFT, WHOLE_TICKS, departure, instant, key, time};
use super::out::Out;
use super::port::{LOSSY, Port, TAPPED};
use crate::outcome::{EventKind, Passed};
use crate::setup::LinkState;
use model::{Annex, Packet, Parcel};

/// Bits of the time in a first word.
const HIGH: u64 = !0 << Packet::TIME_SHIFT;

/// The lines of one port in one visit, by class.
pub(super) struct Lines<'l, A> {
    /// Data that was queued when the window opened.
    pub(super) queued: &'l [Parcel<A>],
    /// Arrivals in the class of data.
    pub(super) data: &'l mut [Parcel<A>],
    /// Queued replies, then arrivals.
    pub(super) replies: &'l [Parcel<A>],
    /// Queued CNPs, then arrivals.
    pub(super) cnps: &'l [Parcel<A>],
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
    /// First word from which on a packet arrives after the next window.
    far: u64,
    lane: Vec<Parcel<A>>,
    before: usize,
    /// Sum of the wire's times, as keys.
    taken: u64,
    bytes: u64,
    control: u64,
    /// Arrivals of the line of data that have joined the queue.
    joined: usize,
    /// Bytes of data in the queue: now, and the maximum.
    waiting: u32,
    most: u32,
    unmarked: u32,
    /// True if the queue can grow neither beyond its maximum nor to a mark in this visit.
    pub(super) short: bool,
    /// True if the link loses packets, is tapped, or is long.
    special: bool,
    paused: bool,
}

impl<A: Annex> Departures<A> {
    #[inline(always)]
    pub(super) fn begin(port: &Port<A>, out: &mut Out<'_, A>, p: usize, arrivals: usize) -> Self {
        let (opened, length) = (out.window.opened, out.window.length);
        let lane = out.open_lane(p);
        let most = u64::from(port.waiting) + arrivals as u64 * u64::from(out.setup.largest_frame);
        let special = A::TELEMETRY || port.is(LOSSY | TAPPED) || port.delay >= super::line::LONGEST;
        Departures {
            p,
            left: Left::default(),
            free: departure(port.busy.saturating_sub(opened)),
            reach: (port.delay.wrapping_sub(length + 1) << Packet::TIME_SHIFT)
                .wrapping_add(u64::from(port.peer_port.0) << Packet::PORT_SHIFT),
            far: length << Packet::TIME_SHIFT,
            before: lane.len() + port.far.len(),
            lane,
            taken: 0,
            bytes: 0,
            control: 0,
            joined: 0,
            waiting: port.waiting,
            most: port.most_waiting,
            unmarked: port.unmarked,
            short: most <= u64::from(port.most_waiting.min(port.unmarked)) && !special,
            special,
            paused: port.paused(),
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
        mut departed: impl FnMut(u64, &Parcel<A>),
    ) {
        if self.special || self.paused || self.left.cnps < lines.cnps.len() {
            return self.run_slowly(port, lines, limit, out, &mut departed);
        }
        match self.short {
            true => self.run_both::<true, WATCHED>(port, lines, limit, out, departed),
            false => self.run_both::<false, WATCHED>(port, lines, limit, out, departed),
        }
    }

    #[inline(always)]
    fn run_both<const SHORT: bool, const WATCHED: bool>(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        mut departed: impl FnMut(u64, &Parcel<A>),
    ) {
        if self.left.queued < lines.queued.len() {
            self.run_some::<SHORT, WATCHED, true>(port, lines, limit, out, &mut departed);
            if self.left.queued < lines.queued.len() {
                return;
            }
        }
        self.run_some::<SHORT, WATCHED, false>(port, lines, limit, out, &mut departed);
    }

    /// Departures of replies, and of data from the port's queue (`QUEUED`) or from the line.
    #[inline(always)]
    fn run_some<const SHORT: bool, const WATCHED: bool, const QUEUED: bool>(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut impl FnMut(u64, &Parcel<A>),
    ) {
        let costs = out.setup.costs(port.row);
        let (reach, far) = (self.reach, self.far);
        let (mut free, mut taken, mut bytes, mut control) = (self.free, 0u64, 0u64, 0u64);
        let mut lane = std::mem::take(&mut self.lane);
        let mut r = self.left.replies;
        let mut d = if QUEUED { self.left.queued } else { self.left.data };
        let mut next_reply = key(lines.replies, r);
        let mut next_data = if QUEUED { 0 } else { key(lines.data, d) };
        loop {
            let data = free.max(next_data);
            let (event, mut pkt);
            if next_reply < data {
                event = free.max(next_reply);
                if event >= limit {
                    break;
                }
                pkt = lines.replies[r];
                r += 1;
                next_reply = key(lines.replies, r);
            } else {
                event = data;
                if event >= limit {
                    break;
                }
                pkt = if QUEUED { lines.queued[d] } else { lines.data[d] };
                if !SHORT {
                    if QUEUED || next_data < free {
                        self.join(lines, free, out);
                        if !QUEUED {
                            pkt = lines.data[d]; // it may have been marked when it joined
                        }
                        self.waiting -= pkt.frame();
                        if self.waiting > self.unmarked {
                            pkt =
                                out.mark::<false>(self.p, out.window.opened + time(event), self.waiting, pkt);
                        }
                    } else {
                        self.joined = d + 1;
                    }
                } else if QUEUED {
                    self.waiting -= pkt.frame();
                }
                let is_data = pkt.is_data();
                control += u64::from(!is_data);
                if WATCHED && is_data {
                    departed(event, &pkt);
                }
                d += 1;
                if !QUEUED {
                    next_data = key(lines.data, d);
                }
            }
            let frame = pkt.frame();
            let cost = costs[frame as usize];
            free = (event & WHOLE_TICKS) + cost;
            taken = taken.wrapping_add(cost);
            bytes += u64::from(frame);
            let word = ((free & WHOLE_TICKS) >> 1).wrapping_add(reach) | pkt.word() & LOW;
            let sent = Parcel { label: pkt.label.with_word(word), annex: pkt.annex };
            if word < far {
                super::lanes::add(&mut lane, sent, out.unit);
            } else {
                out.send_far(self.p, port, (word & HIGH) >> Packet::TIME_SHIFT, sent);
            }
            if QUEUED && d == lines.queued.len() {
                break;
            }
        }
        self.lane = lane;
        self.free = free;
        self.taken = self.taken.wrapping_add(taken);
        self.bytes += bytes;
        self.control += control + (r - self.left.replies) as u64;
        self.left.replies = r;
        match QUEUED {
            true => self.left.queued = d,
            false => self.left.data = d,
        }
    }

    /// Adds all arrivals of data before `now`, a key, to the queue, and marks those that find a long queue.
    #[inline(always)]
    fn join(&mut self, lines: &mut Lines<'_, A>, now: u64, out: &mut Out<'_, A>) {
        while let Some(pkt) = lines.data.get_mut(self.joined)
            && pkt.word() < now
        {
            if self.waiting > self.unmarked {
                let at = out.window.opened + time(pkt.word());
                *pkt = out.mark::<true>(self.p, at, self.waiting, *pkt);
            }
            self.waiting += pkt.frame();
            self.joined += 1;
        }
        self.most = self.most.max(self.waiting);
    }

    /// [`Departures::run`] for rare cases: CNPs, pauses, and links that lose packets, are tapped or are long.
    #[inline(never)]
    fn run_slowly(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        limit: u64,
        out: &mut Out<'_, A>,
        departed: &mut dyn FnMut(u64, &Parcel<A>),
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
                pkt = lines.cnps[self.left.cnps];
                self.left.cnps += 1;
            } else if next_reply < free.max(next_data) {
                event = free.max(next_reply);
                if event >= limit {
                    return;
                }
                pkt = lines.replies[self.left.replies];
                self.left.replies += 1;
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
        if waited && !self.short {
            self.join(lines, self.free, out);
        }
        let mut pkt = match queued {
            true => lines.queued[self.left.queued],
            false => lines.data[self.left.data],
        };
        match queued {
            true => self.left.queued += 1,
            false => self.left.data += 1,
        }
        if self.short {
            self.waiting -= if queued { pkt.frame() } else { 0 };
        } else if waited {
            self.waiting -= pkt.frame();
            if self.waiting > self.unmarked {
                pkt = out.mark::<false>(self.p, out.window.opened + time(event), self.waiting, pkt);
            }
        } else {
            self.joined = self.left.data;
        }
        pkt
    }

    /// Puts a packet on the wire.
    fn start(&mut self, port: &mut Port<A>, event: u64, mut pkt: Parcel<A>, out: &mut Out<'_, A>) {
        let (setup, at) = (out.setup, out.window.opened + time(event));
        let frame = pkt.frame();
        let cost = setup.costs(port.row)[frame as usize];
        if !pkt.is_data() {
            self.control += 1;
        }
        let link = LinkState {
            gp: out.gp + self.p,
            row: port.row,
            at,
            sent: port.bytes + self.bytes,
            queue: self.waiting.into(),
        };
        setup.trace(&mut pkt, link);
        self.free = (event & WHOLE_TICKS) + cost;
        self.taken = self.taken.wrapping_add(cost);
        self.bytes += u64::from(frame);
        let after = (time(self.free) + port.delay).wrapping_sub(out.window.length);
        if port.is(LOSSY | TAPPED) {
            let arrival = out.next + after;
            let lost = port.is(LOSSY) && setup.loses(link.gp, at, arrival, &pkt);
            if port.is(TAPPED) {
                out.recorder.frame(setup, link.gp, at, Passed::Packet(pkt.label, lost));
            }
            if lost {
                out.links[self.p].lost += 1;
                out.tally.lost(&pkt, false);
                out.note(at, EventKind::Lost, &pkt);
                // The lane does not count it.
                self.before = self.before.wrapping_sub(1);
                return;
            }
        }
        let sent = pkt.arriving(after as u32, port.peer_port);
        match after < out.window.length {
            true => super::lanes::add(&mut self.lane, sent, out.unit),
            false => out.send_far(self.p, port, after, sent),
        }
    }

    /// A pause or resume frame takes effect `after` ps from the window's start, after all earlier departures. `paused`
    /// is the port's state from now on.
    pub(super) fn pause(
        &mut self,
        port: &mut Port<A>,
        lines: &mut Lines<'_, A>,
        after: u64,
        paused: bool,
        out: &mut Out<'_, A>,
        departed: impl FnMut(u64, &Parcel<A>),
    ) {
        let resumed = self.paused && !paused;
        self.paused = paused;
        if resumed {
            // A waiting packet starts now, before all departures of this instant, even if another frame pauses the port
            // again.
            if self.free <= departure(after) {
                self.free = instant(after);
            }
            self.run::<true>(port, lines, instant(after) + 1, out, departed);
        }
    }

    /// Puts counts and the lane back, and returns what has left.
    #[inline(always)]
    pub(super) fn end(mut self, port: &mut Port<A>, lines: &mut Lines<'_, A>, out: &mut Out<'_, A>) -> Left {
        let frames = (self.lane.len() + port.far.len()).wrapping_sub(self.before);
        out.close_lane(self.p, std::mem::take(&mut self.lane));
        if frames > 0 {
            port.busy = out.window.opened + time(self.free);
            port.last = port.busy;
            port.frames += frames as u64;
            port.bytes += self.bytes;
            // Every time on the wire bears the rank of departures, too.
            out.tally.control_hops += self.control;
            port.busy_for +=
                self.taken.wrapping_sub((frames as u64).wrapping_mul(AT_DEPARTURE)) >> TICK_SHIFT;
        }
        match self.short {
            true => self.waiting += lines.data[self.left.data..].iter().map(|pkt| pkt.frame()).sum::<u32>(),
            false => self.join(lines, NEVER, out),
        }
        (port.waiting, port.most_waiting) = (self.waiting, self.most);
        self.left
    }
}
