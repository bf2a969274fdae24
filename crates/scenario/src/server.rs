//! Servers: the GPUs, NICs and NVLink that share a node.

use crate::workload::cost::{CostConfig, Profile};
use collective::{Cpu, Gpu};
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
    /// The links between the GPUs of a server: `"off"`, or `{ rate, delay, nvls }`. Default: those of the preset, else those of
    /// H100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink: Option<NvlinkConfig>,
    /// Vendor of the CPUs, which NCCL's choice of an algorithm depends on: `"intel"` or `"amd"`. Default `"intel"` (our choice).
    pub cpu: Cpu,
    /// What a step of a collective costs its GPUs: `"h100"`, a table, or `"none"` for the ideal fabric. Default: the preset's, else
    /// `"none"` (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostConfig>,
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 8 A100 GPUs, NVLink of 240 GB/s of payload in each direction (12 links of 20 GB/s, NCCL `topo.h`).
    HgxA100,
    /// 8 H100 GPUs, NVLink of 370.8 GB/s of payload in each direction (18 links of 20.6 GB/s, NCCL `topo.h`; NVIDIA's data sheet has 450
    /// GB/s before overheads), and NCCL's costs as measured (`cost = "h100"`).
    HgxH100,
    /// 8 H200 GPUs, NVLink and costs as with H100.
    HgxH200,
    /// 8 B200 GPUs, NVLink of 721.8 GB/s of payload in each direction (18 links of 40.1 GB/s, NCCL `topo.h`; NVIDIA's data sheet has 900
    /// GB/s before overheads).
    HgxB200,
    /// A rack of 72 B200 GPUs in one NVLink domain, each as in `hgx-b200` (NVIDIA GB200 NVL72 data sheet).
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
    /// Rate of payload of a GPU's port in each direction. Default 2966.4 Gb/s (H100: 18 links of 20.6 GB/s of payload, NCCL
    /// `topo.h`; the line rate is 25 GB/s).
    pub rate: Rate,
    /// Time from the sender's port to the receiver's. Default 500 ns (our choice).
    pub delay: Time,
    /// Rate of a GPU's port while the NVSwitch reduces or copies. Default: 85 % of `rate`, or the preset's (NCCL `tuning.cc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvls: Option<Rate>,
}

impl Nvlink {
    /// Rate of a port while the NVSwitch reduces or copies.
    pub(crate) fn in_switch(&self) -> Rate {
        self.nvls.unwrap_or(Rate(self.rate.0 / 100 * 85))
    }
}

impl Default for Nvlink {
    fn default() -> Self {
        Nvlink { rate: Rate(2_966_400_000_000), delay: Time::from_ns(500), nvls: None }
    }
}

impl Preset {
    fn gpus(self) -> usize {
        match self {
            Preset::HgxA100 | Preset::HgxH100 | Preset::HgxH200 | Preset::HgxB200 => 8,
            Preset::Gb200Nvl72 => 72,
        }
    }

    fn nvlink(self) -> Nvlink {
        // Payload of a link, GB/s: `topo.h` of NCCL. Share that NVLS attains, %: `tuning.cc`.
        let (links, rate, nvls) = match self {
            Preset::HgxA100 => (12, 20_000_000_000, None),
            Preset::HgxH100 | Preset::HgxH200 => (18, 20_600_000_000, None),
            Preset::HgxB200 | Preset::Gb200Nvl72 => (18, 40_100_000_000, Some(74)),
        };
        let rate = Rate(links * rate * 8);
        Nvlink { rate, nvls: nvls.map(|percent| Rate(rate.0 / 100 * percent)), ..Nvlink::default() }
    }

    /// The generation of its GPUs.
    fn gpu(self) -> Gpu {
        match self {
            Preset::HgxA100 => Gpu::Ampere,
            Preset::HgxH100 | Preset::HgxH200 => Gpu::Hopper,
            Preset::HgxB200 | Preset::Gb200Nvl72 => Gpu::Blackwell,
        }
    }

    /// The costs of its collectives, where they were measured.
    fn cost(self) -> Profile {
        match self {
            Preset::HgxH100 | Preset::HgxH200 => Profile::H100,
            Preset::HgxA100 | Preset::HgxB200 | Preset::Gb200Nvl72 => Profile::None,
        }
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
    /// Generation of the GPUs.
    pub gpu: Gpu,
    /// Vendor of the CPUs.
    pub cpu: Cpu,
    /// What a step of a collective costs.
    pub cost: CostConfig,
}

/// Most GPUs of a server. Our choice: eight racks of 72.
const MOST_GPUS: usize = 576;

impl ServerConfig {
    /// The server of these settings.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn server(&self) -> Result<Server, Finding> {
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
        let gpu = self.preset.map_or_else(Gpu::default, Preset::gpu);
        let cost =
            self.cost.unwrap_or_else(|| CostConfig::Named(self.preset.map_or(Profile::None, Preset::cost)));
        cost.costs().map_err(|error| error.within("cost"))?;
        Ok(Server { gpus, nics, ports_per_nic, port_use, bond_failover, nvlink, gpu, cpu: self.cpu, cost })
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
        assert_eq!(of(Preset::HgxH100).nvlink.unwrap(), Nvlink::default());
        assert_eq!(of(Preset::HgxH100).nvlink.unwrap().rate, Rate(18 * 20_600_000_000 * 8));
        let rack = of(Preset::Gb200Nvl72);
        assert_eq!(
            (rack.gpus, rack.ports(), rack.nvlink.unwrap().rate),
            (72, 72, Rate(18 * 40_100_000_000 * 8))
        );
    }
}
