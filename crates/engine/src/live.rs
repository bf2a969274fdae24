//! Runs that a program drives: it posts messages and tasks while the run goes on, and learns when they end.
//!
//! The program pulls: [`Live::next`] hands out one event, at whose time the program may post what the event causes. Events
//! come in order of time, and nothing that is posted comes too late: no host is ever ahead of the last event.

use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::posted::Posted;
use crate::setup::Setup;
use model::plan::{Task, Trigger};
use model::{NodeId, Plan, QpId, TaskId, Time};
use std::collections::VecDeque;

/// A run that a program drives, with its plan's messages beside those of the program.
pub trait Live: Send {
    /// Time of the last event handed out, or the time up to which the run has gone without any.
    fn now(&self) -> Time;

    /// The next event up to `until`. Calls the observer as other runs do.
    fn next(&mut self, until: Time, observer: &mut dyn Observer) -> Next;

    /// Posts a message on a queue pair without messages in the plan. Returns its number among those of the queue pair.
    ///
    /// A message that the host of the last event posts goes out as if the event had triggered it: its first packet may leave before the
    /// program posts another one. Messages of all other hosts go out as if the plan had given them this start.
    fn post(&mut self, qp: QpId, bytes: u64) -> u32;

    /// Posts a task, which is ready now. Returns its number among the posted tasks of its host.
    fn post_task(&mut self, task: Task) -> u32;

    /// True if a message that meets nobody on its path would leave this idle queue pair, and the NICs at both ends, as they are, but for
    /// their numbers. It comes at `at`, now or later. Nothing else is under way then, not even a late CNP. The program may keep such a
    /// message to itself, if it knows when it would arrive. False is always correct.
    fn forgets(&mut self, qp: QpId, at: Time) -> bool;

    /// Plays everything posted to its end. Returns the plan with the posted messages and tasks, and the outcome, which equals
    /// that of a run whose plan had them from the start. Only its series may have more bins after the last message.
    fn finish(self: Box<Self>, observer: &mut dyn Observer) -> (Plan, Outcome);
}

/// The result of [`Live::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event.
    Event(Event),
    /// No event comes up to the given time, which is now.
    Until,
    /// All that was posted has ended, so no event comes unless the program posts more. Up to the given time no event has come.
    Idle,
    /// The run has ended: it stalled, the observer stopped it, memory is short, or the plan's time is over.
    Ended,
}

/// The end of a posted message or task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Time,
    /// Host at which it happens.
    pub node: NodeId,
    /// What has ended.
    pub what: Ended,
}

/// What an event reports. Messages are numbered by queue pair, tasks by host, in the order in which they were posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The sender has the acknowledgement of the whole message.
    Acked(QpId, u32),
    /// The receiver has the whole message.
    Received(QpId, u32),
    /// The task has ended.
    Task(u32),
}

/// A report of a host to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The oldest unacknowledged message of a queue pair is acknowledged.
    Acked(QpId),
    /// The next message of a queue pair has arrived.
    Received(QpId),
    /// The posted task of this number has ended.
    Ended(u32),
}

/// Events that wait for the program, and its clock.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) now: u64,
    /// Turns of the program at the present instant, and the node up to which all events had come before each of them: at one
    /// instant, nodes take their turns by number.
    past: Vec<(u64, NodeId)>,
    /// Host of the event that was handed out last, if the run has not gone on since.
    at: Option<NodeId>,
    /// Number of the program's turn. What it posts in one turn starts together.
    turn: u64,
    waiting: VecDeque<Event>,
    /// Messages acknowledged and received, by queue pair.
    acked: Vec<u32>,
    received: Vec<u32>,
    /// Posted messages that are not acknowledged, and posted tasks that have not ended.
    unfinished: u64,
    /// True if the plan has foreground messages or tasks of its own.
    pub(crate) has_others: bool,
}

impl Desk {
    pub(crate) fn new(plan: &Plan) -> Self {
        let none = vec![0; plan.qps.len()];
        let jobs = plan.messages.iter().map(|m| m.job).chain(plan.tasks.iter().map(|task| task.job));
        Desk {
            now: 0,
            past: Vec::new(),
            at: None,
            turn: 1,
            waiting: VecDeque::new(),
            acked: none.clone(),
            received: none,
            unfinished: 0,
            has_others: { jobs }.any(|job| !plan.jobs[usize::from(job)].background),
        }
    }

    /// Notes that the program posts a message or a task.
    pub(crate) fn post(&mut self) {
        self.unfinished += 1;
    }

    /// True if nothing that the program has posted is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.unfinished == 0
    }

    /// Takes the report of a host, and notes the arrival of its message.
    pub(crate) fn take(&mut self, setup: &mut Setup<'_>, now: u64, node: NodeId, report: Report) {
        let count = |counts: &mut Vec<u32>, qp: QpId| {
            let count = &mut counts[qp.index()];
            *count += 1;
            *count - 1
        };
        self.unfinished -= u64::from(!matches!(report, Report::Received(_)));
        let what = match report {
            Report::Acked(qp) => Ended::Acked(qp, count(&mut self.acked, qp)),
            Report::Received(qp) => {
                let number = count(&mut self.received, qp);
                if let Some(posted) = &mut setup.posted {
                    posted.received(qp, number, Time(now));
                }
                Ended::Received(qp, number)
            }
            Report::Ended(number) => Ended::Task(number),
        };
        self.waiting.push_back(Event { at: Time(now), node, what });
    }

    /// Hands out the next event.
    pub(crate) fn hand_out(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        if event.at.ps() != self.now {
            self.past.clear();
        }
        (self.now, self.at) = (event.at.ps(), Some(event.node));
        self.past.push((self.turn, event.node));
        Some(event)
    }

    /// The engine goes on, so a new turn of the program follows.
    pub(crate) fn go_on(&mut self) {
        self.turn += 1;
    }

    /// Moves the clock to a time up to which all events have come; [`Time::NEVER`] leaves it.
    pub(crate) fn pass(&mut self, until: Time) {
        self.move_to(until);
        (self.turn, self.at) = (self.turn + 1, None);
        self.past.push((self.turn, NodeId(u32::MAX)));
    }

    /// Moves the clock of an idle run to a time; [`Time::NEVER`] leaves it. Unused timers before that time wait.
    pub(crate) fn idle(&mut self, until: Time) {
        self.move_to(until);
    }

    fn move_to(&mut self, until: Time) {
        if until != Time::NEVER && until.ps() > self.now {
            (self.now, self.at) = (until.ps(), None);
            self.past.clear();
        }
    }

    /// True if a host's events of this instant have come since turn `settled`.
    pub(crate) fn is_past(&self, node: NodeId, settled: u64) -> bool {
        self.past.iter().rev().take_while(|(turn, _)| *turn > settled).any(|(_, past)| node < *past)
    }

    /// True if the events of this instant at a host have come before the present one.
    pub(crate) fn has_come(&self, node: NodeId) -> bool {
        self.at.is_none_or(|at| node < at)
    }

    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// True if this host reacts to the event that was handed out last.
    pub(crate) fn reacts(&self, node: NodeId) -> bool {
        self.at == Some(node)
    }
}

/// The plan with everything that a program has posted, as if it had been known from the start. `tasks` are the posted tasks
/// by host.
pub(crate) fn grown(plan: &Plan, posted: Option<&Posted>, tasks: &[(NodeId, Vec<Task>)]) -> Plan {
    let mut grown = posted.map_or_else(|| plan.clone(), |posted| posted.added_to(plan));
    if tasks.iter().all(|(_, tasks)| tasks.is_empty()) {
        return grown;
    }
    grown.tasks.clear();
    let mut moved = vec![TaskId(0); plan.tasks.len()];
    for node in (0..plan.fabric.servers() as u32).map(NodeId) {
        let first = plan.tasks.partition_point(|task| task.node < node);
        let end = plan.tasks.partition_point(|task| task.node <= node);
        for (task, moved) in plan.tasks[first..end].iter().zip(&mut moved[first..end]) {
            *moved = TaskId(grown.tasks.len() as u32);
            grown.tasks.push(task.clone());
        }
        grown.tasks.extend(tasks.iter().filter(|(at, _)| *at == node).flat_map(|(_, tasks)| tasks).cloned());
    }
    for trigger in &mut grown.triggers {
        if let Trigger::Task(task) = trigger {
            *task = moved[task.index()];
        }
    }
    grown
}
