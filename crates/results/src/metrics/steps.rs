//! Steps of training, and collectives: where their time goes.

use super::{Better, Shown, Unit};
use crate::data::RunData;
use crate::operations::{self, Budget, Span};
use crate::stats::extremes;
use std::collections::BTreeMap;

section! {
    /// Steps of a job with tasks: training steps, or repetitions of a collective.
    pub struct Steps read from budget: &Budget;

    /// Steps of the job.
    count: u64 = budget.steps.into() => { label: "steps" };

    /// Time of a step: from the job's start to the end of its last task or message, divided by the number of steps.
    time_us: f64 = budget.time / f64::from(budget.steps.max(1)) => {
        label: "step", heading: "step\nus", unit: Unit::Microseconds, better: Better::Less, shown: Shown::Sweep,
    };

    /// Tokens that the job trains on per second; only of a training of a whole model.
    tokens_per_second: Option<f64> = tokens_per_second(budget) => {
        label: "tokens per second", unit: Unit::TokensPerSecond, better: Better::More,
    };

    /// Computation in a step, mean over ranks.
    compute_us: f64 = budget.compute / f64::from(budget.steps.max(1)) => {
        label: "compute", unit: Unit::Microseconds,
    };

    /// Time of a step in which a rank waits for communication, mean over ranks.
    exposed_us: f64 = budget.exposed.values().sum::<f64>() / f64::from(budget.steps.max(1)) => {
        label: "exposed communication", heading: "exposed\nus", unit: Unit::Microseconds, better: Better::Less,
        shown: Shown::Sweep,
    };

    /// Time of a step in which a rank neither computes nor waits for communication that is under way, mean over ranks.
    bubble_us: f64 = budget.bubble() / f64::from(budget.steps.max(1)) => {
        label: "bubble", unit: Unit::Microseconds, better: Better::Less,
    };

    /// Exposed communication as ASTRA-sim counts it: time of a step without the computation, mean over ranks. It includes the
    /// bubble.
    exposed_astra_us: f64 = (budget.time - budget.compute) / f64::from(budget.steps.max(1)) => {
        label: "exposed, as ASTRA-sim counts", unit: Unit::Microseconds, better: Better::Less,
    };

    /// Exposed communication by kind of parallelism.
    exposed: BTreeMap<String, Exposed> = exposed(budget) => { part: "exposed *" };

    /// Bandwidth of collectives on the bus, as nccl-tests define it.
    bus: BTreeMap<String, Bus> = bus(budget) => { part: "*" };
}

section! {
    /// Exposed communication of one kind of parallelism.
    pub struct Exposed read from us: f64;

    /// Time of a step in which a rank waits for this communication, mean over ranks.
    us: f64 = us => { label: "exposed", unit: Unit::Microseconds, better: Better::Less };
}

section! {
    /// Bandwidth of the collectives of one name, GB/s.
    pub struct Bus read from gbs: &[f64];

    /// Number of collectives.
    count: u64 = gbs.len() as u64 => { label: "collectives" };

    /// Median of the bandwidth on the bus, GB/s.
    median_gbs: Option<f64> = median(gbs) => {
        label: "bus bandwidth, median", unit: Unit::GigabytesPerSecond, better: Better::More,
    };

    /// Least bandwidth on the bus, GB/s.
    least_gbs: Option<f64> = extremes(gbs).map(|(least, _)| least) => {
        label: "bus bandwidth, least", unit: Unit::GigabytesPerSecond, better: Better::More,
    };
}

fn tokens_per_second(budget: &Budget) -> Option<f64> {
    let tokens = budget.tokens * u64::from(budget.steps);
    (tokens > 0 && budget.time > 0.0).then(|| tokens as f64 * 1e6 / budget.time)
}

fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn exposed(budget: &Budget) -> BTreeMap<String, Exposed> {
    let each = |us: &f64| Exposed::read(us / f64::from(budget.steps.max(1)));
    // Communication of no kind of parallelism, such as that of a schedule.
    let named = |name: &&str| if name.is_empty() { "messages".to_owned() } else { (*name).to_owned() };
    budget.exposed.iter().map(|(name, us)| (named(name), each(us))).collect()
}

fn bus(budget: &Budget) -> BTreeMap<String, Bus> {
    budget.bus.iter().map(|(name, gbs)| (name.clone(), Bus::read(gbs))).collect()
}

/// The steps of a job, if it has operations.
pub(crate) fn of(run: RunData<'_>, job: u16, spans: &[Option<Span>]) -> Option<Steps> {
    operations::budget(run, job, spans).map(|budget| Steps::read(&budget))
}
