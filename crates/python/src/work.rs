//! Sweeps: the directory of one under way, and the points that others run.

use crate::asked;
use crate::errors::failure;
use crate::table::Table;
use crate::watch::watched;
use lab::sweep::{self, Point};
use lab::{Crew, Failure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use report::PageFile;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A sweep under way, which no other process works on.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Work {
    work: Mutex<Option<Arc<sweep::Work>>>,
    /// What there is to warn of.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// What there is to say about older results.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Where its results go.
    #[pyo3(get)]
    directory: PathBuf,
    /// How many runs there are, and how many of them were done before.
    #[pyo3(get)]
    runs: (usize, usize),
    /// It was finished before: nothing is to be done.
    finished: Option<Finished>,
}

/// Where it is, and the points whose simulation failed, with the reasons.
type Finished = (PathBuf, Vec<(usize, String, String)>);

/// What Python is told of a finished sweep.
fn told(finished: sweep::Finished, sweep: &sweep::Sweep) -> Finished {
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
    /// Reads a sweep, checks all of its points, and takes the directory for it.
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
        ear: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let spec = asked::sweep(&sweep, is_dict, &asked::sets(sets)?)?;
        let crew = Crew::new(threads, None);
        let runs = spec.len();
        let sweep =
            watched(py, runs, ear, |progress| sweep::Sweep::check(spec, crew, progress))?.map_err(failure)?;
        let directory = output.unwrap_or_else(|| Path::new("results").join(&sweep.spec.name));
        let warnings = sweep.warnings.clone();
        py.detach(|| {
            let finished = if resume { sweep::Work::finished(&sweep, &directory)? } else { None };
            // A finished one needs no directory of its own, nor a lock.
            if let Some(finished) = finished {
                let (runs, finished) = (sweep.runs().len(), Some(told(finished, &sweep)));
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

    /// Numbers and labels of the points that are still to be run.
    fn wanted(&self) -> PyResult<Vec<(usize, String)>> {
        if self.finished.is_some() {
            return Ok(Vec::new());
        }
        let work = self.work()?;
        Ok(work.wanted().into_iter().map(|number| (number, work.sweep().spec.label(number))).collect())
    }

    /// A point as a text that [`run_point`] takes, here or elsewhere.
    fn point(&self, number: usize) -> PyResult<String> {
        self.work()?.sweep().point(number).map(|point| point.to_json()).map_err(failure)
    }

    /// Keeps what [`run_point`] gave.
    fn keep(&self, py: Python<'_>, result: &str) -> PyResult<()> {
        let work = self.work()?;
        py.detach(|| work.keep_json(result)).map_err(failure)
    }

    /// Runs what is still wanted on this machine. Gives the points that could not run, with the reasons.
    fn run(
        &self,
        py: Python<'_>,
        threads: Option<NonZeroUsize>,
        jobs: Option<NonZeroUsize>,
        ear: Option<Py<PyAny>>,
    ) -> PyResult<Vec<(usize, String, String)>> {
        let work = self.work()?;
        let crew = Crew::new(threads, jobs);
        let ran = watched(py, work.wanted().len(), ear, |progress| sweep::run(&work, crew, progress))?;
        let label = |number: usize| work.sweep().spec.label(number);
        let refused = ran.map_err(failure)?.refused.into_iter();
        Ok(refused.map(|(number, why)| (number, label(number), why.to_string())).collect())
    }

    /// Makes the dataset and puts it in its place.
    fn finish(&self, py: Python<'_>) -> PyResult<Finished> {
        if let Some(finished) = &self.finished {
            return Ok(finished.clone());
        }
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = work.and_then(Arc::into_inner);
        let mut work = work.ok_or_else(|| PyValueError::new_err("this sweep is closed, or still running"))?;
        let finished = py.detach(|| work.finish()).map_err(failure)?;
        Ok(told(finished, work.sweep()))
    }

    /// Lets go of the directory. What is done stays.
    fn close(&self) {
        drop(self.work.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Runs a point of a sweep, wherever it came from. What it gives is for [`Work::keep`].
#[pyfunction]
pub(crate) fn run_point(py: Python<'_>, point: &str) -> PyResult<String> {
    let point = Point::from_json(point).map_err(failure)?;
    let run = |progress: &lab::Progress<'_>| sweep::run_point(&point, NonZeroUsize::MIN, progress);
    Ok(watched(py, 1, None, run)?.map_err(failure)?.to_json())
}

/// Writes the page of a finished sweep.
#[pyfunction]
pub(crate) fn sweep_page(py: Python<'_>, dir: PathBuf, file: PathBuf) -> PyResult<()> {
    py.detach(|| report::write_sweep(&dir, &PageFile::at(file)?)).map_err(failure)
}

/// Makes sure that the files of a finished sweep are of one sweep.
#[pyfunction]
pub(crate) fn check_sweep(py: Python<'_>, dir: PathBuf) -> PyResult<()> {
    py.detach(|| sweep::dataset::read(&dir)).map(drop).map_err(|e| failure(e.into()))
}

/// Reads a table of a finished sweep.
#[pyfunction]
pub(crate) fn read_table(py: Python<'_>, file: PathBuf) -> PyResult<Table> {
    let table = py.detach(|| ::results::table::Table::read_parquet(&file, 1));
    table.map(Table).map_err(|e| failure(Failure::from(e)))
}
