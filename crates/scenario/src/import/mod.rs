//! Scenarios from files of other tools.
//!
//! An import has two steps. The first one reads the files of the other tool and makes a [`Draft`]: the files that the scenario needs
//! beside it. When they are written, [`Draft::finish`] checks the scenario and makes its text.

pub mod chakra;
pub mod ctp;
mod fabric;
pub mod goal;
pub mod hpcc;
pub mod htsim;
mod relative;
mod report;
pub mod simai;
mod text;

pub(crate) use fabric::fabric;
use files::printable::on_one_line;
use finding::{Finding, code};
pub use report::Report;

use crate::{Checked, Source, check, find, show};
use model::Packet;
use std::fmt::Write;
use std::path::PathBuf;

/// A scenario that an import has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Files that the scenario needs beside it, and their contents.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Place of the scenario.
    pub scenario: PathBuf,
    fabric: Source,
    /// Option of the command that names a fabric.
    option: &'static str,
    /// The workload as a change of the fabric's scenario.
    workload: String,
    /// Where the workload comes from: lines of a comment.
    about: Vec<String>,
    /// Ranks of the files; `None` for all GPUs of the fabric.
    ranks: Option<u32>,
    /// Messages that no rank receives.
    unmatched: u64,
    /// True if a list of flows may take the place of the workload.
    list: bool,
    warnings: Vec<Finding>,
}

/// A scenario that an import has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The scenario as TOML.
    pub toml: String,
    /// What it runs.
    pub report: Report,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

impl Draft {
    /// The scenario, once its files are written.
    ///
    /// # Errors
    /// If the workload cannot run on the fabric.
    pub fn finish(self) -> Result<Finished, Finding> {
        let (fabric, option) = (self.fabric.file.clone(), self.option);
        let source = Source { file: self.scenario.display().to_string(), ..self.fabric };
        // The scenario is not written if it cannot run, so an error about the fabric names the file of the fabric.
        let mut checked =
            check(&source, std::slice::from_ref(&self.workload)).map_err(|error| {
                match error.place.as_ref().is_some_and(|place| place.file == source.file) {
                    true if fabric == ONE_SWITCH => {
                        let text = format!("without {option}, one switch joins all hosts: {}", error.text);
                        code::FIT.plain(text).with_help(format!("{option} names the fabric that joins them"))
                    }
                    true => error.renamed(&fabric),
                    false => error,
                }
            })?;
        let mut about = self.about;
        if self.list {
            about.push(match htsim::listed(&source, &checked)? {
                Some(listed) => {
                    checked = listed;
                    "The scenario has a list of its flows and does not read it again.".to_owned()
                }
                None => "The scenario reads it when it runs.".to_owned(),
            });
        }
        let report = Report::of(&checked, self.ranks, self.unmatched);
        // The places are those in the scenario of the fabric, and the scenario of the import is another one.
        let mut warnings: Vec<String> = self.warnings.into_iter().map(|warning| warning.text).collect();
        for warning in checked.warnings() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(Finished { toml: commented(&checked, &about), report, warnings })
    }
}

/// The scenario as TOML, with comments at its start and at its workload.
fn commented(checked: &Checked, about: &[String]) -> String {
    let mut text = String::new();
    for line in about {
        let _ = writeln!(text, "# {}", on_one_line(line));
    }
    text += "# All settings have a value here; `ropewalk check` prints what each of them means.\n\n";
    let workload = "The imported workload. Its keys are on the page \"The scenario\" of the documentation.";
    text + &text::of(&show::table(&checked.scenario), workload)
}

/// Name of the fabric of an import without a topology.
const ONE_SWITCH: &str = "one switch";

/// Most hosts of one switch; one more port leads to the spine that a leaf-spine fabric has.
const MOST_ON_A_SWITCH: u32 = Packet::MAX_PORTS as u32 - 1;

/// The fabric of a scenario or of a topology file, which the option `option` names; without a name, one switch with a host for each of
/// `ranks`, which the file `file` has.
fn fabric_of(topology: Option<&str>, ranks: u32, option: &str, file: &str) -> Result<Source, Finding> {
    let Some(topology) = topology else {
        let hosts = ranks.max(2);
        if hosts > MOST_ON_A_SWITCH {
            let text = format!(
                "{file} has {hosts} hosts; without {option}, one switch joins them, and it has room for {MOST_ON_A_SWITCH}"
            );
            return Err(code::FIT
                .plain(text)
                .with_help(format!("{option} names the fabric that joins them")));
        }
        let text = format!("[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {hosts}\n");
        return Ok(Source::new(ONE_SWITCH, text));
    };
    find(topology)
}

/// The last line of the comment about an import: its fabric.
fn about_fabric(topology: Option<&str>) -> String {
    match topology {
        Some(topology) => format!("The fabric, its NICs and its scheme are those of {topology}."),
        None => {
            "The fabric is one switch with a host for every rank; --topology names another one.".to_owned()
        }
    }
}
