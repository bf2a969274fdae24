//! The tasks of one host: work that takes time and sends nothing.
//!
//! Tasks start each other and the host's messages by triggers, in no time. At one instant, a host's tasks follow its
//! arrivals and precede its timers.

use crate::outcome::TaskRecord;
use crate::stall::Liveness;
use model::plan::{Task, Work};
use model::{NodeId, Plan, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// An event of a task; the order of the variants is their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The task ends.
    End,
    /// The first byte of a copy reaches the stream by which it enters.
    Enter,
    /// The engine of a slice starts it.
    Leave,
    /// The earliest time at which the task is ready.
    Ready,
}

/// A task that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended<'p> {
    /// A task of the plan.
    Planned(&'p Task),
    /// The posted task of this number among those of its host.
    Posted(u32),
}

/// Occupies what is free from `free` on for `time`, from `now` on or later. Returns the start.
fn book(free: &mut u64, now: u64, time: Time) -> u64 {
    let start = now.max(*free);
    *free = start + time.ps();
    start
}

/// The tasks of a host.
#[derive(Debug)]
pub(crate) struct Tasks {
    /// Numbers of the host's tasks in the plan.
    range: Range<u32>,
    /// Tasks that a program has posted. Their numbers follow those of the plan's tasks.
    posted: Vec<Task>,
    /// Triggers that must still fire, and times, by task.
    needs: Vec<u32>,
    pub(crate) records: Vec<TaskRecord>,
    /// Time from which each stream is free, ps.
    free: Vec<u64>,
    /// Time from which each engine is free, ps.
    engines: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, Event, u32)>>,
    /// Tasks of foreground jobs that have not ended.
    pub(crate) unfinished: u64,
    /// Tasks that run or wait only for their time count as starts to come.
    pub(crate) liveness: Liveness,
    /// Time of the last event, ps.
    pub(crate) last_event: u64,
}

impl Tasks {
    /// The tasks of a host; `None` if it has none and no program may post any.
    pub(crate) fn of(plan: &Plan, node: NodeId) -> Option<Self> {
        let first = plan.tasks.partition_point(|task| task.node < node);
        let end = plan.tasks.partition_point(|task| task.node <= node);
        let mine = &plan.tasks[first..end];
        if mine.is_empty() && plan.posted.is_none() {
            return None;
        }
        let streams =
            mine.iter().flat_map(|task| task.work.streams()).max().map_or(0, |last| last as usize + 1);
        let engine = |task: &Task| match task.work {
            Work::Slice { engine, .. } if engine != Work::NONE => engine as usize + 1,
            _ => 0,
        };
        let engines = mine.iter().map(engine).max().unwrap_or(0);
        let foreground = |task: &&Task| !plan.jobs[usize::from(task.job)].background;
        let mut tasks = Tasks {
            range: first as u32..end as u32,
            posted: Vec::new(),
            needs: mine.iter().map(|task| task.needs).collect(),
            records: vec![TaskRecord::default(); mine.len()],
            free: vec![0; streams],
            engines: vec![0; engines],
            events: BinaryHeap::new(),
            unfinished: mine.iter().filter(foreground).count() as u64,
            liveness: Liveness::default(),
            last_event: 0,
        };
        for (t, task) in (first as u32..).zip(mine) {
            if task.needs == 0 {
                tasks.push(task.start.ps(), Event::Ready, t);
            }
        }
        Some(tasks)
    }

    /// Number of the first task.
    pub(crate) fn first(&self) -> u32 {
        self.range.start
    }

    /// Time of the next event; [`u64::MAX`] if there is none.
    pub(crate) fn next(&self) -> u64 {
        self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at)
    }

    /// Adds a task that a program posts. It is ready at its start.
    pub(crate) fn post(&mut self, task: Task) {
        let number = self.range.end + self.posted.len() as u32;
        let streams = task.work.streams().max().map_or(0, |last| last as usize + 1);
        self.free.resize(self.free.len().max(streams), 0);
        self.push(task.start.ps(), Event::Ready, number);
        self.unfinished += 1;
        self.needs.push(0);
        self.records.push(TaskRecord::default());
        self.posted.push(task);
    }

    /// Number of the next posted task, and the posted tasks so far.
    pub(crate) fn posted(&self) -> &[Task] {
        &self.posted
    }

    fn work(&self, plan: &Plan, t: u32) -> Work {
        match t.checked_sub(self.range.end) {
            Some(posted) => self.posted[posted as usize].work,
            None => plan.tasks[t as usize].work,
        }
    }

    /// Fires one trigger of a task.
    pub(crate) fn fire(&mut self, plan: &Plan, now: u64, task: TaskId) {
        let needs = &mut self.needs[(task.0 - self.range.start) as usize];
        *needs -= 1;
        if *needs == 0 {
            self.push(now.max(plan.tasks[task.index()].start.ps()), Event::Ready, task.0);
        }
    }

    /// Computes all events before `limit` up to the first end of a task. Returns its time and the task.
    pub(crate) fn advance<'p>(&mut self, plan: &'p Plan, limit: u64) -> Option<(u64, Ended<'p>)> {
        while self.next() < limit {
            let Reverse((now, event, t)) = self.events.pop()?;
            self.last_event = now;
            self.liveness.pending_starts -= 1;
            self.liveness.last_progress = now;
            match event {
                Event::Ready => self.start(plan, now, t, self.work(plan, t)),
                Event::Enter => match self.work(plan, t) {
                    Work::Copy { to, time, .. } => {
                        let entered = self.occupy(to, now, time);
                        self.push(entered + time.ps(), Event::End, t);
                    }
                    Work::Slice { engine, to, times, .. } => {
                        let times = plan.slices[times as usize];
                        let entered = self.occupy(to, now, times.enter);
                        let record = self.records[(t - self.range.start) as usize];
                        let start = if engine == Work::NONE { record.ready } else { record.start }.ps();
                        self.push(times.end(start, now - times.delay.ps(), entered), Event::End, t);
                    }
                    Work::Free { .. } | Work::On { .. } => {}
                },
                Event::Leave => {
                    self.leave(plan, now, t);
                }
                Event::End => {
                    self.records[(t - self.range.start) as usize].end = Time(now);
                    if let Some(posted) = t.checked_sub(self.range.end) {
                        self.unfinished -= 1;
                        return Some((now, Ended::Posted(posted)));
                    }
                    let task = &plan.tasks[t as usize];
                    self.unfinished -= u64::from(!plan.jobs[usize::from(task.job)].background);
                    return Some((now, Ended::Planned(task)));
                }
            }
        }
        None
    }

    fn start(&mut self, plan: &Plan, now: u64, t: u32, work: Work) {
        let start = match work {
            Work::Free { time } => {
                self.push(now + time.ps(), Event::End, t);
                now
            }
            Work::On { stream, time } => {
                let start = self.occupy(stream, now, time);
                self.push(start + time.ps(), Event::End, t);
                start
            }
            Work::Copy { from, time, delay, .. } => {
                let start = self.occupy(from, now, time);
                self.push(start + delay.ps(), Event::Enter, t);
                start
            }
            Work::Slice { engine, from, times, .. } => {
                let times = plan.slices[times as usize];
                let start = match self.engines.get_mut(engine as usize) {
                    Some(free) => book(free, now, times.busy),
                    None => now,
                };
                if from == Work::NONE {
                    self.push(start + times.lasts.ps(), Event::End, t);
                    start
                } else if start > now {
                    self.push(start, Event::Leave, t);
                    start
                } else {
                    // Without an engine, the slice starts when its bytes leave.
                    let left = self.leave(plan, now, t);
                    if engine == Work::NONE { left } else { start }
                }
            }
        };
        let record = &mut self.records[(t - self.range.start) as usize];
        (record.ready, record.start) = (Time(now), Time(start));
    }

    /// Lets the bytes of a slice leave as soon as their stream is free. Returns the time.
    fn leave(&mut self, plan: &Plan, now: u64, t: u32) -> u64 {
        let Work::Slice { from, times, .. } = self.work(plan, t) else { return now };
        let times = plan.slices[times as usize];
        let left = self.occupy(from, now, times.out);
        self.push(left + times.delay.ps(), Event::Enter, t);
        left
    }

    /// Occupies a stream for `time` from `now` on, as soon as it is free. Returns the start.
    fn occupy(&mut self, stream: u32, now: u64, time: Time) -> u64 {
        book(&mut self.free[stream as usize], now, time)
    }

    fn push(&mut self, at: u64, event: Event, t: u32) {
        self.liveness.pending_starts += 1;
        self.events.push(Reverse((at, event, t)));
    }
}
