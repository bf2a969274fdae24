//! Topology, flow and configuration files of the HPCC family of ns-3 simulators.
//!
//! Nodes keep their numbers as names (`n0`, `n1`, ...), and flows keep their starts; the first one is usually at 2 s.
//! As in the simulators, every flow has a queue pair of its own. The scenario has `compat = "ns3"`, and ECMP has the hash
//! of the simulator that the flow file belongs to; all other settings come from the configuration file, if there is one, by the
//! table of [`KEYS`].

#![forbid(unsafe_code)]

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

pub use fabric::{fabric, is_topology};
pub use file::File;
pub use keys::{KEYS, Key, Of};

use files::printable::on_one_line;
use finding::{Finding, Place};
use flows::Flows;
use formats::unread;
use notes::Notes;
use settings::Settings;
use std::fmt::Write;
use topology::Graph;

/// The text of a scenario, which nobody has checked, with the words of the files that caused it.
pub struct Written<'a> {
    /// The scenario as TOML.
    pub toml: String,
    /// Warnings of settings that the scenario does not reproduce, one sentence each.
    pub warnings: Vec<String>,
    /// Facts that a comparison of runs must respect, one sentence each.
    pub notes: Vec<String>,
    graph: Graph<'a>,
    flows: Flows<'a>,
    settings: Settings<'a>,
    /// True if hosts became GPUs of servers.
    servers: bool,
    /// First lines of the keys above all tables, the fabric, the settings and the flows.
    starts: [usize; 4],
}

/// Writes the scenario of a topology, its flows and, if given, a configuration file.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn write<'a>(
    topology: File<'a>,
    flows: File<'a>,
    config: Option<File<'a>>,
) -> Result<Written<'a>, Finding> {
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
    let starts = [top_from, graph_from, config_from, flows_from];
    let (servers, Notes { warnings, notes }) = (servers.is_some(), notes);
    Ok(Written { toml, warnings, notes, graph, flows: list, settings, servers, starts })
}

impl Written<'_> {
    /// True if the files have flows.
    pub fn has_flows(&self) -> bool {
        !self.flows.is_empty()
    }

    /// An error about the word that caused the part of the scenario at this place.
    pub fn error(&self, place: Option<&Place>, text: String) -> Finding {
        let Some(place) = place else { return self.graph.origin(0, "").error(text) };
        let line = place.line - 1;
        let before: String =
            self.toml.lines().nth(line).unwrap_or_default().chars().take(place.column - 1).collect();
        let [top, graph, config, flows] = self.starts;
        let word = match line {
            line if line >= flows => self.flows.origin(line - flows, &before),
            line if line >= config => self.settings.origin(line - config),
            line if line >= graph && self.servers => self.graph.origin(0, ""),
            line if line >= graph => self.graph.origin(line - graph, &before),
            line => match self.settings.top().get(line.saturating_sub(top)) {
                Some((_, word)) => *word,
                None => self.graph.origin(0, ""),
            },
        };
        word.error(text)
    }
}
