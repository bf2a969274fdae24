//! The critical path of a step: from its last event back to its start, which task waited for which.
//!
//! The walk begins at the end of the step's last task, or at the arrival of its last message. A task that has just ended took the time since its start; before that it
//! waited for its stream, or for the last of its triggers. So the pieces of the path touch each other, and their times add up
//! to the time of the step, to the picosecond.

use crate::data::RunData;
use crate::flows::{fct, set};
use model::plan::{Operation, Role, Task, Trigger, Work};
use model::{NodeId, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the path passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A GPU computes.
    Compute,
    /// Messages and copies of one operation.
    Communication,
    /// Nothing but the clock: the work was to start at this time at the earliest.
    Scheduled,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Compute => "compute",
            Kind::Communication => "communication",
            Kind::Scheduled => "scheduled",
        }
    }
}

/// A part of the path inside one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) kind: Kind,
    /// Index of the operation in [`model::Plan::operations`], or [`Operation::NONE`].
    pub(crate) operation: u32,
    /// Rank on which the path goes on.
    pub(crate) rank: u32,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// Messages over the fabric, one after the other.
    pub(crate) messages: u32,
    /// Time of these messages.
    pub(crate) network: Time,
    /// Part of `network` by which the messages took longer than alone on the fabric.
    pub(crate) late: Time,
    /// The message that was late by most, and by how much.
    pub(crate) slowest: Option<(u32, Time)>,
}

/// A step, and its path in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) job: u16,
    pub(crate) step: u32,
    pub(crate) legs: Vec<Leg>,
}

/// A moment that fires triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Received(u32),
    Acked(u32),
    Done(u32),
}

/// Start and end of every step of a job, with the event that ends it. The end is that of the last task of any rank, or the arrival of
/// the last message, whichever is later; the start is the end of the step before. Tasks and messages of no operation belong to
/// the last step. `None` if a task has not ended, or a message has not arrived.
pub(crate) fn steps(run: RunData<'_>, job: u16) -> Option<Vec<(Range<Time>, Event)>> {
    let plan = run.plan;
    let mut last: BTreeMap<u32, (Time, Event)> = BTreeMap::new();
    let tasks =
        || plan.tasks.iter().zip(&run.outcome.tasks).zip(0..).filter(|((task, _), _)| task.job == job);
    for ((task, record), number) in tasks() {
        let end = set(record.end)?;
        if let Some(operation) = plan.operations.get(task.operation as usize)
            && matches!(task.role, Role::Compute | Role::Leave)
        {
            ends(&mut last, operation.step, end, Event::Done(number));
        }
    }
    let Some((&final_step, _)) = last.last_key_value() else { return Some(Vec::new()) };
    let step =
        |operation: u32| plan.operations.get(operation as usize).map_or(final_step, |found| found.step);
    for ((task, record), number) in tasks() {
        ends(&mut last, step(task.operation), record.end, Event::Done(number));
    }
    for ((message, record), number) in plan.messages.iter().zip(&run.outcome.messages).zip(0..) {
        if message.job == job {
            ends(&mut last, step(message.operation), set(record.received)?, Event::Received(number));
        }
    }
    let mut at = plan.jobs[usize::from(job)].start;
    let mut steps: Vec<(Range<Time>, Event)> = Vec::new();
    for (step, (end, event)) in last {
        // A step that ends with or before an earlier one takes no time of its own.
        steps.resize(step as usize, (at..at, event));
        steps.push((at..end.max(at), event));
        at = at.max(end);
    }
    Some(steps)
}

/// Notes that a step ends with this event, unless it ends later. Of events at one instant the first counts.
fn ends(last: &mut BTreeMap<u32, (Time, Event)>, step: u32, end: Time, event: Event) {
    let known = last.entry(step).or_insert((end, event));
    if known.0 < end {
        *known = (end, event);
    }
}

/// The paths of all steps of all jobs that ended.
pub(crate) fn paths(run: RunData<'_>) -> Vec<Path> {
    if run.plan.operations.is_empty() {
        return Vec::new();
    }
    let mut walk = Walk::new(run);
    let mut paths = Vec::new();
    for job in 0..run.plan.jobs.len() as u16 {
        for ((span, last), step) in steps(run, job).unwrap_or_default().into_iter().zip(0..) {
            if span.start < span.end {
                paths.push(Path { job, step, legs: walk.back(span, last) });
            }
        }
    }
    paths
}

/// The walk from one piece of work to the one that it waited for.
struct Walk<'a> {
    run: RunData<'a>,
    /// By message, and by task: its last trigger.
    messages: Vec<Option<Event>>,
    tasks: Vec<Option<Event>>,
    /// Tasks that occupied the streams of a node: stream, time from which it was free again, and task, in order. A node is
    /// sorted when the walk first asks for it.
    occupants: BTreeMap<NodeId, Vec<(u32, Time, u32)>>,
}

impl<'a> Walk<'a> {
    fn new(run: RunData<'a>) -> Self {
        let plan = run.plan;
        let (messages, tasks) = (vec![None; plan.messages.len()], vec![None; plan.tasks.len()]);
        let mut walk = Walk { run, messages, tasks, occupants: BTreeMap::new() };
        for (message, number) in plan.messages.iter().zip(0..) {
            walk.fire(Event::Received(number), &message.on_received);
            walk.fire(Event::Acked(number), &message.on_acked);
        }
        for (task, number) in plan.tasks.iter().zip(0..) {
            walk.fire(Event::Done(number), &task.on_done);
        }
        walk
    }

    fn fire(&mut self, event: Event, triggers: &Range<u32>) {
        let at = self.time(event);
        for trigger in &self.run.plan.triggers[triggers.start as usize..triggers.end as usize] {
            let known = match trigger {
                Trigger::Message(message) => self.messages[message.index()],
                Trigger::Task(task) => self.tasks[task.index()],
            };
            // Of triggers at one instant the first counts.
            if known.is_some_and(|known| self.time(known) >= at) {
                continue;
            }
            match trigger {
                Trigger::Message(message) => self.messages[message.index()] = Some(event),
                Trigger::Task(task) => self.tasks[task.index()] = Some(event),
            }
        }
    }

    fn time(&self, event: Event) -> Time {
        match event {
            Event::Received(message) => self.run.outcome.messages[message as usize].received,
            Event::Acked(message) => self.run.outcome.messages[message as usize].acked,
            Event::Done(task) => self.run.outcome.tasks[task as usize].end,
        }
    }

    /// The path of a step from the event that ends it back to its start.
    fn back(&mut self, step: Range<Time>, last: Event) -> Vec<Leg> {
        let mut legs = Legs { start: step.start, at: step.end, rank: 0, back: Vec::new() };
        let mut event = Some(last);
        while let Some(ended) = event.filter(|_| legs.at > step.start) {
            event = match ended {
                Event::Done(task) => self.before_task(task, &mut legs),
                Event::Received(message) | Event::Acked(message) => self.before_message(message, &mut legs),
            };
        }
        legs.scheduled(step.start, Operation::NONE);
        legs.back.reverse();
        legs.back
    }

    /// Adds a task to the path; returns what it waited for.
    fn before_task(&mut self, number: u32, legs: &mut Legs) -> Option<Event> {
        let run = self.run;
        let (task, record) = (&run.plan.tasks[number as usize], &run.outcome.tasks[number as usize]);
        let kind = if task.role == Role::Compute { Kind::Compute } else { Kind::Communication };
        legs.rank = task.rank;
        legs.add(kind, task.operation, record.start, None);
        if record.ready < record.start {
            if let Some(occupant) = self.occupant(task, record.start) {
                return Some(Event::Done(occupant));
            }
            legs.add(kind, task.operation, record.ready, None);
        }
        self.cause(self.tasks[number as usize], task.operation, legs)
    }

    /// Adds a message to the path; returns what it waited for.
    fn before_message(&self, number: u32, legs: &mut Legs) -> Option<Event> {
        let run = self.run;
        let (message, record) = (&run.plan.messages[number as usize], &run.outcome.messages[number as usize]);
        let late = fct(record).map_or(Time::ZERO, |fct| fct.since(run.ideal[number as usize]));
        legs.add(Kind::Communication, message.operation, record.start, Some((number, late)));
        let cause = self.messages[number as usize];
        // A queue pair posts its messages in order, so a message may wait for the posting of the one before.
        let first = run.plan.qps[message.qp.index()].messages.start;
        let before = number.checked_sub(1).filter(|before| {
            *before >= first && run.outcome.messages[*before as usize].start == record.start
        });
        match (cause, before) {
            (Some(cause), _) if self.time(cause) == record.start => Some(cause),
            (_, Some(before)) => Some(Event::Received(before)),
            _ => self.cause(cause, message.operation, legs),
        }
    }

    /// Returns the cause, after the wait from it to the time up to which the path is known.
    fn cause(&self, cause: Option<Event>, operation: u32, legs: &mut Legs) -> Option<Event> {
        let fired = self.time(cause?);
        legs.scheduled(fired, operation);
        cause
    }

    /// The task that occupied a stream of `task` up to this time.
    fn occupant(&mut self, task: &Task, until: Time) -> Option<u32> {
        let run = self.run;
        let sorted = self.occupants.entry(task.node).or_insert_with(|| {
            let (tasks, tasks_times) = (&run.plan.tasks, &run.plan.slices);
            let first = tasks.partition_point(|other| other.node < task.node);
            let end = tasks.partition_point(|other| other.node <= task.node);
            let mut all = Vec::new();
            let records = &run.outcome.tasks[first..end];
            for ((task, record), number) in tasks[first..end].iter().zip(records).zip(first as u32..) {
                if record.end == Time::NEVER {
                    continue;
                }
                match task.work {
                    Work::Free { .. } => {}
                    Work::On { stream, .. } => all.push((stream, record.end, number)),
                    Work::Copy { from, to, time, .. } => {
                        all.push((from, record.start + time, number));
                        all.push((to, record.end, number));
                    }
                    Work::Slice { engine, from, to, times } => {
                        let times = tasks_times[times as usize];
                        all.push((engine | ENGINE, record.start + times.busy, number));
                        all.push((from, record.start + times.out, number));
                        all.push((to, record.end, number));
                    }
                }
            }
            all.sort_unstable();
            all
        });
        let engine = match task.work {
            Work::Slice { engine, .. } if engine != Work::NONE => Some(engine | ENGINE),
            _ => None,
        };
        engine.into_iter().chain(task.work.streams()).find_map(|stream| {
            let at = sorted.partition_point(|&(other, free, _)| (other, free) < (stream, until));
            let same = sorted[at..].iter().take_while(|&&(other, free, _)| (other, free) == (stream, until));
            // A task without duration occupies nothing.
            same.map(|&(.., number)| number).find(|&number| run.outcome.tasks[number as usize].start < until)
        })
    }
}

/// Tells engines from streams.
const ENGINE: u32 = 1 << 31;

/// The legs of a path so far, the latest first.
struct Legs {
    /// Start of the step.
    start: Time,
    /// Time from which on the path is known.
    at: Time,
    /// Rank on which the path goes on.
    rank: u32,
    back: Vec<Leg>,
}

impl Legs {
    /// Adds the time from `from` up to the legs so far. A message comes with the time by which it was late.
    fn add(&mut self, kind: Kind, operation: u32, from: Time, message: Option<(u32, Time)>) {
        let from = from.max(self.start);
        if from >= self.at {
            return;
        }
        let to = std::mem::replace(&mut self.at, from);
        let joins = |leg: &&mut Leg| {
            (leg.kind, leg.operation) == (kind, operation)
                && (leg.rank == self.rank || kind == Kind::Communication)
        };
        if self.back.last_mut().filter(joins).is_none() {
            self.back.push(Leg {
                kind,
                operation,
                rank: self.rank,
                from,
                to,
                messages: 0,
                network: Time::ZERO,
                late: Time::ZERO,
                slowest: None,
            });
        }
        let Some(leg) = self.back.last_mut() else { return };
        leg.from = from;
        if let Some((number, late)) = message {
            let late = late.min(to.since(from));
            leg.messages += 1;
            leg.network += to.since(from);
            leg.late += late;
            if leg.slowest.is_none_or(|(_, known)| known < late) {
                leg.slowest = Some((number, late));
            }
        }
    }

    /// Adds a wait for the clock.
    fn scheduled(&mut self, from: Time, operation: u32) {
        self.add(Kind::Scheduled, operation, from, None);
    }
}
