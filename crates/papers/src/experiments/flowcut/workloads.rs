//! Flowcut, Figures 9, 10 and 11 and Table IV: slow links, an all-to-all, and flow sizes of data mining and web search.
//!
//! The paper's claims: with 1 % of links at a tenth of their rate, Flowcut's FCT is up to 5 times shorter than ECMP's.
//! Under spraying, about half of the packets of data mining traffic are out of order. Draining takes 10.5 % of the
//! time under failures, 6.3 % in the all-to-all and 5.2 % with web search.

use super::{SCENARIO, beyond_us, drained, mean_us, small, tail_us};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-workloads",
    source: "Flowcut switching (arXiv 2506.21406), Figures 9, 10 and 11, Table IV",
    about: "slow links, all-to-all, data mining on a 2:1 fabric and web search on a fat tree of 1024 hosts",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const NIC: &str = "flowcut";

const SCHEMES: [(&str, &str); 9] = [
    ("ecmp", "scheme.ecmp={}"),
    ("rps", "scheme.rps={}"),
    ("ar", "scheme.ar={}"),
    ("flowcell", "scheme.flowcell={}"),
    ("flowlet, best", "scheme.flowlet-nic"),
    ("flowlet, least disorder", "scheme.flowlet-nic"),
    ("conga", "scheme.conga={}"),
    ("themis", "scheme.themis={}"),
    (NIC, "scheme.flowcut={}"),
];

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
}

/// In the all-to-all each host sends 1 MiB in the paper and 0.9 MB in the artefact; ours sends 1 MiB to all other
/// hosts, 16 at a time. Data mining runs with half of the uplinks. Loads and durations of the last two are our choice,
/// because the paper gives none.
const SETTINGS: [Setting; 4] = [
    Setting {
        name: "slow links",
        full: &["failure=[{random=0.01,rate=0.1}]"],
        quick: &["failure=[{random=0.01,rate=0.1}]", "workload.0.permutation.bytes=\"1MiB\""],
        gaps: ["3550ns", "19550ns"],
        own_gaps: true,
        drained: 10.5,
    },
    Setting {
        name: "all-to-all",
        full: &["workload=[{all-to-all={bytes=\"1MiB\",groups=\"all\",window=16}}]"],
        quick: &["workload=[{all-to-all={bytes=\"1MiB\",groups=\"all\",window=16}}]"],
        gaps: ["1590ns", "82080ns"],
        own_gaps: true,
        drained: 6.3,
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
    },
];

fn label(scheme: &str, setting: &str) -> String {
    format!("{setting}: {scheme}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in &SETTINGS {
        for (scheme, set) in SCHEMES {
            let set = match scheme {
                "flowlet, best" => format!("{set}={{gap=\"{}\"}}", setting.gaps[0]),
                "flowlet, least disorder" => format!("{set}={{gap=\"{}\"}}", setting.gaps[1]),
                _ => set.to_owned(),
            };
            let case = Case::new(label(scheme, setting.name), SCENARIO, &[&set]);
            let sets = if quick { setting.quick } else { setting.full };
            let case = sets.iter().fold(case, |case, set| case.and(*set));
            cases.push(if quick { small(case) } else { case });
        }
    }
    cases
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        let mine = label(NIC, setting.name);
        for (scheme, _) in SCHEMES {
            let label = label(scheme, setting.name);
            let none = "the paper gives a curve without numbers";
            for (metric, unit, value) in [
                ("mean FCT", "us", runs.measure(&label, mean_us)),
                ("P99 FCT", "us", runs.measure(&label, tail_us)),
                ("mean beyond P99", "us", runs.measure(&label, beyond_us)),
            ] {
                rows.push(Row::ours(&label, metric, unit, value, none).tabled());
            }
            let claim = match scheme {
                NIC => "the guarantee: 0",
                "rps" if setting.name.starts_with("data mining") => "the paper: about 50 %",
                "flowlet, best" | "flowlet, least disorder" if !setting.own_gaps => {
                    "gap of the all-to-all; none is published for this setting"
                }
                "flowlet, best" => "the paper: less than 20 %",
                "flowlet, least disorder" => "the paper: less than 2 %",
                _ => none,
            };
            rows.push(Row::ours(
                &label,
                "out of order",
                "% of accepted",
                runs.measure(&label, out_of_order_of_accepted),
                claim,
            ));
        }
        for other in ["ecmp", "flowlet, least disorder"] {
            let claim = match (setting.name, other) {
                ("slow links", "ecmp") => "the paper: up to -80 % (5 times shorter)",
                (_, "ecmp") => "the paper: -33 to -50 %",
                _ => "the paper: up to -40 %",
            };
            let other = label(other, setting.name);
            for (metric, what) in [("mean FCT", mean_us as super::Of), ("P99 FCT", tail_us)] {
                let off = runs.more_than(&other, &mine, what);
                let metric = format!("{metric} against {}", other.split(": ").last().unwrap_or_default());
                rows.push(Row::ours(&mine, metric, "%", off, claim));
            }
        }
        let held = runs.measure(&mine, drained);
        rows.push(match setting.drained.is_nan() {
            true => Row::ours(&mine, "time spent draining", "%", held, "not in Table IV"),
            false => Row::beside(setting.drained, &mine, "time spent draining", "%", held, "Table IV"),
        });
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header = ["", "mean us", "P99 us", "beyond P99", "out of order %"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for setting in &SETTINGS {
        for (scheme, _) in SCHEMES {
            let label = label(scheme, setting.name);
            let cell = |what| text::maybe(runs.measure(&label, what));
            table.add_row([
                label.clone(),
                cell(mean_us),
                cell(tail_us),
                cell(beyond_us),
                cell(out_of_order_of_accepted),
            ]);
        }
    }
    format!(
        "FCT by scheme; \"beyond P99\" is the mean of all values above the P99, which the artefact plots as P99:\n{table}\n"
    )
}
