//! A step of a job: its critical path, and the messages that made the path long.
//!
//! The path comes from `critical.parquet`, which every run with steps writes, so the scenario need not run again.

use crate::bottleneck::{self, Bottleneck};
use crate::step_words as words;
use crate::timeline::Line;
use arrow_array::Array;
use model::plan::{Operation, Plan, Role, Work};
use results::Results;
use results::table::Table;
use scenario::Checked;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most messages that the explanation names. Our choice.
const MESSAGES: usize = 3;
/// Smallest share of the step by which a message is late if the explanation names it. Our choice.
const WORTH_NAMING: f64 = 0.01;

/// What a piece of a step is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spent {
    /// Computation, up to the amount of the GPU that computes most.
    Compute,
    /// Computation beyond that amount, on other GPUs: in a pipeline, the bubble.
    Bubble,
    /// Messages, as long as they take alone on the fabric.
    Messages,
    /// Time by which messages took longer than alone on the fabric.
    Late,
    /// Copies between the GPUs of a server.
    Copies,
    /// Waits for the time at which work was to start.
    Scheduled,
}

/// A piece of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// What it is spent on.
    pub spent: Spent,
    /// Kind of parallelism of communication, and `pp` for the bubble of a pipeline; else empty.
    pub dimension: String,
    /// Collective or transfer; else empty.
    pub name: String,
    /// Time, ps. The times of all pieces add up to the time of the step.
    pub ps: u64,
    /// Number of computations or operations that it is part of.
    pub times: u64,
}

/// A message that made the path long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Number of the flow, as in `flows.parquet`.
    pub flow: u64,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Kind of parallelism.
    pub dimension: String,
    /// Collective or transfer.
    pub name: String,
    /// Flow completion time.
    pub fct_us: f64,
    /// FCT of the flow alone on the idle fabric.
    pub ideal_fct_us: f64,
    /// Time by which messages between these hosts were late on the path, in operations of which they are the latest.
    pub late_us: f64,
    /// The busiest link between the two hosts; null without one.
    pub link: Option<Bottleneck>,
}

/// A part of the critical path inside one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leg {
    /// Start, ps.
    pub from_ps: u64,
    /// End, ps.
    pub to_ps: u64,
    /// `compute`, `communication` or `scheduled`.
    pub kind: String,
    /// GPU on which the path goes on.
    pub rank: u64,
    /// Number of the operation, as in `operations.parquet`.
    pub operation: Option<u64>,
    /// What is done.
    pub name: String,
    /// Kind of parallelism.
    pub dimension: String,
    /// Micro-batch; null if the job has a single one.
    pub micro_batch: Option<u64>,
    /// Layer or bucket.
    pub layer: Option<u64>,
    /// Messages over the fabric, one after the other.
    pub messages: u64,
    /// Time of these messages, ps.
    pub network_ps: u64,
    /// Time by which they took longer than alone on the fabric, ps.
    pub late_ps: u64,
    /// The message that was late by most.
    pub flow: Option<u64>,
}

/// A step, and why it took its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Scenario.
    pub scenario: String,
    /// Scheme.
    pub scheme: String,
    /// Digest of the run.
    pub digest: String,
    /// Summary in one sentence.
    pub answer: String,
    /// Name of the job, an entry of the workload.
    pub job: String,
    /// Number of the step, from 0.
    pub step: u64,
    /// Start of the step.
    pub start_us: f64,
    /// End of its last task.
    pub end_us: f64,
    /// Time of the step, ps.
    pub ps: u64,
    /// Where the time went on the critical path, the largest piece first.
    pub account: Vec<Piece>,
    /// The messages that made the path long, the worst first.
    pub messages: Vec<Message>,
    /// The critical path, from the start of the step to its end.
    pub path: Vec<Leg>,
    /// The path in words.
    #[serde(skip)]
    pub(crate) lines: Vec<Line>,
}

impl Step {
    /// True if `name` asks for a step: `step`, `step:N`, `step:JOB` or `step:JOB:N`.
    pub fn is_asked_by(name: &str) -> bool {
        let name = name.trim();
        name == "step" || name.starts_with("step:")
    }

    /// Explains the step that `name` asks for: of the job with the longest step, the longest step.
    ///
    /// # Errors
    /// A message for the user, if there is no such step.
    pub fn of(checked: &Checked, results: &Results, name: &str) -> Result<Self, String> {
        let table = results.table("critical").ok_or_else(|| missing(results, &checked.plan))?;
        let (job, step) = find(table, name)?;
        let mut path = legs(table, &job, step);
        if !has_micro_batches(&checked.plan, &job) {
            path.iter_mut().for_each(|leg| leg.micro_batch = None);
        }
        let (from, to) = (path.first().map_or(0, |leg| leg.from_ps), path.last().map_or(0, |leg| leg.to_ps));
        let text = |key: &str| results.manifest[key].as_str().unwrap_or_default().to_owned();
        let mut explained = Step {
            scenario: text("scenario"),
            scheme: text("scheme"),
            digest: text("digest"),
            answer: String::new(),
            start_us: from as f64 / 1e6,
            end_us: to as f64 / 1e6,
            ps: to - from,
            account: account(&path, busiest(&checked.plan, &job, step), has_pipeline(&checked.plan, &job)),
            messages: messages(checked, results, table, &job, step, to - from),
            lines: words::lines(&path),
            job,
            step,
            path,
        };
        explained.answer = words::answer(&explained);
        Ok(explained)
    }

    /// The explanation as text of several lines.
    pub fn text(&self) -> String {
        words::page(self)
    }
}

/// The reason why the results have no critical path.
fn missing(results: &Results, plan: &Plan) -> String {
    if plan.operations.is_empty() {
        return "the workload has no steps; training, collectives of GPUs and imported schedules have steps"
            .into();
    }
    match results.table("operations") {
        Some(_) if results.summary.ending == "finished" => {
            "the results have no critical.parquet: an older version of ropewalk wrote them; run the scenario again".into()
        }
        _ => "the run ended before the step did".into(),
    }
}

/// The columns of the table that every row has.
fn keys(table: &Table, row: usize) -> Option<(&str, u64, u64, u64)> {
    let count = |column: &str| Some(table.counts(column)?.value(row));
    Some((table.texts("job")?.value(row), count("step")?, count("from_ps")?, count("to_ps")?))
}

/// Job and number of the step that `name` asks for.
fn find(table: &Table, name: &str) -> Result<(String, u64), String> {
    let mut steps: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for (job, step, from, to) in (0..table.rows()).filter_map(|row| keys(table, row)) {
        *steps.entry((job, step)).or_default() += to - from;
    }
    let asked = name.trim().strip_prefix("step").unwrap_or_default().trim_start_matches(':');
    let jobs: Vec<&str> = {
        let mut jobs: Vec<&str> = steps.keys().map(|(job, _)| *job).collect();
        jobs.dedup();
        jobs
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let (job, step) = match asked.rsplit_once(':') {
        _ if jobs.contains(&asked) => (Some(asked), None),
        Some((job, step)) => (Some(job), Some(step)),
        None if asked.is_empty() => (None, None),
        None if number(asked).is_some() => (None, Some(asked)),
        None => (Some(asked), None),
    };
    if let Some(wrong) = job.filter(|job| !jobs.contains(job)) {
        return Err(format!("there is no job {wrong} with steps; {}", scenario::suggestion(wrong, &jobs)));
    }
    let wanted = match step {
        None => None,
        Some(step) => {
            Some(number(step).ok_or_else(|| format!("expected the number of a step, found `{step}`"))?)
        }
    };
    let mine = || steps.iter().filter(|((of, _), _)| job.is_none_or(|job| job == *of));
    let fits = mine().filter(|((_, step), _)| wanted.is_none_or(|wanted| wanted == *step));
    // The first of equally long steps wins.
    let longest = fits.rev().max_by_key(|(_, ps)| **ps);
    longest.map(|((job, step), _)| ((*job).to_owned(), *step)).ok_or_else(|| {
        format!(
            "there is no step {}; the last is step {}",
            wanted.unwrap_or_default(),
            mine().map(|((_, step), _)| *step).max().unwrap_or(0)
        )
    })
}

/// The path of a step.
fn legs(table: &Table, job: &str, step: u64) -> Vec<Leg> {
    let count = |column: &str, row: usize| table.counts(column).map_or(0, |cells| cells.value(row));
    let maybe = |column: &str, row: usize| {
        table.counts(column).filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row))
    };
    let text = |column: &str, row: usize| {
        table.texts(column).map_or_else(String::new, |cells| cells.value(row).to_owned())
    };
    rows(table, job, step)
        .map(|row| Leg {
            from_ps: count("from_ps", row),
            to_ps: count("to_ps", row),
            kind: text("kind", row),
            rank: count("rank", row),
            operation: maybe("operation", row),
            name: text("name", row),
            dimension: text("dimension", row),
            micro_batch: maybe("micro_batch", row),
            layer: maybe("layer", row),
            messages: count("messages", row),
            network_ps: count("network_ps", row),
            late_ps: count("late_ps", row),
            flow: maybe("flow", row),
        })
        .collect()
}

fn rows(table: &Table, job: &str, step: u64) -> impl Iterator<Item = usize> {
    (0..table.rows())
        .filter(move |&row| keys(table, row).is_some_and(|(of, number, ..)| (of, number) == (job, step)))
}

/// True if the job divides its batch: a training with several micro-batches.
fn has_micro_batches(plan: &Plan, job: &str) -> bool {
    operations(plan, job).any(|operation| operation.micro_batch > 0)
}

/// True if the job is a training with pipeline parallelism.
fn has_pipeline(plan: &Plan, job: &str) -> bool {
    operations(plan, job).any(|operation| operation.dimension == "pp")
}

fn operations<'p>(plan: &'p Plan, job: &'p str) -> impl Iterator<Item = &'p Operation> {
    plan.operations.iter().filter(move |o| plan.jobs[usize::from(o.job)].name == job)
}

/// Computation of the GPU that computes most in a step, ps.
fn busiest(plan: &Plan, job: &str, step: u64) -> u64 {
    let mut of_ranks: BTreeMap<u32, u64> = BTreeMap::new();
    for task in plan.tasks.iter().filter(|task| task.role == Role::Compute) {
        let Some(operation) = plan.operations.get(task.operation as usize) else { continue };
        if u64::from(operation.step) == step && plan.jobs[usize::from(task.job)].name == job {
            *of_ranks.entry(task.rank).or_default() += match task.work {
                Work::On { time, .. } | Work::Free { time } | Work::Copy { time, .. } => time.ps(),
                Work::Slice { .. } => 0,
            };
        }
    }
    of_ranks.into_values().max().unwrap_or(0)
}

/// The pieces of a path, of which `busiest` is the most computation of one GPU.
fn account(path: &[Leg], busiest: u64, pipeline: bool) -> Vec<Piece> {
    let mut pieces: BTreeMap<(Spent, &str, &str), (u64, u64)> = BTreeMap::new();
    let mut add = |of, ps: u64| {
        if ps > 0 {
            let piece = pieces.entry(of).or_default();
            *piece = (piece.0 + ps, piece.1 + 1);
        }
    };
    for leg in path {
        let ps = leg.to_ps - leg.from_ps;
        match leg.kind.as_str() {
            "compute" => add((Spent::Compute, "", ""), ps),
            "scheduled" => add((Spent::Scheduled, "", ""), ps),
            _ => {
                let of = |spent| (spent, &leg.dimension[..], &leg.name[..]);
                add(of(Spent::Messages), leg.network_ps - leg.late_ps);
                add(of(Spent::Late), leg.late_ps);
                add(of(Spent::Copies), ps - leg.network_ps);
            }
        }
    }
    if let Some(compute) = pieces.get_mut(&(Spent::Compute, "", ""))
        && let Some(beyond) = compute.0.checked_sub(busiest).filter(|beyond| *beyond > 0)
    {
        compute.0 = busiest;
        let times = compute.1;
        pieces.insert((Spent::Bubble, if pipeline { "pp" } else { "" }, ""), (beyond, times));
    }
    let mut account: Vec<Piece> = pieces
        .into_iter()
        .filter(|(_, (ps, _))| *ps > 0)
        .map(|((spent, dimension, name), (ps, times))| Piece {
            spent,
            dimension: dimension.to_owned(),
            name: name.to_owned(),
            ps,
            times,
        })
        .collect();
    account.sort_by_key(|piece| (std::cmp::Reverse(piece.ps), piece.spent));
    account
}

/// The latest messages of a path, one for each pair of hosts, the worst pair first.
fn messages(
    checked: &Checked,
    results: &Results,
    table: &Table,
    job: &str,
    step: u64,
    step_ps: u64,
) -> Vec<Message> {
    let mut of_pairs: BTreeMap<(&str, &str), (u64, u64, usize)> = BTreeMap::new();
    let columns = || Some((table.texts("flow_from")?, table.texts("flow_to")?, table.counts("late_ps")?));
    let Some((from, to, late)) = columns() else { return Vec::new() };
    for row in rows(table, job, step).filter(|&row| late.value(row) > 0) {
        let (all, most, worst) = of_pairs.entry((from.value(row), to.value(row))).or_default();
        *all += late.value(row);
        if late.value(row) > *most {
            (*most, *worst) = (late.value(row), row);
        }
    }
    let mut pairs: Vec<_> = of_pairs.into_iter().collect();
    pairs.sort_by_key(|(_, (all, ..))| std::cmp::Reverse(*all));
    pairs.retain(|(_, (all, ..))| *all as f64 >= step_ps as f64 * WORTH_NAMING);
    let real = |column: &str, row: usize| table.reals(column).map_or(0.0, |cells| cells.value(row));
    let text = |column: &str, row: usize| {
        table.texts(column).map_or_else(String::new, |cells| cells.value(row).to_owned())
    };
    pairs
        .into_iter()
        .take(MESSAGES)
        .map(|((from, to), (all, _, row))| Message {
            flow: table.counts("flow").map_or(0, |cells| cells.value(row)),
            from: from.to_owned(),
            to: to.to_owned(),
            dimension: text("dimension", row),
            name: text("name", row),
            fct_us: real("flow_fct_us", row),
            ideal_fct_us: real("flow_ideal_us", row),
            late_us: all as f64 / 1e6,
            link: bottleneck::between(&checked.plan, results, from, to),
        })
        .collect()
}
