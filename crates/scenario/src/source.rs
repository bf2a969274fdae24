//! Where a scenario comes from: a file, a built-in one, or a text.

use crate::builtin;
use crate::error::{Error, suggestion};
use std::path::Path;

/// A scenario's text and what to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it came from: a path, or the name of a built-in scenario.
    pub file: String,
    /// The scenario's name: the file's name without its ending.
    pub name: String,
    /// TOML.
    pub text: String,
}

impl Source {
    /// A text from anywhere; `file` is what messages call it.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        let file = file.into();
        let stem = Path::new(&file).file_stem().and_then(|s| s.to_str());
        Source { name: stem.unwrap_or("scenario").to_owned(), text: text.into(), file }
    }

    /// Where files are that the scenario names: beside it.
    pub(crate) fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }
}

/// Finds a scenario: a path to a TOML file, or the name of a built-in one.
///
/// # Errors
/// If there is neither; the message names the nearest built-in scenario.
pub fn find(scenario: &str) -> Result<Source, Error> {
    find_among(scenario, builtin::ALL, "scenario")
}

/// Finds a `kind` of file, or the built-in one of that name.
pub(crate) fn find_among(name: &str, all: &[builtin::Builtin], kind: &str) -> Result<Source, Error> {
    let path = Path::new(name);
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    if let Some(found) = all.iter().find(|b| b.name == stem).filter(|_| !path.is_file()) {
        return Ok(Source::new(name, found.text));
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let names: Vec<&str> = all.iter().map(|b| b.name).collect();
            let help = suggestion(name, &names);
            let text = format!("there is neither a file nor a built-in {kind} {name:?}");
            Err(Error::new(text).with_help(help))
        }
        Err(e) => Err(Error::new(format!("{name} cannot be read: {e}"))),
    }
}
