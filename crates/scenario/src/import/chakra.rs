//! Chakra execution traces as scenarios: the trace without what has no effect, and a scenario beside it.
//!
//! A GOAL schedule, the compact form of other imports, has no collectives. So the compact form of a trace is a trace: it has
//! the nodes and the attributes that decide a run, compressed. The scenario then chooses the algorithms of collectives.

use super::{Draft, about_fabric, fabric_of};
use finding::{Finding, code};
use formats::chakra::{self, Program, Work};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings<'a> {
    /// The JSON file of groups.
    pub groups: Option<&'a Path>,
    /// True if all GPUs run the trace of one rank.
    pub spmd: bool,
    /// The scenario with the fabric.
    pub topology: Option<&'a str>,
}

/// Reads a trace, which a scenario in `folder` will run. `files` are those of all ranks, or one name for all of them.
///
/// # Errors
/// The first mistake of the trace, or if there is no such scenario.
pub fn import(files: &[PathBuf], settings: Settings<'_>, folder: &Path) -> Result<Draft, Finding> {
    let Settings { groups, spmd, topology } = settings;
    let files = match files {
        [path] if spmd && path.is_file() => vec![(chakra::rank_of(path), path.clone())],
        _ => chakra::files_of(files)?,
    };
    let first = files.first().map_or((0, Path::new("")), |(rank, path)| (*rank, path));
    let shown = first.1.display().to_string();
    if spmd && files.len() > 1 {
        return Err(
            code::OPTION.plain(format!("--spmd takes the file of one rank; there are {}", files.len()))
        );
    }
    if spmd && topology.is_none() {
        return Err(code::OPTION
            .plain("--spmd runs the trace on all GPUs of a fabric, and the trace does not tell their number")
            .with_help("--topology names the scenario of the fabric"));
    }
    let ranks = (!spmd).then_some(files.len() as u32);
    let fabric = fabric_of(topology, files.len() as u32, "--topology", &shown)?;
    let programs = files
        .iter()
        .map(|(rank, path)| chakra::read_file(path, *rank).map(|(program, _)| program))
        .collect::<Result<Vec<_>, _>>()?;
    let name = chakra::stem(first.1).replace(['{', '}'], "_");
    let place = |rank: &str| format!("{name}.{rank}.et.gz");
    let mut written = Vec::with_capacity(files.len() + 1);
    for ((rank, _), program) in files.iter().zip(&programs) {
        let content = chakra::compressed(program).map_err(|e| code::FILE.plain(e.to_string()))?;
        written.push((folder.join(place(&rank.to_string())), content));
    }
    let file = if spmd { place(&first.0.to_string()) } else { place("{rank}") };
    let mut keys = vec![format!("file = {}", toml::Value::from(&*file))];
    if spmd {
        keys.push("replicate = \"spmd\"".to_owned());
    }
    if let Some(groups) = groups {
        let (groups, _) = chakra::groups_file(groups)?;
        let file = format!("{name}.groups.json");
        keys.push(format!("groups = {}", toml::Value::from(&*file)));
        let content = serde_json::to_vec(&groups).map_err(|e| code::FILE.plain(e.to_string()))?;
        written.push((folder.join(file), content));
    }
    Ok(Draft {
        workload: format!("workload=[{{ chakra = {{ {} }} }}]", keys.join(", ")),
        about: vec![
            format!("The Chakra trace of {shown}. {file} holds what decides a run."),
            about_fabric(topology),
        ],
        scenario: folder.join(format!("{name}.toml")),
        files: written,
        fabric,
        ranks,
        unmatched: unmatched(first.0, &programs),
        option: "--topology",
        list: false,
        warnings: chakra::warnings(&shown, first.0, &programs),
    })
}

/// Number of messages that no rank receives.
fn unmatched(first: u32, programs: &[Program]) -> u64 {
    let mut left: BTreeMap<(u32, u32, u32), i64> = BTreeMap::new();
    for (rank, program) in (first..).zip(programs) {
        for node in &program.nodes {
            match node.work {
                Work::Send(peer) => *left.entry((rank, peer.rank, peer.tag)).or_default() += 1,
                Work::Receive(peer) => *left.entry((peer.rank, rank, peer.tag)).or_default() -= 1,
                _ => {}
            }
        }
    }
    left.into_values().filter_map(|count| u64::try_from(count).ok()).sum()
}
