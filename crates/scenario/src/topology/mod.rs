//! Topologies: `[topology.NAME]`, one file each.
//!
//! To add one: a file with its settings and `impl Layout`, and its line in the list below.

use crate::error::Fault;
use crate::footprint::{Room, Size};
use model::{Fabric, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lays out a fabric.
pub(crate) trait Layout {
    /// Refuses counts that cannot be, and says how large the fabric is, before anything is made.
    fn size(&self) -> Result<Size, Fault>;

    /// The fabric; links that do not say otherwise lose packets with probability `loss`.
    fn lay(&self, loss: Probability) -> Result<Fabric, Fault>;
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

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            pub(crate) fn lay(&self, loss: Probability, room: &mut Room) -> Result<Fabric, Fault> {
                let size = match self { $(Self::$variant(t) => t.size(),)+ };
                let within = |fault: Fault| fault.within(self.name()).within("topology");
                room.for_fabric(&size.map_err(within)?, &format!("topology.{}", self.name()))?;
                let fabric = match self { $(Self::$variant(t) => t.lay(loss),)+ };
                fabric.map_err(within)
            }
        }
    };
}

topologies! {
    /// Two datacentres of three tiers, and the long links between them.
    datacentres: Datacentres = "datacentres",
    /// Groups of routers, every two of them joined.
    dragonfly: Dragonfly = "dragonfly",
    /// Two or three tiers of k-port switches, in pods.
    fat_tree: FatTree = "fat-tree",
    /// Two tiers: every leaf is joined to every spine.
    leaf_spine: LeafSpine = "leaf-spine",
    /// Any fabric: its hosts, switches and links one by one.
    links: Links = "links",
}
