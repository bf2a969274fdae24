//! Sources of scenarios: files, built-in scenarios and other texts.

use crate::builtin;
use files::file::{self, ReadError, Reading};
use finding::{Finding, code, suggestion};
use rnic::TransportConfig;
use std::path::Path;

/// The text of a scenario with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, or name of the built-in scenario.
    pub file: String,
    /// Name of the scenario: the name of the file without its extension.
    pub name: String,
    /// Text of the scenario, TOML.
    pub text: String,
    /// Warnings about the file from which the text was made.
    pub warnings: Vec<Finding>,
}

impl Source {
    /// A text from any source; messages call it `file`.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        let (file, mut text) = (file.into(), text.into());
        let mark = text.len() - file::without_mark(&text).len();
        text.drain(..mark);
        let stem = Path::new(&file).file_stem().and_then(|s| s.to_str());
        let name = stem.unwrap_or("scenario").to_owned();
        Source { name, text, warnings: Vec::new(), file }
    }

    /// The folder of the scenario; paths in the scenario are relative to it.
    pub(crate) fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }
}

/// A hint for the name of a recovery mode in place of a scenario: the scenarios of `all` whose NICs have it. `None` if there are none.
fn of_mode(name: &str, all: &[builtin::Builtin]) -> Option<String> {
    let name = TransportConfig::NAMES.iter().find(|mode| **mode == name)?;
    let set = format!("[nic.transport.{name}]");
    let with = all.iter().filter(|builtin| builtin.text.lines().any(|line| line == set));
    let with: Vec<String> = with.take(3).map(|builtin| format!("`{}`", builtin.name)).collect();
    (!with.is_empty())
        .then(|| format!("`{name}` is a recovery mode of NICs, such as those of {}", with.join(", ")))
}

/// Finds a file, or a built-in file in `all`; messages call it a `kind`.
pub(crate) fn find_among(name: &str, all: &[builtin::Builtin], kind: &str) -> Result<Source, Finding> {
    let path = Path::new(name);
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    if let Some(found) = all.iter().find(|b| b.name == stem).filter(|_| !path.is_file()) {
        return Ok(Source::new(name, found.text));
    }
    match file::read(path, Reading::SCENARIO) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(e) if e.is_not_found() => {
            let names: Vec<&str> = all.iter().map(|b| b.name).collect();
            let help = of_mode(stem, all).unwrap_or_else(|| suggestion(name, &names));
            let text = format!("there is neither a file nor a built-in {kind} {name:?}");
            Err(code::FILE.plain(text).with_help(help))
        }
        Err(e) => Err(no_text(path, name, &e)),
    }
}

/// The error about a file that is no text, and what it is instead.
fn no_text(path: &Path, name: &str, error: &ReadError) -> Finding {
    let workload = formats::in_place_of_workload(path);
    if path.is_dir() {
        let error = code::FILE.plain(format!("{name} is a folder, and a scenario is a file"));
        return error.with_help(match workload {
            Ok(_) => {
                "`--topology SCENARIO` runs the trace in this folder on that scenario's fabric".to_owned()
            }
            Err(why) => why.text,
        });
    }
    let unread = matches!(error, ReadError::NotText { .. }).then(|| formats::unread::of_file(path)).flatten();
    match (unread, workload) {
        (Some(unread), _) => unread.error(name),
        (None, Ok(_)) => code::FILE
            .plain(error.about(name))
            .with_help("`--topology SCENARIO` runs this file on that scenario's fabric"),
        (None, Err(_)) => code::FILE.plain(error.about(name)),
    }
}
