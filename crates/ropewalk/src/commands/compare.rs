//! `ropewalk compare`.

use crate::cli::{CompareArgs, EngineArg, ScenarioArgs};
use crate::progress::Shown;
use crate::typed::Typed;
use crate::{compared, page, print};
use explain::deciding::{self, Verdict};
use lab::compare::{Comparison, usual_baseline};
use lab::crew::Crew;
use lab::execute::Run;
use lab::failure::Failure;
use lab::fast::Leave;
use results::Results;
use results::comparison::{Asked, Keeper, OverSeeds, over_seeds};
use results::summary::Summary;
use results::text::wrapped;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The JSON output.
#[derive(Serialize)]
struct Rows<'a> {
    scenario: &'a str,
    baseline: Option<&'a str>,
    /// What decides the comparison; null with `--no-check`, and if the runs cannot be ranked.
    decides: Option<&'a Verdict>,
    schemes: Vec<OverSeeds>,
    rows: Vec<&'a Summary>,
}

/// Runs the comparison and prints its answer and its table.
///
/// # Errors
/// If the input is wrong, a simulation failed or the user interrupted it.
pub fn run(args: &Typed<CompareArgs>) -> Result<(), Failure> {
    let fast = Leave::asked(args.fast, args.memo.as_deref());
    let base = match &fast {
        None => crate::input::load(&recording(args), None)?.checked,
        fast => {
            let base = lab::fast::check(crate::input::resolved(&args.scenario, None)?, fast.as_ref())?;
            print::warnings(&base.findings);
            base
        }
    };
    let seeds = args.seeds.as_ref().map_or_else(|| vec![base.plan.seed], |seeds| seeds.0.clone());
    let name = base.name.clone();
    let comparison = Comparison {
        base,
        class: args.class.clone(),
        schemes: args.schemes.clone(),
        seeds,
        reference: matches!(args.engine, EngineArg::Reference),
        fast,
        crew: Crew::new(args.threads, args.jobs),
    };
    check_threads(args, &comparison)?;
    comparison.refuse_unused(args.seeds.is_some())?;
    let baseline = baseline(args, &comparison)?;
    let baseline = baseline.as_deref();
    let dir = place(args, &name);
    let keeper = dir.as_deref().map(Keeper::at).transpose()?;
    let report = super::report::place(&args.report, || match &dir {
        Some(dir) => dir.join("report.html"),
        None => super::report::by_name(&name),
    })?;
    let mut shown = Shown::new(args.quiet || args.json, comparison.runs());
    let again = |run: &Run| command(args, &comparison, run);
    let runs = comparison.run_each(&shown.progress, |run| keep(args, again(run), run, keeper.as_ref()));
    shown.clear();
    let runs = runs?;
    let decides = match args.no_check || shown.progress.stopped() {
        true => None,
        false => match decides(args, &comparison, &runs, baseline) {
            // The runs of the comparison are complete.
            Err(why @ (Failure::Interrupted | Failure::Memory(_))) => {
                print::note(&format!("note: what decides the answer is left out: {why}"));
                None
            }
            decides => decides?,
        },
    };
    let decides = decides.as_ref();
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    if args.json {
        let schemes = over_seeds(&summaries);
        print::out(&print::json(&Rows {
            scenario: &name,
            baseline,
            decides,
            schemes,
            rows: summaries.clone(),
        }))?;
    } else {
        let answer = answer(&runs, baseline);
        let mut scope = scope(&comparison);
        let failures = page::failures(&comparison.base.scenario.failure);
        if !failures.is_empty() {
            scope += &format!("\nfailures: {}", failures.join("; "));
        }
        let decides =
            decides.map_or_else(String::new, |verdict| format!("{}\n\n", wrapped(&verdict.answer.join(" "))));
        print::out(&format!("{answer}{decides}{name}: {scope}\n{}", compared::of(&runs)))?;
    }
    super::run::caution(&summaries);
    if shown.progress.stopped() {
        print::note(&format!("interrupted: {} of {} runs had begun", runs.len(), comparison.runs()));
        return Err(Failure::Interrupted);
    }
    if let Some(keeper) = keeper {
        let dir = keeper.path().to_owned();
        let asked = Asked {
            scenario: name.clone(),
            class: args.class.clone(),
            baseline: baseline.map(str::to_owned),
            decides: decides.and_then(|verdict| serde_json::to_value(verdict).ok()),
            command: whole_command(args),
        };
        keeper.finish(&summaries, &asked)?;
        say_kept(&dir, args.json)?;
    }
    if let Some(page) = report {
        let results: Vec<Results> = runs.iter().map(|run| run.results(again(run))).collect();
        let decides = decides.and_then(|verdict| serde_json::to_value(verdict).ok());
        page.write(&report::of_comparison(&results, baseline.unwrap_or_default(), decides.as_ref()))?;
        super::report::say(&page, args.json)?;
    }
    verdicts(&runs)
}

/// What decides the comparison.
fn decides(
    args: &CompareArgs,
    comparison: &Comparison,
    runs: &[Run],
    baseline: Option<&str>,
) -> Result<Option<Verdict>, Failure> {
    let outlines: Vec<Results> = runs.iter().map(Run::outline).collect();
    let Some((_, measure)) = report::measure(&outlines) else { return Ok(None) };
    let measure = |run: &Run| measure(&run.outline());
    let mut shown = Shown::new(args.quiet || args.json, 0);
    let asked = deciding::Asked {
        contenders: deciding::schemes(runs, &measure),
        baseline,
        place: None,
        measure: &measure,
        hops: deciding::hops(runs),
        seeded: comparison.seeds.len() > 1,
        crew: comparison.crew,
    };
    let verdict = deciding::of(&asked, &shown.progress);
    shown.clear();
    verdict
}

fn check_threads(args: &CompareArgs, comparison: &Comparison) -> Result<(), Failure> {
    let Some(threads) = args.threads else { return Ok(()) };
    let each = if comparison.reference { 1 } else { engine::groups(&comparison.base.plan.fabric) };
    let runs = comparison.runs();
    match each.saturating_mul(runs) {
        most if threads.get() > most => Err(Failure::Asked(format!(
            "{threads} threads are too many: there are {runs} runs of at most {each} threads each"
        ))),
        _ => Ok(()),
    }
}

/// The name of the runs with which the answer compares the fastest ones.
fn baseline(args: &CompareArgs, comparison: &Comparison) -> Result<Option<String>, Failure> {
    let run_name = |entry: &str| comparison.base.run_name(entry);
    let among = |name: &str| comparison.entry(&run_name(name)).map(run_name);
    let Some(name) = args.baseline.as_deref() else {
        return Ok(comparison.entry(usual_baseline()).map(run_name).or_else(|| among(usual_baseline())));
    };
    if let Some(name) = among(name) {
        return Ok(Some(name));
    }
    let schemes: Vec<&str> = args.schemes.iter().map(String::as_str).collect();
    let near = scenario::suggestion(name, &schemes);
    Err(Failure::Asked(format!("the baseline `{name}` is not among the compared schemes; {near}")))
}

/// The scenario with the settings of `--record`, which come first, so that an explicit `--set` wins.
fn recording(args: &CompareArgs) -> ScenarioArgs {
    match args.record {
        true => args.scenario.with_everything_recorded(),
        false => args.scenario.clone(),
    }
}

/// The directory in which the runs are kept, if they are.
fn place(args: &CompareArgs, name: &str) -> Option<PathBuf> {
    let default = || Path::new("results").join(format!("{name}-compare"));
    args.output.clone().or_else(|| (args.record || args.csv).then(default))
}

/// Writes the results of a run.
fn keep(args: &CompareArgs, command: Vec<String>, run: &Run, keeper: Option<&Keeper>) -> Result<(), Failure> {
    let Some(keeper) = keeper else { return Ok(()) };
    let place = keeper.place(&run.summary)?;
    let results = run.results(command);
    Ok(results.write_with(&place, args.csv, |staging| capture::write(run, staging))?)
}

fn say_kept(dir: &Path, json: bool) -> Result<(), Failure> {
    let line = format!("results           {}", dir.display());
    if json {
        print::note(&line);
        return Ok(());
    }
    print::out(&format!("{line}\n"))
}

/// The answer in sentences, and a line below them; empty for a single scheme.
fn answer(runs: &[Run], baseline: Option<&str>) -> String {
    let outlines: Vec<Results> = runs.iter().map(Run::outline).collect();
    if outlines.iter().all(|run| run.summary.scheme == outlines[0].summary.scheme) {
        return String::new();
    }
    let sentences = report::answer(&outlines, baseline.unwrap_or_default());
    // The table below has units in ASCII.
    format!("{}\n\n", wrapped(&sentences.join(" ").replace('µ', "u")))
}

/// The command that makes the whole comparison again.
fn whole_command(args: &Typed<CompareArgs>) -> Vec<String> {
    let mut words = command_start(args);
    words.extend(["--schemes".into(), args.schemes.join(",")]);
    if let Some(seeds) = &args.seeds {
        let seeds: Vec<String> = seeds.0.iter().map(u64::to_string).collect();
        words.extend(["--seeds".into(), seeds.join(",")]);
    }
    words.extend(args.baseline.iter().flat_map(|name| ["--baseline".to_owned(), name.clone()]));
    words
}

/// The command that repeats one run of the comparison.
fn command(args: &Typed<CompareArgs>, comparison: &Comparison, run: &Run) -> Vec<String> {
    let mut words = command_start(args);
    let scheme = &run.summary.scheme;
    words.extend(["--schemes".into(), comparison.entry(scheme).unwrap_or(scheme).to_owned()]);
    words.extend(["--seeds".into(), run.summary.seed.to_string()]);
    words
}

/// The command up to its schemes.
fn command_start(args: &Typed<CompareArgs>) -> Vec<String> {
    args.command("compare", &["schemes", "seeds", "baseline"])
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
