//! The results of a run: fresh from the engine, or read from a directory.

use crate::data::RunData;
use crate::directory::{Staging, Target};
use crate::error::ResultsError;
use crate::json::{pretty, read as read_json, value as json};
use crate::kind::{Kind, MARK};
use crate::manifest::{Config, Manifest};
use crate::summary::Summary;
use crate::table::Table;
use crate::tables::TABLES;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The results of a run that has just ended or was read from disk. Reports, Python and `explain` work on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// `summary.json`.
    pub summary: Summary,
    /// `manifest.json`.
    pub manifest: Value,
    /// The tables by name; see [`TABLES`].
    tables: BTreeMap<&'static str, Table>,
}

impl Results {
    /// The results of a fresh run that `command` started.
    pub fn new(summary: &Summary, run: RunData<'_>, config: Config, command: Vec<String>) -> Self {
        let tables: BTreeMap<_, _> =
            TABLES.iter().filter_map(|&(name, make)| Some((name, make(run)?))).collect();
        let manifest = Manifest::new(summary, config, command, run, &tables);
        Results { summary: summary.clone(), manifest: json(&manifest), tables }
    }

    /// Reads a result directory.
    ///
    /// # Errors
    /// If the directory holds no results of a run, or if one of its files is missing, cut short or of another run.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        match Kind::of(dir) {
            Some(Kind::Run) => {}
            Some(Kind::Sweep) => return Err(ResultsError::Sweep(dir.to_owned())),
            Some(Kind::UnfinishedSweep) => return Err(ResultsError::Unfinished(dir.to_owned())),
            None => return Err(ResultsError::NoResults(dir.to_owned())),
        }
        let (mark, told) = (dir.join(MARK), dir.join("summary.json"));
        let (manifest, summary): (Value, Summary) = (read_json(&mark)?, read_json(&told)?);
        for key in ["tables", "config", "digest", "command"] {
            if manifest[key].is_null() {
                return Err(ResultsError::unfit(&mark, format!("it has no `{key}`")));
            }
        }
        if manifest["digest"] != summary.digest {
            return Err(ResultsError::unfit(&told, "it has another digest than manifest.json".to_owned()));
        }
        let mut tables = BTreeMap::new();
        for (name, _) in TABLES {
            let Some(kept) = manifest["tables"].get(name) else { continue };
            let every = kept["every"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
            let file = dir.join(format!("{name}.parquet"));
            let table = Table::read_parquet(&file, every)?;
            if let Some(rows) = kept["rows"].as_u64().filter(|&rows| rows != table.rows() as u64) {
                let why = format!("it has {} rows, but manifest.json lists {rows}", table.rows());
                return Err(ResultsError::unfit(&file, why));
            }
            tables.insert(name, table);
        }
        Ok(Results { summary, manifest, tables })
    }

    /// The table with this name, if the run has it.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// Adds or replaces a table.
    #[must_use]
    pub fn with(mut self, name: &'static str, table: Table) -> Self {
        self.tables.insert(name, table);
        self
    }

    /// All tables with their names.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, &Table)> {
        self.tables.iter().map(|(name, table)| (*name, table))
    }

    /// Writes the results into `target` and replaces older results there.
    ///
    /// # Errors
    /// If the system refuses. In this case older results at the target stay.
    pub fn write(&self, target: &Target, csv: bool) -> Result<(), ResultsError> {
        self.write_with(target, csv, |_| Ok(()))
    }

    /// Writes the results and the files that `more` adds.
    ///
    /// # Errors
    /// The errors of `more` and of [`Results::write`].
    pub fn write_with(
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
        staging.write("summary.json", &self.summary.to_json())?;
        staging.write(MARK, &pretty(&self.manifest))?;
        staging.publish(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Summary, Timing, Title};
    use crate::testing;
    use model::Time;
    use std::fs;

    fn results() -> Results {
        let (plan, outcome) = (testing::plan(3), testing::outcome(3));
        let ideal = vec![Time::from_us(5); 3];
        let title = Title { scenario: "test", scheme: "ecmp" };
        let summary = Summary::new(title, &plan, &ideal, &outcome, Timing::default());
        let run = RunData { plan: &plan, ideal: &ideal, outcome: &outcome };
        let config = Config { text: "seed = 1\n".into(), hash: "0".into() };
        Results::new(&summary, run, config, vec!["ropewalk".into()])
    }

    fn put(dir: &Path) -> Result<(), ResultsError> {
        results().write(&Target::at(dir)?, true)
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        assert_eq!(Results::read(&dir).unwrap(), results());
    }

    #[test]
    fn errors_name_the_missing_or_damaged_file() {
        let tmp = tempfile::tempdir().unwrap();
        let said = |dir: &Path| Results::read(dir).unwrap_err().to_string();
        assert!(said(tmp.path()).contains("no result directory"));
        fs::write(tmp.path().join("unfinished.json"), "{}").unwrap();
        assert!(said(tmp.path()).contains("unfinished sweep: `ropewalk sweep FILE --resume`"));
        fs::write(tmp.path().join("sweep.json"), "{}").unwrap();
        assert!(said(tmp.path()).contains("is a sweep"));
        fs::write(tmp.path().join("points.parquet"), "PAR1").unwrap();
        let broken = Table::read_parquet(&tmp.path().join("points.parquet"), 1).unwrap_err().to_string();
        assert!(broken.contains("without --resume"), "{broken}");
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        let flows = dir.join("flows.parquet");
        let whole = fs::read(&flows).unwrap();
        fs::write(&flows, &whole[..whole.len() / 2]).unwrap();
        assert!(said(&dir).contains("flows.parquet: it is no complete Parquet file"), "{}", said(&dir));
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
    fn foreign_files_are_never_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        fs::write(tmp.path().join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(put(tmp.path()), Err(ResultsError::NotResults(..))));
        assert_eq!(fs::read_to_string(tmp.path().join("thesis.tex")).unwrap(), "years of work");
        let file = tmp.path().join("thesis.tex");
        assert!(matches!(put(&file), Err(ResultsError::NotResults(..))));
        // A file of the user's among the results protects the directory.
        let dir = tmp.path().join("r");
        put(&dir).unwrap();
        fs::write(dir.join("notes.txt"), "keep").unwrap();
        let said = put(&dir).unwrap_err().to_string();
        assert!(said.contains("(notes.txt is not one of its files)"), "{said}");
    }

    #[test]
    fn parquet_columns_have_descriptions_and_units() {
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
