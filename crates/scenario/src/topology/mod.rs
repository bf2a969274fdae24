//! Topologies: `[topology.NAME]`, one file each.
//!
//! To add a topology, write a file with its settings and `impl Layout`, and add its line to the list below.

use crate::error::KeyError;
use crate::footprint::{MemoryBudget, Size};
use model::{Fabric, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a topology, which lay out a fabric.
pub(crate) trait Layout {
    /// Checks the settings and returns the size of the fabric, before any memory is allocated for it.
    fn size(&self) -> Result<Size, KeyError>;

    /// Builds the fabric; links without a loss of their own lose packets with probability `loss`.
    fn lay(&self, loss: Probability) -> Result<Fabric, KeyError>;
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

            pub(crate) fn lay(&self, loss: Probability, memory: &mut MemoryBudget) -> Result<Fabric, KeyError> {
                let size = match self { $(Self::$variant(t) => t.size(),)+ };
                let within = |error: KeyError| error.within(self.name()).within("topology");
                memory.add_fabric(&size.map_err(within)?, &format!("topology.{}", self.name()))?;
                let fabric = match self { $(Self::$variant(t) => t.lay(loss),)+ };
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
}
