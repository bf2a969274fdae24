//! The HPCC family of ns-3 simulators: topology, flow and configuration files.
//!
//! Nodes keep their numbers as names (`n0`, `n1`, ...), flows keep their starts (by custom the first one is at
//! 2 s), and every flow has a queue pair of its own, as there. The scenario has `compat = "ns3"`; everything
//! else comes from the configuration file, if there is one.

mod config;
mod flows;
mod tokens;
mod topology;

use crate::{Error, Source};
use std::fmt::Write;

/// A file: what to call it, and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Name, for messages.
    pub name: &'a str,
    /// Content.
    pub text: &'a str,
}

/// What came of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A scenario.
    pub toml: String,
    /// What the scenario cannot say or does not do, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads a topology, its flows and, if given, a configuration file into a scenario that runs.
///
/// # Errors
/// The first thing that is wrong, with file, line and column.
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
    // What a reader of files cannot see: hosts with several links, paths that do not exist.
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

/// A name that stays on the line of its comment.
fn line(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
