//! Topology, flow and configuration files of the HPCC family of ns-3 simulators.
//!
//! Nodes keep their numbers as names (`n0`, `n1`, ...), and flows keep their starts; the first one is usually at 2 s.
//! As in the simulators, every flow has a queue pair of its own. The scenario has `compat = "ns3"`, and ECMP has the hash
//! of the simulator that the flow file belongs to; all other settings come from the configuration file, if there is one.

mod config;
mod flows;
mod servers;
mod tokens;
mod topology;

use super::{Report, on_one_line};
use crate::error::Location;
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
    /// What it runs.
    pub report: Report,
    /// Warnings of settings that the scenario does not reproduce, one sentence each.
    pub warnings: Vec<String>,
}

/// Makes a scenario of a topology, its flows and, if given, a configuration file.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn import(topology: File<'_>, flows: File<'_>, config: Option<File<'_>>) -> Result<Imported, Error> {
    let mut warnings = Vec::new();
    let config = config.map(|file| config::read(file, &mut warnings)).transpose()?;
    let graph = topology::read(topology, &mut warnings)?;
    let list = flows::read(flows, &graph, &mut warnings)?;
    let mut toml = String::new();
    let _ = writeln!(toml, "# From {} and {}.\n", on_one_line(topology.name), on_one_line(flows.name));
    let _ = writeln!(toml, "compat = \"ns3\"");
    if !config.as_ref().is_some_and(config::Config::sets_scheme) {
        let _ = writeln!(toml, "scheme.ecmp = {}", list.hash(&mut warnings));
    }
    toml.push('\n');
    let graph_from = toml.matches('\n').count();
    graph.write(&mut toml);
    let config_from = toml.matches('\n').count();
    config.iter().for_each(|config| config.write(&mut toml));
    let flows_from = toml.matches('\n').count();
    list.write(&mut toml);
    // The word that caused the part of the scenario at this place.
    let origin = |place: &Location| {
        let line = place.line - 1;
        let text = toml.lines().nth(line).unwrap_or_default();
        let before: String = text.chars().take(place.column - 1).collect();
        match line {
            line if line >= flows_from => list.origin(line - flows_from, &before),
            line if line >= config_from => match &config {
                Some(config) => config.origin(line - config_from),
                None => graph.origin(0, ""),
            },
            line => graph.origin(line.saturating_sub(graph_from), &before),
        }
    };
    // Only the check of the whole scenario finds mistakes such as hosts with several links.
    let checked = crate::check(&Source::new("the imported scenario", &*toml), &[]).map_err(|e| {
        let word = e.location().map_or_else(|| graph.origin(0, ""), origin);
        let error = word.error(format!("the imported scenario cannot run: {}", e.message()));
        match e.help() {
            Some(help) => error.with_help(help),
            None => error,
        }
    })?;
    let report = Report::of(&checked, None, 0);
    warnings.extend(checked.warnings);
    Ok(Imported { toml, report, warnings })
}

/// Makes the fabric of a scenario of a topology file, and warnings. Hosts of a file with NVSwitches become servers.
///
/// # Errors
/// The first mistake, with file, line and column.
pub(crate) fn fabric(file: File<'_>) -> Result<(String, Vec<String>), Error> {
    let mut warnings = Vec::new();
    let graph = topology::read(file, &mut warnings)?;
    let mut toml = format!("# From {}.\n\n", on_one_line(file.name));
    match servers::read(&graph)? {
        Some(servers) => servers.write(&mut toml),
        None => graph.write(&mut toml),
    }
    Ok((toml, warnings))
}

/// True if a text looks like a topology file: its first line has three numbers, or those of one of the other dialects.
pub(crate) fn is_topology(text: &str) -> bool {
    let first: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    let number = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    matches!(first.len(), 3 | 4 | 6) && first.iter().take(5).all(number)
}

/// The error with the import option that reads the file, if the file looks like one of another kind.
fn hinted(file: File<'_>, error: Error) -> Error {
    match super::foreign::help(file.text) {
        Some(help) => error.with_help(help),
        None => error,
    }
}

#[cfg(test)]
mod tests;
