//! Workloads in the formats of other tools.

pub(crate) mod chakra;
pub mod goal;
pub mod htsim;
pub(crate) mod order;
pub(crate) mod simai;
mod words;

use crate::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes from the start of a file that tell its format.
const START: u64 = 4096;

/// The name of a workload file, and the change that puts the file in place of a scenario's workload.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub(crate) fn in_place_of_workload(path: &Path) -> Result<(String, String), Error> {
    let name = path.display().to_string();
    let start = || -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        File::open(path)?.take(START).read_to_end(&mut start)?;
        Ok(start)
    };
    let kind = match chakra::is_name(path) {
        true => Some("chakra"),
        false => kind(&start().map_err(|e| Error::new(format!("{name} cannot be read: {e}")))?),
    };
    let kind = kind.ok_or_else(|| {
        Error::new(format!("{name} is no workload that `--topology` can take"))
            .with_help("it takes GOAL schedules, as text or binary, Chakra traces, workloads of SimAI, and connection matrices of htsim; scenarios run without `--topology`")
    })?;
    let file = std::path::absolute(path).map_err(|e| Error::new(format!("{name} cannot be read: {e}")))?;
    let file = toml::Value::from(file.display().to_string());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("workload").to_owned();
    Ok((stem, format!("workload=[{{ {kind} = {{ file = {file} }} }}]")))
}

/// The kind of workload to which the start of a file belongs.
pub(crate) fn kind(start: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(start);
    if goal::binary::is_binary(start.get(..8).unwrap_or_default()) || goal::text::is_goal(&text) {
        return Some("goal");
    }
    if chakra::is_trace(start) {
        return Some("chakra");
    }
    if simai::is_workload(&text) {
        return Some("simai");
    }
    htsim::is_matrix(&text).then_some("htsim")
}
