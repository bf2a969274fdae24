//! Flowcut, Figures 7 to 10: the cases of the authors' artefact, which has 128 hosts where the paper has 1024.
//!
//! The artefact (tommasobo/sc24-flowcut) plots means, and means of the FCTs beyond the P99 as "99th tail". The text's
//! claims beside them: FCT up to 50 % below ECMP's, 5 times shorter with slow links, and 11.3, 10.5 and 6.3 % of the time
//! spent draining in the permutation, with slow links and in the all-to-all.

use super::{DRAINING, SCENARIO, SEEDS, beyond_us, mean_us, row, row_beside, seeded, small};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::picture::{Figure, Picture, Shape, Values};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use results::stats::mean;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-artefact",
    source: "Flowcut switching (arXiv 2506.21406), Figures 7 to 10, with the settings of the authors' artefact",
    about: "permutation, slow links and all-to-all on 128 hosts, and the thresholds of Flowcut in NICs",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
};

const NIC: &str = "flowcut, nic";
const KEPT: &str = "flowcut, nic, average kept";

struct Setting {
    name: &'static str,
    sets: &'static [&'static str],
    /// Smaller messages for the quick form.
    quick: &'static str,
    /// The artefact's Flowlet gaps for the best FCT, a balance, and the least reordering.
    gaps: [&'static str; 3],
    seeds: u32,
    /// Time spent draining by Table IV, percent.
    drained: f64,
    claim: &'static str,
}

pub(super) const PERMUTATION: &str = "workload=[{permutation={bytes=\"8MB\"}}]";
pub(super) const SMALL_PERMUTATION: &str = "workload=[{permutation={bytes=\"2MB\"}}]";
/// One-way links from aggregation switches to ToRs, at a tenth of 200 Gb/s. The seed draws them; the artefact's are always
/// the same.
const THREE_SLOW: &str =
    "failure=[{links=[[\"pod*-aggregation*\",\"pod*-edge*\"]],random=3,one-way=true,rate=\"20Gbps\"}]";
const ONE_SLOW: &str =
    "failure=[{links=[[\"pod*-aggregation*\",\"pod*-edge*\"]],random=1,one-way=true,rate=\"20Gbps\"}]";
/// The artefact's slow links: hosts send at 50 Gb/s into links of 200 Gb/s.
pub(super) const SLOW_LINKS: [&str; 5] = [
    PERMUTATION,
    THREE_SLOW,
    "topology.fat-tree.rate=50Gbps",
    "topology.fat-tree.aggregation-rate=200Gbps",
    // 120,374 B in packets of 4096 B.
    "nic.transport.ideal.max-outstanding=30",
];
pub(super) const ALL_TO_ALL: &str = "workload=[{all-to-all={per-pair=\"900kB\",groups=\"all\",window=4}}]";
pub(super) const SMALL_ALL_TO_ALL: &str =
    "workload=[{all-to-all={per-pair=\"20kB\",groups=\"all\",window=4}}]";
const SLOW_GAPS: [&str; 3] = ["3550ns", "10550ns", "19550ns"];

/// The window is the scenario's, 96 packets, unless a setting has another.
const SETTINGS: [Setting; 5] = [
    Setting {
        name: "permutation",
        sets: &[PERMUTATION],
        quick: SMALL_PERMUTATION,
        gaps: ["990ns", "1580ns", "4080ns"],
        seeds: 5,
        drained: 11.3,
        claim: "the paper: -33 to -50 %",
    },
    Setting {
        name: "slow links, hosts at 50 Gb/s",
        sets: &SLOW_LINKS,
        quick: SMALL_PERMUTATION,
        gaps: SLOW_GAPS,
        seeds: 5,
        drained: 10.5,
        claim: "the paper: 5 times shorter",
    },
    Setting {
        name: "slow links, hosts at 200 Gb/s",
        sets: &[PERMUTATION, THREE_SLOW],
        quick: SMALL_PERMUTATION,
        gaps: SLOW_GAPS,
        seeds: 5,
        drained: 10.5,
        claim: "the paper: 5 times shorter",
    },
    Setting {
        name: "one slow link, hosts at 200 Gb/s",
        sets: &[PERMUTATION, ONE_SLOW],
        quick: SMALL_PERMUTATION,
        gaps: SLOW_GAPS,
        seeds: 5,
        drained: 10.5,
        claim: "the paper: 5 times shorter",
    },
    Setting {
        name: "all-to-all",
        sets: &[ALL_TO_ALL],
        quick: SMALL_ALL_TO_ALL,
        gaps: ["1590ns", "42080ns", "82080ns"],
        seeds: SEEDS,
        drained: 6.3,
        claim: "no number in the paper",
    },
];

const SCHEMES: [&str; 7] =
    ["ecmp", "rps", "flowlet, best", "flowlet, balanced", "flowlet, least disorder", NIC, KEPT];

/// Fig. 7: weights and ratios. The weight of 0.12, the artefact's default, stands for 1/8.
const ALPHAS: [f64; 5] = [0.5, 0.25, 0.12, 0.0625, 0.03125];
const RATIOS: [u32; 7] = [1, 2, 3, 4, 5, 10, 20];
const ALPHA: f64 = 0.12;

impl Setting {
    fn label(&self, scheme: &str) -> String {
        format!("{}: {scheme}", self.name)
    }

    fn scheme(&self, scheme: &str) -> String {
        let gap = |i: usize| format!("scheme.flowlet-nic={{gap=\"{}\"}}", self.gaps[i]);
        match scheme {
            "flowlet, best" => gap(0),
            "flowlet, balanced" => gap(1),
            "flowlet, least disorder" => gap(2),
            NIC => "scheme.flowcut={}".to_owned(),
            KEPT => "scheme.flowcut={keep-average=true}".to_owned(),
            other => format!("scheme.{other}={{}}"),
        }
    }

    /// The setting with a scheme, for each seed.
    fn cases(&self, label: &str, scheme: &str, quick: bool) -> Vec<Case> {
        let case = small(Case::new(label, SCENARIO, &[scheme]));
        let case = self.sets.iter().fold(case, |case, set| case.and(*set));
        let (case, seeds) = if quick { (case.and(self.quick), 1) } else { (case, self.seeds) };
        seeded(&case, seeds).collect()
    }
}

fn threshold(alpha: f64, ratio: u32) -> String {
    format!("alpha {alpha}, ratio {ratio}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in &SETTINGS {
        for scheme in SCHEMES {
            cases.extend(setting.cases(&setting.label(scheme), &setting.scheme(scheme), quick));
        }
    }
    for alpha in ALPHAS.into_iter().filter(|&alpha| !quick || alpha == ALPHA) {
        for ratio in RATIOS {
            let set = format!("scheme.flowcut={{alpha={alpha:?},ratio={ratio}.0}}");
            cases.extend(SETTINGS[0].cases(&threshold(alpha, ratio), &set, quick));
        }
    }
    cases
}

/// ECMP on the permutation.
fn ecmp() -> String {
    SETTINGS[0].label("ecmp")
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let none = "no number in the paper";
    for setting in &SETTINGS {
        let ecmp = setting.label("ecmp");
        for scheme in SCHEMES {
            let label = setting.label(scheme);
            let mine = matches!(scheme, NIC | KEPT);
            for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
                rows.push(row(&label, metric, "us", &over_seeds(runs, &label, what), none).tabled());
            }
            let late = over_seeds(runs, &label, out_of_order_of_accepted);
            let claim = if mine { "the guarantee: 0" } else { none };
            rows.push(row(&label, "out of order", "% of accepted", &late, claim).tabled());
            if !mine {
                continue;
            }
            for (metric, what) in [("mean FCT", mean_us as Metric), ("mean beyond P99", beyond_us)] {
                let off = runs.more_than(&ecmp, &label, what);
                rows.push(row(&label, format!("{metric} against ECMP"), "%", &off, setting.claim));
            }
            let shorter = runs.ratios(&ecmp, &label, beyond_us);
            if setting.name.contains("slow") {
                rows.push(row(&label, "mean beyond P99, ECMP's / Flowcut's", "x", &shorter, setting.claim));
            }
            for (metric, what) in DRAINING {
                let held = over_seeds(runs, &label, what);
                rows.push(row_beside(setting.drained, &label, metric, "%", &held, "Table IV"));
            }
        }
    }
    for alpha in ALPHAS.into_iter().filter(|&alpha| !quick || alpha == ALPHA) {
        for ratio in RATIOS {
            let note = match ratio {
                1 | 2 => "the paper: bad",
                3..=5 => "the paper: good",
                _ => "the paper: approaches ECMP as the ratio grows",
            };
            let label = threshold(alpha, ratio);
            let value = runs.ratios(&label, &ecmp(), mean_us);
            rows.push(row(&label, "mean FCT / ECMP's", "x", &value, note).tabled());
        }
    }
    rows
}

/// FCTs, and Fig. 7 as a table.
fn more(runs: &Runs) -> String {
    let header = ["", "mean us", "beyond P99 us", "out of order %"].map(str::to_owned);
    let mut times = text::table(&header, 1);
    for setting in &SETTINGS {
        for scheme in SCHEMES {
            let label = setting.label(scheme);
            let cell = |what: Metric| ranged(&over_seeds(runs, &label, what));
            times.add_row([label.clone(), cell(mean_us), cell(beyond_us), cell(out_of_order_of_accepted)]);
        }
    }
    let header: Vec<String> =
        std::iter::once("ratio".to_owned()).chain(ALPHAS.map(|alpha| format!("alpha {alpha}"))).collect();
    let mut map = text::table(&header, 1);
    for ratio in RATIOS {
        let value = |alpha| runs.ratios(&threshold(alpha, ratio), &ecmp(), mean_us);
        map.add_row(std::iter::once(ratio.to_string()).chain(ALPHAS.map(|alpha| ranged(&value(alpha)))));
    }
    format!(
        "FCT by scheme; \"beyond P99\" is the mean of the FCTs above the P99, which the artefact plots as the tail. Means over \
         the seeds, with the range:\n{times}\n\nFig. 7: mean FCT of Flowcut in NICs divided by that of ECMP, on the \
         permutation:\n{map}\n"
    )
}

/// Fig. 7.
fn picture(runs: &Runs) -> Picture {
    let value = |ratio: &u32| mean(&runs.ratios(&threshold(ALPHA, *ratio), &ecmp(), mean_us));
    let line = Values {
        name: format!("alpha {ALPHA}"),
        scheme: "flowcut".into(),
        x: RATIOS.iter().map(ToString::to_string).collect(),
        y: RATIOS.iter().map(value).collect(),
    };
    let thresholds = Figure {
        title: "Fig. 7: the threshold of Flowcut in NICs".into(),
        caption: "Mean FCT of the permutation, divided by that of ECMP. Below 1, Flowcut is better.".into(),
        shape: Shape::Lines,
        x: "ratio R",
        y: "mean FCT / ECMP's",
        series: vec![line],
        paper: Vec::new(),
    };
    Picture { figures: vec![thresholds], ..Picture::default() }
}
