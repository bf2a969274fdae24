//! Scenarios from files of other tools.

pub(crate) mod foreign;
pub mod goal;
pub mod hpcc;

use crate::Error;
use crate::formats::{goal::alone, htsim::topo};

/// The fabric of another tool's topology file as a scenario without a workload, and warnings; `None` for any other text.
pub(crate) fn fabric(file: &str, text: &str) -> Option<Result<(String, Vec<String>), Error>> {
    if topo::is_topology(text) {
        return Some(topo::read(file, text).map_err(alone));
    }
    let file = hpcc::File { name: file, text };
    hpcc::is_topology(text).then(|| hpcc::fabric(file).map(|imported| (imported.toml, imported.warnings)))
}
