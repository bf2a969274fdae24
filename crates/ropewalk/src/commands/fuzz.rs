//! `ropewalk fuzz`: random trials of ropewalk itself.

use crate::cli::FuzzArgs;
use crate::interrupt::Watched;
use crate::print;
use farm::panics::Silence;
use farm::trial::{Verdict, of_text};
use farm::{Broken, Farm, Tally};
use lab::Failure;
use results::whole;
use scenario::find;
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// Makes random trials, or runs scenarios that earlier trials found, and holds them to all rules.
///
/// # Errors
/// If a rule was broken, or a file cannot be read or written.
pub fn run(args: &FuzzArgs) -> Result<(), Failure> {
    if !args.files.is_empty() {
        return again(&args.files);
    }
    if let Some(text) =
        args.trial.filter(|_| !args.commands).and_then(|trial| Farm::scenario(args.seed, trial))
    {
        print::out(&text)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let farm = Farm {
        seed: args.seed,
        trials: match args.trial {
            Some(trial) => trial..trial.saturating_add(1),
            None => 0..args.trials.unwrap_or(u64::MAX),
        },
        seconds: args.minutes.map_or(f64::INFINITY, |minutes| minutes * 60.0),
        threads: args.threads.map_or(cores, NonZeroUsize::get),
        program: std::env::current_exe().ok(),
        commands: args.commands,
    };
    let silence = Silence::begin();
    let watched = Watched::begin();
    let quiet = args.quiet || args.json;
    let mut reported = 0;
    let tally = farm.run(watched.flag(), &mut |tally| {
        if !quiet {
            print::note(&format!("{} trials, {} rules broken", tally.trials(), tally.broken.len()));
        }
        // A failure in writing one is reported at the end.
        tally.broken[reported..]
            .iter()
            .filter_map(|broken| report(args, broken).ok())
            .for_each(|text| print::note(&text));
        reported = tally.broken.len();
    });
    drop((silence, watched));
    if args.json {
        print::out(&print::json(&tally))?;
    } else {
        print::out(&table(&tally))?;
    }
    for (i, broken) in tally.broken.iter().enumerate() {
        let text = report(args, broken)?;
        if i >= reported {
            print::note(&text);
        }
    }
    if tally.broken.is_empty() { Ok(()) } else { Err(Failure::Simulation) }
}

/// Runs scenarios that earlier trials found.
fn again(files: &[String]) -> Result<(), Failure> {
    let mut failed = false;
    for file in files {
        let source = find(file)?;
        let text = match of_text(file, &source.text) {
            Verdict::Passed(events) if events.is_empty() => "all rules hold".to_owned(),
            Verdict::Passed(events) => format!("all rules hold; the run has {}", events.join(", ")),
            Verdict::Refused => "refused, with an error that names its line".to_owned(),
            Verdict::TooLong => "too long a run for this check".to_owned(),
            Verdict::Failed(fault) => {
                failed = true;
                format!("BROKEN: {}\n{}", fault.rule, fault.detail)
            }
        };
        print::out(&format!("{file}: {text}\n"))?;
    }
    if failed { Err(Failure::Simulation) } else { Ok(()) }
}

/// The counts of all trials.
fn table(tally: &Tally) -> String {
    let mut text = String::new();
    for (count, what) in [
        (tally.scenarios, "scenarios ran on all engines"),
        (tally.too_long, "scenarios were too long and were given up"),
        (tally.refused, "scenarios were refused with an error that names its line"),
        (tally.damaged, "scenarios had mistakes in their text"),
        (tally.imports, "imports had mistakes in their files"),
        (tally.commands, "commands were interrupted, short of memory, attacked or given damaged results"),
    ] {
        let _ = writeln!(text, "{count:>10}  {what}");
    }
    for (table, names) in &tally.parts {
        let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = writeln!(text, "{table}: {}", names.join(", "));
    }
    let _ = writeln!(text, "{:>10}  rules were broken", tally.broken.len());
    text
}

/// A broken rule in words, with the command that shows it again.
fn report(args: &FuzzArgs, broken: &Broken) -> Result<String, Failure> {
    let mut text =
        format!("\nBROKEN: {} ({} times)\n{}\n{}", broken.rule, broken.times, broken.detail, broken.text);
    let command = if broken.is_scenario {
        let file = Path::new(&args.output).join(format!("seed-{}-trial-{}.toml", args.seed, broken.trial));
        let wrong = |e: std::io::Error| Failure::Asked(format!("{} cannot be written: {e}", file.display()));
        fs::create_dir_all(&args.output).and_then(|()| whole::write(&file, &broken.text)).map_err(wrong)?;
        format!("ropewalk fuzz {}", lab::shell::word(&file.display().to_string()))
    } else {
        format!("ropewalk fuzz --seed {} --trial {}", args.seed, broken.trial)
    };
    let _ = write!(text, "\nagain: {command}");
    Ok(text)
}
