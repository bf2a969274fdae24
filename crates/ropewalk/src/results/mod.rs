//! The result directory of a run, written as a whole or not at all.
//!
//! | file | what |
//! |---|---|
//! | `summary.json` | the [`Summary`] |
//! | `manifest.json` | the resolved configuration and what is needed to run it again, see [`manifest`] |
//! | `flows.parquet` | one row per flow, see [`flows`] |
//! | `links.parquet` | one row per direction of a link, see [`links`] |
//! | `series.parquet` | chosen queue pairs and links over time, see [`series`] |
//!
//! For the same scenario and seed every byte is the same, but for `timing` in `summary.json`.

pub mod directory;
pub mod flows;
pub mod links;
pub mod manifest;
pub mod series;
pub mod table;

use crate::summary::Summary;
use directory::{Staging, Target};
use engine::Outcome;
use manifest::Manifest;
use model::{Plan, Time};
use std::io;
use std::path::PathBuf;
use table::Table;
use thiserror::Error;

/// Why results could not be written.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// Something else stands there.
    #[error(
        "{0} exists and does not look like results of ropewalk (it has no manifest.json): not replaced; \
         choose another directory with -o, or remove it"
    )]
    NotResults(PathBuf),
    /// The system refused.
    #[error("cannot write {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// A Parquet file could not be made.
    #[error("cannot write {0}: {1}")]
    Parquet(PathBuf, #[source] parquet::errors::ParquetError),
    /// A CSV file could not be made.
    #[error("cannot write {0}: {1}")]
    Csv(PathBuf, #[source] csv::Error),
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

/// Writes a run into `target`, replacing older results there.
///
/// # Errors
/// If the system refuses; then what stood at the target still stands.
pub fn write(
    target: &Target,
    summary: &Summary,
    manifest: Manifest,
    run: Run<'_>,
    csv: bool,
) -> Result<(), ResultsError> {
    let staging = Staging::beside(target)?;
    let mut manifest = manifest;
    for (name, make) in TABLES {
        let table = make(run);
        table.write_parquet(&staging.path(&format!("{name}.parquet")))?;
        if csv {
            table.write_csv(&staging.path(&format!("{name}.csv")))?;
        }
        manifest.note_table(name, &table);
    }
    staging.write("summary.json", &summary.to_json())?;
    staging.write("manifest.json", &manifest.to_json())?;
    staging.publish(target)
}

/// Makes a table of a run.
type Make = fn(Run<'_>) -> Table;

const TABLES: [(&str, Make); 3] =
    [("flows", flows::table), ("links", links::table), ("series", series::table)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Timing, Title};
    use crate::testing;
    use std::fs;

    fn put(dir: &std::path::Path) -> Result<(), ResultsError> {
        let (plan, outcome) = (testing::plan(3), testing::outcome(3));
        let ideal = vec![Time::from_us(5); 3];
        let title = Title { scenario: "test", scheme: "ecmp" };
        let summary = Summary::new(title, &plan, &ideal, &outcome, Timing::default());
        let run = Run { plan: &plan, ideal: &ideal, outcome: &outcome };
        let manifest = Manifest::new(&summary, &scenario::load("quickstart", &[]).unwrap(), vec![], run);
        write(&Target::at(dir)?, &summary, manifest, run, true)
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
        assert!(matches!(put(tmp.path()), Err(ResultsError::NotResults(_))));
        assert_eq!(fs::read_to_string(tmp.path().join("thesis.tex")).unwrap(), "years of work");
        let file = tmp.path().join("thesis.tex");
        assert!(matches!(put(&file), Err(ResultsError::NotResults(_))));
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
