//! `ropewalk sweep`.

use crate::cli::SweepArgs;
use crate::print;
use crate::progress::Shown;
use crate::swept;
use explain::deciding;
use lab::crew::Crew;
use lab::failure::Failure;
use lab::fast::Leave;
use lab::shell::word;
use lab::sweep::{self, Finished, Sweep, Work, dataset};
use report::PageFile;
use results::table::Table;
use results::text::{table, wrapped};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Most failed points that are printed in full. Our choice.
const MOST_SHOWN: usize = 3;
/// Most ranges of numbers that name the other failed points. Our choice.
const MOST_RUNS: usize = 8;

/// The JSON output.
#[derive(Serialize)]
struct Rows<'a> {
    sweep: &'a str,
    scenario: &'a str,
    /// What decides the sweep; null with `--no-check`.
    decides: &'a Value,
    rows: Vec<Map<String, Value>>,
}

/// Runs a sweep, or the rest of an interrupted one, and prints its table.
///
/// # Errors
/// If the input is wrong, a simulation failed or the user interrupted it.
pub fn run(args: &SweepArgs) -> Result<(), Failure> {
    let crew = Crew::new(args.threads, args.jobs);
    let spec = scenario::sweep::load(&args.sweep, &args.set)?;
    let mut shown = Shown::new(args.quiet || args.json, spec.len());
    let sweep = Sweep::check(spec, Leave::asked(args.fast, args.memo.as_deref()), crew, &shown.progress);
    shown.clear();
    let sweep = sweep?;
    for warning in &sweep.warnings {
        print::note(&format!("warning: {warning}"));
    }
    if args.dry_run {
        return print::out(&if args.json { print::json(&listed(&sweep)) } else { list(&sweep) });
    }
    let dir = args.output.clone().unwrap_or_else(|| PathBuf::from("results").join(&sweep.spec.name));
    let place = super::report::place(&args.report, || dir.join("report.html"))?;
    if args.resume
        && let Some(finished) = Work::finished(&sweep, &dir)?
    {
        print::note(&format!("{} is already finished", dir.display()));
        return tell(args, &sweep, &finished, place.as_ref());
    }
    let mut work = Work::open(sweep, &dir, args.resume)?;
    for note in &work.notes {
        print::note(&format!("note: {note}"));
    }
    let (runs, reused) = (work.sweep().runs().len(), work.reused());
    if reused > 0 && !args.quiet {
        print::note(&format!("{reused} of {runs} runs are already done"));
    }
    let mut shown = Shown::new(args.quiet || args.json, work.wanted().len());
    let ran = sweep::run(&work, crew, &shown.progress);
    shown.clear();
    let ran = ran.map_err(|failure| unfinished(args, &work, failure))?;
    for (number, failure) in ran.refused.iter().take(MOST_SHOWN) {
        let label = work.sweep().spec.label(*number);
        print::note(&format!("error: point {number} ({label}) could not run: {failure}"));
    }
    if let Some(rest) = rest(ran.refused.iter().map(|(number, _)| *number)) {
        print::note(&format!("error: {rest} could not run"));
    }
    if shown.progress.stopped() {
        return Err(unfinished(args, &work, Failure::Interrupted));
    }
    if !ran.refused.is_empty() {
        let text =
            format!("{} points could not run here; --jobs 1 needs the least memory", ran.refused.len());
        return Err(unfinished(args, &work, Failure::Asked(text)));
    }
    let finished = work.finish_with(|sweep, points| match args.no_check {
        true => Value::Null,
        false => decides(args, sweep, points, crew),
    })?;
    tell(args, work.sweep(), &finished, place.as_ref())
}

/// What decides the sweep, as JSON. The results of its points are complete, whatever prevents this.
fn decides(args: &SweepArgs, sweep: &Sweep, points: &Table, crew: Crew) -> Value {
    let mut shown = Shown::new(args.quiet || args.json, 0);
    let verdicts = deciding::of_sweep(sweep, points, crew, &shown.progress);
    shown.clear();
    match verdicts {
        Ok(verdicts) => json!(verdicts),
        Err(why) => {
            print::note(&format!("note: what decides the answer is left out: {why}"));
            Value::Null
        }
    }
}

/// Prints how many runs are done, and the command that continues the sweep.
fn unfinished(args: &SweepArgs, work: &Work, failure: Failure) -> Failure {
    let runs = work.sweep().runs().len();
    let mut again = format!("ropewalk sweep {}", word(&args.sweep));
    for set in &args.set {
        again += &format!(" --set {}", word(set));
    }
    for option in work.sweep().fast.iter().flat_map(Leave::options) {
        again += &format!(" {}", word(&option));
    }
    if let Some(dir) = &args.output {
        again += &format!(" -o {}", word(&dir.display().to_string()));
    }
    print::note(&format!(
        "{} of {runs} runs are done and kept; continue with: {again} --resume",
        runs - work.wanted().len()
    ));
    failure
}

/// The points that are not printed in full, such as `2 more points (3, 7)`.
fn rest(numbers: impl Iterator<Item = usize>) -> Option<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    for number in numbers.skip(MOST_SHOWN) {
        count += 1;
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let said = |&(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let mut words: Vec<String> = runs.iter().take(MOST_RUNS).map(said).collect();
    words.extend((runs.len() > MOST_RUNS).then(|| "...".to_owned()));
    let points = if count == 1 { "point" } else { "points" };
    (count > 0).then(|| format!("{count} more {points} ({})", words.join(", ")))
}

/// Prints a finished sweep, and writes its page if requested.
fn tell(
    args: &SweepArgs,
    sweep: &Sweep,
    finished: &Finished,
    page: Option<&PageFile>,
) -> Result<(), Failure> {
    if let Some(page) = page {
        ::report::write_sweep(&finished.path, page)?;
    }
    if args.json {
        print::out(&print::json(&Rows {
            sweep: &sweep.spec.name,
            scenario: &sweep.spec.scenario.name,
            decides: &finished.decides,
            rows: dataset::rows(&finished.points),
        }))?;
    } else {
        print::out(&text(sweep, finished))?;
    }
    for (number, why) in finished.failed.iter().take(MOST_SHOWN) {
        let label = sweep.spec.label(*number);
        print::note(&format!("error: {why}\n  at point {number} ({label})"));
    }
    if let Some(rest) = rest(finished.failed.iter().map(|(number, _)| *number)) {
        let table = finished.path.join("points.parquet");
        print::note(&format!(
            "error: {rest} failed; column `failure` in {} gives the reasons",
            table.display()
        ));
    }
    if let Some(page) = page {
        super::report::say(page, args.json)?;
    }
    if finished.failed.is_empty() { Ok(()) } else { Err(Failure::Simulation) }
}

fn text(sweep: &Sweep, finished: &Finished) -> String {
    let spec = &sweep.spec;
    let seeds = match spec.seeds.as_deref() {
        None => String::new(),
        Some([one]) => format!(", seed {one}"),
        Some(seeds) => format!(": {} choices, means over {} seeds", sweep.len() / seeds.len(), seeds.len()),
    };
    let paragraph = |verdict: &Value| {
        let sentences: Vec<&str> = verdict["answer"].as_array()?.iter().filter_map(Value::as_str).collect();
        Some(format!("{}\n\n", wrapped(&sentences.join(" "))))
    };
    let decides: String = finished.decides.as_array().into_iter().flatten().filter_map(paragraph).collect();
    format!(
        "{}: {} points of {}{seeds}\n{}{decides}results           {}\n",
        spec.name,
        sweep.len(),
        spec.scenario.name,
        swept::of(sweep, &finished.points),
        finished.path.display()
    )
}

/// The points as a table.
fn list(sweep: &Sweep) -> String {
    let spec = &sweep.spec;
    let mut header = vec!["point".to_owned()];
    header.extend(swept::short(spec));
    header.extend(["seed".to_owned(), "id".into()]);
    let mut rows = table(&header, header.len());
    for number in 0..sweep.len() {
        let mut cells = vec![number.to_string()];
        cells.extend(spec.values(number));
        cells.push(spec.seed(number).map_or_else(|| "-".into(), |seed| seed.to_string()));
        cells.push(sweep.ids()[number].clone());
        rows.add_row(cells);
    }
    let (points, runs) = (sweep.len(), sweep.runs().len());
    let same = if runs < points { format!(", of which {runs} differ") } else { String::new() };
    format!("{rows}\n{}: {points} points of {}{same}; nothing was run\n", spec.name, spec.scenario.name)
}

/// The points as JSON.
fn listed(sweep: &Sweep) -> Value {
    let spec = &sweep.spec;
    let point = |number: usize| {
        let values: Map<String, Value> =
            spec.keys().map(str::to_owned).zip(spec.values(number).into_iter().map(Value::from)).collect();
        json!({ "point": number, "id": sweep.ids()[number], "values": values, "seed": spec.seed(number) })
    };
    json!({
        "sweep": spec.name,
        "scenario": spec.scenario.name,
        "points": (0..sweep.len()).map(point).collect::<Value>(),
    })
}
