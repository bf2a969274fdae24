//! `ropewalk import site`.

use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use scenario::file::{self, Reading};
use scenario::{Source, check};
use site::{Answer, Failed, Input};
use std::fs;
use std::path::{Path, PathBuf};

/// Deepest folder below a path that is read, and most files. Our choice: a folder per switch, and more switches than a fabric has.
const DEEPEST: usize = 8;
const MOST_FILES: usize = 20_000;

/// A file of a site: text, its tree and what is noted of each value. Measured on SONiC's largest samples.
const READING: Reading = Reading::up_to(64 << 20, 60);

/// Makes a scenario of a site's files.
///
/// # Errors
/// If there are no such files, they describe no fabric, or the scenario exists already.
pub fn run(paths: &[PathBuf], output: &Path, json: bool) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(Failure::Asked(format!("there is no {}", path.display())));
        }
        gather(path, 0, &mut files)?;
    }
    let mut inputs = Vec::new();
    for path in &files {
        let name = path.display().to_string();
        match file::read(path, READING) {
            Ok(text) => inputs.push(Input::new(name, text)),
            Err(error) => {
                let why = error.about(&name).to_string();
                print::note(&format!("note: {why}"));
                inputs.push(Input::unreadable(name, why));
            }
        }
    }
    let answer = site::import(&inputs).map_err(|why| failed(*why))?;
    finish(&answer, output, json)
}

/// The files below a path, by name.
fn gather(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return match files.len() {
            0..=MOST_FILES => Ok(()),
            _ => {
                Err(Failure::Asked(format!("there are more than {MOST_FILES} files; name a smaller folder")))
            }
        };
    }
    if depth > DEEPEST {
        let text = format!("{} is more than {DEEPEST} folders deep; name a folder in it", path.display());
        return Err(Failure::Asked(text));
    }
    let unreadable = |e: std::io::Error| Failure::Asked(format!("{} cannot be read: {e}", path.display()));
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    entries.iter().filter(|path| !hidden(path)).try_for_each(|path| gather(path, depth + 1, files))
}

/// The failure of files that describe no fabric, after a line for each file that was not read.
fn failed(failed: Failed) -> Failure {
    for row in failed.ignored.iter().filter(|row| row.field == site::WHOLE_FILE) {
        print::note(&format!("note: {}:{}: {}", row.file, row.line, row.what));
    }
    failed.finding.into()
}

/// Writes the scenario if it can run, and prints the lists.
fn finish(answer: &Answer, output: &Path, json: bool) -> Result<(), Failure> {
    let name = output.display().to_string();
    let checked = check(&Source::new(name.clone(), answer.toml.clone()), &[])?;
    write_new(output, &answer.toml)?;
    if json {
        print::out(&print::json(answer))?;
        return Ok(());
    }
    for warning in checked.warnings() {
        print::note(&format!("warning: {warning}"));
    }
    let word = lab::shell::word(&name);
    print::out(&format!(
        "{}{name} written: {} hosts, {} switches, {} links\nNext: ropewalk check {word}; ropewalk run {word}\n",
        site::text(answer),
        answer.hosts,
        answer.switches,
        answer.links
    ))?;
    Ok(())
}
