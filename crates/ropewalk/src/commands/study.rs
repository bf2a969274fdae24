//! `ropewalk study`.

use crate::cli::{StudyArgs, StudyOf};
use crate::print;
use crate::progress::Shown;
use lab::crew::Crew;
use lab::failure::Failure;
use study::acceptance::{self, Request, Work};

/// Studies a site's fabric.
///
/// # Errors
/// If a file is wrong, a case fails or the user interrupts it.
pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    let StudyOf::Acceptance { site, set, cases, limits, threads, json, quiet } = &args.what;
    let request =
        Request { site: site.clone(), set: set.clone(), cases: cases.clone(), limits: limits.clone() };
    let work = Work::new(&request)?;
    let mut shown = Shown::new(*quiet || *json, work.runs());
    let answer = work.run(Crew::new(*threads, None), &shown.progress);
    shown.clear();
    let answer = answer?;
    print::out(&if *json { print::json(&answer) } else { acceptance::text(&answer) })?;
    if answer.accepted { Ok(()) } else { Err(Failure::Simulation) }
}
