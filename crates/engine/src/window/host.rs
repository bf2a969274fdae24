//! A host in one window: all its events, in order of time. The order at one instant is: failures and repairs, pause
//! and resume frames, departures, arrivals, timers.
//!
//! Departures are computed as late as possible. Most arrivals affect no departure before them or after them, except
//! by the reply that they cause: data that is answered by an ACK alone, and ACKs that only move the window of a queue
//! pair which has room. Such arrivals are computed one after the other. The replies wait with their times, and the
//! departures follow in a run of their own. Any other event first catches up with the departures before it.

use super::out::{LinkEvent, LinkEvents, Out};
use super::port::{LOSSY, Port, TAPPED};
use super::queue::Queue;
use super::step::Step;
use super::wire::Wire;
use crate::failing::FailureEvent;
use crate::host::{Host, Received, Replies};
use model::packet::Kinds;
use model::{Annex, Dialogue, Kind, Parcel, Parts, PortIndex, Stamped};

/// The visit of one host in one window.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) host: &'v mut Host<P>,
    pub(super) port: &'v mut Port<P::Annex>,
    pub(super) out: Out<'v, P::Annex>,
    pub(super) events: &'v mut LinkEvents,
    pub(super) with_data: Kinds,
    /// Kinds of replies that leave before all others.
    pub(super) first: Kinds,
}

/// The host's queue of replies and its wire. They are copied here so that the compiler can keep them in registers.
struct Uplink<'v, A> {
    /// Replies in their order. The offset of a reply is one more than that of the arrival which caused it; it is 0 for
    /// replies that waited when the window opened.
    replies: Queue<A>,
    wire: Wire<'v, A>,
    /// True if departures depend on replies, queue pairs and the wire alone: no pause, no reply in the queue of CNPs, no losses.
    plain: bool,
}

/// The next packet of a host.
enum Next {
    Cnp,
    Reply,
    Data,
}

impl<'v, P: Parts> Visit<'v, P> {
    /// Computes the window with these arrivals, in their order. Returns the time of the host's next event; [`u64::MAX`]
    /// for none.
    #[inline(never)]
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        if self.host.crowded() {
            arrivals.iter().for_each(|pkt| self.host.prefetch(self.out.setup, pkt));
        }
        let mut uplink = self.take(0);
        self.take_in(&mut uplink, arrivals);
        self.end(uplink)
    }

    /// Computes one step of a window. Returns the time of the next event, ps, after [`Step::End`] and [`Step::Whole`].
    pub(super) fn step(mut self, step: Step<'_, P::Annex>) -> u64 {
        if let Step::Whole(arrivals) = step {
            return self.run(arrivals);
        }
        let mut uplink = self.take(0);
        match step {
            Step::Arrival(pkt) => self.take_in(&mut uplink, std::slice::from_ref(pkt)),
            Step::Arrivals(pkts) => self.take_in(&mut uplink, pkts),
            Step::Trigger(now, m) => {
                self.catch_up(&mut uplink, now, now);
                self.host.on_trigger(self.out.setup, now, m);
            }
            Step::Post(now, qp) => {
                self.catch_up(&mut uplink, now, now);
                self.host.on_post(self.out.setup, now, qp);
            }
            Step::Settle(now) => self.catch_up(&mut uplink, now, now + 1),
            Step::End | Step::Whole(_) => return self.end(uplink),
        }
        self.put_back(&mut uplink);
        u64::MAX
    }

    /// Computes arrivals, in their order.
    #[inline(always)]
    fn take_in(&mut self, uplink: &mut Uplink<'v, P::Annex>, arrivals: &[Parcel<P::Annex>]) {
        let opened = self.out.window.opened;
        let mut calm = self.calm_before();
        for pkt in arrivals {
            let now = opened + pkt.offset() as u64;
            if now >= calm {
                calm = self.arrive(uplink, now, pkt);
            } else if pkt.is_data() && P::Annex::SACKS {
                calm = self.take_ahead(uplink, now, pkt, calm);
            } else if pkt.is_data() {
                match self.host.on_plain(self.out.setup, now, pkt) {
                    Some((reply, false)) => uplink.replies.push(at_offset(reply, pkt.offset() + 1)),
                    Some((reply, true)) => {
                        self.catch_up(uplink, now, now);
                        self.host.complete(self.out.setup, now, pkt.qp());
                        self.reply(uplink, now, reply);
                        calm = self.calm_before();
                    }
                    None => calm = self.arrive(uplink, now, pkt),
                }
            } else {
                match self.host.on_free_ack(self.out.setup, now, pkt) {
                    Some(false) => {}
                    Some(true) => {
                        self.catch_up(uplink, now, now);
                        self.host.on_message_acked(self.out.setup, now, pkt.qp());
                        calm = self.calm_before();
                    }
                    None if matches!(pkt.kind(), Kind::Ack | Kind::Nack) => {
                        self.catch_up(uplink, now, now);
                        self.host.on_reply(self.out.setup, now, pkt);
                        calm = self.calm_before();
                    }
                    None => calm = self.arrive(uplink, now, pkt),
                }
            }
        }
    }

    /// Computes the rest of the window. Returns the time of the next event; [`u64::MAX`] for none.
    #[inline(always)]
    fn end(mut self, mut uplink: Uplink<'v, P::Annex>) -> u64 {
        let close = self.out.window.close;
        self.catch_up(&mut uplink, close - 1, close);
        let late = uplink.replies.packets_mut().iter_mut().rev().take_while(|reply| reply.offset() > 0);
        late.for_each(|reply| *reply = at_offset(*reply, 0));
        let (departure, _) = self.next(&uplink);
        self.put_back(&mut uplink);
        departure.min(self.host.timer_at())
    }

    /// Time before which arrivals may be computed ahead of the departures before them.
    #[inline(always)]
    fn calm_before(&self) -> u64 {
        match self.host.may_run_ahead(self.out.setup) {
            // At one instant, link events come before arrivals, and timers after them.
            true => self.events.next().min(self.host.timer_at().saturating_add(1)),
            false => 0,
        }
    }

    /// Computes an arrival in order of time with all other events. Returns [`Visit::calm_before`].
    #[inline(never)]
    fn arrive(&mut self, uplink: &mut Uplink<'v, P::Annex>, now: u64, pkt: &Parcel<P::Annex>) -> u64 {
        self.catch_up(uplink, now, now);
        let answers = self.host.on_arrival(self.out.setup, now, pkt);
        self.answer(uplink, now, answers);
        self.calm_before()
    }

    /// Takes data ahead of the departures before it: what its receiver does affects none of them. Takes and returns
    /// [`Visit::calm_before`].
    #[inline(always)]
    fn take_ahead(
        &mut self,
        uplink: &mut Uplink<'v, P::Annex>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        calm: u64,
    ) -> u64 {
        let setup = self.out.setup;
        let got = self.host.on_sacked(setup, now, pkt);
        if got.cnp || got.whole {
            return self.end_ahead(uplink, now, pkt, got);
        }
        if let Some(reply) = got.reply {
            let reply = self.host.make_reply(setup, now, pkt, reply, got.echo);
            if self.first.take(&reply) {
                self.catch_up(uplink, now, now);
                self.reply(uplink, now, reply);
                return self.calm_before();
            }
            uplink.replies.push(at_offset(reply, pkt.offset() + 1));
        }
        calm.min(self.host.timer_at().saturating_add(1))
    }

    /// The end of [`Visit::take_ahead`] for a packet that completes a message or causes a CNP.
    #[cold]
    #[inline(never)]
    fn end_ahead(
        &mut self,
        uplink: &mut Uplink<'v, P::Annex>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        got: Received,
    ) -> u64 {
        let answers = self.host.replies(self.out.setup, now, pkt, got);
        self.catch_up(uplink, now, now);
        if got.whole {
            self.host.complete(self.out.setup, now, pkt.qp());
        }
        self.answer(uplink, now, answers);
        self.calm_before()
    }

    /// Sends or queues the answers to an arrival, when all departures up to `now` have been computed.
    #[inline(always)]
    fn answer(&mut self, uplink: &mut Uplink<'v, P::Annex>, now: u64, [reply, cnp]: Replies<P::Annex>) {
        // Of two answers with the same place among replies, the CNP is the second one.
        let [one, other] = match reply {
            Some(reply) if self.first.has(Kind::Cnp) && !self.first.take(&reply) => [cnp, Some(reply)],
            reply => [reply, cnp],
        };
        [one, other].into_iter().flatten().for_each(|answer| self.reply(uplink, now, answer));
    }

    /// Sends or queues a reply, when all departures up to `now` have been computed. A reply goes before data that the same
    /// arrival releases, so it starts at once if it can.
    fn reply(&mut self, uplink: &mut Uplink<'v, P::Annex>, now: u64, reply: Parcel<P::Annex>) {
        if self.first.take(&reply) {
            return self.reply_first(uplink, now, reply);
        }
        let barred = self.port.paused() && self.with_data.has(Kind::Ack) || !self.port.cnps.is_empty();
        if uplink.wire.free <= now && !barred {
            self.launch(uplink, now, reply);
        } else {
            let offset = (now - self.out.window.opened) as u32;
            uplink.replies.push(at_offset(reply, offset + 1));
        }
    }

    /// Starts or queues a reply that leaves before all others. It starts already if nothing comes before it in the window.
    fn reply_first(&mut self, uplink: &mut Uplink<'v, P::Annex>, now: u64, reply: Parcel<P::Annex>) {
        let start = uplink.wire.free.max(now);
        let others = uplink.replies.packets().first().is_some_and(|pkt| self.first.take(pkt));
        let is_next = self.port.cnps.is_empty() && !others;
        if is_next && start < self.out.window.close.min(self.events.next()) {
            self.launch(uplink, start, reply);
        } else if self.with_data.has(Kind::Ack) {
            self.port.cnps.push(reply);
            uplink.plain = false;
        } else {
            uplink.replies = put_first(std::mem::take(&mut uplink.replies), reply, self.first);
        }
    }

    /// Computes the host's own events: departures and link events up to `until`, and timers before `timers_before`.
    #[inline(never)]
    fn catch_up(&mut self, uplink: &mut Uplink<'v, P::Annex>, until: u64, timers_before: u64) {
        loop {
            // At one instant, link events come before departures, and timers after them.
            let event = self.events.next();
            let until_event = until.min(event.saturating_sub(1)).min(self.host.timer_at());
            match uplink.plain {
                true => self.depart(uplink, until_event),
                false => self.depart_in_turn(uplink, until_event),
            }
            if event > until && self.host.timer_at() >= timers_before {
                return;
            }
            self.on_special(uplink);
        }
    }

    /// Starts all packets that start up to `until`, if departures are plain. It stops at the first timer.
    #[inline(always)]
    fn depart(&mut self, uplink: &mut Uplink<'v, P::Annex>, mut until: u64) {
        // A last reply that never starts spares the loop a test for an empty queue.
        uplink.replies.push(at_offset(Parcel::default(), u32::MAX));
        while let Some(start) = self.send_replies(uplink, self.host.eligible_at(), until) {
            if let Some(mut row) = self.host.row(start) {
                let (until, mut next) = (until.min(row.until), Some(start));
                while let Some(start) = next
                    && row.goes_on()
                {
                    let pkt = self.host.pull_from(&mut row, start);
                    let sent = uplink.wire.launch_for(row.time, row.frame, start, pkt);
                    self.send_far(sent);
                    next = self.send_replies(uplink, row.eligible_at(), until);
                }
                self.host.end_row(&row);
            } else {
                if let Some(pkt) = self.host.pull(self.out.setup, start) {
                    // A steering may send a probe.
                    uplink.wire.control += u64::from(P::Annex::CARRIES && !pkt.is_data());
                    let sent = uplink.wire.launch(start, pkt);
                    self.send_far(sent);
                }
                until = until.min(self.host.timer_at());
            }
        }
        uplink.replies.drop_back();
    }

    /// Starts the replies that leave before data that may start from `eligible` on. Returns the start of that data, or
    /// `None` if the next packet starts after `until`.
    #[inline(always)]
    fn send_replies(&mut self, uplink: &mut Uplink<'v, P::Annex>, eligible: u64, until: u64) -> Option<u64> {
        loop {
            let data = uplink.wire.free.max(eligible).min(until + 1);
            let reply = uplink.replies.front();
            let asks = self.out.window.opened + reply.offset() as u64;
            // A packet that starts at the instant of an arrival leaves before the reply to the arrival.
            if asks > data {
                return (data <= until).then_some(data);
            }
            let start = uplink.wire.free.max(asks - 1);
            if start > until {
                return None;
            }
            let reply = *reply;
            uplink.replies.drop_front();
            uplink.wire.control += 1;
            let sent = uplink.wire.launch(start, reply);
            self.send_far(sent);
        }
    }

    /// [`Visit::depart`] in all cases.
    #[cold]
    #[inline(never)]
    fn depart_in_turn(&mut self, uplink: &mut Uplink<'v, P::Annex>, until: u64) {
        loop {
            let (start, next) = self.next(uplink);
            if start > until.min(self.host.timer_at()) {
                return;
            }
            let pkt = match next {
                Next::Cnp => self.port.cnps.pop(),
                Next::Reply => uplink.replies.pop(),
                Next::Data => self.host.pull(self.out.setup, start),
            };
            if let Some(pkt) = pkt {
                self.launch(uplink, start, pkt);
            }
        }
    }

    /// The next packet, and its start; [`u64::MAX`] if no packet may start.
    fn next(&self, uplink: &Uplink<'v, P::Annex>) -> (u64, Next) {
        let (free, paused) = (uplink.wire.free, self.port.paused());
        if !self.port.cnps.is_empty() {
            return (free, Next::Cnp);
        }
        let data = if paused { u64::MAX } else { free.max(self.host.eligible_at()) };
        match uplink.replies.packets().first() {
            Some(reply) if !(paused && self.with_data.has(Kind::Ack)) => {
                let asks = self.out.window.opened + reply.offset() as u64;
                if asks <= data { (free.max(asks - 1), Next::Reply) } else { (data, Next::Data) }
            }
            _ => (data, Next::Data),
        }
    }

    /// Starts a packet in all cases.
    fn launch(&mut self, uplink: &mut Uplink<'v, P::Annex>, start: u64, pkt: Parcel<P::Annex>) {
        if self.port.is(LOSSY | TAPPED) {
            self.put_back(uplink);
            self.out.launch_special(0, self.port, start, pkt);
            *uplink = self.take(0);
        } else {
            uplink.wire.control += !pkt.is_data() as u64;
            let sent = uplink.wire.launch(start, pkt);
            self.send_far(sent);
        }
    }

    /// Keeps a packet on the wire that arrives after the next window.
    #[inline(always)]
    fn send_far(&mut self, sent: Option<(u64, Parcel<P::Annex>)>) {
        if let Some((after, pkt)) = sent {
            self.out.send_far(0, self.port, after, &pkt);
        }
    }

    /// Handles the next link event or timer. A packet that waits starts at once, even if another frame of this instant
    /// pauses the port again.
    #[cold]
    #[inline(never)]
    fn on_special(&mut self, uplink: &mut Uplink<'v, P::Annex>) {
        self.put_back(uplink);
        let (frame, timer) = (self.events.next(), self.host.timer_at());
        if timer < frame {
            self.host.on_timer(self.out.setup, timer);
            if let Some(on) = self.host.take_pause() {
                let at = self.out.pause_link(0, self.port, timer, on);
                self.host.last_event = self.host.last_event.max(at);
            }
        } else {
            let before = self.port.paused_channels();
            match self.events.take() {
                Some(LinkEvent::Pause(pause)) => {
                    self.out.paused(0, self.port, frame, pause.channel, pause.on);
                }
                Some(LinkEvent::Failure(FailureEvent::Reset { .. })) => {
                    self.out.paused(0, self.port, frame, 0, false);
                }
                Some(LinkEvent::Failure(FailureEvent::Rate { row, .. })) => {
                    self.port.row = row;
                    self.host.set_rate(self.out.setup, row);
                }
                // Hosts have no routes, and storms come from hosts.
                Some(LinkEvent::Failure(FailureEvent::RouteChange(_) | FailureEvent::Storm { .. }))
                | None => {}
            }
            let held = self.port.paused_channels();
            self.host.on_pause(self.out.setup, frame, before, held);
        }
        let now = frame.min(timer);
        *uplink = self.take(now);
        let made = self.host.take_made();
        made.iter().for_each(|pkt| self.reply(uplink, now, *pkt));
        self.host.keep_room(made);
        self.depart_in_turn(uplink, now);
    }

    /// Takes the queue of replies and the wire. No packet starts before `now`.
    #[inline(always)]
    fn take(&mut self, now: u64) -> Uplink<'v, P::Annex> {
        let replies = std::mem::take(self.replies());
        let plain = !self.port.paused() && self.port.cnps.is_empty() && !self.port.is(LOSSY | TAPPED);
        let mut wire = Wire::take(self.port, &mut self.out, 0, 0);
        wire.free = wire.free.max(now);
        Uplink { replies, wire, plain }
    }

    #[inline(always)]
    fn put_back(&mut self, uplink: &mut Uplink<'v, P::Annex>) {
        *self.replies() = std::mem::take(&mut uplink.replies);
        uplink.wire.put_back(self.port, &mut self.out, 0);
        self.port.recount();
    }

    /// The queue of replies: the queue of data if both share a class. Replies that leave first wait there, too, or in the port's
    /// own queue for CNPs.
    #[inline(always)]
    fn replies(&mut self) -> &mut Queue<P::Annex> {
        match self.with_data.has(Kind::Ack) {
            true => &mut self.port.data,
            false => &mut self.port.replies,
        }
    }
}

/// A packet that waits at its host, with this offset.
#[inline(always)]
fn at_offset<A: Annex>(pkt: Parcel<A>, offset: u32) -> Parcel<A> {
    pkt.arriving(offset, PortIndex(0))
}

/// Queues a reply of the kinds that leave first before all others.
#[cold]
#[inline(never)]
fn put_first<A: Annex>(mut replies: Queue<A>, reply: Parcel<A>, first: Kinds) -> Queue<A> {
    let mut waiting: Vec<Parcel<A>> = std::iter::from_fn(|| replies.pop()).collect();
    let place = waiting.partition_point(|pkt| first.take(pkt));
    waiting.insert(place, reply);
    waiting.into_iter().for_each(|pkt| replies.push(pkt));
    replies
}
