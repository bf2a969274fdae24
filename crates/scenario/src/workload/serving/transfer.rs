//! Settings of transfers: the way, the NICs, and what the host software costs.

use finding::{Finding, code};
use model::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serving::spec::{Rails, Reserve, Transfer as Plan, Way};

/// Transfers of KV: one message for each pair of NICs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Transfer {
    /// `"push"`: the prefill side writes when the prompt is computed; `"pull"`: the decode side reads, and its request of 64 B crosses first;
    /// `"layers"`: the prefill side writes each group of layers when it is computed. Default `"push"` (Mooncake's connector for vLLM).
    pub way: TransferWay,
    /// Groups of layers with `way = "layers"`. Default 8, or the number of layers if that is smaller (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// NICs of the server that carry a transfer: `"own"`: each rank's own; `"round-robin"`: slices go to all in turn, as in Mooncake's
    /// engine; `"least-inflight"`: slices go to the one with the fewest bytes under way, as in TENT. The receiver's NIC has the same
    /// number. Default `"own"` (our choice).
    pub rails: RailUse,
    /// Bytes of a slice, which decides how evenly NICs share. Default 64 KiB (`slice_size` of Mooncake's transfer engine, `config.h`).
    pub slice: Bytes,
    /// Queue pairs of a pair of NICs, which share each message evenly. Default: as many as a rank has NIC ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qps: Option<u64>,
    /// Host software whose measured costs are the defaults of `host`, `rate` and `descriptor`: `"ideal"`, `"vllm-mooncake"` or
    /// `"sglang-mooncake"`. Default `"ideal"`: none (our choice).
    pub preset: Preset,
    /// Time of the host software before the first byte. Default: the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Time>,
    /// Most payload that the host software and its GPU bring to a NIC. The NIC paces all of the job's queue pairs so. If `nic.classes` has a
    /// lower rate for the job's traffic class, that rate counts. Default: the preset's, or the line rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Time of the host software for each descriptor of a rank. Default: the preset's. On H200, 4,563 descriptors less made a transfer 3.1 ms
    /// shorter (vllm-project/vllm, pull request 53825), 0.7 us each; with 32,000 it is up to 1.5 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<Time>,
    /// `"merged"`: a descriptor for each layer, whose blocks lie side by side; `"blocks"`: one for each block of each layer. Default
    /// `"merged"` (our choice).
    pub descriptors: Descriptors,
    /// When memory is reserved at the decode side: `"at-transfer"`, when the prompt is computed; `"early"`, before the prefill. Default
    /// `"early"` with `way = "layers"`, else `"at-transfer"` (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<ReserveAt>,
}

impl Default for Transfer {
    fn default() -> Self {
        Transfer {
            way: TransferWay::Push,
            groups: None,
            rails: RailUse::Own,
            slice: Bytes(65_536),
            qps: None,
            preset: Preset::Ideal,
            host: None,
            rate: None,
            descriptor: None,
            descriptors: Descriptors::Merged,
            reserve: None,
        }
    }
}

/// How KV crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransferWay {
    /// The prefill side writes.
    Push,
    /// The decode side reads.
    Pull,
    /// The prefill side writes groups of layers.
    Layers,
}

/// Which NICs carry a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RailUse {
    /// Each rank's own.
    Own,
    /// All, in turn.
    RoundRobin,
    /// Those with the fewest bytes under way.
    LeastInflight,
}

/// What has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Descriptors {
    /// A layer.
    Merged,
    /// A block of a layer.
    Blocks,
}

/// When memory is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReserveAt {
    /// Before the transfer.
    AtTransfer,
    /// Before the prefill.
    Early,
}

/// Host software with its measured costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// No costs.
    Ideal,
    /// vLLM with Mooncake's connector on H800 with 8 NICs of 200 Gb/s: 0.38 ms, and 146 Gb/s of payload per NIC. Fitted to nine transfers
    /// (kvcache-ai/Mooncake, `vllm-v1-pd-performance.md`).
    VllmMooncake,
    /// SGLang with Mooncake's engine on H20 with 4 NICs of 400 Gb/s: 1.8 ms, and 342 Gb/s of payload per NIC. Fitted to nine transfers
    /// (kvcache-ai/Mooncake, `sglang-benchmark-results-v1.md`).
    SglangMooncake,
}

/// Costs of host software, and the line rate of the NICs on which they were measured.
pub(super) struct Costs {
    pub(super) host: Time,
    pub(super) rate: Option<Rate>,
    pub(super) line: Option<Rate>,
}

impl Preset {
    /// Fitted, see the variants.
    pub(super) fn costs(self) -> Costs {
        let of = |us, rate, line| Costs {
            host: Time::from_us(us),
            rate: Some(Rate::from_gbps(rate)),
            line: Some(Rate::from_gbps(line)),
        };
        match self {
            Preset::Ideal => Costs { host: Time::ZERO, rate: None, line: None },
            Preset::VllmMooncake => of(380, 146, 200),
            Preset::SglangMooncake => of(1800, 342, 400),
        }
    }

    /// The name in scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Preset::Ideal => "ideal",
            Preset::VllmMooncake => "vllm-mooncake",
            Preset::SglangMooncake => "sglang-mooncake",
        }
    }
}

/// Usual number of groups of layers (our choice: a request then has eight messages per pair of NICs).
const GROUPS: u64 = 8;
/// Most groups of layers and queue pairs. Our choice: a model has fewer layers, and a NIC fewer queue pairs for a peer.
const MOST: u64 = 1024;

impl Transfer {
    /// The payload that a NIC gets at most.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.or(self.preset.costs().rate)
    }

    /// The transfers of a model with so many layers, by ranks with so many NIC ports.
    pub(super) fn plan(&self, layers: u64, ports: usize) -> Result<Plan, Finding> {
        let qps = self.qps.unwrap_or(ports as u64);
        if !(1..=MOST).contains(&qps) {
            return Err(code::RANGE.at("qps", format!("expected 1 to {MOST}, found {qps}")));
        }
        let groups = self.groups.unwrap_or(GROUPS.min(layers));
        if !(1..=layers.min(MOST)).contains(&groups) && self.way == TransferWay::Layers {
            let text = format!("expected 1 to {} groups of layers, found {groups}", layers.min(MOST));
            return Err(code::RANGE.at("groups", text));
        }
        if self.slice.get() == 0 {
            return Err(code::RANGE.at("slice", "expected at least 1 byte, found 0"));
        }
        if self.rate == Some(Rate(0)) {
            return Err(code::RANGE.at("rate", "must be above 0"));
        }
        let way = match self.way {
            TransferWay::Push => Way::Push,
            TransferWay::Pull => Way::Pull,
            TransferWay::Layers => Way::Layers(groups),
        };
        let reserve = match (self.reserve, self.way) {
            (Some(ReserveAt::AtTransfer), TransferWay::Layers) => {
                let text = "cannot be \"at-transfer\" with `way = \"layers\"`, whose first bytes cross during the prefill";
                return Err(code::CONFLICT.at("reserve", text));
            }
            (Some(ReserveAt::Early), _) | (None, TransferWay::Layers) => Reserve::Early,
            (Some(ReserveAt::AtTransfer) | None, _) => Reserve::AtTransfer,
        };
        let rails = match self.rails {
            RailUse::Own => Rails::Own,
            RailUse::RoundRobin => Rails::RoundRobin,
            RailUse::LeastInflight => Rails::LeastInflight,
        };
        Ok(Plan {
            way,
            rails,
            qps,
            slice: self.slice.get(),
            host: self.host.unwrap_or(self.preset.costs().host),
            descriptor: self.descriptor.unwrap_or(Time::ZERO),
            by_block: self.descriptors == Descriptors::Blocks,
            reserve,
        })
    }
}
