//! Settings of `[scheme.ars]`.

use super::profile::Profile;
use model::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ars]`. A setting that is absent has the value of the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeArs")]
pub struct Config {
    /// Vendor whose values the other settings have by default. The page of this scheme has the values and their sources. Default
    /// `"sonic"` (our choice: SAI documents most defaults).
    pub profile: Profile,
    /// Rule by which data gets its port. Default: `"flowlet-quality"`; `"packet-quality"` for `"spectrum"`, `"in-turn"` for
    /// `"arista-clb"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Pause after which an entry of the table may move. Default 256 us (SAI; Junos; OcNOS), 600 us for `"nx-os"`, 16 us for
    /// `"fboss"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Time>,
    /// Entries of each group's table, 1 to 2^20. Flows of one entry share its port. Default 512 (SAI); 256 for `"junos"`, 1024 for
    /// `"ocnos"`, 2048 for `"fboss"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// Entries of all tables of a switch. Groups beyond them follow `backup`. Default 32768 (Junos: groups = 32,768 / table).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Rule for groups beyond `entries`. Default `"fixed"` (FBOSS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Time between two samples; with 0, every packet samples the ports that it may take. Default 16 us (SAI); 32 us for
    /// `"nx-os"`, 1 us for `"fboss"` and `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Exponent e of the averages, 0 to 15: a sample counts 1 / 2^e. Default 2 (SAI); 0 for `"fboss"` and `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<u8>,
    /// Whether a sample below the average replaces it. Default false (SAI, PORT_LOAD_CURRENT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// Weight of the bytes sent. Default 16 (SAI; Junos weighs both alike); 0 for `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_weight: Option<u8>,
    /// Weight of the bytes that wait. Default 16 (SAI); 0 for `"nx-os"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future_weight: Option<u8>,
    /// Rates between which the bytes sent are graded, for a port at `scale`. Default 1 to 10 Gb/s (FBOSS; assumed for the
    /// others, which do not publish it); 0 to 10 Gb/s for `"nx-os"`, whose levels are shares of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_limits: Option<[Rate; 2]>,
    /// Queue lengths between which the bytes that wait are graded. Default 1 to 10 kB (FBOSS; assumed for the others); for
    /// `"spectrum"` 0 to the share of the buffer that `alpha` gives to a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future_limits: Option<[Bytes; 2]>,
    /// Rate of the port for which `past-limits` holds; they grow with the rate of a port. Default "10Gbps" (SONiC: speed / 10 Gb/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Rate>,
    /// Widths of the bands from the best one on, in proportion, 2 to 8. Default: eight equal bands (our choice: SAI leaves them to
    /// the hardware); 15, 20, 30, 15, 10, 5, 5 for `"nx-os"`; 1, 1, 2, 4 for `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<Vec<u16>>,
    /// Share of its link above which a port counts as congested: it gets the worst band. Default: none (Cumulus Linux since 5.6,
    /// for `"spectrum"`; it was 0.7 before).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congested_above: Option<f64>,
    /// Bands by which the best port must be better for an entry to move without a pause, which can reorder packets; 0 is off, up
    /// to 7. Default 0 (Junos, reactive path rebalancing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality_delta: Option<u8>,
    /// Chance of a packet to move its entry by `quality-delta`. Default 1 (our choice; Junos does not publish its default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Whether packets may take detours of a Dragonfly. Default: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternates: Option<Alternates>,
    /// Whether spines tell leaves the bands of their downlinks (Broadcom's and Juniper's global load balancing): a path's band is
    /// then the worse of both. Default false (Apstra 6.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<bool>,
}

/// Rule by which data gets its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ArsMode")]
pub enum Mode {
    /// After a pause, an entry keeps its port if that is still among the best, and else draws one of the best.
    FlowletQuality,
    /// Each packet draws one of the best ports.
    PacketQuality,
    /// After a pause, an entry draws any port.
    FlowletRandom,
    /// Each packet draws any port.
    PacketRandom,
    /// An entry keeps the first port that it draws among the best.
    Fixed,
    /// Entries get the ports of their group in turn, and keep them until they age: Arista's cluster load balancing.
    InTurn,
}

/// Rule for groups without a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ArsBackup")]
pub enum Backup {
    /// ECMP.
    #[default]
    Fixed,
    /// Each packet draws any port.
    PacketRandom,
}

/// Rule for alternate paths, which are longer: with the best band Bp of the shortest paths and Ba of the others, data takes an
/// alternate path if Bp < threshold and Bp + cost <= Ba + bias. SAI 6.4.5 contradicts itself; this reading is our choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ArsAlternates")]
pub struct Alternates {
    /// Band from which on the shortest paths are good enough. Default 7 (FBOSS).
    pub threshold: u8,
    /// Bands that an alternate path costs. Default 0 (FBOSS).
    pub cost: u8,
    /// Bands that an alternate path is given. Default 7 (FBOSS).
    pub bias: u8,
}

impl Default for Alternates {
    fn default() -> Self {
        Alternates { threshold: 7, cost: 0, bias: 7 }
    }
}
