//! Standard output and standard error. A reader that went away (`| head`) is no error.

use std::io::Write;

/// Writes `text` to standard output.
pub fn out(text: &str) {
    drop(std::io::stdout().lock().write_all(text.as_bytes()));
}

/// Writes a line to standard error.
pub fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}
