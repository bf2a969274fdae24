//! Flowcut, Figures 13, 14 and 15: Dragonflies of 1024 and 2048 hosts.
//!
//! The artefact's stored runs (enterprise sizes, 6144 messages) have mean / P99 / max FCT of 20.4 / 197 / 555 us for
//! minimal routing and 20.6 / 176 / 367 us for Flowcut at alpha 0.7, ratio 5. Some 0.5 % of its Flowcut packets are out
//! of order; ours must have none. Figure 15 is measured on a Slingshot machine; we simulate its topology.

use super::{SEEDS, mean_us, row, row_beside, seeded, tail_us};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use lab::Run;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-dragonfly",
    source: "Flowcut switching (arXiv 2506.21406), Figures 13, 14 and 15",
    about: "random partners with enterprise and uniform sizes on a Dragonfly of 1024 hosts; 16 all-to-alls on one of 2048",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const FLOWCUT: &str = "flowcut, full";

/// Flowcut's alpha and ratio come from the artefact's entry script (its stored runs have ratios of 1, 5, 10 and more,
/// but not 6). The flowlet gaps are the shortest and the longest of its three tunings.
const SCHEMES: [(&str, &str); 9] = [
    ("minimal", "scheme.minimal={}"),
    ("valiant", "scheme.valiant={}"),
    ("ugal-l", "scheme.ugal-l={}"),
    ("ugal-g", "scheme.ugal-g={}"),
    ("flowlet, 3 us", "scheme.flowlet-nic={gap=\"3us\"}"),
    ("flowlet, 20 us", "scheme.flowlet-nic={gap=\"20us\"}"),
    (FLOWCUT, "scheme.flowcut={deployment=\"full\",alpha=0.7,ratio=6.0}"),
    ("flowcut, ingress", "scheme.flowcut={deployment=\"ingress\",alpha=0.7,ratio=6.0}"),
    ("flowcut, nic", "scheme.flowcut={alpha=0.7,ratio=6.0}"),
];

const ENTERPRISE: &str =
    "workload=[{random-partner={sizes=\"enterprise-tail\",clamp={min=\"16KiB\",max=\"4MiB\"}}}]";
/// Two rounds instead of six, because these flows are larger; our choice.
const UNIFORM: &str =
    "workload=[{random-partner={sizes={uniform={min=\"16KiB\",max=\"4MiB\"}},iterations=2}}]";
const SLINGSHOT: &str = "topology.dragonfly.groups=8";
/// 16 all-to-alls of 128 hosts each; one among all 2048 hosts would have 4.2 million pairs.
const ALL_TO_ALL: &str = "workload=[{all-to-all={bytes=\"1MiB\",groups=\"drawn\",group-size=128,window=16}}]";

const SETTINGS: [(&str, &[&str]); 3] = [
    ("enterprise", &[ENTERPRISE]),
    ("uniform", &[UNIFORM]),
    ("16 all-to-alls of 128, 2048 hosts", &[SLINGSHOT, ALL_TO_ALL]),
];

/// Mean and P99 FCT of the artefact's stored runs, us.
const STORED: [(&str, f64, f64); 2] = [("minimal", 20.4, 197.0), (FLOWCUT, 20.6, 176.0)];

fn label(scheme: &str, setting: &str) -> String {
    format!("{setting}: {scheme}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (setting, sets) in SETTINGS {
        for (scheme, set) in SCHEMES {
            let case = Case::new(label(scheme, setting), "dragonfly", &[set]);
            let case = sets.iter().fold(case, |case, set| case.and(*set));
            match quick {
                true => {
                    let case = case.and("topology.dragonfly.routers-per-group=8");
                    let case = case.and("topology.dragonfly.hosts-per-router=4");
                    cases.push(case.and("topology.dragonfly.links-per-pair=8"));
                }
                false => cases.extend(seeded(&case, SEEDS)),
            }
        }
    }
    cases
}

fn longest_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.max)
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (setting, _) in SETTINGS {
        for (scheme, _) in SCHEMES {
            let label = label(scheme, setting);
            let stored = STORED.iter().find(|(s, _, _)| setting == "enterprise" && *s == scheme && !quick);
            let of = |what: Metric| over_seeds(runs, &label, what);
            let none = "no figure in the text";
            for (metric, paper, value) in [
                ("mean FCT", stored.map(|s| s.1), of(mean_us)),
                ("P99 FCT", stored.map(|s| s.2), of(tail_us)),
            ] {
                rows.push(match paper {
                    Some(paper) => {
                        let note = if scheme == FLOWCUT {
                            "the artefact's stored run with ratio 5; ours has 6, as in its entry script"
                        } else {
                            "the artefact's stored run"
                        };
                        row_beside(paper, &label, metric, "us", &value, note)
                    }
                    None => row(&label, metric, "us", &value, none),
                });
            }
            let claim = if scheme.starts_with("flowcut") { "the guarantee: 0" } else { none };
            rows.push(row(&label, "out of order", "% of accepted", &of(out_of_order_of_accepted), claim));
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header = ["", "mean us", "P99 us", "max us", "out of order %"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for (setting, _) in SETTINGS {
        for (scheme, _) in SCHEMES {
            let label = label(scheme, setting);
            let cell = |what: Metric| ranged(&over_seeds(runs, &label, what));
            table.add_row([
                label.clone(),
                cell(mean_us),
                cell(tail_us),
                cell(longest_us),
                cell(out_of_order_of_accepted),
            ]);
        }
    }
    format!("Means over the seeds, with the range:\n{table}\n")
}
