//! DLBF, evaluation: an all-reduce of 64 accelerators beside five persistent flows under ECMP.
//!
//! The paper's claims: ECMP and random spraying have 1.1 to 1.7 times DLBF's mean FCT slowdown, and 1.2 to 3.4 times
//! its P99 (3.3 at 1 MB). Compared with ECMP, randomly sprayed flows send 15 to 25 % slower, and DLBF's flows 10 to 20
//! % faster. The paper gives neither the placement nor most parameters, so every point is a mean over placements that
//! the seed draws. Themis, REPS and adaptive routing on the same fabric are our addition.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use lab::Run;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dlbf",
    source: "DLBF, evaluation",
    about: "all-reduce beside persistent ECMP flows: FCT slowdown, receiver buffers and sending rate over message sizes",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const DLBF: &str = "dlbf";

/// Schemes of the all-reduce: name and setting.
const SCHEMES: [(&str, &str); 9] = [
    ("ecmp", "scheme.ecmp={}"),
    ("rps-nic", "scheme.rps-nic={}"),
    (DLBF, "scheme.dlbf={}"),
    ("dlbf, no duplicates", "scheme.dlbf={duplicates=false}"),
    ("dlbf, no notifications", "scheme.dlbf={notifications=false}"),
    ("dlbf, marked paths stay out", "scheme.dlbf={recovers=false}"),
    ("themis", "scheme.themis={}"),
    ("reps", "scheme.reps={}"),
    ("ar", "scheme.ar={}"),
];

fn sizes(quick: bool) -> &'static [&'static str] {
    if quick { &["1MB", "8MB"] } else { &["1MB", "2MB", "4MB", "8MB", "16MB", "32MB"] }
}

/// Seeds of the placements; our choice.
fn seeds(quick: bool) -> std::ops::RangeInclusive<u32> {
    if quick { 1..=1 } else { 1..=3 }
}

fn label(scheme: &str, size: &str, seed: u32) -> String {
    format!("{scheme}, {size}, seed {seed}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in sizes(quick) {
        for (scheme, set) in SCHEMES {
            for seed in seeds(quick) {
                let case = Case::new(label(scheme, size, seed), "dlbf", &[set]);
                cases.push(case.and(format!("workload.all-reduce.bytes={size}")).and(format!("seed={seed}")));
            }
        }
    }
    cases
}

/// Metrics as means over placements.
struct Measure<'a> {
    runs: &'a Runs,
    quick: bool,
}

impl Measure<'_> {
    /// The mean over placements; `None` unless all their runs are complete.
    fn mean(&self, scheme: &str, size: &str, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let all: Option<Vec<f64>> =
            seeds(self.quick).map(|seed| of(self.runs.get(&label(scheme, size, seed))?)).collect();
        let all = all?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    }

    fn slowdown(&self, scheme: &str, size: &str) -> Option<f64> {
        self.mean(scheme, size, |run| Some(run.summary.classes.get("foreground")?.slowdown?.mean))
    }

    fn tail(&self, scheme: &str, size: &str) -> Option<f64> {
        self.mean(scheme, size, |run| Some(run.summary.classes.get("foreground")?.slowdown?.p99))
    }

    fn rate(&self, scheme: &str, size: &str) -> Option<f64> {
        self.mean(scheme, size, |run| run.summary.sending_rate_fraction.mean)
    }

    fn held(&self, scheme: &str, size: &str) -> Option<f64> {
        let most = |run: &Run| run.summary.packets.reorder_buffer.as_ref().map_or(0, |held| held.max);
        self.mean(scheme, size, |run| Some(most(run) as f64))
    }

    fn nacks(&self, scheme: &str, size: &str) -> Option<f64> {
        self.mean(scheme, size, |run| Some(run.summary.control.nack as f64))
    }

    fn completion(&self, scheme: &str, size: &str) -> Option<f64> {
        self.mean(scheme, size, |run| run.slowest_group_ms().map(|ms| ms * 1000.0))
    }
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let m = Measure { runs, quick };
    let mut rows = Vec::new();
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    for size in sizes(quick) {
        for other in ["ecmp", "rps-nic"] {
            let case = format!("{size}, {other} / dlbf");
            let mean = ratio(m.slowdown(other, size), m.slowdown(DLBF, size));
            rows.push(Row::ours(&case, "mean FCT slowdown", "x", mean, "the paper: 1.1 to 1.7"));
            let tail = ratio(m.tail(other, size), m.tail(DLBF, size));
            rows.push(Row::ours(&case, "P99 FCT slowdown", "x", tail, "the paper: 1.2 to 3.4"));
        }
        for (scheme, note) in [("rps-nic", "the paper: -15 to -25 %"), (DLBF, "the paper: +10 to +20 %")] {
            let more = ratio(m.rate(scheme, size), m.rate("ecmp", size)).map(|r| 100.0 * (r - 1.0));
            rows.push(Row::ours(&format!("{size}, {scheme}"), "sending rate above ECMP's", "%", more, note));
        }
    }
    for size in sizes(quick) {
        for (scheme, _) in SCHEMES {
            let case = format!("{scheme}, {size}");
            let note = "no figure in the paper";
            for (metric, unit, value) in [
                ("mean FCT slowdown", "", m.slowdown(scheme, size)),
                ("P99 FCT slowdown", "", m.tail(scheme, size)),
                ("most packets held", "packets", m.held(scheme, size)),
                ("sending rate / line rate", "", m.rate(scheme, size)),
                ("NACKs", "", m.nacks(scheme, size)),
                ("completion", "us", m.completion(scheme, size)),
            ] {
                rows.push(Row::ours(&case, metric, unit, value, note).tabled());
            }
        }
    }
    rows
}

/// A table of every scheme at every size.
fn more(runs: &Runs) -> String {
    let has = |size: &str| runs.labels().any(|l| l == label("ecmp", size, 1));
    let quick = !has("32MB");
    let m = Measure { runs, quick };
    let header = ["", "all-reduce", "mean", "P99", "held", "NACKs", "rate", "done us"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for size in sizes(quick) {
        for (scheme, _) in SCHEMES {
            let cell = |x: Option<f64>| text::maybe(x);
            table.add_row([
                scheme.to_owned(),
                (*size).to_owned(),
                cell(m.slowdown(scheme, size)),
                cell(m.tail(scheme, size)),
                cell(m.held(scheme, size)),
                cell(m.nacks(scheme, size)),
                cell(m.rate(scheme, size)),
                cell(m.completion(scheme, size)),
            ]);
        }
    }
    format!(
        "FCT slowdown (mean and P99 over the flows, which are steps of the ring), most packets that a receiver held for\n\
         one queue pair, NACKs, sending rate over line rate, completion time; means over placements:\n{table}\n\n\
         Assumptions, and the effect of each mechanism: docs/dlbf.md\n"
    )
}
