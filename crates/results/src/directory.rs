//! The directory of results, which is replaced as a whole or not at all.

use crate::error::ResultsError;
use crate::kind::MARK;
use crate::tables::TABLES;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const CAPTURE_PREFIX: &str = "capture-";
const CAPTURE_SUFFIX: &str = ".pcapng";

/// The name of the capture of a port; `stem` names the port.
pub fn capture_name(stem: &str) -> String {
    format!("{CAPTURE_PREFIX}{stem}{CAPTURE_SUFFIX}")
}

/// True for the files that ropewalk writes into the results of a run. A directory with any other file is left alone.
fn is_ours(name: &str) -> bool {
    let table = |stem: &str| TABLES.iter().any(|(table, _)| *table == stem);
    match name.rsplit_once('.') {
        _ if matches!(name, MARK | "summary.json" | "report.html") => true,
        Some((stem, "parquet" | "csv")) => table(stem),
        _ => name.starts_with(CAPTURE_PREFIX) && name.ends_with(CAPTURE_SUFFIX),
    }
}

/// A directory that may take results: it does not exist, is empty, or holds older results.
#[derive(Clone, Debug)]
pub struct Target(PathBuf);

impl Target {
    /// Checks the directory without writing.
    ///
    /// # Errors
    /// [`ResultsError::NotResults`] if the directory holds anything else.
    pub fn at(dir: impl Into<PathBuf>) -> Result<Self, ResultsError> {
        Self::of(dir, MARK, is_ours)
    }

    /// Checks the directory for results of another kind, which have the file `mark` and only files that `is_ours` accepts.
    ///
    /// # Errors
    /// See [`Target::at`].
    pub fn of(dir: impl Into<PathBuf>, mark: &str, is_ours: fn(&str) -> bool) -> Result<Self, ResultsError> {
        let dir = dir.into();
        let taken = match fs::read_dir(&dir) {
            Ok(entries) => {
                let names: Vec<_> = entries.flatten().map(|e| e.file_name()).collect();
                if names.is_empty() {
                    None
                } else if !dir.join(mark).is_file() {
                    Some(format!("it has no {mark}"))
                } else {
                    let foreign = names.iter().find(|name| !name.to_str().is_some_and(is_ours));
                    foreign.map(|name| format!("{} is not one of its files", name.display()))
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => Some("it is a file".to_owned()),
            Err(e) => return Err(ResultsError::Io(dir, e)),
        };
        match taken {
            None => Ok(Target(dir)),
            Some(why) => Err(ResultsError::NotResults(dir, why)),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path beside the directory, on the same file system.
    fn beside(&self, what: &str) -> PathBuf {
        // `.` has no name of its own before it is absolute.
        let whole = std::path::absolute(&self.0).unwrap_or_else(|_| self.0.clone());
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        whole.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
    }
}

/// Results in the making; removed again unless published.
#[derive(Debug)]
pub struct Staging(PathBuf);

/// Directories of all [`Staging`] values.
static UNPUBLISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unpublished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all results in the making, for a process that is about to end. Nothing is published afterwards.
pub fn remove_unpublished() {
    let all = unpublished();
    for dir in all.iter() {
        drop(fs::remove_dir_all(dir));
    }
    std::mem::forget(all);
}

impl Staging {
    /// An empty directory beside `target`, on the same file system.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn beside(target: &Target) -> Result<Self, ResultsError> {
        let dir = target.beside("new");
        unpublished().push(dir.clone());
        let staging = Staging(dir);
        fs::create_dir_all(&staging.0).map_err(|e| ResultsError::Io(target.0.clone(), e))?;
        Ok(staging)
    }

    /// Path of a new file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|e| ResultsError::Io(path, e))
    }

    /// Moves the results to their place. Older results are removed, or stay if the move fails.
    pub fn publish(self, target: &Target) -> Result<(), ResultsError> {
        let failed = |e| ResultsError::Io(target.0.clone(), e);
        let old = target.beside("old");
        let replaces = target.0.exists();
        // Ctrl-C waits until the results have moved.
        let _moving = unpublished();
        if replaces {
            fs::rename(&target.0, &old).map_err(failed)?;
        }
        if let Err(e) = fs::rename(&self.0, &target.0) {
            if replaces {
                fs::rename(&old, &target.0).map_err(failed)?;
            }
            return Err(failed(e));
        }
        if replaces {
            fs::remove_dir_all(&old).map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After `publish` the directory no longer exists. Before it, a directory that stays behind does no harm.
        drop(fs::remove_dir_all(&self.0));
        unpublished().retain(|dir| *dir != self.0);
    }
}
