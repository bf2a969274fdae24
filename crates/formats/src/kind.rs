//! The format of a file, which its content tells, and files that must have a certain one.

use super::{chakra, goal, htsim, simai, unread};
use files::file::{self, Reading, without_mark};
use finding::{Finding, code};
use std::path::Path;

/// Bytes from the start of a file that tell its format.
pub(super) const START: u64 = 4096;

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
pub(super) fn read_bytes(format: &str, path: &Path, name: &str) -> Result<Vec<u8>, Finding> {
    let (.., reading) = WORKLOADS.into_iter().find(|(key, ..)| *key == format).unwrap_or(WORKLOADS[0]);
    file::bytes(path, reading).map_err(|e| code::FILE.at("file", e.about(name)))
}

/// The kind of workload to which the start of a file belongs.
pub(super) fn kind(start: &[u8]) -> Option<&'static str> {
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
pub(super) fn refuse_others(wanted: &str, file: &str, content: &[u8]) -> Result<(), Finding> {
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
pub fn read_text(wanted: &str, path: &Path, name: &str) -> Result<String, Finding> {
    let content = read_bytes(wanted, path, name)?;
    refuse_others(wanted, name, &content)?;
    file::text(content).map_err(|e| code::FILE.at("file", e.about(name)))
}
