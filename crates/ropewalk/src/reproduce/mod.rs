//! The papers' experiments: their numbers beside ours.
//!
//! An experiment is a list of cases (a built-in scenario and changes, just what `ropewalk run` takes) and a
//! function from their results to rows. To add one: a file with a `const EXPERIMENT`, and its line in [`ALL`].

mod dlbf;
mod dlbf_motivation;
mod flowcut;
mod long_haul;
mod loss_recovery;
mod picture;
mod report;
mod themis_fig1;
mod themis_fig5;
mod themis_memory;
mod themis_modes;
mod which_scheme;

pub use picture::{Figure, Mark, Picture, Shape, Values};
pub use report::{Curve, Report, Row};

use crate::crew::Crew;
use crate::execute::{Prepared, Run, execute, window_on};
use crate::failure::Failure;
use crate::progress::Progress;
use engine::outcome::Ending;
use std::num::NonZeroUsize;

/// All experiments.
pub const ALL: &[Experiment] = &[
    dlbf::EXPERIMENT,
    dlbf_motivation::EXPERIMENT,
    flowcut::dragonfly::EXPERIMENT,
    flowcut::flowlets::EXPERIMENT,
    flowcut::incast::EXPERIMENT,
    flowcut::memory::EXPERIMENT,
    flowcut::permutation::EXPERIMENT,
    flowcut::workloads::EXPERIMENT,
    long_haul::tables_1_2::EXPERIMENT,
    long_haul::ablation::EXPERIMENT,
    long_haul::micro::EXPERIMENT,
    loss_recovery::EXPERIMENT,
    themis_fig1::EXPERIMENT,
    themis_fig5::EXPERIMENT,
    themis_memory::EXPERIMENT,
    themis_modes::EXPERIMENT,
    which_scheme::EXPERIMENT,
];

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
    cases: fn(quick: bool) -> Vec<Case>,
    /// What they come to.
    rows: fn(&Results, quick: bool) -> Vec<Row>,
    /// Distributions, for `--json`.
    curves: fn(&Results) -> Vec<Curve>,
    /// More to read, below the rows.
    more: fn(&Results) -> String,
    /// The picture for a page.
    picture: fn(&Results) -> Picture,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    label: String,
    scenario: &'static str,
    set: Vec<String>,
}

impl Case {
    fn new(label: impl Into<String>, scenario: &'static str, set: &[&str]) -> Self {
        Case { label: label.into(), scenario, set: set.iter().map(|s| (*s).to_owned()).collect() }
    }

    fn and(mut self, set: impl Into<String>) -> Self {
        self.set.push(set.into());
        self
    }

    /// The command that runs it alone.
    fn command(&self) -> String {
        let sets = self.set.iter().flat_map(|set| ["--set", set]);
        crate::shell::line(["ropewalk", "run", self.scenario].into_iter().chain(sets))
    }
}

/// The runs of an experiment, all done.
struct Results(Vec<(Case, Run)>);

impl Results {
    /// The run of that label if it is complete.
    fn get(&self, label: &str) -> Option<&Run> {
        self.0.iter().find(|(case, run)| case.label == label && run.summary.complete).map(|(_, run)| run)
    }

    /// The runs of that label, replicas with seeds of their own; `None` for one that is not complete.
    fn all(&self, label: &str) -> Vec<Option<&Run>> {
        let mine = self.0.iter().filter(|(case, _)| case.label == label);
        mine.map(|(_, run)| run.summary.complete.then_some(run)).collect()
    }

    /// The runs of that label, complete or not.
    fn every(&self, label: &str) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(move |(case, _)| case.label == label).map(|(_, run)| run)
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(case, _)| case.label.as_str())
    }
}

/// The experiments of these names.
///
/// # Errors
/// If one does not exist.
pub fn named(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let find = |name: &String| {
        let unknown = || {
            let all: Vec<&str> = ALL.iter().map(|e| e.name).collect();
            Failure::Asked(format!("there is no experiment `{name}`; {}", scenario::suggestion(name, &all)))
        };
        ALL.iter().find(|e| e.name == name).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

/// Experiments laid out as runs.
pub struct Work {
    quick: bool,
    /// Reports keep the results of the runs that a page shows.
    detailed: bool,
    experiments: Vec<(Experiment, Vec<Case>)>,
}

impl Work {
    /// Lays them out.
    pub fn new(experiments: &[&Experiment], quick: bool) -> Self {
        let laid = experiments.iter().map(|&e| (*e, (e.cases)(quick)));
        Work { quick, detailed: false, experiments: laid.collect() }
    }

    /// With all that a page shows.
    pub fn detailed(self) -> Self {
        Work { detailed: true, ..self }
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.experiments.iter().map(|(_, cases)| cases.len()).sum()
    }

    /// Runs everything on the threads of `crew`. Experiments that the user interrupted are missing.
    ///
    /// # Errors
    /// If a scenario is wrong.
    pub fn run(&self, crew: Crew, progress: &Progress<'_>) -> Result<Vec<Report>, Failure> {
        let cases: Vec<&Case> = self.experiments.iter().flat_map(|(_, cases)| cases).collect();
        let one = |case: &Case, threads: NonZeroUsize| -> Result<Option<Run>, Failure> {
            if progress.stopped() {
                return Ok(None);
            }
            let prepared = Prepared::by(|| scenario::load(case.scenario, &case.set))?;
            let kind = window_on(threads, &prepared.checked.plan);
            let run = execute(prepared, kind, progress);
            Ok((run.outcome.ending != Ending::Interrupted).then_some(run))
        };
        let runs: Result<Vec<Option<Run>>, Failure> = crew.side_by_side(cases, one)?.into_iter().collect();
        let mut runs = runs?.into_iter();
        let mut reports = Vec::new();
        for (experiment, cases) in &self.experiments {
            let done: Option<Vec<Run>> =
                runs.by_ref().take(cases.len()).collect::<Vec<_>>().into_iter().collect();
            let Some(done) = done else { continue };
            let results = Results(cases.iter().cloned().zip(done).collect());
            let report = Report::new(experiment, &results, self.quick);
            reports.push(if self.detailed { report.detailed(experiment, &results) } else { report });
        }
        Ok(reports)
    }
}
