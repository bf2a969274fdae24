//! Long-haul THEMIS, the full version (ICNP'25): slowdowns at 30, 50 and 70 % load, rivals, and the effect of each part.
//!
//! The paper's numbers are those of its public artefact, which has three sets of them for THEMIS. Ours stand beside set B,
//! from which the maxima of the paper's abstract follow; the average figure of the artefact draws set A.
//!
//! The artefact also has shares of time paused, but no number of ours compares with them: its script opens a pause only if
//! none is open in the whole fabric, and the next resume of any port closes it.

use super::{Estimate, Side, counter, inter, intra, pauses, shown, sides, unfinished};
use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use lab::Run;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "long-haul-full",
    source: "THEMIS for long-haul RDMA (Niu et al., ICNP'25), its artefact's numbers",
    about: "two datacentres 100 km apart, web search at 30, 50 and 70 % load: THEMIS, its parts, and its rivals",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const SCENARIO: &str = "long-haul-full";

macro_rules! edge {
    ($settings:literal) => {
        concat!("switch-role.external.feedback.long-haul={", $settings, "}")
    };
}

/// The artefact's numbers at one load: means, P99 and overall mean; each intra before inter.
#[derive(Clone, Copy)]
struct Theirs {
    mean: [f64; 2],
    p99: Option<[f64; 2]>,
    overall: Option<f64>,
    /// Means by size, for intra and inter flows.
    sizes: Option<[[f64; 3]; 2]>,
}

const fn theirs(mean: [f64; 2], p99: [f64; 2], overall: f64, sizes: [[f64; 3]; 2]) -> Option<Theirs> {
    Some(Theirs { mean, p99: Some(p99), overall: Some(overall), sizes: Some(sizes) })
}

const fn means(mean: [f64; 2], p99: Option<[f64; 2]>, overall: Option<f64>) -> Option<Theirs> {
    Some(Theirs { mean, p99, overall, sizes: None })
}

/// Settings of a row, and the artefact's numbers at 30, 50 and 70 % load.
struct Mode {
    label: &'static str,
    sets: &'static [&'static str],
    theirs: [Option<Theirs>; 3],
}

const fn ours(label: &'static str, sets: &'static [&'static str]) -> Mode {
    Mode { label, sets, theirs: [None, None, None] }
}

const MODES: [Mode; 22] = [
    Mode {
        label: "dcqcn",
        sets: &[],
        theirs: [
            theirs([5.213, 1.152], [47.92, 2.657], 3.100, [[6.438, 5.345, 4.692], [1.040, 1.054, 1.269]]),
            means([14.017, 1.455], Some([114.76, 5.256]), Some(7.471)),
            theirs([23.575, 1.830], [153.16, 7.311], 12.192, [[39.05, 30.26, 12.64], [1.457, 1.460, 2.267]]),
        ],
    },
    ours(
        "dcqcn, as the artefact's head",
        &["nic.cnp=\"frame\"", "nic.cnp-interval=\"5us\"", "switch.classes=\"strict\""],
    ),
    Mode {
        label: "annulus, direct CNPs",
        sets: &["switch-role.tor.feedback.direct-cnp={interval=\"4us\",beyond=\"100us\",from-hosts=true}"],
        theirs: [
            theirs([3.962, 1.129], [39.20, 2.717], 2.487, [[3.960, 3.216, 4.620], [1.016, 1.026, 1.249]]),
            means([7.493, 1.294], Some([59.40, 4.091]), Some(4.263)),
            theirs([13.516, 1.502], [91.77, 5.365], 7.225, [[15.61, 12.44, 13.75], [1.172, 1.174, 1.887]]),
        ],
    },
    ours("annulus, complete", &["switch-role.tor.feedback.annulus={}", "nic.congestion.annulus={}"]),
    Mode {
        label: "bicc, one credit per switch",
        sets: &["switch-role.external.feedback.bicc={per=\"switch\"}"],
        theirs: [
            theirs([3.669, 5.930], [45.72, 272.0], 4.845, [[5.002, 4.115, 2.832], [1.026, 1.043, 11.52]]),
            means([6.571, 7.104], Some([73.77, 279.37]), Some(6.834)),
            theirs([11.053, 6.082], [89.02, 181.3], 8.933, [[16.47, 13.86, 6.823], [1.171, 1.201, 12.66]]),
        ],
    },
    ours(
        "bicc, one credit per switch, receivers' CNPs every 55 us",
        &[
            "switch-role.external.feedback.bicc={per=\"switch\"}",
            "nic.cnp=\"frame\"",
            "nic.cnp-interval=\"55us\"",
        ],
    ),
    ours("bicc, a credit of 13 MB per receiver", &["switch-role.external.feedback.bicc={}"]),
    ours("bicc, a credit of 125 kB per receiver", &["switch-role.external.feedback.bicc={credit=\"125kB\"}"]),
    ours("fair rates", &["switch-role.external.feedback.fair-rate={}"]),
    Mode {
        label: "PNP",
        sets: &[edge!("notification=\"proactive\",reaction=\"off\"")],
        theirs: [None, None, means([8.248, 1.705], None, None)],
    },
    ours(
        "PNP, a CNP for every mark",
        &[edge!("notification=\"proactive\",interval=\"0us\",reaction=\"off\"")],
    ),
    Mode {
        label: "TRP",
        sets: &[edge!("notification=\"off\",reaction=\"loop\"")],
        theirs: [None, None, means([7.683, 10.536], None, None)],
    },
    ours(
        "TRP from a match table",
        &[edge!("notification=\"off\",reaction=\"loop\",loop={cpu-delay=\"2ms\"}")],
    ),
    Mode {
        label: "themis",
        sets: &[edge!("notification=\"proactive\",reaction=\"loop\"")],
        theirs: [
            theirs([2.760, 1.230], [15.80, 3.86], 1.964, [[2.029, 2.296, 3.846], [1.015, 1.029, 1.459]]),
            means([3.775, 2.097], None, None),
            theirs([4.912, 5.245], [21.96, 28.27], 5.086, [[3.713, 3.432, 7.168], [2.277, 2.251, 6.481]]),
        ],
    },
    ours(
        "themis, older ramp and recovery",
        &[edge!(
            "notification=\"proactive\",reaction=\"loop\",loop={ramp=\"twenty\",recovery={after=\"1ms\"}}"
        )],
    ),
    ours(
        "themis, direct recovery",
        &[edge!("notification=\"proactive\",reaction=\"loop\",loop={recovery={mode=\"direct\"}}")],
    ),
    ours("our edge: interval and virtual rate", &[super::COMPLETE]),
    Mode {
        label: "PNP, and pauses of the long link",
        sets: &[edge!("notification=\"proactive\",reaction=\"pause\"")],
        theirs: [None, None, means([11.035, 2.101], None, Some(6.357))],
    },
    ours(
        "PNP, as the artefact's head",
        &[
            edge!("notification=\"proactive\",reaction=\"off\""),
            "nic.cnp=\"frame\"",
            "nic.cnp-interval=\"5us\"",
            "switch.classes=\"strict\"",
        ],
    ),
    ours(
        "TRP, as the artefact's head",
        &[
            edge!("notification=\"off\",reaction=\"loop\""),
            "nic.cnp=\"frame\"",
            "nic.cnp-interval=\"5us\"",
            "switch.classes=\"strict\"",
        ],
    ),
    ours(
        "themis, as the artefact's head",
        &[
            edge!("notification=\"proactive\",reaction=\"loop\""),
            "nic.cnp=\"frame\"",
            "nic.cnp-interval=\"5us\"",
            "switch.classes=\"strict\"",
        ],
    ),
    Mode {
        label: "dcqcn, long link of 1 us",
        sets: &["topology.datacentres.long-delay=\"1us\""],
        theirs: [
            theirs([2.944, 2.745], [12.69, 12.50], 2.841, [[2.462, 2.294, 3.679], [1.862, 1.881, 3.740]]),
            means([5.406, 4.764], Some([34.21, 25.10]), None),
            theirs([9.933, 8.661], [50.99, 39.28], 9.267, [[12.63, 9.368, 9.521], [8.348, 7.209, 10.01]]),
        ],
    },
];

/// The label of the row whose numbers by size are those of set C, since set B has none.
const THEMIS: &str = "themis";

/// Loads, per cent.
const LOADS: [u32; 3] = [30, 50, 70];
/// The load that the quick form leaves out.
const LEFT_OUT: u32 = 50;

/// Upper ends of the artefact's size classes, bytes, and their names.
const SIZES: [(u64, &str); 3] = [(10 << 10, "up to 10 KiB"), (100 << 10, "to 100 KiB"), (u64::MAX, "beyond")];

fn label(mode: &str, load: u32) -> String {
    format!("{load} %: {mode}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut all = Vec::new();
    for load in LOADS.into_iter().filter(|load| !quick || *load != LEFT_OUT) {
        for mode in &MODES {
            for seed in 1..=if quick { 1 } else { 5 } {
                let case = Case::new(label(mode.label, load), SCENARIO, mode.sets);
                let case =
                    case.and(format!("workload.0.poisson.load=0.{}", load / 10)).and(format!("seed={seed}"));
                all.push(if quick { case.and("workload.0.poisson.duration=\"4ms\"") } else { case });
            }
        }
    }
    all
}

impl Side {
    /// Mean slowdown of the flows of one of the artefact's size classes.
    fn of_size(&self, class: usize) -> Option<f64> {
        let least = class.checked_sub(1).map_or(0, |below| SIZES[below].0);
        let of = |(bytes, _): &&(u64, f64)| *bytes > least && *bytes <= SIZES[class].0;
        super::mean(self.slowdowns.iter().filter(of).map(|s| s.1))
    }

    /// 99th percentile by linear interpolation between ranks, as the artefact computes it.
    fn p99(&self) -> Option<f64> {
        let mut all: Vec<f64> = self.slowdowns.iter().map(|s| s.1).collect();
        all.sort_by(f64::total_cmp);
        let rank = 0.99 * (all.len().checked_sub(1)? as f64);
        let (below, above) = (rank.floor() as usize, rank.ceil() as usize);
        Some(all[below] + (all[above] - all[below]) * rank.fract())
    }
}

/// Estimate over the seeds of a label of a number that both sides of a run decide.
fn over(runs: &Runs, label: &str, of: &dyn Fn(&[Side; 2]) -> Option<f64>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = runs.all(label).into_iter().map(|run| of(&sides(run?))).collect();
    Estimate::of(&values?)
}

fn overall(sides: &[Side; 2]) -> Option<f64> {
    super::mean(sides.iter().flat_map(|side| &side.slowdowns).map(|s| s.1))
}

/// Time for which ports stood paused, summed over ports, per cent of the time until the last flow has finished.
fn paused(run: &Run) -> Option<f64> {
    let paused: f64 = run.outcome.links.iter().map(|link| link.paused.as_us()).sum();
    let last = run.outcome.messages.iter().map(|message| message.acked).max()?;
    Some(100.0 * paused / last.as_us().max(1e-9))
}

/// Most bytes in loops, stashes and virtual queues at one time, summed over switches, MB.
fn held(run: &Run) -> Option<f64> {
    Some(counter(run, "stash_peak") / 1e6)
}

const NAMES: [&str; 2] = ["intra", "inter"];

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, load) in LOADS.into_iter().enumerate().filter(|(_, load)| !quick || *load != LEFT_OUT) {
        for mode in &MODES {
            let label = label(mode.label, load);
            let theirs = mode.theirs[place].filter(|_| !quick);
            let mut add = |metric: String, unit, paper: Option<f64>, ours: Option<Estimate>, note: &str| {
                let note = match ours {
                    Some(Estimate { half, .. }) if half > 0.0 => {
                        format!("{note}95 % interval: ± {}", text::number(half))
                    }
                    Some(_) => format!("{note}one seed"),
                    None => "some flows have not finished".to_owned(),
                };
                let ours = ours.map(|e| e.mean);
                rows.push(match paper {
                    Some(paper) => Row::beside(paper, &label, metric, unit, ours, note),
                    None => Row::ours(&label, metric, unit, ours, note).tabled(),
                });
            };
            let set = if mode.label == THEMIS { "set B; " } else { "" };
            for (side, of) in [intra, inter].into_iter().enumerate() {
                let paper = theirs.map(|t| t.mean[side]);
                add(format!("mean slowdown, {}", NAMES[side]), "", paper, runs.estimate(&label, of), set);
            }
            for side in 0..2 {
                let paper = theirs.and_then(|t| t.p99).map(|p99| p99[side]);
                let ours = over(runs, &label, &|sides| sides[side].p99());
                add(format!("P99 of slowdown, {}", NAMES[side]), "", paper, ours, set);
            }
            let paper = theirs.and_then(|t| t.overall);
            add("mean slowdown, all".to_owned(), "", paper, over(runs, &label, &overall), set);
            add("time paused".to_owned(), "%", None, runs.estimate(&label, paused), "sum over ports; ");
            let held = runs.estimate(&label, held);
            if held.is_some_and(|held| held.mean > 0.0) {
                add("held at one time, at most".to_owned(), "MB", None, held, "summed over switches; ");
            }
            let set = if mode.label == THEMIS { "set C; " } else { "" };
            for side in 0..2 {
                for (class, (_, size)) in SIZES.into_iter().enumerate() {
                    let paper = theirs.and_then(|t| t.sizes).map(|sizes| sizes[side][class]);
                    let ours = over(runs, &label, &|sides| sides[side].of_size(class));
                    add(format!("mean slowdown, {}, {size}", NAMES[side]), "", paper, ours, set);
                }
            }
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header: Vec<String> = ["", "intra", "inter", "all", "P99 intra", "P99 inter"]
        .into_iter()
        .chain(["paused %", "PFC", "CNPs", "held, at most", "passes", "unfinished"])
        .map(str::to_owned)
        .collect();
    let mut table = text::table(&header, 1);
    for load in LOADS {
        for mode in &MODES {
            let label = label(mode.label, load);
            if runs.every(&label).next().is_none() {
                continue;
            }
            let count = |name: &str| {
                let values: Vec<f64> = runs.every(&label).map(|run| counter(run, name)).collect();
                super::mean(values.into_iter()).unwrap_or_default() as u64
            };
            let of = |estimate: Option<Estimate>| text::maybe(estimate.map(|e| e.mean));
            let left: f64 = runs.every(&label).map(unfinished).sum();
            table.add_row([
                label.clone(),
                shown(runs.estimate(&label, intra)),
                shown(runs.estimate(&label, inter)),
                of(over(runs, &label, &overall)),
                of(over(runs, &label, &|sides| sides[0].p99())),
                of(over(runs, &label, &|sides| sides[1].p99())),
                of(runs.estimate(&label, paused)),
                of(runs.estimate(&label, pauses)),
                text::count(count("cnps_made")),
                text::bytes(count("stash_peak")),
                text::count(count("most_passes")),
                text::number(left),
            ]);
        }
    }
    format!(
        "Mean slowdown (with the 95 % interval of the mean over seeds), percentiles, and counts per run:\n{table}\n\n\
         THEMIS stands beside set B of the authors' numbers, by size beside set C. Set A, which their average figure draws, has\n\
         2.904 / 1.205 at 30 % and 7.962 / 3.469 at 70 %. Assumptions: docs/long-haul-full.md\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_ranks() {
        let side = Side { slowdowns: (0..=50).map(|n| (1, f64::from(n))).collect() };
        assert_eq!(side.p99(), Some(49.5));
        assert_eq!(Side { slowdowns: Vec::new() }.p99(), None);
    }

    #[test]
    fn size_classes_end_at_powers_of_1024() {
        let sizes = [10_240, 10_241, 102_400, 102_401];
        let side = Side { slowdowns: sizes.iter().map(|bytes| (*bytes, *bytes as f64)).collect() };
        let means: Vec<_> = (0..3).map(|class| side.of_size(class).unwrap()).collect();
        assert_eq!(means, [10_240.0, (10_241.0 + 102_400.0) / 2.0, 102_401.0]);
    }

    #[test]
    fn the_load_of_a_case_is_the_one_of_its_label() {
        for case in cases(true) {
            let load = case.label.split_once(" %").unwrap().0;
            assert!(case.set.contains(&format!("workload.0.poisson.load=0.{}", &load[..1])), "{case:?}");
        }
        assert_eq!(cases(false).len(), 3 * 5 * MODES.len());
    }
}
