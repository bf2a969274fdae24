//! Flowcut switching (arXiv 2506.21406): its figures and tables, and their metrics.

pub(crate) mod dragonfly;
pub(crate) mod flowlets;
pub(crate) mod incast;
pub(crate) mod memory;
pub(crate) mod permutation;
pub(crate) mod workloads;

use crate::experiment::{Case, Runs};
use lab::Run;

/// The paper's fabric with its permutation.
const SCENARIO: &str = "flowcut-permutation";

/// A metric of a run.
type Of = fn(&Run) -> Option<f64>;

/// Mean FCT, us.
fn mean_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.mean)
}

/// 99th percentile of the FCT, us.
fn tail_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.p99)
}

/// Mean FCT beyond the 99th percentile, us, which the artefact plots as the percentile.
fn beyond_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.and_then(|fct| fct.tail_mean)
}

/// Time for which sources were held back, in percent of the sum of all FCTs.
fn drained(run: &Run) -> Option<f64> {
    let held = *run.summary.counters.get("drained_us")? as f64;
    let all = mean_us(run)? * run.summary.flows.finished as f64;
    Some(100.0 * held / all)
}

impl Runs {
    fn measure(&self, label: &str, what: Of) -> Option<f64> {
        self.get(label).and_then(what)
    }

    /// Difference of a metric of run `label` from that of run `other`, in percent.
    fn more_than(&self, other: &str, label: &str, what: Of) -> Option<f64> {
        Some(100.0 * (self.measure(label, what)? / self.measure(other, what)? - 1.0))
    }
}

/// The case on a fabric of 128 hosts, an eighth of the paper's.
fn small(case: Case) -> Case {
    case.and("topology.fat-tree.k=8")
}
