//! Flowcut, section IV-B: with and without congestion control, and under incast.
//!
//! If the receiver's link is the bottleneck, all paths are equal: draining cannot help, and must not do harm.

use super::{SCENARIO, drained, mean_us, small, tail_us};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;

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
    ("permutation", "workload=[{permutation={bytes=\"2MiB\",kind=\"cross-pod\"}}]"),
    ("incast, 32 to 1", "workload=[{incast={senders=32,bytes=\"1MiB\"}}]"),
];
const CONTROLS: [(&str, &[&str]); 2] =
    [("no control", &[]), ("DCQCN", &["nic.congestion.dcqcn={}", "switch.ecn={}"])];

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
                cases.push(if quick && load == "permutation" {
                    case.and("workload.0.permutation.bytes=\"512KiB\"")
                } else {
                    case
                });
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
                rows.push(Row::ours(&label, "mean FCT", "us", runs.measure(&label, mean_us), note));
                if scheme != "ecmp" {
                    let claim = match load {
                        "permutation" => "the paper: -33 to -50 % without control",
                        _ => "expected: a few percent at most",
                    };
                    let off = runs.more_than(&ecmp, &label, mean_us);
                    rows.push(Row::ours(&label, "mean FCT against ECMP", "%", off, claim));
                    let off = runs.more_than(&ecmp, &label, tail_us);
                    rows.push(Row::ours(&label, "P99 FCT against ECMP", "%", off, claim));
                    rows.push(Row::ours(
                        &label,
                        "time spent draining",
                        "%",
                        runs.measure(&label, drained),
                        note,
                    ));
                    let late = runs.measure(&label, out_of_order_of_accepted);
                    rows.push(Row::ours(&label, "out of order", "% of accepted", late, "the guarantee: 0"));
                }
            }
        }
    }
    rows
}
