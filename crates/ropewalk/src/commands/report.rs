//! `ropewalk report`, and the option `--report` of other commands.

use crate::cli::ReportArgs;
use crate::print;
use lab::compare::usual_baseline;
use lab::failure::Failure;
use report::PageFile;
use results::Results;
use results::comparison::Comparison;
use results::kind::Kind;
use std::path::{Path, PathBuf};

/// Writes a page from result directories, or a timeline of one.
///
/// # Errors
/// If a directory holds no results or cannot be read, or the file cannot be written.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    if let Some(file) = &args.perfetto {
        timeline(args, file)?;
        if args.output.is_none() {
            return Ok(());
        }
    }
    let file = args.output.clone().unwrap_or_else(|| match args.dirs.as_slice() {
        [one] => one.join("report.html"),
        _ => by_name("report"),
    });
    if let Some(sweep) = args.dirs.iter().find(|dir| Kind::of(dir) == Some(Kind::Sweep)) {
        if args.dirs.len() > 1 {
            return Err(Failure::Asked(format!(
                "{} is a sweep: its page cannot show other results",
                sweep.display()
            )));
        }
        let place = PageFile::at(file)?;
        report::write_sweep(sweep, &place)?;
        return say(&place, false);
    }
    let mut results = Vec::new();
    let mut baseline = usual_baseline().to_owned();
    let mut decides = None;
    for dir in &args.dirs {
        if Kind::of(dir) == Some(Kind::Comparison) {
            let comparison = Comparison::read(dir)?;
            for run in comparison.dirs() {
                results.push(Results::read(&run)?);
            }
            baseline = comparison.baseline.unwrap_or(baseline);
            // Beside other runs, the answer is another one.
            decides = comparison.decides.filter(|_| args.dirs.len() == 1);
        } else {
            results.push(Results::read(dir)?);
        }
    }
    let place = PageFile::at(file)?;
    place.write(&report::of_comparison(&results, &baseline, decides.as_ref()))?;
    say(&place, false)
}

fn timeline(args: &ReportArgs, file: &Path) -> Result<(), Failure> {
    let [dir] = args.dirs.as_slice() else {
        return Err(Failure::Asked("--perfetto takes one DIR: a timeline shows one run".into()));
    };
    if Kind::of(dir) == Some(Kind::Sweep) {
        return Err(Failure::Asked(format!("{} is a sweep: a timeline shows one run", dir.display())));
    }
    let results = Results::read(dir)?;
    let place = PageFile::for_timeline(file.to_owned())?;
    place.write(&report::timeline(&results))?;
    print::out(&format!("timeline          {}\n", place.path().display()))
}

/// The file of the page that `--report` requests. Call it before a run, so that an unusable path fails early.
///
/// # Errors
/// If another file has this path.
pub(super) fn place(
    asked: &Option<Option<PathBuf>>,
    default: impl FnOnce() -> PathBuf,
) -> Result<Option<PageFile>, Failure> {
    let Some(file) = asked else { return Ok(None) };
    PageFile::at(file.clone().unwrap_or_else(default)).map(Some)
}

/// `results/NAME.html`.
pub(super) fn by_name(name: &str) -> PathBuf {
    Path::new("results").join(format!("{name}.html"))
}

/// Prints the path of the page, on standard error if standard output is JSON.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn say(place: &PageFile, json: bool) -> Result<(), Failure> {
    let line = format!("report            {}", place.path().display());
    if json {
        print::note(&line);
        return Ok(());
    }
    print::out(&format!("{line}\n"))
}
