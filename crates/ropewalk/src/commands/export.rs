//! `ropewalk export`.

use crate::cli::{ExportArgs, ExportTo, ScenarioArgs};
use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use lab::{Prepared, Run};
use results::patterns::Traffic;
use results::text::count;
use scenario::Checked;
use std::fs;

/// Writes a scenario's fabric or traffic in another tool's format.
///
/// # Errors
/// If the scenario is wrong, or the file exists already.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    match &args.to {
        ExportTo::Infragraph { scenario, output } => {
            write_new(output, site::infragraph::graph(&load(scenario)?))?;
            print::out(&format!("{} written\n", output.display()))
        }
        ExportTo::Ctp { scenario, output } => {
            let run = lab::run(Prepared::by(|| load(scenario))?);
            let traffic = Traffic::of(&run.checked.plan, &run.outcome);
            let traffic = traffic.map_err(Failure::Asked)?;
            fs::create_dir(output)
                .map_err(|e| Failure::Asked(format!("cannot create {}: {e}", output.display())))?;
            for (name, content) in traffic.files() {
                write_new(&output.join(name), content)?;
            }
            let (patterns, late) = (traffic.patterns() as u64, traffic.overlapping());
            print::out(&format!(
                "{}: {} patterns of {} ranks\n",
                output.display(),
                count(patterns),
                traffic.ranks()
            ))?;
            if late > 0 {
                print::note(&format!(
                    "note: {} patterns started while a rank of theirs was still in an earlier one; there the benchmark waits",
                    count(late)
                ));
            }
            left_out(&run, &traffic);
            Ok(())
        }
    }
}

/// Says what of a run with faults the patterns do not have.
fn left_out(run: &Run, traffic: &Traffic) {
    for fault in run.faults() {
        print::note(&format!("note: the run had a fault, which the patterns do not have: {fault}"));
    }
    if traffic.unstarted() > 0 {
        let never = count(traffic.unstarted());
        print::note(&format!("note: {never} messages never started; no pattern has them"));
    }
    if traffic.lost() > 0 {
        let lost = count(traffic.lost());
        print::note(&format!(
            "note: {lost} messages did not arrive; the patterns have them, and take their ranks for free at once"
        ));
    }
    let plan = &run.checked.plan;
    let losses = !plan.failures.losses().is_empty() || !plan.noise.links.is_empty();
    if !plan.failures.is_empty() || losses || plan.fabric.links().iter().any(|link| !link.loss.is_zero()) {
        print::note(
            "note: failures and losses of links are left out: the benchmark meets those of its own fabric",
        );
    }
}

fn load(scenario: &ScenarioArgs) -> Result<Checked, scenario::Finding> {
    match &scenario.topology {
        None => scenario::load(&scenario.scenario, &scenario.set),
        Some(topology) => {
            scenario::load_on(topology, std::path::Path::new(&scenario.scenario), &scenario.set)
        }
    }
}
