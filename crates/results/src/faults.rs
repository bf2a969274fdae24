//! Why a simulation failed, in words.

use crate::{ended_by, memory, stall};
use engine::Outcome;
use engine::outcome::Ending;
use model::Plan;

/// The reasons why the simulation failed; empty if it did not fail, or was stopped. `left` follows a lack of memory and says how
/// much there was.
pub fn of(plan: &Plan, outcome: &Outcome, left: &str) -> Vec<String> {
    let broken = |violation| format!("the books do not balance, this is a bug of ropewalk: {violation}");
    let mut faults: Vec<String> = outcome.violations.iter().map(broken).collect();
    if !outcome.broke_lossless.is_empty() {
        let names: Vec<_> = outcome.broke_lossless.iter().map(|&node| plan.fabric.name(node)).collect();
        let names = names.join(", ");
        faults
            .push(format!("the fabric is lossless, yet packets were dropped for lack of buffer at {names}"));
    }
    match &outcome.ending {
        Ending::RetryExceeded(exceeded) => faults.push(ended_by::in_words(plan, outcome, *exceeded)),
        Ending::Stalled(stall) => faults.push(stall::explain(plan, stall).trim_end().to_owned()),
        Ending::Memory(use_of_memory) => {
            let (at, text) = (outcome.end.as_us(), memory::explain(plan, use_of_memory));
            faults.push(format!("the run was stopped at {at:.3} us for lack of memory{left}\n{text}"));
        }
        Ending::Finished | Ending::Stopped | Ending::Interrupted => {}
    }
    faults
}
