//! What commands print, and how ([`scenario::terminal`]).

use lab::failure::Failure;
use scenario::Finding;
use scenario::terminal;
pub use scenario::terminal::note;

/// Writes `text` to standard output.
///
/// # Errors
/// If the system refuses, for example because a disk is full: the output is then incomplete.
pub fn out(text: &str) -> Result<(), Failure> {
    terminal::out(text).map_err(Failure::Output)
}

/// Indented JSON that ends with a line break.
pub fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes each warning about a scenario to standard error, on a line of its own.
pub fn warnings(findings: &[Finding]) {
    findings.iter().for_each(|warning| note(&warning.on_one_line()));
}
