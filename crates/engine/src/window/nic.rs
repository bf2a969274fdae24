//! A NIC whose ports serve all its queue pairs, in one window: all its events, one by one in order of time. The order at one
//! instant is that of [`super::host`]; ports take turns by their numbers.

use super::classed::Queues;
use super::lanes::Pause;
use super::out::{LinkEvent, Out};
use super::port::{LOSSY, Port, TAPPED};
use super::step::{PortEvents, Step};
use crate::failing::FailureEvent;
use crate::host::{Host, Vacancy};
use crate::setup::DATA;
use model::{Parcel, Parts};

/// The visit of one NIC in one window; slices are by port of the NIC.
pub(super) struct Visit<'v, 'o, P: Parts> {
    /// The host of the first port, which has all queue pairs.
    pub(super) host: &'v mut Host<P>,
    pub(super) ports: &'v mut [Port<P::Annex>],
    /// Empty if the plan's classes are plain.
    pub(super) queues: &'v mut [Queues<P::Annex>],
    pub(super) events: &'v mut [PortEvents],
    /// The egress side of the whole host, and the NIC's first port there.
    pub(super) out: &'v mut Out<'o, P::Annex>,
    pub(super) first: usize,
}

impl<P: Parts> Visit<'_, '_, P> {
    /// Computes one step of a window. Returns the time of the next event, ps, after [`Step::End`].
    pub(super) fn step(mut self, step: Step<'_, P::Annex>) -> u64 {
        let setup = self.out.setup;
        let now = match step {
            Step::Arrival(pkt) => {
                let now = self.out.window.opened + pkt.offset() as u64;
                let due = self.catch_up(now, now);
                let spreads = self.host.spreads();
                let eligible = if spreads { self.host.eligible_by(0) } else { 0 };
                let answers = self.host.on_arrival_by(setup, now, pkt);
                if answers.iter().all(Option::is_none) && spreads && self.host.eligible_by(0) == eligible {
                    return due;
                }
                answers.into_iter().flatten().for_each(|answer| self.push(answer));
                now
            }
            Step::Arrivals(_) | Step::Whole(_) => {
                unreachable!("the ports of a shared NIC take arrivals one by one")
            }
            Step::Trigger(now, m) => {
                self.catch_up(now, now);
                self.host.on_trigger(setup, now, m);
                now
            }
            Step::Post(now, qp) => {
                self.catch_up(now, now);
                self.host.on_post(setup, now, qp);
                now
            }
            Step::Settle(now) => {
                self.catch_up(now, now + 1);
                now
            }
            Step::End => {
                let close = self.out.window.close;
                let departure = self.catch_up(close - 1, close);
                return departure.min(self.host.timer_at());
            }
        };
        // The next step finds only packets that cannot start yet.
        self.go_on(now, now, now)
    }

    /// Computes departures and link events up to `until`, and timers before `timers_before`, where nothing has happened since the last
    /// step. Returns the start of the next packet.
    #[inline(always)]
    fn catch_up(&mut self, until: u64, timers_before: u64) -> u64 {
        let PortEvents { due, event, .. } = self.events[0];
        if due > until && event > until && self.host.timer_at() >= timers_before {
            return due;
        }
        self.go_on(0, until, timers_before)
    }

    /// [`Visit::catch_up`] in all cases, where no packet starts before `from`.
    fn go_on(&mut self, mut from: u64, until: u64, timers_before: u64) -> u64 {
        let mut event = self.event_at();
        loop {
            // At one instant, link events come before departures, and timers after them.
            let (due, timer) = (self.next(from), self.host.timer_at());
            if due <= until && due < event && due <= timer {
                self.depart(due);
                from = due;
            } else if event <= until || timer < timers_before {
                from = event.min(timer);
                self.on_special();
                event = self.event_at();
            } else {
                (self.events[0].due, self.events[0].event) = (due, event);
                return due;
            }
        }
    }

    /// Time of the next link event; [`u64::MAX`] if there is none.
    fn event_at(&self) -> u64 {
        self.events.iter().map(|events| events.links.next()).min().unwrap_or(u64::MAX)
    }

    /// The next link event: its time and port. At one instant, failures come first.
    fn next_event(&self) -> Option<(u64, usize)> {
        let events = self.events.iter().enumerate().map(|(p, events)| (events.links.rank(), p));
        let ((at, _), p) = events.min()?;
        (at != u64::MAX).then_some((at, p))
    }

    /// Start of the next packet of any port, not before `from`; [`u64::MAX`] if no packet may start.
    #[inline(always)]
    fn next(&self, from: u64) -> u64 {
        let spread = self.host.spreads().then(|| self.host.eligible_by(0).max(from));
        let mut least = u64::MAX;
        for (p, port) in self.ports.iter().enumerate() {
            if port.busy >= least {
                continue; // it starts no earlier
            }
            let first = if self.waits(p) {
                from
            } else if self.holds_data(p) {
                u64::MAX
            } else {
                spread.unwrap_or_else(|| self.host.eligible_by(p).max(from))
            };
            least = least.min(first.max(port.busy));
        }
        least
    }

    /// True if a packet that the NIC has made waits at a port and may start.
    #[inline(always)]
    fn waits(&self, p: usize) -> bool {
        match self.queues.get(p) {
            Some(queues) => queues.has_next(self.out.setup.plan.classes.all(), &self.ports[p]),
            None => self.ports[p].open() != 0,
        }
    }

    /// True if a pause keeps the data of a port back.
    #[inline(always)]
    fn holds_data(&self, p: usize) -> bool {
        self.out.setup.holds_data(self.ports[p].paused_channels())
    }

    /// Queues a packet that the NIC has made at the port that it names.
    fn push(&mut self, pkt: Parcel<P::Annex>) {
        let (p, setup) = (pkt.ingress().index(), self.out.setup);
        match (self.queues.get_mut(p), setup.class(&pkt)) {
            (Some(queues), _) => queues.push(setup.class_in_table(&pkt), pkt),
            (None, DATA) => self.ports[p].push_data(pkt),
            (None, class) => self.ports[p].push_reply(class, pkt),
        }
    }

    /// Starts all packets that may start at `now`.
    fn depart(&mut self, now: u64) {
        for p in 0..self.ports.len() {
            while self.ports[p].busy <= now {
                let classes = self.out.setup.plan.classes.all();
                let made = match self.queues.get_mut(p) {
                    Some(queues) => queues.pop(classes, &self.ports[p]).map(|(_, pkt)| pkt),
                    None if self.ports[p].open() != 0 => self.ports[p].pop(),
                    None => None,
                };
                let pulled = match made {
                    Some(made) => Some((p, made)),
                    None if self.holds_data(p) || self.host.eligible_by(p) > now => None,
                    None => {
                        let vacancy = self.vacancy(now, p);
                        self.host.pull_by(self.out.setup, now, vacancy)
                    }
                };
                let Some((p, pkt)) = pulled else { break };
                let mut out = self.out.one(self.first + p, &mut self.events[p].far);
                let port = &mut self.ports[p];
                let arrives = match port.is(LOSSY | TAPPED) {
                    true => out.launch_special(0, port, now, pkt),
                    false => out.launch(0, port, now, pkt),
                };
                if arrives
                    && out.setup.grants.any()
                    && let Some(queues) = self.queues.get_mut(p)
                {
                    let before = port.paused_channels();
                    out.spend(0, port, &mut queues.ledgers, now, &pkt);
                    self.host.on_pause(out.setup, now, before, port.paused_channels());
                }
            }
        }
    }

    /// The free ports in the turn of port `p`.
    fn vacancy(&self, now: u64, p: usize) -> Vacancy {
        let (mut free, mut next_free) = (0, u64::MAX);
        for (other, port) in self.ports.iter().enumerate() {
            if port.busy > now {
                next_free = next_free.min(port.busy);
            } else if !self.waits(other) && !self.holds_data(other) {
                free |= 1 << other;
            }
        }
        let (setup, row) = (self.out.setup, self.ports[p].row);
        let next_free = next_free.min(now + setup.time_on_wire(row, setup.plan.wire.max_frame()));
        Vacancy { port: p, free, next_free, row }
    }

    /// Handles the next link event or timer.
    fn on_special(&mut self) {
        let (setup, timer) = (self.out.setup, self.host.timer_at());
        let Some((now, p)) = self.next_event().filter(|(at, _)| *at <= timer) else {
            self.host.on_timer(setup, timer);
            if let Some(on) = self.host.take_pause() {
                for (p, port) in self.ports.iter().enumerate() {
                    let mut out = self.out.one(self.first + p, &mut self.events[p].far);
                    self.host.last_event = self.host.last_event.max(out.pause_link(0, port, timer, on));
                }
            }
            let made = self.host.take_made();
            made.iter().for_each(|pkt| self.push(*pkt));
            self.host.keep_room(made);
            return;
        };
        match self.events[p].links.take() {
            Some(LinkEvent::Pause(word)) if word.freed > 0 => self.on_word(p, word),
            Some(LinkEvent::Pause(pause)) => self.on_pause(now, p, pause.channel, pause.on),
            Some(LinkEvent::Failure(FailureEvent::Reset { .. })) => {
                (0..setup.priorities()).for_each(|priority| self.on_pause(now, p, priority, false));
            }
            Some(LinkEvent::Failure(FailureEvent::Rate { row, .. })) => self.ports[p].row = row,
            // Hosts have no routes, and storms come from hosts.
            Some(LinkEvent::Failure(FailureEvent::RouteChange(_) | FailureEvent::Storm { .. })) | None => {}
        }
    }

    /// Takes in credits of a port.
    fn on_word(&mut self, p: usize, word: Pause) {
        let Some(queues) = self.queues.get_mut(p) else { return };
        let port = &mut self.ports[p];
        let before = port.paused_channels();
        let mut out = self.out.one(self.first + p, &mut self.events[p].far);
        let changed = out.take_word(0, port, &mut queues.ledgers, word);
        self.host.on_pause(out.setup, word.at, before, port.paused_channels());
        if changed != 0 {
            self.depart(word.at);
        }
    }

    /// Pauses or resumes a priority of a port.
    fn on_pause(&mut self, now: u64, p: usize, priority: u8, on: bool) {
        let port = &mut self.ports[p];
        let before = port.paused_channels();
        let mut out = self.out.one(self.first + p, &mut self.events[p].far);
        let news = out.paused(0, port, now, priority, on);
        self.host.on_pause(out.setup, now, before, port.paused_channels());
        // After a resume frame a waiting packet starts at once, even if another frame of this instant pauses the port again.
        if news && !on {
            self.depart(now);
        }
    }
}
