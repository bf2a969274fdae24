//! Flowcut, Figures 8 and 12 and Table IV: a permutation of 8 MiB among 1024 hosts.
//!
//! The paper's claims: Flowcut's FCT is 33 to 50 % shorter than ECMP's, and up to 40 % shorter than with flowlets tuned
//! for few packets out of order. Under spraying, more than half of the packets are out of order. `full`, `ingress` and
//! `nic` are within 10 % of each other. Draining takes 11.3 % of the time. Fig. 7 is in [`super::artefact`].

use super::{SCENARIO, SEEDS, beyond_us, drained, mean_us, row, row_beside, seeded, small};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-permutation",
    source: "Flowcut switching (arXiv 2506.21406), Figures 8 and 12, Table IV",
    about: "8 MiB permutation on a fat tree of 1024 hosts: FCT and reordering by scheme, deployment and window",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const NIC: &str = "flowcut, nic";

/// Other schemes, and Flowcut in all its deployments.
const SCHEMES: [(&str, &str); 17] = [
    ("ecmp", "scheme.ecmp={}"),
    ("rps", "scheme.rps={}"),
    ("ar", "scheme.ar={}"),
    ("drill", "scheme.drill={}"),
    ("flowcell", "scheme.flowcell={}"),
    ("flowlet, 990 ns", "scheme.flowlet-nic={gap=\"990ns\"}"),
    ("flowlet, 1580 ns", "scheme.flowlet-nic={gap=\"1580ns\"}"),
    ("flowlet, 4080 ns", "scheme.flowlet-nic={gap=\"4080ns\"}"),
    ("conga", "scheme.conga={}"),
    ("themis", "scheme.themis={}"),
    ("reps", "scheme.reps={}"),
    (NIC, "scheme.flowcut={}"),
    ("flowcut, nic, average kept", "scheme.flowcut={keep-average=true}"),
    ("flowcut, ingress", "scheme.flowcut={deployment=\"ingress\"}"),
    ("flowcut, full", "scheme.flowcut={deployment=\"full\"}"),
    ("flowcut, nic, 4 packets overlap", "scheme.flowcut={overlap=4}"),
    ("flowcut, full, by pauses", "scheme.flowcut={deployment=\"full\",backpressure=\"class\"}"),
];

/// Assumptions that move the result: the paper leaves the window and the congestion control open.
const VARIATIONS: [(&str, &[&str]); 4] = [
    ("window of 80 packets", &["nic.transport.ideal.max-outstanding=80"]),
    ("window of 104 packets", &["nic.transport.ideal.max-outstanding=104"]),
    ("DCQCN", &["nic.congestion.dcqcn-hpcc={}", "switch.ecn={}"]),
    ("only across pods", &["workload.0.permutation.kind=cross-pod"]),
];
const VARIED: [(&str, &str); 3] = [
    ("ecmp", "scheme.ecmp={}"),
    (NIC, "scheme.flowcut={}"),
    ("flowcut, full", "scheme.flowcut={deployment=\"full\"}"),
];

fn varied(variation: &str, scheme: &str) -> String {
    format!("{variation}: {scheme}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases: Vec<Case> =
        SCHEMES.iter().map(|(label, set)| Case::new(*label, SCENARIO, &[set])).collect();
    for (variation, sets) in VARIATIONS {
        for (scheme, set) in VARIED {
            let case = Case::new(varied(variation, scheme), SCENARIO, &[set]);
            cases.push(sets.iter().fold(case, |case, set| case.and(*set)));
        }
    }
    match quick {
        true => cases.into_iter().map(|c| small(c).and("workload.0.permutation.bytes=\"1MiB\"")).collect(),
        false => cases.iter().flat_map(|case| seeded(case, SEEDS)).collect(),
    }
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let none = "no number in the paper";
    let less = |label: &str, than: &str, what: Metric| runs.more_than(than, label, what);
    for (label, _) in SCHEMES {
        let flowcut = label.starts_with("flowcut");
        let claim = if flowcut { "the paper: -33 to -50 %" } else { none };
        rows.push(row(label, "mean FCT", "us", &over_seeds(runs, label, mean_us), none).tabled());
        for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
            let off = row(label, format!("{metric} against ECMP"), "%", &less(label, "ecmp", what), claim);
            rows.push(if flowcut { off } else { off.tabled() });
        }
        let claim = match label {
            "rps" => "the paper: more than 50 %",
            "flowcut, nic, 4 packets overlap" => "expected: some",
            _ if flowcut => "the guarantee: 0",
            _ => none,
        };
        let late = over_seeds(runs, label, out_of_order_of_accepted);
        let late = row(label, "out of order", "% of accepted", &late, claim);
        rows.push(if claim == none { late.tabled() } else { late });
    }
    for (tuning, claim) in [
        ("flowlet, 990 ns", "the artefact's gap for the best FCT; no number in the paper"),
        ("flowlet, 1580 ns", "the artefact's balanced gap; no number in the paper"),
        ("flowlet, 4080 ns", "the artefact's gap for the least reordering; the paper: up to -40 %"),
    ] {
        rows.push(row(NIC, format!("mean FCT against {tuning}"), "%", &less(NIC, tuning, mean_us), claim));
        let beyond = less(NIC, tuning, beyond_us);
        rows.push(row(NIC, format!("mean beyond P99 against {tuning}"), "%", &beyond, claim));
    }
    for variant in ["flowcut, ingress", NIC] {
        let off = less(variant, "flowcut, full", mean_us);
        rows.push(row(variant, "mean FCT against full", "%", &off, "the paper: within 10 %"));
    }
    for label in [NIC, "flowcut, nic, average kept", "flowcut, ingress", "flowcut, full"] {
        let (metric, held) = ("draining, share of the FCTs", over_seeds(runs, label, drained));
        rows.push(match label {
            NIC => row_beside(11.3, label, metric, "%", &held, "Table IV"),
            _ => row(label, metric, "%", &held, "Table IV: 11.3 %, for NICs"),
        });
    }
    for (variation, _) in VARIATIONS {
        let (ecmp, mine) = (varied(variation, "ecmp"), varied(variation, NIC));
        for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
            let off = less(&mine, &ecmp, what);
            rows.push(row(&mine, format!("{metric} against ECMP"), "%", &off, none).tabled());
        }
        rows.push(
            row(&mine, "draining, share of the FCTs", "%", &over_seeds(runs, &mine, drained), none).tabled(),
        );
    }
    rows
}

/// Schemes and assumptions as tables.
fn more(runs: &Runs) -> String {
    let header = ["", "mean us", "mean %", "beyond P99 %", "out of order %"].map(str::to_owned);
    let mut schemes = text::table(&header, 1);
    for (label, _) in SCHEMES {
        let of = |what: Metric| ranged(&over_seeds(runs, label, what));
        let off = |what: Metric| ranged(&runs.more_than("ecmp", label, what));
        let late = of(out_of_order_of_accepted);
        schemes.add_row([label.to_owned(), of(mean_us), off(mean_us), off(beyond_us), late]);
    }
    let header = ["", "mean %", "beyond P99 %", "drained %"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    let mut add = |name: &str, mine: &str, ecmp: &str| {
        let off = |what: Metric| ranged(&runs.more_than(ecmp, mine, what));
        table.add_row([
            name.to_owned(),
            off(mean_us),
            off(beyond_us),
            ranged(&over_seeds(runs, mine, drained)),
        ]);
    };
    for scheme in [NIC, "flowcut, full"] {
        add(scheme, scheme, "ecmp");
        for (variation, _) in VARIATIONS {
            let mine = varied(variation, scheme);
            add(&mine, &mine, &varied(variation, "ecmp"));
        }
    }
    format!(
        "FCT by scheme, and its difference from ECMP's in the mean and in the mean beyond the P99, which the artefact plots as \
         the tail. Means over the seeds, with the range:\n{schemes}\n\nFlowcut against ECMP by assumption, and the share of the \
         FCTs spent drained:\n{table}\n"
    )
}
