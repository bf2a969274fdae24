//! Schedules from files.

use super::{Schedule, binary, text};
use crate::kind::{read_bytes, read_text};
use files::file;
use finding::{Finding, code};
use std::fs::File;
use std::io::{self, BufReader, Cursor};
use std::path::Path;

/// Reads a file in either form. Large binary files are read rank by rank, unless gzip has packed them.
///
/// # Errors
/// The first mistake: with line and column in a text, with byte and rank in a binary file.
pub fn read(path: &Path, warnings: &mut Vec<Finding>) -> Result<Schedule, Finding> {
    let name = path.display().to_string();
    let unreadable = |e: io::Error| code::FILE.at("file", format!("{name} cannot be read: {e}"));
    if binary::is_binary(&file::start(path, 8).map_err(unreadable)?) {
        if file::is_packed(path).map_err(unreadable)? {
            let content = read_bytes("goal", path, &name)?;
            let size = content.len() as u64;
            return binary::read(&name, &mut Cursor::new(content), size);
        }
        let opened = File::open(path).map_err(unreadable)?;
        let size = opened.metadata().map_err(unreadable)?.len();
        return binary::read(&name, &mut BufReader::new(opened), size);
    }
    text::read(&name, &read_text("goal", path, &name)?, warnings)
}
