//! The scenario that a command gets, and the warnings about it.

use crate::cli::ScenarioArgs;
use crate::print;
use lab::execute::Prepared;
use lab::failure::Failure;
use scenario::{Resolved, Survey};

/// Reads and checks a scenario. `seed` overrides the seed of the scenario.
pub(crate) fn check(args: &ScenarioArgs, seed: Option<u64>) -> Result<Prepared, Failure> {
    let mut set = args.set.clone();
    set.extend(seed.map(|seed| format!("seed={seed}")));
    match &args.topology {
        Some(topology) => lab::load_on(topology, &args.scenario, &set),
        None => lab::load(&args.scenario, &set),
    }
}

/// Reads a scenario. `seed` overrides the seed of the scenario.
pub(crate) fn resolved(args: &ScenarioArgs, seed: Option<u64>) -> Result<Resolved, Failure> {
    let mut set = args.set.clone();
    set.extend(seed.map(|seed| format!("seed={seed}")));
    let resolved = match &args.topology {
        Some(topology) => scenario::resolved(topology, Some(args.scenario.as_ref()), &set),
        None => scenario::resolved(&args.scenario, None, &set),
    };
    Ok(resolved?)
}

/// Checks a scenario and counts its traffic. If this machine cannot run it, the findings say so.
pub(crate) fn survey(args: &ScenarioArgs) -> Result<Survey, Failure> {
    let survey = match &args.topology {
        Some(topology) => scenario::survey(topology, Some(args.scenario.as_ref()), &args.set),
        None => scenario::survey(&args.scenario, None, &args.set),
    };
    Ok(survey?)
}

/// Reads and checks a scenario, and prints its warnings. `seed` overrides the seed of the scenario.
pub(crate) fn load(args: &ScenarioArgs, seed: Option<u64>) -> Result<Prepared, Failure> {
    let prepared = check(args, seed)?;
    print::warnings(&prepared.checked.findings);
    Ok(prepared)
}
