//! An experiment of a paper: its cases, and what is made of their runs.

use crate::picture::Picture;
use crate::row::{Curve, Row};
use lab::Run;

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Paper and figure.
    pub source: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// Its runs; fewer or smaller ones if quick.
    pub(crate) cases: fn(quick: bool) -> Vec<Case>,
    /// What they come to.
    pub(crate) rows: fn(&Runs, quick: bool) -> Vec<Row>,
    /// Distributions, for `--json`.
    pub(crate) curves: fn(&Runs) -> Vec<Curve>,
    /// More to read, below the rows.
    pub(crate) more: fn(&Runs) -> String,
    /// The picture for a page.
    pub(crate) picture: fn(&Runs) -> Picture,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) label: String,
    pub(crate) scenario: &'static str,
    pub(crate) set: Vec<String>,
}

impl Case {
    pub(crate) fn new(label: impl Into<String>, scenario: &'static str, set: &[&str]) -> Self {
        Case { label: label.into(), scenario, set: set.iter().map(|s| (*s).to_owned()).collect() }
    }

    pub(crate) fn and(mut self, set: impl Into<String>) -> Self {
        self.set.push(set.into());
        self
    }

    /// The command that runs it alone.
    pub(crate) fn command(&self) -> String {
        let sets = self.set.iter().flat_map(|set| ["--set", set]);
        lab::shell::line(["ropewalk", "run", self.scenario].into_iter().chain(sets))
    }
}

/// The runs of an experiment, all done.
pub(crate) struct Runs(pub(crate) Vec<(Case, Run)>);

impl Runs {
    /// The run of that label if it is complete.
    pub(crate) fn get(&self, label: &str) -> Option<&Run> {
        self.0.iter().find(|(case, run)| case.label == label && run.summary.complete).map(|(_, run)| run)
    }

    /// The runs of that label, replicas with seeds of their own; `None` for one that is not complete.
    pub(crate) fn all(&self, label: &str) -> Vec<Option<&Run>> {
        let mine = self.0.iter().filter(|(case, _)| case.label == label);
        mine.map(|(_, run)| run.summary.complete.then_some(run)).collect()
    }

    /// The runs of that label, complete or not.
    pub(crate) fn every(&self, label: &str) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(move |(case, _)| case.label == label).map(|(_, run)| run)
    }

    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(case, _)| case.label.as_str())
    }
}

/// Packets that arrived out of order, per cent of the packets accepted. The metric's own share is of the packets sent, which
/// include lost packets.
pub(crate) fn out_of_order_of_accepted(run: &Run) -> Option<f64> {
    let packets = &run.summary.packets;
    Some(100.0 * packets.out_of_order as f64 / packets.accepted.max(1) as f64)
}
