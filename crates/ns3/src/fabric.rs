//! The fabric of a topology file, without flows.

use super::file::File;
use super::{servers, topology};
use files::printable::on_one_line;
use finding::{Finding, code};
use std::collections::BTreeMap;

/// Makes the fabric of a scenario of a topology file, and warnings. Hosts of a file with NVSwitches become servers.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn fabric(file: File<'_>) -> Result<(String, Vec<Finding>), Finding> {
    let mut warnings = Vec::new();
    let graph = topology::read(file, &mut warnings)?;
    let mut toml = format!("# From {}.\n\n", on_one_line(file.name));
    match servers::read(&graph)? {
        Some(servers) => servers.write(&mut toml, &BTreeMap::new()),
        None => graph.write(&mut toml, &BTreeMap::new()),
    }
    Ok((toml, warnings.into_iter().map(|text| code::LEFT_OUT.plain(text)).collect()))
}

/// True if a text looks like a topology file: its first line has three numbers, or those of one of the other dialects.
pub fn is_topology(text: &str) -> bool {
    let first: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    let number = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    matches!(first.len(), 3 | 4 | 6) && first.iter().take(5).all(number)
}
