//! A host in one window, if the plan's classes are not plain: all its events, one by one in order of time. The order
//! at one instant is that of [`super::host`]. Waiting replies leave in the order of the table, and before the data of
//! queue pairs.

use super::classed::Queues;
use super::lanes::Pause;
use super::out::{LinkEvent, LinkEvents, Out};
use super::port::{LOSSY, Port, TAPPED};
use super::step::Step;
use crate::failing::FailureEvent;
use crate::host::Host;
use model::{Parcel, Parts};

/// The visit of one host in one window.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) host: &'v mut Host<P>,
    pub(super) port: &'v mut Port<P::Annex>,
    pub(super) queues: &'v mut Queues<P::Annex>,
    pub(super) out: Out<'v, P::Annex>,
    pub(super) events: &'v mut LinkEvents,
}

impl<P: Parts> Visit<'_, P> {
    /// Computes the window with these arrivals, in their order. Returns the time of the host's next event, ps.
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        let due = self.take_in(arrivals);
        self.end(due)
    }

    /// Computes one step of a window. Returns the time of the next event, ps, after [`Step::End`] and [`Step::Whole`].
    pub(super) fn step(mut self, step: Step<'_, P::Annex>) -> u64 {
        let opened = self.out.window.opened;
        let (due, now) = match step {
            Step::Arrival(pkt) => (self.take_in(std::slice::from_ref(pkt)), opened + pkt.offset() as u64),
            Step::Arrivals(pkts) => {
                let last = pkts.last().map_or(0, |pkt| pkt.offset() as u64);
                (self.take_in(pkts), opened + last)
            }
            Step::Trigger(now, m) => {
                self.catch_up(self.next(0), now, now);
                self.host.on_trigger(self.out.setup, now, m);
                (self.next(now), now)
            }
            Step::Post(now, qp) => {
                self.catch_up(self.next(0), now, now);
                self.host.on_post(self.out.setup, now, qp);
                (self.next(now), now)
            }
            Step::Settle(now) => (self.catch_up(self.next(0), now, now + 1), now),
            Step::Whole(arrivals) => return self.run(arrivals),
            Step::End => {
                let due = self.next(0);
                return self.end(due);
            }
        };
        // The next step finds only packets that cannot start yet.
        self.catch_up(due, now, now)
    }

    /// Computes arrivals, in their order. Returns the start of the next packet.
    fn take_in(&mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        let opened = self.out.window.opened;
        let mut due = self.next(0);
        for pkt in arrivals {
            let now = opened + pkt.offset() as u64;
            self.catch_up(due, now, now);
            let answers = self.host.on_arrival(self.out.setup, now, pkt);
            for answer in answers.into_iter().flatten() {
                self.queues.push(self.out.setup.class_in_table(&answer), answer);
            }
            due = self.next(now);
        }
        due
    }

    /// Computes the rest of the window. Returns the time of the next event, ps.
    fn end(mut self, due: u64) -> u64 {
        let close = self.out.window.close;
        let departure = self.catch_up(due, close - 1, close);
        departure.min(self.host.timer_at())
    }

    /// Computes departures and link events up to `until`, and timers before `timers_before`. Takes and returns the start
    /// of the next packet.
    fn catch_up(&mut self, mut due: u64, until: u64, timers_before: u64) -> u64 {
        loop {
            // At one instant, link events come before departures, and timers after them.
            let (event, timer) = (self.events.next(), self.host.timer_at());
            if due <= until && due < event && due <= timer {
                due = self.depart(due);
            } else if event <= until || timer < timers_before {
                due = self.on_special();
            } else {
                return due;
            }
        }
    }

    /// Start of the next packet, not before `now`; [`u64::MAX`] if no packet may start.
    fn next(&self, now: u64) -> u64 {
        let classes = &self.out.setup.plan.classes;
        let first = if self.queues.has_next(classes.all(), self.port) {
            now
        } else if !self.out.setup.holds_data(self.port.paused_channels()) {
            self.host.eligible_at().max(now)
        } else {
            u64::MAX
        };
        first.max(self.port.busy)
    }

    /// Starts the packet that is due at `now`.
    fn depart(&mut self, now: u64) -> u64 {
        let setup = self.out.setup;
        let pkt = match self.queues.pop(setup.plan.classes.all(), self.port) {
            Some((_, reply)) => Some(reply),
            None => self.host.pull(setup, now),
        };
        if let Some(pkt) = pkt {
            let arrives = match self.port.is(LOSSY | TAPPED) {
                true => self.out.launch_special(0, self.port, now, pkt),
                false => self.out.launch(0, self.port, now, pkt),
            };
            if arrives && setup.grants.any() {
                let before = self.port.paused_channels();
                self.out.spend(0, self.port, &mut self.queues.ledgers, now, &pkt);
                self.host.on_pause(setup, now, before, self.port.paused_channels());
            }
        }
        self.next(now)
    }

    /// Handles the next link event or timer.
    fn on_special(&mut self) -> u64 {
        let (event, timer) = (self.events.next(), self.host.timer_at());
        if timer < event {
            self.host.on_timer(self.out.setup, timer);
            if let Some(on) = self.host.take_pause() {
                let at = self.out.pause_link(0, self.port, timer, on);
                self.host.last_event = self.host.last_event.max(at);
            }
            for pkt in self.host.take_made() {
                self.queues.push(self.out.setup.class_in_table(&pkt), pkt);
            }
        } else {
            match self.events.take() {
                Some(LinkEvent::Pause(word)) if word.freed > 0 => return self.on_word(word),
                Some(LinkEvent::Pause(pause)) => return self.on_pause(event, pause.channel, pause.on),
                Some(LinkEvent::Failure(FailureEvent::Reset { .. })) => {
                    return (0..self.out.setup.priorities())
                        .fold(u64::MAX, |_, priority| self.on_pause(event, priority, false));
                }
                Some(LinkEvent::Failure(FailureEvent::Rate { row, .. })) => {
                    self.port.row = row;
                    self.host.set_rate(self.out.setup, row);
                }
                // Hosts have no routes, and storms come from hosts.
                Some(LinkEvent::Failure(FailureEvent::RouteChange(_) | FailureEvent::Storm { .. }))
                | None => {}
            }
        }
        self.next(event.min(timer))
    }

    /// Takes in credits. Returns the start of the next packet.
    fn on_word(&mut self, word: Pause) -> u64 {
        let (now, before) = (word.at, self.port.paused_channels());
        let changed = self.out.take_word(0, self.port, &mut self.queues.ledgers, word);
        self.host.on_pause(self.out.setup, now, before, self.port.paused_channels());
        match self.next(now) {
            due if changed != 0 && due <= now => self.depart(now),
            due => due,
        }
    }

    /// Pauses or resumes a priority. Returns the start of the next packet.
    fn on_pause(&mut self, now: u64, priority: u8, on: bool) -> u64 {
        let before = self.port.paused_channels();
        let news = self.out.paused(0, self.port, now, priority, on);
        self.host.on_pause(self.out.setup, now, before, self.port.paused_channels());
        let mut due = self.next(now);
        // After a resume frame a waiting packet starts at once, even if another frame of this instant pauses the port again.
        while news && !on && due <= now {
            due = self.depart(now);
        }
        due
    }
}
