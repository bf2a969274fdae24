//! Long-haul THEMIS, Tables 1 and 2: mean slowdown of flows that stay in their datacentre and of flows that leave it.
//!
//! The paper gives three rows but no parameters; ours are those of its prototype. The prototype draws its traffic
//! without a seed, so we draw our own: five times, with the confidence interval of the mean.

use super::{
    BUCKETS, COMPLETE, Estimate, PROTOTYPE, inter, intra, pauses, seeded, shown, sides, unfairness,
    unfinished,
};
use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "long-haul",
    source: "THEMIS for long-haul RDMA (Liu et al.), Tables 1 and 2",
    about: "two datacentres 100 km apart, web search at full load: slowdown within and between them by congestion control",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const HPCC: &str = "nic.congestion.hpcc={compat=\"long-haul-prototype\"}";
const CLEAN: &str = "nic.congestion.hpcc={int-hops=10,max-stage=0}";
const HPCC_WITH_CNPS: &str = "nic.congestion.hpcc={int-hops=10,max-stage=0,cnp-cut=0.5}";
const FLAG: &str = "nic.cnp=\"flag\"";
const MIX: &str = "workload.0.poisson.mix.by=\"draw\"";
const SPRAYED: &str = "scheme.themis={}";
const NIC: &str = "nic.transport.nic-sr={}";

/// The paper's row: intra, inter, unfairness.
type Theirs = Option<[f64; 3]>;

/// Name, settings, and the paper's row.
const MODES: [(&str, &[&str], Theirs); 12] = [
    ("dcqcn", &[], Some([33.179, 1.7787, 18.654])),
    ("hpcc, as the prototype has it", &[HPCC], Some([56.946, 2.3561, 24.170])),
    ("dcqcn and THEMIS, the prototype's", &[PROTOTYPE], Some([12.389, 1.9116, 6.4810])),
    ("dcqcn and THEMIS, complete", &[COMPLETE], None),
    ("hpcc, T of each pair", &[CLEAN], None),
    ("hpcc, T of each pair, heeds CNPs", &[HPCC_WITH_CNPS, FLAG], None),
    ("hpcc, T of each pair, heeds CNPs, and THEMIS", &[HPCC_WITH_CNPS, FLAG, COMPLETE], None),
    ("swift", &["nic.congestion.swift={}"], None),
    ("sprayed by PSN, dcqcn", &[SPRAYED, NIC], None),
    ("sprayed by PSN, dcqcn and THEMIS", &[SPRAYED, NIC, COMPLETE], None),
    ("5 to 1 all the time: dcqcn", &[MIX], None),
    ("5 to 1 all the time: dcqcn and THEMIS", &[MIX, COMPLETE], None),
];

fn cases(quick: bool) -> Vec<Case> {
    let all = MODES.iter().flat_map(|(label, sets, _)| seeded(label, sets, if quick { 1 } else { 5 }));
    match quick {
        true => all.map(|case| case.and("workload.0.poisson.duration=2500us")).collect(),
        false => all.collect(),
    }
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (label, _, paper) in MODES {
        let measures: [(&str, super::Of); 3] =
            [("mean slowdown, intra", intra), ("mean slowdown, inter", inter), ("intra / inter", unfairness)];
        for (i, (metric, of)) in measures.into_iter().enumerate() {
            let estimate = runs.estimate(label, of);
            let ours = estimate.map(|e| e.mean);
            let note = match estimate {
                Some(Estimate { half, .. }) if half > 0.0 => {
                    format!("95 % interval: ± {}", text::number(half))
                }
                Some(_) => "one seed".to_owned(),
                None => "some flows have not finished".to_owned(),
            };
            rows.push(match paper {
                Some(paper) if !quick => Row::beside(paper[i], label, metric, "", ours, note),
                _ => Row::ours(label, metric, "", ours, note),
            });
        }
        let pfc = runs.estimate(label, pauses).map(|e| e.mean);
        rows.push(Row::ours(label, "PFC frames", "", pfc, "no number in the paper").tabled());
    }
    rows
}

/// A table of slowdowns by size, percentiles and counts.
fn more(runs: &Runs) -> String {
    let header: Vec<String> = ["", "flows"]
        .into_iter()
        .map(str::to_owned)
        .chain(BUCKETS.map(|(_, name)| name.to_owned()))
        .chain(["all", "p50", "p99", "PFC", "unfinished"].map(str::to_owned))
        .collect();
    let mut table = text::table(&header, 2);
    for (label, ..) in MODES {
        for (side, name) in ["intra", "inter"].into_iter().enumerate() {
            let over = |of: &dyn Fn(&super::Side) -> Option<f64>| {
                let values: Option<Vec<f64>> =
                    runs.all(label).into_iter().map(|run| of(&sides(run?)[side])).collect();
                Estimate::of(&values.unwrap_or_default())
            };
            let first = |text: String| if side == 0 { text } else { String::new() };
            let mut cells = vec![first(label.to_owned()), name.to_owned()];
            cells.extend(
                (0..BUCKETS.len()).map(|which| text::maybe(over(&|s| s.bucket(which)).map(|e| e.mean))),
            );
            cells.push(shown(over(&super::Side::mean)));
            cells.push(text::maybe(over(&|s| s.percentile(0.5)).map(|e| e.mean)));
            cells.push(text::maybe(over(&|s| s.percentile(0.99)).map(|e| e.mean)));
            cells.push(first(text::maybe(runs.estimate(label, pauses).map(|e| e.mean))));
            let left: f64 = runs.every(label).map(unfinished).sum();
            cells.push(first(text::number(left)));
            table.add_row(cells);
        }
    }
    format!(
        "Mean slowdown by size and over all flows (with the 95 % interval of the mean over seeds), percentiles,\n\
         PFC frames per run:\n{table}\n\nAssumptions, and the effect of each part: docs/long-haul.md\n"
    )
}
