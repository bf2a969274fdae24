//! A host with several ports, or with tasks, in one window.
//!
//! The ports of a host share nothing but tasks and triggers: a message that arrives at one port may start a message at
//! another port at the same instant. So every port is computed like the port of a host with a single port
//! ([`super::host`]), in steps. All arrivals of the host and all ends of tasks are taken in one order, and a trigger is
//! handed on before the next of them.

use super::classed::Queues;
use super::out::Out;
use super::port::Port;
use super::step::{PortEvents, Step};
use super::{classed_host, host, nic};
use crate::host::{Abroad, Host};
use crate::live::Report;
use crate::tasks::{Ended, Tasks};
use model::packet::Kinds;
use model::plan::Trigger;
use model::{Parcel, Parts, QpId};

/// The visit of one host in one window; all slices are by port.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) hosts: &'v mut [Host<P>],
    pub(super) ports: &'v mut [Port<P::Annex>],
    /// Empty if the plan's classes are plain.
    pub(super) classed: &'v mut [Queues<P::Annex>],
    pub(super) events: &'v mut [PortEvents],
    pub(super) tasks: Option<&'v mut Tasks>,
    pub(super) out: Out<'v, P::Annex>,
    pub(super) with_data: Kinds,
    /// Reports of posted messages and tasks, in the order of their making.
    pub(super) reports: &'v mut Vec<Report>,
}

impl<P: Parts> Visit<'_, P> {
    /// Computes the window with these arrivals, in their order. Returns the time of the host's next event; [`u64::MAX`]
    /// for none.
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        self.prefetch(arrivals);
        for pkt in arrivals {
            let now = self.out.window.opened + pkt.offset() as u64;
            while self.end_task(now) {}
            self.take(pkt);
        }
        self.close()
    }

    /// True if neither ports nor tasks wait for each other in this window: no task has an event, and none of these arrivals, which come in
    /// a lane for each port, ends a message that others may wait for.
    pub(super) fn stand_apart(&self, lanes: &[Vec<Parcel<P::Annex>>]) -> bool {
        let plan = self.out.setup.plan;
        let rests = self.tasks.as_ref().is_none_or(|tasks| tasks.next() >= self.out.window.close);
        let ends_none = |lane: &Vec<Parcel<P::Annex>>| {
            !lane.iter().zip(1..).any(|(pkt, nth)| self.may_end_message(pkt, nth))
        };
        rests && plan.sharing.is_none() && (plan.triggers.is_empty() || lanes.iter().all(ends_none))
    }

    /// [`Visit::run`] if the ports [`stand_apart`](Visit::stand_apart). The lanes are those of the ports to which packets come.
    pub(super) fn run_by_port(mut self, lanes: &[Vec<Parcel<P::Annex>>]) -> u64 {
        let mut next = self.tasks.as_ref().map_or(u64::MAX, |tasks| tasks.next());
        // A lane may have pause frames alone.
        let mut lanes = lanes.iter().filter(|lane| !lane.is_empty()).peekable();
        for p in 0..self.ports.len() {
            let lane = lanes.next_if(|lane| lane[0].ingress().index() == p);
            next = next.min(self.step(p, Step::Whole(lane.map_or(&[], Vec::as_slice))));
        }
        debug_assert!(lanes.next().is_none(), "lanes come in the order of their ports");
        self.note_far();
        next
    }

    /// Prefetches the state of queue pairs where the only NIC of a host has many. This only saves time.
    fn prefetch(&self, arrivals: &[Parcel<P::Annex>]) {
        let Some(sharing) = self.out.setup.plan.sharing else { return };
        if self.ports.len() == usize::from(sharing.ports) && self.hosts[0].crowded() {
            self.ports.iter().for_each(Port::fetch_queue);
            let close = self.out.window.close;
            self.hosts[0].prefetch_all(self.out.setup, arrivals, close, 2 * self.ports.len());
        }
    }

    /// Takes an arrival.
    pub(super) fn take(&mut self, pkt: &Parcel<P::Annex>) {
        let (p, now) = (pkt.ingress().index(), self.out.window.opened + pkt.offset() as u64);
        let home = self.home(p);
        self.step_at(home, p, Step::Arrival(pkt));
        while let Some(abroad) = self.hosts[home].take_abroad() {
            match abroad {
                Abroad::Trigger(trigger) => self.fire(now, trigger),
                Abroad::Acked(qp) => self.reports.push(Report::Acked(qp)),
                Abroad::Received(qp) => self.reports.push(Report::Received(qp)),
            }
        }
    }

    /// Takes arrivals that end no message: those of each port in a row.
    pub(super) fn take_quietly(&mut self, arrivals: &[Parcel<P::Annex>], row: &mut Vec<Parcel<P::Annex>>) {
        if self.out.setup.plan.sharing.is_some() || arrivals.len() < 2 {
            return arrivals.iter().for_each(|pkt| self.take(pkt));
        }
        for p in 0..self.ports.len() {
            row.clear();
            row.extend(arrivals.iter().filter(|pkt| pkt.ingress().index() == p));
            if !row.is_empty() {
                self.step(p, Step::Arrivals(row));
                debug_assert!(self.hosts[p].take_abroad().is_none(), "no message ends here");
            }
        }
    }

    /// Whether an arrival may end a message, see [`Host::may_end_message`].
    pub(super) fn may_end_message(&self, pkt: &Parcel<P::Annex>, nth: u64) -> bool {
        self.hosts[self.home(pkt.ingress().index())].may_end_message(self.out.setup, pkt, nth)
    }

    /// Computes the rest of the window. Returns the time of the host's next event; [`u64::MAX`] for none.
    pub(super) fn close(mut self) -> u64 {
        while self.end_task(self.out.window.close) {}
        let mut next = self.tasks.as_ref().map_or(u64::MAX, |tasks| tasks.next());
        for p in 0..self.ports.len() {
            if self.home(p) == p {
                next = next.min(self.step(p, Step::End));
            }
        }
        self.note_far();
        next
    }

    /// Notes the ports with far packets.
    fn note_far(&mut self) {
        for (p, events) in self.events.iter_mut().enumerate() {
            self.out.far[p / 64] |= std::mem::take(&mut events.far[0]) << (p % 64);
        }
    }

    /// Computes the events of tasks before `limit` up to the first end of a task. Returns false if none ends.
    pub(super) fn end_task(&mut self, limit: u64) -> bool {
        let plan = self.out.setup.plan;
        let ended = self.tasks.as_mut().and_then(|tasks| tasks.advance(plan, limit));
        match ended {
            Some((now, Ended::Planned(task))) => {
                task.on_done.clone().for_each(|i| self.fire(now, plan.triggers[i as usize]));
            }
            Some((_, Ended::Posted(number))) => self.reports.push(Report::Ended(number)),
            None => {}
        }
        ended.is_some()
    }

    /// Computes all events of the ports up to `now`, timers included.
    pub(super) fn settle(&mut self, now: u64) {
        for p in 0..self.ports.len() {
            if self.home(p) == p {
                self.step(p, Step::Settle(now));
            }
        }
    }

    /// Posts the newest message of a queue pair at `now`.
    pub(super) fn post(&mut self, now: u64, qp: QpId) {
        let sender = self.out.setup.plan.qps[qp.index()].from;
        self.step(sender.index() - self.out.gp, Step::Post(now, qp));
    }

    fn fire(&mut self, now: u64, trigger: Trigger) {
        let plan = self.out.setup.plan;
        match (trigger, &mut self.tasks) {
            (Trigger::Message(m), _) => {
                let sender = plan.qps[plan.messages[m.index()].qp.index()].from;
                self.step(sender.index() - self.out.gp, Step::Trigger(now, m));
            }
            (Trigger::Task(task), Some(tasks)) => tasks.fire(plan, now, task),
            (Trigger::Task(_), None) => {}
        }
    }

    /// The port whose host has the queue pairs of port `p`.
    fn home(&self, p: usize) -> usize {
        match self.out.setup.plan.sharing {
            // Most hosts have one NIC.
            Some(sharing) if p < usize::from(sharing.ports) => 0,
            Some(sharing) => p - p % usize::from(sharing.ports),
            None => p,
        }
    }

    fn step(&mut self, p: usize, step: Step<'_, P::Annex>) -> u64 {
        self.step_at(self.home(p), p, step)
    }

    /// [`Visit::step`] of port `p`, whose queue pairs are at port `first`.
    fn step_at(&mut self, first: usize, p: usize, step: Step<'_, P::Annex>) -> u64 {
        if let Some(sharing) = self.out.setup.plan.sharing {
            let nic = first..first + usize::from(sharing.ports);
            let visit = nic::Visit {
                host: &mut self.hosts[first],
                ports: &mut self.ports[nic.clone()],
                queues: self.classed.get_mut(nic.clone()).unwrap_or_default(),
                events: &mut self.events[nic],
                out: &mut self.out,
                first,
            };
            return visit.step(step);
        }
        let first = self.out.setup.first_replies::<P::Annex>();
        let PortEvents { links: events, far, .. } = &mut self.events[p];
        let (host, port, out) = (&mut self.hosts[p], &mut self.ports[p], self.out.one(p, far));
        match (first, self.classed.get_mut(p)) {
            (None, Some(queues)) => classed_host::Visit { host, port, queues, out, events }.step(step),
            (first, _) => {
                let (with_data, first) = (self.with_data, first.unwrap_or(Kinds::of(&[])));
                host::Visit { host, port, out, events, with_data, first }.step(step)
            }
        }
    }
}
