//! Topology, flow and configuration files of the HPCC family of ns-3 simulators.
//!
//! Nodes keep their numbers as names (`n0`, `n1`, ...), and flows keep their starts; the first one is usually at 2 s.
//! As in the simulators, every flow has a queue pair of its own. The scenario has `compat = "ns3"`; all other settings
//! come from the configuration file, if there is one.

mod config;
mod flows;
mod tokens;
mod topology;

use crate::{Error, Source};
use std::fmt::Write;

/// A file with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Name of the file in messages.
    pub name: &'a str,
    /// Content of the file.
    pub text: &'a str,
}

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as TOML.
    pub toml: String,
    /// Warnings of settings that the scenario does not reproduce, one sentence each.
    pub warnings: Vec<String>,
}

/// Makes a scenario of a topology, its flows and, if given, a configuration file.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn import(topology: File<'_>, flows: File<'_>, config: Option<File<'_>>) -> Result<Imported, Error> {
    let mut warnings = Vec::new();
    let config = config.map(|file| config::read(file, &mut warnings)).transpose()?.unwrap_or_default();
    let graph = topology::read(topology, &mut warnings)?;
    let list = flows::read(flows, &graph, &mut warnings)?;
    let mut toml = String::new();
    let _ = writeln!(toml, "# From {} and {}.\n", line(topology.name), line(flows.name));
    let _ = writeln!(toml, "compat = \"ns3\"\n");
    graph.write(&mut toml);
    config.write(&mut toml);
    flows::write(&list, &mut toml);
    // Only the check of the scenario finds hosts with several links and missing paths.
    match crate::check(&Source::new("the imported scenario", &*toml), &[]) {
        Ok(checked) => warnings.extend(checked.warnings),
        Err(e) => {
            let error = Error::new(format!("{} cannot run here: {}", line(topology.name), e.message()));
            return Err(match e.help() {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
    }
    Ok(Imported { toml, warnings })
}

/// The name of a file without control characters, so that a comment with it stays on one line.
fn line(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
