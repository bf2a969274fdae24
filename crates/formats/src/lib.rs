//! Workloads in the formats of other tools. The content of a file tells its format, whatever its name and whether gzip has packed it.

#![forbid(unsafe_code)]

pub mod chakra;
pub mod ctp;
pub mod foreign;
pub mod goal;
pub mod htsim;
mod kind;
pub mod order;
pub mod requests;
pub mod routing;
pub mod simai;
pub mod unread;
mod words;

pub use kind::read_text;

use files::file;
use finding::{Finding, code};
use kind::{START, kind};
use std::path::Path;

/// The name of a workload file, and the change that puts the file in place of a scenario's workload.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn in_place_of_workload(path: &Path) -> Result<(String, String), Finding> {
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
