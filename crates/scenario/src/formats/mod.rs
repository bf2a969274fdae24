//! Workloads in the formats of other tools. The content of a file tells its format, whatever its name and whether gzip has packed it.

pub(crate) mod chakra;
pub mod goal;
pub mod htsim;
pub(crate) mod order;
pub(crate) mod simai;
pub(crate) mod unread;
mod words;

use crate::file::{self, Reading, without_mark};
use crate::import::foreign;
use finding::{Finding, code};
use std::path::Path;

/// Bytes from the start of a file that tell its format.
const START: u64 = 4096;

/// The formats of workloads: the key of a scenario and the command of `ropewalk import`, what a file of the format is, and the
/// memory that a byte of it takes until a run can start. Measured with `check` on files of a million short lines or nodes: 239 MB
/// (htsim) to 1.7 GB (SimAI).
const WORKLOADS: [(&str, &str, Reading); 4] = [
    ("goal", "a GOAL schedule", Reading::import(15)),
    ("chakra", "a Chakra trace", Reading::import(33)),
    ("simai", "a workload of SimAI", Reading::import(51)),
    ("htsim", "a connection matrix of htsim", Reading::import(12)),
];

/// Reads a file of a format; messages call it `name`.
fn read_bytes(format: &str, path: &Path, name: &str) -> Result<Vec<u8>, Finding> {
    let (.., reading) = WORKLOADS.into_iter().find(|(key, ..)| *key == format).unwrap_or(WORKLOADS[0]);
    file::bytes(path, reading).map_err(|e| code::FILE.at("file", e.about(name)))
}

/// The name of a workload file, and the change that puts the file in place of a scenario's workload.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub(crate) fn in_place_of_workload(path: &Path) -> Result<(String, String), Finding> {
    let name = path.display().to_string();
    let unreadable = |e: std::io::Error| code::FILE.plain(format!("{name} cannot be read: {e}"));
    let kind = match path.is_dir() || !path.exists() && chakra::is_start(path) {
        true => chakra::rank_files(path).map(|_| "chakra")?,
        false => kind_of(path, &name, &file::start(path, START).map_err(unreadable)?)?,
    };
    let file = std::path::absolute(path).map_err(unreadable)?;
    let file = toml::Value::from(file.display().to_string());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("workload").to_owned();
    Ok((stem, format!("workload=[{{ {kind} = {{ file = {file} }} }}]")))
}

/// The kind of workload of a file that starts with these bytes. The name counts only if the content tells nothing.
fn kind_of(path: &Path, name: &str, start: &[u8]) -> Result<&'static str, Finding> {
    if let Some(kind) = kind(start) {
        return Ok(kind);
    }
    if let Some(unread) = unread::of_file(path) {
        return Err(unread.error(name));
    }
    if chakra::is_name(path) {
        return Ok("chakra");
    }
    let help = foreign::help(&String::from_utf8_lossy(start));
    Err(code::CONTENT.plain(format!("{name} is no workload that `--topology` can take")).with_help(help.unwrap_or(
        "it takes GOAL schedules, as text or binary, Chakra traces, workloads of SimAI, and connection matrices of htsim; scenarios \
         run without `--topology`",
    )))
}

/// The kind of workload to which the start of a file belongs.
pub(crate) fn kind(start: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(start);
    let text = without_mark(&text);
    if goal::binary::is_binary(start.get(..8).unwrap_or_default()) || goal::text::is_goal(text) {
        return Some("goal");
    }
    if chakra::is_trace(start) {
        return Some("chakra");
    }
    if simai::is_workload(text) {
        return Some("simai");
    }
    htsim::is_matrix(text).then_some("htsim")
}

/// Refuses content that clearly has another format than the workload `wanted`; messages call it `file`.
pub(crate) fn refuse_others(wanted: &str, file: &str, content: &[u8]) -> Result<(), Finding> {
    let found = kind(&content[..content.len().min(START as usize)]);
    match WORKLOADS.into_iter().find(|(kind, ..)| found == Some(*kind)) {
        Some((kind, ..)) if kind == wanted => Ok(()),
        Some((kind, what, _)) => {
            let way = format!("`{kind}` in place of `{wanted}`, and `ropewalk import {kind}`, read it");
            Err(code::CONTENT.at("file", format!("{file}: this looks like {what}")).with_help(way))
        }
        None => unread::of(content).map_or(Ok(()), |unread| Err(unread.key_error("file", file))),
    }
}

/// Reads a text file with a workload of the kind `wanted`; messages call it `name`.
pub(crate) fn read_text(wanted: &str, path: &Path, name: &str) -> Result<String, Finding> {
    let content = read_bytes(wanted, path, name)?;
    refuse_others(wanted, name, &content)?;
    file::text(content).map_err(|e| code::FILE.at("file", e.about(name)))
}
