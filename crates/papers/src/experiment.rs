//! An experiment of a paper: its cases, and the functions that turn their runs into rows and figures.

use crate::picture::Picture;
use crate::row::{Curve, Row};
use lab::Run;

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name.
    pub name: &'static str,
    /// Paper and figure.
    pub source: &'static str,
    /// What the experiment shows, in one sentence.
    pub about: &'static str,
    /// The cases to run; fewer or smaller ones if `quick`.
    pub(crate) cases: fn(quick: bool) -> Vec<Case>,
    /// Numbers from the runs.
    pub(crate) rows: fn(&Runs, quick: bool) -> Vec<Row>,
    /// Distributions from the runs, for `--json`.
    pub(crate) curves: fn(&Runs) -> Vec<Curve>,
    /// Text below the rows.
    pub(crate) more: fn(&Runs) -> String,
    /// Figures for a page.
    pub(crate) picture: fn(&Runs) -> Picture,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) label: String,
    pub(crate) scenario: &'static str,
    pub(crate) set: Vec<String>,
    /// What was measured elsewhere, if the case has it.
    pub(crate) beside: Option<f64>,
}

impl Case {
    pub(crate) fn new(label: impl Into<String>, scenario: &'static str, set: &[&str]) -> Self {
        Case {
            label: label.into(),
            scenario,
            set: set.iter().map(|s| (*s).to_owned()).collect(),
            beside: None,
        }
    }

    pub(crate) fn and(mut self, set: impl Into<String>) -> Self {
        self.set.push(set.into());
        self
    }

    /// With what was measured elsewhere.
    pub(crate) fn beside(self, measured: f64) -> Self {
        Case { beside: Some(measured), ..self }
    }

    /// The command that runs this case alone.
    pub(crate) fn command(&self) -> String {
        let sets = self.set.iter().flat_map(|set| ["--set", set]);
        lab::shell::line(["ropewalk", "run", self.scenario].into_iter().chain(sets))
    }
}

/// The finished runs of an experiment, with their cases.
pub(crate) struct Runs(pub(crate) Vec<(Case, Run)>);

impl Runs {
    /// The run with this label; `None` if it is not complete.
    pub(crate) fn get(&self, label: &str) -> Option<&Run> {
        self.0.iter().find(|(case, run)| case.label == label && run.summary.complete).map(|(_, run)| run)
    }

    /// The runs with this label, which differ in their seeds; `None` for a run that is not complete.
    pub(crate) fn all(&self, label: &str) -> Vec<Option<&Run>> {
        let mine = self.0.iter().filter(|(case, _)| case.label == label);
        mine.map(|(_, run)| run.summary.complete.then_some(run)).collect()
    }

    /// The runs with this label, complete or not.
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
