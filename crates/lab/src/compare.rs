//! One scenario with several schemes and seeds, whole runs side by side.

use crate::crew::Crew;
use crate::execute::Run;
use crate::failure::Failure;
use crate::fast::{Leave, Ready};
use crate::progress::Progress;
use scenario::Checked;
use std::collections::BTreeSet;

/// A comparison to run.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The scenario.
    pub base: Checked,
    /// The traffic class whose scheme is swapped; `None`: `foreground`, or all if none has a scheme of its own.
    pub class: Option<String>,
    /// Schemes, or schemes with feedbacks, such as `themis+long-haul`.
    pub schemes: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// True to use the reference engine with one thread for each run.
    pub reference: bool,
    /// How much the runs may leave out; `None` to send everything.
    pub fast: Option<Leave>,
    /// Threads for all runs.
    pub crew: Crew,
}

impl Comparison {
    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.schemes.len() * self.seeds.len()
    }

    /// Runs all schemes and seeds, ordered by scheme, then by seed. Runs that had not begun when the user interrupted are
    /// missing.
    ///
    /// # Errors
    /// If a scheme does not fit the scenario or stands in the list twice. No run has started in this case.
    pub fn run(&self, progress: &Progress<'_>) -> Result<Vec<Run>, Failure> {
        self.run_each(progress, |_| Ok(()))
    }

    /// As [`Comparison::run`]; each run is given to `each` when it ends, on the thread that ran it.
    ///
    /// # Errors
    /// See [`Comparison::run`], and the first error of `each`.
    pub fn run_each(
        &self,
        progress: &Progress<'_>,
        each: impl Fn(&Run) -> Result<(), Failure> + Send + Sync,
    ) -> Result<Vec<Run>, Failure> {
        let mut seen = BTreeSet::new();
        if let Some(scheme) = self.schemes.iter().find(|scheme| !seen.insert(self.base.run_name(scheme))) {
            let text = format!("scheme `{scheme}` is repeated: the same runs would give the same results");
            return Err(Failure::Asked(text));
        }
        let (mut ready, base) = (Vec::new(), self.base.resolved());
        for scheme in &self.schemes {
            let resolved = base.with_scheme(self.class.as_deref(), scheme)?;
            for &seed in &self.seeds {
                ready.push(Ready::of(resolved.clone().with_seed(seed), self.fast.as_ref())?);
            }
        }
        let one = |one: Ready, threads| {
            (!progress.stopped()).then(|| {
                let run = one.run((!self.reference).then_some(threads), progress)?;
                each(&run).map(|()| run)
            })
        };
        let runs = self.crew.side_by_side(ready, one)?;
        runs.into_iter().flatten().collect()
    }

    /// The entry of [`Comparison::schemes`] whose runs have this name.
    pub fn entry(&self, run_name: &str) -> Option<&str> {
        self.schemes.iter().find(|entry| self.base.run_name(entry) == run_name).map(String::as_str)
    }

    /// Refuses a `--set` whose value every run replaces: a scheme or a feedback that is not compared, or the seed if the comparison has
    /// `seeds_given`.
    ///
    /// # Errors
    /// The first such change.
    pub fn refuse_unused(&self, seeds_given: bool) -> Result<(), Failure> {
        let schemes: Vec<&str> = self.schemes.iter().map(String::as_str).collect();
        Ok(self.base.refuse_unused(self.class.as_deref(), &schemes, seeds_given)?)
    }
}

/// The scheme with which others are compared unless the user names one: the scheme of a scenario that chooses none.
pub fn usual_baseline() -> &'static str {
    scenario::usual_scheme()
}
