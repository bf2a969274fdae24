//! GOAL schedules as scenarios: the schedule as a binary file, and a scenario beside it.

use crate::formats::goal::{self, binary};
use crate::{Error, Source, check, find};
use std::path::{Path, PathBuf};

/// Result of an import: two files of one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The schedule as a binary file.
    pub graph: (PathBuf, Vec<u8>),
    /// Place of the scenario.
    pub scenario: PathBuf,
    topology: Option<Source>,
    ranks: u32,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads a schedule, which a scenario in `folder` will run on the fabric of the scenario `topology`.
///
/// # Errors
/// The first mistake of the schedule, or if there is no such scenario.
pub fn import(file: &Path, topology: Option<&str>, folder: &Path) -> Result<Imported, Error> {
    let mut warnings = Vec::new();
    let topology = topology.map(find).transpose()?;
    let schedule = goal::read(file, &mut warnings)?;
    let mut graph = Vec::new();
    binary::write(&schedule, &mut graph).map_err(|e| Error::new(e.to_string()))?;
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or("schedule");
    let place = |extension: &str| folder.join(format!("{name}.{extension}"));
    let ranks = schedule.ranks;
    Ok(Imported { graph: (place("bin"), graph), scenario: place("toml"), topology, ranks, warnings })
}

impl Imported {
    /// The scenario as TOML, once the binary file is written: the one of the topology with the schedule as its workload, or else one
    /// switch with a host for every rank.
    ///
    /// # Errors
    /// If the schedule cannot run on the topology.
    pub fn toml(&mut self) -> Result<String, Error> {
        let star = || {
            let hosts = self.ranks.max(2);
            format!("[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {hosts}\n")
        };
        let text = self.topology.as_ref().map_or_else(star, |topology| topology.text.clone());
        let file = self.graph.0.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let workload = format!("workload=[{{ goal = {{ file = {} }} }}]", toml::Value::from(file));
        let checked = check(&Source::new(self.scenario.display().to_string(), text), &[workload])?;
        self.warnings.extend(
            checked.warnings.iter().filter(|w| !self.warnings.contains(w)).cloned().collect::<Vec<_>>(),
        );
        Ok(checked.to_toml())
    }
}
