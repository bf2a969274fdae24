//! What ranks did when: computation, waiting for communication, and nothing.

use crate::critical::steps;
use crate::data::RunData;
use crate::flows::set;
use model::plan::{Operation, Role, Task};
use model::{Plan, Time};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// What a rank did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rank {
    /// Computations.
    pub(crate) computed: Vec<Range<Time>>,
    /// Waits for communication, with its kind of parallelism.
    pub(crate) exposed: Vec<(Range<Time>, &'static str)>,
    /// Operations that the rank had entered and not left, with their kind of parallelism.
    pub(crate) entered: Vec<(Range<Time>, &'static str)>,
}

/// What the ranks of a job did.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Start of the job.
    pub(crate) start: Time,
    /// End of its last task, or the arrival of its last message.
    pub(crate) end: Time,
    pub(crate) ranks: BTreeMap<u32, Rank>,
}

/// What the ranks of a job did; `None` if it has no operations, or some of its tasks or messages have not ended.
pub(crate) fn activity(run: RunData<'_>, job: u16, spans: &[Option<Span>]) -> Option<Activity> {
    let plan = run.plan;
    let mut of_ranks: BTreeMap<u32, Vec<(Time, Time, &Task)>> = BTreeMap::new();
    let mut enters: BTreeMap<(u32, u32), Time> = BTreeMap::new();
    for (task, record) in plan.tasks.iter().zip(&run.outcome.tasks).filter(|(task, _)| task.job == job) {
        let end = set(record.end)?;
        if plan.operations.len() <= task.operation as usize {
            continue;
        }
        match task.role {
            Role::Compute | Role::Leave => {
                of_ranks.entry(task.rank).or_default().push((end, record.start, task));
            }
            Role::Enter => drop(enters.insert((task.rank, task.operation), end)),
            Role::Inner => {}
        }
    }
    let start = plan.jobs[usize::from(job)].start;
    let end = steps(run, job)?.last()?.0.end;
    let rank = |(rank, tasks)| (rank, what_a_rank_did(plan, start, tasks, spans, &enters));
    Some(Activity { start, end, ranks: of_ranks.into_iter().map(rank).collect() })
}

/// What a rank did, from its tasks with their ends and starts.
fn what_a_rank_did(
    plan: &Plan,
    start: Time,
    tasks: Vec<(Time, Time, &Task)>,
    spans: &[Option<Span>],
    enters: &BTreeMap<(u32, u32), Time>,
) -> Rank {
    let (computed, mut left): (Vec<_>, Vec<_>) =
        tasks.into_iter().partition(|(.., task)| task.role == Role::Compute);
    let mut computed: Vec<(Time, Time)> = computed.into_iter().map(|(end, begin, _)| (begin, end)).collect();
    computed.sort_unstable();
    left.sort_by_key(|&(end, _, task)| (end, task.operation));
    let mut rank = Rank::default();
    let mut at = start;
    for (end, _, task) in left {
        // The rank has been idle since its last computation, unless it computes when the operation ends.
        let before = computed.partition_point(|(begin, _)| *begin < end);
        let idle = before.checked_sub(1).map_or(start, |last| computed[last].1);
        let dimension = plan.operations[task.operation as usize].dimension;
        let span = spans[task.operation as usize];
        // A transfer between stages keeps its receiver waiting from its start; the time before is the bubble.
        let began = match (dimension, span) {
            ("pp", Some(span)) => span.start,
            _ => start,
        };
        let from = at.max(idle).max(began);
        if from < end {
            rank.exposed.push((from..end, dimension));
        }
        at = at.max(end);
        let entered = enters.get(&(task.rank, task.operation)).copied().or(span.map(|span| span.start));
        rank.entered
            .extend(entered.filter(|entered| *entered < end).map(|entered| (entered..end, dimension)));
    }
    rank.computed = computed.into_iter().map(|(begin, end)| begin..end).collect();
    rank
}

/// How a job's ranks spent the time from its start to the end of its last task or message, us, as means over ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Budget {
    /// Training steps, or repetitions of a collective.
    pub(crate) steps: u32,
    /// Tokens that each step trains on; 0 if the job is no training of a whole model.
    pub(crate) tokens: u64,
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

/// The budget of a job; `None` if it has no operations, or some of its tasks or messages have not ended.
pub(crate) fn budget(run: RunData<'_>, job: u16, spans: &[Option<Span>]) -> Option<Budget> {
    let activity = activity(run, job, spans)?;
    let mut budget = Budget {
        tokens: run.plan.jobs[usize::from(job)].tokens,
        time: activity.end.since(activity.start).as_us(),
        ..Budget::default()
    };
    let ranks = activity.ranks.len() as f64;
    for rank in activity.ranks.values() {
        budget.compute += rank.computed.iter().map(|span| span.end.since(span.start).as_us()).sum::<f64>();
        for (waited, dimension) in &rank.exposed {
            *budget.exposed.entry(dimension).or_default() += waited.end.since(waited.start).as_us();
        }
    }
    budget.compute /= ranks;
    budget.exposed.values_mut().for_each(|us| *us /= ranks);
    for (operation, span) in
        run.plan.operations.iter().zip(spans).filter(|(operation, _)| operation.job == job)
    {
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

#[cfg(test)]
mod stories;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};
    use engine::outcome::TaskRecord;
    use model::NodeId;
    use model::plan::Work;

    #[test]
    fn waiting_counts_only_while_a_rank_does_not_compute() {
        let mut plan = plan(1);
        let mut outcome = outcome(1);
        let operation = |name, dimension, ranks| Operation {
            name,
            dimension,
            ranks,
            bus: (1, 1),
            bytes: 1000,
            ..Operation::default()
        };
        plan.operations = vec![
            operation("forward", "", 0),
            operation("all-gather", "tp", 8),
            operation("reduce-scatter", "dp", 4),
            operation("send", "pp", 2),
        ];
        // Start and end in us: compute, a tp collective that is waited for, a dp collective that ends during the second
        // computation, and an activation that is sent at 40 us and arrives at 45 us.
        for (role, operation, begin, end) in [
            (Role::Compute, 0, 0, 10),
            (Role::Enter, 1, 10, 10),
            (Role::Leave, 1, 10, 14),
            (Role::Compute, 0, 14, 30),
            (Role::Leave, 2, 20, 25),
            (Role::Enter, 3, 40, 40),
            (Role::Leave, 3, 40, 45),
            (Role::Compute, 0, 45, 50),
        ] {
            let work = Work::Free { time: Time::ZERO };
            plan.tasks.push(Task { role, operation, ..Task::new(NodeId(0), work) });
            let (start, end) = (Time::from_us(begin), Time::from_us(end));
            outcome.tasks.push(TaskRecord { ready: start, start, end });
        }
        let run = RunData { plan: &plan, ideal: &[], outcome: &outcome, served: None };
        let spans = spans(run);
        let budget = budget(run, 0, &spans).unwrap();
        assert_eq!((budget.time, budget.compute), (50.0, 31.0));
        assert_eq!(budget.exposed, BTreeMap::from([("tp", 4.0), ("pp", 5.0)]));
        assert_eq!(budget.bubble(), 10.0);
        // 1000 B in 4 us.
        assert_eq!(budget.bus["tp all-gather"], [0.25]);
    }

    #[test]
    fn a_step_ends_with_the_last_task_or_message_of_its_job() {
        let (mut plan, mut outcome) = (plan(1), outcome(1));
        plan.operations = vec![Operation { name: "forward", ..Operation::default() }];
        // A computation up to 10 us, and a task of no operation up to 12 us.
        for (role, operation, end) in [(Role::Compute, 0, 10), (Role::Inner, Operation::NONE, 12)] {
            let task = Task::new(NodeId(0), Work::Free { time: Time::ZERO });
            plan.tasks.push(Task { role, operation, ..task });
            outcome.tasks.push(TaskRecord { ready: Time::ZERO, start: Time::ZERO, end: Time::from_us(end) });
        }
        for (arrival, step) in [(9, Some(12.0)), (15, Some(15.0)), (0, None)] {
            outcome.messages[0].received = if arrival > 0 { Time::from_us(arrival) } else { Time::NEVER };
            let run = RunData { plan: &plan, ideal: &[], outcome: &outcome, served: None };
            assert_eq!(budget(run, 0, &spans(run)).map(|budget| budget.time), step, "{arrival}");
        }
    }
}
