//! Hosts of a run that a program drives: they stay open within a window and stop at every event for the program.

use super::Group;
use super::nodes::Waits;
use crate::live::Report;
use crate::tasks::Tasks;
use crate::window::context::{Context, Workspace};
use crate::window::lanes::Pool;
use crate::window::server;
use crate::window::setup::Setup;
use crate::window::step::PortEvents;
use model::plan::Task;
use model::{NodeId, Parcel, Parts, QpId};

/// A host in the open window whose visit is not yet closed.
pub(super) struct Parked<A> {
    /// Arrivals of the window, and the number of those taken.
    arrivals: Vec<Parcel<A>>,
    taken: usize,
    /// Number of the next arrival that may end a message, or of all arrivals; `None` if it is to be found.
    next_end: Option<usize>,
    /// Link events by port.
    events: Vec<PortEvents>,
    /// What waited when the visit began, see [`Nodes::waits`](super::nodes::Nodes::waits).
    waits: Waits,
    /// The program's turn in which the host last computed its own events up to the present; see [`Desk::is_past`](crate::live::Desk::is_past).
    settled: u64,
    /// Time of its valid entry in the schedule; [`u64::MAX`] without an entry.
    booked: u64,
}

impl<P: Parts> Group<P> {
    /// Parks a host: opens its visit, which the program closes.
    pub(crate) fn park(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let Context { setup, window, .. } = context;
        self.visited = window.number;
        let waits = self.nodes.waits(n);
        let count = self.open_server(context, workspace, n);
        let Workspace { incoming, pool, sorter, port_events, .. } = workspace;
        let lanes = incoming.iter().map(Vec::as_slice);
        let node = self.nodes.node(n);
        let (ports, tie) = (node.range().len(), setup.tie(node.id.0, window.opened));
        let arrivals = sorter.sort(lanes, count, window.length, tie);
        let arrivals = self.outputs.before_the_end(arrivals, window).to_vec();
        self.outputs.give(pool, incoming.drain(..));
        // Of what other hosts gave back the last ones fill the places, so nothing moves up.
        let mut events: Vec<_> = (0..ports).rev().map(|p| port_events.swap_remove(p)).collect();
        events.reverse();
        let parked =
            Parked { arrivals, taken: 0, next_end: None, events, waits, settled: 0, booked: u64::MAX };
        self.parked.as_mut().map(|all| all[n].insert(parked));
    }

    pub(crate) fn is_parked(&self, n: usize) -> bool {
        self.parked.as_ref().is_some_and(|all| all[n].is_some())
    }

    /// Numbers of the parked hosts.
    pub(crate) fn parked_hosts(&self) -> Vec<usize> {
        let all = self.parked.iter().flatten().enumerate();
        all.filter(|(_, parked)| parked.is_some()).map(|(n, _)| n).collect()
    }

    /// Books the next event of a parked host that may concern the program: an arrival that may end a message, or an event of a task.
    /// Returns its time and the host; `None` if there is none, or it is booked.
    pub(crate) fn book_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) -> Option<(u64, NodeId)> {
        let (of_tasks, window) = (self.nodes.next_of_tasks(n), context.window);
        let end = self.next_end(context, workspace, n);
        let parked = self.parked.as_mut()?[n].as_mut()?;
        let arrival = parked.arrivals.get(end);
        let arrival = arrival.map(|pkt| window.opened + u64::from(pkt.offset()));
        let at = arrival.unwrap_or(u64::MAX).min(of_tasks);
        (at < window.close && at < parked.booked).then(|| {
            parked.booked = at;
            (at, self.nodes.node(n).id)
        })
    }

    /// Number of the next arrival of a parked host that may end a message, or of all its arrivals.
    fn next_end(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) -> usize {
        let known = self.parked.as_ref().and_then(|all| all[n].as_ref()?.next_end);
        let found = known.or_else(|| {
            self.with_parked(context, workspace, n, |visit, mail| {
                let waiting = mail.arrivals[*mail.taken..].iter().zip(1..);
                let mut ends = waiting.map(|(pkt, nth)| visit.may_end_message(pkt, nth));
                ends.position(|ends| ends).map_or(mail.arrivals.len(), |first| *mail.taken + first)
            })
        });
        if let Some(parked) = self.parked.as_mut().and_then(|all| all[n].as_mut()) {
            parked.next_end = found;
        }
        found.unwrap_or(0)
    }

    /// Takes the arrivals of a parked host before `until`, ps, which end no message.
    pub(crate) fn advance_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        until: u64,
    ) {
        let opened = context.window.opened;
        let mut row = std::mem::take(&mut workspace.row);
        self.with_parked(context, workspace, n, |mut visit, mail| {
            let waiting = &mail.arrivals[*mail.taken..];
            let before = waiting.partition_point(|pkt| opened + u64::from(pkt.offset()) < until);
            visit.take_quietly(&waiting[..before], &mut row);
            *mail.taken += before;
        });
        workspace.row = row;
    }

    /// Takes an entry of the schedule; false if it is stale.
    pub(crate) fn unbook_parked(&mut self, n: usize, at: u64) -> bool {
        let parked = self.parked.as_mut().and_then(|all| all[n].as_mut());
        let valid = parked.filter(|parked| parked.booked == at);
        valid.is_some_and(|parked| {
            parked.booked = u64::MAX;
            true
        })
    }

    /// The turn of the program in which a parked host has settled.
    pub(crate) fn settled(&self, n: usize) -> u64 {
        let parked = self.parked.as_ref().and_then(|all| all[n].as_ref());
        parked.map_or(0, |parked| parked.settled)
    }

    /// Computes all events of a parked host up to `now`, in this turn of the program.
    pub(crate) fn settle(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        (now, turn): (u64, u64),
    ) {
        self.with_parked(context, workspace, n, |mut visit, _| visit.settle(now));
        self.set_settled(n, turn);
    }

    pub(crate) fn set_settled(&mut self, n: usize, turn: u64) {
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

    /// Computes the next arrival of a parked host that may end a message, or the next events of its tasks if they come first, and what
    /// comes before them.
    pub(crate) fn step_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let opened = context.window.opened;
        let of_tasks = self.nodes.next_of_tasks(n);
        let end = self.next_end(context, workspace, n);
        let mut row = std::mem::take(&mut workspace.row);
        let took = self.with_parked(context, workspace, n, |mut visit, mail| {
            let next = mail.arrivals.get(end).copied();
            // At one instant, tasks follow arrivals.
            let next = next.filter(|pkt| opened + u64::from(pkt.offset()) <= of_tasks);
            let waiting = &mail.arrivals[*mail.taken..end];
            let before = match next {
                Some(_) => waiting.len(),
                None => waiting.partition_point(|pkt| opened + u64::from(pkt.offset()) <= of_tasks),
            };
            visit.take_quietly(&waiting[..before], &mut row);
            *mail.taken += before;
            match &next {
                Some(pkt) => {
                    *mail.taken += 1;
                    visit.take(pkt);
                }
                None => {
                    visit.end_task(of_tasks + 1);
                }
            }
            next.is_some()
        });
        workspace.row = row;
        if let Some(parked) =
            self.parked.as_mut().and_then(|all| all[n].as_mut()).filter(|_| took == Some(true))
        {
            parked.next_end = None;
        }
    }

    /// Posts the newest message of a queue pair at a parked host.
    pub(crate) fn post_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        (now, qp): (u64, QpId),
    ) {
        self.with_parked(context, workspace, n, |mut visit, _| visit.post(now, qp));
    }

    /// Closes the visit of a parked host, whose last arrivals end no message.
    pub(crate) fn close_parked(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        self.advance_parked(context, workspace, n, u64::MAX);
        let next = self.with_parked(context, workspace, n, |visit, _| visit.close()).unwrap_or(u64::MAX);
        let parked = self.parked.as_mut().and_then(|all| all[n].take());
        let waits = parked.map_or(Waits::default(), |parked| {
            workspace.port_events.extend(parked.events);
            parked.waits
        });
        self.close_server(context, n, next, waits);
    }

    /// The receiver of a queue pair expects its newest posted message.
    pub(crate) fn expect(&mut self, setup: &Setup<'_>, n: usize, qp: QpId) {
        let to = setup.plan.qps[qp.index()].to;
        self.nodes.endpoint_of(setup, n, to).expect(setup, qp);
    }

    /// Posts the newest message of a queue pair when a timer fires at its start.
    pub(crate) fn post_later(&mut self, setup: &Setup<'_>, n: usize, qp: QpId) {
        let from = setup.plan.qps[qp.index()].from;
        self.nodes.endpoint_of(setup, n, from).post_later(setup, qp);
    }

    /// What waits at a host.
    pub(crate) fn waits(&self, n: usize) -> Waits {
        self.nodes.waits(n)
    }

    /// The tasks of a host; `None` if it has none.
    pub(crate) fn tasks_mut(&mut self, n: usize) -> Option<&mut Tasks> {
        self.nodes.tasks_mut(n)
    }

    /// Books a visit of a host at `at`, between two windows. `waits` is what waited at the host before.
    pub(crate) fn wake(&mut self, n: usize, waits: Waits, at: u64) {
        self.nodes.count_waits(n, waits);
        self.schedule.hasten(n, at);
    }

    /// The tasks that a program has posted, by host.
    pub(crate) fn posted_tasks(&self) -> impl Iterator<Item = (NodeId, Vec<Task>)> {
        let with_tasks = (0..self.nodes.all().len()).filter_map(|n| Some((n, self.nodes.tasks(n)?)));
        with_tasks.map(|(n, tasks)| (self.nodes.node(n).id, tasks.posted().to_vec()))
    }
}

/// The arrivals of a parked host.
struct ParkedArrivals<'p, A> {
    arrivals: &'p [Parcel<A>],
    taken: &'p mut usize,
}
