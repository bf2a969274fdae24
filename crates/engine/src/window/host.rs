//! A host in one window: all its events, in order of time. The order at one instant is: failures and repairs, pause
//! and resume frames, departures, arrivals, timers.
//!
//! Arrivals and departures are the frequent events. A departure is computed only when a later event comes up; until
//! then only its time is fixed.

use super::out::{LinkEvent, LinkEvents, Out, Window};
use super::port::{LOSSY, Port, TAPPED};
use super::queue::Queue;
use super::wire::Wire;
use crate::failing::FailureEvent;
use crate::host::Host;
use model::packet::Kinds;
use model::{Annex, Kind, Parcel, Parts};

/// The visit of one host in one window.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) host: &'v mut Host<P>,
    pub(super) port: &'v mut Port<P::Annex>,
    pub(super) out: Out<'v, P::Annex>,
    pub(super) events: &'v mut LinkEvents,
    pub(super) with_data: Kinds,
}

/// Times of a host's next events of its own, ps; [`u64::MAX`] for none.
pub(super) struct Next {
    /// Start of its next packet.
    pub(super) departure: u64,
    /// Its next event of any kind.
    pub(super) any: u64,
}

/// The host's queue of replies and its wire. They are copied here so that the compiler can keep them in registers.
struct Uplink<'v, A> {
    replies: Queue<A>,
    wire: Wire<'v, A>,
    /// Earliest start of the next packet, ps; [`u64::MAX`] if there is none.
    due: u64,
    /// Time of the next pause frame or failure, ps.
    next_event: u64,
}

impl<'v, P: Parts> Visit<'v, P> {
    /// Computes the window with these arrivals, in their order. `due` is the earliest start of the next packet.
    /// Returns the times of the next events.
    #[inline(never)]
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>], due: u64) -> Next {
        let Window { opened, close, .. } = self.out.window;
        if self.host.crowded() {
            arrivals.iter().for_each(|pkt| self.host.prefetch(self.out.setup, pkt));
        }
        let mut uplink = self.take(due);
        for pkt in arrivals {
            let now = opened + pkt.offset() as u64;
            self.catch_up(&mut uplink, now, now);
            let [reply, cnp] = self.host.on_arrival(self.out.setup, now, pkt);
            if let Some(reply) = reply {
                uplink.replies.push(reply);
            }
            if let Some(cnp) = cnp {
                match (self.with_data.has(Kind::Cnp), self.with_data.has(Kind::Ack)) {
                    (true, _) => uplink.replies.push(cnp),
                    (false, true) => self.port.cnps.push(cnp),
                    (false, false) => uplink.replies = put_first(std::mem::take(&mut uplink.replies), cnp),
                }
            }
            self.schedule(&mut uplink, now);
        }
        self.catch_up(&mut uplink, close - 1, close);
        self.put_back(&mut uplink);
        Next { departure: uplink.due, any: uplink.due.min(self.host.timer_at()) }
    }

    /// Computes the host's own events: departures and link events up to `until`, and timers before `timers_before`.
    #[inline(always)]
    fn catch_up(&mut self, uplink: &mut Uplink<'v, P::Annex>, until: u64, timers_before: u64) {
        loop {
            // At one instant, pause frames come before departures, and timers after them.
            let timer = self.host.timer_at();
            if uplink.due <= until && uplink.due < uplink.next_event && uplink.due <= timer {
                self.depart(uplink);
            } else if uplink.next_event <= until || timer < timers_before {
                self.put_back(uplink);
                let due = self.on_special();
                *uplink = self.take(due);
            } else {
                return;
            }
        }
    }

    /// Starts the packet that is due.
    #[inline(always)]
    fn depart(&mut self, uplink: &mut Uplink<'v, P::Annex>) {
        let now = uplink.due;
        let first = if self.port.cnps.is_empty() { uplink.replies.pop() } else { self.port.cnps.pop() };
        let pkt = match first {
            None => self.host.pull(self.out.setup, now),
            reply => reply,
        };
        if let Some(pkt) = pkt {
            if self.port.is(LOSSY | TAPPED) {
                self.put_back(uplink);
                self.out.launch_special(0, self.port, now, pkt);
                *uplink = self.take(now);
            } else {
                uplink.wire.control += !pkt.is_data() as u64;
                if let Some((after, sent)) = uplink.wire.launch(now, pkt) {
                    self.out.send_far(0, self.port, after, sent);
                }
            }
        }
        self.schedule(uplink, now);
    }

    /// Computes the start of the next packet, which is not before `now`.
    #[inline(always)]
    fn schedule(&mut self, uplink: &mut Uplink<'v, P::Annex>, now: u64) {
        let paused = self.port.paused();
        let replies = !(uplink.replies.is_empty() || paused && self.with_data.has(Kind::Ack));
        let first = if replies || !self.port.cnps.is_empty() {
            now
        } else if paused {
            u64::MAX
        } else {
            self.host.eligible_at().max(now)
        };
        uplink.due = first.max(uplink.wire.free);
    }

    /// Handles the next link event or timer; returns the start of the next packet.
    #[cold]
    #[inline(never)]
    fn on_special(&mut self) -> u64 {
        let (frame, timer) = (self.events.next(), self.host.timer_at());
        if timer < frame {
            self.host.on_timer(self.out.setup, timer);
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
                // Hosts have no routes.
                Some(LinkEvent::Failure(FailureEvent::RouteChange(_))) | None => {}
            }
            let held = self.port.paused_channels();
            if self.out.setup.follows_any() && (before == 0) != (held == 0) {
                self.host.note_pause(self.out.setup, frame, held != 0);
            }
        }
        let now = frame.min(timer);
        let mut uplink = self.take(now);
        self.schedule(&mut uplink, now);
        // A waiting packet starts at once, even if another frame of this instant pauses the port again.
        while uplink.due <= now {
            self.depart(&mut uplink);
        }
        self.put_back(&mut uplink);
        uplink.due
    }

    #[inline(always)]
    fn take(&mut self, due: u64) -> Uplink<'v, P::Annex> {
        let (replies, next_event) = (std::mem::take(self.replies()), self.events.next());
        Uplink { replies, wire: Wire::take(self.port, &mut self.out, 0, 0), due, next_event }
    }

    #[inline(always)]
    fn put_back(&mut self, uplink: &mut Uplink<'v, P::Annex>) {
        *self.replies() = std::mem::take(&mut uplink.replies);
        uplink.wire.put_back(self.port, &mut self.out, 0);
        self.port.recount();
    }

    /// The queue of replies: the queue of data if both share a class. CNPs wait there, too, or in the port's own
    /// queue for CNPs.
    #[inline(always)]
    fn replies(&mut self) -> &mut Queue<P::Annex> {
        match self.with_data.has(Kind::Ack) {
            true => &mut self.port.data,
            false => &mut self.port.replies,
        }
    }
}

/// Queues a CNP before all other replies.
#[cold]
#[inline(never)]
fn put_first<A: Annex>(mut replies: Queue<A>, cnp: Parcel<A>) -> Queue<A> {
    let mut waiting: Vec<Parcel<A>> = std::iter::from_fn(|| replies.pop()).collect();
    let cnps = waiting.partition_point(|pkt| pkt.kind() == Kind::Cnp);
    waiting.insert(cnps, cnp);
    waiting.into_iter().for_each(|pkt| replies.push(pkt));
    replies
}
