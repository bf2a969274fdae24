//! `ropewalk explain`.

use crate::cli::ExplainArgs;
use crate::execute::{Prepared, execute, window_on};
use crate::explain::{self, Explanation, Flow, Unexplained};
use crate::failure::Failure;
use crate::progress::{Progress, Show};
use crate::results::Results;
use crate::{interrupt, print};
use engine::outcome::Ending;
use scenario::{Checked, Source};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::Path;

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    /// The run was made again, with events recorded.
    run_again: bool,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// What to explain a flow of.
struct Subject {
    results: Results,
    checked: Checked,
    /// A result directory, which holds the digest that a run made again must have.
    recorded: bool,
}

/// Tells the life of a flow.
///
/// # Errors
/// If there is no such flow, the directory is no result, the scenario is wrong, or its run is no longer the same.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let mut subject = subject(args)?;
    let (explanation, again) = explained(&mut subject, &args.of, &args.flow, |prepared| ran(args, prepared))?;
    if args.json {
        let run_again = again && subject.recorded;
        return print::out(&super::json(&Answer { run_again, explanation: &explanation }));
    }
    print::out(&page(&explanation, again, subject.recorded))
}

/// What the command prints of a flow of these results. Their run is made again if it has to be.
///
/// # Errors
/// If there is no such flow, or the run is no longer the same.
pub fn of_results(results: &Results, flow: &str, progress: &Progress<'_>) -> Result<String, Failure> {
    let checked = scenario::check(&source(results), &[])?;
    let mut subject = Subject { results: results.clone(), checked, recorded: true };
    let run = |prepared| simulated(prepared, NonZeroUsize::MIN, progress);
    let (explanation, again) = explained(&mut subject, "this run", flow, run)?;
    Ok(page(&explanation, again, true))
}

/// The life of a flow, and whether its run was made again for it.
fn explained(
    subject: &mut Subject,
    of: &str,
    flow: &str,
    run: impl Fn(Prepared) -> Result<Results, Failure>,
) -> Result<(Explanation, bool), Failure> {
    let flow = explain::find(&subject.results, &subject.checked.plan, flow)
        .map_err(|text| Failure::Asked(format!("{of}: {text}")))?;
    let mut again = false;
    loop {
        match Explanation::of(&subject.checked.plan, &subject.results, &flow) {
            Ok(explanation) => return Ok((explanation, again)),
            Err(Unexplained::NotFollowed) if !again => {
                again = true;
                subject.results = follow(of, subject, &flow, &run)?;
            }
            Err(why) => return Err(Failure::Asked(format!("flow {} of {of}: {why}", flow.flow))),
        }
    }
}

/// For people, with where it comes from.
fn page(explanation: &Explanation, again: bool, recorded: bool) -> String {
    let source = match (again, recorded) {
        (true, true) => "run again with its events recorded: the digest is the same,",
        (false, true) => "from its recorded events; digest",
        (_, false) => "run for this, nothing was written; digest",
    };
    let Explanation { scenario, scheme, digest, .. } = explanation;
    format!("{}\n{scenario} under {scheme}, {source} {digest}\n", explanation.text())
}

/// Reads the result directory, or runs the scenario.
fn subject(args: &ExplainArgs) -> Result<Subject, Failure> {
    let path = Path::new(&args.of);
    if path.is_dir() {
        if !args.set.is_empty() {
            let text = "--set changes a scenario; a result directory stays what it is";
            return Err(Failure::Asked(text.into()));
        }
        let results = Results::read(path)?;
        let checked = scenario::check(&source(&results), &[])?;
        return Ok(Subject { results, checked, recorded: true });
    }
    let source = scenario::find(&args.of).map_err(|error| match path.exists() {
        true => error,
        false => {
            let text =
                format!("there is no result directory, no file and no built-in scenario {:?}", args.of);
            scenario::Error::new(text).with_help(error.help().unwrap_or_default())
        }
    })?;
    // A number says whom to follow before anything has run.
    let mut sets = args.set.clone();
    let number = args.flow.trim().parse::<u32>().ok();
    let known = scenario::check(&source, &sets)?;
    if number.is_some_and(|number| (number as usize) < known.plan.messages.len()) {
        sets.extend(recording(&args.flow));
    }
    let prepared = Prepared::by(|| scenario::check(&source, &sets))?;
    let checked = prepared.checked.clone();
    let results = ran(args, prepared)?;
    Ok(Subject { results, checked, recorded: false })
}

/// The configuration of a result directory.
fn source(results: &Results) -> Source {
    let text = |key: &str| results.manifest[key].as_str().unwrap_or_default().to_owned();
    Source::new(format!("{}.toml", text("scenario")), text("config"))
}

/// Most events of one kind of a queue pair: so many take some gigabytes. Our choice.
const MOST_EVENTS: &str = "record.most-events=50000000";

/// Records the events of this flow's queue pair and nothing else.
fn recording(flow: &str) -> [String; 8] {
    let follow = format!("record.follow=[{}]", flow.trim());
    let rest = ["record.flows=0", "record.links=0", "record.events=0", "record.taps=[]", MOST_EVENTS];
    let [flows, links, events, taps, most] = rest.map(str::to_owned);
    [follow, flows, links, events, taps, most, "record.switches=false".into(), "record.counters=false".into()]
}

/// The same run once more, with the events of this flow; nothing is written.
fn follow(
    of: &str,
    subject: &Subject,
    flow: &Flow,
    run: impl Fn(Prepared) -> Result<Results, Failure>,
) -> Result<Results, Failure> {
    let sets = recording(&flow.flow.to_string());
    let prepared = Prepared::by(|| scenario::check(&source(&subject.results), &sets))?;
    let results = run(prepared)?;
    let digest = |results: &Results| results.manifest["digest"].as_str().unwrap_or_default().to_owned();
    let (was, is) = (digest(&subject.results), digest(&results));
    if was != is {
        let version = subject.results.manifest["ropewalk"].as_str().unwrap_or("another version");
        return Err(Failure::Asked(format!(
            "{of} has no events of flow {}, and its scenario runs differently now (digest {is}, and {was} then, by ropewalk \
             {version}): run it again with --set record.follow=[{}]",
            flow.flow, flow.flow
        )));
    }
    Ok(results)
}

fn ran(args: &ExplainArgs, prepared: Prepared) -> Result<Results, Failure> {
    let progress = Progress::new(Show::fitting(args.quiet || args.json), 1, interrupt::flag());
    let results = simulated(prepared, args.threads, &progress);
    progress.clear();
    results
}

fn simulated(prepared: Prepared, threads: NonZeroUsize, progress: &Progress<'_>) -> Result<Results, Failure> {
    let kind = window_on(threads, &prepared.checked.plan);
    let run = execute(prepared, kind, progress);
    if run.outcome.ending == Ending::Interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(Results::of(&run, vec!["ropewalk".into(), "explain".into()]))
}
