//! GOAL schedules as scenarios: the schedule as a binary file, and a scenario beside it.

use super::{Draft, about_fabric, fabric_of};
use finding::{Finding, code};
use formats::goal::matching::matching;
use formats::goal::{self, binary};
use std::path::Path;

/// Reads a schedule, which a scenario in `folder` will run on the fabric of the scenario `topology`.
///
/// # Errors
/// The first mistake of the schedule, or if there is no such scenario.
pub fn import(file: &Path, topology: Option<&str>, folder: &Path) -> Result<Draft, Finding> {
    let mut warnings = Vec::new();
    let schedule = goal::read(file, &mut warnings)?;
    let shown = file.display().to_string();
    let fabric = fabric_of(topology, schedule.ranks, "--topology", &shown)?;
    let mut graph = Vec::new();
    binary::write(&schedule, &mut graph).map_err(|e| code::CONTENT.plain(e.to_string()))?;
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or("schedule");
    let binary = format!("{name}.bin");
    Ok(Draft {
        workload: format!("workload=[{{ goal = {{ file = {} }} }}]", toml::Value::from(&*binary)),
        about: vec![
            format!("The GOAL schedule {shown}, which {binary} holds in its binary form."),
            about_fabric(topology),
        ],
        scenario: folder.join(format!("{name}.toml")),
        files: vec![(folder.join(binary), graph)],
        fabric,
        ranks: Some(schedule.ranks),
        unmatched: matching(&schedule).unread.len() as u64,
        option: "--topology",
        list: false,
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_form_beside_the_scenario_is_the_schedule() {
        let folder = tempfile::tempdir().unwrap();
        let text = "num_ranks 2\nrank 0 {\nsend 8192b to 1 tag 3\n}\nrank 1 {\nrecv 8192b from 0 tag 3\n}\n";
        let file = folder.path().join("pair.goal");
        std::fs::write(&file, text).unwrap();
        let draft = import(&file, None, folder.path()).unwrap();
        let [(to, bytes)] = draft.files.as_slice() else { panic!("one file beside the scenario") };
        assert_eq!((to.clone(), draft.ranks), (folder.path().join("pair.bin"), Some(2)));
        std::fs::write(to, bytes).unwrap();
        let again = goal::read(to, &mut Vec::new()).unwrap();
        assert_eq!(goal::digest(&again), goal::digest(&goal::read(&file, &mut Vec::new()).unwrap()));
    }
}
