//! Standard output and standard error. A reader that closes the pipe (`| head`) is not an error. Characters that a terminal
//! would obey are escaped: a name from a file moves no cursor.

use lab::failure::Failure;
use scenario::Finding;
use scenario::printable::escaped;
use std::io::{ErrorKind, Write, stdout};

/// Writes `text` to standard output.
///
/// # Errors
/// If the system refuses, for example because a disk is full: the output is then incomplete.
pub fn out(text: &str) -> Result<(), Failure> {
    let mut to = stdout().lock();
    match to.write_all(escaped(text).as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
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

/// Writes a line to standard error.
pub fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", escaped(line)));
}
