//! The directory of a sweep under way.
//!
//! | path | content |
//! |---|---|
//! | `DIR.part/unfinished.json` | the identity of the sweep |
//! | `DIR.part/points/ID.json` | the result of a point, see [`PointResult`] |
//! | `DIR.part/lock` | a lock that the process of the sweep holds; the system releases it when the process ends |
//! | `DIR` | the finished sweep, see [`dataset`]; `DIR.part` no longer exists |
//!
//! A point's file is written under another name and then renamed, so it is whole or missing, and finished points survive
//! any interruption. The finished dataset contains the points in the order of the sweep. It does not depend on the time,
//! the place or the order in which their results came.

use super::checked::Sweep;
use super::dataset;
use super::point::PointResult;
use super::point::{VERSION, hash};
use crate::failure::Failure;
use results::ResultsError;
use results::directory::{Staging, Target};
use results::json::{pretty, value as to_json};
use results::kind::{SWEEP_MARK as MARK, UNFINISHED_MARK as UNFINISHED};
use results::table::Table;
use results::whole;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The files of a finished sweep.
const OURS: [&str; 7] =
    [MARK, "points.parquet", "timing.parquet", "configs.parquet", "flows", "report.html", "points.csv"];

/// A sweep under way, and the directory of its results.
#[derive(Debug)]
pub struct Work {
    sweep: Sweep,
    target: Target,
    part: PathBuf,
    /// Ids of all points.
    all: BTreeSet<String>,
    done: Mutex<BTreeSet<String>>,
    reused: usize,
    /// Lock on the directory; held until the value is dropped.
    _lock: File,
    /// Notes about older results, one sentence each.
    pub notes: Vec<String>,
}

/// A finished sweep.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Directory of the sweep.
    pub path: PathBuf,
    /// `points.parquet`.
    pub points: Table,
    /// Points whose simulations failed, with the reasons.
    pub failed: Vec<(usize, String)>,
    /// What decides the sweep, if that was asked.
    pub decides: Value,
}

impl Work {
    /// Takes `dir` for the results of a sweep. With `resume`, the results of an interrupted sweep of the same name and
    /// scenario are used again where they fit. Without `resume`, an interrupted sweep in `dir` is an error.
    ///
    /// # Errors
    /// If `dir` holds anything else, or the system refuses.
    pub fn open(sweep: Sweep, dir: &Path, resume: bool) -> Result<Self, Failure> {
        let target = place(dir)?;
        let part = part_of(dir);
        let shown = part.display();
        let who = describe(&sweep);
        let begun = match read(&part.join(UNFINISHED)) {
            Ok(text) => Some(serde_json::from_str::<Value>(&text).unwrap_or_default()),
            // The process ended before it wrote the first file, so the directory holds no result.
            Err(e) if e.kind() == ErrorKind::NotFound && is_blank(&part) => None,
            Err(_) => {
                return Err(Failure::Asked(format!(
                    "{shown} is in the way: an unfinished sweep keeps its points there, but this path holds no sweep; \
                     choose another directory with -o, or remove {shown}"
                )));
            }
        };
        if let Some(begun) = &begun {
            if !resume {
                let points =
                    fs::read_dir(part.join("points")).map_or(0, |dir| dir.flatten().filter(is_point).count());
                return Err(Failure::Asked(format!(
                    "{shown} holds an unfinished sweep ({points} points done): add --resume to continue it, or remove \
                     the directory to start again"
                )));
            }
            if [&begun["sweep"], &begun["scenario"]] != [&who["sweep"], &who["scenario"]] {
                return Err(Failure::Asked(format!(
                    "{shown} holds another unfinished sweep: `{}` of {}, not `{}` of {}; choose another directory with \
                     -o, or remove it",
                    begun["sweep"].as_str().unwrap_or("?"),
                    begun["scenario"].as_str().unwrap_or("?"),
                    sweep.spec.name,
                    sweep.spec.scenario.name
                )));
            }
        }
        let failed = |e| failed(&part, e);
        fs::create_dir_all(part.join("points")).map_err(failed)?;
        let lock = File::create(part.join("lock")).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Failure::Asked(format!("another process is working on {shown}")));
        }
        let mut work = Work {
            all: sweep.ids().iter().cloned().collect(),
            sweep,
            target,
            part,
            done: Mutex::default(),
            reused: 0,
            _lock: lock,
            notes: Vec::new(),
        };
        work.put(UNFINISHED, &pretty(&who))?;
        work.look()?;
        Ok(work)
    }

    /// Reads the ids of finished points.
    fn look(&mut self) -> Result<(), Failure> {
        let mut done = BTreeSet::new();
        for id in &self.all {
            let path = self.path(id);
            match read(&path) {
                Ok(text) => match self.understood(id, &text) {
                    Ok(_) => drop(done.insert(id.clone())),
                    Err(why) => {
                        self.notes.push(format!("{}: {why}; that point runs again", path.display()));
                    }
                },
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(failed(&path, e)),
            }
        }
        let files = fs::read_dir(self.part.join("points")).map_err(|e| failed(&self.part, e))?;
        let others = files.flatten().filter(is_point).filter(|file| {
            let name = file.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            !id.is_some_and(|id| self.all.contains(id))
        });
        match others.count() {
            0 => {}
            n => self.notes.push(format!(
                "{n} points that were done are no longer part of this sweep, or come from another version or other \
                 code; they go when it is finished"
            )),
        }
        self.reused = done.len();
        self.done = Mutex::new(done);
        Ok(())
    }

    /// Reads the result of the point `id`.
    fn understood(&self, id: &str, text: &str) -> Result<PointResult, String> {
        let result = PointResult::from_json(text)?;
        match result.id == id {
            true => Ok(result),
            false => Err(format!("it is the result of point {}", result.id)),
        }
    }

    /// The sweep.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Number of finished runs that were reused.
    pub fn reused(&self) -> usize {
        self.reused
    }

    /// The missing points, one for each run.
    pub fn wanted(&self) -> Vec<usize> {
        let done = self.done();
        let ids = self.sweep.ids();
        self.sweep.runs().into_iter().filter(|&number| !done.contains(&ids[number])).collect()
    }

    fn done(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.done.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Keeps the result of a point. Several threads may call this.
    ///
    /// # Errors
    /// If the result belongs to no point of this sweep, or the system refuses.
    pub fn keep(&self, result: &PointResult) -> Result<(), Failure> {
        if !self.all.contains(&result.id) {
            return Err(Failure::Asked(format!("the result {} is of no point of this sweep", result.id)));
        }
        self.put(&format!("points/{}.json", result.id), &(result.to_json() + "\n"))?;
        self.done().insert(result.id.clone());
        Ok(())
    }

    /// Keeps a result from its [`PointResult::to_json`].
    ///
    /// # Errors
    /// If the text is damaged; see [`Work::keep`].
    pub fn keep_json(&self, result: &str) -> Result<(), Failure> {
        let result = PointResult::from_json(result);
        self.keep(&result.map_err(|why| Failure::Asked(format!("a point's result is of no use: {why}")))?)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.part.join("points").join(format!("{id}.json"))
    }

    /// Writes a file as a whole or not at all.
    fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.part.join(name);
        whole::write(&path, text).map_err(|e| failed(&path, e))
    }

    /// Writes the dataset of all points. It replaces an older dataset, which stays if an error occurs.
    ///
    /// # Errors
    /// If points are missing, their results cannot be read, or the system refuses. All finished points stay.
    pub fn finish(&mut self) -> Result<Finished, Failure> {
        self.finish_with(|_, _| Value::Null)
    }

    /// As [`Work::finish`]; `sweep.json` also has what `decides` says of the points.
    ///
    /// # Errors
    /// See [`Work::finish`].
    pub fn finish_with(
        &mut self,
        decides: impl FnOnce(&Sweep, &Table) -> Value,
    ) -> Result<Finished, Failure> {
        let missing = self.wanted().len();
        if missing > 0 {
            return Err(Failure::Asked(format!("{missing} points are still to be run")));
        }
        let staging = Staging::beside(&self.target)?;
        let mut made = dataset::Dataset::new(&self.sweep);
        if self.sweep.spec.flows {
            let flows = staging.path("flows");
            fs::create_dir(&flows).map_err(|e| failed(&flows, e))?;
        }
        let mut failures = Vec::new();
        for number in 0..self.sweep.len() {
            let id = &self.sweep.ids()[number];
            let path = self.path(id);
            let text = read(&path).map_err(|e| failed(&path, e))?;
            let result = self.understood(id, &text).map_err(|why| {
                Failure::Asked(format!("{}: {why}; --resume runs it again", path.display()))
            })?;
            if !result.failure.is_empty() {
                failures.push((number, result.failure.clone()));
            }
            let flows = format!("flows/{id}.parquet");
            if let Some(table) = result.flows_file().filter(|_| !staging.path(&flows).exists()) {
                staging.create(&flows, |file| Ok(file.write_all(&table)?))?;
            }
            made.add(number, &result);
        }
        let digest = made.digest();
        let (points, timing) = made.tables();
        staging.create("points.parquet", |file| Ok(points.write_parquet(file, &digest)?))?;
        staging.create_varying("timing.parquet", |file| Ok(timing.write_parquet(file, &digest)?))?;
        dataset::write_configs(&self.sweep, &staging, &digest)?;
        let decides = decides(&self.sweep, &points);
        let mut manifest = manifest(&self.sweep, &digest, &points, failures.len());
        manifest["decides"] = decides.clone();
        staging.seal(MARK, manifest)?;
        staging.publish(&self.target)?;
        fs::remove_dir_all(&self.part).map_err(|e| failed(&self.part, e))?;
        Ok(Finished { path: self.target.path().to_owned(), points, failed: failures, decides })
    }

    /// The finished sweep at `dir`; `None` unless it has the same points and the same version.
    ///
    /// # Errors
    /// If the sweep cannot be read.
    pub fn finished(sweep: &Sweep, dir: &Path) -> Result<Option<Finished>, Failure> {
        if part_of(dir).exists() {
            return Ok(None);
        }
        let Ok(text) = read(&dir.join(MARK)) else { return Ok(None) };
        let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
        if manifest["points"] != to_json(&sweep.ids()) || manifest["sweep"] != to_json(&sweep.spec.name) {
            return Ok(None);
        }
        let (manifest, points) = dataset::read(dir)?;
        let reason = |number: usize| Some((number, points.texts("failure")?.value(number).to_owned()));
        let failed = (0..points.rows()).filter_map(reason).filter(|(_, why)| !why.is_empty()).collect();
        Ok(Some(Finished { path: dir.to_owned(), points, failed, decides: manifest["decides"].clone() }))
    }
}

/// The identity of a sweep.
fn describe(sweep: &Sweep) -> Value {
    json!({
        "ropewalk": VERSION,
        "sweep": sweep.spec.name,
        "scenario": sweep.spec.scenario.name,
        "points": sweep.len(),
    })
}

/// `sweep.json`: the sweep, with everything that another run of it needs.
fn manifest(sweep: &Sweep, digest: &str, points: &Table, failed: usize) -> Value {
    let spec = &sweep.spec;
    let keys = |axis: &scenario::sweep::Axis| -> Value {
        axis.keys.iter().map(|key| (key.name.clone(), key.values().collect::<Value>())).collect()
    };
    json!({
        "ropewalk": VERSION,
        "sweep": spec.name,
        "scenario": spec.scenario.name,
        "class": spec.class,
        "set": spec.set,
        "seeds": spec.seeds,
        "axes": spec.axes.iter().map(keys).collect::<Value>(),
        "flows": spec.flows,
        "runs": sweep.runs().len(),
        "complete": dataset::all_complete(points),
        "failed": failed,
        "digest": digest,
        "config_hash": hash(&sweep.ids().iter().map(String::as_str).collect::<Vec<_>>()),
        "points": sweep.ids(),
        "files": { "sweep": spec.file.text, "scenario": spec.scenario.text },
    })
}

/// Takes `dir` unless it holds anything but a sweep.
fn place(dir: &Path) -> Result<Target, Failure> {
    let is_table = |file: fs::DirEntry| file.path().extension().is_some_and(|ending| ending == "parquet");
    let strange = fs::read_dir(dir.join("flows")).is_ok_and(|files| !files.flatten().all(is_table));
    match Target::of(dir, MARK, |name| OURS.contains(&name)) {
        Ok(target) if !strange => Ok(target),
        Ok(_) | Err(ResultsError::NotResults(..)) => Err(Failure::Asked(format!(
            "{} exists and does not look like a sweep of ropewalk (it has no {MARK}, or more than a sweep's files): not \
             replaced; choose another directory with -o, or remove it",
            dir.display()
        ))),
        Err(other) => Err(other.into()),
    }
}

/// The directory of points of a sweep under way, beside `dir`.
pub fn part_of(dir: &Path) -> PathBuf {
    // The path `.` has a file name only after it is made absolute.
    let whole = match dir.file_name() {
        Some(_) => dir.to_owned(),
        None => std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()),
    };
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    whole.with_file_name(name)
}

/// True if `part` holds nothing but the traces of an interrupted [`Work::open`].
fn is_blank(part: &Path) -> bool {
    let empty = |dir: &Path| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    match fs::read_dir(part) {
        Err(e) => e.kind() == ErrorKind::NotFound,
        Ok(entries) => entries.flatten().all(|entry| match entry.file_name().to_str() {
            Some("points") => empty(&entry.path()),
            Some("lock") => true,
            Some(name) => whole::is_part(name, UNFINISHED),
            None => false,
        }),
    }
}

fn is_point(file: &fs::DirEntry) -> bool {
    file.path().extension().is_some_and(|ending| ending == "json")
}

/// Text of a file; bytes that are no UTF-8 are replaced, and such a text fails to parse.
fn read(path: &Path) -> std::io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn failed(path: &Path, e: std::io::Error) -> Failure {
    ResultsError::Io(path.to_owned(), e).into()
}
