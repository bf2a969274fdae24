//! Flowcut, section IV-B: with and without congestion control, and under incast.
//!
//! If the receiver's link is the bottleneck, all paths are equal: draining cannot help, and must not do harm.

use super::{SCENARIO, SEEDS, beyond_us, drained, mean_us, row, seeded, small};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-incast",
    source: "Flowcut switching (arXiv 2506.21406), section IV-B",
    about: "permutation and 32:1 incast, with and without DCQCN",
    cases,
    rows,
    curves: |_| Vec::new(),
    more: |_| String::new(),
    picture: |_| crate::picture::Picture::default(),
};

const SCHEMES: [(&str, &str); 3] = [
    ("ecmp", "scheme.ecmp={}"),
    ("flowcut", "scheme.flowcut={}"),
    ("flowcut, full", "scheme.flowcut={deployment=\"full\"}"),
];
const LOADS: [(&str, &str); 2] = [
    ("permutation", "workload=[{permutation={bytes=\"2MiB\"}}]"),
    ("incast, 32 to 1", "workload=[{incast={senders=32,bytes=\"1MiB\"}}]"),
];
const CONTROLS: [(&str, &[&str]); 2] =
    [("no control", &[]), ("DCQCN", &["nic.congestion.dcqcn-hpcc={}", "switch.ecn={}"])];

fn label(load: &str, control: &str, scheme: &str) -> String {
    format!("{load}, {control}: {scheme}")
}

/// The cases, on 128 hosts: the question does not depend on the number of hosts.
fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (load, set) in LOADS {
        for (control, sets) in CONTROLS {
            for (scheme, scheme_set) in SCHEMES {
                let case = small(Case::new(label(load, control, scheme), SCENARIO, &[scheme_set, set]));
                let case = sets.iter().fold(case, |case, set| case.and(*set));
                match quick {
                    true if load == "permutation" => {
                        cases.push(case.and("workload.0.permutation.bytes=\"512KiB\""));
                    }
                    true => cases.push(case),
                    false => cases.extend(seeded(&case, SEEDS)),
                }
            }
        }
    }
    cases
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let note = "no number in the paper";
    for (load, _) in LOADS {
        for (control, _) in CONTROLS {
            let ecmp = label(load, control, "ecmp");
            for (scheme, _) in SCHEMES {
                let label = label(load, control, scheme);
                rows.push(row(&label, "mean FCT", "us", &over_seeds(runs, &label, mean_us), note));
                if scheme == "ecmp" {
                    continue;
                }
                let claim = match (load, control) {
                    ("permutation", "no control") => "the paper: -33 to -50 %",
                    ("permutation", _) => note,
                    _ => "expected: a few percent at most",
                };
                for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
                    let off = runs.more_than(&ecmp, &label, what);
                    rows.push(row(&label, format!("{metric} against ECMP"), "%", &off, claim));
                }
                rows.push(row(
                    &label,
                    "draining, share of the FCTs",
                    "%",
                    &over_seeds(runs, &label, drained),
                    note,
                ));
                let late = over_seeds(runs, &label, out_of_order_of_accepted);
                rows.push(row(&label, "out of order", "% of accepted", &late, "the guarantee: 0"));
            }
        }
    }
    rows
}
