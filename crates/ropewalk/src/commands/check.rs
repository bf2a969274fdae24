//! `ropewalk check`.

use crate::cli::CheckArgs;
use crate::print;
use lab::failure::Failure;

/// Checks a scenario and prints it with all defaults.
///
/// # Errors
/// The first error of the scenario.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let checked = super::load(&args.scenario, None)?.checked;
    let (plan, fabric) = (&checked.plan, &checked.plan.fabric);
    let packets: u64 = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
    print::out(&format!(
        "# {}: {} hosts, {} switches, {} queue pairs, {} flows, {} data packets; about {:.0} MB of memory.\n# Configuration {}.\n\n{}",
        checked.name,
        fabric.hosts(),
        fabric.switch_count(),
        plan.qps.len(),
        plan.messages.len(),
        packets,
        checked.memory as f64 / 1e6,
        checked.hash(),
        checked.annotated()
    ))
}
