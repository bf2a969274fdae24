//! Connection matrices of htsim as scenarios: a list of flows if a list says the same, else a scenario that names the file.

use super::relative::from_folder_of;
use super::{Draft, about_fabric, fabric_of};
use crate::{Checked, Source, check};
use finding::Finding;
use formats::{htsim, read_text};
use model::Bytes;
use std::fmt::Write;
use std::path::Path;

/// Most flows that a scenario lists. Our choice: a file that an editor still shows well.
const MOST_LISTED: usize = 10_000;

/// Reads a matrix, which the scenario `output` will run on the fabric of the topology file or scenario `topology`.
///
/// # Errors
/// The first mistake of the matrix, or if there is no such topology.
pub fn import(matrix: &Path, topology: Option<&str>, output: &Path) -> Result<Draft, Finding> {
    let name = matrix.display().to_string();
    let text = read_text("htsim", matrix, &name)?;
    let read = htsim::read(&name, &text)?;
    let path = from_folder_of(output, matrix).display().to_string();
    let fabric = fabric_of(topology, read.nodes, "--topo", &name).map_err(|error| match topology {
        Some(_) => error,
        None => Finding { help: error.help, ..htsim::at_nodes(&name, &text, &error.text) },
    })?;
    Ok(Draft {
        files: Vec::new(),
        scenario: output.to_owned(),
        fabric,
        workload: format!("workload=[{{ htsim = {{ file = {} }} }}]", toml::Value::from(path)),
        about: vec![format!("The connection matrix {name} of htsim."), about_fabric(topology)],
        ranks: Some(read.nodes),
        unmatched: 0,
        option: "--topo",
        list: true,
        warnings: Vec::new(),
    })
}

/// The scenario with a list of flows in place of the matrix; `None` if a list cannot say the same: if flows start others, if
/// messages share queue pairs, if flows do not stand in the order of their starts, or if there are very many.
pub(super) fn listed(fabric: &Source, checked: &Checked) -> Result<Option<Checked>, Finding> {
    let plan = &checked.plan;
    let flows = &plan.messages;
    if flows.len() > MOST_LISTED || flows.iter().any(|m| m.needs > 0) || plan.qps.len() != flows.len() {
        return Ok(None);
    }
    let mut list = String::new();
    for flow in flows {
        let qp = &plan.qps[flow.qp.index()];
        let name = |host| toml::Value::from(&*plan.fabric.host_name(host));
        let (from, to) = (name(qp.from), name(qp.to));
        let (bytes, start) = (Bytes(flow.bytes), flow.start);
        let _ = write!(list, "{{ from = {from}, to = {to}, bytes = \"{bytes}\", start = \"{start}\" }}, ");
    }
    let workload = format!("workload=[{{ qp = \"per-message\", flows = {{ list = [{list}] }} }}]");
    let mut other = check(fabric, &[workload])?;
    other.findings.clone_from(&checked.findings);
    let same = other.plan.messages == plan.messages && other.plan.qps == plan.qps;
    Ok(same.then_some(other))
}
