//! `ropewalk reproduce`.

use crate::cli::ReproduceArgs;
use crate::print;
use crate::progress::Shown;
use lab::crew::Crew;
use lab::failure::Failure;
use papers::{ALL, Experiment, Report, Work, named};
use results::text;
use serde::Serialize;

/// The JSON output.
#[derive(Serialize)]
struct Experiments {
    experiments: Vec<Report>,
}

/// Runs experiments and prints their numbers beside the papers'.
///
/// # Errors
/// If there is no such experiment, a simulation failed or the user interrupted it.
pub fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.list {
        return list(args.json);
    }
    let experiments: Vec<&Experiment> = match (args.all, args.names.is_empty()) {
        (true, _) => ALL.iter().collect(),
        (false, false) => named(&args.names)?,
        (false, true) => {
            let text = "no experiment is named; name one or use --all (--list prints the names)";
            return Err(Failure::Asked(text.into()));
        }
    };
    let page = super::report::place(&args.report, || {
        super::report::by_name(match experiments.as_slice() {
            [one] => one.name,
            _ => "reproduce",
        })
    })?;
    let work = match &args.data {
        Some(folder) if matches!(experiments.as_slice(), [one] if one.name == "hardware") => {
            Work::over_data(folder)?
        }
        Some(_) => return Err(Failure::Asked("`--data` goes with the experiment `hardware` alone".into())),
        None => Work::new(&experiments, args.quick),
    };
    let work = if page.is_some() { work.detailed() } else { work };
    let work = if args.no_check { work } else { work.deciding(report::measure) };
    let mut shown = Shown::new(args.quiet || args.json, work.runs());
    let reports = work.run(Crew::new(args.threads, args.jobs), &shown.progress);
    shown.clear();
    let reports = reports?;
    let failed = reports.iter().any(|report| !report.complete());
    if let Some(page) = page.as_ref().filter(|_| !shown.progress.stopped()) {
        page.write(&report::of_experiments(&reports))?;
    }
    if args.json {
        print::out(&print::json(&Experiments { experiments: reports }))?;
    } else {
        for report in &reports {
            print::out(&report.text())?;
        }
    }
    if shown.progress.stopped() {
        print::note("interrupted: unfinished experiments are missing");
        return Err(Failure::Interrupted);
    }
    if let Some(page) = page {
        super::report::say(&page, args.json)?;
    }
    if failed { Err(Failure::Simulation) } else { Ok(()) }
}

fn list(json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Item {
        name: &'static str,
        source: &'static str,
        about: &'static str,
    }
    let items: Vec<Item> =
        ALL.iter().map(|e| Item { name: e.name, source: e.source, about: e.about }).collect();
    if json {
        return print::out(&print::json(&items));
    }
    let mut rows = text::table(&["name".into(), "source".into(), "what".into()], 3);
    for item in items {
        rows.add_row([item.name, item.source, item.about]);
    }
    rows.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(text::WIDTH as u16);
    print::out(&format!("{rows}\n"))
}
