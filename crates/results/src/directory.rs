//! The directory of results, which is replaced as a whole or not at all.

use crate::checksum::{Checksum, Summing};
use crate::error::{ResultsError, WriteError};
use crate::json;
use crate::kind::MARK;
use crate::stored::{self, SUMMARY};
use crate::summary::Summary;
use crate::tables::TABLES;
use crate::whole;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
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
        _ if matches!(name, MARK | SUMMARY | "report.html") => true,
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
        // Results replace the directory behind a link, not the link.
        let dir = whole::behind_links(&dir).map_err(|e| ResultsError::Io(dir, e))?;
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
pub struct Staging {
    dir: PathBuf,
    /// Checksums of the files so far, by name.
    checksums: Mutex<BTreeMap<String, Checksum>>,
}

/// A new file of results.
pub type NewFile = BufWriter<Summing<File>>;

/// What a [`Staging`] has made on the disk.
struct Made {
    dir: PathBuf,
    /// Directories that were missing above `dir`, the innermost first.
    parents: Vec<PathBuf>,
}

impl Made {
    fn remove(&self) {
        // After `publish` the directory no longer exists. Before it, a thread may still write: it finds no directory of this name.
        let mut gone = self.dir.clone().into_os_string();
        gone.push("-gone");
        let renamed = fs::rename(&self.dir, &gone).is_ok();
        drop(fs::remove_dir_all(if renamed { Path::new(&gone) } else { &self.dir }));
        // A parent with other files, such as published results, is not removed.
        let _ = self.parents.iter().try_for_each(fs::remove_dir);
    }
}

/// The directories of all [`Staging`] values.
static UNPUBLISHED: Mutex<Vec<Made>> = Mutex::new(Vec::new());

fn unpublished() -> MutexGuard<'static, Vec<Made>> {
    UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all results in the making, for a process that is about to end. Nothing is published afterwards.
pub fn remove_unpublished() {
    let all = unpublished();
    all.iter().for_each(Made::remove);
    std::mem::forget(all);
}

impl Staging {
    /// An empty directory beside `target`, on the same file system.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn beside(target: &Target) -> Result<Self, ResultsError> {
        let dir = target.beside("new");
        let missing = dir.ancestors().skip(1).take_while(|parent| !parent.exists());
        let parents = missing.map(Path::to_path_buf).collect();
        let made = Made { dir: dir.clone(), parents };
        // Ctrl-C waits until it is known what is to be removed.
        let mut all = unpublished();
        if let Err(e) = fs::create_dir_all(&dir) {
            made.remove();
            return Err(ResultsError::Io(target.0.clone(), e));
        }
        all.push(made);
        Ok(Staging { dir, checksums: Mutex::default() })
    }

    /// Path of a file or folder with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file with `write`, and keeps the checksum of what passes.
    ///
    /// # Errors
    /// If the system or `write` refuses.
    pub fn create(
        &self,
        name: &str,
        write: impl FnOnce(&mut NewFile) -> Result<(), WriteError>,
    ) -> Result<(), ResultsError> {
        let path = self.path(name);
        let checksum = Self::written(&path, write).map_err(|e| e.about(path))?;
        self.note(name, checksum);
        Ok(())
    }

    /// Opens a file that grows while a run goes on; [`Staging::close`] ends it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open(&self, name: &str) -> Result<NewFile, ResultsError> {
        let path = self.path(name);
        Self::opened(&path).map_err(|e| ResultsError::Io(path, e))
    }

    /// Ends a file from [`Staging::open`], and keeps its checksum.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn close(&self, name: &str, mut file: NewFile) -> Result<(), ResultsError> {
        file.flush().map_err(|e| ResultsError::Io(self.path(name), e))?;
        self.note(name, file.get_ref().checksum());
        Ok(())
    }

    fn opened(path: &Path) -> std::io::Result<NewFile> {
        Ok(BufWriter::new(Summing::new(File::create(path)?)))
    }

    fn written(
        path: &Path,
        write: impl FnOnce(&mut NewFile) -> Result<(), WriteError>,
    ) -> Result<Checksum, WriteError> {
        let mut file = Self::opened(path)?;
        write(&mut file)?;
        file.flush()?;
        Ok(file.get_ref().checksum())
    }

    fn note(&self, name: &str, checksum: Checksum) {
        self.checksums.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), checksum);
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), ResultsError> {
        self.create(SUMMARY, |file| Ok(file.write_all(summary.to_json().as_bytes())?))?;
        self.note(SUMMARY, stored::of_summary(json::value(summary)));
        Ok(())
    }

    /// Writes a file whose content differs from run to run, and which therefore has no checksum.
    ///
    /// # Errors
    /// If the system or `write` refuses.
    pub fn create_varying(
        &self,
        name: &str,
        write: impl FnOnce(&mut NewFile) -> Result<(), WriteError>,
    ) -> Result<(), ResultsError> {
        let path = self.path(name);
        Self::written(&path, write).map(drop).map_err(|e| e.about(path))
    }

    /// Writes the manifest as the file `mark`, with the checksums of all files.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn seal(&self, mark: &str, manifest: Value) -> Result<(), ResultsError> {
        let checksums = self.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        let text = json::pretty(&stored::sealed(mark, manifest, &checksums));
        let path = self.path(mark);
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
        if let Err(e) = fs::rename(&self.dir, &target.0) {
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
        unpublished().extract_if(.., |made| made.dir == self.dir).for_each(|made| made.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Ctrl-C removes the results while another thread writes them.
    #[test]
    fn results_in_the_making_are_removed_although_a_thread_still_writes() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("deep/.out.new-1");
        fs::create_dir_all(&dir).unwrap();
        let made = Made { dir: dir.clone(), parents: vec![folder.path().join("deep")] };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0.. {
                    drop(fs::write(dir.join(i.to_string()), "rows"));
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            while !dir.join("99").exists() {
                std::thread::yield_now();
            }
            made.remove();
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
