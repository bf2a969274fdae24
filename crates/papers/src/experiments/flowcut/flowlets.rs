//! Flowcut, Figure 1: the best flowlet gap depends on the workload and on failures.
//!
//! The paper tunes Flowlet three times, with fewer than 20 % (best), 5 % (balanced) and 2 % (least disorder) of
//! packets out of order. We run every gap of a grid, and take for each bound the gap with the lowest mean FCT within
//! the bound, both as means over the seeds. The workloads are those of the artefact.

use super::artefact;
use super::{SCENARIO, SEEDS, mean_us, seeded, small};
use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds, ranged};
use results::stats::mean;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-flowlets",
    source: "Flowcut switching (arXiv 2506.21406), Figure 1, and its three tunings of Flowlet",
    about: "search for the flowlet gaps with the lowest mean FCT and fewer than 20, 5 and 2 % of packets out of order",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// Gaps, ns: steps of a quarter around the gaps of the artefact's permutation (990, 1580 and 4080), and steps of a
/// factor of two beyond them. The search can thus choose the artefact's gaps or their neighbours.
const GAPS: [u32; 16] =
    [250, 500, 790, 990, 1250, 1580, 2000, 2500, 3200, 4080, 8000, 16_000, 32_000, 64_000, 128_000, 256_000];
const BOUNDS: [(&str, f64); 3] = [("best", 20.0), ("balanced", 5.0), ("least disorder", 2.0)];

/// Name, settings, the smaller workload of the quick form, and the artefact's three gaps, us. Each setting is that of
/// `flowcut-artefact`.
const SETTINGS: [(&str, &[&str], &str, [f64; 3]); 3] = [
    ("permutation", &[artefact::PERMUTATION], artefact::SMALL_PERMUTATION, [0.99, 1.58, 4.08]),
    ("all-to-all", &[artefact::ALL_TO_ALL], artefact::SMALL_ALL_TO_ALL, [1.59, 42.08, 82.08]),
    ("slow links", &artefact::SLOW_LINKS, artefact::SMALL_PERMUTATION, [3.55, 10.55, 19.55]),
];

fn label(setting: &str, gap: u32) -> String {
    format!("{setting}, gap {gap} ns")
}

/// The cases, with the artefact's 128 hosts, on which its gaps were tuned.
fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (setting, sets, smaller, _) in SETTINGS {
        for gap in GAPS.into_iter().filter(|gap| !quick || [500, 1580, 4080, 32_000].contains(gap)) {
            let set = format!("scheme.flowlet-nic={{gap=\"{gap}ns\"}}");
            let case = small(Case::new(label(setting, gap), SCENARIO, &[&set]));
            let case = sets.iter().fold(case, |case, set| case.and(*set));
            match quick {
                true => cases.push(case.and(smaller)),
                false => cases.extend(seeded(&case, SEEDS)),
            }
        }
    }
    cases
}

/// The gap (ns) with the lowest mean FCT (us) among gaps within a bound on reordering, and that FCT.
fn tuned(runs: &Runs, setting: &str, bound: f64) -> Option<(u32, f64)> {
    let tried = GAPS.into_iter().filter_map(|gap| {
        let of = |what: Metric| mean(&over_seeds(runs, &label(setting, gap), what));
        (of(out_of_order_of_accepted)? < bound).then_some((gap, of(mean_us)?))
    });
    tried.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (setting, _, _, artefact) in SETTINGS {
        for ((name, bound), paper) in BOUNDS.into_iter().zip(artefact) {
            let case = format!("{setting}, {name}");
            let best = tuned(runs, setting, bound);
            let gap = best.map(|(gap, _)| f64::from(gap) / 1000.0);
            let note = "the artefact's gap; ours is from a grid";
            rows.push(Row::beside(paper, &case, "gap", "us", gap, note));
            let note = "the paper gives a curve without numbers";
            rows.push(Row::ours(&case, "mean FCT", "us", best.map(|(_, fct)| fct), note));
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let mut header = vec!["gap us".to_owned()];
    header.extend(
        SETTINGS.iter().flat_map(|(name, ..)| [format!("{name}\nmean us"), format!("{name}\nooo %")]),
    );
    let mut table = text::table(&header, 0);
    for gap in GAPS {
        let cells: Vec<_> = SETTINGS
            .iter()
            .flat_map(|(setting, ..)| {
                let label = label(setting, gap);
                [over_seeds(runs, &label, mean_us), over_seeds(runs, &label, out_of_order_of_accepted)]
            })
            .collect();
        if cells.iter().any(|values| !values.is_empty()) {
            let gap = text::number(f64::from(gap) / 1000.0);
            table.add_row(std::iter::once(gap).chain(cells.iter().map(|values| ranged(values))));
        }
    }
    format!("Mean FCT and packets out of order by gap, as means over the seeds with the range:\n{table}\n")
}
