//! Standard output and standard error. A reader that closes the pipe (`| head`) is not an error. Characters that a terminal
//! would obey are escaped: a name from a file moves no cursor.

use files::printable::escaped;
use std::io::{self, ErrorKind, Write};

/// Writes `text` to standard output.
///
/// # Errors
/// If the system refuses, for example because a disk is full: the output is then incomplete.
pub fn out(text: &str) -> io::Result<()> {
    let mut to = io::stdout().lock();
    match to.write_all(escaped(text).as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes a line to standard error.
pub fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{}", escaped(line)));
}
