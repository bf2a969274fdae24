//! DLBF, motivation: the effect of flows under ECMP on sprayed flows beside them.
//!
//! Three conditions: all flows sprayed; the sprayed foreground alone; the sprayed foreground beside a background under
//! ECMP. Message sizes vary with 20 background flows, and the number of background flows varies with messages of 512
//! kB. The paper shows curves without numbers: reordering and the packets that receivers hold should grow with the
//! background under ECMP. The seed draws the hosts; every number is a mean over three seeds.
//!
//! The paper also samples sending rates. Runs record bytes and not DCQCN's rate, so the experiment leaves them out.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use results::stats::mean;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dlbf-motivation",
    source: "DLBF, motivation",
    about: "sprayed incasts beside ECMP flows: packets out of order over message size and background load",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// Conditions: name and settings.
const CONDITIONS: [(&str, &[&str]); 3] = [
    ("all sprayed", &["class.background.scheme.rps-nic={}"]),
    ("foreground alone", &[]),
    ("beside ECMP", &[]),
];
const ALONE: &str = CONDITIONS[1].0;
const BESIDE_ECMP: &str = CONDITIONS[2].0;

/// The foreground's workload, for the condition without background.
const EXPERTS: &str =
    "{ name = \"experts\", fan-in = { receivers = 8, senders = 32, hosts = { take = 264 } } }";

fn sizes(quick: bool) -> &'static [&'static str] {
    if quick {
        &["64kB", "512kB"]
    } else {
        &["16kB", "32kB", "64kB", "128kB", "256kB", "512kB", "1MB", "2MB", "4MB"]
    }
}

/// Numbers of background flows at 512 kB. 28 is the most that 56 hosts allow.
fn loads(quick: bool) -> &'static [u32] {
    if quick { &[5] } else { &[5, 10, 15, 25, 28] }
}

/// Seeds of the hosts' places; our choice.
fn seeds(quick: bool) -> std::ops::RangeInclusive<u32> {
    if quick { 1..=1 } else { 1..=3 }
}

fn by_size(condition: &str, size: &str) -> String {
    format!("{condition}, {size}")
}

fn by_load(condition: &str, flows: u32) -> String {
    format!("{condition}, {flows} background flows")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut push =
        |case: Case| cases.extend(seeds(quick).map(|seed| case.clone().and(format!("seed={seed}"))));
    for (condition, set) in CONDITIONS {
        for size in sizes(quick) {
            let mut case = Case::new(by_size(condition, size), "dlbf-motivation", set);
            if condition == ALONE {
                case = case.and(format!("workload=[{EXPERTS}]"));
            }
            push(case.and(format!("workload.experts.bytes={size}")));
        }
        if condition == ALONE {
            continue;
        }
        for &flows in loads(quick) {
            let case = Case::new(by_load(condition, flows), "dlbf-motivation", set);
            push(case.and(format!("workload.noise.pairs.count={flows}")));
        }
    }
    cases
}

/// Metrics: name, unit, and value of a run.
const METRICS: [(&str, &str, Metric); 4] = [
    ("out of order", "packets", |run| Some(run.summary.packets.out_of_order as f64)),
    ("most packets held", "packets", |run| {
        Some(run.summary.packets.reorder_buffer.as_ref().map_or(0.0, |held| held.max as f64))
    }),
    ("NACKs", "", |run| Some(run.summary.control.nack as f64)),
    ("mean FCT slowdown", "", |run| Some(run.summary.classes.get("foreground")?.slowdown?.mean)),
];

/// Labels of the runs, each once, in the order of the cases.
fn labels(runs: &Runs) -> Vec<&str> {
    let mut labels: Vec<&str> = runs.labels().collect();
    labels.dedup();
    labels
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for label in labels(runs) {
        let note =
            if label.starts_with(BESIDE_ECMP) { "expected: the most reordering" } else { "expected: less" };
        for (metric, unit, of) in METRICS {
            let values = over_seeds(runs, label, of);
            let note = format!("{note}; over seeds {}", ranged(&values));
            rows.push(Row::ours(label, metric, unit, mean(&values), note).tabled());
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header = ["", "out of order", "most held", "NACKs", "mean slowdown"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for label in labels(runs) {
        let mut row = vec![label.to_owned()];
        row.extend(METRICS.map(|(_, _, of)| ranged(&over_seeds(runs, label, of))));
        table.add_row(row);
    }
    format!(
        "Packets out of order (background included), most packets that a receiver held for one queue pair, NACKs; the\n\
         foreground's FCT slowdown; means over seeds, with the range. The background has 20 flows unless its number of\n\
         flows is given; messages have 512 kB unless their size is given:\n{table}\n"
    )
}
