//! The table of a sweep: a row for every combination of its axes.

use arrow_array::Array;
use lab::sweep::Sweep;
use results::Metric;
use results::metrics::Shown;
use results::stats::mean;
use results::table::Table;
use results::text::{maybe, table};
use std::collections::BTreeMap;

/// Most rows that are printed. Our choice: a longer table is better read from the file.
const MOST_ROWS: usize = 60;

/// A row of `points.parquet`.
struct Point<'a> {
    table: &'a Table,
    row: usize,
}

impl Point<'_> {
    fn count(&self, name: &str) -> Option<u64> {
        self.table.counts(name).filter(|cells| cells.is_valid(self.row)).map(|cells| cells.value(self.row))
    }

    fn number(&self, name: &str) -> Option<f64> {
        let real = || {
            self.table.reals(name).filter(|cells| cells.is_valid(self.row)).map(|cells| cells.value(self.row))
        };
        self.count(name).map(|n| n as f64).or_else(real)
    }

    /// The value of a column for the point.
    fn measure(&self, metric: &Metric) -> Option<f64> {
        metric.in_table(|key| self.number(key))
    }
}

/// The columns of metrics: the slowest group if there is a single job, then the metrics that fit beside the axes. A
/// mean over several jobs has no meaning.
fn columns(points: &Table) -> Vec<Metric> {
    let schema = points.schema();
    let slowest = Metric::slowest_group();
    let named = schema.fields().iter().filter_map(|field| slowest.named_by(field.name()));
    let first = match named.collect::<Vec<_>>().as_slice() {
        [job] => job.clone(),
        _ => slowest.clone(),
    };
    let told = |metric: &&Metric| !metric.rare || schema.fields().find(&metric.key).is_some();
    std::iter::once(first).chain(Metric::shown_in(Shown::Sweep).filter(told).cloned()).collect()
}

/// Last parts of the keys of the axes, or whole keys where the last parts are ambiguous.
pub fn short(sweep: &scenario::sweep::Sweep) -> Vec<String> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for key in sweep.keys() {
        *seen.entry(last(key)).or_default() += 1;
    }
    let name = |key: &str| if seen.get(&last(key)) == Some(&1) { last(key) } else { key.to_owned() };
    // A long name is split into two lines.
    let broken = |name: String| match name.rfind('-').filter(|_| name.len() > 12) {
        Some(at) => format!("{}\n{}", &name[..=at], &name[at + 1..]),
        None => name,
    };
    sweep.keys().map(name).map(broken).collect()
}

/// The table. A row shows means over seeds.
pub fn of(sweep: &Sweep, points: &Table) -> String {
    let spec = &sweep.spec;
    let seeds = spec.seeds.as_ref().map_or(1, Vec::len).max(1);
    let mut header = short(spec);
    let axes = header.len();
    let columns = columns(points);
    header.extend(columns.iter().map(|metric| metric.heading.clone()));
    let mut rows = table(&header, axes);
    let all = points.rows().div_ceil(seeds);
    for first in (0..points.rows()).step_by(seeds).take(MOST_ROWS) {
        let of_row: Vec<Point<'_>> =
            (first..points.rows().min(first + seeds)).map(|row| Point { table: points, row }).collect();
        let whole = points.flags("complete").is_some_and(|flags| of_row.iter().all(|p| flags.value(p.row)));
        let mut cells = spec.values(first);
        if let Some(last) = cells.last_mut().filter(|_| !whole) {
            last.push_str(" (incomplete)");
        }
        cells.extend(columns.iter().map(|metric| {
            let values = of_row.iter().map(|point| point.measure(metric)).collect::<Option<Vec<f64>>>();
            maybe(values.and_then(|values| mean(&values)))
        }));
        rows.add_row(cells);
    }
    match all.saturating_sub(MOST_ROWS) {
        0 => format!("{rows}\n"),
        more => format!("{rows}\n{more} more rows are in points.parquet\n"),
    }
}
