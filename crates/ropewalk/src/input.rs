//! The scenario that a command gets, and the warnings about it.

use crate::cli::ScenarioArgs;
use crate::print;
use lab::execute::Prepared;
use lab::failure::Failure;

/// Warns if the rate control of NICs decided the results of these runs.
pub(crate) fn caution(runs: &[&results::Summary]) {
    if let Some(text) = results::caution::of_rates(runs) {
        print::note(&format!("warning: {text}"));
    }
}

/// Reads and checks a scenario, and prints its warnings. `seed` overrides the seed of the scenario.
pub(crate) fn load(args: &ScenarioArgs, seed: Option<u64>) -> Result<Prepared, Failure> {
    let mut set = args.set.clone();
    set.extend(seed.map(|seed| format!("seed={seed}")));
    let prepared = match &args.topology {
        Some(topology) => lab::load_on(topology, &args.scenario, &set)?,
        None => lab::load(&args.scenario, &set)?,
    };
    for warning in &prepared.checked.warnings {
        print::note(&format!("warning: {warning}"));
    }
    Ok(prepared)
}
