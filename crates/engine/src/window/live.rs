//! A run that a program drives, see [`crate::live`].
//!
//! A window's switches are computed first, because no host affects them within it. The hosts are then computed side by
//! side, in order of time, and the run stops at every event for the program. What the program posts affects other nodes in
//! later windows only, so the window stays open until its hosts have reached its end.

use super::clock::{Clock, End, Step};
use super::context::{Context, Workspace};
use super::group::Group;
use super::lanes::{Board, Mail};
use super::layout::Layout;
use super::out::Window;
use super::setup::Setup;
use super::{board_of, clock, ending, finish, groups_of, views_of};
use crate::host::{Host, quiet_from};
use crate::live::{Desk, Live, Next, grown};
use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::posted::Posted;
use crate::setup;
use model::plan::Task;
use model::{HostId, NodeId, Parcel, Parts, Plan, QpId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A window engine that stops at every event for a program.
struct LiveWindow<'p, P: Parts> {
    setup: Setup<'p>,
    layout: Layout,
    #[expect(clippy::vec_box, reason = "the clock takes any pointer to a group")]
    groups: Vec<Box<Group<P>>>,
    clock: Clock,
    mail: Mail,
    board: Board<P::Annex>,
    workspace: Workspace<P::Annex>,
    /// The open window, whose switches are computed.
    open: Option<Window>,
    /// Next events of parked hosts, by time and node. An entry is stale unless its time equals the host's `booked`.
    schedule: BinaryHeap<Reverse<(u64, NodeId)>>,
    desk: Desk,
    /// Time from which nothing is under way, if that is known since the last post, ps.
    quiet: Option<u64>,
    ended: Option<End>,
}

/// Starts a run that a program drives. `None` if no window fits the plan's links.
pub(crate) fn live<'p, P: Parts + 'p>(plan: &'p Plan, parts: &P) -> Option<Box<dyn Live + 'p>> {
    let mut setup = Setup::new(plan);
    let length = setup::live_window(&setup)?;
    setup.posted = Some(Posted::new(plan));
    let layout = Layout::new(&plan.fabric);
    let groups = groups_of(&setup, parts, &layout, length);
    let clock = Clock::new(&setup, length, views_of(&setup, &groups), size_of::<Parcel<P::Annex>>());
    Some(Box::new(LiveWindow {
        mail: Mail::new(layout.mail_words(), 1),
        board: board_of(&groups),
        desk: Desk::new(plan),
        quiet: None,
        workspace: Workspace::default(),
        open: None,
        schedule: BinaryHeap::new(),
        ended: None,
        setup,
        layout,
        groups,
        clock,
    }))
}

impl<P: Parts> LiveWindow<'_, P> {
    /// Start of the next window, ps; [`u64::MAX`] if no event comes.
    fn next_window(&mut self) -> u64 {
        let next = self.groups.iter_mut().map(|group| group.next()).min().unwrap_or(u64::MAX);
        self.clock.next_window(&self.mail, next)
    }

    /// Moves the clock of an idle run to `until`.
    fn idle(&mut self, until: Time) {
        if let Some(window) = self.open
            && until != Time::NEVER
            && until.ps() >= window.close
        {
            while self.step(u64::MAX) {}
            self.close();
        }
        self.desk.idle(until);
    }

    /// The result of [`Live::next`] if no event comes: the run is stalled if any message waits.
    fn without_events(&mut self, until: Time) -> Next {
        if self.groups.iter().any(|group| group.unfinished() > 0) {
            self.ended = Some(End { cause: clock::Cause::Stalled, at: None });
            return Next::Ended;
        }
        // The windows visited are over.
        self.desk.pass(Time(self.clock.reached()));
        self.desk.pass(until);
        Next::Idle
    }

    /// Opens the next window and computes its switches. Returns false if the run has ended.
    fn open(&mut self, observer: &mut dyn Observer) -> bool {
        let LiveWindow { setup, groups, board, mail, clock, .. } = self;
        match clock.advance(setup, groups, board, mail, observer) {
            Step::End(end) => {
                self.ended = Some(end);
                false
            }
            Step::Visit(window) => {
                self.open = Some(window);
                for g in 0..self.groups.len() {
                    self.in_group(g, |group, context, workspace| group.visit(context, workspace));
                }
                for g in 0..self.groups.len() {
                    for n in self.groups[g].parked_hosts() {
                        self.groups[g].set_settled(n, self.desk.turn());
                        self.book(g, n);
                    }
                }
                true
            }
        }
    }

    /// Calls a function of a group in the open window.
    fn in_group<R>(
        &mut self,
        g: usize,
        call: impl FnOnce(&mut Group<P>, Context<'_, P::Annex>, &mut Workspace<P::Annex>) -> R,
    ) -> R {
        let view = self.clock.views.known();
        let context = Context {
            setup: &self.setup,
            window: self.open.unwrap_or_default(),
            board: &self.board,
            mail: &self.mail,
            outbox: self.mail.outbox(0),
            view,
        };
        call(&mut self.groups[g], context, &mut self.workspace)
    }

    /// Enters the next event of a parked host in the schedule.
    fn book(&mut self, g: usize, n: usize) {
        if self.open.is_none() {
            return;
        }
        let booked = self.in_group(g, |group, context, workspace| group.book_parked(context, workspace, n));
        if let Some((at, node)) = booked {
            self.schedule.push(Reverse((at, node)));
        }
    }

    /// Computes the next event of a parked host, if it comes up to `until`.
    fn step(&mut self, until: u64) -> bool {
        let Some(&Reverse((at, node))) = self.schedule.peek() else { return false };
        if at > until {
            return false;
        }
        self.schedule.pop();
        self.desk.go_on();
        let location = self.layout.locate(node);
        let (g, n) = (location.group as usize, location.index as usize);
        if self.groups[g].unbook_parked(n, at) {
            self.in_group(g, |group, context, workspace| group.step_parked(context, workspace, n));
            let mut reports = std::mem::take(&mut self.workspace.reports);
            reports.drain(..).for_each(|report| self.desk.take(&mut self.setup, at, node, report));
            self.workspace.reports = reports;
            self.book(g, n);
        }
        true
    }

    /// Computes all hosts to the end of the open window.
    fn close(&mut self) {
        for g in 0..self.groups.len() {
            for n in self.groups[g].parked_hosts() {
                self.in_group(g, |group, context, workspace| group.close_parked(context, workspace, n));
            }
            self.groups[g].close_window();
        }
        self.schedule.clear();
        self.open = None;
    }

    /// Calls a function of a host to which the program posts something. The host joins the open window.
    fn at_host(&mut self, node: NodeId, post: impl FnOnce(&mut Group<P>, &Setup<'_>, usize)) {
        let location = self.layout.locate(node);
        let (g, n) = (location.group as usize, location.index as usize);
        if self.open.is_some() {
            self.park(g, n);
            self.advance(g, n, node);
            post(&mut self.groups[g], &self.setup, n);
            self.book(g, n);
        } else {
            let group = &mut self.groups[g];
            let waits = group.waits(n);
            post(group, &self.setup, n);
            group.wake(n, waits, self.desk.now);
        }
    }

    /// Computes all events of a host up to `now`, unless some of this instant are still to come.
    fn settle(&mut self, node: NodeId, now: u64) {
        let location = self.layout.locate(node);
        let (g, n) = (location.group as usize, location.index as usize);
        self.park(g, n);
        self.advance(g, n, node);
        if self.desk.is_past(node, self.groups[g].settled(n)) {
            let turn = self.desk.turn();
            self.in_group(g, |group, context, workspace| group.settle(context, workspace, n, (now, turn)));
        }
    }

    /// Lets a parked host take the arrivals that have come.
    fn advance(&mut self, g: usize, n: usize, node: NodeId) {
        let until = self.desk.now + u64::from(self.desk.has_come(node));
        self.in_group(g, |group, context, workspace| group.advance_parked(context, workspace, n, until));
    }

    fn park(&mut self, g: usize, n: usize) {
        if !self.groups[g].is_parked(n) {
            self.in_group(g, |group, context, workspace| group.park(context, workspace, n));
            self.groups[g].set_settled(n, self.desk.turn());
        }
    }
}

impl<P: Parts> Live for LiveWindow<'_, P> {
    fn now(&self) -> Time {
        Time(self.desk.now)
    }

    fn next(&mut self, until: Time, observer: &mut dyn Observer) -> Next {
        let until = Time(until.ps().max(self.desk.now));
        loop {
            if let Some(event) = self.desk.hand_out() {
                return Next::Event(event);
            }
            if self.ended.is_some() {
                return Next::Ended;
            }
            // Unused timers and late duplicates wait until more is posted, or until the run ends.
            if self.desk.is_idle() && !self.desk.has_others && self.clock.is_open_ended() {
                self.idle(until);
                return Next::Idle;
            }
            if self.open.is_some() && self.step(until.ps()) {
                continue;
            }
            match self.open {
                Some(window) if until.ps() >= window.close => self.close(),
                Some(_) => {
                    self.desk.pass(until);
                    return Next::Until;
                }
                None => match self.next_window() {
                    u64::MAX => return self.without_events(until),
                    opened if opened > until.ps() => {
                        self.desk.pass(until);
                        return Next::Until;
                    }
                    _ => {
                        if !self.open(observer) {
                            return Next::Ended;
                        }
                    }
                },
            }
        }
    }

    fn post(&mut self, qp: QpId, bytes: u64) -> u32 {
        let plan = self.setup.plan;
        let (from, to) = (plan.qps[qp.index()].from, plan.qps[qp.index()].to);
        self.desk.post();
        self.quiet = None;
        let now = self.desk.now;
        let number = self.setup.posted.as_mut().map_or(0, |posted| posted.add(plan, qp, bytes, Time(now)));
        let receiver = self.layout.locate(plan.fabric.node_of(to));
        let group = &mut self.groups[receiver.group as usize];
        group.expect(&self.setup, receiver.index as usize, qp);
        let node = plan.fabric.node_of(from);
        if self.open.is_some() {
            self.settle(node, now);
        }
        if self.desk.reacts(node) && self.open.is_some() {
            let location = self.layout.locate(node);
            let (g, n) = (location.group as usize, location.index as usize);
            self.in_group(g, |group, context, workspace| {
                group.post_parked(context, workspace, n, (now, qp));
            });
            self.book(g, n);
        } else {
            self.at_host(node, |group, setup, n| group.post_later(setup, n, qp));
        }
        number
    }

    fn post_task(&mut self, mut task: Task) -> u32 {
        self.desk.post();
        self.quiet = None;
        task.start = self.now();
        let mut number = 0;
        self.at_host(task.node, |group, _, n| {
            if let Some(tasks) = group.tasks_mut(n) {
                number = tasks.posted().len() as u32;
                tasks.post(task);
            }
        });
        number
    }

    fn forgets(&mut self, qp: QpId, at: Time) -> bool {
        if !self.desk.is_idle() {
            return false;
        }
        if self.quiet.is_none() {
            let hosts = self.groups.iter().flat_map(|group| group.hosts());
            self.quiet = quiet_from(self.setup.plan, hosts, self.groups.iter().map(|group| group.tally()));
        }
        if self.quiet.is_none_or(|quiet| at.ps() < quiet) {
            return false;
        }
        let ends = &self.setup.plan.qps[qp.index()];
        let host = |id: HostId| {
            let location = self.layout.locate(self.setup.plan.fabric.node_of(id));
            let id = self.setup.home(id);
            self.groups[location.group as usize]
                .endpoints(location.index as usize)
                .iter()
                .find(|host| host.id() == id)
        };
        host(ends.from).is_some_and(|host| host.forgets(qp, at))
            && host(ends.to).is_some_and(Host::keeps_nothing)
    }

    fn finish(mut self: Box<Self>, observer: &mut dyn Observer) -> (Plan, Outcome) {
        self.clock.end_posts();
        while let Next::Event(_) | Next::Until = self.next(Time::NEVER, observer) {}
        if self.open.is_some() {
            self.close();
        }
        let LiveWindow { setup, layout, mut groups, clock, mut board, ended, .. } = *self;
        let finished = End { cause: clock::Cause::Finished, at: clock.end_of_background() };
        let end = ended.unwrap_or(finished);
        let end = ending(&setup, &layout, &mut groups, &mut board, &clock, end);
        let tasks: Vec<_> = groups.iter().flat_map(|group| group.posted_tasks()).collect();
        let plan = grown(setup.plan, setup.posted.as_ref(), &tasks);
        groups.iter_mut().flat_map(|group| group.hosts_mut()).for_each(|host| host.renumber(&setup, &plan));
        let outcome = finish(&Setup::new(&plan), groups, &board, clock, end);
        (plan, outcome)
    }
}
