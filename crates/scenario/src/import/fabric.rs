//! Topology files in place of a scenario.

use super::hpcc;
use finding::Finding;
use formats::htsim::topo;

/// The fabric of another tool's topology file as a scenario without a workload, and warnings; `None` for any other text.
pub(crate) fn fabric(file: &str, text: &str) -> Option<Result<(String, Vec<Finding>), Finding>> {
    if topo::is_topology(text) {
        return Some(topo::read(file, text));
    }
    hpcc::is_topology(text).then(|| hpcc::fabric(hpcc::File { name: file, text }))
}
