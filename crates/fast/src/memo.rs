//! Records that outlast a run: a directory with a file for each situation.

use crate::series::Kept;
use finding::{Finding, code};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use xxhash_rust::xxh3::Xxh3;

/// A directory of records, for scenarios that share all but their work.
#[derive(Debug)]
pub struct Memo {
    dir: PathBuf,
    common: String,
}

impl Memo {
    /// The records of scenarios with this text in common: everything that decides the time of an exchange but the exchange itself.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn at(dir: &Path, common: String) -> Result<Self, Finding> {
        let memo = Memo { dir: dir.to_owned(), common };
        // A long run must not end without a place for what it learned.
        let probe = memo.file("probe").with_extension(part());
        let writable = fs::create_dir_all(dir)
            .and_then(|()| fs::write(&probe, ""))
            .and_then(|()| fs::remove_file(&probe));
        writable.map_err(|e| unusable(dir, &e))?;
        Ok(memo)
    }

    /// The file of a situation.
    pub(crate) fn file(&self, situation: &str) -> PathBuf {
        let mut hash = Xxh3::new();
        for text in [&self.common, situation] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        self.dir.join(format!("{:032x}.json", hash.digest128()))
    }
}

/// What a file has, if it is there.
pub(crate) fn read(file: &Path) -> Result<Option<Kept>, Finding> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unusable(file, &e)),
    };
    let damaged = |why: String| {
        let text = format!("{} has no record: {why}", file.display());
        code::CONTENT.plain(text).with_help("remove the file; the exchange is then sent again")
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    kept.check().map_err(damaged)?;
    Ok(Some(kept))
}

/// Writes a file, or replaces it at once, so that runs side by side never read a part.
pub(crate) fn write(file: &Path, kept: &Kept) -> Result<(), Finding> {
    let part = file.with_extension(part());
    let json = serde_json::to_vec(kept).unwrap_or_default();
    let written = fs::write(&part, json).and_then(|()| fs::rename(&part, file));
    written.map_err(|e| {
        drop(fs::remove_file(&part));
        unusable(file, &e)
    })
}

/// An extension that no other run or thread has.
fn part() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("part-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn unusable(path: &Path, e: &std::io::Error) -> Finding {
    code::FILE.plain(format!("the memo {} cannot be used: {e}", path.display()))
}
