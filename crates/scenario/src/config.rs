//! The keys of a scenario, one field each.

use crate::failure::{Failure, RoutingConfig};
use crate::loss::LossConfig;
use crate::record::RecordConfig;
use crate::switch::{RoleConfig, SwitchConfig};
use crate::topology::Topology;
use crate::values::Chance;
use crate::workload::Workload;
use model::{Bytes, Time};
use rnic::NicConfig;
use schemars::JsonSchema;
use schemes::SchemeConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A scenario: a fabric, its NICs, a load-balancing scheme and a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Root of every random draw: the same scenario with the same seed gives the same result. Default 1 (our
    /// choice).
    #[serde(default = "one")]
    pub seed: u64,
    /// `"ns3"`: frame sizes and the truncating nanosecond clock of the HPCC family of ns-3 simulators, with
    /// marks echoed on ACKs in place of CNP frames, and nothing else. Default: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Hosts, switches and links: one of the topologies.
    pub topology: Topology,
    /// What holds for every link.
    #[serde(default)]
    pub links: LinksConfig,
    /// What goes on the wire.
    #[serde(default)]
    pub wire: WireConfig,
    /// Every switch.
    #[serde(default)]
    pub switch: SwitchConfig,
    /// What is different for switches of one role, such as `[switch-role.spine]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switch_role: BTreeMap<String, RoleConfig>,
    /// Every host's NIC.
    #[serde(default)]
    pub nic: NicConfig,
    /// Load balancing in every switch: one of the schemes. Default `ecmp` (what switches do out of the box).
    #[serde(default)]
    pub scheme: SchemeConfig,
    /// Traffic classes with a scheme of their own, such as `[class.background.scheme.ecmp]`. Jobs say to which class
    /// they belong; there are always `foreground` and `background`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub class: BTreeMap<String, ClassConfig>,
    /// Jobs; they run side by side.
    #[serde(default)]
    pub workload: Vec<Workload>,
    /// Links and switches that fail at a time, and may come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
    /// When routing takes note of failures.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// When a run ends early.
    #[serde(default)]
    pub stop: StopConfig,
    /// What is recorded besides the results.
    #[serde(default)]
    pub record: RecordConfig,
}

/// A traffic class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClassConfig {
    /// Load balancing of its packets. Default: the scenario's `scheme`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeConfig>,
}

impl Scenario {
    /// The scheme of a traffic class.
    pub fn scheme_of(&self, class: &str) -> &SchemeConfig {
        self.class.get(class).and_then(|class| class.scheme.as_ref()).unwrap_or(&self.scheme)
    }
}

fn one() -> u64 {
    1
}

/// Whose numbers to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// The HPCC family of ns-3 simulators.
    Ns3,
}

/// What holds for every link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinksConfig {
    /// Probability that a link loses a data packet, for links that do not say otherwise. Default 0 (our
    /// choice: clean links).
    pub loss: Chance,
    /// Whether ACKs and NACKs can be lost as well; CNPs and PFC frames never are. Default false (our choice).
    pub lose_replies: bool,
    /// Packets that are lost on purpose, beside those of `loss`: data, ACKs or NACKs by their PSN. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lose: Vec<LossConfig>,
}

/// What goes on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WireConfig {
    /// Largest data frame from the Ethernet header to the FCS, preamble and gap not counted; its payload is
    /// 62 B less (48 B less with `compat = "ns3"`). Default 1500 B (the MTU of the Themis paper); 1048 B with
    /// `compat = "ns3"` (1000 B of payload, the default of the HPCC simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Bytes>,
    /// Most payload in a data frame, in place of `frame`. Default: what `frame` leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Bytes>,
}

/// When a run ends early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StopConfig {
    /// Ends the run at this time, whatever is left. Default: when every flow has finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// Gives up, and says what waits for what, when no data packet has been accepted for this long while flows
    /// wait. Default: ten of the NIC's longest retransmission timeouts, and at least 100 ms (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_progress: Option<Time>,
}
