//! `ropewalk run`.

use crate::cli::{EngineArg, RunArgs, ScenarioArgs};
use crate::progress::Shown;
use crate::typed::Typed;
use crate::{page, print};
use capture::Capture;
use engine::Kind;
use engine::outcome::Ending;
use lab::execute::{Run, execute_on, window_on};
use lab::fast::Leave;
use lab::{Failure, Tape};
use model::Plan;
use report::PageFile;
use results::directory::{Staging, Target};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Runs a scenario, writes its results and prints them.
///
/// # Errors
/// If the input is wrong, the simulation failed or the user interrupted it.
pub fn run(args: &Typed<RunArgs>) -> Result<(), Failure> {
    if let Some(leave) = Leave::asked(args.fast, args.memo.as_deref()) {
        return fast(args, leave);
    }
    let prepared = crate::input::load(&recording(args), args.seed).map_err(|failure| match failure {
        Failure::Scenario(error) if !args.pcap.is_empty() => {
            Failure::Scenario(error.of_option(&taps(args), "--pcap", &args.pcap.join(" ")))
        }
        other => other,
    })?;
    let default = || PathBuf::from("results").join(&prepared.checked.name);
    if prepared.checked.serving().is_some() && args.threads > NonZeroUsize::MIN {
        let text = "inference serving runs on one thread: each message follows from those before";
        return Err(Failure::Asked(text.to_owned()));
    }
    let kind = kind(args, &prepared.checked.plan)?;
    // Check the directory before the run, so that a long run cannot end without a place for its results.
    let target = Target::at(args.output.clone().unwrap_or_else(default))?;
    let page = super::report::place(&args.report, || target.path().join("report.html"))?;
    let staging = Staging::beside(&target)?;
    // Frames go to their files while the run goes on.
    let mut capture = match prepared.checked.taps().is_empty() {
        true => None,
        false => Some(Capture::begin(&prepared.checked, &staging)?),
    };
    let mut shown = Shown::new(args.quiet || args.json, 1);
    let run = execute_on(prepared, kind, &shown.progress, capture.as_mut().map(|c| c as &mut dyn Tape));
    shown.clear();
    if let Some(capture) = capture
        && (run.outcome.ending != Ending::Interrupted || capture.failed())
    {
        capture.finish(&run, &staging)?;
    }
    conclude(args, &run, (staging, &target), page, None)
}

/// Writes the results of a run and prints them, with what `audit` says of a fast run.
fn conclude(
    args: &Typed<RunArgs>,
    run: &Run,
    (staging, target): (Staging, &Target),
    page: Option<PageFile>,
    audit: Option<String>,
) -> Result<(), Failure> {
    let interrupted = run.outcome.ending == Ending::Interrupted;
    if !interrupted {
        let results = run.results(args.command("run", &[]));
        results.publish(staging, target, args.csv)?;
        if let Some(page) = &page {
            page.write(&report::of_runs(&[results]))?;
        }
    }
    if args.json {
        print::out(&run.summary.to_json())?;
        audit.iter().for_each(|audit| print::note(audit.trim_end()));
    } else {
        print::out(&page::of(run))?;
        print::out(&audit.unwrap_or_default())?;
        if !interrupted {
            print::out(&format!("results           {}\n", target.path().display()))?;
        }
    }
    caution(&[&run.summary]);
    if let Some(page) = page.filter(|_| !interrupted) {
        super::report::say(&page, args.json)?;
    }
    verdict(run)
}

/// Runs a scenario and leaves out what repeats.
fn fast(args: &Typed<RunArgs>, leave: Leave) -> Result<(), Failure> {
    let resolved = crate::input::resolved(&args.scenario, args.seed)?;
    let default = || PathBuf::from("results").join(&resolved.name);
    let target = Target::at(args.output.clone().unwrap_or_else(default))?;
    let staging = Staging::beside(&target)?;
    // As before every run: a long run cannot end without a place for its page.
    let page = super::report::place(&args.report, || target.path().join("report.html"))?;
    let mut shown = Shown::new(args.quiet || args.json, 1);
    let whole = args.audit.is_some().then(|| resolved.clone());
    let run = lab::fast::run(resolved, Some(leave), &shown.progress)?;
    let whole = whole.map(|whole| lab::fast::run(whole, None, &shown.progress)).transpose()?;
    shown.clear();
    print::warnings(&run.checked.findings);
    conclude(args, &run, (staging, &target), page, whole.map(|whole| page::audited(&run, &whole)))
}

/// The scenario with the settings of `--record` and `--pcap`. Those of `--record` come first, so that an explicit `--set` wins.
fn recording(args: &RunArgs) -> ScenarioArgs {
    let mut scenario = match args.record {
        true => args.scenario.with_everything_recorded(),
        false => args.scenario.clone(),
    };
    if !args.pcap.is_empty() {
        scenario.set.push(taps(args));
    }
    scenario.set.extend(args.snap_length.map(|length| format!("record.snap-length={length}B")));
    scenario
}

/// The setting that `--pcap` stands for.
fn taps(args: &RunArgs) -> String {
    let taps: Vec<_> = args.pcap.iter().map(|tap| toml::Value::from(tap.as_str())).collect();
    format!("record.taps={}", toml::Value::from(taps))
}

/// The engine and its number of threads.
fn kind(args: &RunArgs, plan: &Plan) -> Result<Kind, Failure> {
    let (threads, groups) = (args.threads, engine::groups(&plan.fabric));
    match args.engine {
        EngineArg::Reference if threads > NonZeroUsize::MIN => Err(Failure::Asked(format!(
            "the reference engine runs on 1 thread, not on {threads}; --engine window can use several"
        ))),
        EngineArg::Reference => Ok(Kind::Reference),
        EngineArg::Window if threads.get() > groups => Err(Failure::Asked(format!(
            "{threads} threads are too many: the nodes of this fabric form {groups} groups, and one thread works on \
             a group at a time; at most --threads {groups} is possible"
        ))),
        EngineArg::Window => Ok(window_on(threads, plan)),
    }
}

/// Warns if the rate control of NICs decided the results of these runs.
pub(super) fn caution(runs: &[&results::Summary]) {
    if let Some(text) = results::caution::of_rates(runs) {
        print::note(&format!("warning: {text}"));
    }
}

/// Prints on standard error why a run is not complete.
///
/// # Errors
/// If the simulation failed or was interrupted.
pub fn verdict(run: &Run) -> Result<(), Failure> {
    for fault in run.faults() {
        print::note(&format!("error: {fault}"));
    }
    let outcome = &run.outcome;
    if !outcome.broke_lossless.is_empty() {
        print::note(
            "help: give [switch] more buffer or more headroom; `ropewalk check` prints how much is needed",
        );
    }
    if outcome.ending == Ending::Interrupted {
        print::note(&format!("interrupted at {} us; no results written", outcome.end.as_us()));
        return Err(Failure::Interrupted);
    }
    match results::summary::failed(outcome) || run.unserved().is_some() {
        true => Err(Failure::Simulation),
        false => Ok(()),
    }
}
