//! Loss recovery under per-packet load balancing (slides to IEEE 802.1): completion times of 32 MB flows with three
//! ways of loss recovery, over a 100 Gb/s impairment emulator.
//!
//! The slides give the P99 of BlueField-3 NICs at three loss rates, but no configuration. Their nine numbers identify
//! four: the completion time without loss, and one cost per loss for each mode ([`fit`]). The scenario of each mode is
//! one realisation of its cost: its window, timeout, pauses and rate are not measurements of a NIC.
//!
//! Beyond the slides, the same flows are sprayed over four paths, where a NIC cannot tell reordering from loss.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::{Curve, Row};
use engine::outcome::MessageRecord;
use lab::Run;
use model::Time;
use results::stats::{mean, nearest_rank};
use results::text;
use rnic::timeout::Timeout;
use rnic::{Reaction, TransportConfig};
use scenario::topology::Topology;
use std::fmt::Write;

mod fit;

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

/// Bytes of a flow.
const FLOW: u32 = 32 << 20;

/// Percentiles that the table shows.
const SHOWN: [(&str, f64); 4] = [("P50", 50.0), ("P90", 90.0), ("P99", 99.0), ("P99.9", 99.9)];

fn label(name: &str, loss: &str) -> String {
    format!("{name}, {loss}")
}

fn cases(quick: bool) -> Vec<Case> {
    // Replicas and messages in each: 20,000 flows per point, 300 if quick. A point without loss has no random draw.
    let (replicas, messages) = if quick { (1, 300) } else { (10, 2000) };
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
    let messages = if quick { 10 } else { 250 };
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

/// Completion times of all flows of the runs with this label in order of the flows, ms; empty if a run is not complete.
fn in_order(runs: &Runs, label: &str) -> Vec<f64> {
    let mut all = Vec::new();
    for run in runs.all(label) {
        let Some(run) = run else { return Vec::new() };
        let ms = |m: &MessageRecord| Time(m.acked.ps() - m.start.ps()).as_us() / 1000.0;
        all.extend(run.outcome.messages.iter().map(ms));
    }
    all
}

/// [`in_order`], sorted.
fn completions(runs: &Runs, label: &str) -> Vec<f64> {
    let mut all = in_order(runs, label);
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// Standard deviation of the P99 of `flows` flows in per cent of its mean, from all groups of that many flows. `None` if
/// there are fewer than two groups.
fn sampling_error(times: &[f64], flows: usize) -> Option<f64> {
    let p99_of = |group: &[f64]| {
        let mut sorted = group.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        nearest_rank(&sorted, 99)
    };
    let p99s: Vec<f64> = times.chunks_exact(flows).map(p99_of).collect();
    let mean = mean(&p99s).filter(|_| p99s.len() > 1)?;
    let squares: f64 = p99s.iter().map(|p99| (p99 - mean).powi(2)).sum();
    Some(100.0 * (squares / (p99s.len() - 1) as f64).sqrt() / mean)
}

/// Numbers of flows for which the experiment shows the sampling error of a P99. The slides do not give theirs.
const SAMPLES: [usize; 2] = [100, 300];

/// The four numbers that fit the slides best at this MTU.
fn fit_of_slides(mtu: u32) -> ([u32; 3], fit::Fit) {
    let [_, rest @ ..] = LOSSES;
    let losses = rest.map(|(_, millionths)| fit::losses_at_p99(FLOW / mtu, probability(millionths)));
    (losses, fit::minimax(&MODES.map(|mode| mode.paper), losses))
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
                let note = "expected: near T0 of the fit; the slides give no number without loss";
                rows.push(Row::ours(&case, "FCT", "ms", at(99.0), note).tabled());
                continue;
            }
            let note = match loss {
                "0.05 %" => "one realisation of a cost per loss",
                _ => "one realisation of a cost per loss, chosen by this number",
            };
            rows.push(Row::beside(mode.paper[i - 1], &case, "P99 FCT", "ms", at(99.0), note).tabled());
            for (name, percent) in SHOWN.into_iter().filter(|(name, _)| *name != "P99") {
                let note = "expected: no number in the slides' table";
                rows.push(Row::ours(&case, format!("{name} FCT"), "ms", at(percent), note).tabled());
            }
            for flows in SAMPLES {
                let error = sampling_error(&in_order(runs, &case), flows);
                let metric = format!("sampling error of the P99 of {flows} flows");
                let note = "standard deviation; the slides do not give their number of flows";
                rows.push(Row::ours(&case, metric, "%", error, note).tabled());
            }
        }
    }
    rows.extend(fit::MTUS.into_iter().flat_map(rows_of_fit));
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

/// The four numbers that the slides identify at this MTU.
fn rows_of_fit(mtu: u32) -> Vec<Row> {
    let (_, fit) = fit_of_slides(mtu);
    let case = format!("fit of the slides, MTU {mtu} B");
    let note = "from the slides' nine numbers alone, without simulation";
    let mut rows = vec![Row::ours(&case, "T0, FCT without loss", "ms", Some(fit.t0), note).tabled()];
    for (mode, (least, most)) in MODES.iter().zip(&fit.costs) {
        let metric = format!("cost per loss, {}", mode.name);
        rows.push(Row::ours(&case, metric, "us", Some(0.5 * (least + most)), note).tabled());
    }
    rows.push(Row::ours(&case, "worst deviation", "%", Some(100.0 * fit.worst), note).tabled());
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

/// The four numbers of the slides, their table beside ours, one realisation, and the sprayed flows.
fn more(runs: &Runs) -> String {
    let ms = |x: Option<f64>| x.map_or_else(|| "-".into(), |ms| format!("{ms:.2}"));
    let mut text = four_numbers();
    text.push_str("\nCompletion of 32 MiB flows, ms, and the sampling error of a P99 over 100 flows (standard deviation):\n");
    let header =
        ["mode", "loss", "flows", "P50", "P90", "P99", "P99.9", "slides P99", "off by", "of 100 flows"]
            .map(str::to_owned);
    let mut table = text::table(&header, 2);
    for mode in &MODES {
        for (i, (loss, _)) in LOSSES.into_iter().enumerate() {
            let in_order = in_order(runs, &label(mode.name, loss));
            let sorted = completions(runs, &label(mode.name, loss));
            let paper = i.checked_sub(1).map(|i| mode.paper[i]);
            let ours = percentile(&sorted, 99.0);
            let off = ours.zip(paper).map(|(ours, paper)| format!("{:+.1} %", (ours / paper - 1.0) * 100.0));
            let error = sampling_error(&in_order, SAMPLES[0]).map(|error| format!("{error:.1} %"));
            let name = if i == 0 { mode.name } else { "" };
            let mut row = vec![name.to_owned(), loss.to_owned(), text::count(sorted.len() as u64)];
            row.extend(SHOWN.map(|(_, percent)| ms(percentile(&sorted, percent))));
            row.push(paper.map_or_else(String::new, |p| format!("{p:.2}")));
            row.extend([off, error].map(Option::unwrap_or_default));
            table.add_row(row);
        }
    }
    let _ = writeln!(text, "{table}\n");
    text.push_str(
        "One realisation of the costs at an MTU of 4096 B; none of these settings is known of a NIC:\n",
    );
    for mode in &MODES {
        if let Some(run) = runs.all(&label(mode.name, "0.1 %")).into_iter().flatten().next() {
            let _ = writeln!(text, "  {}: {}", mode.name, realisation(run));
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

/// The fit of the slides at each MTU.
fn four_numbers() -> String {
    let mut header = vec!["MTU, B".to_owned(), "losses at P99".to_owned(), "T0 ms".to_owned()];
    header.extend(MODES.map(|mode| format!("{} us", mode.name)));
    header.push("worst".to_owned());
    let mut table = text::table(&header, 0);
    for mtu in fit::MTUS {
        let (losses, fit) = fit_of_slides(mtu);
        let mut row =
            vec![mtu.to_string(), losses.map(|n| n.to_string()).join(" / "), format!("{:.2}", fit.t0)];
        row.extend(fit.costs.iter().map(|&(least, most)| match most - least < 0.5 {
            true => format!("{least:.0}"),
            false => format!("{least:.0} to {most:.0}"),
        }));
        row.push(format!("{:.1} %", 100.0 * fit.worst));
        table.add_row(row);
    }
    format!(
        "The slides' nine numbers identify four: the FCT without loss, T0, and one cost per loss for each mode. Fit with \
         the\nleast worst deviation, for each MTU, which the slides do not state:\n{table}\n"
    )
}

/// Settings that realise the cost of a loss in a run, read from its scenario.
fn realisation(run: &Run) -> String {
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
    fn a_point_has_20_000_flows_and_300_if_quick() {
        for (quick, flows) in [(false, 20_000), (true, 300)] {
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
    fn the_sampling_error_is_that_of_groups_of_flows_in_their_order() {
        // The P99 of 100 flows by nearest rank is the second longest of them.
        let group = |p99: f64| [vec![1.0; 98], vec![p99; 2]].concat();
        let times = [group(9.0), group(10.0), group(11.0)].concat();
        assert_eq!(sampling_error(&times, 100), Some(10.0));
        assert_eq!(sampling_error(&times, 300), None, "one group alone");
    }

    #[test]
    fn percentiles_use_nearest_rank_in_tenths_of_a_percent() {
        let thousand: Vec<f64> = (1..=1000).map(f64::from).collect();
        let at = |percent| percentile(&thousand, percent).unwrap();
        assert_eq!([at(0.0), at(50.0), at(99.0), at(99.9), at(100.0)], [1.0, 500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(percentile(&[], 50.0), None);
    }
}
