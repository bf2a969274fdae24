//! `ropewalk explain`.

use crate::cli::ExplainArgs;
use crate::print;
use crate::progress::Shown;
use explain::subject::{Subject, simulate};
use explain::{Explanation, Step};
use lab::{Failure, Prepared};
use serde::Serialize;

/// The JSON output.
#[derive(Serialize)]
struct Json<'a> {
    /// True if the scenario ran again to record events.
    run_again: bool,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// Explains a flow or a step.
///
/// # Errors
/// If there is no such flow or step, the directory holds no results, the scenario is wrong, or a second run has another digest.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let simulated = |prepared: Prepared| {
        let mut shown = Shown::new(args.quiet || args.json, 1);
        let results = simulate(prepared, args.threads, &shown.progress);
        shown.clear();
        results
    };
    let mut subject = Subject::open(&args.of, &args.flow, &args.set, &simulated)?;
    if Step::is_asked_by(&args.flow) {
        let step = subject.explain_step(&args.flow)?;
        return print::out(&if args.json { print::json(&step) } else { subject.step_page(&step) });
    }
    let answer = subject.explain(&args.flow, &simulated)?;
    if args.json {
        let run_again = answer.run_again && answer.recorded;
        return print::out(&print::json(&Json { run_again, explanation: &answer.explanation }));
    }
    print::out(&answer.page())
}
