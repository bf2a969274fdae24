//! Hosts of a run that a program drives: they stay open within a window and stop at every event for the program.

use super::group::{Context, Group, Workspace, before_the_end};
use super::lanes::Pool;
use super::out::Window;
use super::server;
use super::setup::Setup;
use super::step::PortEvents;
use crate::live::Report;
use crate::tasks::Tasks;
use model::plan::Task;
use model::{Annex, NodeId, Parcel, Parts, QpId};

/// A host in the open window whose visit is not yet closed.
pub(super) struct Parked<A> {
    /// Arrivals of the window, and the number of those taken.
    arrivals: Vec<Parcel<A>>,
    taken: usize,
    /// Link events by port.
    events: Vec<PortEvents>,
    /// What waited when the visit began, see [`Group::waits`].
    waits: (u64, u64),
    /// The program's turn in which the host last computed its own events up to the present; see [`Desk::is_past`](crate::live::Desk::is_past).
    settled: u64,
    /// Time of its valid entry in the schedule; [`u64::MAX`] without an entry.
    booked: u64,
}

impl<P: Parts> Group<P> {
    /// Parks a host: opens its visit, which the program closes.
    pub(super) fn park(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let Context { setup, window, .. } = context;
        self.visited = window.number;
        let waits = self.waits(n);
        let count = self.open_server(context, workspace, n);
        let Workspace { incoming, pool, sorter, port_events, .. } = workspace;
        let lanes = incoming.iter().map(Vec::as_slice);
        let tie = setup.tie(self.nodes[n].id.0, window.opened);
        let arrivals = sorter.sort(lanes, count, window.length, tie);
        let arrivals = before_the_end(arrivals, window, &mut self.outputs.tally).to_vec();
        incoming.drain(..).for_each(|lane| pool.give(lane, self.outputs.unit));
        let events = port_events.drain(..self.nodes[n].range().len()).collect();
        let parked = Parked { arrivals, taken: 0, events, waits, settled: 0, booked: u64::MAX };
        self.parked.as_mut().map(|all| all[n].insert(parked));
    }

    pub(super) fn is_parked(&self, n: usize) -> bool {
        self.parked.as_ref().is_some_and(|all| all[n].is_some())
    }

    /// Numbers of the parked hosts.
    pub(super) fn parked_hosts(&self) -> Vec<usize> {
        let all = self.parked.iter().flatten().enumerate();
        all.filter(|(_, parked)| parked.is_some()).map(|(n, _)| n).collect()
    }

    /// Books the next event of a parked host that may concern the program: an arrival, or an event of a task. Returns its
    /// time and the host; `None` if there is none, or it is booked.
    pub(super) fn book_parked(&mut self, n: usize, window: Window) -> Option<(u64, NodeId)> {
        let of_tasks = self.tasks.get(n).into_iter().flatten().map(|tasks| tasks.next()).min();
        let parked = self.parked.as_mut()?[n].as_mut()?;
        let arrival = parked.arrivals.get(parked.taken);
        let arrival = arrival.map(|pkt| window.opened + u64::from(pkt.offset()));
        let at = arrival.into_iter().chain(of_tasks).min().filter(|at| *at < window.close)?;
        (at < parked.booked).then(|| {
            parked.booked = at;
            (at, self.nodes[n].id)
        })
    }

    /// Takes an entry of the schedule; false if it is stale.
    pub(super) fn unbook_parked(&mut self, n: usize, at: u64) -> bool {
        let parked = self.parked.as_mut().and_then(|all| all[n].as_mut());
        let valid = parked.filter(|parked| parked.booked == at);
        valid.is_some_and(|parked| {
            parked.booked = u64::MAX;
            true
        })
    }

    /// The turn of the program in which a parked host has settled.
    pub(super) fn settled(&self, n: usize) -> u64 {
        let parked = self.parked.as_ref().and_then(|all| all[n].as_ref());
        parked.map_or(0, |parked| parked.settled)
    }

    /// Computes all events of a parked host up to `now`, in this turn of the program.
    pub(super) fn settle(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        (now, turn): (u64, u64),
    ) {
        self.with_parked(context, workspace, n, |mut visit, _| visit.settle(now));
        self.set_settled(n, turn);
    }

    pub(super) fn set_settled(&mut self, n: usize, turn: u64) {
        if let Some(parked) = self.parked.as_mut().and_then(|all| all[n].as_mut()) {
            parked.settled = turn;
        }
    }

    /// Calls a function with the open visit of a parked host.
    fn with_parked<R>(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        call: impl FnOnce(server::Visit<'_, P>, &mut ParkedArrivals<'_, P::Annex>) -> R,
    ) -> Option<R> {
        let mut parked = self.parked.as_mut()?[n].take()?;
        let Parked { arrivals, taken, events, .. } = &mut parked;
        let (pool, reports): (&mut Pool<P::Annex>, &mut Vec<Report>) =
            (&mut workspace.pool, &mut workspace.reports);
        let visit = self.server(n, context, pool, events, reports);
        let result = call(visit, &mut ParkedArrivals { arrivals, taken });
        self.parked.as_mut().map(|all| all[n].insert(parked));
        Some(result)
    }

    /// Computes the next arrival of a parked host, or the next events of its tasks if they come first.
    pub(super) fn step_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let opened = context.window.opened;
        let of_tasks = self.tasks.get(n).into_iter().flatten().map(|tasks| tasks.next()).min();
        let of_tasks = of_tasks.unwrap_or(u64::MAX);
        self.with_parked(context, workspace, n, |mut visit, mail| match mail.next() {
            // At one instant, tasks follow arrivals.
            Some(pkt) if opened + u64::from(pkt.offset()) <= of_tasks => {
                *mail.taken += 1;
                visit.take(&pkt);
            }
            _ => {
                visit.end_task(of_tasks + 1);
            }
        });
    }

    /// Posts the newest message of a queue pair at a parked host.
    pub(super) fn post_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        (now, qp): (u64, QpId),
    ) {
        self.with_parked(context, workspace, n, |mut visit, _| visit.post(now, qp));
    }

    /// Closes the visit of a parked host, all of whose arrivals have been taken.
    pub(super) fn close_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let next = self.with_parked(context, workspace, n, |visit, _| visit.close()).unwrap_or(u64::MAX);
        let parked = self.parked.as_mut().and_then(|all| all[n].take());
        let waits = parked.map_or((0, 0), |parked| {
            workspace.port_events.extend(parked.events);
            parked.waits
        });
        self.close_server(context, n, next, waits);
        self.schedule(n, context.window.opened + 2 * context.window.length);
    }

    /// The receiver of a queue pair expects its newest posted message.
    pub(super) fn expect(&mut self, setup: &Setup<'_>, n: usize, qp: QpId) {
        let port = setup.fabric().uplink(setup.home(setup.plan.qps[qp.index()].to)).port.index();
        let host = self.nodes[n].hosts().start + port;
        self.hosts[host].expect(setup, qp);
    }

    /// Posts the newest message of a queue pair when a timer fires at its start.
    pub(super) fn post_later(&mut self, setup: &Setup<'_>, n: usize, qp: QpId) {
        let port = setup.fabric().uplink(setup.home(setup.plan.qps[qp.index()].from)).port.index();
        let host = self.nodes[n].hosts().start + port;
        self.hosts[host].post_later(setup, qp);
    }

    /// Books a visit of a host at `at`, between two windows. `waits` is what waited at the host before.
    pub(super) fn wake(&mut self, n: usize, (unfinished, pending_starts): (u64, u64), at: u64) {
        let (now_unfinished, now_pending) = self.waits(n);
        self.unfinished = self.unfinished - unfinished + now_unfinished;
        self.liveness.pending_starts = self.liveness.pending_starts - pending_starts + now_pending;
        let node = &mut self.nodes[n];
        node.next = node.next.min(at);
        node.next_event = node.next_event.min(at);
        if node.next < node.booked {
            self.book(n);
        }
    }

    /// The tasks that a program has posted, by host.
    pub(super) fn posted_tasks(&self) -> impl Iterator<Item = (NodeId, Vec<Task>)> {
        let of = |(n, tasks): (usize, &Option<Tasks>)| {
            tasks.as_ref().map(|tasks| (self.nodes[n].id, tasks.posted().to_vec()))
        };
        self.tasks.iter().enumerate().filter_map(of)
    }
}

/// The arrivals of a parked host.
struct ParkedArrivals<'p, A> {
    arrivals: &'p [Parcel<A>],
    taken: &'p mut usize,
}

impl<A: Annex> ParkedArrivals<'_, A> {
    /// The next arrival.
    fn next(&self) -> Option<Parcel<A>> {
        self.arrivals.get(*self.taken).copied()
    }
}
