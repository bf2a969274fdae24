//! The kinds of directories that ropewalk writes, and the files by which they are known.

use std::path::Path;

/// The file by which the results of a run are known.
pub const MARK: &str = "manifest.json";
/// The file by which a finished sweep is known.
pub const SWEEP_MARK: &str = "sweep.json";
/// The file by which an unfinished sweep is known.
pub const UNFINISHED_MARK: &str = "unfinished.json";
/// The file by which a comparison is known.
pub const COMPARISON_MARK: &str = "comparison.json";

/// The kinds of directories that ropewalk writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The results of one run.
    Run,
    /// A finished sweep.
    Sweep,
    /// The points of a sweep under way.
    UnfinishedSweep,
    /// A comparison: a directory for each of its runs.
    Comparison,
}

impl Kind {
    /// The kind of the directory at `dir`; `None` if ropewalk did not write it.
    pub fn of(dir: &Path) -> Option<Self> {
        let kinds = [
            (Kind::Run, MARK),
            (Kind::Sweep, SWEEP_MARK),
            (Kind::UnfinishedSweep, UNFINISHED_MARK),
            (Kind::Comparison, COMPARISON_MARK),
        ];
        kinds.into_iter().find(|(_, mark)| dir.join(mark).is_file()).map(|(kind, _)| kind)
    }
}
