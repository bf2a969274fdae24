//! The table of the page: the main numbers of each run.

use super::super::frame::short;
use super::Group;
use super::question::{same_work, workloads};
use results::metrics::Shown;
use results::stats::{extremes, margin, mean};
use results::{METRICS, Metric, Results};
use serde::Serialize;
use toml::{Table, Value as Toml};

/// A table of numbers.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// A column of a table, as the page reads it.
#[derive(Debug, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) about: String,
    /// 1 if more is better, -1 if less is better, 0 otherwise.
    better: i8,
}

impl Column {
    /// Column of a metric; `marked` is 0 if no row is best.
    pub(super) fn of(metric: &Metric, marked: i8) -> Self {
        let whole = metric.share_of.filter(|_| metric.percent);
        let whole = whole.and_then(|key| METRICS.iter().find(|metric| metric.key == key));
        Column {
            name: metric.label.clone(),
            unit: metric.shown_unit(),
            about: metric.meaning.clone()
                + &whole.map_or_else(String::new, |whole| format!(" / {}", whole.label)),
            better: metric.better.sign() * marked,
        }
    }
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    scheme: String,
    complete: bool,
    #[serde(flatten)]
    over: OverSeeds,
}

/// The numbers of runs that differ only in their seeds.
#[derive(Debug, Serialize)]
pub(super) struct OverSeeds {
    pub(super) runs: usize,
    /// Means, by column.
    pub(super) cells: Vec<Option<f64>>,
    /// Lowest and highest values by column, if there are several runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ranges: Vec<Option<(f64, f64)>>,
    /// Half of the 95 % confidence intervals of the means, by column, if there are several runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) margins: Vec<Option<f64>>,
}

impl OverSeeds {
    /// Means over `runs` runs, from their numbers by column. A column with a missing number has no mean.
    pub(super) fn of(runs: usize, columns: &[Option<Vec<f64>>]) -> Self {
        let range = |v: &Option<Vec<f64>>| {
            extremes(v.as_ref()?).map(|(a, b)| (short(a).unwrap_or(a), short(b).unwrap_or(b)))
        };
        let half = |v: &Option<Vec<f64>>| margin(v.as_ref()?).and_then(short);
        OverSeeds {
            runs,
            margins: if runs > 1 { columns.iter().map(half).collect() } else { Vec::new() },
            cells: columns.iter().map(|v| v.as_ref().and_then(|v| mean(v)).and_then(short)).collect(),
            ranges: if runs > 1 { columns.iter().map(range).collect() } else { Vec::new() },
        }
    }
}

/// True if a column is worth showing: a number in it is above 0, or it shows a share. A share of 0 is good news, unless few runs
/// can have another.
pub(super) fn tells(metric: &Metric, mut all: impl Iterator<Item = f64>) -> bool {
    metric.percent && !metric.rare || all.any(|x| x > 0.0)
}

pub(super) type Measure = fn(&Results) -> Option<f64>;

/// End of the slowest group over all foreground jobs that have groups by design (collectives do), us; `None` if there
/// are no such jobs, or a group did not finish. In any other job the only group is the whole job, so its end adds
/// nothing to the FCT.
pub(super) fn slowest_group(run: &Results) -> Option<f64> {
    let grouped = |entry: &Table| entry.values().any(|kind| kind.get("groups").is_some());
    let background = |entry: &Table| entry.get("background").and_then(Toml::as_bool).unwrap_or(false);
    let jobs = workloads(run).filter(|entry| grouped(entry) && !background(entry));
    let end = |entry: Table| {
        let job = run.summary.jobs.get(entry.get("name")?.as_str()?)?;
        job.groups.completion_us.slowest
    };
    jobs.map(end).collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

/// The table: a row for each group. A column whose numbers are all missing or 0 is left out, unless it shows a share.
pub(super) fn table(groups: &[Group<'_>]) -> Numbers {
    let mut columns: Vec<(&Metric, Vec<Option<Vec<f64>>>)> = Vec::new();
    let mut add = |metric: &'static Metric, number: &dyn Fn(&Results) -> Option<f64>| {
        let of = |group: &Group<'_>| group.runs.iter().map(|run| number(run)).collect::<Option<Vec<f64>>>();
        let cells: Vec<Option<Vec<f64>>> = groups.iter().map(of).collect();
        let mut all = cells.iter().flatten().flatten().copied().peekable();
        if all.peek().is_some() && tells(metric, all) {
            columns.push((metric, cells));
        }
    };
    add(Metric::slowest_group(), &slowest_group);
    for metric in Metric::shown_in(Shown::Page) {
        add(metric, &|run| metric.in_table(|key| run.summary.number(key)));
    }
    let row = |(i, group): (usize, &Group<'_>)| {
        let all: Vec<Option<Vec<f64>>> = columns.iter().map(|(_, cells)| cells[i].clone()).collect();
        Row {
            name: group.name.clone(),
            scheme: group.scheme().to_owned(),
            complete: group.complete(),
            over: OverSeeds::of(group.runs.len(), &all),
        }
    };
    // If the groups had different work to do, none of them is best.
    let marked = i8::from(same_work(groups));
    let column = |(metric, _): &(&Metric, _)| Column::of(metric, marked);
    Numbers {
        rows: groups.iter().enumerate().map(row).collect(),
        columns: columns.iter().map(column).collect(),
    }
}
