//! Collectives of GPUs, as NCCL does them.

use super::Generate;
use super::draft::{Draft, some_bytes};
use super::outline::Event;
use super::planned::Schedules;
use super::rank_groups::RankGroups;
use crate::workload::communicator::{Communicator, MOST_CHANNELS, Nic, Ports, costs_of};
use crate::workload::cost::CostConfig;
use collective::{Algorithm, Call, Kind, Machine, Protocol};
use finding::{Finding, code};
use model::plan::Operation;
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A collective of groups of GPUs. Bytes between GPUs of a server go over NVLink, all others over NICs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Collective {
    /// The collective: `"all-reduce"`, `"all-gather"`, `"reduce-scatter"`, `"broadcast"`, `"reduce"` or `"all-to-all"`. No
    /// default.
    pub kind: Kind,
    /// Size as nccl-tests count it: the buffer of a rank for all-reduce, broadcast, reduce and all-to-all; all gathered or
    /// scattered bytes for the other two. No default.
    pub bytes: Bytes,
    /// Algorithm. `"nccl"` takes the one with the least time by NCCL's cost model. Default `"ring"` for all-reduce,
    /// all-gather and reduce-scatter, `"chain"` for broadcast and reduce, `"direct"` for all-to-all (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Groups of ranks: `"all"`, `"server"`, `"rail"` (ranks with the same number in their servers), `"contiguous"` (needs
    /// `group-size`), or a list of lists of ranks. Default `"all"` (our choice).
    #[serde(default)]
    pub groups: RankGroups,
    /// Number of ranks of a contiguous group. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<usize>,
    /// Channels, messages, NICs and ports.
    #[serde(default)]
    pub tuning: Tuning,
    /// Number of times that the collective is done; a rank enters the next one when it has left the one before. Default 1
    /// (our choice).
    #[serde(default = "once")]
    pub repeat: u32,
}

/// How collectives move their bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Tuning {
    /// Number of channels: parts of the buffer that have connections of their own, and in a ring an order of GPUs of their own.
    /// Default: the number of GPUs that the group has in a server (NCCL finds one channel per NIC; it may double them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Longest message. A rank passes a message on when it has arrived, so short messages make a pipeline. Default: not set;
    /// with `algorithm = "nccl"`, the slice of NCCL's protocol (1 MiB for Simple).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Bytes>,
    /// Number of peers to which a rank of a direct exchange sends at the same time. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Parts of a buffer are multiples of this size, and the last one is shorter. NCCL's is 16 B. Default 1 B, so that parts
    /// differ by at most a byte (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grain: Option<Bytes>,
    /// Encoding on the wire: `"simple"`, `"ll"` (twice the payload) or `"ll128"` (16/15 of the payload). Default
    /// `"simple"` (our choice: NCCL's protocol for large messages).
    pub protocol: Protocol,
    /// NIC by which a GPU sends to another server. `"own"`: its own; `"channel"`: the NIC of GPU c of the group in its server,
    /// for channel c, and the same NIC receives; `"pxn"`: the NIC of the GPU with the receiver's number, to which the bytes
    /// go over NVLink. Default `"pxn"` for all-to-all, else `"channel"` (NCCL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicChoice>,
    /// What a step costs a GPU and its host: `"h100"`, a table, or `"none"` for the ideal fabric. Default: `server.cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostConfig>,
    /// Port of a NIC with several ports. `"hash"`: by a hash of the connection; `"round-robin"`: port c for channel c;
    /// `"stripe"`: every message in parts, one per port. Default `"hash"` (a bond of two ports).
    pub ports: PortChoice,
}

/// Choice of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicChoice {
    /// The GPU's own NIC.
    Own,
    /// The channel's NIC.
    Channel,
    /// The NIC on the receiver's rail.
    Pxn,
}

/// Choice of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortChoice {
    /// By a hash of the connection.
    #[default]
    Hash,
    /// By the channel's number.
    RoundRobin,
    /// All ports.
    Stripe,
}

fn once() -> u32 {
    1
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            channels: None,
            message: None,
            window: None,
            grain: None,
            protocol: Protocol::Simple,
            nic: None,
            cost: None,
            ports: PortChoice::Hash,
        }
    }
}

impl Tuning {
    /// The communicator of a group.
    pub(crate) fn communicator(&self, kind: Kind, ranks: Vec<u32>, group: usize, lane: u32) -> Communicator {
        let usual = if kind == Kind::AllToAll { NicChoice::Pxn } else { NicChoice::Channel };
        let nic = match self.nic.unwrap_or(usual) {
            NicChoice::Own => Nic::Own,
            NicChoice::Channel => Nic::Channel,
            NicChoice::Pxn => Nic::Pxn,
        };
        let ports = match self.ports {
            PortChoice::Hash => Ports::Hash,
            PortChoice::RoundRobin => Ports::RoundRobin,
            PortChoice::Stripe => Ports::Stripe,
        };
        Communicator { ranks, group, lane, nic, ports, cost: self.cost }
    }

    /// The call of a collective among these ranks.
    pub(crate) fn call(
        &self,
        draft: &Draft<'_>,
        kind: Kind,
        bytes: u64,
        ranks: &[u32],
    ) -> Result<Call, Finding> {
        let servers: Vec<u32> = ranks
            .chunk_by(|&a, &b| draft.ranks.node(a) == draft.ranks.node(b))
            .map(|server| server.len() as u32)
            .collect();
        let most = servers.iter().copied().max().unwrap_or(1);
        let direct = kind == Kind::AllToAll;
        let channels = self.channels.unwrap_or(if direct { 1 } else { most.min(MOST_CHANNELS) });
        if channels == 0 || channels > MOST_CHANNELS {
            let text = format!("expected 1 to {MOST_CHANNELS} channels, found {channels}");
            return Err(code::RANGE.at("channels", text));
        }
        for (key, bytes) in [("message", self.message), ("grain", self.grain)] {
            if let Some(bytes) = bytes {
                some_bytes(bytes, key)?;
            }
        }
        let slices = costs_of(&draft.scene, self.cost)?.is_some();
        let nvlink = ranks.iter().find_map(|&rank| draft.ranks.nvlink(rank, rank));
        let machine = machine(draft, &ranks[..servers.first().map_or(0, |&n| n as usize)]);
        let mut call = Call {
            kind,
            bytes,
            servers,
            channels,
            chunk: self.message.map_or(u64::MAX, Bytes::get),
            slices,
            window: self.window.unwrap_or(0),
            grain: self.grain.map_or(1, Bytes::get),
            nvlink: nvlink.is_some(),
            protocol: self.protocol,
            machine: draft
                .nccl
                .restrict(kind, Machine { nvlink: nvlink.map_or(0, |nvlink| nvlink.rate.bps()), ..machine }),
        };
        if self.channels.is_none() && !direct {
            if slices || draft.nccl.given {
                call.channels = collective::channels(&call).max(1);
            }
            call.channels = draft.nccl.channels(call.channels);
        }
        Ok(call)
    }
}

/// What NCCL's choice knows of a server, of which a group has these ranks.
fn machine(draft: &Draft<'_>, ranks: &[u32]) -> Machine {
    let usual = Machine::default();
    let ports: BTreeSet<HostId> = ranks.iter().flat_map(|&rank| draft.ranks.ports(rank)).copied().collect();
    let rate: u64 = ports.iter().map(|&port| draft.fabric.uplink(port).rate.bps()).sum();
    let server = draft.ranks.server();
    let nics = ports.len() / server.map_or(1, |server| server.ports_per_nic);
    let (gpu, cpu) = server.map_or((usual.gpu, usual.cpu), |server| (server.gpu, server.cpu));
    Machine { nics: nics as u32, nic: rate / nics.max(1) as u64, gpu, cpu, ..usual }
}

impl Generate for Collective {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        if self.repeat == 0 || self.repeat > 100_000 {
            return Err(code::RANGE.at("repeat", format!("expected 1 to 100000, found {}", self.repeat)));
        }
        let groups = self.groups.resolve(self.group_size, draft.ranks)?;
        let algorithm = self.algorithm.unwrap_or(draft.usual_algorithm(self.kind));
        let count = groups.len();
        let mut schedules = Schedules::default();
        for (g, ranks) in groups.into_iter().enumerate() {
            let call = self.tuning.call(draft, self.kind, bytes, &ranks).map_err(|e| e.within("tuning"))?;
            let key = if self.algorithm.is_some() { "algorithm" } else { "groups" };
            let planned = schedules.at(key, draft.memory, algorithm, &call)?;
            let steps = planned.steps * u64::from(self.repeat);
            draft.expect(steps, steps.min(ranks.len() as u64 * 64), "groups")?;
            let communicator = self.tuning.communicator(self.kind, ranks, g, g as u32);
            let mut causes: Vec<Vec<Event>> = vec![Vec::new(); call.ranks() as usize];
            for repetition in 0..self.repeat {
                let operation = Operation { step: repetition, ..Operation::default() };
                let left = draft.collective(communicator.clone(), &planned, operation, causes)?;
                causes = left.into_iter().map(|event| vec![event]).collect();
            }
        }
        Ok(count)
    }
}
