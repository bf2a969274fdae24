//! Sweeps: the directory of an unfinished sweep, and points that run anywhere.

use crate::asked;
use crate::errors::failure;
use crate::table::Table;
use crate::watch::watched;
use explain::deciding;
use lab::sweep::{self, Point};
use lab::{Crew, Failure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use report::PageFile;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An unfinished sweep, whose directory is locked against other processes.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Work {
    work: Mutex<Option<Arc<sweep::Work>>>,
    /// Warnings.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// Notes about older results.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Directory of the results.
    #[pyo3(get)]
    directory: PathBuf,
    /// Number of runs, and number of runs that were done before.
    #[pyo3(get)]
    runs: (usize, usize),
    /// The results, if the sweep was finished before.
    finished: Option<Finished>,
}

/// Directory of a finished sweep, and number, label and reason of each point whose simulation failed.
type Finished = (PathBuf, Vec<(usize, String, String)>);

/// Converts a finished sweep for Python.
fn converted(finished: sweep::Finished, sweep: &sweep::Sweep) -> Finished {
    let failed = finished.failed.into_iter();
    (finished.path, failed.map(|(number, why)| (number, sweep.spec.label(number), why)).collect())
}

impl Work {
    fn work(&self) -> PyResult<Arc<sweep::Work>> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).clone();
        work.ok_or_else(|| PyValueError::new_err("this sweep is closed"))
    }
}

#[pymethods]
impl Work {
    /// Reads a sweep, checks all its points, and locks its directory.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "all by name in Python")]
    fn open(
        py: Python<'_>,
        sweep: String,
        is_dict: bool,
        sets: &str,
        output: Option<PathBuf>,
        resume: bool,
        threads: Option<NonZeroUsize>,
        fast: Option<(f64, Option<PathBuf>)>,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let spec = asked::sweep(&sweep, is_dict, &asked::sets(sets)?)?;
        let crew = Crew::new(threads, None);
        let runs = spec.len();
        let fast = asked::leave(fast);
        // The check asks classes for their opinion alone: what they raise is a mistake in the sweep.
        let check = |progress: &lab::Progress<'_>| sweep::Sweep::check(spec, fast, crew, progress);
        let sweep = watched(py, runs, false, listener, check)?.map_err(failure)?;
        let directory = output.unwrap_or_else(|| Path::new("results").join(&sweep.spec.name));
        let warnings = sweep.warnings.clone();
        py.detach(|| {
            let finished = if resume { sweep::Work::finished(&sweep, &directory)? } else { None };
            // A finished sweep needs neither a directory for points nor a lock.
            if let Some(finished) = finished {
                let (runs, finished) = (sweep.runs().len(), Some(converted(finished, &sweep)));
                return Ok(Work {
                    work: Mutex::default(),
                    warnings,
                    notes: Vec::new(),
                    directory,
                    runs: (runs, runs),
                    finished,
                });
            }
            let work = sweep::Work::open(sweep, &directory, resume)?;
            let (notes, runs) = (work.notes.clone(), (work.sweep().runs().len(), work.reused()));
            Ok(Work {
                work: Mutex::new(Some(Arc::new(work))),
                warnings,
                notes,
                directory,
                runs,
                finished: None,
            })
        })
        .map_err(failure)
    }

    /// Numbers and labels of the points that have not run.
    fn wanted(&self) -> PyResult<Vec<(usize, String)>> {
        if self.finished.is_some() {
            return Ok(Vec::new());
        }
        let work = self.work()?;
        Ok(work.wanted().into_iter().map(|number| (number, work.sweep().spec.label(number))).collect())
    }

    /// A point as a text for [`run_point`], in this process or another one.
    fn point(&self, number: usize) -> PyResult<String> {
        self.work()?.sweep().point(number).map(|point| point.to_json()).map_err(failure)
    }

    /// Keeps a result of [`run_point`].
    fn keep(&self, py: Python<'_>, result: &str) -> PyResult<()> {
        let work = self.work()?;
        py.detach(|| work.keep_json(result)).map_err(failure)
    }

    /// Runs the missing points on this machine. Returns the points that could not run, with the reasons.
    fn run(
        &self,
        py: Python<'_>,
        threads: Option<NonZeroUsize>,
        jobs: Option<NonZeroUsize>,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Vec<(usize, String, String)>> {
        let work = self.work()?;
        let crew = Crew::new(threads, jobs);
        let run = |progress: &lab::Progress<'_>| sweep::run(&work, crew, progress);
        let ran = watched(py, work.wanted().len(), work.sweep().may_change(), listener, run)?;
        let label = |number: usize| work.sweep().spec.label(number);
        let refused = ran.map_err(failure)?.refused.into_iter();
        Ok(refused.map(|(number, why)| (number, label(number), why.to_string())).collect())
    }

    /// Writes the dataset to the directory of the results, with what decides the sweep if `check`.
    fn finish(
        &self,
        py: Python<'_>,
        check: bool,
        threads: Option<NonZeroUsize>,
        jobs: Option<NonZeroUsize>,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Finished> {
        if let Some(finished) = &self.finished {
            return Ok(finished.clone());
        }
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = work.and_then(Arc::into_inner);
        let mut work = work.ok_or_else(|| PyValueError::new_err("this sweep is closed, or still running"))?;
        let has_classes = work.sweep().may_change();
        let finish = |progress: &lab::Progress<'_>| {
            work.finish_with(|sweep, points| match check {
                // The results are complete, whatever prevents this.
                true => deciding::of_sweep(sweep, points, Crew::new(threads, jobs), progress)
                    .map_or(Value::Null, |verdicts| serde_json::to_value(verdicts).unwrap_or_default()),
                false => Value::Null,
            })
        };
        let finished = watched(py, 1, has_classes, listener, finish)?.map_err(failure)?;
        Ok(converted(finished, work.sweep()))
    }

    /// Unlocks the directory. Finished points stay there.
    fn close(&self) {
        drop(self.work.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Runs a point of a sweep, and returns a text for [`Work::keep`].
#[pyfunction]
pub(crate) fn run_point(py: Python<'_>, point: &str) -> PyResult<String> {
    let point = Point::from_json(point).map_err(failure)?;
    let run = |progress: &lab::Progress<'_>| sweep::run_point(&point, NonZeroUsize::MIN, progress);
    Ok(watched(py, 1, !point.own.is_empty(), None, run)?.map_err(failure)?.to_json())
}

/// Writes the page of a finished sweep.
#[pyfunction]
pub(crate) fn sweep_page(py: Python<'_>, dir: PathBuf, file: PathBuf) -> PyResult<()> {
    py.detach(|| report::write_sweep(&dir, &PageFile::at(file)?)).map_err(failure)
}

/// `sweep.json` of a finished sweep without its checksums.
#[pyfunction]
pub(crate) fn sweep_manifest(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    let stored = py.detach(|| sweep::dataset::open(&dir)).map_err(|e| failure(e.into()))?;
    Ok(stored.manifest.to_string())
}

/// Reads a table of a finished sweep, and compares it with its checksum.
#[pyfunction]
pub(crate) fn sweep_table(py: Python<'_>, dir: PathBuf, name: &str) -> PyResult<Table> {
    let table = py.detach(|| sweep::dataset::open(&dir)?.table(name, 1));
    table.map(Table).map_err(|e| failure(Failure::from(e)))
}
