//! The result directory of a run, written as a whole or not at all.
//!
//! | file | what |
//! |---|---|
//! | `summary.json` | the [`Summary`](crate::Summary) |
//! | `manifest.json` | the resolved configuration and what is needed to run it again, see [`manifest`] |
//! | `flows.parquet` | one row per flow, see [`flows`] |
//! | `links.parquet` | one row per direction of a link, see [`links`] |
//! | `series.parquet` | queue pairs, links and switches over time, see [`series`] |
//! | `counters.parquet` | what the scheme counts, over time, see [`counters`] |
//! | `events.parquet` | single events of queue pairs that are followed, see [`events`] |
//! | `paths.parquet` | which links their data took, and what waited there, see [`paths`] |
//! | `capture-NAME.pcapng` | what passed a link, see [`crate::capture`] |
//!
//! The last four are there if `[record]` asks for them.
//!
//! For the same scenario and seed every byte is the same, but for `timing` in `summary.json`.

pub mod counters;
pub mod directory;
pub mod events;
pub mod flows;
pub mod links;
pub mod manifest;
pub mod paths;
pub mod series;
pub mod table;

use crate::sweep::{dataset, work};
use directory::{Staging, Target};
use engine::Outcome;
use manifest::Manifest;
use model::{Plan, Time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};
use table::Table;
use thiserror::Error;

/// Why results could not be written or read.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// Something else stands there.
    #[error(
        "{0} exists and does not look like results of ropewalk ({1}): not replaced; choose another directory with -o, \
         or remove it"
    )]
    NotResults(PathBuf, String),
    /// The system refused.
    #[error("cannot write {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// There are no results.
    #[error(
        "{0} is no result directory of ropewalk (it has no manifest.json); `ropewalk run SCENARIO -o DIR` makes one"
    )]
    NoResults(PathBuf),
    /// Many runs are there.
    #[error("{0} is a sweep, not the results of one run: `ropewalk report {0}` makes its page")]
    Sweep(PathBuf),
    /// Some of many runs are there.
    #[error(
        "{0} is an unfinished sweep: `ropewalk sweep FILE --resume` goes on with it, or `resume=True` in Python"
    )]
    Unfinished(PathBuf),
    /// A file of a result directory is missing or makes no sense.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, String),
    /// A Parquet file is cut short or broken.
    #[error("cannot read {0}: it is no whole Parquet file ({1}); {again}", again = again(.0))]
    Broken(PathBuf, #[source] parquet::errors::ParquetError),
    /// A file does not fit to the others of its directory.
    #[error("{0} is damaged, or of other results: {1}; {again}", again = again(.0))]
    Unfit(PathBuf, String),
    /// A Parquet file could not be made.
    #[error("cannot write {0}: {1}")]
    Parquet(PathBuf, #[source] parquet::errors::ParquetError),
    /// A CSV file could not be made.
    #[error("cannot write {0}: {1}")]
    Csv(PathBuf, #[source] csv::Error),
}

impl ResultsError {
    /// `file` does not fit to the others of its directory.
    pub(crate) fn unfit(file: &Path, why: String) -> Self {
        ResultsError::Unfit(file.to_owned(), why)
    }
}

/// How to come by a whole file where this one is broken.
fn again(file: &Path) -> &'static str {
    match file.parent().is_some_and(dataset::is_sweep) {
        true => "`ropewalk sweep` without --resume makes the sweep anew",
        false => "run the scenario again",
    }
}

/// Everything that goes into the tables.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What was run.
    pub plan: &'a Plan,
    /// Ideal FCT by message.
    pub ideal: &'a [Time],
    /// What came out.
    pub outcome: &'a Outcome,
}

/// The results of a run, whether it has just ended or was written long ago: what reports, Python and `explain` work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// `summary.json`.
    pub summary: Value,
    /// `manifest.json`.
    pub manifest: Value,
    /// The tables by name; see [`TABLES`].
    tables: BTreeMap<&'static str, Table>,
}

impl Results {
    /// Of a run that `command` started.
    pub fn of(run: &crate::Run, command: Vec<String>) -> Self {
        let parts = run.for_results();
        let tables: BTreeMap<_, _> =
            TABLES.iter().filter_map(|&(name, make)| Some((name, make(parts)?))).collect();
        let manifest = Manifest::new(&run.summary, &run.checked, command, parts, &tables);
        Results { summary: json(&run.summary), manifest: json(&manifest), tables }
    }

    /// Reads a result directory.
    ///
    /// # Errors
    /// [`ResultsError::NoResults`] and its like if it is none; if one of its files is missing, cut short or of another kind.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        if !dir.join(directory::MARK).is_file() {
            let why = match dir {
                _ if dataset::is_sweep(dir) => ResultsError::Sweep,
                _ if work::is_unfinished(dir) => ResultsError::Unfinished,
                _ => ResultsError::NoResults,
            };
            return Err(why(dir.to_owned()));
        }
        let (mark, told) = (dir.join(directory::MARK), dir.join("summary.json"));
        let (manifest, summary) = (read_json(&mark)?, read_json(&told)?);
        for key in ["tables", "config", "digest", "command"] {
            if manifest[key].is_null() {
                return Err(ResultsError::unfit(&mark, format!("it has no `{key}`")));
            }
        }
        if summary["digest"] != manifest["digest"] {
            return Err(ResultsError::unfit(&told, "it has another digest than manifest.json".to_owned()));
        }
        let mut tables = BTreeMap::new();
        for (name, _) in TABLES {
            let Some(kept) = manifest["tables"].get(name) else { continue };
            let every = kept["every"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
            let file = dir.join(format!("{name}.parquet"));
            let table = Table::read_parquet(&file, every)?;
            if let Some(rows) = kept["rows"].as_u64().filter(|&rows| rows != table.rows() as u64) {
                let why = format!("it has {} rows, and manifest.json tells of {rows}", table.rows());
                return Err(ResultsError::unfit(&file, why));
            }
            tables.insert(name, table);
        }
        Ok(Results { summary, manifest, tables })
    }

    /// A table by its name, if this run has it.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// The same with another table.
    #[cfg(test)]
    pub(crate) fn with(mut self, name: &'static str, table: Table) -> Self {
        self.tables.insert(name, table);
        self
    }

    /// All tables with their names.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, &Table)> {
        self.tables.iter().map(|(name, table)| (*name, table))
    }

    /// Writes them into `target`, replacing older results there.
    ///
    /// # Errors
    /// If the system refuses; then what stood at the target still stands.
    pub fn write(&self, target: &Target, csv: bool) -> Result<(), ResultsError> {
        self.write_with(target, csv, |_| Ok(()))
    }

    /// The same with the captures of the run that they are of.
    ///
    /// # Errors
    /// As above.
    pub fn write_of(&self, run: &crate::Run, target: &Target, csv: bool) -> Result<(), ResultsError> {
        self.write_with(target, csv, |staging| crate::capture::write(run, staging))
    }

    /// The same with more files, which `more` writes.
    ///
    /// # Errors
    /// Those of `more`, and as above.
    pub(crate) fn write_with(
        &self,
        target: &Target,
        csv: bool,
        more: impl FnOnce(&Staging) -> Result<(), ResultsError>,
    ) -> Result<(), ResultsError> {
        let staging = Staging::beside(target)?;
        for (name, table) in self.tables() {
            table.write_parquet(&staging.path(&format!("{name}.parquet")))?;
            if csv {
                table.write_csv(&staging.path(&format!("{name}.csv")))?;
            }
        }
        more(&staging)?;
        staging.write("summary.json", &pretty(&self.summary))?;
        staging.write(directory::MARK, &pretty(&self.manifest))?;
        staging.publish(target)
    }
}

/// JSON as it stands in files.
pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

pub(crate) fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub(crate) fn read_json(path: &Path) -> Result<Value, ResultsError> {
    let text =
        fs::read_to_string(path).map_err(|e| ResultsError::Unreadable(path.to_owned(), e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| ResultsError::Unreadable(path.to_owned(), e.to_string()))
}

/// Makes a table of a run, if it has anything for it.
type Make = fn(Run<'_>) -> Option<Table>;

/// The tables that a run may have, by name: a file each.
pub const TABLES: [(&str, Make); 6] = [
    ("flows", |run| Some(flows::table(run))),
    ("links", |run| Some(links::table(run))),
    ("series", |run| Some(series::table(run))),
    ("counters", counters::table),
    ("events", events::table),
    ("paths", paths::table),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Summary, Timing, Title};
    use crate::testing;
    use std::fs;

    fn results() -> Results {
        let (plan, outcome) = (testing::plan(3), testing::outcome(3));
        let ideal = vec![Time::from_us(5); 3];
        let title = Title { scenario: "test", scheme: "ecmp" };
        let summary = Summary::new(title, &plan, &ideal, &outcome, Timing::default());
        let mut checked = scenario::load("quickstart", &[]).unwrap();
        checked.plan = plan;
        Results::of(&crate::Run { checked, outcome, ideal, summary }, vec!["ropewalk".into()])
    }

    fn put(dir: &Path) -> Result<(), ResultsError> {
        results().write(&Target::at(dir)?, true)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        assert_eq!(Results::read(&dir).unwrap(), results());
    }

    #[test]
    fn what_is_no_result_or_cut_short_is_named() {
        let tmp = tempfile::tempdir().unwrap();
        let said = |dir: &Path| Results::read(dir).unwrap_err().to_string();
        assert!(said(tmp.path()).contains("no result directory"));
        fs::write(tmp.path().join("unfinished.json"), "{}").unwrap();
        assert!(said(tmp.path()).contains("unfinished sweep: `ropewalk sweep FILE --resume`"));
        fs::write(tmp.path().join("sweep.json"), "{}").unwrap();
        assert!(said(tmp.path()).contains("is a sweep"));
        fs::write(tmp.path().join("points.parquet"), "PAR1").unwrap();
        let broken = dataset::read(tmp.path()).unwrap_err().to_string();
        assert!(broken.contains("without --resume"), "{broken}");
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        let flows = dir.join("flows.parquet");
        let whole = fs::read(&flows).unwrap();
        fs::write(&flows, &whole[..whole.len() / 2]).unwrap();
        assert!(said(&dir).contains("flows.parquet: it is no whole Parquet file"), "{}", said(&dir));
        fs::remove_file(&flows).unwrap();
        assert!(said(&dir).contains("cannot read") && said(&dir).contains("flows.parquet"));
        fs::copy(dir.join("links.parquet"), &flows).unwrap();
        assert!(
            said(&dir).contains("flows.parquet is damaged, or of other results: it has"),
            "{}",
            said(&dir)
        );
        let summary = fs::read_to_string(dir.join("summary.json")).unwrap();
        fs::write(dir.join("summary.json"), summary.replace("\"digest\": \"", "\"digest\": \"0")).unwrap();
        assert!(said(&dir).contains("summary.json is damaged, or of other results: it has another digest"));
        fs::write(dir.join("manifest.json"), "{}").unwrap();
        assert!(said(&dir).contains("manifest.json is damaged, or of other results: it has no `tables`"));
    }

    #[test]
    fn the_same_run_writes_the_same_bytes_and_replaces_itself() {
        let tmp = tempfile::tempdir().unwrap();
        let (a, b) = (tmp.path().join("a"), tmp.path().join("b"));
        put(&a).unwrap();
        put(&b).unwrap();
        put(&a).unwrap();
        let mut names: Vec<_> = fs::read_dir(&a).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 8, "{names:?}");
        for name in names {
            assert_eq!(fs::read(a.join(&name)).unwrap(), fs::read(b.join(&name)).unwrap(), "{name:?}");
        }
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn what_is_not_results_is_not_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        fs::write(tmp.path().join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(put(tmp.path()), Err(ResultsError::NotResults(..))));
        assert_eq!(fs::read_to_string(tmp.path().join("thesis.tex")).unwrap(), "years of work");
        let file = tmp.path().join("thesis.tex");
        assert!(matches!(put(&file), Err(ResultsError::NotResults(..))));
        // Results with a note of the user's among them are told apart by that note.
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        fs::write(dir.join("notes.txt"), "keep").unwrap();
        let said = put(&dir).unwrap_err().to_string();
        assert!(said.contains("(notes.txt is none of its files)"), "{said}");
    }

    #[test]
    fn parquet_columns_say_what_they_are() {
        use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        for name in ["flows", "links", "series"] {
            let file = fs::File::open(dir.join(format!("{name}.parquet"))).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            assert!(!reader.schema().fields().is_empty());
            for field in reader.schema().fields() {
                let about = field.metadata();
                assert!(about.contains_key("description") && about.contains_key("unit"), "{name}: {field}");
            }
        }
    }
}
