//! Scenarios from the files of the HPCC family of ns-3 simulators, see [`ns3`].

pub use ns3::{File, KEYS, Key, Of};
pub(crate) use ns3::{fabric, is_topology};

use super::Report;
use crate::Source;
use finding::Finding;

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as TOML.
    pub toml: String,
    /// What it runs.
    pub report: Report,
    /// Warnings of settings that the scenario does not reproduce, one sentence each.
    pub warnings: Vec<String>,
    /// Facts that a comparison of runs must respect, one sentence each.
    pub notes: Vec<String>,
}

/// In place of no flows, so that the check sees a whole scenario.
const PLACEHOLDER: &str = "[[workload]]\npermutation = { kind = \"shift\" }\n";

/// Makes a scenario of a topology, its flows and, if given, a configuration file.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn import(topology: File<'_>, flows: File<'_>, config: Option<File<'_>>) -> Result<Imported, Finding> {
    let written = ns3::write(topology, flows, config)?;
    // Only the check of the whole scenario finds mistakes such as hosts with several links.
    let whole = format!("{}{}", written.toml, if written.has_flows() { "" } else { PLACEHOLDER });
    let checked = crate::check(&Source::new("the imported scenario", &*whole), &[]).map_err(|e| {
        let text = format!("the imported scenario cannot run: {}", e.text);
        Finding { help: e.help, ..written.error(e.place.as_deref(), text) }
    })?;
    let mut report = Report::of(&checked, None, 0);
    let has_flows = written.has_flows();
    let ns3::Written { toml, mut warnings, notes, .. } = written;
    if has_flows {
        warnings.extend(checked.warnings());
    } else {
        (report.sends, report.bytes) = (0, 0);
        warnings.push(format!(
            "{}: there are no flows, so the scenario needs a [[workload]] before it can run",
            flows.name
        ));
    }
    Ok(Imported { toml, report, warnings, notes })
}

#[cfg(test)]
mod tests;
