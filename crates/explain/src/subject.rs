//! The run that a flow belongs to: read from a directory, or run for the explanation. If the events of the flow were not
//! recorded, the scenario runs again.

use crate::explanation::{Explanation, Unexplained};
use crate::flow::{Flow, find};
use crate::step::Step;
use lab::execute::{Prepared, execute, window_on};
use lab::{Failure, Progress};
use results::Results;
use scenario::{Checked, Source};
use std::num::NonZeroUsize;
use std::path::Path;

/// A run whose flows can be explained.
pub struct Subject {
    /// The name of the run in errors: its directory, or its scenario.
    name: String,
    results: Results,
    checked: Checked,
    /// True if the results were read from a directory. A second run must then have the same digest.
    recorded: bool,
}

/// Runs a scenario to its end.
pub type Runner<'a> = &'a dyn Fn(Prepared) -> Result<Results, Failure>;

/// An explanation, and the run that it comes from.
pub struct Answer {
    /// The explanation.
    pub explanation: Explanation,
    /// True if the scenario ran again to record the events of the flow.
    pub run_again: bool,
    /// True if the results were read from a directory.
    pub recorded: bool,
}

impl Subject {
    /// The run that gave these results.
    ///
    /// # Errors
    /// If this version of ropewalk does not accept their configuration.
    pub fn of_results(name: &str, results: Results) -> Result<Self, Failure> {
        let checked = scenario::check(&source(&results), &[])?;
        Ok(Subject { name: name.to_owned(), results, checked, recorded: true })
    }

    /// The run named `of`: a result directory, or a scenario with the changes `set`. A scenario runs, and records the
    /// events of `flow` if that is a number.
    ///
    /// # Errors
    /// If `of` is neither, the scenario is wrong, or the run fails.
    pub fn open(of: &str, flow: &str, set: &[String], run: Runner<'_>) -> Result<Self, Failure> {
        let path = Path::new(of);
        if path.is_dir() {
            if !set.is_empty() {
                let text = "--set changes a scenario; it cannot change a result directory";
                return Err(Failure::Asked(text.into()));
            }
            return Self::of_results(of, Results::read(path)?);
        }
        let source = scenario::find(of).map_err(|error| match path.exists() {
            true => error,
            false => {
                let text = format!("there is no result directory, no file and no built-in scenario {of:?}");
                scenario::Finding { text, ..error }
            }
        })?;
        // A flow that is given by number can be recorded in the first run.
        let mut sets = set.to_vec();
        let number = flow.trim().parse::<u32>().ok();
        let known = scenario::check(&source, &sets)?;
        if number.is_some_and(|number| (number as usize) < known.plan.messages.len()) {
            sets.extend(recording(flow));
        }
        let prepared = Prepared::by(|| scenario::check(&source, &sets))?;
        let checked = prepared.checked.clone();
        let results = run(prepared)?;
        Ok(Subject { name: of.to_owned(), results, checked, recorded: false })
    }

    /// Explains a step: `step`, `step:N`, `step:JOB` or `step:JOB:N`.
    ///
    /// # Errors
    /// If there is no such step.
    pub fn explain_step(&self, name: &str) -> Result<Step, Failure> {
        Step::of(&self.checked, &self.results, name)
            .map_err(|text| Failure::Asked(format!("{}: {text}", self.name)))
    }

    /// The explanation of a step as text, with the run that it comes from.
    pub fn step_page(&self, step: &Step) -> String {
        let source = if self.recorded { "from its results; digest" } else { JUST_RUN };
        step.text() + &run_line(&step.scenario, &step.scheme, source, &step.digest)
    }

    /// Explains the flow named `flow`: its number, `slowest`, or `FROM->TO`. If its events were not recorded, `run`
    /// runs the scenario again.
    ///
    /// # Errors
    /// If there is no such flow, it never began, or the second run has another digest.
    pub fn explain(&mut self, flow: &str, run: Runner<'_>) -> Result<Answer, Failure> {
        if self.checked.plan.posted.is_some() {
            let text = "the flows of this scenario begin as the run goes on, so a second run cannot follow one of them; \
                        flows.parquet has their times, and requests.parquet the parts of every request";
            return Err(Failure::Asked(format!("{}: {text}", self.name)));
        }
        let flow = find(&self.results, &self.checked.plan, flow)
            .map_err(|text| Failure::Asked(format!("{}: {text}", self.name)))?;
        let mut run_again = false;
        loop {
            match Explanation::of(&self.checked, &self.results, &flow) {
                Ok(explanation) => return Ok(Answer { explanation, run_again, recorded: self.recorded }),
                Err(Unexplained::NotFollowed) if !run_again => {
                    run_again = true;
                    self.results = follow(self, &flow, run)?;
                }
                Err(why) => {
                    return Err(Failure::Asked(format!("flow {} of {}: {why}", flow.flow, self.name)));
                }
            }
        }
    }
}

/// The last line of an explanation: the run, and where the explanation comes from.
fn run_line(scenario: &str, scheme: &str, source: &str, digest: &str) -> String {
    format!("\n{scenario} under {scheme}, {source} {digest}\n")
}

/// Source of an explanation for which the scenario ran.
const JUST_RUN: &str = "run for this explanation, no results written; digest";

impl Answer {
    /// The explanation as text, with the run that it comes from.
    pub fn page(&self) -> String {
        let source = match (self.run_again, self.recorded) {
            (true, true) => "run again with its events recorded: the digest is the same,",
            (false, true) => "from its recorded events; digest",
            (_, false) => JUST_RUN,
        };
        let Explanation { scenario, scheme, digest, .. } = &self.explanation;
        self.explanation.text() + &run_line(scenario, scheme, source, digest)
    }
}

/// Explains a flow or a step of these results, on one thread.
///
/// # Errors
/// See [`Subject::explain`].
pub fn of_results(results: &Results, flow: &str, progress: &Progress<'_>) -> Result<String, Failure> {
    let run = |prepared| simulate(prepared, NonZeroUsize::MIN, progress);
    let mut subject = Subject::of_results("this run", results.clone())?;
    if Step::is_asked_by(flow) {
        let step = subject.explain_step(flow)?;
        return Ok(subject.step_page(&step));
    }
    Ok(subject.explain(flow, &run)?.page())
}

/// The scenario in the manifest of a result directory.
fn source(results: &Results) -> Source {
    let text = |key: &str| results.manifest[key].as_str().unwrap_or_default().to_owned();
    Source::new(format!("{}.toml", text("scenario")), text("config"))
}

/// Most events of one kind of a queue pair; this number takes some gigabytes of memory. Our choice.
const MOST_EVENTS: &str = "record.most-events=50000000";

/// Settings that record the events of this flow's queue pair and nothing else.
fn recording(flow: &str) -> [String; 8] {
    let follow = format!("record.follow=[{}]", flow.trim());
    let rest = ["record.flows=0", "record.links=0", "record.events=0", "record.taps=[]", MOST_EVENTS];
    let [flows, links, events, taps, most] = rest.map(str::to_owned);
    [follow, flows, links, events, taps, most, "record.switches=false".into(), "record.counters=false".into()]
}

/// Runs the scenario again with the events of this flow recorded, and writes nothing.
fn follow(subject: &Subject, flow: &Flow, run: Runner<'_>) -> Result<Results, Failure> {
    let sets = recording(&flow.flow.to_string());
    let prepared = Prepared::by(|| scenario::check(&source(&subject.results), &sets))?;
    let results = run(prepared)?;
    let digest = |results: &Results| results.manifest["digest"].as_str().unwrap_or_default().to_owned();
    let (was, is) = (digest(&subject.results), digest(&results));
    if was != is {
        let version = subject.results.manifest["ropewalk"].as_str().unwrap_or("another version");
        return Err(Failure::Asked(format!(
            "{} has no events of flow {}, and its scenario runs differently now (digest {is}; ropewalk {version} gave \
             {was}): run it again with --set record.follow=[{}]",
            subject.name, flow.flow, flow.flow
        )));
    }
    Ok(results)
}

/// Runs a scenario on `threads` threads.
///
/// # Errors
/// [`Failure::Interrupted`] or [`Failure::Memory`].
pub fn simulate(
    prepared: Prepared,
    threads: NonZeroUsize,
    progress: &Progress<'_>,
) -> Result<Results, Failure> {
    let kind = window_on(threads, &prepared.checked.plan);
    let run = execute(prepared, kind, progress);
    run.ran_to_its_end()?;
    Ok(run.results(vec!["ropewalk".into(), "explain".into()]))
}
