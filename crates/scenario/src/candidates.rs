//! What NCCL compares for a collective on a described cluster, with the times of its closed forms: no fabric, and no run.

use crate::Checked;
use crate::nccl::{Nccl, NcclConfig};
use crate::server::{Nvlink, Server};
use crate::workload::cost::{CostConfig, CostTable, Path, Profile, closed_form};
use collective::{Algorithm, Call, Cpu, Gpu, Kind, Machine, Protocol};
use finding::Finding;
use model::{Bytes, Rate, Time, Wire};
use std::collections::BTreeMap;

/// A cluster of equal servers, as far as NCCL's choice and the closed forms depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Number of servers.
    pub servers: u32,
    /// Number of ranks in each server.
    pub ranks: u32,
    /// Number of NICs that the ranks of a server use.
    pub nics: u32,
    /// Rate of a NIC.
    pub nic: Rate,
    /// Rate of payload of a GPU's NVLink port in each direction; `None` without NVLink.
    pub nvlink: Option<Rate>,
    /// Generation of the GPUs.
    pub gpu: Gpu,
    /// Vendor of the CPUs.
    pub cpu: Cpu,
    /// Version of NCCL, such as `2.27`; `None` for the default.
    pub version: Option<String>,
    /// Whether NCCL may take NVLink SHARP; `None` for the default.
    pub nvls: Option<bool>,
    /// Variables `NCCL_*`. Those that restrict neither algorithms nor protocols nor channels are left out.
    pub env: BTreeMap<String, String>,
    /// Number of channels, if a log tells it.
    pub channels: Option<u32>,
}

/// An algorithm and a protocol that NCCL compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The protocol.
    pub protocol: Protocol,
    /// Number of channels.
    pub channels: u32,
    /// The time that NCCL estimates, us; 0 where it has no choice.
    pub nccl_us: f64,
    /// The time on an idle fabric with the measured costs of H100, us; `None` without a closed form.
    pub closed_form_us: Option<f64>,
}

/// Variables that the choice depends on.
const VARIABLES: [&str; 8] = [
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NVLS_ENABLE",
    "NCCL_PAT_ENABLE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MAX_CTAS",
];

/// Delay of a link of the path for which the closed forms are computed. Our choice: that of a topology by default.
const DELAY: Time = Time::from_us(1);

/// Payload of a frame on that path: the largest MTU of RoCE, as on the clusters to which the costs were fitted.
const PAYLOAD: u32 = 4096;

impl Cluster {
    /// The cluster of a scenario: its servers, or its hosts as servers of one GPU.
    pub fn of(checked: &Checked) -> Self {
        let fabric = &checked.plan.fabric;
        let config = checked.scenario.server.unwrap_or_default();
        let server: Option<Server> = checked.scenario.server.and_then(|_| config.server().ok());
        let ports = server.as_ref().map_or(1, Server::ports).max(1);
        let hosts = fabric.hosts();
        let nic = if hosts > 0 { fabric.uplink(model::HostId(0)).rate } else { Rate(0) };
        let nccl = checked.scenario.nccl.clone().unwrap_or_default();
        Cluster {
            servers: (hosts / ports) as u32,
            ranks: server.as_ref().map_or(1, |server| server.gpus) as u32,
            nics: ports as u32,
            nic,
            nvlink: server.as_ref().and_then(|server| server.nvlink).map(|nvlink: Nvlink| nvlink.rate),
            gpu: server.as_ref().map_or_else(Gpu::default, |server| server.gpu),
            cpu: config.cpu,
            version: nccl.version,
            nvls: nccl.nvls,
            env: nccl.env,
            channels: None,
        }
    }

    /// What NCCL compares for a collective of so many bytes, as nccl-tests count them: its own choice first.
    ///
    /// # Errors
    /// A version or a variable that NCCL's model does not know.
    pub fn candidates(&self, kind: Kind, bytes: u64) -> Result<Vec<Candidate>, Finding> {
        let env = self.env.iter().filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        let config = NcclConfig {
            version: self.version.clone(),
            nvls: self.nvls,
            env: env.map(|(name, value)| (name.clone(), value.clone())).collect(),
        };
        let nccl = Nccl::of(Some(&config))?;
        let machine = Machine {
            nics: self.nics.max(1),
            nic: self.nic.bps(),
            nvlink: self.nvlink.map_or(0, |rate| rate.bps()),
            gpu: self.gpu,
            cpu: self.cpu,
            ..Machine::default()
        };
        let call = Call {
            kind,
            bytes: bytes.max(1),
            servers: vec![self.ranks.max(1); self.servers.max(1) as usize],
            channels: 1,
            chunk: u64::MAX,
            slices: true,
            window: 0,
            grain: 1,
            nvlink: self.nvlink.is_some(),
            protocol: Protocol::Simple,
            machine: nccl.restrict(kind, machine),
        };
        let usual = if kind == Kind::AllToAll { 1 } else { collective::channels(&call) };
        let channels = self.channels.unwrap_or_else(|| nccl.channels(usual)).max(1);
        let call = Call { channels, ..call };
        let found = collective::compared(&call);
        Ok(found
            .into_iter()
            .map(|(algorithm, protocol, us)| self.one(&call, algorithm, protocol, us))
            .collect())
    }

    /// A candidate with its closed form.
    fn one(&self, call: &Call, algorithm: Algorithm, protocol: Protocol, nccl_us: f64) -> Candidate {
        let algorithms = collective::CANDIDATES.map(|candidate| candidate == algorithm);
        let protocols = [Protocol::Ll, Protocol::Ll128, Protocol::Simple].map(|of| of == protocol);
        // A collective without a choice takes its usual algorithm.
        let restricted = match nccl_us > 0.0 {
            true => Machine { algorithms, protocols, ..call.machine },
            false => call.machine,
        };
        let call = Call { machine: restricted, ..call.clone() };
        let none = Candidate { algorithm, protocol, channels: call.channels, nccl_us, closed_form_us: None };
        let Ok((algorithm, call)) = Algorithm::Nccl.resolve(&call) else { return none };
        let costs = h100().costs(algorithm, &call);
        let path = Path::over(&Wire::roce(PAYLOAD + Wire::roce(PAYLOAD).header), self.nic, DELAY);
        let time = costs.and_then(|costs| closed_form(algorithm, &call, &costs, path));
        Candidate {
            channels: algorithm.made(&call).channels,
            closed_form_us: time.filter(|_| self.nic.bps() > 0).map(|time| time.as_us()),
            ..none
        }
    }
}

/// The costs that were measured.
fn h100() -> CostTable {
    CostConfig::Named(Profile::H100).costs().ok().flatten().unwrap_or_default()
}

/// Most bytes under way on a channel's connection over the network with the protocol Simple: NCCL's buffer.
pub fn in_flight() -> Bytes {
    h100().simple.and_then(|simple| simple.in_flight).unwrap_or(Bytes(4 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(servers: u32) -> Cluster {
        Cluster {
            servers,
            ranks: 8,
            nics: 8,
            nic: Rate(400_000_000_000),
            nvlink: Some(Rate(2_966_400_000_000)),
            gpu: Gpu::Hopper,
            cpu: Cpu::Intel,
            version: None,
            nvls: Some(false),
            env: BTreeMap::new(),
            channels: None,
        }
    }

    /// The scenario of the measured clusters gives the same cluster, choice and time.
    #[test]
    fn a_described_cluster_equals_that_of_a_scenario() {
        for (kind, bytes) in
            [(Kind::AllReduce, 256 << 20), (Kind::AllGather, 4 << 20), (Kind::AllToAll, 64 << 20)]
        {
            let set = [
                "server.cost.call=0us".to_owned(),
                format!("workload.0.collective.kind={}", kind.name()),
                format!("workload.0.collective.bytes={bytes}B"),
            ];
            let checked = crate::load("cluster-h100", &set).unwrap();
            let described = Cluster::of(&checked);
            assert_eq!(described, cluster(8));
            let operation = &checked.plan.operations[0];
            let first = described.candidates(kind, bytes).unwrap()[0];
            assert_eq!((first.algorithm.name(), first.channels), (operation.algorithm, operation.channels));
            assert_eq!(first.closed_form_us, operation.closed_form.map(|time| time.as_us()));
        }
    }

    #[test]
    fn variables_restrict_the_candidates() {
        let env = [("NCCL_ALGO", "Tree"), ("NCCL_PROTO", "LL128"), ("NCCL_IB_HCA", "mlx5_0")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found = Cluster { env, ..cluster(4) }.candidates(Kind::AllReduce, 1 << 28).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].algorithm, found[0].protocol), (Algorithm::Tree, Protocol::Ll128));
    }
}
