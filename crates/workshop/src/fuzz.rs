//! `ropewalk-workshop fuzz`: random trials of ropewalk itself.

use clap::Args;
use command_line::interrupt::Watched;
use command_line::print;
use farm::panics::Silence;
use farm::trial::{Verdict, of_text};
use farm::{Broken, Farm, Tally};
use lab::Failure;
use results::whole;
use scenario::find;
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The arguments of `ropewalk-workshop fuzz`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk-workshop fuzz --trials 10000             the same trials every time
  ropewalk-workshop fuzz --minutes 20 --seed 7      other trials, for 20 minutes
  ropewalk-workshop fuzz --seed 7 --trial 1234      one trial again
  ropewalk-workshop fuzz results/fuzz/seed-7-trial-1234.toml
                                                    a scenario that broke a rule

Each trial depends on the seed and its number only. A scenario that breaks a rule is made as small as possible and
written to DIR.")]
pub(crate) struct FuzzArgs {
    /// Scenarios to run on all engines instead of random ones.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Seed of all trials.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of trials [default: no end].
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<u64>,
    /// Number of a single trial.
    #[arg(long, value_name = "N", conflicts_with = "trials")]
    pub(crate) trial: Option<u64>,
    /// Only trials of commands: interrupted, short of memory, with damaged results, attacked.
    #[arg(long)]
    pub(crate) commands: bool,
    /// Minutes after which no trial begins.
    #[arg(long, value_name = "M")]
    pub(crate) minutes: Option<f64>,
    /// Trials at the same time [default: all cores].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Directory for scenarios that break a rule.
    #[arg(short, long, value_name = "DIR", default_value = "results/fuzz")]
    pub(crate) output: String,
    /// Print the counts as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Makes random trials, or runs scenarios that earlier trials found, and holds them to all rules.
///
/// # Errors
/// If a rule was broken, or a file cannot be read or written.
pub(crate) fn run(args: &FuzzArgs) -> Result<(), Failure> {
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
        program: program(),
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

/// The program `ropewalk` beside this one.
fn program() -> Option<PathBuf> {
    let name = format!("ropewalk{}", std::env::consts::EXE_SUFFIX);
    Some(std::env::current_exe().ok()?.with_file_name(name)).filter(|path| path.is_file())
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
        format!("ropewalk-workshop fuzz {}", lab::shell::word(&file.display().to_string()))
    } else {
        format!("ropewalk-workshop fuzz --seed {} --trial {}", args.seed, broken.trial)
    };
    let _ = write!(text, "\nagain: {command}");
    Ok(text)
}
