//! The scenario that a command gets, and the warnings about it.

use crate::cli::ScenarioArgs;
use crate::print;
use lab::execute::Prepared;
use lab::failure::Failure;

/// Reads and checks a scenario. `seed` overrides the seed of the scenario.
pub(crate) fn check(args: &ScenarioArgs, seed: Option<u64>) -> Result<Prepared, Failure> {
    let mut set = args.set.clone();
    set.extend(seed.map(|seed| format!("seed={seed}")));
    match &args.topology {
        Some(topology) => lab::load_on(topology, &args.scenario, &set),
        None => lab::load(&args.scenario, &set),
    }
}

/// Reads and checks a scenario, and prints its warnings. `seed` overrides the seed of the scenario.
pub(crate) fn load(args: &ScenarioArgs, seed: Option<u64>) -> Result<Prepared, Failure> {
    let prepared = check(args, seed)?;
    print::warnings(&prepared.checked.findings);
    Ok(prepared)
}
