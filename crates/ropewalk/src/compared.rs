//! The table of a comparison: a row per scheme.

use lab::execute::Run;
use results::stats::{extremes, mean, share};
use results::text::{maybe, table};

type Measure = fn(&Run) -> Option<f64>;

/// Columns: two lines of header, and what they show.
const COLUMNS: [(&str, Measure); 9] = [
    ("slowest\ngroup us", |r| r.slowest_group_ms().map(|ms| ms * 1000.0)),
    ("FCT us\np50", |r| r.summary.flows.fct_us.map(|s| s.p50)),
    ("FCT us\np99", |r| r.summary.flows.fct_us.map(|s| s.p99)),
    ("slowdown\np99", |r| r.summary.flows.slowdown.map(|s| s.p99)),
    ("goodput\nGb/s", |r| r.summary.goodput_gbps.mean),
    ("retx\n%", |r| Some(100.0 * share(r.summary.packets.retransmitted, r.summary.packets.sent))),
    ("spurious\n%", |r| Some(100.0 * share(r.summary.packets.spurious, r.summary.packets.sent))),
    ("ooo\n%", |r| Some(100.0 * share(r.summary.packets.out_of_order, r.summary.packets.sent))),
    ("pauses\n", |r| Some(r.summary.control.pause as f64)),
];

/// The table. A row holds the runs of one scheme; with several seeds two more lines below it show the least and the
/// most.
pub fn of(runs: &[Run]) -> String {
    let mut schemes: Vec<&str> = Vec::new();
    for run in runs {
        if !schemes.contains(&run.summary.scheme.as_str()) {
            schemes.push(&run.summary.scheme);
        }
    }
    let mut header = vec!["scheme\n".to_owned()];
    header.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    let mut rows = table(&header, 1);
    for scheme in schemes {
        let of_scheme: Vec<&Run> = runs.iter().filter(|r| r.summary.scheme == scheme).collect();
        let whole = of_scheme.iter().all(|r| r.summary.complete);
        let name = if whole { scheme.to_owned() } else { format!("{scheme} (incomplete)") };
        for (label, pick) in LINES {
            if of_scheme.len() > 1 || label.is_empty() {
                let label = if label.is_empty() { name.clone() } else { format!("  {label}") };
                let cells = COLUMNS.iter().map(|(_, measure)| cell(&of_scheme, *measure, pick));
                rows.add_row(std::iter::once(label).chain(cells));
            }
        }
    }
    format!("{rows}\n")
}

type Pick = fn(&[f64]) -> Option<f64>;

/// Lines of a row.
const LINES: [(&str, Pick); 3] = [
    ("", mean),
    ("least", |values| extremes(values).map(|(least, _)| least)),
    ("most", |values| extremes(values).map(|(_, most)| most)),
];

fn cell(runs: &[&Run], measure: Measure, pick: Pick) -> String {
    let values = runs.iter().map(|run| measure(run)).collect::<Option<Vec<f64>>>();
    maybe(values.and_then(|values| pick(&values)))
}
