//! Flowcut, Figures 9 and 11 and Table IV: slow links, and flow sizes of data mining and web search, on 1024 hosts.
//!
//! The paper's claims: with 1 % of links at a tenth of their rate, Flowcut's FCT is up to 5 times shorter than ECMP's.
//! Under spraying, about half of the packets of data mining traffic are out of order. Draining takes 10.5 % of the
//! time under failures and 5.2 % with web search. The all-to-all is in [`super::artefact`]: the artefact has 900 kB per
//! pair of 128 hosts, which would be a terabyte among 1024.

use super::{DRAINING, SCENARIO, SEEDS, beyond_us, mean_us, row, row_beside, seeded, small};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-workloads",
    source: "Flowcut switching (arXiv 2506.21406), Figures 9 and 11, Table IV",
    about: "slow links, data mining on a 2:1 fabric and web search on a fat tree of 1024 hosts",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const NIC: &str = "flowcut";

const SCHEMES: [&str; 5] = ["ecmp", "rps", "flowlet, best", "flowlet, least disorder", NIC];

struct Setting {
    name: &'static str,
    full: &'static [&'static str],
    quick: &'static [&'static str],
    /// Flowlet gaps for the best FCT and for the least reordering.
    gaps: [&'static str; 2],
    /// True if the artefact gives the gaps for this setting. Otherwise the gaps are those of its all-to-all.
    own_gaps: bool,
    /// Time spent draining by Table IV, percent; NaN if the table lacks the setting.
    drained: f64,
    claim: &'static str,
}

/// Data mining runs with half of the uplinks. Loads and durations of the last two are our choice, because the paper gives
/// none.
const SETTINGS: [Setting; 3] = [
    Setting {
        name: "slow links",
        full: &["failure=[{random=0.01,rate=0.1}]"],
        quick: &["failure=[{random=0.01,rate=0.1}]", "workload.0.permutation.bytes=\"1MiB\""],
        gaps: ["3550ns", "19550ns"],
        own_gaps: true,
        drained: 10.5,
        claim: "the paper: up to -80 % (5 times shorter)",
    },
    Setting {
        name: "data mining, 2:1",
        full: &[
            "topology.fat-tree.edge-oversubscription=\"2:1\"",
            "workload=[{poisson={sizes=\"data-mining\",clamp={max=\"30MB\"},load=0.4,duration=\"2ms\",peers=\"cross-pod\"}}]",
        ],
        quick: &[
            "topology.fat-tree.edge-oversubscription=\"2:1\"",
            "workload=[{poisson={sizes=\"data-mining\",clamp={max=\"3MB\"},load=0.4,duration=\"300us\",peers=\"cross-pod\"}}]",
        ],
        gaps: ["1590ns", "82080ns"],
        own_gaps: false,
        drained: f64::NAN,
        claim: NONE,
    },
    Setting {
        name: "web search",
        full: &["workload=[{poisson={sizes=\"web-search\",load=0.8,duration=\"1ms\",peers=\"cross-pod\"}}]"],
        quick: &[
            "workload=[{poisson={sizes=\"web-search\",clamp={max=\"3MB\"},load=0.8,duration=\"200us\",peers=\"cross-pod\"}}]",
        ],
        gaps: ["1590ns", "82080ns"],
        own_gaps: false,
        drained: 5.2,
        claim: NONE,
    },
];

const NONE: &str = "the paper gives a curve without numbers";

fn label(scheme: &str, setting: &str) -> String {
    format!("{setting}: {scheme}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in &SETTINGS {
        for scheme in SCHEMES {
            let set = match scheme {
                "flowlet, best" => format!("scheme.flowlet-nic={{gap=\"{}\"}}", setting.gaps[0]),
                "flowlet, least disorder" => format!("scheme.flowlet-nic={{gap=\"{}\"}}", setting.gaps[1]),
                _ => format!("scheme.{scheme}={{}}"),
            };
            let case = Case::new(label(scheme, setting.name), SCENARIO, &[&set]);
            let sets = if quick { setting.quick } else { setting.full };
            let case = sets.iter().fold(case, |case, set| case.and(*set));
            match quick {
                true => cases.push(small(case)),
                false => cases.extend(seeded(&case, SEEDS)),
            }
        }
    }
    cases
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        let mine = label(NIC, setting.name);
        for scheme in SCHEMES {
            let label = label(scheme, setting.name);
            for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
                rows.push(row(&label, metric, "us", &over_seeds(runs, &label, what), NONE).tabled());
            }
            let claim = match scheme {
                NIC => "the guarantee: 0",
                "rps" if setting.name.starts_with("data mining") => "the paper: about 50 %",
                "flowlet, best" | "flowlet, least disorder" if !setting.own_gaps => {
                    "gap of the all-to-all; none is published for this setting"
                }
                "flowlet, best" => "the paper: less than 20 %",
                "flowlet, least disorder" => "the paper: less than 2 %",
                _ => NONE,
            };
            let late = over_seeds(runs, &label, out_of_order_of_accepted);
            rows.push(row(&label, "out of order", "% of accepted", &late, claim));
        }
        for (other, claim) in [("ecmp", setting.claim), ("flowlet, least disorder", "the paper: up to -40 %")]
        {
            for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
                let off = runs.more_than(&label(other, setting.name), &mine, what);
                rows.push(row(&mine, format!("{metric} against {other}"), "%", &off, claim));
            }
        }
        for (metric, what) in DRAINING {
            let held = over_seeds(runs, &mine, what);
            rows.push(match setting.drained.is_nan() {
                true => row(&mine, metric, "%", &held, "not in Table IV"),
                false => row_beside(setting.drained, &mine, metric, "%", &held, "Table IV"),
            });
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header = ["", "mean us", "beyond P99 us", "out of order %"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for setting in &SETTINGS {
        for scheme in SCHEMES {
            let label = label(scheme, setting.name);
            let cell = |what: Metric| ranged(&over_seeds(runs, &label, what));
            table.add_row([label.clone(), cell(mean_us), cell(beyond_us), cell(out_of_order_of_accepted)]);
        }
    }
    format!(
        "FCT by scheme; \"beyond P99\" is the mean of the FCTs above the P99, which the artefact plots as the tail. Means over \
         the seeds, with the range:\n{table}\n"
    )
}
