//! The files of a trace: one for every rank, whose names differ in the rank.

use super::{Program, read};
use crate::kind::{read_bytes, refuse_others};
use finding::{Finding, code};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The place of the rank in a path that names the files of all ranks.
const RANK: &str = "{rank}";

/// Endings of the names of traces.
const ENDINGS: [&str; 2] = [".et", ".et.gz"];

/// The name of a rank's file in three parts: what comes before the rank, the rank, and what comes after it.
fn parts(name: &str) -> Option<(&str, u32, &str)> {
    let ending = ENDINGS.into_iter().find(|ending| name.ends_with(ending))?;
    let stem = name.strip_suffix(ending)?;
    let start = stem.rfind('.')? + 1;
    let rank = number(&stem[start..])?;
    Some((&name[..start], rank, ending))
}

fn number(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The rank in the name of a file; 0 if it has none.
pub fn rank_of(path: &Path) -> u32 {
    let name = path.file_name().and_then(OsStr::to_str);
    name.and_then(parts).map_or(0, |(_, rank, _)| rank)
}

/// The name of a trace: what its files have before the rank.
pub fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(OsStr::to_str);
    let before = name.and_then(parts).map(|(start, ..)| start.trim_end_matches('.'));
    let whole = path.file_stem().and_then(OsStr::to_str);
    before.or(whole).filter(|name| !name.is_empty()).unwrap_or("trace")
}

/// The files of the ranks, in their order, if several paths are given: each is the file of one rank. One path may have any form
/// that [`rank_files`] takes.
pub fn files_of(paths: &[PathBuf]) -> Result<Vec<(u32, PathBuf)>, Finding> {
    if let [path] = paths {
        return rank_files(path);
    }
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some((start, rank, end)) = parts(name) else {
            let text = format!("{} names no rank; expected a file such as trace.0.et", path.display());
            return Err(code::CONTENT.at("file", text));
        };
        found.push((rank, path.clone(), format!("{start}{RANK}{end}")));
    }
    found.sort_unstable();
    if let Some(pair) = found.windows(2).find(|pair| pair[0].2 != pair[1].2) {
        let text = format!("{} and {} are files of two traces", pair[0].1.display(), pair[1].1.display());
        return Err(code::CONTENT.at("file", text));
    }
    in_order(found, "the trace")
}

/// True if the name of a file is that of a trace.
pub fn is_name(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// True if a path, which is no file, is the start of the names of files, or a name with `{rank}`.
pub fn is_start(path: &Path) -> bool {
    candidates(path).is_ok_and(|found| !found.is_empty())
}

/// The files of the ranks, in their order. `path` is the file of one rank, whose name ends in `.RANK.et`; a file with another
/// name, which is rank 0; the common start of the names; a name with `{rank}`; or a folder that holds one trace.
pub fn rank_files(path: &Path) -> Result<Vec<(u32, PathBuf)>, Finding> {
    if path.is_file() && path.file_name().and_then(OsStr::to_str).and_then(parts).is_none() {
        return Ok(vec![(0, path.to_owned())]);
    }
    let (found, shown) = (candidates(path)?, path.display().to_string());
    if path.is_dir() {
        let mut traces: Vec<&String> = found.iter().map(|(_, _, trace)| trace).collect();
        traces.sort_unstable();
        traces.dedup();
        if let [one, two, ..] = *traces {
            let text = format!("{shown} has several traces, such as {one} and {two}");
            return Err(code::CONTENT.at("file", text).with_help("name one of them"));
        }
        if found.is_empty() {
            let text = format!("the folder {shown} has no trace; expected files such as trace.0.et in it");
            return Err(code::CONTENT.at("file", text));
        }
    }
    in_order(found, &shown)
}

/// The files that belong to a path, with their ranks and the pattern of their names.
fn candidates(path: &Path) -> Result<Vec<(u32, PathBuf, String)>, Finding> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return listed(path, |name| {
            parts(name).map(|(start, rank, end)| (rank, format!("{start}{RANK}{end}")))
        });
    }
    if let Some((start, end)) = name.split_once(RANK) {
        return listed(folder, |name| between(name, start, end));
    }
    if let Some((start, _, end)) = parts(name).filter(|_| path.is_file()) {
        return listed(folder, |name| between(name, start, end));
    }
    let start = format!("{name}.");
    for end in ENDINGS {
        let found = listed(folder, |name| between(name, &start, end))?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The rank of a name between two texts.
fn between(name: &str, start: &str, end: &str) -> Option<(u32, String)> {
    number(name.strip_prefix(start)?.strip_suffix(end)?).map(|rank| (rank, format!("{start}{RANK}{end}")))
}

/// The files of a folder that have a rank, with the pattern of their names.
fn listed(
    folder: &Path,
    rank: impl Fn(&str) -> Option<(u32, String)>,
) -> Result<Vec<(u32, PathBuf, String)>, Finding> {
    let unreadable = |e| code::FILE.at("file", format!("{} cannot be read: {e}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let named = entry.file_name().to_str().and_then(&rank);
        found.extend(named.map(|(rank, pattern)| (rank, entry.path(), pattern)));
    }
    found.sort_unstable();
    Ok(found)
}

/// Checks that every rank has one file.
fn in_order(found: Vec<(u32, PathBuf, String)>, shown: &str) -> Result<Vec<(u32, PathBuf)>, Finding> {
    let Some((last, _, pattern)) = found.last() else {
        let text = format!("{shown} names no trace; expected files such as {shown}.0.et");
        return Err(code::CONTENT.at("file", text));
    };
    if let Some((_, pair)) = (0..).zip(found.windows(2)).find(|(_, pair)| pair[0].0 == pair[1].0) {
        let (one, two) = (pair[0].1.display(), pair[1].1.display());
        return Err(code::CONTENT.at("file", format!("{one} and {two} are both rank {}", pair[0].0)));
    }
    if let Some((missing, _)) = (0u32..).zip(&found).find(|(rank, (found, ..))| rank != found) {
        let file = pattern.replace(RANK, &missing.to_string());
        let text =
            format!("rank {missing} of {shown} has no file: {file} is missing, and the last rank is {last}");
        return Err(code::CONTENT
            .at("file", text)
            .with_help("`replicate = \"spmd\"` runs the file of one rank on all ranks"));
    }
    Ok(found.into_iter().map(|(rank, path, _)| (rank, path)).collect())
}

/// Reads the trace of one rank; errors have their byte in the unpacked file.
pub fn read_file(path: &Path, rank: u32) -> Result<(Program, u64), Finding> {
    let file = path.display().to_string();
    let bytes = read_bytes("chakra", path, &file)?;
    let program = read(&bytes).or_else(|(at, text)| {
        // What the bytes of another format mean here is no help.
        refuse_others("chakra", &file, &bytes)?;
        Err(code::CONTENT.at("file", format!("{file}: byte {at}: rank {rank}: {text}")))
    })?;
    Ok((program, xxhash_rust::xxh3::xxh3_64(&bytes)))
}
