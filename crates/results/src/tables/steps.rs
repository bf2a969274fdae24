//! `steps.parquet`: how every rank spent every step. `timeline.parquet`: the same in equal parts of the job's time.

use crate::critical::steps;
use crate::data::RunData;
use crate::operations::{Activity, Rank, activity, spans};
use crate::table::{Column, Table};
use model::Time;
use std::ops::Range;

/// Most rows of `steps.parquet`; with more, every second, third, ... row is kept.
const MOST_ROWS: usize = 1_000_000;
/// Most rows of `timeline.parquet`: with more ranks, time has fewer parts. Our choice: a page is 600 parts wide.
const MOST_CELLS: usize = 300_000;
/// Parts of a job's time, at most and at least. Our choice.
const PARTS: Range<usize> = 20..600;

/// Kinds of parallelism, as the columns name them; the last stands for communication of no kind.
pub const KINDS: [&str; 6] = ["tp", "cp", "ep", "pp", "dp", "other"];

fn kind(dimension: &str) -> usize {
    KINDS.iter().position(|kind| *kind == dimension).unwrap_or(KINDS.len() - 1)
}

/// How a rank spent some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    compute: Time,
    /// Waits for communication, by kind.
    exposed: [Time; KINDS.len()],
    /// Time in which communication was under way, by kind.
    under_way: [Time; KINDS.len()],
}

struct Row {
    job: u16,
    /// Step, or part of the time.
    number: u64,
    rank: u32,
    time: Range<Time>,
    /// End of the last task of the rank within this time; the start if there is none.
    last: Time,
    spent: Spent,
}

/// Adds the time of `span` to each of the times between consecutive `bounds`.
fn share(bounds: &[Time], span: &Range<Time>, mut add: impl FnMut(usize, Range<Time>)) {
    let mut part = bounds.partition_point(|bound| *bound <= span.start).saturating_sub(1);
    while part + 1 < bounds.len() && bounds[part] < span.end {
        let (from, to) = (span.start.max(bounds[part]), span.end.min(bounds[part + 1]));
        if from < to {
            add(part, from..to);
        }
        part += 1;
    }
}

/// How a rank spent the times between consecutive `bounds`, and when its last task in each ended.
fn spent(rank: &Rank, bounds: &[Time]) -> Vec<(Spent, Time)> {
    let mut all: Vec<(Spent, Time)> = bounds.windows(2).map(|bounds| (Spent::default(), bounds[0])).collect();
    for span in &rank.computed {
        share(bounds, span, |part, time| {
            all[part].0.compute += time.end.since(time.start);
            all[part].1 = all[part].1.max(time.end);
        });
    }
    for (span, dimension) in &rank.exposed {
        share(bounds, span, |part, time| {
            all[part].0.exposed[kind(dimension)] += time.end.since(time.start);
        });
    }
    for number in 0..KINDS.len() {
        let mut mine: Vec<&Range<Time>> = rank
            .entered
            .iter()
            .filter(|(_, dimension)| kind(dimension) == number)
            .map(|(span, _)| span)
            .collect();
        mine.sort_unstable_by_key(|span| (span.start, span.end));
        // Operations of one kind overlap; their time counts once.
        let mut until = Time::ZERO;
        for span in mine {
            let rest = span.start.max(until)..span.end;
            until = until.max(span.end);
            share(bounds, &rest, |part, time| {
                all[part].0.under_way[number] += time.end.since(time.start);
                all[part].1 = all[part].1.max(time.end);
            });
        }
    }
    all
}

/// The rows of all jobs, between the bounds that `cut` sets for each.
fn rows(run: RunData<'_>, cut: impl Fn(u16, &Activity) -> Option<Vec<Time>>) -> Vec<Row> {
    if run.plan.operations.is_empty() {
        return Vec::new();
    }
    let spans = spans(run);
    let mut rows = Vec::new();
    for job in 0..run.plan.jobs.len() as u16 {
        let Some(activity) = activity(run, job, &spans) else { continue };
        let Some(bounds) = cut(job, &activity) else { continue };
        for (&rank, did) in &activity.ranks {
            for (number, (spent, last)) in spent(did, &bounds).into_iter().enumerate() {
                let time = bounds[number]..bounds[number + 1];
                rows.push(Row { job, number: number as u64, rank, time, last, spent });
            }
        }
    }
    rows
}

/// The columns of times: computation, exposed communication by kind, and more.
fn times<'r>(rows: &'r [&Row]) -> Vec<Column> {
    let us = |name: &str, about: &str, read: &dyn Fn(&'r Row) -> Time| {
        Column::real(name, "us", about, rows.iter().map(|row| Some(read(row).as_us())))
    };
    let mut columns = vec![us("compute_us", "computation", &|row| row.spent.compute)];
    for (number, kind) in KINDS.into_iter().enumerate() {
        columns.push(us(
            &format!("exposed_{kind}_us"),
            &format!("waiting for communication of {}", long(kind)),
            &|row| row.spent.exposed[number],
        ));
    }
    columns
}

/// The kind of parallelism in a description.
fn long(kind: &str) -> String {
    if kind == "other" { "no kind of parallelism".to_owned() } else { format!("{kind} parallelism") }
}

fn heads(run: RunData<'_>, rows: &[&Row], number: (&str, &str)) -> Vec<Column> {
    let name = |row: &&Row| run.plan.jobs[usize::from(row.job)].name.clone();
    vec![
        Column::text("job", "job: the entry of the workload", rows.iter().map(name)),
        Column::count(number.0, "-", number.1, rows.iter().map(|row| row.number)),
        Column::count("rank", "-", "GPU", rows.iter().map(|row| row.rank.into())),
        Column::real("start_us", "us", "start", rows.iter().map(|row| Some(row.time.start.as_us()))),
        Column::real("end_us", "us", "end", rows.iter().map(|row| Some(row.time.end.as_us()))),
    ]
}

/// The table of steps; `None` in a run without steps that ended.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let rows = rows(run, |job, activity| {
        let ends = steps(run, job)?.into_iter().map(|(step, _)| step.end);
        Some(std::iter::once(activity.start).chain(ends).collect())
    });
    let every = rows.len().div_ceil(MOST_ROWS).max(1);
    let kept: Vec<&Row> = rows.iter().step_by(every).collect();
    if kept.is_empty() {
        return None;
    }
    let mut columns = heads(run, &kept, ("step", "training step, from 0"));
    columns.push(Column::real(
        "last_us",
        "us",
        "end of the last task of the GPU in the step",
        kept.iter().map(|row| Some(row.last.as_us())),
    ));
    columns.extend(times(&kept));
    let rest = |row: &&Row| {
        let exposed = row.spent.exposed.iter().fold(Time::ZERO, |sum, time| sum + *time);
        Some(row.time.end.since(row.time.start).since(row.spent.compute + exposed).as_us())
    };
    columns.push(Column::real(
        "bubble_us",
        "us",
        "rest of the step: neither computation nor waiting for communication under way",
        kept.iter().map(rest),
    ));
    Some(Table::new(columns, every))
}

/// The timeline; `None` in a run without steps that ended.
pub fn timeline(run: RunData<'_>) -> Option<Table> {
    let rows = rows(run, |_, activity| {
        let parts = (MOST_CELLS / activity.ranks.len().max(1)).clamp(PARTS.start, PARTS.end) as u64;
        let (start, all) = (activity.start, activity.end.since(activity.start).ps());
        let bound = |part| Time(start.ps() + (u128::from(all) * u128::from(part) / u128::from(parts)) as u64);
        (all >= parts).then(|| (0..=parts).map(bound).collect())
    });
    if rows.is_empty() {
        return None;
    }
    let kept: Vec<&Row> = rows.iter().collect();
    let mut columns = heads(run, &kept, ("part", "part of the job's time, from 0"));
    columns.extend(times(&kept));
    for (number, kind) in KINDS.into_iter().enumerate() {
        columns.push(Column::real(
            &format!("under_way_{kind}_us"),
            "us",
            &format!("communication of {} under way, exposed or not", long(kind)),
            kept.iter().map(|row| Some(row.spent.under_way[number].as_us())),
        ));
    }
    Some(Table::new(columns, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shared_by_the_parts_that_it_touches() {
        let bounds = [0, 10, 20, 30].map(Time::from_us);
        let shares = |from, to| {
            let mut shares = Vec::new();
            share(&bounds, &(Time::from_us(from)..Time::from_us(to)), |part, time| {
                shares.push((part, time.end.since(time.start).as_us()));
            });
            shares
        };
        assert_eq!(shares(5, 25), [(0, 5.0), (1, 10.0), (2, 5.0)]);
        assert_eq!(shares(10, 20), [(1, 10.0)]);
        assert_eq!(shares(20, 40), [(2, 10.0)], "the time after the last bound belongs to no part");
        assert_eq!(shares(7, 7), []);
    }

    #[test]
    fn overlapping_operations_of_a_kind_are_under_way_once() {
        let us = |from, to| Time::from_us(from)..Time::from_us(to);
        let rank = Rank {
            computed: vec![us(0, 10)],
            exposed: vec![(us(10, 14), "dp")],
            entered: vec![(us(2, 9), "dp"), (us(4, 14), "dp"), (us(5, 6), "ring")],
        };
        let all = spent(&rank, &[0, 8, 20].map(Time::from_us));
        let us = |part: usize, kind: usize| all[part].0.under_way[kind].as_us();
        assert_eq!((us(0, 4), us(1, 4), us(0, 5)), (6.0, 6.0, 1.0));
        assert_eq!((all[0].0.compute, all[1].0.compute), (Time::from_us(8), Time::from_us(2)));
        assert_eq!((all[1].0.exposed[4], all[1].1), (Time::from_us(4), Time::from_us(14)));
    }
}
