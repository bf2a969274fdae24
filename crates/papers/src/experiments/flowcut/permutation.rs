//! Flowcut, Figures 7, 8 and 12 and Table IV: a permutation of 8 MiB among 1024 hosts.
//!
//! The paper's claims: Flowcut's mean FCT is 33 to 50 % shorter than ECMP's, and up to 40 % shorter than with flowlets
//! tuned for few packets out of order. Under spraying, more than half of the packets are out of order. Ratios of
//! round-trip times from 3 to 5 are good, 1 and 2 are bad. `full`, `ingress` and `nic` are within 10 % of each other.
//! Draining takes 11.3 % of the time.

use super::{Of, SCENARIO, beyond_us, drained, mean_us, small, tail_us};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-permutation",
    source: "Flowcut switching (arXiv 2506.21406), Figures 7, 8 and 12, Table IV",
    about: "8 MiB permutation on a fat tree of 1024 hosts: FCT and reordering by scheme, deployment and threshold",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const NIC: &str = "flowcut, nic";

/// Other schemes, and Flowcut in all its deployments.
const SCHEMES: [(&str, &str); 16] = [
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
    ("flowcut, ingress", "scheme.flowcut={deployment=\"ingress\"}"),
    ("flowcut, full", "scheme.flowcut={deployment=\"full\"}"),
    ("flowcut, nic, 4 packets overlap", "scheme.flowcut={overlap=4}"),
    ("flowcut, full, by pauses", "scheme.flowcut={deployment=\"full\",backpressure=\"class\"}"),
];

/// The artefact's initial window: 2.5 MB.
const WIDE: &str = "nic.transport.ideal.max-outstanding=610";
const WIDE_SCHEMES: [(&str, &str); 3] = [
    ("ecmp, 2.5 MB window", "scheme.ecmp={}"),
    ("flowcut, nic, 2.5 MB window", "scheme.flowcut={}"),
    ("flowcut, full, 2.5 MB window", "scheme.flowcut={deployment=\"full\"}"),
];

/// Fig. 7: weights and ratios.
const ALPHAS: [f64; 5] = [0.5, 0.25, 0.125, 0.0625, 0.03125];
const RATIOS: [u32; 7] = [1, 2, 3, 4, 5, 10, 20];

fn heat(alpha: f64, ratio: u32) -> String {
    format!("alpha {alpha}, ratio {ratio}")
}

fn cases(quick: bool) -> Vec<Case> {
    let scaled = |case: Case| match quick {
        true => small(case).and("workload.0.permutation.bytes=\"1MiB\""),
        false => case,
    };
    let mut cases: Vec<Case> =
        SCHEMES.iter().map(|(label, set)| scaled(Case::new(*label, SCENARIO, &[set]))).collect();
    cases.extend(WIDE_SCHEMES.map(|(label, set)| scaled(Case::new(label, SCENARIO, &[set, WIDE]))));
    // The whole map takes minutes; a quick run has the ratios below 10 at alpha 0.125 only.
    let shown = |alpha: f64, ratio: u32| !quick || (alpha == 0.125 && ratio < 10);
    for alpha in ALPHAS {
        for ratio in RATIOS.into_iter().filter(|&ratio| shown(alpha, ratio)) {
            let set = format!("scheme.flowcut={{alpha={alpha:?},ratio={ratio}.0}}");
            cases.push(scaled(Case::new(heat(alpha, ratio), SCENARIO, &[&set])));
        }
    }
    cases
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let of = |label: &str, what: Of| runs.measure(label, what);
    let less = |label: &str, than: &str, what: Of| runs.more_than(than, label, what);
    for (label, _) in SCHEMES {
        let claim =
            if label.starts_with("flowcut") { "the paper: -33 to -50 %" } else { "no number in the paper" };
        rows.push(Row::ours(label, "mean FCT", "us", of(label, mean_us), "no number in the paper"));
        rows.push(Row::ours(label, "mean FCT against ECMP", "%", less(label, "ecmp", mean_us), claim));
        rows.push(Row::ours(label, "P99 FCT against ECMP", "%", less(label, "ecmp", tail_us), claim));
        let beyond = less(label, "ecmp", beyond_us);
        rows.push(Row::ours(
            label,
            "mean beyond P99 against ECMP",
            "%",
            beyond,
            "the artefact plots this as P99",
        ));
        let claim = match label {
            "rps" => "the paper: more than 50 %",
            "flowcut, nic, 4 packets overlap" => "expected: some",
            _ if label.starts_with("flowcut") => "the guarantee: 0",
            _ => "no number in the paper",
        };
        rows.push(Row::ours(
            label,
            "out of order",
            "% of accepted",
            of(label, out_of_order_of_accepted),
            claim,
        ));
    }
    for (tuning, claim) in [
        ("flowlet, 990 ns", "the artefact's gap for the best FCT; no number in the paper"),
        ("flowlet, 1580 ns", "the artefact's balanced gap; no number in the paper"),
        ("flowlet, 4080 ns", "the artefact's gap for the least reordering; the paper: up to -40 %"),
    ] {
        let off = less(NIC, tuning, mean_us);
        rows.push(Row::ours(NIC, format!("mean FCT against {tuning}"), "%", off, claim));
    }
    for variant in ["flowcut, ingress", "flowcut, nic"] {
        let off = less(variant, "flowcut, full", mean_us);
        rows.push(Row::ours(variant, "mean FCT against full", "%", off, "the paper: within 10 %"));
    }
    for (label, _) in WIDE_SCHEMES {
        let note = "the artefact's initial window; no number in the paper";
        let off = less(label, "ecmp, 2.5 MB window", mean_us);
        rows.push(Row::ours(label, "mean FCT against ECMP", "%", off, note));
        rows.push(Row::ours(label, "time spent draining", "%", of(label, drained), note));
    }
    rows.push(Row::beside(11.3, NIC, "time spent draining", "%", of(NIC, drained), "Table IV"));
    for alpha in ALPHAS {
        for ratio in RATIOS.into_iter().filter(|_| !quick || alpha == 0.125) {
            let label = heat(alpha, ratio);
            let note = match ratio {
                1 | 2 => "the paper: bad",
                3..=5 => "the paper: good",
                _ => "the paper: approaches ECMP as the ratio grows",
            };
            if runs.labels().any(|l| l == label) {
                let value = less(&label, "ecmp", tail_us);
                rows.push(Row::ours(&label, "P99 FCT against ECMP", "%", value, note).tabled());
            }
        }
    }
    rows
}

/// Fig. 7 as a table.
fn more(runs: &Runs) -> String {
    let header: Vec<String> =
        std::iter::once("alpha".to_owned()).chain(RATIOS.map(|r| format!("ratio {r}"))).collect();
    let mut table = text::table(&header, 1);
    let ecmp = runs.get("ecmp").and_then(tail_us);
    for alpha in ALPHAS {
        let value = |ratio| Some(runs.get(&heat(alpha, ratio)).and_then(tail_us)? / ecmp?);
        if RATIOS.iter().any(|&ratio| value(ratio).is_some()) {
            let cells = RATIOS.map(|ratio| text::maybe(value(ratio)));
            table.add_row(std::iter::once(alpha.to_string()).chain(cells));
        }
    }
    format!(
        "Fig. 7: P99 FCT of Flowcut in NICs divided by that of ECMP, by weight alpha and ratio:\n{table}\n"
    )
}
