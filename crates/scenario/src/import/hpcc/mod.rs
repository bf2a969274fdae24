//! Topology, flow and configuration files of the HPCC family of ns-3 simulators.
//!
//! Nodes keep their numbers as names (`n0`, `n1`, ...), and flows keep their starts; the first one is usually at 2 s.
//! As in the simulators, every flow has a queue pair of its own. The scenario has `compat = "ns3"`, and ECMP has the hash
//! of the simulator that the flow file belongs to; all other settings come from the configuration file, if there is one, by the
//! table of [`KEYS`].

mod config;
mod ends;
mod fabric;
mod file;
mod flows;
mod keys;
mod notes;
mod servers;
mod settings;
mod tokens;
mod topology;

pub(crate) use fabric::{fabric, is_topology};
pub use file::File;
pub use keys::{KEYS, Key, Of};

use super::Report;
use super::text::on_one_line;
use crate::Source;
use finding::{Finding, Place};
use formats::unread;
use notes::Notes;
use settings::Settings;
use std::fmt::Write;

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
    for file in [Some(topology), Some(flows), config].into_iter().flatten() {
        if let Some(unread) = unread::of(file.text.as_bytes()) {
            return Err(unread.error(file.name));
        }
    }
    let mut notes = Notes::default();
    let config = config.map(|file| config::read(file, &mut notes.warnings)).transpose()?;
    let graph = topology::read(topology, &mut notes.warnings)?;
    let servers = match servers::read(&graph) {
        Ok(servers) => servers,
        Err(error) => {
            notes.warnings.push(format!("{}: GPUs are hosts, and NVSwitches are switches", error.located()));
            None
        }
    };
    let list = flows::read(flows, &graph, servers.as_ref(), &mut notes)?;
    let settings = match config {
        Some(config) => settings::of(config, &graph, &list, &mut notes)?,
        None => Settings::none(graph.origin(0, "")),
    };
    let mut toml = String::new();
    let _ = writeln!(toml, "# From {} and {}.\n", on_one_line(topology.name), on_one_line(flows.name));
    let top_from = toml.matches('\n').count();
    settings.top().iter().for_each(|(line, _)| toml.push_str(&format!("{line}\n")));
    let _ = writeln!(toml, "compat = \"ns3\"");
    if !settings.sets_scheme() {
        let _ = writeln!(toml, "scheme.ecmp = {}", list.hash(&mut notes));
    }
    toml.push('\n');
    let graph_from = toml.matches('\n').count();
    match &servers {
        Some(servers) => servers.write(&mut toml, &settings.roles),
        None => graph.write(&mut toml, &settings.roles),
    }
    let config_from = toml.matches('\n').count();
    settings.write(&mut toml);
    let flows_from = toml.matches('\n').count();
    list.write(&mut toml);
    // The word that caused the part of the scenario at this place.
    let origin = |place: &Place| {
        let line = place.line - 1;
        let text = toml.lines().nth(line).unwrap_or_default();
        let before: String = text.chars().take(place.column - 1).collect();
        match line {
            line if line >= flows_from => list.origin(line - flows_from, &before),
            line if line >= config_from => settings.origin(line - config_from),
            line if line >= graph_from => match servers {
                Some(_) => graph.origin(0, ""),
                None => graph.origin(line - graph_from, &before),
            },
            line => match settings.top().get(line.saturating_sub(top_from)) {
                Some((_, word)) => *word,
                None => graph.origin(0, ""),
            },
        }
    };
    // Only the check of the whole scenario finds mistakes such as hosts with several links.
    let whole = format!("{toml}{}", if list.is_empty() { PLACEHOLDER } else { "" });
    let checked = crate::check(&Source::new("the imported scenario", &*whole), &[]).map_err(|e| {
        let word = e.place.as_deref().map_or_else(|| graph.origin(0, ""), origin);
        Finding { help: e.help, ..word.error(format!("the imported scenario cannot run: {}", e.text)) }
    })?;
    let mut report = Report::of(&checked, None, 0);
    let Notes { mut warnings, notes } = notes;
    if list.is_empty() {
        (report.sends, report.bytes) = (0, 0);
        warnings.push(format!(
            "{}: there are no flows, so the scenario needs a [[workload]] before it can run",
            flows.name
        ));
    } else {
        warnings.extend(checked.warnings());
    }
    Ok(Imported { toml, report, warnings, notes })
}

#[cfg(test)]
mod tests;
