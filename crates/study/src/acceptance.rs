//! `ropewalk study acceptance`: plans by which operators accept a fabric, played on the fabric that a scenario describes.
//!
//! | file | content |
//! |---|---|
//! | [`case`] | types of a case: its metrics with their limits, and its traffic |
//! | [`limits`] | limits of a user's own |
//! | `plans` | the cases, a file per subject |
//! | [`mod@answer`], [`mod@text`] | verdicts, and their table |
//!
//! A case has no scenario of its own: it replaces the workload of the site's scenario, and clears its failures.

pub mod answer;
pub mod case;
pub mod limits;
mod plans;
pub mod text;

pub use answer::{Answer, Row, Verdict};
pub use text::text;

use crate::site::Site;
use answer::Played;
use case::{Case, Part, Seen};
use lab::{Crew, Failure, Progress};

/// A question.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Path of a scenario, or name of a built-in one.
    pub site: String,
    /// `KEY=VALUE` changes of it.
    pub set: Vec<String>,
    /// Cases, such as `a1`; all if empty.
    pub cases: Vec<String>,
    /// Path of a file with limits of the user's own.
    pub limits: Option<String>,
}

/// The runs of a study, ready to start.
pub struct Work {
    site: Site,
    limits: limits::Limits,
    cases: Vec<(&'static Case, Result<Vec<Part>, String>)>,
}

impl Work {
    /// Lays out the cases.
    ///
    /// # Errors
    /// If the scenario or the file of limits is wrong, or there is no such case.
    pub fn new(request: &Request) -> Result<Self, Failure> {
        let chosen = plans::named(&request.cases)?;
        let limits = limits::Limits::read(request.limits.as_deref())?;
        let site = Site::new(&request.site, &request.set)?;
        let cases = chosen.into_iter().map(|case| (case, (case.parts)(&site))).collect();
        Ok(Work { site, limits, cases })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        let parts = self.cases.iter().filter_map(|(_, parts)| parts.as_ref().ok());
        parts.flatten().filter(|part| matches!(part, Part::Run(_))).count()
    }

    /// Runs all cases on the threads of `crew`.
    ///
    /// # Errors
    /// If the user interrupts it, or memory runs out.
    pub fn run(self, crew: Crew, progress: &Progress<'_>) -> Result<Answer, Failure> {
        let Work { site, limits, cases } = self;
        let parts: Vec<&Part> = cases.iter().filter_map(|(_, parts)| parts.as_ref().ok()).flatten().collect();
        let seen: Result<Vec<Seen>, Failure> =
            crew.side_by_side(parts, |part, _| see(&site, part, progress))?.into_iter().collect();
        let mut seen = seen?.into_iter();
        let played: Vec<Played> = cases
            .iter()
            .map(|(case, parts)| Played {
                case,
                seen: parts
                    .as_ref()
                    .map(|parts| seen.by_ref().take(parts.len()).collect())
                    .map_err(Clone::clone),
            })
            .collect();
        Ok(answer::of(&site.name, &played, &limits))
    }
}

/// Runs a part of a case. A scenario that the engine refuses is not applicable, with the reason.
fn see(site: &Site, part: &Part, progress: &Progress<'_>) -> Result<Seen, Failure> {
    let traffic = match part {
        Part::Run(traffic) => traffic,
        Part::Not { label, why } => return Ok(Seen::not(label, why.clone())),
    };
    let run = match site.run(&traffic.sets, progress)? {
        Ok(run) => run,
        Err(refused) => {
            return Ok(Seen::not(&traffic.label, format!("the scenario is refused: {}", refused.text)));
        }
    };
    Ok(match (traffic.see)(&run) {
        Ok(values) => {
            Seen { label: traffic.label.clone(), values: Ok(values), command: site.command(&traffic.sets) }
        }
        Err(why) => Seen::not(&traffic.label, why),
    })
}
