//! DLBF, motivation: the effect of flows under ECMP on sprayed flows beside them.
//!
//! Three conditions: all flows sprayed; the sprayed foreground alone; the sprayed foreground beside a background under
//! ECMP. Message sizes vary with 20 background flows, and the number of background flows varies with messages of 512
//! kB. The paper shows curves without numbers: reordering and the packets that receivers hold should grow with the
//! background under ECMP.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use lab::Run;
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

fn by_size(condition: &str, size: &str) -> String {
    format!("{condition}, {size}")
}

fn by_load(condition: &str, flows: u32) -> String {
    format!("{condition}, {flows} background flows")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (condition, set) in CONDITIONS {
        for size in sizes(quick) {
            let mut case = Case::new(by_size(condition, size), "dlbf-motivation", set);
            if condition == ALONE {
                case = case.and(format!("workload=[{EXPERTS}]"));
            }
            cases.push(case.and(format!("workload.experts.bytes={size}")));
        }
        if condition == ALONE {
            continue;
        }
        for &flows in loads(quick) {
            let case = Case::new(by_load(condition, flows), "dlbf-motivation", set);
            cases.push(case.and(format!("workload.noise.pairs.count={flows}")));
        }
    }
    cases
}

/// The metrics of a run.
struct Metrics {
    out_of_order: f64,
    held: f64,
    nacks: f64,
    rate: Option<f64>,
    slowdown: Option<f64>,
}

fn metrics(run: &Run) -> Metrics {
    let s = &run.summary;
    Metrics {
        out_of_order: s.packets.out_of_order as f64,
        held: s.packets.reorder_buffer.as_ref().map_or(0.0, |held| held.max as f64),
        nacks: s.control.nack as f64,
        rate: s.sending_rate_fraction.mean.map(|rate| 100.0 * rate),
        slowdown: s.classes.get("foreground").and_then(|c| Some(c.slowdown?.mean)),
    }
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for label in runs.labels() {
        let metrics = runs.get(label).map(metrics);
        let of = |part: fn(&Metrics) -> Option<f64>| metrics.as_ref().and_then(part);
        let note =
            if label.starts_with(BESIDE_ECMP) { "expected: the most reordering" } else { "expected: less" };
        for (metric, unit, value) in [
            ("out of order", "packets", of(|s| Some(s.out_of_order))),
            ("most packets held", "packets", of(|s| Some(s.held))),
            ("NACKs", "", of(|s| Some(s.nacks))),
            ("sending rate / line rate", "%", of(|s| s.rate)),
            ("mean FCT slowdown", "", of(|s| s.slowdown)),
        ] {
            rows.push(Row::ours(label, metric, unit, value, note).tabled());
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header = ["", "out of order", "most held", "NACKs", "rate %", "mean slowdown"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for label in runs.labels() {
        let metrics = runs.get(label).map(metrics);
        let of = |part: fn(&Metrics) -> Option<f64>| text::maybe(metrics.as_ref().and_then(part));
        table.add_row([
            label.to_owned(),
            of(|s| Some(s.out_of_order)),
            of(|s| Some(s.held)),
            of(|s| Some(s.nacks)),
            of(|s| s.rate),
            of(|s| s.slowdown),
        ]);
    }
    format!(
        "Packets out of order (background included), most packets that a receiver held for one queue pair, NACKs; the\n\
         foreground's sending rate over line rate and FCT slowdown. The background has 20 flows unless its number of\n\
         flows is given; messages have 512 kB unless their size is given:\n{table}\n"
    )
}
