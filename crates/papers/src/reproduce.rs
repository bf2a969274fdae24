//! Runs experiments.

use crate::deciding::{self, Ranker};
use crate::experiment::{Case, Experiment, Runs};
use crate::experiments::{
    dlbf, dlbf_motivation, flowcut, hardware, long_haul, loss_recovery, next_generation, themis_fig1,
    themis_fig5, themis_memory, themis_modes, which_scheme,
};
use crate::report::Report;
use lab::execute::{Prepared, Run, execute, window_on};
use lab::{Crew, Failure, Progress};
use std::num::NonZeroUsize;
use std::path::Path;

/// All experiments.
pub const ALL: &[Experiment] = &[
    dlbf::EXPERIMENT,
    dlbf_motivation::EXPERIMENT,
    flowcut::artefact::EXPERIMENT,
    flowcut::dragonfly::EXPERIMENT,
    flowcut::flowlets::EXPERIMENT,
    flowcut::incast::EXPERIMENT,
    flowcut::memory::EXPERIMENT,
    flowcut::permutation::EXPERIMENT,
    flowcut::workloads::EXPERIMENT,
    hardware::EXPERIMENT,
    long_haul::tables_1_2::EXPERIMENT,
    long_haul::ablation::EXPERIMENT,
    long_haul::micro::EXPERIMENT,
    long_haul::full::EXPERIMENT,
    loss_recovery::EXPERIMENT,
    next_generation::HEADLINE,
    next_generation::FAULTS,
    next_generation::RECOVERY,
    next_generation::MIXED,
    next_generation::PLANES,
    next_generation::SENSITIVITY,
    next_generation::LARGE,
    themis_fig1::EXPERIMENT,
    themis_fig5::EXPERIMENT,
    themis_memory::EXPERIMENT,
    themis_modes::EXPERIMENT,
    which_scheme::EXPERIMENT,
];

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

/// The cases of several experiments, ready to run.
pub struct Work {
    quick: bool,
    /// True if reports keep the results of the runs that a page shows.
    detailed: bool,
    /// Chooses the time that ranks cases, if reports say what decides the ranking.
    ranker: Option<Ranker>,
    experiments: Vec<(Experiment, Vec<Case>)>,
}

impl Work {
    /// The cases of these experiments.
    pub fn new(experiments: &[&Experiment], quick: bool) -> Self {
        let laid = experiments.iter().map(|&e| (*e, (e.cases)(quick)));
        Work { quick, detailed: false, ranker: None, experiments: laid.collect() }
    }

    /// The collectives that the files of a folder have, in place of those of the experiment `hardware`.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that is no measured collective.
    pub fn over_data(folder: &Path) -> Result<Self, Failure> {
        let cases = hardware::of_folder(folder)?;
        let experiments = vec![(hardware::EXPERIMENT, cases)];
        Ok(Work { quick: false, detailed: false, ranker: None, experiments })
    }

    /// The same work, with reports that hold the content of a page.
    pub fn detailed(self) -> Self {
        Work { detailed: true, ..self }
    }

    /// The same work, with reports that say what decides the rankings among the cases by the times that `ranker` chooses.
    pub fn deciding(self, ranker: Ranker) -> Self {
        Work { ranker: Some(ranker), ..self }
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.experiments.iter().map(|(_, cases)| cases.len()).sum()
    }

    /// Runs everything on the threads of `crew`. Experiments that the user interrupted are missing.
    ///
    /// # Errors
    /// If a scenario is wrong, or a run ends for lack of memory.
    pub fn run(&self, crew: Crew, progress: &Progress<'_>) -> Result<Vec<Report>, Failure> {
        let cases: Vec<&Case> = self.experiments.iter().flat_map(|(_, cases)| cases).collect();
        let one = |case: &Case, threads: NonZeroUsize| -> Result<Option<Run>, Failure> {
            if progress.stopped() {
                return Ok(None);
            }
            let prepared = Prepared::by(|| scenario::load(case.scenario, &case.set))?;
            let kind = window_on(threads, &prepared.checked.plan);
            let run = execute(prepared, kind, progress);
            match run.ran_to_its_end() {
                Ok(()) => Ok(Some(run)),
                Err(Failure::Interrupted) => Ok(None),
                Err(short) => Err(short),
            }
        };
        let runs: Result<Vec<Option<Run>>, Failure> = crew.side_by_side(cases, one)?.into_iter().collect();
        let mut finished = runs?.into_iter();
        let mut reports = Vec::new();
        for (experiment, cases) in &self.experiments {
            let done: Option<Vec<Run>> =
                finished.by_ref().take(cases.len()).collect::<Vec<_>>().into_iter().collect();
            let Some(done) = done else { continue };
            let runs = Runs(cases.iter().cloned().zip(done).collect());
            let mut report = Report::new(experiment, &runs, self.quick);
            if let Some(ranker) = self.ranker.filter(|_| !progress.stopped()) {
                // An error loses the verdict alone: the runs of the experiment are complete.
                match deciding::of(&runs, ranker, crew, progress) {
                    Ok(verdicts) => report.decides = verdicts,
                    Err(why) => report.undecided = Some(why.to_string()),
                }
            }
            reports.push(if self.detailed { report.detailed(experiment, &runs) } else { report });
        }
        Ok(reports)
    }
}
