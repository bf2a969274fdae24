//! The table of a comparison, one row per scheme.

use lab::execute::Run;
use results::Metric;
use results::metrics::Shown;
use results::stats::{extremes, margin, mean};
use results::text::{maybe, table};

/// The columns of metrics: the slowest group first, then all metrics that a comparison shows and these runs have. If one job has steps, its step and
/// exposed communication stand in place of the slowest group. Where requests are served, their times stand in place of those of flows.
fn columns(runs: &[Run]) -> Vec<Metric> {
    let told = |metric: &&Metric| metric.is_in(runs.iter().map(|run| &run.summary));
    if runs.iter().any(|run| run.summary.serving.is_some()) {
        let of_flows = |metric: &&Metric| {
            ["flows.", "goodput_gbps.", "packets.spurious"].iter().any(|part| metric.key.starts_with(part))
        };
        return Metric::shown_in(Shown::Comparison)
            .filter(|metric| told(metric) && !of_flows(metric))
            .cloned()
            .collect();
    }
    let first = step(runs).unwrap_or_else(|| vec![Metric::slowest_group().clone()]);
    first.into_iter().chain(Metric::shown_in(Shown::Comparison).filter(told).cloned()).collect()
}

/// The columns of the job with steps, if there is exactly one.
fn step(runs: &[Run]) -> Option<Vec<Metric>> {
    let numbers = runs.first()?.summary.numbers();
    let of = |end: &str| {
        let mut found = numbers.iter().map(|(metric, _)| metric).filter(|metric| metric.key.ends_with(end));
        found.next().filter(|_| found.next().is_none()).cloned()
    };
    Some(vec![of(".steps.time_us")?, of(".steps.exposed_us")?])
}

/// The value of a column for a run.
fn measure(metric: &Metric, run: &Run) -> Option<f64> {
    if metric == Metric::slowest_group() {
        return run.slowest_group_ms().map(|ms| ms * 1000.0);
    }
    metric.in_table(|key| run.summary.number(key))
}

/// The table. A row holds the means over the runs of one scheme; where a job has steps, the fastest scheme comes first.
/// With several seeds, three more lines below it show half of the 95 % confidence interval, the least and the most.
pub fn of(runs: &[Run]) -> String {
    let mut schemes: Vec<&str> = Vec::new();
    for run in runs {
        if !schemes.contains(&run.summary.scheme.as_str()) {
            schemes.push(&run.summary.scheme);
        }
    }
    let columns = columns(runs);
    if let Some(time) = step(runs).and_then(|step| step.into_iter().next()) {
        let mean_of = |scheme: &str| {
            let of_scheme = runs.iter().filter(|run| run.summary.scheme == scheme);
            mean(&of_scheme.filter_map(|run| measure(&time, run)).collect::<Vec<_>>())
                .unwrap_or(f64::INFINITY)
        };
        schemes.sort_by(|a, b| mean_of(a).total_cmp(&mean_of(b)));
    }
    let mut header = vec!["scheme\n".to_owned()];
    header.extend(columns.iter().map(|metric| metric.heading.clone()));
    let mut rows = table(&header, 1);
    for scheme in schemes {
        let of_scheme: Vec<&Run> = runs.iter().filter(|r| r.summary.scheme == scheme).collect();
        let whole = of_scheme.iter().all(|r| r.summary.complete);
        let name = if whole { scheme.to_owned() } else { format!("{scheme} (incomplete)") };
        for (label, pick) in LINES {
            if of_scheme.len() > 1 || label.is_empty() {
                let label = if label.is_empty() { name.clone() } else { format!("  {label}") };
                let cells = columns.iter().map(|metric| cell(&of_scheme, metric, pick));
                rows.add_row(std::iter::once(label).chain(cells));
            }
        }
    }
    format!("{rows}\n")
}

type Pick = fn(&[f64]) -> Option<f64>;

/// Lines of a row: label and statistic.
const LINES: [(&str, Pick); 4] = [
    ("", mean),
    ("± 95 %", margin),
    ("least", |values| extremes(values).map(|(least, _)| least)),
    ("most", |values| extremes(values).map(|(_, most)| most)),
];

fn cell(runs: &[&Run], metric: &Metric, pick: Pick) -> String {
    let values = runs.iter().map(|run| measure(metric, run)).collect::<Option<Vec<f64>>>();
    maybe(values.and_then(|values| pick(&values)))
}
