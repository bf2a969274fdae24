//! The ports of a heavy visit whose data the buffer charges, side by side in order of time.
//!
//! The buffer decides about each arrival by the bytes of all ports at that instant, so these ports take turns: the port
//! with the earliest event goes on until another port has an earlier one. Ports without charged packets need no turns,
//! and [`super::local`] computes them afterwards. A pause frame that leaves by such a port waits for a frame on its wire, so
//! it is owed until the port has been computed up to that instant.
//!
//! Where caps alone bound the queues, no turns are needed either: every port that may reach its cap is computed by itself,
//! event by event.

use super::departures::Departures;
use super::lanes::bits;
use super::line::{self, LOW, NEVER, departure, key, place};
use super::local::{CNPS, DATA, Play, REPLIES, in_order};
use super::port::{LOSSY, MARKS_EARLY, TAPPED, TO_HOST};
use super::queue::Queue;
use super::setup::Setup;
use crate::books::Lost;
use crate::buffer::{Admission, Caps};
use crate::cells::Place;
use crate::outcome::EventKind;
use crate::setup::LinkState;
use crate::switch::{Egress, Switch, may_be_cut, may_be_victim};
use model::plan::{Cut, Victim};
use model::{Annex, Parcel, Parts};

/// Working memory of heavy visits.
#[derive(Debug, Default)]
pub(super) struct Charging {
    ports: Vec<Charged>,
    /// Place of the next event of each of these ports in the order of all.
    places: Vec<u64>,
    /// Pause and resume frames that ports without charged packets owe, in order of time.
    pub(super) owed: Vec<Owed>,
}

/// A pause or resume frame that leaves by a port between two of its events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    port: usize,
    /// Key of the first event of the port that comes later.
    limit: u64,
    /// Time of the decision, ps.
    at: u64,
    on: bool,
}

/// A port whose data the buffer charges.
#[derive(Clone, Copy, Debug)]
struct Charged {
    p: usize,
    /// Key of the next departure from the queue: the time at which the wire is free.
    free: u64,
    /// Key of the next arrival of data, and the number of arrivals before it.
    arrival: u64,
    data: usize,
    /// Key of the first reply or CNP that has not left, and the numbers of those that have left.
    control: u64,
    replies: usize,
    cnps: usize,
    /// Key of the next pause frame, and the number of frames before it.
    pause: u64,
    pauses: usize,
}

/// An event at a port.
#[derive(Clone, Copy, Debug)]
enum Event {
    Pause,
    /// Data arrives.
    Arrival,
    /// Data departs that has waited.
    Departure,
    /// A reply or CNP departs.
    Control,
}

/// What decides about data that arrives.
trait Rule<A> {
    /// Decides whether a packet may join its queue. The rule asks for the queue if it counts.
    fn admit(&mut self, setup: &Setup<'_>, pkt: &Parcel<A>, egress: impl FnOnce() -> Egress) -> Admission;

    /// Notes that a packet leaves its queue; true if its ingress must be resumed.
    fn release(&mut self, pkt: &Parcel<A>, place: Place) -> bool;
}

/// The switch's buffer decides.
struct ByBuffer<'s, P: Parts>(&'s mut Switch<P>);

impl<P: Parts> Rule<P::Annex> for ByBuffer<'_, P> {
    #[inline(always)]
    fn admit(
        &mut self,
        setup: &Setup<'_>,
        pkt: &Parcel<P::Annex>,
        egress: impl FnOnce() -> Egress,
    ) -> Admission {
        match self.0.buffer.admit_to_share(self.0.plain_account(pkt), pkt.frame().into()) {
            true => Admission::Admitted,
            false => self.0.admit(setup, pkt, Some(egress())),
        }
    }

    #[inline(always)]
    fn release(&mut self, pkt: &Parcel<P::Annex>, place: Place) -> bool {
        self.0.buffer.release(self.0.plain_account(pkt), pkt.frame().into(), place)
    }
}

impl<A: Annex> Rule<A> for Caps {
    #[inline(always)]
    fn admit(&mut self, _: &Setup<'_>, pkt: &Parcel<A>, egress: impl FnOnce() -> Egress) -> Admission {
        Caps::admit(self, pkt.frame().into(), egress(), may_be_cut(pkt))
    }

    #[inline(always)]
    fn release(&mut self, _: &Parcel<A>, _: Place) -> bool {
        false
    }
}

impl<A: Annex> Play<'_, A> {
    /// Computes all ports with charged packets. They are then no longer busy.
    #[inline(never)]
    pub(super) fn charged<P: Parts<Annex = A>>(&mut self, switch: &mut Switch<P>) {
        let mut ports = std::mem::take(&mut self.charging.ports);
        let mut places = std::mem::take(&mut self.charging.places);
        let mut by_buffer = ByBuffer(switch);
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                if self.may_charge(p) {
                    self.layer.busy[word] &= !(1 << (p % 64));
                    let port = self.begin_charged(p);
                    places.push(place(self.next_event(&port).0, p));
                    ports.push(port);
                }
            }
        }
        let end = line::instant(self.out.window.length);
        if let Some(middle) = self.middle.take() {
            self.take_turns((&mut ports, &mut places), middle, &mut by_buffer);
            by_buffer.0.buffer.sample();
        }
        self.take_turns((&mut ports, &mut places), end, &mut by_buffer);
        ports.drain(..).for_each(|port| self.end_charged(port));
        places.clear();
        (self.charging.ports, self.charging.places) = (ports, places);
    }

    /// Computes the events of these ports before `end`, a key, in order of their places.
    #[inline(always)]
    fn take_turns(
        &mut self,
        (ports, places): (&mut [Charged], &mut [u64]),
        end: u64,
        rule: &mut impl Rule<A>,
    ) {
        loop {
            let (mut first, mut next, mut limit) = (0, end, end);
            for (i, place) in places.iter().enumerate() {
                limit = limit.min(next.max(*place));
                first = if *place < next { i } else { first };
                next = next.min(*place);
            }
            if next == end {
                return;
            }
            places[first] = self.advance(&mut ports[first], limit, rule);
        }
    }

    /// Computes all ports that may reach their caps. They are then no longer busy.
    #[inline(never)]
    pub(super) fn capped(&mut self, mut caps: Caps) {
        let end = line::instant(self.out.window.length);
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                if self.may_exceed(p, &caps) {
                    self.layer.busy[word] &= !(1 << (p % 64));
                    let mut port = self.begin_charged(p);
                    if let Some(middle) = self.middle {
                        self.advance(&mut port, middle, &mut caps);
                        self.bytes_before += self.ports[p].waiting;
                    }
                    self.advance(&mut port, end, &mut caps);
                    self.end_charged(port);
                }
            }
        }
    }

    /// The queue of data at port `p`.
    #[inline(always)]
    fn place(&self, p: usize) -> Place {
        Place::new(p, self.out.setup.data_class)
    }

    /// Largest queue of data at port `p`, bytes.
    #[inline(always)]
    fn cap(&self, p: usize) -> u64 {
        self.out.setup.cap(self.out.gp + p)
    }

    /// True if the queue of port `p` would exceed its cap if all data of the window arrived before any departs.
    #[inline(always)]
    fn may_exceed(&self, p: usize, caps: &Caps) -> bool {
        let (waiting, line) = (self.ports[p].waiting, &self.layer.line(p, DATA).packets);
        let most = line.len() as u64 * u64::from(self.out.setup.largest_frame);
        // The port's own cap has mostly left the caches.
        if waiting + most <= caps.least {
            return false;
        }
        let room = self.cap(p).saturating_sub(waiting);
        most > room && line.iter().map(|pkt| u64::from(pkt.frame())).sum::<u64>() > room
    }

    /// True if data may arrive or depart at port `p`.
    #[inline(always)]
    pub(super) fn may_charge(&self, p: usize) -> bool {
        let port = &self.ports[p];
        let may_depart = !port.data.is_empty() && (!port.paused() || self.next_pause(p, 0) != NEVER);
        may_depart || !self.layer.line(p, DATA).packets.is_empty()
    }

    #[inline(always)]
    fn begin_charged(&mut self, p: usize) -> Charged {
        self.sort_lines(p);
        let free = departure(self.ports[p].busy.saturating_sub(self.out.window.opened));
        let [arrival, reply, cnp] =
            [DATA, REPLIES, CNPS].map(|class| key(&self.layer.line(p, class).packets, 0));
        let (control, pause) = (reply.min(cnp), self.next_pause(p, 0));
        Charged { p, free, arrival, data: 0, control, replies: 0, cnps: 0, pause, pauses: 0 }
    }

    /// Puts the port's lines back, empty. What has not left goes into its queues.
    #[inline(always)]
    fn end_charged(&mut self, Charged { p, replies, cnps, .. }: Charged) {
        self.queue_made(p);
        self.layer.line_mut(p, DATA).clear();
        self.keep(p, REPLIES, replies);
        self.keep(p, CNPS, cnps);
        self.note_queues(p);
    }

    /// The port's next event, and its key.
    #[inline(always)]
    fn next_event(&self, port: &Charged) -> (u64, Event) {
        let own = &self.ports[port.p];
        // Data waits in the port's queue.
        let data = if own.data.is_empty() || own.paused() { NEVER } else { port.free };
        let (departure, event) = match port.control < data.max(port.free) {
            true => (port.control.max(port.free), Event::Control),
            false => (data, Event::Departure),
        };
        // A resumed port starts its packet before another frame of the same instant takes effect.
        match departure <= port.arrival.min(port.pause) {
            true => (departure, event),
            false if port.pause < port.arrival => (port.pause, Event::Pause),
            false => (port.arrival, Event::Arrival),
        }
    }

    /// Key of the pause frame at port `p` after `count` others.
    #[inline(always)]
    fn next_pause(&self, p: usize, count: usize) -> u64 {
        if self.pauses.is_empty() {
            return NEVER;
        }
        let mut own = self.pauses.iter().filter(|pause| pause.port.index() == p);
        own.nth(count).map_or(NEVER, |pause| line::instant(pause.at - self.out.window.opened))
    }

    /// Computes the events of a port that come before the place `limit`. Returns the place of the next one.
    #[inline(never)]
    fn advance(&mut self, port: &mut Charged, limit: u64, rule: &mut impl Rule<A>) -> u64 {
        loop {
            let (key, event) = self.next_event(port);
            let next = place(key, port.p);
            if next >= limit {
                return next;
            }
            match event {
                Event::Departure => self.depart_charged(port, key, rule),
                Event::Control => {
                    let pkt = self.take_control(port);
                    self.start_charged(port, self.out.window.opened + line::time(key), pkt);
                }
                Event::Arrival => self.arrive_charged(port, key, rule),
                Event::Pause => self.pause_charged(port, key),
            }
        }
    }

    /// A pause or resume frame takes effect.
    #[cold]
    fn pause_charged(&mut self, port: &mut Charged, key: u64) {
        let mut own = self.pauses.iter().filter(|pause| pause.port.index() == port.p);
        let Some(pause) = own.nth(port.pauses).copied() else { return };
        port.pauses += 1;
        port.pause = self.next_pause(port.p, port.pauses);
        let state = &mut self.ports[port.p];
        let news = self.out.paused(port.p, state, pause.at, pause.channel, pause.on);
        if news && !pause.on && line::time(port.free) <= line::time(key) {
            port.free = key;
        }
    }

    /// Data arrives. It starts at once if the wire is free.
    #[inline(always)]
    fn arrive_charged(&mut self, port: &mut Charged, key: u64, rule: &mut impl Rule<A>) {
        let (p, at) = (port.p, self.out.window.opened + line::time(key));
        let line = &self.layer.line(p, DATA).packets;
        let mut pkt = self.shelf.unkeyed(&line[port.data], self.layer.tie);
        port.data += 1;
        port.arrival = line::key(line, port.data);
        let queue = self.ports[p].waiting;
        let egress = || Egress { queue, cap: self.cap(p), place: Some(self.place(p)) };
        match rule.admit(self.out.setup, &pkt, egress) {
            Admission::Admitted => {}
            Admission::AdmittedPause => self.send_pause(&pkt, (key, p), true),
            Admission::Dropped => {
                self.out.links[p].drops += 1;
                self.out.tally.lost(&pkt, Lost::Buffer);
                return self.out.note(at, EventKind::Dropped, &pkt);
            }
            Admission::Cut(cut) => {
                if !self.cut(port, key, &pkt, cut) {
                    return;
                }
            }
        }
        let own = &mut self.ports[p];
        if port.free < key && !own.paused() && own.data.is_empty() {
            self.release(&pkt, (key, p), rule);
            return self.start_charged(port, at, pkt);
        }
        if own.is(MARKS_EARLY) && own.waiting > own.unmarked.into() {
            pkt.label = self.out.mark::<true>(p, at, own.waiting, pkt.label);
        }
        own.waiting += u64::from(pkt.frame());
        own.most_waiting = own.most_waiting.max(own.waiting);
        own.data.push(pkt);
    }

    /// Cuts a packet that arrives, or one that waits: then the arriving packet takes its place, and the result is true.
    /// The headers are a reply that arrives at this instant.
    #[cold]
    fn cut(&mut self, port: &mut Charged, key: u64, pkt: &Parcel<A>, rule: Cut) -> bool {
        let (p, at) = (port.p, self.out.window.opened + line::time(key));
        let setup = self.out.setup;
        let waiting = match rule.victim {
            Victim::Even if setup.coin(self.out.gp + p, at) => {
                self.ports[p].take_newest(|waiting| may_be_victim(waiting, pkt))
            }
            _ => None,
        };
        let victim = waiting.as_ref().unwrap_or(pkt);
        let last_hop = self.ports[p].is(TO_HOST);
        self.out.tally.cut(last_hop);
        self.out.note(at, EventKind::Cut, victim);
        let headers = victim.cut(rule.frame, last_hop);
        let label = headers.with_word(key & !LOW | headers.word() & LOW);
        let annex = self.shelf.put(&victim.annex);
        let line = &mut self.layer.line_mut(p, REPLIES).packets;
        let place = port.replies + line[port.replies..].partition_point(|pkt| pkt.word() < label.word());
        line.insert(place, Parcel { label, annex });
        let cnps = &self.layer.line(p, CNPS).packets;
        port.control =
            line::key(&self.layer.line(p, REPLIES).packets, port.replies).min(line::key(cnps, port.cnps));
        waiting.is_some()
    }

    /// The port's next packet of data departs.
    #[inline(always)]
    fn depart_charged(&mut self, port: &mut Charged, key: u64, rule: &mut impl Rule<A>) {
        let (p, at) = (port.p, self.out.window.opened + line::time(key));
        let own = &mut self.ports[p];
        let Some(mut pkt) = own.data.pop() else { return };
        own.waiting -= u64::from(pkt.frame());
        if own.waiting > own.unmarked.into() && !own.is(MARKS_EARLY) {
            pkt.label = self.out.mark::<false>(p, at, own.waiting, pkt.label);
        }
        self.release(&pkt, (key, p), rule);
        self.start_charged(port, at, pkt);
    }

    /// Takes the reply or CNP that departs next.
    #[inline(never)]
    fn take_control(&self, port: &mut Charged) -> Parcel<A> {
        let (replies, cnps) =
            (&self.layer.line(port.p, REPLIES).packets, &self.layer.line(port.p, CNPS).packets);
        let (reply, cnp) = (key(replies, port.replies), key(cnps, port.cnps));
        let pkt = if cnp < port.free.max(reply) {
            port.cnps += 1;
            &cnps[port.cnps - 1]
        } else {
            port.replies += 1;
            &replies[port.replies - 1]
        };
        port.control = key(replies, port.replies).min(key(cnps, port.cnps));
        self.shelf.parcel(pkt)
    }

    /// Puts a packet on the wire at `at`.
    #[inline(always)]
    fn start_charged(&mut self, charged: &mut Charged, at: u64, mut pkt: Parcel<A>) {
        let (p, out) = (charged.p, &mut self.out);
        let port = &mut self.ports[p];
        let (sent, queue) = (port.bytes, port.waiting);
        let hop = out.setup.hop::<A>(out.gp + p, port.row);
        out.setup.trace(&mut pkt, LinkState { hop, at, sent, queue }, &mut port.meters);
        match port.is(LOSSY | TAPPED) {
            true => out.launch_special(p, port, at, pkt),
            false => out.launch(p, port, at, pkt),
        };
        charged.free = departure(port.busy - out.window.opened);
    }

    /// Releases the buffer of a packet that leaves, and resumes its ingress if the buffer has room again.
    #[inline(always)]
    fn release(&mut self, pkt: &Parcel<A>, event: (u64, usize), rule: &mut impl Rule<A>) {
        if rule.release(pkt, self.place(event.1)) {
            self.send_pause(pkt, event, false);
        }
    }

    /// Sends a pause or resume frame to the neighbour from which a packet has come, because of an event at port `p`.
    #[cold]
    fn send_pause(&mut self, pkt: &Parcel<A>, (key, p): (u64, usize), on: bool) {
        let port = pkt.ingress().index();
        let at = self.out.window.opened + line::time(key);
        let is_computed = self.layer.busy[port / 64] >> (port % 64) & 1 == 0;
        let ignores_the_wire = self.out.setup.plan.wire.pfc == 0 && !self.ports[port].is(TAPPED);
        if is_computed || ignores_the_wire {
            let state = &self.ports[port];
            let free = if on { state.busy } else { self.out.free_beside(port, state, (p, at), pkt.frame()) };
            self.out.send_pause(port, state, free, at, 0, on);
            return;
        }
        self.owe((key, p), port, on);
    }

    /// Lets `port` owe a pause or resume frame, because of an event at port `p`.
    #[cold]
    pub(super) fn owe(&mut self, (key, p): (u64, usize), port: usize, on: bool) {
        let (place, at) = (key & !LOW, self.out.window.opened + line::time(key));
        // A packet may leave by the port by which it came: it resumes the sender when it has started.
        let is_before = port < p || port == p && !on;
        let limit = if is_before { place + LOW + 1 } else { place };
        self.charging.owed.push(Owed { port, limit, at, on });
    }

    /// True if port `p` owes a frame.
    #[inline(always)]
    pub(super) fn owes(&self, p: usize) -> bool {
        !self.charging.owed.is_empty() && self.charging.owed.iter().any(|owed| owed.port == p)
    }

    /// Sends the frames that port `p` owes.
    #[cold]
    #[inline(never)]
    pub(super) fn send_owed(&mut self, p: usize, departures: &mut Departures<A>, queue: &Queue<A>) {
        for i in 0..self.charging.owed.len() {
            let Owed { port, limit, at, on } = self.charging.owed[i];
            if port == p {
                let lines = &mut in_order(&mut self.layer.lines[p], queue, self.shelf.reborrow(), self.sent);
                let state = &mut self.ports[p];
                if !self.pauses.is_empty() {
                    departures.run_to_pauses(state, lines, (self.pauses, limit), &mut self.out);
                }
                departures.run_unwatched(state, lines, limit, &mut self.out);
                departures.note_busy(state, &self.out);
                self.out.send_pause(p, state, state.busy, at, 0, on);
            }
        }
    }
}
