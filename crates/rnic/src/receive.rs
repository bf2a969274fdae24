//! What lies between a NIC and the memory of its host: PCIe, and the rate at which the host takes data.

use finding::{Finding, code};
use model::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A NIC whose host takes data more slowly than its link brings it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Receive {
    /// Rate at which the host takes data, in payload. No default.
    pub rate: Rate,
    /// Longest queue, in payload. A NIC that pauses has room for what arrives after its pause. Default "256kB" (our choice: no NIC's
    /// figure is public).
    #[serde(default = "buffer")]
    pub buffer: Bytes,
    /// Whether the NIC pauses its links while the queue is longer than `buffer`, until half of `buffer` is free (our choice). With
    /// false it discards data that does not fit. Default: it pauses where all switches have PFC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<bool>,
    /// Hosts with such NICs. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}

const fn buffer() -> Bytes {
    Bytes(256_000)
}

impl Receive {
    /// The queue of a NIC behind PCIe alone.
    #[must_use]
    pub const fn behind(rate: Rate) -> Self {
        Receive { rate, buffer: buffer(), pause: None, hosts: None }
    }

    /// Checks whether the values are possible.
    pub(crate) fn validate(&self) -> Result<(), Finding> {
        let positive = [("receive.rate", self.rate.bps()), ("receive.buffer", self.buffer.get())];
        match positive.into_iter().find(|(_, value)| *value == 0) {
            Some((field, _)) => Err(code::RANGE.at(field, "must be more than 0")),
            None => Ok(()),
        }
    }
}

/// The way over PCIe between a NIC and the memory of its host, in each direction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pcie {
    /// Payload per second of the NIC's slot: "96Gbps" (PCIe 3.0 with 16 lanes), "192Gbps" (4.0) or "384Gbps" (5.0; `PCI_BW` in NCCL's
    /// `topo.h`, twice per generation). No default.
    pub rate: Rate,
    /// Whether the way crosses the CPU instead of a PCIe switch that NIC and GPU share. Then it carries at most 128 Gb/s (16 GB/s,
    /// measured: NVIDIA/nccl#412). Default false (our choice).
    #[serde(default)]
    pub through_cpu: bool,
    /// Whether the NIC reaches the GPU's memory by itself. Without GPUDirect, the way carries at most 120 Gb/s (15 GB/s, measured:
    /// CCI-MOC/roce-testing). Default true (our choice).
    #[serde(default = "yes")]
    pub gdr: bool,
    /// Hosts with this way. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}

const fn yes() -> bool {
    true
}

impl Pcie {
    /// Payload per second in each direction.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let cpu = self.through_cpu.then_some(Rate::from_gbps(128));
        let copies = (!self.gdr).then_some(Rate::from_gbps(120));
        [cpu, copies].into_iter().flatten().fold(self.rate, Rate::min)
    }

    /// Checks whether the values are possible.
    pub(crate) fn validate(&self) -> Result<(), Finding> {
        match self.rate < Rate::from_gbps(1) {
            true => Err(code::RANGE.at("pcie.rate", "must be at least 1Gbps")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_part_of_the_way_decides() {
        let way = |text: &str| toml::from_str::<Pcie>(text).unwrap().rate();
        let gbps = Rate::from_gbps;
        assert_eq!(way("rate = '384Gbps'"), gbps(384));
        assert_eq!(way("rate = '384Gbps'\nthrough-cpu = true"), gbps(128));
        assert_eq!(way("rate = '384Gbps'\ngdr = false"), gbps(120));
        assert_eq!(way("rate = '96Gbps'\ngdr = false"), gbps(96));
    }
}
