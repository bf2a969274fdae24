//! Servers: the GPUs, NICs and NVLink that share a node.

use finding::{Finding, code};
use model::{Failures, PortChoice, PortSharing, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The servers of the fabric. Every GPU is a rank of collectives. The hosts of a topology become the NIC ports of servers,
/// filled server by server; of `[topology.links]`, each host is a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Machine whose figures are the defaults of all other keys. Default: none, so every other key has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Number of GPUs. Default 8 (DGX H100), or the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<usize>,
    /// Number of NICs: a multiple or a divisor of `gpus`. GPU g uses the NICs at its place in the row. Default: one per GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nics: Option<usize>,
    /// Number of ports of a NIC, each with a link of its own. Default 1 (DGX H100).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports_per_nic: Option<usize>,
    /// What the queue pairs of a dead port do, if a NIC has several ports: `"resend"`: they move to another port of the NIC when
    /// routes change (`routing.detection`), and the transport resends what was lost; `"wait"`: they keep their port and wait for
    /// its repair. Default `"resend"` (bonds of two ports, as in Alibaba's HPN).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bond_failover: Option<BondFailover>,
    /// The ports by which packets leave, if a NIC has several: `"own"`: a queue pair keeps its port; `"spread"`: every
    /// packet takes any port that is free, as the scheme chooses, and arrives at the port of the same number. Spreading
    /// needs planes, and a transport that keeps packets in any order and reports each of them (`uec`, `mrc`). Default
    /// `"own"` (our choice: today's NICs).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_use: Option<PortUse>,
    /// The links between the GPUs of a server: `"off"`, or `{ rate, delay }`. Default: those of the preset, else 3600 Gb/s
    /// (H100).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink: Option<NvlinkConfig>,
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 8 H100 GPUs, NVLink of 450 GB/s (NVIDIA DGX H100 data sheet: 900 GB/s in both directions).
    HgxH100,
    /// 8 H200 GPUs, NVLink as in H100.
    HgxH200,
    /// 8 B200 GPUs, NVLink of 900 GB/s (NVIDIA DGX B200 data sheet: 14.4 TB/s in both directions for 8 GPUs).
    HgxB200,
    /// A rack of 72 B200 GPUs in one NVLink domain of 900 GB/s per GPU (NVIDIA GB200 NVL72 data sheet: 130 TB/s).
    Gb200Nvl72,
}

/// The ports by which packets leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortUse {
    /// A queue pair keeps its port.
    #[default]
    Own,
    /// Every packet takes any port.
    Spread,
}

/// What the queue pairs of a dead port do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondFailover {
    /// They move to another port of their NIC.
    #[default]
    Resend,
    /// They wait for the repair of their port.
    Wait,
}

/// Links between the GPUs of a server, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NvlinkConfig {
    /// `"off"`: GPUs of a server use their NICs.
    Off(Off),
    /// NVLink with these figures.
    On(Nvlink),
}

/// The word `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Off {
    /// `"off"`.
    Off,
}

/// The NVLink domain of a server: every GPU has one port into an ideal crossbar and one port out of it. A piece starts when
/// the GPU's port is free, cuts through, and waits for the receiver's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Nvlink {
    /// Rate of a GPU's port in each direction. Default 3600 Gb/s (DGX H100: 18 links of 25 GB/s).
    pub rate: Rate,
    /// Time from the sender's port to the receiver's. Default 500 ns (our choice).
    pub delay: Time,
}

impl Default for Nvlink {
    fn default() -> Self {
        Nvlink { rate: Rate::from_gbps(3600), delay: Time::from_ns(500) }
    }
}

impl Preset {
    fn gpus(self) -> usize {
        match self {
            Preset::HgxH100 | Preset::HgxH200 | Preset::HgxB200 => 8,
            Preset::Gb200Nvl72 => 72,
        }
    }

    fn nvlink(self) -> Nvlink {
        let gbps = match self {
            Preset::HgxH100 | Preset::HgxH200 => 3600,
            Preset::HgxB200 | Preset::Gb200Nvl72 => 7200,
        };
        Nvlink { rate: Rate::from_gbps(gbps), ..Nvlink::default() }
    }
}

/// A server, with all figures known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Number of GPUs.
    pub gpus: usize,
    /// Number of NICs.
    pub nics: usize,
    /// Number of ports of a NIC.
    pub ports_per_nic: usize,
    /// The ports by which packets leave.
    pub port_use: PortUse,
    /// What the queue pairs of a dead port do.
    pub bond_failover: BondFailover,
    /// Links between GPUs, if there are any.
    pub nvlink: Option<Nvlink>,
}

/// Most GPUs of a server. Our choice: eight racks of 72.
const MOST_GPUS: usize = 576;

impl ServerConfig {
    /// The server of these settings.
    pub(crate) fn server(&self) -> Result<Server, Finding> {
        let gpus = self.gpus.or(self.preset.map(Preset::gpus)).unwrap_or(8);
        let nics = self.nics.unwrap_or(gpus);
        let ports_per_nic = self.ports_per_nic.unwrap_or(1);
        for (key, count, most) in [
            ("gpus", gpus, MOST_GPUS),
            ("nics", nics, MOST_GPUS),
            ("ports-per-nic", ports_per_nic, PortSharing::MOST),
        ] {
            if count == 0 || count > most {
                return Err(code::RANGE.at(key, format!("expected 1 to {most}, found {count}")));
            }
        }
        if !gpus.is_multiple_of(nics) && !nics.is_multiple_of(gpus) {
            let text = format!("expected a multiple or a divisor of the {gpus} GPUs, found {nics}");
            return Err(code::FIT.at("nics", text));
        }
        let nvlink = match self.nvlink {
            None => Some(self.preset.map_or_else(Nvlink::default, Preset::nvlink)),
            Some(NvlinkConfig::Off(_)) => None,
            Some(NvlinkConfig::On(nvlink)) => Some(nvlink),
        };
        if let Some(Nvlink { delay, .. }) = nvlink.filter(|nvlink| nvlink.delay > Time::from_ms(1)) {
            return Err(code::RANGE.at("nvlink.delay", format!("expected at most 1 ms, found {delay}")));
        }
        let bond_failover = self.bond_failover.unwrap_or_default();
        let port_use = self.port_use.unwrap_or_default();
        Ok(Server { gpus, nics, ports_per_nic, port_use, bond_failover, nvlink })
    }
}

impl Server {
    /// Number of NIC ports of a server.
    pub fn ports(&self) -> usize {
        self.nics * self.ports_per_nic
    }

    /// The ports that queue pairs share: always if they spread or if their devices fail over, else if any route ever changes.
    pub(crate) fn sharing(&self, failures: &Failures, fails_over: bool) -> Option<PortSharing> {
        let ports = self.ports_per_nic as u16;
        let choice = match (self.port_use, self.bond_failover) {
            _ if ports == 1 => None,
            (PortUse::Spread, _) => Some(PortChoice::Spread),
            (PortUse::Own, BondFailover::Wait) => fails_over.then_some(PortChoice::Devices(rnic::NCCL)),
            (PortUse::Own, BondFailover::Resend) => {
                (!failures.route_changes().is_empty()).then_some(PortChoice::Failover)
            }
        };
        choice.map(|choice| PortSharing { ports, choice })
    }

    /// The NICs of a GPU, by their numbers in the server.
    pub fn nics_of(&self, gpu: usize) -> std::ops::Range<usize> {
        match self.nics.checked_div(self.gpus) {
            Some(0) | None => {
                let nic = gpu * self.nics / self.gpus.max(1);
                nic..nic + 1
            }
            Some(each) => gpu * each..(gpu + 1) * each,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_shares_a_nic_or_has_several() {
        let with =
            |gpus, nics| ServerConfig { gpus: Some(gpus), nics: Some(nics), ..ServerConfig::default() };
        let shared = with(8, 4).server().unwrap();
        assert_eq!((0..8).map(|g| shared.nics_of(g).start).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(with(4, 8).server().unwrap().nics_of(1), 2..4);
        assert_eq!(
            with(8, 3).server().unwrap_err().text,
            "expected a multiple or a divisor of the 8 GPUs, found 3"
        );
    }

    #[test]
    fn presets_have_the_figures_of_data_sheets() {
        let of = |preset| ServerConfig { preset: Some(preset), ..ServerConfig::default() }.server().unwrap();
        assert_eq!(of(Preset::HgxH100).nvlink.unwrap().rate, Rate::from_gbps(3600));
        let rack = of(Preset::Gb200Nvl72);
        assert_eq!((rack.gpus, rack.ports(), rack.nvlink.unwrap().rate), (72, 72, Rate::from_gbps(7200)));
    }
}
