//! `ropewalk export`.

use crate::cli::{ExportArgs, ExportTo, ScenarioArgs};
use crate::commands::new::write_new;
use crate::print;
use lab::Prepared;
use lab::failure::Failure;
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
            let traffic = results::patterns::Traffic::of(&run.checked.plan, &run.outcome);
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
            Ok(())
        }
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
