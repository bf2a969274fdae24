//! What a run tells: the tasks and exchanges of the first cells, as a plan and an outcome that readers of results know.
//!
//! An exchange is told by the entries of its members, one task that all entries start, and the tasks by which members leave.

use engine::Outcome;
use engine::outcome::TaskRecord;
use model::plan::{Operation, Role, Task, Trigger, Work};
use model::{Plan, TaskId, Time};
use scenario::outlined::{Cause, Effect, Nature, Outlined};

/// Tasks and events of exchanges that are told at most. Our choice: they take about 200 MB.
const MOST: usize = 2_000_000;

/// Times of tasks and exchanges, for some of the cells.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) cells: u32,
    /// By task and cell.
    tasks: Vec<TaskRecord>,
    /// By member of an exchange and cell.
    entered: Vec<Time>,
    /// By event of exchanges and cell.
    left: Vec<Time>,
    /// By exchange: its first member and its first event.
    first: Vec<(u32, u32)>,
    /// By exchange: its operation, and that of the second cell.
    operations: Vec<(u32, u32)>,
    shown: Vec<Operation>,
}

impl Told {
    pub(crate) fn new(outlined: &Outlined) -> Self {
        let needs = outlined.needs();
        let left: u32 = outlined.exchanges().iter().map(|x| x.leaves).sum();
        let each = needs.tasks.len() + needs.members.len() + left as usize;
        let (cells, _) = outlined.cells();
        let cells = cells.min((MOST / each.max(1)).max(1) as u32);
        let mut shown = outlined.operations().to_vec();
        let mut operations = Vec::with_capacity(outlined.exchanges().len());
        for exchange in outlined.exchanges() {
            let own = exchange.nature != Nature::Transfer && !exchange.spans && cells > 1;
            let next = shown.len() as u32;
            if let Some(operation) = shown.get(exchange.operation as usize).cloned().filter(|_| own) {
                shown.extend((1..cells).map(|_| operation.clone()));
                operations.push((exchange.operation, next));
            } else {
                operations.push((exchange.operation, u32::MAX));
            }
        }
        let times = |n: usize| vec![Time::NEVER; n * cells as usize];
        Told {
            tasks: vec![TaskRecord::default(); needs.tasks.len() * cells as usize],
            entered: times(needs.members.len()),
            left: times(left as usize),
            first: needs.first_member.iter().zip(outlined.exchanges()).map(|(&m, x)| (m, x.left)).collect(),
            operations,
            shown,
            cells,
        }
    }

    fn place(&self, number: u32, cell: u32) -> Option<usize> {
        (cell < self.cells).then(|| number as usize * self.cells as usize + cell as usize)
    }

    pub(crate) fn started(&mut self, t: u32, cell: u32, ready: u64, start: u64) {
        if let Some(place) = self.place(t, cell) {
            (self.tasks[place].ready, self.tasks[place].start) = (Time(ready), Time(start));
        }
    }

    pub(crate) fn ended(&mut self, t: u32, cell: u32, at: u64) {
        if let Some(place) = self.place(t, cell) {
            self.tasks[place].end = Time(at);
        }
    }

    pub(crate) fn entered(&mut self, x: u32, member: u32, cell: u32, at: u64) {
        if let Some(place) = self.place(self.first[x as usize].0 + member, cell) {
            self.entered[place] = Time(at);
        }
    }

    pub(crate) fn left(&mut self, x: u32, event: u32, cell: u32, at: u64) {
        if let Some(place) = self.place(self.first[x as usize].1 + event, cell) {
            self.left[place] = Time(at);
        }
    }

    fn operation(&self, x: u32, cell: u32) -> u32 {
        let (first, second) = self.operations[x as usize];
        if cell == 0 || second == u32::MAX { first } else { second + cell - 1 }
    }

    /// The operation of an exchange of a cell, if it is told.
    pub(crate) fn operation_at(&self, at: Option<(u32, u32)>) -> u32 {
        at.filter(|(_, cell)| *cell < self.cells).map_or(Operation::NONE, |(x, cell)| self.operation(x, cell))
    }

    /// Adds what is told to a plan and its outcome.
    pub(crate) fn add_to(mut self, outlined: &Outlined, plan: &mut Plan, outcome: &mut Outcome) {
        let (cells, (_, stride)) = (self.cells, outlined.cells());
        let mut tasks: Vec<(Task, TaskRecord)> = Vec::new();
        let mut causes: Vec<(u32, u32)> = Vec::new();
        for (t, task) in (0..).zip(outlined.tasks()) {
            for cell in 0..cells {
                let rank = task.rank + cell * stride;
                let record = self.tasks[t * cells as usize + cell as usize];
                tasks.push((Task { node: outlined.node(rank), rank, ..task.clone() }, record));
            }
        }
        // By event of an exchange and cell: the task that tells it.
        let mut leaves = vec![u32::MAX; self.left.len()];
        // By member and cell.
        let mut enters = vec![u32::MAX; self.entered.len()];
        for (x, exchange) in (0..).zip(outlined.exchanges()) {
            let (member, left) = self.first[x as usize];
            let of_cells = if exchange.spans { 1 } else { cells };
            for first in 0..of_cells {
                let mine = if exchange.spans { 0..cells } else { first..first + 1 };
                let at = |number: u32, cell: u32| number as usize * cells as usize + cell as usize;
                let entries = || mine.clone().flat_map(|cell| (0..exchange.members).map(move |m| (m, cell)));
                let operation = self.operation(x, first);
                let ranks = outlined.ranks(x, if exchange.spans { 0 } else { first });
                let rank_of = |m: u32, cell: u32| {
                    ranks[(m + if exchange.spans { cell * exchange.members } else { 0 }) as usize]
                };
                let mut add = |rank: u32, role: Role, work: Work, record: TaskRecord| {
                    let task = Task { role, rank, operation, ..Task::new(outlined.node(rank), work) };
                    tasks.push((task, record));
                    tasks.len() as u32 - 1
                };
                let moment = |time: Time| TaskRecord { ready: time, start: time, end: time };
                let begin = entries().map(|(m, cell)| self.entered[at(member + m, cell)]).max();
                let begin = begin.unwrap_or(Time::NEVER);
                let free = Work::Free { time: Time::ZERO };
                let gate_role = if exchange.nature == Nature::Gated { Role::Enter } else { Role::Inner };
                let gate = add(rank_of(0, mine.start), gate_role, free, moment(begin));
                for (m, cell) in entries() {
                    let place = at(member + m, cell);
                    enters[place] = match exchange.nature {
                        Nature::Gated => gate,
                        _ => {
                            let enter = add(rank_of(m, cell), Role::Enter, free, moment(self.entered[place]));
                            causes.push((enter, gate));
                            enter
                        }
                    };
                }
                for cell in mine.clone() {
                    for n in 0..exchange.leaves {
                        let place = at(left + n, cell);
                        let end = self.left[place];
                        let start = begin.min(end);
                        let work = Work::Free { time: Time(end.ps().saturating_sub(start.ps())) };
                        let rank = match exchange.nature {
                            // The bytes arrive at the second rank, and are sent at the first.
                            Nature::Transfer => ranks[1 - n as usize],
                            _ => rank_of(n, cell),
                        };
                        let role =
                            if exchange.nature == Nature::Transfer { Role::Inner } else { Role::Leave };
                        leaves[place] = add(rank, role, work, TaskRecord { ready: start, start, end });
                        causes.push((gate, leaves[place]));
                    }
                }
            }
        }
        let all = outlined.tasks().len() as u32;
        let mut joins = |cause: Cause, from: &dyn Fn(u32) -> u32| {
            for effect in outlined.effects(cause) {
                for cell in 0..cells {
                    let to = match *effect {
                        Effect::Task(t) => t * cells + cell,
                        Effect::Enter(x, m) => {
                            enters[((self.first[x as usize].0 + m) * cells + cell) as usize]
                        }
                    };
                    causes.push((from(cell), to));
                }
            }
        };
        for t in 0..all {
            joins(Cause::Done(t), &|cell| t * cells + cell);
        }
        for n in 0..(leaves.len() / cells as usize) as u32 {
            joins(Cause::Left(n), &|cell| leaves[(n * cells + cell) as usize]);
        }
        // Tasks stand in the order of their hosts.
        let mut order: Vec<u32> = (0..tasks.len() as u32).collect();
        order.sort_by_key(|&t| tasks[t as usize].0.node);
        let mut place = vec![0u32; tasks.len()];
        (0..).zip(&order).for_each(|(i, &t)| place[t as usize] = i);
        for cause in &mut causes {
            *cause = (place[cause.0 as usize], place[cause.1 as usize]);
        }
        causes.sort_unstable();
        let (mut sorted, mut records): (Vec<Task>, Vec<TaskRecord>) =
            order.iter().map(|&t| tasks[t as usize].clone()).unzip();
        drop(tasks);
        plan.triggers.clear();
        for &(from, to) in &causes {
            let next = plan.triggers.len() as u32;
            let range = &mut sorted[from as usize].on_done;
            *range = if range.start == range.end { next..next + 1 } else { range.start..next + 1 };
            plan.triggers.push(Trigger::Task(TaskId(to)));
            sorted[to as usize].needs += 1;
        }
        plan.operations = std::mem::take(&mut self.shown);
        let last = records.iter().map(|record| record.end).filter(|end| *end != Time::NEVER).max();
        (plan.tasks, outcome.tasks) = (sorted, std::mem::take(&mut records));
        outcome.end = outcome.end.max(last.unwrap_or(Time::ZERO));
        plan.posted = None;
    }
}
