//! One scenario with several schemes and seeds, whole runs side by side.

use crate::execute::{Prepared, Run, execute};
use crate::failure::Failure;
use crate::progress::Progress;
use engine::Kind;
use rayon::prelude::*;
use scenario::Checked;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The scenario, as it stands.
    pub base: Checked,
    /// The traffic class whose scheme is swapped; `None` for the only one.
    pub class: Option<String>,
    /// Schemes.
    pub schemes: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Which engine.
    pub kind: Kind,
    /// Runs side by side; `None` for as many as there are cores.
    pub jobs: Option<usize>,
}

impl Comparison {
    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.schemes.len() * self.seeds.len()
    }

    /// Runs all of it: by scheme, then by seed. Runs that had not begun when the user interrupted are missing.
    ///
    /// # Errors
    /// If a scheme cannot work here; then nothing has run.
    pub fn run(&self, progress: &Progress<'_>) -> Result<Vec<Run>, Failure> {
        let mut prepared = Vec::new();
        for scheme in &self.schemes {
            let checked = self.base.with_scheme(self.class.as_deref(), scheme)?;
            for &seed in &self.seeds {
                prepared.push(Prepared::by(|| checked.with_seed(seed))?);
            }
        }
        side_by_side(self.jobs, prepared, |one| {
            (!progress.stopped()).then(|| execute(one, self.kind, progress))
        })
        .map(|runs| runs.into_iter().flatten().collect())
    }
}

/// Does `work` for all `items` on `jobs` threads (all cores if `None`); the order of the results is that of
/// the items.
///
/// # Errors
/// If the system gives no threads.
pub fn side_by_side<T: Send, R: Send>(
    jobs: Option<usize>,
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Result<Vec<R>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
    let pool = pool.map_err(|e| Failure::Asked(format!("cannot start threads: {e}")))?;
    // One item per task: runs are few and long.
    Ok(pool.install(|| items.into_par_iter().with_max_len(1).map(work).collect()))
}
