//! The directory of a comparison: one directory of results for each run, and `comparison.json` with what was compared.

use crate::directory::{Staging, Target};
use crate::error::ResultsError;
use crate::kind::{COMPARISON_MARK, Kind};
use crate::stats::{extremes, margin, mean};
use crate::stored::Stored;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The page of a comparison in its directory.
const PAGE: &str = "report.html";

/// The error for the comparison at `dir` in place of a run.
pub(crate) fn in_place_of_a_run(dir: &Path) -> ResultsError {
    let one = Comparison::read(dir).ok().and_then(|found| found.dirs().next());
    ResultsError::Comparison(dir.to_owned(), one.unwrap_or_else(|| dir.join("SCHEME-SEED")))
}

/// A directory for a comparison in the making. Its runs are written one by one, and all of them appear at the end.
#[derive(Debug)]
pub struct Keeper {
    target: Target,
    staging: Staging,
}

impl Keeper {
    /// Takes `dir` unless it holds anything but an older comparison.
    ///
    /// # Errors
    /// If the directory holds other files, or the system refuses.
    pub fn at(dir: &Path) -> Result<Self, ResultsError> {
        let strange = |why: String| Err(ResultsError::NotResults(dir.to_owned(), why));
        let target = Target::of(dir, COMPARISON_MARK, |_| true)?;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => Kind::of(&entry.path()) == Some(Kind::Run) && Target::at(entry.path()).is_ok(),
                false => [COMPARISON_MARK, PAGE].contains(&&*name),
            };
            if !ours {
                return strange(format!("{name} is not one of its files"));
            }
        }
        Ok(Keeper { staging: Staging::beside(&target)?, target })
    }

    /// The directory of the finished comparison.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// The place for the results of a run, before the comparison is finished.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn place(&self, summary: &Summary) -> Result<Target, ResultsError> {
        Target::at(self.staging.path(&directory(summary)))
    }

    /// Writes `comparison.json` and moves everything to its place. An older comparison is replaced as a whole or not at all.
    ///
    /// # Errors
    /// If the system refuses. An older comparison then stays.
    pub fn finish(self, runs: &[&Summary], asked: &Asked) -> Result<(), ResultsError> {
        let run = |summary: &&Summary| {
            json!({
                "scheme": summary.scheme,
                "seed": summary.seed,
                "digest": summary.digest,
                "complete": summary.complete,
                "directory": directory(summary),
            })
        };
        let manifest = json!({
            "ropewalk": env!("CARGO_PKG_VERSION"),
            "scenario": asked.scenario,
            "class": asked.class,
            "baseline": asked.baseline,
            "decides": asked.decides,
            "command": asked.command,
            "schemes": over_seeds(runs),
            "runs": runs.iter().map(run).collect::<Vec<_>>(),
        });
        self.staging.seal(COMPARISON_MARK, manifest)?;
        self.staging.publish(&self.target)
    }
}

/// What a comparison compares.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Name of the scenario.
    pub scenario: String,
    /// Traffic class whose scheme changes; `None` for the usual one.
    pub class: Option<String>,
    /// Scheme with which the others are compared; `None` if there is none.
    pub baseline: Option<String>,
    /// What decides the comparison, if that was asked.
    pub decides: Option<serde_json::Value>,
    /// The command that makes the comparison again.
    pub command: Vec<String>,
}

/// Name of the directory of a run.
fn directory(summary: &Summary) -> String {
    format!("{}-{}", summary.scheme, summary.seed)
}

/// A finished comparison on disk.
#[derive(Clone, Debug)]
pub struct Comparison {
    dir: PathBuf,
    /// Scheme with which the others are compared.
    pub baseline: Option<String>,
    /// What decides the comparison, if that was asked.
    pub decides: Option<serde_json::Value>,
    runs: Vec<Entry>,
}

/// A run, as `comparison.json` lists it.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    directory: String,
}

impl Comparison {
    /// Opens the comparison in `dir`.
    ///
    /// # Errors
    /// If `comparison.json` is missing, damaged or edited.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        let Stored { manifest, .. } = Stored::open(dir, COMPARISON_MARK, &["runs", "schemes"])?;
        let runs = serde_json::from_value(manifest["runs"].clone()).map_err(|e| {
            let why = format!("is of another version of ropewalk: {e}");
            ResultsError::unfit(&dir.join(COMPARISON_MARK), why)
        })?;
        let baseline = manifest["baseline"].as_str().map(str::to_owned);
        let decides = Some(manifest["decides"].clone()).filter(|decides| !decides.is_null());
        Ok(Comparison { dir: dir.to_owned(), baseline, decides, runs })
    }

    /// The directories of its runs, by scheme and seed.
    pub fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.runs.iter().map(|run| self.dir.join(&run.directory))
    }
}

/// The numbers of a scheme over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverSeeds {
    /// The scheme.
    pub scheme: String,
    /// Number of its runs.
    pub runs: usize,
    /// True if all of them are complete.
    pub complete: bool,
    /// Statistics by metric; a metric that one of the runs lacks is left out.
    pub metrics: BTreeMap<String, Statistics>,
}

/// A metric over the seeds of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half of the 95 % confidence interval of the mean (Student's t); null for a single seed.
    pub margin: Option<f64>,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

impl Statistics {
    /// Statistics of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (least, most) = extremes(values)?;
        Some(Statistics { mean: mean(values)?, margin: margin(values), least, most })
    }
}

/// All metrics of each scheme over its seeds, in the order of the runs. Times of the machine are left out.
pub fn over_seeds(runs: &[&Summary]) -> Vec<OverSeeds> {
    let mut schemes: Vec<(&str, Vec<&Summary>)> = Vec::new();
    for run in runs {
        match schemes.iter_mut().find(|(scheme, _)| *scheme == run.scheme) {
            Some((_, own)) => own.push(run),
            None => schemes.push((&run.scheme, vec![run])),
        }
    }
    let of = |(scheme, own): (&str, Vec<&Summary>)| {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (metric, value) in own.iter().flat_map(|run| run.numbers()).filter(|(metric, _)| !metric.varies) {
            values.entry(metric.key).or_default().extend(value.as_f64());
        }
        values.retain(|_, values| values.len() == own.len());
        let statistics = |(key, values): (String, Vec<f64>)| Some((key, Statistics::of(&values)?));
        OverSeeds {
            scheme: scheme.to_owned(),
            runs: own.len(),
            complete: own.iter().all(|run| run.complete),
            metrics: values.into_iter().filter_map(statistics).collect(),
        }
    };
    schemes.into_iter().map(of).collect()
}
