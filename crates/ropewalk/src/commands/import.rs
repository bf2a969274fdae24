//! `ropewalk import`.

use crate::cli::{ImportArgs, ImportFrom};
use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use scenario::file::{self, LARGEST_IMPORT};
use scenario::import::hpcc::{File, import};
use std::path::Path;

/// Converts another tool's files to a scenario.
///
/// # Errors
/// If a file is wrong, or the scenario exists already.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    let ImportFrom::Hpcc { topology, flows, config, output } = &args.from;
    let (topology, flows) = (read(topology)?, read(flows)?);
    let config = config.as_deref().map(read).transpose()?;
    let imported = import(topology.as_file(), flows.as_file(), config.as_ref().map(Text::as_file))?;
    write_new(output, &imported.toml)?;
    for warning in &imported.warnings {
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
