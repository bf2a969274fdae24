//! Loss recovery under per-packet load balancing (slides to IEEE 802.1): completion times of 32 MB flows with three
//! ways of loss recovery, over a 100 Gb/s impairment emulator.
//!
//! The slides give the P99 of BlueField-3 NICs at three loss rates, but no configuration. The scenario of each mode
//! has one set of parameters for all loss rates. They are fitted at 0.02 and 0.1 %; the values at 0.05 % are
//! predictions.
//!
//! Beyond the slides, the same flows are sprayed over four paths, where a NIC cannot tell reordering from loss.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::{Curve, Row};
use engine::outcome::MessageRecord;
use lab::Run;
use model::Time;
use results::stats::nearest_rank;
use results::text;
use rnic::timeout::Timeout;
use rnic::{Reaction, TransportConfig};
use scenario::topology::Topology;
use std::fmt::Write;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "loss-recovery",
    source: "IEEE 802.1 slides on loss recovery under per-packet load balancing",
    about: "32 MB flows at 0 to 0.1 % loss: go-back-N, selective repeat, adaptive-routing mode; and sprayed",
    cases,
    rows,
    curves,
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// A recovery mode, and the slides' P99 in ms at 0.02, 0.05 and 0.1 %.
struct Mode {
    name: &'static str,
    scenario: &'static str,
    paper: [f64; 3],
}

const MODES: [Mode; 3] = [
    Mode { name: "go-back-N", scenario: "loss-recovery-go-back-n", paper: [4.88, 5.09, 5.80] },
    Mode { name: "selective repeat", scenario: "loss-recovery-nic-sr", paper: [4.86, 4.98, 5.05] },
    Mode {
        name: "adaptive-routing mode",
        scenario: "loss-recovery-adaptive-routing",
        paper: [5.44, 6.65, 7.80],
    },
];

/// Loss rates: name, and probability in millionths.
const LOSSES: [(&str, u32); 4] = [("no loss", 0), ("0.02 %", 200), ("0.05 %", 500), ("0.1 %", 1000)];

/// A scheme and a recovery mode for sprayed flows.
struct Spraying {
    name: &'static str,
    set: &'static [&'static str],
    /// Key of the links that lose packets.
    lossy: &'static str,
    note: &'static str,
}

const UPLINKS: &str = "topology.leaf-spine.uplink-loss";
const AR_TIMER: &str = "nic.timeout={fixed=\"230us\"}";
const SPRAYINGS: [Spraying; 6] = [
    Spraying {
        name: "one path of 400 Gb/s, selective repeat",
        set: &["scheme.ecmp={}", "topology.leaf-spine.spines=1", "topology.leaf-spine.uplink-rate=400Gbps"],
        lossy: UPLINKS,
        note: "expected: the same as without switches",
    },
    Spraying {
        name: "RPS, selective repeat",
        set: &["scheme.rps={}"],
        lossy: UPLINKS,
        note: "expected: stalls by reordering, even without loss",
    },
    Spraying {
        name: "Themis, selective repeat",
        set: &["scheme.themis={}"],
        lossy: UPLINKS,
        note: "expected: longer than on one path only if a loss is detected later",
    },
    Spraying {
        name: "Themis, lost on the hosts' links",
        set: &["scheme.themis={}"],
        lossy: "topology.leaf-spine.loss",
        note: "expected: no better; half of the losses are behind the last switch",
    },
    Spraying {
        name: "RPS, adaptive-routing mode",
        set: &["scheme.rps={}", "nic.on-nack=none", "nic.transport.adaptive-routing={}", AR_TIMER],
        lossy: UPLINKS,
        note: "expected: about one timeout per loss, as without spraying",
    },
    Spraying {
        name: "RPS, ideal",
        set: &["scheme.rps={}", "nic.on-nack=none", "nic.transport.ideal={}", AR_TIMER],
        lossy: UPLINKS,
        note: "expected: shortest, because it sends while it waits for its timer",
    },
];

/// Percentiles that the table shows.
const SHOWN: [(&str, f64); 4] = [("P50", 50.0), ("P90", 90.0), ("P99", 99.0), ("P99.9", 99.9)];

fn label(name: &str, loss: &str) -> String {
    format!("{name}, {loss}")
}

fn cases(quick: bool) -> Vec<Case> {
    // Replicas and messages in each: 20,000 flows per point, 1,000 if quick. A point without loss has no random draw.
    let (replicas, messages) = if quick { (1, 1000) } else { (10, 2000) };
    let mut cases = Vec::new();
    for mode in &MODES {
        for (loss, millionths) in LOSSES {
            let (replicas, messages) = if millionths == 0 { (1, 10) } else { (replicas, messages) };
            for seed in 1..=replicas {
                cases.push(
                    Case::new(label(mode.name, loss), mode.scenario, &[])
                        .and(format!("links.loss={}", probability(millionths)))
                        .and(format!("workload.0.messages={messages}"))
                        .and(format!("seed={seed}")),
                );
            }
        }
    }
    let messages = if quick { 25 } else { 250 };
    for spraying in &SPRAYINGS {
        for (loss, millionths) in LOSSES {
            let mut case = Case::new(label(spraying.name, loss), "loss-recovery-sprayed", &[]);
            for set in spraying.set {
                case = case.and(*set);
            }
            if spraying.lossy != UPLINKS {
                case = case.and(format!("{UPLINKS}=0.0"));
            }
            // A packet crosses two lossy links.
            case = case.and(format!("{}={}", spraying.lossy, probability(millionths) / 2.0));
            for job in 0..4 {
                case = case.and(format!("workload.{job}.messages={messages}"));
            }
            cases.push(case);
        }
    }
    cases
}

fn probability(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}

/// Completion times of all flows of the runs with this label, sorted, ms; empty if a run is not complete.
fn completions(runs: &Runs, label: &str) -> Vec<f64> {
    let mut all = Vec::new();
    for run in runs.all(label) {
        let Some(run) = run else { return Vec::new() };
        let ms = |m: &MessageRecord| Time(m.acked.ps() - m.start.ps()).as_us() / 1000.0;
        all.extend(run.outcome.messages.iter().map(ms));
    }
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// Percentile by nearest rank, in tenths of a percent; `None` if there are no values.
fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let permille = (percent * 10.0).round() as usize;
    (!sorted.is_empty()).then(|| sorted[(sorted.len() * permille).div_ceil(1000).max(1) - 1])
}

fn p99(runs: &Runs, name: &str, loss: &str) -> Option<f64> {
    let sorted = completions(runs, &label(name, loss));
    (!sorted.is_empty()).then(|| nearest_rank(&sorted, 99))
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for mode in &MODES {
        for (i, (loss, _)) in LOSSES.into_iter().enumerate() {
            let case = label(mode.name, loss);
            let sorted = completions(runs, &case);
            let at = |percent| percentile(&sorted, percent);
            if i == 0 {
                let note = "expected: about 4.75 ms, where the slides' curves begin; rate fitted";
                rows.push(Row::ours(&case, "FCT", "ms", at(99.0), note).tabled());
                continue;
            }
            let note = if loss == "0.05 %" { "a prediction" } else { "fitted" };
            rows.push(Row::beside(mode.paper[i - 1], &case, "P99 FCT", "ms", at(99.0), note).tabled());
            for (name, percent) in SHOWN.into_iter().filter(|(name, _)| *name != "P99") {
                let note = "expected: no number in the slides' table";
                rows.push(Row::ours(&case, format!("{name} FCT"), "ms", at(percent), note).tabled());
            }
        }
    }
    let [gbn, sr, ar] = [0, 1, 2].map(|m: usize| p99(runs, MODES[m].name, "0.1 %"));
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let case = "P99 at 0.1 %";
    rows.push(Row::beside(7.80 / 5.80, case, "AR mode / go-back-N", "-", ratio(ar, gbn), ""));
    rows.push(Row::beside(7.80 / 5.05, case, "AR mode / selective repeat", "-", ratio(ar, sr), ""));
    for spraying in &SPRAYINGS {
        for (loss, _) in LOSSES {
            let case = label(spraying.name, loss);
            let sorted = completions(runs, &case);
            for (name, percent) in [("P50", 50.0), ("P99", 99.0)] {
                let at = percentile(&sorted, percent);
                rows.push(Row::ours(&case, format!("{name} FCT"), "ms", at, spraying.note).tabled());
            }
        }
    }
    rows
}

/// The distributions: every percentile, and P99.9.
fn curves(runs: &Runs) -> Vec<Curve> {
    let names = MODES.iter().map(|m| m.name).chain(SPRAYINGS.iter().map(|s| s.name));
    let cases = names.flat_map(|name| LOSSES.map(|(loss, _)| label(name, loss)));
    let curve = |case: String| {
        let sorted = completions(runs, &case);
        let shares = (0..=99).map(f64::from).chain([99.9, 100.0]);
        let points = shares.filter_map(|percent| Some((percentile(&sorted, percent)?, percent / 100.0)));
        Curve { case, metric: "FCT", unit: "ms", flows: sorted.len(), points: points.collect() }
    };
    cases.map(curve).collect()
}

/// The slides' table beside ours, the fitted parameters, and the sprayed flows.
fn more(runs: &Runs) -> String {
    let ms = |x: Option<f64>| x.map_or_else(|| "-".into(), |ms| format!("{ms:.2}"));
    let mut text = String::from("Completion of 32 MiB flows, ms:\n");
    let header =
        ["mode", "loss", "flows", "P50", "P90", "P99", "P99.9", "slides P99", "off by"].map(str::to_owned);
    let mut table = text::table(&header, 2);
    for mode in &MODES {
        for (i, (loss, _)) in LOSSES.into_iter().enumerate() {
            let sorted = completions(runs, &label(mode.name, loss));
            let paper = i.checked_sub(1).map(|i| mode.paper[i]);
            let ours = percentile(&sorted, 99.0);
            let off = ours.zip(paper).map(|(ours, paper)| format!("{:+.1} %", (ours / paper - 1.0) * 100.0));
            let name = if i == 0 { mode.name } else { "" };
            let mut row = vec![name.to_owned(), loss.to_owned(), text::count(sorted.len() as u64)];
            row.extend(SHOWN.map(|(_, percent)| ms(percentile(&sorted, percent))));
            row.extend([paper.map_or_else(String::new, |p| format!("{p:.2}")), off.unwrap_or_default()]);
            table.add_row(row);
        }
    }
    let _ = writeln!(text, "{table}\n");
    text.push_str("Parameters fitted to the P99 at 0.02 and 0.1 %, the same at all loss rates; 0.05 % is a prediction:\n");
    for mode in &MODES {
        if let Some(run) = runs.all(&label(mode.name, "0.1 %")).into_iter().flatten().next() {
            let _ = writeln!(text, "  {}: {}", mode.name, fitted(run));
        }
    }
    text.push_str(
        "\nBeyond the slides: four pairs of hosts, sprayed over four paths of 100 Gb/s; P50 / P99, ms:\n",
    );
    let mut header = vec!["sprayed by, recovered by".to_owned()];
    header.extend(LOSSES.map(|(loss, _)| loss.to_owned()));
    let mut table = text::table(&header, 1);
    for spraying in &SPRAYINGS {
        let mut row = vec![spraying.name.to_owned()];
        row.extend(LOSSES.map(|(loss, _)| {
            let sorted = completions(runs, &label(spraying.name, loss));
            format!("{} / {}", ms(percentile(&sorted, 50.0)), ms(percentile(&sorted, 99.0)))
        }));
        table.add_row(row);
    }
    let _ = writeln!(text, "{table}");
    text
}

/// The fitted parameters of a run, read from its scenario.
fn fitted(run: &Run) -> String {
    let scenario = &run.checked.scenario;
    let mut list = Vec::new();
    if let Topology::Links(links) = &scenario.topology {
        list.push(format!("rate {}", links.rate));
    }
    if let Reaction::Stall(pause) = scenario.nic.on_nack {
        list.push(format!("pause on a NACK {pause}"));
    }
    if let (TransportConfig::AdaptiveRouting(ar), Timeout::Fixed(timeout)) =
        (&scenario.nic.transport, scenario.nic.timeout)
    {
        list.push(format!("timeout {timeout}, window {} packets", ar.reorder_window));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_scenarios_differ_only_in_their_nics() {
        let load = |mode: &Mode| scenario::load(mode.scenario, &[]).unwrap().scenario;
        let first = load(&MODES[0]);
        for mode in &MODES[1..] {
            let other = load(mode);
            assert_ne!(other.nic.transport, first.nic.transport);
            assert_eq!(scenario::Scenario { nic: first.nic.clone(), ..other }, first, "{}", mode.name);
        }
        let sprayed = scenario::load("loss-recovery-sprayed", &[]).unwrap().scenario;
        assert_eq!(sprayed.nic, load(&MODES[1]).nic);
        assert_eq!(sprayed.wire, first.wire);
    }

    #[test]
    fn a_point_has_20_000_flows_and_1_000_if_quick() {
        for (quick, flows) in [(false, 20_000), (true, 1000)] {
            let cases = cases(quick);
            let of = |case: &Case| {
                let set = case.set.iter().find_map(|s| s.strip_prefix("workload.0.messages="));
                set.unwrap().parse::<u32>().unwrap()
            };
            let point: Vec<&Case> = cases.iter().filter(|c| c.label == "go-back-N, 0.1 %").collect();
            assert_eq!(point.iter().map(|c| of(c)).sum::<u32>(), flows);
            let mut seeds: Vec<_> = point.iter().map(|c| c.command()).collect();
            seeds.dedup();
            assert_eq!(seeds.len(), point.len(), "replicas must differ in their seeds");
        }
    }

    #[test]
    fn percentiles_use_nearest_rank_in_tenths_of_a_percent() {
        let thousand: Vec<f64> = (1..=1000).map(f64::from).collect();
        let at = |percent| percentile(&thousand, percent).unwrap();
        assert_eq!([at(0.0), at(50.0), at(99.0), at(99.9), at(100.0)], [1.0, 500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(percentile(&[], 50.0), None);
    }
}
