//! Flowcut switching (arXiv 2506.21406): its figures and tables, and what they measure.

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

/// Something measured in a run.
type Of = fn(&Run) -> Option<f64>;

/// Mean FCT, us.
fn mean_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.mean)
}

/// 99th percentile of the FCT, us.
fn tail_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.map(|fct| fct.p99)
}

/// Mean FCT beyond the 99th percentile, us: what the artefact calls the percentile.
fn beyond_us(run: &Run) -> Option<f64> {
    run.summary.flows.fct_us.and_then(|fct| fct.tail_mean)
}

/// Time for which sources were held back, percent of the flows' time.
fn drained(run: &Run) -> Option<f64> {
    let held = *run.summary.counters.get("drained_us")? as f64;
    let all = mean_us(run)? * run.summary.flows.finished as f64;
    Some(100.0 * held / all)
}

impl Runs {
    fn measure(&self, label: &str, what: Of) -> Option<f64> {
        self.get(label).and_then(what)
    }

    /// How much more of something a run has than another one, percent.
    fn more_than(&self, other: &str, label: &str, what: Of) -> Option<f64> {
        Some(100.0 * (self.measure(label, what)? / self.measure(other, what)? - 1.0))
    }
}

/// A case on a fabric of an eighth of the hosts.
fn small(case: Case) -> Case {
    case.and("topology.fat-tree.k=8")
}
