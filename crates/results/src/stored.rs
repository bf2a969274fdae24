//! Results on disk. Every reader opens a directory here, and nothing is read from a file before its checksum is compared.
//!
//! The key [`CHECKSUMS`] of a manifest lists size and checksum of every file of the results:
//!
//! | file | what the checksum covers |
//! |---|---|
//! | tables, captures | every byte |
//! | `summary.json` | its JSON without `timing`, which differs from run to run |
//! | the manifest | its JSON without its own checksum |
//! | `timing.parquet` of a sweep | it has none, because it differs from run to run; only its digest is compared |
//! | `report.html`, and files of the user | they have none: no command reads them |

use crate::checksum::Checksum;
use crate::error::ResultsError;
use crate::json::{pretty, read_value};
use crate::table::{Table, digest_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The key of a manifest under which it lists sizes and checksums by file.
pub const CHECKSUMS: &str = "checksums";

/// The file with the totals of a run.
pub(crate) const SUMMARY: &str = "summary.json";

/// The last bytes of every complete Parquet file.
const PARQUET_END: &[u8; 4] = b"PAR1";

/// An opened directory of results: its manifest is whole, and each file is compared before it is read.
#[derive(Clone, Debug)]
pub struct Stored {
    dir: PathBuf,
    mark: &'static str,
    /// The manifest without its [`CHECKSUMS`].
    pub manifest: Value,
    checksums: BTreeMap<String, Checksum>,
}

/// The manifest with the `checksums` of all other files and with its own under the name `mark`.
pub(crate) fn sealed(mark: &str, mut manifest: Value, checksums: &BTreeMap<String, Checksum>) -> Value {
    manifest[CHECKSUMS] = crate::json::value(checksums);
    let own = Checksum::of(pretty(&manifest).as_bytes());
    manifest[CHECKSUMS][mark] = crate::json::value(&own);
    manifest
}

/// Checksum of the summary without `timing`.
pub(crate) fn of_summary(mut summary: Value) -> Checksum {
    if let Some(keys) = summary.as_object_mut() {
        keys.shift_remove("timing");
    }
    Checksum::of(pretty(&summary).as_bytes())
}

impl Stored {
    /// Opens the results in `dir`, whose manifest is the file `mark` and has the keys `needed`.
    ///
    /// # Errors
    /// If the manifest is missing, cut short, edited, or of a version without checksums.
    pub fn open(dir: &Path, mark: &'static str, needed: &[&str]) -> Result<Self, ResultsError> {
        let path = dir.join(mark);
        let mut manifest = read_value(&path)?;
        let unfit = |why: String| Err(ResultsError::unfit(&path, why));
        let listed = manifest.get(CHECKSUMS).cloned().unwrap_or_default();
        let Ok(mut checksums) = serde_json::from_value::<BTreeMap<String, Checksum>>(listed) else {
            return unfit(format!(
                "has no `{CHECKSUMS}`: it was edited, or an older version of ropewalk wrote it"
            ));
        };
        let own = checksums.remove(mark);
        let without = manifest[CHECKSUMS].as_object_mut().and_then(|listed| listed.shift_remove(mark));
        let found = Checksum::of(pretty(&manifest).as_bytes());
        match own.filter(|_| without.is_some()) {
            Some(own) if own == found => {}
            Some(own) => return unfit(changed(&own, &found)),
            None => return unfit(format!("has no checksum of itself in `{CHECKSUMS}`: it was edited")),
        }
        if let Some(keys) = manifest.as_object_mut() {
            keys.shift_remove(CHECKSUMS);
        }
        if let Some(key) = needed.iter().find(|key| manifest[**key].is_null()) {
            return unfit(format!("has no `{key}`: another version of ropewalk wrote it"));
        }
        Ok(Stored { dir: dir.to_owned(), mark, manifest, checksums })
    }

    /// Digest of the results.
    fn digest(&self) -> &str {
        self.manifest["digest"].as_str().unwrap_or_default()
    }

    /// Names of the files that the manifest lists.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.checksums.keys().map(String::as_str)
    }

    /// Compares a file with its checksum.
    ///
    /// # Errors
    /// If the file is missing, cut short, edited, or from another run.
    pub fn check(&self, name: &str) -> Result<(), ResultsError> {
        match name {
            SUMMARY => self.summary().map(drop),
            _ => self.compare(name, self.digest(), Checksum::of_file),
        }
    }

    /// Compares the file of one run of a sweep, which has the digest of that run.
    ///
    /// # Errors
    /// See [`Stored::check`].
    pub fn check_run(&self, name: &str, digest: &str) -> Result<(), ResultsError> {
        self.compare(name, digest, Checksum::of_file)
    }

    /// The summary.
    ///
    /// # Errors
    /// See [`Stored::check`].
    pub fn summary(&self) -> Result<Value, ResultsError> {
        let path = self.dir.join(SUMMARY);
        if !path.exists() {
            return Err(self.missing(SUMMARY));
        }
        let summary = read_value(&path)?;
        let digest = summary["digest"].as_str().unwrap_or_default();
        if digest != self.digest() {
            return Err(self.foreign(&path, self.digest(), digest));
        }
        self.compare(SUMMARY, self.digest(), |_| Ok(of_summary(summary.clone())))?;
        Ok(summary)
    }

    /// The table `name.parquet`, which holds every `every`-th row.
    ///
    /// # Errors
    /// See [`Stored::check`].
    pub fn table(&self, name: &str, every: usize) -> Result<Table, ResultsError> {
        let name = format!("{name}.parquet");
        let path = self.dir.join(&name);
        if self.checksums.contains_key(&name) {
            self.check(&name)?;
            return Table::read_parquet(&path, every);
        }
        let table = Table::read_parquet(&path, every)?;
        match digest_of(&path) {
            Some(digest) if digest == self.digest() => Ok(table),
            digest => Err(self.foreign(&path, self.digest(), digest.as_deref().unwrap_or("none"))),
        }
    }

    /// Compares a file of the run with this digest.
    fn compare(
        &self,
        name: &str,
        digest: &str,
        sum: impl FnOnce(&Path) -> io::Result<Checksum>,
    ) -> Result<(), ResultsError> {
        let path = self.dir.join(name);
        let Some(listed) = self.checksums.get(name) else { return Err(self.missing(name)) };
        let found = sum(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => self.missing(name),
            _ => ResultsError::Unreadable(path.clone(), e.to_string()),
        })?;
        if found == *listed {
            return Ok(());
        }
        if let Some(other) = digest_of(&path).filter(|other| other != digest) {
            return Err(self.foreign(&path, digest, &other));
        }
        // A summary that is cut short has failed to parse before.
        let whole =
            name == SUMMARY || name.ends_with(".parquet") && last(&path).is_ok_and(|end| end == *PARQUET_END);
        Err(ResultsError::unfit(
            &path,
            match found.bytes < listed.bytes && !whole {
                true => format!("is cut short: expected {} bytes, found {}", listed.bytes, found.bytes),
                false => changed(listed, &found),
            },
        ))
    }

    /// The error for a file that the results lack.
    fn missing(&self, name: &str) -> ResultsError {
        let (path, mark) = (self.dir.join(name), self.mark);
        match self.checksums.get(name) {
            Some(listed) => {
                ResultsError::Missing(path, format!("{mark} lists it with {} bytes", listed.bytes))
            }
            None => {
                ResultsError::unfit(&path, format!("is no part of these results: {mark} does not list it"))
            }
        }
    }

    fn foreign(&self, path: &Path, expected: &str, found: &str) -> ResultsError {
        let mark = self.mark;
        let why = format!("comes from another run than {mark}: expected digest {expected}, found {found}");
        ResultsError::unfit(path, why)
    }
}

/// The last four bytes of a file.
fn last(path: &Path) -> io::Result<[u8; 4]> {
    let (mut file, mut end) = (File::open(path)?, [0; 4]);
    file.seek(SeekFrom::End(-4))?;
    file.read_exact(&mut end)?;
    Ok(end)
}

fn changed(listed: &Checksum, found: &Checksum) -> String {
    format!(
        "was edited or damaged: expected {} bytes with checksum {}, found {} bytes with checksum {}",
        listed.bytes, listed.xxh3, found.bytes, found.xxh3
    )
}
