//! What ranks did when: computation, waiting for communication, and nothing.

use crate::data::RunData;
use crate::flows::set;
use model::Time;
use model::plan::{Operation, Role, Task};
use std::collections::BTreeMap;

/// First start and last end of every operation; `None` for an operation that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first member has entered. Behind an NVSwitch, all members have.
    pub(crate) start: Time,
    /// The last member has left.
    pub(crate) end: Time,
}

impl Span {
    /// Bytes of the operation per second of the span, GB/s.
    pub(crate) fn algorithm_bandwidth(self, operation: &Operation) -> Option<f64> {
        let ps = self.end.ps() - self.start.ps();
        (ps > 0 && operation.ranks > 0).then(|| operation.bytes as f64 * 1000.0 / ps as f64)
    }

    /// The same on the bus, as nccl-tests define it.
    pub(crate) fn bus_bandwidth(self, operation: &Operation) -> Option<f64> {
        let (bus, per) = operation.bus;
        self.algorithm_bandwidth(operation)
            .filter(|_| per > 0)
            .map(|gbs| gbs * f64::from(bus) / f64::from(per))
    }
}

/// The spans of all operations.
pub(crate) fn spans(run: RunData<'_>) -> Vec<Option<Span>> {
    let mut spans: Vec<Option<Span>> = vec![None; run.plan.operations.len()];
    let mut broken = vec![false; spans.len()];
    for (task, record) in run.plan.tasks.iter().zip(&run.outcome.tasks) {
        let Some(span) = spans.get_mut(task.operation as usize) else { continue };
        let Some(end) = set(record.end) else {
            broken[task.operation as usize] = true;
            continue;
        };
        let (start, end) = match task.role {
            Role::Enter => (end, Time::ZERO),
            Role::Leave => (Time::NEVER, end),
            Role::Compute => (record.start, end),
            Role::Inner => continue,
        };
        let all = span.get_or_insert(Span { start: Time::NEVER, end: Time::ZERO });
        (all.start, all.end) = (all.start.min(start), all.end.max(end));
    }
    for (span, broken) in spans.iter_mut().zip(broken) {
        *span = span.filter(|span| !broken && span.start <= span.end);
    }
    spans
}

/// How a job's ranks spent the time from its start to the end of its last task, us, as means over ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Budget {
    /// Training steps, or repetitions of a collective.
    pub(crate) steps: u32,
    /// All of the time.
    pub(crate) time: f64,
    pub(crate) compute: f64,
    /// Waiting for communication, by kind of parallelism.
    pub(crate) exposed: BTreeMap<&'static str, f64>,
    /// Bandwidth on the bus of each collective, GB/s, by name.
    pub(crate) bus: BTreeMap<String, Vec<f64>>,
}

impl Budget {
    /// Waiting without communication: the bubble of a pipeline.
    pub(crate) fn bubble(&self) -> f64 {
        (self.time - self.compute - self.exposed.values().sum::<f64>()).max(0.0)
    }
}

/// The budget of a job; `None` if it has no operations, or some of its tasks have not ended.
pub(crate) fn budget(run: RunData<'_>, job: u16, spans: &[Option<Span>]) -> Option<Budget> {
    let plan = run.plan;
    let mut of_ranks: BTreeMap<u32, Vec<(Time, Time, &Task)>> = BTreeMap::new();
    for (task, record) in plan.tasks.iter().zip(&run.outcome.tasks).filter(|(task, _)| task.job == job) {
        let end = set(record.end)?;
        if matches!(task.role, Role::Compute | Role::Leave) && plan.operations.len() > task.operation as usize
        {
            of_ranks.entry(task.rank).or_default().push((end, record.start, task));
        }
    }
    let start = plan.jobs[usize::from(job)].start;
    let last = of_ranks.values().flatten().map(|(end, ..)| *end).max()?;
    let mut budget = Budget { time: last.since(start).as_us(), ..Budget::default() };
    let ranks = of_ranks.len() as f64;
    for mut tasks in of_ranks.into_values() {
        tasks.sort_by_key(|&(end, start, task)| (end, start, task.operation));
        let mut at = start;
        for (end, begin, task) in tasks {
            let operation = &plan.operations[task.operation as usize];
            if end <= at {
                continue;
            }
            if task.role == Role::Compute {
                budget.compute += end.since(at.max(begin)).as_us();
            } else {
                // A transfer between stages keeps its receiver waiting from its start; what was before is the bubble.
                let span = spans[task.operation as usize].map_or(end, |span| span.start);
                let from = if operation.dimension == "pp" { at.max(span.min(end)) } else { at };
                *budget.exposed.entry(operation.dimension).or_default() += end.since(from).as_us();
            }
            at = end;
        }
    }
    budget.compute /= ranks;
    budget.exposed.values_mut().for_each(|us| *us /= ranks);
    for (operation, span) in plan.operations.iter().zip(spans).filter(|(operation, _)| operation.job == job) {
        budget.steps = budget.steps.max(operation.step + 1);
        if let Some(gbs) = span
            .and_then(|span| span.bus_bandwidth(operation))
            .filter(|_| operation.ranks > 2 || operation.dimension != "pp")
        {
            let name = match operation.dimension {
                "" => operation.name.to_owned(),
                dimension => format!("{dimension} {}", operation.name),
            };
            budget.bus.entry(name).or_default().push(gbs);
        }
    }
    Some(budget)
}
