//! Nodes of a fabric by name.

use finding::{Finding, code, nearest};
use model::{Fabric, NodeId};

/// The node with this name; the error is at `path`.
pub(crate) fn node(fabric: &Fabric, name: &str, path: &str) -> Result<NodeId, Finding> {
    fabric.find(name).ok_or_else(|| {
        let near = nearest(name, (0..fabric.nodes() as u32).map(|node| fabric.name(NodeId(node))));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        code::NO_NODE.at(path, format!("there is no node `{name}`{hint}"))
    })
}
