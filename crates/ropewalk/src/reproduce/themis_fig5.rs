//! Themis (APNET'25), Fig. 5: collectives on 256 NICs against the timers of DCQCN.
//!
//! The paper prints how much Themis shortens the slowest group against adaptive routing: 15.6-75.3 %
//! (all-reduce) and 11.5-40.7 % (all-to-all). Of the pairs (T_I, T_D) on its axis only (900 us, 4 us) is in its
//! text; ours are those and the ones that the HPCC family of simulators ships, with more between.

use super::{Case, Experiment, Results, Row};
use crate::stats::extremes;

/// All-reduce.
pub(super) const ALL_REDUCE: Experiment = Experiment {
    name: "themis-fig5-allreduce",
    source: "Themis (APNET'25), Fig. 5 (all-reduce)",
    about: "16 groups of 16 NICs reduce 300 MB: the slowest group, over the timers of DCQCN",
    cases: |quick| cases("themis-fig5-allreduce", "all-reduce", quick),
    rows: |results, quick| rows(results, (15.6, 75.3), quick),
    more: |_| String::new(),
};

/// All-to-all.
pub(super) const ALL_TO_ALL: Experiment = Experiment {
    name: "themis-fig5-alltoall",
    source: "Themis (APNET'25), Fig. 5 (all-to-all)",
    about: "16 groups of 16 NICs exchange 300 MB: the slowest group, over the timers of DCQCN",
    cases: |quick| cases("themis-fig5-alltoall", "all-to-all", quick),
    rows: |results, quick| rows(results, (11.5, 40.7), quick),
    more: |_| String::new(),
};

const SCHEMES: [&str; 3] = ["ecmp", "ar", "themis"];
/// (T_I, T_D) in us.
const TIMERS: [(u32, u32); 7] = [(900, 4), (300, 4), (100, 4), (10, 4), (55, 50), (10, 50), (10, 200)];
const QPS: [(&str, &str); 2] = [("persistent", "persistent QPs"), ("per-message", "QP per message")];

fn label(scheme: &str, (increase, decrease): (u32, u32), qps: &str) -> String {
    format!("({increase}, {decrease}) {qps}, {scheme}")
}

fn cases(scenario: &'static str, job: &str, quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (qp, qps) in QPS {
        for timers @ (increase, decrease) in TIMERS {
            for scheme in SCHEMES {
                let case = Case::new(label(scheme, timers, qps), scenario, &[])
                    .and(format!("scheme.{scheme}={{}}"))
                    .and(format!("nic.congestion.dcqcn.rate-increase-timer={increase}us"))
                    .and(format!("nic.congestion.dcqcn.rate-decrease-interval={decrease}us"))
                    .and(format!("workload.{job}.qp={qp}"));
                let small = ["leaves=4", "spines=4", "hosts-per-leaf=4"];
                let shrink = |case: Case| {
                    let case =
                        small.iter().fold(case, |case, s| case.and(format!("topology.leaf-spine.{s}")));
                    case.and(format!("workload.{job}.bytes=12MB"))
                };
                cases.push(if quick { shrink(case) } else { case });
            }
        }
    }
    cases
}

fn rows(results: &Results, paper: (f64, f64), quick: bool) -> Vec<Row> {
    let slowest = |label: &str| results.get(label)?.slowest_group_ms();
    let note = if quick {
        "4 x 4 x 4, 12 MB in place of 16 x 16 x 16, 300 MB; expected: themis shortest"
    } else {
        "expected: themis shortest"
    };
    let mut rows = Vec::new();
    for (_, qps) in QPS {
        let mut reductions = Vec::new();
        for timers in TIMERS {
            for scheme in SCHEMES {
                let label = label(scheme, timers, qps);
                rows.push(Row::ours(&label, "slowest group", "ms", slowest(&label), note));
            }
            let [ar, themis] = ["ar", "themis"].map(|scheme| slowest(&label(scheme, timers, qps)));
            let reduction = ar.zip(themis).map(|(ar, themis)| 100.0 * (1.0 - themis / ar));
            reductions.extend(reduction);
            let case = format!("({}, {}) {qps}, themis / ar", timers.0, timers.1);
            rows.push(Row::ours(&case, "shorter by", "%", reduction, "expected: within the range below"));
        }
        let (least, most) = extremes(&reductions).unzip();
        let case = format!("all, {qps}, themis / ar");
        rows.push(Row::beside(paper.0, &case, "shorter by at least", "%", least, "least over our timers"));
        rows.push(Row::beside(paper.1, &case, "shorter by at most", "%", most, "most over our timers"));
    }
    rows
}
