//! Flowcut switching (arXiv 2506.21406): its figures and tables, and their metrics.

pub(crate) mod artefact;
pub(crate) mod dragonfly;
pub(crate) mod flowlets;
pub(crate) mod incast;
pub(crate) mod memory;
pub(crate) mod permutation;
pub(crate) mod workloads;

use crate::experiment::{Case, Runs};
use crate::row::Row;
use crate::seeds::{Metric, over_seeds};
use lab::Run;
use results::stats::{extremes, mean};
use results::text;

/// The paper's fabric with its permutation.
const SCENARIO: &str = "flowcut-permutation";

/// Seeds of a claim.
const SEEDS: u32 = 3;

/// Mean FCT, us.
fn mean_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.mean)
}

/// 99th percentile of the FCT, us.
fn tail_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.p99)
}

/// Mean of the FCTs beyond their 99th percentile, us, which the artefact plots as the percentile.
fn beyond_us(run: &Run) -> Option<f64> {
    let times = run.outcome.messages.iter().filter_map(results::flows::fct);
    beyond_p99(times.map(|fct| fct.as_us()).collect())
}

/// Mean of the numbers beyond the 99th percentile; `None` if no number is. As in the artefact, the percentile lies between
/// two ranks. So of 128 flows two are beyond it, while the summary's `tail_mean`, by the nearest rank, has one.
fn beyond_p99(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let rank = numbers.len().checked_sub(1)? * 99;
    let (low, part) = (rank / 100, (rank % 100) as f64 / 100.0);
    let high = numbers[(low + 1).min(numbers.len() - 1)];
    let percentile = numbers[low] + part * (high - numbers[low]);
    numbers.retain(|number| *number > percentile);
    mean(&numbers)
}

/// Time for which sources were held back, us.
fn held_us(run: &Run) -> Option<f64> {
    Some(*run.summary.counters.get("drained_us")? as f64)
}

/// Time for which sources were held back, in percent of the sum of all FCTs.
fn drained(run: &Run) -> Option<f64> {
    Some(100.0 * held_us(run)? / (mean_us(run)? * run.summary.flows.finished as f64))
}

/// The same time, in percent of the sum of the times from the start of the run to the end of each flow. The artefact divides
/// by these times. The share equals [`drained`] if all flows start together.
fn drained_of_run(run: &Run) -> Option<f64> {
    let ends = run.outcome.messages.iter().filter_map(|message| results::flows::set(message.acked));
    let all: f64 = ends.map(|end| end.as_us()).sum();
    (all > 0.0).then_some(100.0 * held_us(run)? / all)
}

/// Both shares of the time spent draining. The paper does not define its share.
const DRAINING: [(&str, Metric); 2] = [
    ("draining, share of the FCTs", drained),
    ("draining, share of the time since the start", drained_of_run),
];

/// The mean of a metric over the seeds as a row; its note begins with the range.
fn row(case: &str, metric: impl Into<String>, unit: &'static str, values: &[f64], note: &str) -> Row {
    Row::ours(case, metric, unit, mean(values), noted(values, note))
}

/// [`row`] for a number that the paper also gives.
fn row_beside(paper: f64, case: &str, metric: &str, unit: &'static str, values: &[f64], note: &str) -> Row {
    Row::beside(paper, case, metric, unit, mean(values), noted(values, note))
}

fn noted(values: &[f64], note: &str) -> String {
    match extremes(values) {
        Some((least, most)) if least < most => {
            let (least, most) = (text::number(least), text::number(most));
            format!("{least} to {most} over {} seeds; {note}", values.len())
        }
        _ => note.to_owned(),
    }
}

impl Runs {
    /// A metric of the runs `label` divided by that of the runs `other`, seed by seed; empty if a run is not complete.
    fn ratios(&self, label: &str, other: &str, what: Metric) -> Vec<f64> {
        let (mine, theirs) = (over_seeds(self, label, what), over_seeds(self, other, what));
        mine.iter().zip(&theirs).map(|(mine, theirs)| mine / theirs).collect()
    }

    /// Difference of a metric of the runs `label` from that of the runs `other`, seed by seed, in percent.
    fn more_than(&self, other: &str, label: &str, what: Metric) -> Vec<f64> {
        self.ratios(label, other, what).iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
    }
}

/// The case with each of these seeds, from 1.
fn seeded(case: &Case, seeds: u32) -> impl Iterator<Item = Case> {
    (1..=seeds).map(|seed| case.clone().and(format!("seed={seed}")))
}

/// The case on a fabric of 128 hosts, an eighth of the paper's.
fn small(case: Case) -> Case {
    case.and("topology.fat-tree.k=8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_128_flows_are_beyond_the_percentile() {
        assert_eq!(beyond_p99((1..=128).map(f64::from).collect()), Some(127.5), "99 % are at 126.73");
        assert_eq!(beyond_p99((1..=1024).rev().map(f64::from).collect()), Some(1019.0), "11 flows");
        assert_eq!(beyond_p99(vec![4.0; 200]), None, "no number exceeds the percentile");
        assert_eq!(beyond_p99(vec![]), None);
    }
}
