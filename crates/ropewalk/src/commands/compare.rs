//! `ropewalk compare`.

use crate::cli::{CompareArgs, EngineArg};
use crate::progress::Shown;
use crate::{compared, print};
use lab::compare::Comparison;
use lab::crew::Crew;
use lab::execute::Run;
use lab::failure::Failure;
use results::Results;
use results::summary::Summary;
use serde::Serialize;

/// The JSON output.
#[derive(Serialize)]
struct Rows<'a> {
    scenario: &'a str,
    rows: Vec<&'a Summary>,
}

/// Runs the comparison and prints its table.
///
/// # Errors
/// If the input is wrong, a simulation failed or the user interrupted it.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let base = super::load(&args.scenario, None)?.checked;
    let seeds = args.seeds.as_ref().map_or_else(|| vec![base.plan.seed], |seeds| seeds.0.clone());
    let name = base.name.clone();
    let comparison = Comparison {
        base,
        class: args.class.clone(),
        schemes: args.schemes.clone(),
        seeds,
        reference: matches!(args.engine, EngineArg::Reference),
        crew: Crew::new(args.threads, args.jobs),
    };
    if let Some(threads) = args.threads {
        let each = if comparison.reference { 1 } else { engine::groups(&comparison.base.plan.fabric) };
        let most = each.saturating_mul(comparison.runs());
        if threads.get() > most {
            let runs = comparison.runs();
            return Err(Failure::Asked(format!(
                "{threads} threads are too many: there are {runs} runs of at most {each} threads each"
            )));
        }
    }
    let page = super::report::place(&args.report, || super::report::by_name(&name))?;
    let mut shown = Shown::new(args.quiet || args.json, comparison.runs());
    let runs = comparison.run(&shown.progress);
    shown.clear();
    let runs = runs?;
    if args.json {
        print::out(&super::json(&Rows { scenario: &name, rows: runs.iter().map(|r| &r.summary).collect() }))?;
    } else {
        print::out(&format!("{name}: {}\n{}", scope(&comparison), compared::of(&runs)))?;
    }
    if shown.progress.stopped() {
        print::note(&format!("interrupted: {} of {} runs had begun", runs.len(), comparison.runs()));
        return Err(Failure::Interrupted);
    }
    if let Some(page) = page {
        let results: Vec<Results> = runs.iter().map(|run| run.results(command(args, run))).collect();
        page.write(&report::of_runs(&results))?;
        super::report::say(&page, args.json)?;
    }
    verdicts(&runs)
}

/// The command that repeats one run of the comparison.
fn command(args: &CompareArgs, run: &Run) -> Vec<String> {
    let mut words = vec!["ropewalk".to_owned(), "compare".into(), args.scenario.scenario.clone()];
    words.extend(
        args.scenario.topology.iter().flat_map(|topology| ["--topology".to_owned(), topology.clone()]),
    );
    for set in &args.scenario.set {
        words.extend(["--set".into(), set.clone()]);
    }
    words.extend(args.class.iter().flat_map(|class| ["--class".to_owned(), class.clone()]));
    words.extend(["--schemes".into(), run.summary.scheme.clone()]);
    words.extend(["--seeds".into(), run.summary.seed.to_string()]);
    words
}

fn scope(comparison: &Comparison) -> String {
    match comparison.seeds.as_slice() {
        [one] => format!("seed {one}"),
        seeds => format!("mean of {} seeds", seeds.len()),
    }
}

/// Prints all failures; one failed run makes the comparison fail.
fn verdicts(runs: &[Run]) -> Result<(), Failure> {
    let mut all = Ok(());
    for run in runs {
        if let Err(failure) = super::run::verdict(run) {
            print::note(&format!("  in the run of {} with seed {}", run.summary.scheme, run.summary.seed));
            all = Err(failure);
        }
    }
    all
}
