//! The dataset of a finished sweep.
//!
//! | file | what |
//! |---|---|
//! | `sweep.json` | axes, seeds, version, ids, the files' texts, one digest for all results |
//! | `points.parquet` | one row per point: its number and id, a column `axis.KEY` for every key of an axis, seed, scheme, digest, whether it is complete, and all numbers of its summary, `summary.json`'s keys with dots |
//! | `timing.parquet` | the cost of each run; the only file that differs when the same sweep is run again |
//! | `configs.parquet` | each point's resolved configuration: enough to run it alone |
//! | `flows/ID.parquet` | each run's flows, if the sweep asks for them |

use super::checked::Sweep;
use super::point::PointResult;
use super::point::hash;
use crate::failure::Failure;
use arrow_array::Array;
use results::directory::Staging;
use results::kind::SWEEP_MARK;
use results::stored::Stored;
use results::table::{Column, Table};
use results::{Metric, ResultsError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The table with a row for each point.
const POINTS: &str = "points";

/// Rows of `configs.parquet` in memory at one time (our choice: some megabytes).
const ROWS_AT_ONCE: usize = 1000;

/// The tables of a sweep, which grow point by point.
#[derive(Debug)]
pub struct Dataset<'a> {
    sweep: &'a Sweep,
    rows: Vec<Row>,
    /// The numbers of all summaries by metric, in the order in which metrics appear.
    numbers: Cells,
    timing: Cells,
}

#[derive(Debug)]
struct Row {
    number: usize,
    seed: u64,
    scheme: String,
    digest: String,
    complete: bool,
    ending: String,
    failure: String,
}

/// Columns of metrics that grow, with gaps where a point has no such metric.
#[derive(Debug, Default)]
struct Cells {
    /// Columns by key.
    places: BTreeMap<String, usize>,
    columns: Vec<(Metric, Vec<Value>)>,
}

impl Cells {
    fn put(&mut self, row: usize, metric: Metric, value: Value) {
        let next = self.columns.len();
        let place = *self.places.entry(metric.key.clone()).or_insert(next);
        if place == next {
            self.columns.push((metric, Vec::new()));
        }
        let cells = &mut self.columns[place].1;
        cells.resize(row, Value::Null);
        cells.push(value);
    }

    fn columns(self, rows: usize) -> impl Iterator<Item = Column> {
        self.columns.into_iter().map(move |(metric, mut cells)| {
            cells.resize(rows, Value::Null);
            column(&metric, cells)
        })
    }
}

/// The column of a metric: of whole numbers, real ones or texts, as its cells are.
fn column(metric: &Metric, cells: Vec<Value>) -> Column {
    let (name, unit, about) = (&metric.key, metric.unit.name(), &metric.meaning);
    let is_count = |cell: &Value| cell.is_null() || cell.is_u64();
    let is_number = |cell: &Value| cell.is_null() || cell.is_number();
    if cells.iter().all(is_count) && !cells.iter().all(Value::is_null) {
        return Column::maybe(name, unit, about, cells.iter().map(Value::as_u64));
    }
    if cells.iter().all(is_number) {
        return Column::real(name, unit, about, cells.iter().map(Value::as_f64));
    }
    let text = |cell: Value| match cell {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    Column::text(name, about, cells.into_iter().map(text))
}

/// A column of an axis. It holds numbers, or true and false, if all values in the sweep's file are of that type; otherwise
/// texts.
fn axis(spec: &scenario::sweep::Sweep, i: usize, key: &str, rows: &[Row]) -> Column {
    let (name, about) = (format!("axis.{key}"), format!("value of {key} at this point"));
    let cells: Vec<Option<&toml::Value>> =
        rows.iter().map(|row| spec.plain_values(row.number).nth(i)).collect();
    let integer = |cell: &Option<&toml::Value>| cell.and_then(toml::Value::as_integer);
    let count = |cell| integer(cell).and_then(|n| u64::try_from(n).ok());
    let real = |cell: &Option<&toml::Value>| match cell {
        Some(toml::Value::Float(x)) => Some(*x),
        _ => integer(cell).map(|n| n as f64),
    };
    let flag = |cell: &Option<&toml::Value>| cell.and_then(toml::Value::as_bool);
    if let Some(cells) = cells.iter().map(count).collect::<Option<Vec<_>>>() {
        Column::count(&name, "-", &about, cells.into_iter())
    } else if cells.iter().all(|cell| real(cell).is_some()) {
        Column::real(&name, "-", &about, cells.iter().map(real))
    } else if let Some(cells) = cells.iter().map(flag).collect::<Option<Vec<_>>>() {
        Column::flag(&name, &about, cells.into_iter())
    } else {
        let texts = rows.iter().map(|row| spec.values(row.number).get(i).cloned().unwrap_or_default());
        Column::text(&name, &about, texts)
    }
}

impl<'a> Dataset<'a> {
    /// A dataset without rows.
    pub fn new(sweep: &'a Sweep) -> Self {
        Dataset { sweep, rows: Vec::new(), numbers: Cells::default(), timing: Cells::default() }
    }

    /// Adds a point. Points are added in their order.
    pub fn add(&mut self, number: usize, result: &PointResult) {
        let summary = &result.summary;
        let row = self.rows.len();
        for (metric, value) in summary.numbers() {
            let cells = if metric.varies { &mut self.timing } else { &mut self.numbers };
            cells.put(row, metric, value);
        }
        self.rows.push(Row {
            number,
            seed: summary.seed,
            scheme: summary.scheme.clone(),
            digest: summary.digest.clone(),
            complete: summary.complete,
            ending: summary.ending.clone(),
            failure: result.failure.clone(),
        });
    }

    /// Digest of all results.
    pub fn digest(&self) -> String {
        hash(&self.rows.iter().map(|row| row.digest.as_str()).collect::<Vec<_>>())
    }

    /// The tables `points.parquet` and `timing.parquet`.
    pub fn tables(mut self) -> (Table, Table) {
        let rows = &self.rows;
        let ids = self.sweep.ids();
        let first = || {
            let numbers = rows.iter().map(|row| row.number as u64);
            let ids = rows.iter().map(|row| ids[row.number].clone());
            [
                Column::count(
                    "point",
                    "-",
                    "number of the point, from 0; the last axis turns fastest, seeds faster",
                    numbers,
                ),
                Column::text("id", "names the run: the same id, the same configuration and version", ids),
            ]
        };
        let mut points = Vec::from(first());
        for (i, key) in self.sweep.spec.keys().enumerate() {
            points.push(axis(&self.sweep.spec, i, key, rows));
        }
        let text = |pick: fn(&Row) -> &String| rows.iter().map(move |row| pick(row).clone());
        points.extend([
            Column::count("seed", "-", "root of every random draw", rows.iter().map(|row| row.seed)),
            Column::text(
                "scheme",
                "load-balancing scheme of the foreground, and feedbacks",
                text(|row| &row.scheme),
            ),
            Column::text("digest", "one number for everything that happened", text(|row| &row.digest)),
            Column::flag(
                "complete",
                "every flow that counts finished, and nothing failed",
                rows.iter().map(|row| row.complete),
            ),
            Column::text(
                "ending",
                "finished, stopped by [stop], or stalled; empty if the simulation failed",
                text(|row| &row.ending),
            ),
            Column::text(
                "failure",
                "why the simulation failed; empty if it did not",
                text(|row| &row.failure),
            ),
        ]);
        let mut timing = Vec::from(first());
        points.extend(self.numbers.columns(rows.len()));
        // The file names the section.
        for (metric, _) in &mut self.timing.columns {
            metric.key = metric.key.rsplit('.').next().unwrap_or_default().to_owned();
        }
        timing.extend(self.timing.columns(rows.len()));
        (Table::new(points, 1), Table::new(timing, 1))
    }
}

/// Opens a finished sweep. Its manifest is whole; each table is compared with its checksum when it is read.
///
/// # Errors
/// If there is no `sweep.json`, or if it is cut short, edited or of another version.
pub fn open(dir: &Path) -> Result<Stored, ResultsError> {
    let used = ["ropewalk", "sweep", "scenario", "digest", "axes", "points", "set", "files"];
    Stored::open(dir, SWEEP_MARK, &used)
}

/// Reads `sweep.json` and `points.parquet` of a finished sweep, and compares all files with their checksums.
///
/// # Errors
/// If one of the files is missing, cut short, edited or of another sweep.
pub fn read(dir: &Path) -> Result<(Value, Table), ResultsError> {
    let stored = open(dir)?;
    let points = stored.table(POINTS, 1)?;
    let is_read = |file: &&str| file.strip_suffix(".parquet") == Some(POINTS);
    let texts = |name| points.texts(name).into_iter().flatten().flatten();
    let digests: BTreeMap<&str, &str> = texts("id").zip(texts("digest")).collect();
    let run = |file: &str| digests.get(file.strip_prefix("flows/")?.strip_suffix(".parquet")?).copied();
    stored.files().filter(|file| !is_read(file)).try_for_each(|file| match run(file) {
        Some(digest) => stored.check_run(file, digest),
        None => stored.check(file),
    })?;
    Ok((stored.manifest, points))
}

/// True if all points are complete.
pub fn all_complete(points: &Table) -> bool {
    points.flags("complete").is_some_and(|flags| flags.false_count() == 0)
}

/// Writes `configs.parquet`.
///
/// # Errors
/// If a point can no longer be resolved, or the system refuses.
pub(super) fn write_configs(sweep: &Sweep, to: &Staging, digest: &str) -> Result<(), Failure> {
    let batch = |first: usize| -> Result<Table, Failure> {
        let numbers = first..sweep.len().min(first + ROWS_AT_ONCE);
        let configs = numbers.clone().map(|number| Ok(sweep.point(number)?.config));
        let configs = configs.collect::<Result<Vec<String>, Failure>>()?;
        let ids = numbers.clone().map(|number| sweep.ids()[number].clone());
        Ok(Table::new(
            vec![
                Column::count(
                    "point",
                    "-",
                    "number of the point, from 0",
                    numbers.map(|number| number as u64),
                ),
                Column::text("id", "names the run", ids),
                Column::text(
                    "config",
                    "the scenario at this point, TOML, every default filled in",
                    configs.into_iter(),
                ),
            ],
            1,
        ))
    };
    let mut refused = None;
    let batches = (0..sweep.len()).step_by(ROWS_AT_ONCE).map(batch);
    let mut batches = batches.map_while(|batch| batch.map_err(|why| refused = Some(why)).ok());
    if let Some(first) = batches.next() {
        to.create("configs.parquet", |file| {
            let mut writer = first.begin_parquet(file, digest)?;
            for batch in batches {
                writer.write(batch.batch())?;
            }
            Ok(writer.close().map(drop)?)
        })?;
    }
    refused.map_or(Ok(()), Err)
}

/// The rows of a table as JSON objects with a key for each column.
pub fn rows(table: &Table) -> Vec<Map<String, Value>> {
    let mut rows = vec![Map::new(); table.rows()];
    for field in table.schema().fields() {
        let name = field.name();
        let (counts, reals) = (table.counts(name), table.reals(name));
        let (flags, texts) = (table.flags(name), table.texts(name));
        for (row, object) in rows.iter_mut().enumerate() {
            let count = || counts.filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row).into());
            let real = || reals.filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row).into());
            let flag = || flags.map(|cells| cells.value(row).into());
            let text = || texts.map(|cells| cells.value(row).into());
            let cell: Option<Value> = count().or_else(real).or_else(flag).or_else(text);
            object.insert(name.clone(), cell.unwrap_or_default());
        }
    }
    rows
}
