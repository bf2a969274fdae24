//! Errors of writing and reading results.

use crate::kind::Kind;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of writing or reading results.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The directory holds anything but results.
    #[error(
        "{0} exists and does not look like results of ropewalk ({1}): not replaced; choose another directory with -o, \
         or remove it"
    )]
    NotResults(PathBuf, String),
    /// The operating system refused to write.
    #[error("cannot write {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The directory holds no results.
    #[error(
        "{0} is no result directory of ropewalk (it has no manifest.json); `ropewalk run SCENARIO -o DIR` makes one"
    )]
    NoResults(PathBuf),
    /// The directory holds a sweep.
    #[error("{0} is a sweep, not the results of one run: `ropewalk report {0}` makes its page")]
    Sweep(PathBuf),
    /// The directory holds a comparison; the second path is one of its runs.
    #[error("{0} is a comparison, not the results of one run: name one of its runs, such as {1}")]
    Comparison(PathBuf, PathBuf),
    /// The directory holds an unfinished sweep.
    #[error(
        "{0} is an unfinished sweep: `ropewalk sweep FILE --resume` continues it, or `resume=True` in Python"
    )]
    Unfinished(PathBuf),
    /// A file of a result directory is missing.
    #[error("cannot read {0}: the file is missing, but {1}; {again}", again = again(.0))]
    Missing(PathBuf, String),
    /// The system refuses to read a file.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, String),
    /// A Parquet file is cut short or broken.
    #[error("cannot read {0}: it is no complete Parquet file ({1}); {again}", again = again(.0))]
    Broken(PathBuf, #[source] parquet::errors::ParquetError),
    /// A file does not belong to the other files of its directory.
    #[error("{0} {1}; {again}", again = again(.0))]
    Unfit(PathBuf, String),
    /// A Parquet file could not be made.
    #[error("cannot write {0}: {1}")]
    Parquet(PathBuf, #[source] parquet::errors::ParquetError),
    /// A CSV file could not be made.
    #[error("cannot write {0}: {1}")]
    Csv(PathBuf, #[source] csv::Error),
}

/// The reason why a file of results could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The operating system refused to write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A Parquet file could not be made.
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A CSV file could not be made.
    #[error(transparent)]
    Csv(#[from] csv::Error),
}

impl WriteError {
    /// The error about the file with this path.
    pub(crate) fn about(self, path: PathBuf) -> ResultsError {
        match self {
            WriteError::Io(e) => ResultsError::Io(path, e),
            WriteError::Parquet(e) => ResultsError::Parquet(path, e),
            WriteError::Csv(e) => ResultsError::Csv(path, e),
        }
    }
}

impl ResultsError {
    /// The error for a `file` that does not belong to the other files of its directory. `why` is the rest of the sentence.
    pub fn unfit(file: &Path, why: String) -> Self {
        ResultsError::Unfit(file.to_owned(), why)
    }
}

/// Advice on how to replace a broken file.
fn again(file: &Path) -> &'static str {
    match file.parent().and_then(Kind::of) == Some(Kind::Sweep) {
        true => "`ropewalk sweep` without --resume makes the sweep anew",
        false => "run the scenario again",
    }
}
