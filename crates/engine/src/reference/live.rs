//! The reference engine, driven by a program, see [`crate::live`].

use super::{End, Reference};
use crate::host::quiet_from;
use crate::live::{Desk, Live, Next, grown};
use crate::observer::Observer;
use crate::outcome::{Ending, Outcome};
use crate::posted::Posted;
use crate::setup::{Setup, live_window};
use model::plan::Task;
use model::{NodeId, Parts, Plan, QpId, Time};

struct LiveReference<'p, P: Parts> {
    run: Reference<'p, P>,
    desk: Desk,
    /// Length of the windows that the window engine would use, and the end of the last one with an event, ps.
    window: u64,
    reached: u64,
    ended: Option<End>,
}

/// Starts a run that a program drives.
pub(crate) fn live<'p, P: Parts + 'p>(plan: &'p Plan, parts: &P) -> Box<dyn Live + 'p> {
    let mut setup = Setup::new(plan);
    setup.posted = Some(Posted::new(plan));
    let window = live_window(&setup).unwrap_or(setup.window);
    let run = Reference::new(setup, parts);
    Box::new(LiveReference { run, desk: Desk::new(plan), window, reached: 0, ended: None })
}

impl<P: Parts> Live for LiveReference<'_, P> {
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
            if self.desk.is_idle() && !self.desk.has_others && self.run.open_ended {
                self.desk.idle(until);
                return Next::Idle;
            }
            let (at, node) = match self.run.next_event() {
                Some((at, node)) if at <= until.ps() => (at, node),
                next if next.is_some() || until.ps() < self.reached => {
                    self.desk.pass(until);
                    return Next::Until;
                }
                _ if self.run.unfinished() > 0 => {
                    self.ended = Some(self.run.stalled());
                    return Next::Ended;
                }
                _ => {
                    self.desk.pass(Time(self.reached));
                    self.desk.pass(until);
                    return Next::Idle;
                }
            };
            self.reached = (at / self.window + 1) * self.window;
            self.ended = self.run.turn(at, observer);
            for report in std::mem::take(&mut self.run.reports) {
                self.desk.take(&mut self.run.setup, at, NodeId(node), report);
            }
        }
    }

    fn post(&mut self, qp: QpId, bytes: u64) -> u32 {
        self.desk.post();
        let (run, now) = (&mut self.run, self.desk.now);
        let plan = run.setup.plan;
        let (from, to) = (plan.qps[qp.index()].from, plan.qps[qp.index()].to);
        let number = run.setup.posted.as_mut().map_or(0, |posted| posted.add(plan, qp, bytes, Time(now)));
        let (from, to) = (run.setup.home(from), run.setup.home(to));
        run.hosts[to.index()].expect(&run.setup, qp);
        let (node, gp) = (plan.fabric.node_of(from), from.index());
        if self.desk.reacts(node) {
            run.hosts[gp].on_post(&run.setup, now, qp);
            run.serve(now, node.0, gp);
        } else {
            run.hosts[gp].post_later(&run.setup, qp);
        }
        run.schedule_host(gp, now);
        number
    }

    fn post_task(&mut self, mut task: Task) -> u32 {
        self.desk.post();
        task.start = self.now();
        let node = task.node.index();
        let Some(tasks) = &mut self.run.tasks[node] else { return 0 };
        let number = tasks.posted().len() as u32;
        tasks.post(task);
        self.run.schedule_task(node);
        number
    }

    fn forgets(&mut self, qp: QpId, at: Time) -> bool {
        let setup = &self.run.setup;
        let quiet = quiet_from(setup.plan, self.run.hosts.iter(), [self.run.tally].into_iter());
        if !self.desk.is_idle() || quiet.is_none_or(|quiet| at.ps() < quiet) {
            return false;
        }
        let ends = &setup.plan.qps[qp.index()];
        let (from, to) = (setup.home(ends.from).index(), setup.home(ends.to).index());
        self.run.hosts[from].forgets(qp, at) && self.run.hosts[to].keeps_nothing()
    }

    fn finish(mut self: Box<Self>, observer: &mut dyn Observer) -> (Plan, Outcome) {
        self.run.open_ended = false;
        while let Next::Event(_) | Next::Until = self.next(Time::NEVER, observer) {}
        let LiveReference { mut run, ended, .. } = *self;
        let end = ended.unwrap_or_else(|| (Ending::Finished, run.end_of_background()));
        let tasks: Vec<_> = (0..)
            .map(NodeId)
            .zip(&run.tasks)
            .filter_map(|(node, tasks)| Some((node, tasks.as_ref()?.posted().to_vec())))
            .collect();
        let plan = grown(run.setup.plan, run.setup.posted.as_ref(), &tasks);
        run.hosts.iter_mut().for_each(|host| host.renumber(&run.setup, &plan));
        let outcome = run.close_with(&plan, end);
        (plan, outcome)
    }
}
