//! Topologies: `[topology.NAME]`, one file each.
//!
//! To add a topology, write a file with its settings and `impl Layout`, and add its line to the list below.

pub mod presets;

use crate::footprint::{MemoryBudget, Size};
use crate::server::Server;
use finding::Finding;
use model::{Fabric, FabricBuilder, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a topology, which lay out a fabric.
pub(crate) trait Layout {
    /// Checks the settings and returns the size of the fabric, before any memory is allocated for it.
    fn size(&self, ground: &Ground<'_>) -> Result<Size, Finding>;

    /// Builds the fabric.
    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding>;
}

/// Settings outside of a topology on which its fabric depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'s> {
    /// Loss of links without a loss of their own.
    pub(crate) loss: Probability,
    /// The servers of which hosts are ports; `None` if every host is alone.
    pub(crate) server: Option<&'s Server>,
}

impl Ground<'_> {
    /// A builder for a fabric whose hosts are ports of servers, if there are servers.
    pub(crate) fn builder(&self) -> FabricBuilder {
        self.server.map_or_else(FabricBuilder::new, |server| FabricBuilder::of_servers(server.ports()))
    }

    /// Links without loss, and hosts without servers.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Ground { loss: Probability::ZERO, server: None }
    }
}

macro_rules! topologies {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        $(pub mod $file;)+

        /// Hosts, switches and links.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum Topology {
            $($(#[$doc])* #[serde(rename = $name)] $variant($file::$variant),)+
        }

        impl Topology {
            /// The names of all topologies.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name of the topology.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            pub(crate) fn lay(&self, ground: &Ground<'_>, memory: &mut MemoryBudget) -> Result<Fabric, Finding> {
                let size = match self { $(Self::$variant(t) => t.size(ground),)+ };
                let within = |error: Finding| error.within(self.name()).within("topology");
                memory.add_fabric(&size.map_err(within)?, &format!("topology.{}", self.name()))?;
                let fabric = match self { $(Self::$variant(t) => t.lay(ground),)+ };
                fabric.map_err(within)
            }
        }
    };
}

topologies! {
    /// Two datacentres of three tiers each, joined by long links.
    datacentres: Datacentres = "datacentres",
    /// Groups of routers; links join every two groups.
    dragonfly: Dragonfly = "dragonfly",
    /// Two or three tiers of k-port switches, in pods.
    fat_tree: FatTree = "fat-tree",
    /// Two tiers: every leaf has links to every spine.
    leaf_spine: LeafSpine = "leaf-spine",
    /// Any fabric: a list of hosts, switches and links.
    links: Links = "links",
    /// Servers with a NIC per GPU; each rail, or each server, has its own ToR.
    rails: Rails = "rails",
}
