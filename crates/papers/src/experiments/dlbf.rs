//! DLBF, evaluation: an all-reduce of 64 accelerators beside five persistent flows under ECMP.
//!
//! The paper's claims: ECMP and random spraying have 1.1 to 1.7 times DLBF's mean FCT slowdown, and 1.2 to 3.4 times
//! its P99 (3.3 at 1 MB). It gives neither the placement nor most parameters, and does not say whether a size is the
//! buffer of the all-reduce or one flow. So every ratio is a mean over placements that the seed draws, with its range,
//! and the conditions vary what the paper leaves open. Themis, REPS and adaptive routing on the same fabric are our
//! addition.
//!
//! A flow is one step of the ring between two neighbours, and the FCT is the completion time of that message.
//!
//! The paper also compares sending rates, sampled over time. Runs record bytes and not DCQCN's rate, so the experiment
//! leaves these claims out.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use lab::Run;
use results::stats::mean;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dlbf",
    source: "DLBF, evaluation",
    about: "all-reduce beside persistent ECMP flows: FCT slowdown over sizes, lives of queue pairs and costs of a NACK",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// A scheme of the all-reduce: name and setting.
type Scheme = (&'static str, &'static str);

const DLBF: &str = "dlbf";

/// The schemes that the paper compares with DLBF, and the name of each in the ratios.
const OTHERS: [(&str, &str); 2] = [("ecmp", "ECMP"), ("rps-nic", "RPS")];

/// Schemes that run under every condition.
const PAPER: [Scheme; 3] =
    [("ecmp", "scheme.ecmp={}"), ("rps-nic", "scheme.rps-nic={}"), (DLBF, "scheme.dlbf={}")];

/// Mechanisms of DLBF switched off one by one, and other schemes.
const FURTHER: [Scheme; 6] = [
    ("dlbf, no duplicates", "scheme.dlbf={duplicates=false}"),
    ("dlbf, no notifications", "scheme.dlbf={notifications=false}"),
    ("dlbf, marked paths stay out", "scheme.dlbf={recovers=false}"),
    ("themis", "scheme.themis={}"),
    ("reps", "scheme.reps={}"),
    ("ar", "scheme.ar={}"),
];

/// Message sizes: an all-reduce of 64 ranks.
struct Size {
    name: &'static str,
    /// Bytes of the all-reduce.
    bytes: &'static str,
    /// Parts that the all-reduce sends one after the other; a flow has `bytes / splits / 64`.
    splits: u32,
}

/// Sizes as the buffer of the all-reduce, in ASTRA-sim's four parts, and as the flow.
const SIZES: [Size; 6] = [
    Size { name: "buffer of 1 MB", bytes: "1MB", splits: 4 },
    Size { name: "buffer of 8 MB", bytes: "8MB", splits: 4 },
    Size { name: "buffer of 32 MB", bytes: "32MB", splits: 4 },
    Size { name: "flows of 1 MB", bytes: "64MB", splits: 1 },
    Size { name: "flows of 4 MB", bytes: "256MB", splits: 1 },
    Size { name: "flows of 8 MB", bytes: "512MB", splits: 1 },
];
const BUFFER_8: &Size = &SIZES[1];
const FLOW_1: &Size = &SIZES[3];
const FLOW_4: &Size = &SIZES[4];

/// What the paper leaves open: name and settings.
struct Condition {
    name: &'static str,
    set: &'static [&'static str],
}

const LONG_LIVED: &str = "workload.all-reduce.qp=persistent";
const NO_EFFECT: &str = "nic.on-nack=none";

/// The first condition is the scenario's own: a queue pair per message, and a NACK that counts as a CNP.
const CONDITIONS: [Condition; 5] = [
    Condition { name: "queue pair per message", set: &[] },
    Condition { name: "NACK without effect on the rate", set: &[NO_EFFECT] },
    Condition { name: "long-lived queue pairs", set: &[LONG_LIVED] },
    Condition { name: "long-lived, NACK without effect", set: &[LONG_LIVED, NO_EFFECT] },
    // Settings of ASTRA-sim's sample configuration for its ns-3 backend: PACKET_PAYLOAD_SIZE 1000, KMIN_MAP and KMAX_MAP
    // 800 and 3200 kB at 400 Gb/s (`kmin` and `kmax` are for 100 Gb/s), HAS_WIN 1, VAR_WIN 1, RATE_AI 50 and RATE_HAI
    // 100 Mb/s at any line rate.
    Condition {
        name: "ASTRA-sim's sample configuration",
        set: &[
            "wire.payload=1000B",
            "switch.ecn.kmin=200kB",
            "switch.ecn.kmax=800kB",
            "nic.window=bdp",
            "nic.window-scales-with-rate=true",
            "nic.congestion.dcqcn-hpcc.scale-increases=false",
        ],
    },
];

/// Runs of some schemes at one size under one condition.
struct Point {
    condition: &'static Condition,
    size: &'static Size,
    schemes: &'static [Scheme],
}

fn points(quick: bool) -> Vec<Point> {
    let [headline, no_effect, long_lived, both, astra] = &CONDITIONS;
    let under = |condition, schemes| move |size| Point { condition, size, schemes };
    if quick {
        return [headline, no_effect, long_lived].map(|condition| under(condition, &PAPER)(BUFFER_8)).into();
    }
    let mut points: Vec<Point> = SIZES.iter().map(under(headline, &PAPER)).collect();
    points.extend([BUFFER_8, FLOW_1, FLOW_4].map(under(no_effect, &PAPER)));
    for condition in [long_lived, both, astra] {
        points.extend([BUFFER_8, FLOW_1].map(under(condition, &PAPER)));
    }
    points.extend([BUFFER_8, FLOW_1].map(under(headline, &FURTHER)));
    points
}

/// Seeds of the placements; our choice.
fn seeds(quick: bool) -> std::ops::RangeInclusive<u32> {
    if quick { 1..=1 } else { 1..=3 }
}

fn label(scheme: &str, size: &Size, condition: &Condition) -> String {
    format!("{scheme}, {}, {}", size.name, condition.name)
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for Point { condition, size, schemes } in points(quick) {
        for (scheme, set) in schemes {
            for seed in seeds(quick) {
                let case = Case::new(label(scheme, size, condition), "dlbf", condition.set);
                cases.push(
                    case.and(*set)
                        .and(format!("workload.all-reduce.bytes={}", size.bytes))
                        .and(format!("workload.all-reduce.splits={}", size.splits))
                        .and(format!("seed={seed}")),
                );
            }
        }
    }
    cases
}

fn slowdown(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("foreground")?.slowdown?.mean)
}

fn tail(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("foreground")?.slowdown?.p99)
}

/// Metrics of a single scheme, as means over placements: name, unit, and value of a run.
const METRICS: [(&str, &str, Metric); 5] = [
    ("mean FCT slowdown", "", slowdown),
    ("P99 FCT slowdown", "", tail),
    ("most packets held", "packets", |run| {
        let held = run.summary.packets.reorder_buffer.as_ref();
        Some(held.map_or(0.0, |held| held.max as f64))
    }),
    ("NACKs", "", |run| Some(run.summary.control.nack as f64)),
    ("completion", "us", |run| run.slowest_group_ms().map(|ms| ms * 1000.0)),
];

/// A comparison of the paper: its name, the metric, and the range of the ratio to DLBF in the paper.
const CLAIMS: [(&str, Metric, &str); 2] =
    [("mean FCT slowdown", slowdown, "1.1 to 1.7"), ("P99 FCT slowdown", tail, "1.2 to 3.4")];

/// Ratios of another scheme to DLBF, by seed. Both have the same placement.
fn ratios(runs: &Runs, other: &str, point: &Point, metric: Metric) -> Vec<f64> {
    let of = |scheme: &str| over_seeds(runs, &label(scheme, point.size, point.condition), metric);
    of(other).into_iter().zip(of(DLBF)).map(|(other, dlbf)| other / dlbf).collect()
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let points = points(quick);
    for point in points.iter().filter(|point| point.schemes == PAPER) {
        for (other, name) in OTHERS {
            let case = label(&format!("{name} / DLBF"), point.size, point.condition);
            for (metric, of, paper) in CLAIMS {
                let ratios = ratios(runs, other, point, of);
                let note = format!("the paper: {paper}; over placements {}", ranged(&ratios));
                rows.push(Row::ours(&case, metric, "x", mean(&ratios), note).tabled());
            }
        }
    }
    for Point { condition, size, schemes } in &points {
        for (scheme, _) in *schemes {
            let case = label(scheme, size, condition);
            for (metric, unit, of) in METRICS {
                let values = over_seeds(runs, &case, of);
                let note = format!("no figure in the paper; over placements {}", ranged(&values));
                rows.push(Row::ours(&case, metric, unit, mean(&values), note).tabled());
            }
        }
    }
    rows
}

/// A table of the ratios to DLBF, and one of every scheme.
fn more(runs: &Runs) -> String {
    let quick = !runs.labels().any(|l| l == label(DLBF, FLOW_4, &CONDITIONS[0]));
    let points = points(quick);
    let header = ["condition", "size", "ECMP mean", "ECMP P99", "RPS mean", "RPS P99"].map(str::to_owned);
    let mut of_dlbf = text::table(&header, 2);
    for point in points.iter().filter(|point| point.schemes == PAPER) {
        let mut row = vec![point.condition.name.to_owned(), point.size.name.to_owned()];
        for (other, _) in OTHERS {
            row.extend(CLAIMS.map(|(_, of, _)| ranged(&ratios(runs, other, point, of))));
        }
        of_dlbf.add_row(row);
    }
    let header =
        ["condition", "size", "scheme", "mean", "P99", "held", "NACKs", "done us"].map(str::to_owned);
    let mut each = text::table(&header, 3);
    for Point { condition, size, schemes } in &points {
        for (scheme, _) in *schemes {
            let mut row = [condition.name, size.name, scheme].map(str::to_owned).to_vec();
            let case = label(scheme, size, condition);
            row.extend(METRICS.map(|(_, _, of)| text::maybe(mean(&over_seeds(runs, &case, of)))));
            each.add_row(row);
        }
    }
    format!(
        "FCT slowdown, ratio to DLBF: mean over placements, with the range. A flow is one step of the ring. The\n\
         first condition is the scenario's own; the others change it. The paper has 1.1 to 1.7 (mean), 1.2 to 3.4 (P99):\n{of_dlbf}\n\n\
         FCT slowdown over the flows, most packets that a receiver held for one queue pair, NACKs, completion time of\n\
         the all-reduce; means over placements:\n{each}\n\n\
         Assumptions, and the effect of each mechanism: docs/dlbf.md\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow_bytes(size: &Size) -> u64 {
        let case = Case::new("", "dlbf", &[])
            .and(format!("workload.all-reduce.bytes={}", size.bytes))
            .and(format!("workload.all-reduce.splits={}", size.splits));
        let checked = scenario::load(case.scenario, &case.set).unwrap();
        let plan = &checked.plan;
        plan.messages.iter().find(|m| !plan.jobs[m.job as usize].background).unwrap().bytes
    }

    #[test]
    fn a_size_is_the_buffer_or_the_flow() {
        assert_eq!(flow_bytes(BUFFER_8), 31_250);
        assert_eq!([flow_bytes(FLOW_1), flow_bytes(FLOW_4)], [1_000_000, 4_000_000]);
    }

    #[test]
    fn the_headline_opens_a_queue_pair_per_message_and_a_variation_keeps_them() {
        let queue_pairs = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
            scenario::load("dlbf", &set).unwrap().plan.qps.len()
        };
        // 64 ranks, 126 steps and four parts; and five background flows.
        assert_eq!(queue_pairs(CONDITIONS[0].set), 64 * 126 * 4 + 5);
        assert_eq!(queue_pairs(CONDITIONS[2].set), 64 + 5);
    }

    #[test]
    fn every_condition_is_a_valid_scenario() {
        for quick in [true, false] {
            for case in cases(quick).into_iter().filter(|case| case.set.contains(&"seed=1".to_owned())) {
                scenario::load(case.scenario, &case.set).unwrap_or_else(|e| panic!("{}: {e:?}", case.label));
            }
        }
    }

    #[test]
    fn the_sample_configuration_marks_at_800_and_3200_kb() {
        let set: Vec<String> = CONDITIONS[4].set.iter().map(|s| (*s).to_owned()).collect();
        let plan = scenario::load("dlbf", &set).unwrap().plan;
        let marking = plan.ports.iter().find_map(|port| port.marking).unwrap();
        assert_eq!((marking.kmin.get(), marking.kmax.get()), (800_000, 3_200_000));
    }
}
