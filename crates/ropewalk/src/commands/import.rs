//! `ropewalk import`.

use crate::cli::{ImportArgs, ImportFrom};
use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use results::text;
use scenario::file::{self, Reading};
use scenario::import::hpcc::{File, import};
use scenario::import::{self, Draft, Report};
use std::fs;
use std::path::Path;

/// Converts another tool's files to a scenario.
///
/// # Errors
/// If a file is wrong, or the scenario exists already.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.from {
        ImportFrom::Chakra { files, groups, spmd, topology, output } => {
            let topology = topology.as_deref();
            let settings = import::chakra::Settings { groups: groups.as_deref(), spmd: *spmd, topology };
            finish(import::chakra::import(files, settings, output)?)
        }
        ImportFrom::Ctp { file, topology, output } => {
            finish(import::ctp::import(file, topology.as_deref(), output)?)
        }
        ImportFrom::Goal { file, topology, output } => {
            finish(import::goal::import(file, topology.as_deref(), output)?)
        }
        ImportFrom::Hpcc { topology, flows, config, output } => {
            hpcc(topology, flows, config.as_deref(), output)
        }
        ImportFrom::Htsim { cm, topo, output } => finish(import::htsim::import(cm, topo.as_deref(), output)?),
        ImportFrom::Simai { workload, topology, output } => {
            finish(import::simai::import(workload, topology.as_deref(), output)?)
        }
        ImportFrom::Site { paths, output, json } => super::site::run(paths, output, *json),
    }
}

/// Writes the files of an import, then its scenario. If one of them cannot be written or the scenario cannot run, nothing is left.
fn finish(draft: Draft) -> Result<(), Failure> {
    let scenario = draft.scenario.clone();
    let folder = scenario.parent().filter(|_| !draft.files.is_empty());
    let made = folder.is_some_and(|folder| !folder.exists());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)
            .map_err(|e| Failure::Asked(format!("cannot create {}: {e}", folder.display())))?;
    }
    let mut written = Vec::new();
    let done = write(draft, &mut written);
    if done.is_err() {
        written.iter().for_each(|path| drop(fs::remove_file(path)));
        folder.filter(|_| made).map(fs::remove_dir);
    }
    let (report, warnings) = done?;
    print_written(&scenario, &report, &warnings)
}

/// Writes the files and the scenario, and notes what it has written.
fn write(mut draft: Draft, written: &mut Vec<std::path::PathBuf>) -> Result<(Report, Vec<String>), Failure> {
    for (path, content) in std::mem::take(&mut draft.files) {
        write_new(&path, content)?;
        written.push(path);
    }
    let scenario = draft.scenario.clone();
    let finished = draft.finish()?;
    write_new(&scenario, finished.toml)?;
    Ok((finished.report, finished.warnings))
}

fn hpcc(topology: &Path, flows: &Path, config: Option<&Path>, output: &Path) -> Result<(), Failure> {
    let (topology, flows) = (read(topology)?, read(flows)?);
    let config = config.map(read).transpose()?;
    let imported = import(topology.as_file(), flows.as_file(), config.as_ref().map(Text::as_file))?;
    write_new(output, &imported.toml)?;
    for note in &imported.notes {
        print::note(&format!("note: {note}"));
    }
    print_written(output, &imported.report, &imported.warnings)
}

/// Prints warnings, what the scenario runs, and what to do next.
fn print_written(output: &Path, report: &Report, warnings: &[String]) -> Result<(), Failure> {
    for warning in warnings {
        print::note(&format!("warning: {warning}"));
    }
    let file = output.display().to_string();
    let word = lab::shell::word(&file);
    let lines = lines(report);
    print::out(&format!("{file} written:\n{lines}Next: ropewalk check {word}; ropewalk run {word}\n"))
}

/// The lines of a report.
fn lines(report: &Report) -> String {
    let moved = |number: u64, bytes: u64| format!("{}, {} B", text::count(number), text::count(bytes));
    let us = text::number(report.compute.ps() as f64 / 1e6);
    let mut lines = vec![("ranks", text::count(report.ranks))];
    if report.collectives > 0 {
        lines.push(("collectives", text::count(report.collectives)));
    }
    lines.push(("sends", moved(report.sends, report.bytes)));
    if report.copies > 0 {
        lines.push(("over NVLink", moved(report.copies, report.copied)));
    }
    lines.push(("compute", format!("{us} us of all ranks together")));
    lines.push(("unmatched", text::count(report.unmatched)));
    lines.into_iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect()
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
    let text = file::read(path, Reading::HPCC);
    let text = text.map_err(|e| Failure::Asked(e.about(&path.display().to_string())))?;
    Ok(Text { name: path.display().to_string(), text })
}
