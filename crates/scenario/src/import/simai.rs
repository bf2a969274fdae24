//! Workloads of SimAI and AICB as scenarios. The scenario names the file: a graph of tasks would have an entry per layer, phase and group.

use super::relative::from_folder_of;
use super::{Draft, about_fabric, fabric_of};
use finding::{Finding, code};
use formats::{read_text, simai};
use std::path::Path;

/// Reads a workload, which the scenario `output` will run on the fabric of the scenario or topology file `topology`.
///
/// # Errors
/// The first mistake of the workload, or if there is no such topology.
pub fn import(file: &Path, topology: Option<&str>, output: &Path) -> Result<Draft, Finding> {
    let name = file.display().to_string();
    let text = read_text("simai", file, &name)?;
    let step = simai::read(&name, &text)?;
    let gpus = step.header.gpus.map(|gpus| u32::try_from(gpus).unwrap_or(u32::MAX));
    let ranks = match (gpus, topology) {
        (None, None) => {
            return Err(code::CONTENT
                .plain(format!("{name} does not tell the number of GPUs, as it has no `all_gpus`"))
                .with_help("--topology names a fabric, all of whose GPUs take part"));
        }
        (gpus, _) => gpus,
    };
    let path = from_folder_of(output, file).display().to_string();
    Ok(Draft {
        files: Vec::new(),
        scenario: output.to_owned(),
        fabric: fabric_of(topology, ranks.unwrap_or(0), "--topology", &name)?,
        workload: format!("workload=[{{ simai = {{ file = {} }} }}]", toml::Value::from(path)),
        about: vec![
            format!("The workload {name} of SimAI. The scenario reads this file when it runs."),
            about_fabric(topology),
        ],
        ranks,
        unmatched: 0,
        option: "--topology",
        list: false,
        warnings: Vec::new(),
    })
}
