//! Runs and their results, comparisons, reports.

use crate::asked::{self, Asked};
use crate::errors::{self, failure};
use crate::table::Table;
use crate::watch::watched;
use ::results::directory::Target;
use ::results::kind::Kind;
use ::results::metrics::Shown;
use ::results::results::Opened;
use ::results::{Metric, Summary};
use explain::deciding;
use lab::Comparison;
use lab::RECORD_EVERYTHING;
use lab::execute::{execute, window_on};
use lab::fast::Leave;
use lab::{Crew, Failure, Prepared, Run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use report::{self, PageFile};
use schemes::{FeedbackConfig, SchemeConfig};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Results of a fresh run, or of a directory whose tables are read on demand.
enum Source {
    Whole(Box<::results::Results>),
    Stored(Box<Opened>),
}

/// The results of a run.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Results {
    source: Source,
    /// The run itself, if it has frames to write.
    tapped: Option<Box<Run>>,
    /// Reasons why the simulation failed; empty if it did not.
    #[pyo3(get)]
    faults: Vec<String>,
}

impl Results {
    pub(crate) fn of(run: Run, command: Vec<String>) -> Self {
        let results = run.results(command);
        let faults = run.faults();
        let tapped = (!run.checked.scenario.record.taps.is_empty()).then(|| Box::new(run));
        Results { source: Source::Whole(Box::new(results)), tapped, faults }
    }

    fn bare(results: ::results::Results) -> Self {
        Results { source: Source::Whole(Box::new(results)), tapped: None, faults: Vec::new() }
    }

    fn totals(&self) -> &Summary {
        match &self.source {
            Source::Whole(results) => &results.summary,
            Source::Stored(opened) => &opened.summary,
        }
    }

    /// The results with all tables. Every file of a directory is compared with its checksum.
    fn whole(&self) -> Result<Cow<'_, ::results::Results>, Failure> {
        Ok(match &self.source {
            Source::Whole(results) => Cow::Borrowed(results),
            Source::Stored(opened) => Cow::Owned(opened.read()?),
        })
    }
}

#[pymethods]
impl Results {
    /// `summary.json`.
    #[getter]
    fn summary(&self) -> String {
        serde_json::to_string(self.totals()).unwrap_or_default()
    }

    /// The main results: name, value (`None` if there is none) and unit.
    #[getter]
    fn measures(&self) -> Vec<(&'static str, Option<f64>, String)> {
        let summary = self.totals();
        let flows = &summary.flows;
        let slowest = summary.jobs.values().map(|job| job.groups.completion_us.slowest);
        let slowest =
            slowest.collect::<Option<Vec<f64>>>().and_then(|all| all.into_iter().max_by(f64::total_cmp));
        let group = Metric::slowest_group();
        let first = [
            ("flows", Some(flows.finished as f64), format!("of {}", flows.count)),
            (group.label.as_str(), slowest, group.shown_unit().to_owned()),
        ];
        let of = |metric: &'static Metric| {
            let value = metric.in_table(|key| summary.number(key));
            (metric.label.as_str(), value, metric.shown_unit().to_owned())
        };
        let told = |metric: &&Metric| metric.is_in(std::iter::once(summary));
        first.into_iter().chain(Metric::shown_in(Shown::Comparison).filter(told).map(of)).collect()
    }

    /// `manifest.json`.
    #[getter]
    fn manifest(&self) -> String {
        match &self.source {
            Source::Whole(results) => results.manifest.to_string(),
            Source::Stored(opened) => opened.manifest().to_string(),
        }
    }

    /// Names of the tables of this run.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        match &self.source {
            Source::Whole(results) => results.tables().map(|(name, _)| name).collect(),
            Source::Stored(opened) => opened.tables().collect(),
        }
    }

    /// The table of this name, if there is one. A table of a directory is compared with its checksum.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        let table = match &self.source {
            Source::Whole(results) => results.table(name).cloned(),
            Source::Stored(opened) => py.detach(|| opened.table(name)).map_err(|e| failure(e.into()))?,
        };
        Ok(table.map(Table))
    }

    /// The text that `ropewalk explain` prints about a flow.
    fn explain(&self, py: Python<'_>, flow: &str, listener: Option<Py<PyAny>>) -> PyResult<String> {
        let results = py.detach(|| self.whole()).map_err(failure)?;
        let text = |key: &str| results.manifest[key].as_str().unwrap_or_default().to_owned();
        let has_classes = asked::has_classes(&scenario::Source::new(text("scenario"), text("config")), &[]);
        let explain = |progress: &lab::Progress<'_>| explain::subject::of_results(&results, flow, progress);
        watched(py, 1, has_classes, listener, explain)?.map_err(failure)
    }

    /// The counters under the names of NICs or switches, or with a dump a comparison, as JSON.
    fn counters(
        &self,
        py: Python<'_>,
        names: &str,
        at: Option<&str>,
        dump: Option<&str>,
        interval: Option<f64>,
    ) -> PyResult<String> {
        let results = py.detach(|| self.whole()).map_err(failure)?;
        let view = counters::view(&results, names, at).map_err(|error| failure(error.into()))?;
        let json = match dump {
            None => serde_json::to_string(&view),
            Some(dump) => {
                let comparison = counters::compare(&view, dump, interval);
                serde_json::to_string(&comparison.map_err(|error| failure(error.into()))?)
            }
        };
        Ok(json.unwrap_or_default())
    }

    /// Writes a result directory as a whole or not at all.
    fn save(&self, py: Python<'_>, dir: PathBuf, csv: bool) -> PyResult<()> {
        py.detach(|| {
            let (results, target) = (self.whole()?, Target::at(dir)?);
            match &self.tapped {
                Some(run) => results.write_with(&target, csv, |staging| capture::write(run, staging))?,
                None => results.write(&target, csv)?,
            }
            Ok(())
        })
        .map_err(failure)
    }

    /// Writes the timeline for Perfetto.
    fn perfetto(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| PageFile::for_timeline(file)?.write(&report::timeline(self.whole()?.as_ref())))
            .map_err(failure)
    }
}

/// Writes a page about runs.
#[pyfunction]
#[pyo3(signature = (runs, file, decides = None))]
pub(crate) fn page(
    py: Python<'_>,
    runs: Vec<PyRef<'_, Results>>,
    file: PathBuf,
    decides: Option<&str>,
) -> PyResult<()> {
    let decides: Option<serde_json::Value> = decides.and_then(|json| serde_json::from_str(json).ok());
    let runs: Vec<&Results> = runs.iter().map(|run| &**run).collect();
    py.detach(|| {
        let runs: Vec<_> =
            runs.iter().map(|run| Ok(run.whole()?.into_owned())).collect::<Result<_, Failure>>()?;
        let baseline = lab::compare::usual_baseline();
        PageFile::at(file)?.write(&report::of_comparison(&runs, baseline, decides.as_ref()))
    })
    .map_err(failure)
}

/// Opens a result directory, whose tables are read on demand.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, dir: PathBuf) -> PyResult<Results> {
    let opened = py.detach(|| Opened::at(&dir)).map_err(|e| failure(e.into()))?;
    Ok(Results { source: Source::Stored(Box::new(opened)), tapped: None, faults: Vec::new() })
}

/// The result directories of the runs of a comparison; `None` if `dir` holds no comparison.
#[pyfunction]
pub(crate) fn comparison(dir: PathBuf) -> PyResult<Option<Vec<PathBuf>>> {
    if Kind::of(&dir) != Some(Kind::Comparison) {
        return Ok(None);
    }
    let found = ::results::comparison::Comparison::read(&dir).map_err(|e| failure(e.into()))?;
    Ok(Some(found.dirs().collect()))
}

/// Checks a scenario. Returns the configuration with all defaults as TOML, and warnings.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    scenario: String,
    is_dict: bool,
    sets: &str,
) -> PyResult<(String, Vec<String>)> {
    let source = Asked::new(scenario, is_dict)?.scenario()?;
    let sets = asked::sets(sets)?;
    let checked = py.detach(|| scenario::check(&source, &sets)).map_err(errors::scenario)?;
    Ok((checked.to_toml(), checked.warnings()))
}

/// Runs a scenario. `warn` is called with each warning before it runs.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "all by name in Python")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: String,
    is_dict: bool,
    sets: &str,
    threads: NonZeroUsize,
    record: bool,
    fast: Option<(f64, Option<PathBuf>)>,
    warn: &Bound<'_, PyAny>,
    listener: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let asked = Asked::new(scenario, is_dict)?;
    let (source, mut sets) = (asked.scenario()?, asked::sets(sets)?);
    let mut command = asked.command("run", &sets);
    if record {
        sets.splice(..0, RECORD_EVERYTHING.map(str::to_owned));
        command.extend((!command.is_empty()).then(|| "--record".to_owned()));
    }
    if let Some(leave) = asked::leave(fast) {
        if !command.is_empty() {
            command.extend(leave.options());
        }
        let resolved = scenario::Resolved::of(&source, &sets).map_err(errors::scenario)?;
        let has_classes = resolved.may_change();
        let run = |progress: &lab::Progress<'_>| lab::fast::run(resolved, Some(leave), progress);
        let run = watched(py, 1, has_classes, listener, run)?;
        let run = run.map_err(failure)?;
        for warning in run.checked.warnings() {
            warn.call1((warning,))?;
        }
        return Ok(py.detach(|| Results::of(run, command)));
    }
    let has_classes = asked::has_classes(&source, &sets);
    let prepared = watched(py, 1, has_classes, None, |_| Prepared::by(|| scenario::check(&source, &sets)))?;
    let prepared = prepared.map_err(errors::scenario)?;
    for warning in prepared.checked.warnings() {
        warn.call1((warning,))?;
    }
    let kind = window_on(threads, &prepared.checked.plan);
    let run = |progress: &lab::Progress<'_>| Results::of(execute(prepared, kind, progress), command);
    watched(py, 1, has_classes, listener, run)
}

/// Runs a scenario with several schemes and seeds: by scheme, then by seed. With `check`, the second value is what decides the
/// comparison, as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "all by name in Python")]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: String,
    is_dict: bool,
    sets: &str,
    schemes: Vec<String>,
    seeds: Option<&str>,
    class: Option<String>,
    threads: Option<NonZeroUsize>,
    fast: Option<(f64, Option<PathBuf>)>,
    check: bool,
    warn: &Bound<'_, PyAny>,
    listener: Option<Py<PyAny>>,
) -> PyResult<(Vec<Results>, Option<String>)> {
    let asked = Asked::new(scenario, is_dict)?;
    let (source, sets) = (asked.scenario()?, asked::sets(sets)?);
    let resolved = scenario::Resolved::of(&source, &sets).map_err(errors::scenario)?;
    let fast = asked::leave(fast);
    let is_added = |entry: &String| {
        entry
            .split('+')
            .any(|name| !SchemeConfig::BUILT_IN.contains(&name) && !FeedbackConfig::NAMES.contains(&name))
    };
    let has_classes = resolved.may_change() || schemes.iter().any(is_added);
    let base = watched(py, 1, has_classes, None, |_| lab::fast::check(resolved, fast.as_ref()))?
        .map_err(errors::scenario)?;
    for warning in base.warnings() {
        warn.call1((warning,))?;
    }
    let seeds_given = seeds.is_some();
    let seeds = match seeds {
        Some(text) => scenario::sweep::seeds(text).map_err(PyValueError::new_err)?,
        None => vec![base.plan.seed],
    };
    let mut command = asked.command("compare", &sets);
    if !command.is_empty() {
        command.extend(fast.iter().flat_map(Leave::options));
    }
    let comparison =
        Comparison { base, class, schemes, seeds, reference: false, fast, crew: Crew::new(threads, None) };
    comparison.refuse_unused(seeds_given).map_err(failure)?;
    let decide = |progress: &lab::Progress<'_>| {
        let runs = comparison.run(progress)?;
        let decides = if check { decides(&comparison, &runs, progress)? } else { None };
        Ok((runs, decides))
    };
    let (runs, decides) = watched(py, comparison.runs(), has_classes, listener, decide)?.map_err(failure)?;
    if !command.is_empty() {
        command.extend(comparison.class.iter().flat_map(|class| ["--class".to_owned(), class.clone()]));
    }
    let of = |run: Run| {
        let mut command = command.clone();
        if !command.is_empty() {
            let (name, seed) = (&run.summary.scheme, run.summary.seed.to_string());
            let scheme = comparison.entry(name).unwrap_or(name).to_owned();
            command.extend(["--schemes".to_owned(), scheme, "--seeds".into(), seed]);
        }
        Results::of(run, command)
    };
    Ok((py.detach(|| runs.into_iter().map(of).collect()), decides))
}

/// What decides a comparison, as JSON.
fn decides(
    comparison: &Comparison,
    runs: &[Run],
    progress: &lab::Progress<'_>,
) -> Result<Option<String>, Failure> {
    let outlines: Vec<_> = runs.iter().map(Run::outline).collect();
    let Some((_, measure)) = report::measure(&outlines) else { return Ok(None) };
    let measure = |run: &Run| measure(&run.outline());
    let asked = deciding::Asked {
        contenders: deciding::schemes(runs, &measure),
        baseline: Some(lab::compare::usual_baseline()),
        place: None,
        measure: &measure,
        hops: deciding::hops(runs),
        seeded: comparison.seeds.len() > 1,
        crew: comparison.crew,
    };
    let verdict = deciding::of(&asked, progress)?;
    Ok(verdict.and_then(|verdict| serde_json::to_string(&verdict).ok()))
}

/// A finished experiment of a paper.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Experiment(papers::Report);

#[pymethods]
impl Experiment {
    /// The JSON of `ropewalk reproduce --json`, with the answer and the figures.
    #[getter]
    fn json(&self) -> String {
        let mut json = serde_json::to_value(&self.0).unwrap_or_default();
        json["complete"] = self.0.complete().into();
        json["answer"] = self.0.picture().answer().into();
        json["figures"] = serde_json::to_value(self.0.picture().figures()).unwrap_or_default();
        json.to_string()
    }

    /// The text that the command prints.
    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    /// Results of some runs, with their labels.
    #[getter]
    fn runs(&self) -> Vec<(String, Results)> {
        self.0.runs().iter().map(|(label, results)| (label.clone(), Results::bare(results.clone()))).collect()
    }

    /// Writes the page of the experiment.
    fn page(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| PageFile::at(file)?.write(&report::of_experiments(std::slice::from_ref(&self.0))))
            .map_err(failure)
    }
}

/// Runs a paper's experiment.
#[pyfunction]
pub(crate) fn reproduce(
    py: Python<'_>,
    name: String,
    quick: bool,
    threads: Option<NonZeroUsize>,
    jobs: Option<NonZeroUsize>,
    check: bool,
    listener: Option<Py<PyAny>>,
) -> PyResult<Experiment> {
    let experiments = papers::named(&[name]).map_err(failure)?;
    let mut work = papers::Work::new(&experiments, quick).detailed();
    if check {
        work = work.deciding(report::measure);
    }
    let crew = Crew::new(threads, jobs);
    let reports =
        watched(py, work.runs(), false, listener, |progress| work.run(crew, progress))?.map_err(failure)?;
    reports.into_iter().next().map(Experiment).ok_or_else(|| failure(Failure::Interrupted))
}
