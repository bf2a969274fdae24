//! Presets of `[topology.rails]`: published clusters, as the TOML of their settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// A published cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A pod of Alibaba's HPN 7.0: 15 segments of 128 servers, two planes, 200 Gb/s per port (Qian et al., SIGCOMM 2024).
    Hpn,
    /// NVIDIA Spectrum-X as SimAI's template lays it out: 512 servers, 64 per segment, 64 spines.
    SpectrumX,
    /// Alibaba's DCN+ as SimAI's template lays it out: ToRs with all NICs of 8 servers, 8 spines.
    #[serde(rename = "dcn+")]
    DcnPlus,
    /// A pod of Meta's RoCE clusters: 192 racks of two servers under one ToR, full bisection (Llama team 2024).
    MetaPod,
    /// 8 racks of GB200 NVL72, with a rail for each of the 72 GPUs of a rack.
    Nvl72,
}

impl Preset {
    /// The settings of the cluster: keys of `[topology.rails]`, and the table `server`.
    const fn toml(self) -> &'static str {
        match self {
            Preset::Hpn => {
                "server = { preset = 'hgx-h100', ports-per-nic = 2 }\n\
                 servers = 1920\nservers-per-segment = 128\nplanes = 2\nspines = 60\n\
                 rate = '200Gbps'\nuplink-rate = '400Gbps'"
            }
            Preset::SpectrumX => {
                "server = { preset = 'hgx-h100' }\nservers = 512\nservers-per-segment = 64\nspines = 64"
            }
            Preset::DcnPlus => {
                "server = { preset = 'hgx-h100' }\nkind = 'per-server'\nservers = 64\nservers-per-segment = 8\nspines = 8"
            }
            // The number of spines is our choice: as much capacity above a ToR as below it.
            Preset::MetaPod => {
                "server = { preset = 'hgx-h100' }\nkind = 'per-server'\nservers = 384\nservers-per-segment = 2\nspines = 16"
            }
            // The number of spines is our choice: as much capacity above a ToR as below it.
            Preset::Nvl72 => "server = { preset = 'gb200-nvl72' }\nservers = 8\nspines = 8",
        }
    }

    /// The settings as tables: of `[topology.rails]` and of `[server]`.
    fn tables(self) -> (Table, Table) {
        let mut rails: Table = self.toml().parse().unwrap_or_default();
        let server = match rails.remove("server") {
            Some(Value::Table(server)) => server,
            _ => Table::new(),
        };
        (rails, server)
    }
}

/// Adds the settings of the preset that `[topology.rails]` of a scenario names. Keys that the scenario has stay as they are.
pub(crate) fn fill(scenario: &mut Table) {
    let rails = scenario.get_mut("topology").and_then(|topology| topology.get_mut("rails"));
    let Some(rails) = rails.and_then(Value::as_table_mut) else { return };
    let Some(Ok(preset)) = rails.get("preset").cloned().map(Value::try_into::<Preset>) else { return };
    let (own, server) = preset.tables();
    let complete = |table: &mut Table, more: Table| {
        for (key, value) in more {
            table.entry(key).or_insert(value);
        }
    };
    complete(rails, own);
    if let Value::Table(table) = scenario.entry("server").or_insert_with(|| Table::new().into()) {
        complete(table, server);
    }
}
