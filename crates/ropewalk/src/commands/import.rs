//! `ropewalk import`.

use crate::cli::{ImportArgs, ImportFrom};
use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use scenario::file::{self, LARGEST_IMPORT};
use scenario::import::hpcc::{File, import};
use std::fs;
use std::path::Path;

/// Converts another tool's files to a scenario.
///
/// # Errors
/// If a file is wrong, or the scenario exists already.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.from {
        ImportFrom::Goal { file, topology, output } => goal(file, topology.as_deref(), output),
        ImportFrom::Hpcc { topology, flows, config, output } => {
            hpcc(topology, flows, config.as_deref(), output)
        }
    }
}

fn goal(file: &Path, topology: Option<&str>, folder: &Path) -> Result<(), Failure> {
    let mut imported = scenario::import::goal::import(file, topology, folder)?;
    fs::create_dir_all(folder)
        .map_err(|e| Failure::Asked(format!("cannot create {}: {e}", folder.display())))?;
    write_new(&imported.graph.0, &imported.graph.1)?;
    let toml = imported.toml().inspect_err(|_| drop(fs::remove_file(&imported.graph.0)))?;
    write_new(&imported.scenario, toml).inspect_err(|_| drop(fs::remove_file(&imported.graph.0)))?;
    written(&imported.scenario, &imported.warnings)
}

fn hpcc(topology: &Path, flows: &Path, config: Option<&Path>, output: &Path) -> Result<(), Failure> {
    let (topology, flows) = (read(topology)?, read(flows)?);
    let config = config.map(read).transpose()?;
    let imported = import(topology.as_file(), flows.as_file(), config.as_ref().map(Text::as_file))?;
    write_new(output, &imported.toml)?;
    written(output, &imported.warnings)
}

/// Prints warnings and what to do next.
fn written(output: &Path, warnings: &[String]) -> Result<(), Failure> {
    for warning in warnings {
        print::note(&format!("warning: {warning}"));
    }
    let file = output.display().to_string();
    let word = lab::shell::word(&file);
    print::out(&format!("{file} written. Next: ropewalk check {word}; ropewalk run {word}\n"))
}

/// The name and content of a file.
struct Text {
    name: String,
    text: String,
}

impl Text {
    fn as_file(&self) -> File<'_> {
        File { name: &self.name, text: &self.text }
    }
}

fn read(path: &Path) -> Result<Text, Failure> {
    let text = file::read(path, LARGEST_IMPORT);
    let text = text.map_err(|e| Failure::Asked(e.about(&path.display().to_string())))?;
    Ok(Text { name: path.display().to_string(), text })
}
