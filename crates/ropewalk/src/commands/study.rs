//! `ropewalk study`.

use crate::cli::{FaultsArgs, StudyArgs, StudyOf};
use crate::print;
use crate::progress::Shown;
use lab::crew::Crew;
use lab::failure::Failure;
use study::{acceptance, faults};

/// Studies a site's fabric.
///
/// # Errors
/// If a file is wrong, a case fails or the user interrupts it.
pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    match &args.what {
        StudyOf::Acceptance { site, set, cases, limits, threads, json, quiet } => {
            let (site, set, cases, limits) = (site.clone(), set.clone(), cases.clone(), limits.clone());
            let work = acceptance::Work::new(&acceptance::Request { site, set, cases, limits })?;
            let mut shown = Shown::new(*quiet || *json, work.runs());
            let answer = work.run(Crew::new(*threads, None), &shown.progress);
            shown.clear();
            let answer = answer?;
            print::out(&if *json { print::json(&answer) } else { acceptance::text(&answer) })?;
            if answer.failed() { Err(Failure::Simulation) } else { Ok(()) }
        }
        StudyOf::Faults(args) => of_faults(args),
    }
}

fn of_faults(args: &FaultsArgs) -> Result<(), Failure> {
    let request = faults::Request {
        site: args.site.clone(),
        set: args.set.clone(),
        days: args.days.into(),
        months: args.months,
        seed: args.seed,
        restart: args.restart,
        checkpoint: args.checkpoint,
        repair: args.repair,
        flap: (args.flap, args.flap_sigma),
    };
    if !(0.0..=10.0).contains(&args.flap_sigma) {
        return Err(Failure::Asked("`--flap-sigma` is a number from 0 to 10".into()));
    }
    let work = faults::Work::new(request)?;
    let mut shown = Shown::new(args.quiet || args.json, work.runs());
    let answer = work.run(Crew::new(args.threads, None), &shown.progress);
    shown.clear();
    let answer = answer?;
    print::out(&if args.json { print::json(&answer) } else { faults::text(&answer) })
}
