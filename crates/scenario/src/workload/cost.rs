//! What a step of a collective costs a GPU and its host, beside the bytes on the links.
//!
//! Every channel of a GPU has an engine that starts one slice after the other. It is busy with a slice for a constant and for the slice's
//! bytes. A slice arrives over NVLink, or is posted to a NIC, a hop after the engine has started it. `hardware/cost` has
//! the measured profiles, a file each.

use crate::hardware::{COSTS, figures};
use collective::{Algorithm, Call, Kind, Protocol};
use finding::{Finding, code};
use model::{Bytes, Rate, Time, Wire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Costs of collectives: a profile's name, `"none"`, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a scenario has few of them, and they are copied")]
pub enum CostConfig {
    /// A profile, or none.
    Named(Profile),
    /// A profile with changes.
    Table(CostTable),
}

/// A profile of measured costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No costs: the ideal fabric.
    #[default]
    None,
    /// NCCL on servers with H100 GPUs.
    H100,
    /// DeepEP's low-latency dispatch, for all-to-alls.
    DeepepDispatch,
    /// DeepEP's low-latency combine, for all-to-alls.
    DeepepCombine,
    /// DeepEP's normal dispatch and combine, for all-to-alls.
    DeepepNormal,
}

/// Costs that differ from those of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CostTable {
    /// The profile whose costs are the defaults of all other keys. Default `"none"` (our choice).
    pub profile: Profile,
    /// Time from a rank's entry into a collective to its first slice. Default: the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Time>,
    /// Costs with the protocol LL. Default: the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ll: Option<StepCost>,
    /// Costs with the protocol LL128. Default: the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ll128: Option<StepCost>,
    /// Costs with the protocol Simple. Default: the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simple: Option<StepCost>,
    /// Costs of an all-to-all. Default: the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectCost>,
}

/// Costs of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StepCost {
    /// Time from the engine's start to the arrival over NVLink, without the bytes. No default.
    pub hop_nvlink: Time,
    /// Time from the engine's start until the NIC has the slice. No default.
    pub hop_network: Time,
    /// Time for which the engine is busy with a slice, without its bytes. No default.
    pub busy: Time,
    /// Rate of all engines of a GPU. No default.
    pub rate: Rate,
    /// Costs in a tree. Default: those of a ring (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeCost>,
    /// Most bytes that are under way on a connection over the network. Default: no limit (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Bytes>,
    /// Whether the bytes of a slice arrive over NVLink while the engine still sends them. Default false (our choice).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_through: bool,
}

/// Costs of a piece in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TreeCost {
    /// As in a ring. No default.
    pub hop_nvlink: Time,
    /// As in a ring. No default.
    pub hop_network: Time,
    /// As in a ring. No default.
    pub busy: Time,
    /// Rate of all engines of a GPU; bytes pass them upwards and downwards. No default.
    pub rate: Rate,
}

/// Costs of an all-to-all, whose sends to all peers pass one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DirectCost {
    /// Time for which the engine is busy with each peer. No default.
    pub peer: Time,
    /// Time from the engine's start until a NIC has the slice, or until it arrives over NVLink. No default.
    pub hop: Time,
    /// Rate of the engine for bytes over the network. No default.
    pub rate: Rate,
    /// Rate for the first bytes to a peer. Default: `rate` (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rate: Option<Rate>,
    /// Number of these bytes. Default 0 B (our choice).
    #[serde(default)]
    pub first_bytes: Bytes,
    /// Most bytes that are under way to a peer over the network. Default: no limit (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Bytes>,
}

impl CostConfig {
    /// The name of the profile, if there is one.
    pub(crate) fn profile(&self) -> Option<&'static str> {
        let (CostConfig::Named(profile) | CostConfig::Table(CostTable { profile, .. })) = *self;
        match profile {
            Profile::None => None,
            Profile::H100 => Some("h100"),
            Profile::DeepepDispatch => Some("deepep-dispatch"),
            Profile::DeepepCombine => Some("deepep-combine"),
            Profile::DeepepNormal => Some("deepep-normal"),
        }
    }

    /// The costs; `None` if there are none.
    pub(crate) fn costs(&self) -> Result<Option<CostTable>, Finding> {
        let (profile, own) = match *self {
            CostConfig::Named(profile) => (profile, CostTable::default()),
            CostConfig::Table(table) => (table.profile, table),
        };
        let base = self.profile().map_or_else(CostTable::default, named);
        let costs = CostTable {
            profile,
            call: own.call.or(base.call),
            ll: own.ll.or(base.ll),
            ll128: own.ll128.or(base.ll128),
            simple: own.simple.or(base.simple),
            direct: own.direct.or(base.direct),
        };
        for (key, time) in costs.times() {
            if time > Time::from_ms(100) {
                return Err(code::RANGE.at(key, format!("expected at most 100 ms, found {time}")));
            }
        }
        Ok((costs != CostTable::default()).then_some(costs))
    }
}

/// The costs of a profile's file. A training step asks for them a hundred thousand times.
fn named(name: &str) -> CostTable {
    static READ: LazyLock<BTreeMap<&str, CostTable>> = LazyLock::new(|| {
        let read = |name| {
            let table = figures(COSTS, name).unwrap_or_default();
            table.try_into().unwrap_or_else(|error| unreachable!("hardware/cost/{name}.toml: {error}"))
        };
        COSTS.iter().map(|file| (file.name, read(file.name))).collect()
    });
    READ.get(name).copied().unwrap_or_default()
}

impl CostTable {
    /// Costs of a slice with a protocol.
    pub(crate) fn of(&self, protocol: Protocol) -> Option<StepCost> {
        match protocol {
            Protocol::Simple => self.simple,
            Protocol::Ll => self.ll,
            Protocol::Ll128 => self.ll128,
        }
    }

    fn times(&self) -> impl Iterator<Item = (&'static str, Time)> {
        let steps = [("ll", self.ll), ("ll128", self.ll128), ("simple", self.simple)];
        let of_steps = steps.into_iter().filter_map(|(key, step)| {
            step.map(|step| (key, step.hop_nvlink.max(step.hop_network).max(step.busy)))
        });
        let direct = self.direct.map(|direct| ("direct", direct.hop.max(direct.peer)));
        let call = self.call.map(|call| ("call", call));
        call.into_iter().chain(of_steps).chain(direct)
    }
}

/// Costs of the slices of a call.
#[derive(Clone, Copy)]
pub(crate) enum Costs {
    /// An engine per channel, each with its share of the rate of a GPU.
    Step { call: Time, costs: StepCost, rate: Rate },
    /// One engine for all peers.
    Direct { call: Time, costs: DirectCost },
}

impl CostTable {
    /// The costs of a call; `None` if the table has none for its protocol.
    pub(crate) fn costs(&self, algorithm: Algorithm, call: &Call) -> Option<Costs> {
        let takes = self.call.unwrap_or_default();
        if call.kind == Kind::AllToAll {
            return self.direct.map(|costs| Costs::Direct { call: takes, costs });
        }
        let mut costs = self.of(call.protocol)?;
        if let (Algorithm::Tree, Some(tree)) = (algorithm, costs.tree) {
            let TreeCost { hop_nvlink, hop_network, busy, rate } = tree;
            costs = StepCost { hop_nvlink, hop_network, busy, rate, ..costs };
        }
        let rate = Rate((costs.rate.0 / u64::from(collective::channels(call).max(1))).max(1));
        Some(Costs::Step { call: takes, costs, rate })
    }
}

impl Costs {
    /// Time from a rank's entry to its first slice.
    pub(crate) fn call(&self) -> Time {
        match *self {
            Costs::Step { call, .. } | Costs::Direct { call, .. } => call,
        }
    }

    /// Most bytes under way on a connection.
    pub(crate) fn in_flight(&self) -> Option<Bytes> {
        match self {
            Costs::Step { costs, .. } => costs.in_flight,
            Costs::Direct { costs, .. } => costs.in_flight,
        }
    }
}

/// An idle path over one switch.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    /// Time of an empty message, us.
    pub(crate) idle: f64,
    /// Share of a link's rate that payload has.
    pub(crate) payload: f64,
}

impl Path {
    /// The path over two links of this rate and delay.
    pub(crate) fn over(wire: &Wire, rate: Rate, delay: Time) -> Self {
        let frame = wire.transmission(rate, wire.max_frame()).as_us();
        let payload = rate.time_for(wire.payload.into()).as_us() / frame;
        Path { idle: 2.0 * delay.as_us() + frame, payload }
    }
}

/// The time of a collective on an idle fabric; `None` for algorithms that have no closed form.
///
/// A ring of S steps and k slices per step takes S times the longer of what its engines take for k slices, and of the mean of its
/// hops. A tree fills its pipeline with two times its hops, and then takes what its engines take for two passes of each
/// piece. An all-to-all takes what the engine of a rank takes for all its peers, and a hop.
pub(crate) fn closed_form(algorithm: Algorithm, call: &Call, costs: &Costs, path: Path) -> Option<Time> {
    let (ranks, servers) = (f64::from(call.ranks()), call.servers.len() as f64);
    let each = ranks / servers;
    // Microseconds of so many bytes.
    let take = |rate: Rate, bytes: f64| bytes * 8e6 / rate.0 as f64;
    let us = match *costs {
        Costs::Direct { call: takes, costs } => {
            let bytes = call.bytes as f64 / ranks;
            let first = bytes.min(costs.first_bytes.get() as f64);
            let first_rate = costs.first_rate.unwrap_or(costs.rate);
            let moved = (ranks - each) * (take(first_rate, first) + take(costs.rate, bytes - first));
            takes.as_us() + costs.hop.as_us() + path.idle + costs.peer.as_us() * (ranks - 1.0) + moved
        }
        Costs::Step { call: takes, costs, rate } => {
            let made = algorithm.made(call);
            let of_channel = match algorithm {
                Algorithm::Ring => call.bytes as f64 / ranks / f64::from(made.channels),
                Algorithm::Tree => call.bytes as f64 / f64::from(made.channels),
                _ => return None,
            };
            let pieces = (of_channel / call.chunk as f64).ceil().max(1.0);
            let wire = call.protocol.wire(1 << 20) as f64 / f64::from(1 << 20);
            let piece = of_channel / pieces * wire;
            let engine = costs.busy.as_us() + take(rate, piece);
            let nic = call.machine.nic as f64 * f64::from(call.machine.nics) * path.payload;
            let network = costs.hop_network.as_us()
                + path.idle
                + piece * 8e6 / (nic / f64::from(made.channels.max(call.machine.nics)));
            let arrives = if costs.cut_through { 0.0 } else { take(rate, piece) };
            let nvlink = costs.hop_nvlink.as_us() + arrives;
            let hops = |network_hops: f64| (each - 1.0) * nvlink + network_hops * network;
            takes.as_us()
                + if algorithm == Algorithm::Ring {
                    let steps = if call.kind == Kind::AllReduce { 2.0 } else { 1.0 } * (ranks - 1.0);
                    let over = if servers > 1.0 { 1.0 } else { 0.0 };
                    let mean = hops(over) / (each - 1.0 + over).max(1.0);
                    steps * (pieces * engine).max(mean)
                } else {
                    let up = f64::from(call.servers.len().next_power_of_two().ilog2());
                    2.0 * hops(up) + (pieces - 1.0) * 2.0 * engine
                }
        }
    };
    Some(Time((us * 1e6) as u64))
}

#[cfg(test)]
mod tests;
