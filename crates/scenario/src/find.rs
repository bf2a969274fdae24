//! Scenarios by name: a file, a built-in scenario, or the topology file of another tool.

use crate::builtin;
use crate::import;
use crate::source::{Source, find_among};
use finding::Finding;

/// Finds a scenario by the path of a TOML file or the name of a built-in scenario. A topology file of another tool becomes a
/// scenario without a workload.
///
/// # Errors
/// If there is neither a file nor a built-in scenario; the help names the nearest built-in one.
pub fn find(scenario: &str) -> Result<Source, Finding> {
    let source = find_among(scenario, builtin::ALL, "scenario")?;
    match import::fabric(&source.file, &source.text) {
        Some(fabric) => fabric.map(|(text, warnings)| Source { text, warnings, ..source }),
        None => Ok(source),
    }
}
