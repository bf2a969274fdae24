//! `ropewalk export`.

use crate::cli::{ExportArgs, ExportTo};
use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;

/// Writes a scenario's fabric in another tool's format.
///
/// # Errors
/// If the scenario is wrong, or the file exists already.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let ExportTo::Infragraph { scenario, output } = &args.to;
    let checked = match &scenario.topology {
        None => scenario::load(&scenario.scenario, &scenario.set)?,
        Some(topology) => {
            scenario::load_on(topology, std::path::Path::new(&scenario.scenario), &scenario.set)?
        }
    };
    write_new(output, site::infragraph::graph(&checked))?;
    print::out(&format!("{} written\n", output.display()))?;
    Ok(())
}
