//! Inference serving: prefill instances compute prompts, their keys and values (KV) go to decode instances, and tokens follow.

mod compute;
mod instances;
mod laid;
mod limit;
mod model;
mod refused;
mod requests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transfer;

pub use ::serving::spec::Request;
pub use compute::{DecodeCompute, PrefillCompute};
pub use laid::Laid;
pub(crate) use limit::limited;
pub use requests::{Arrivals, Span, Tokens, Trace, TraceFormat};
pub use transfer::{Descriptors, Preset, RailUse, ReserveAt, Transfer, TransferWay};

use super::Generate;
use super::draft::Draft;
use crate::placement::Servers;
use ::model::{Bytes, Time};
use finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Inference serving with prefill and decode on different servers. Requests come from a trace or at random. Prompts are computed in batches,
/// their KV crosses the fabric, and decode instances make tokens in steps of all their requests. Computation follows formulas;
/// every packet of KV is simulated. One thread runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Serving {
    /// Requests from a file. No default; either this or `arrivals`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Requests at random times. No default; either this or `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The model: `"llama-3-8b"`, `"llama-3-70b"`, `"llama-3.1-405b"`, `"qwen3-8b"`, `"qwen3-235b-a22b"`, `"deepseek-v3"`, `"opt-66b"`, or
    /// its sizes. No default.
    pub model: ModelChoice,
    /// Keys and values.
    #[serde(default)]
    pub kv: KvConfig,
    /// Prefill instances.
    pub prefill: Prefill,
    /// Decode instances.
    pub decode: Decode,
    /// Transfers of KV.
    #[serde(default)]
    pub transfer: Transfer,
    /// Choice of instances.
    #[serde(default)]
    pub place: Place,
    /// Whether the network moves the starts of transfers. `"closed"`: it does, because requests wait for memory that others hold, and
    /// placement looks at what has ended. `"open"`: each transfer starts when its prompt is computed. Then memory at the decode side is
    /// without end, and loads of decode instances count all that was placed, so every scheme gets the same messages at the same times.
    /// Default `"closed"` (servers wait for memory).
    #[serde(default)]
    pub r#loop: Loop,
    /// Limits that requests should keep.
    #[serde(default)]
    pub slo: Slo,
    /// What counts as the first token: the end of a request's first step of decoding (`"decode"`), or of its prefill (`"prefill"`). Default
    /// `"decode"` (NetKV and BLIS count so).
    #[serde(default)]
    pub first_token: FirstToken,
}

/// A model, by its name or by its sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the name of a model, or a table of `layers`, `hidden`, `active` and one of `heads`, `latent` and \
                 `bytes-per-token`"
)]
pub enum ModelChoice {
    /// A model of the list.
    Named(String),
    /// Sizes.
    Sizes(Sizes),
}

/// Sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sizes {
    /// Number of layers. No default.
    pub layers: u64,
    /// Width of the hidden state, for the operations of attention. No default.
    pub hidden: u64,
    /// Parameters that a token uses. No default.
    pub active: u64,
    /// Heads of keys and values and their width: `[8, 128]`. Exactly one of this, `latent` and `bytes-per-token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<[u64; 2]>,
    /// Widths of the latent and of the rotary part of multi-head latent attention: `[512, 64]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<[u64; 2]>,
    /// Bytes of KV per token, of all layers and ranks: for models whose KV follows no formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_token: Option<Bytes>,
    /// Bytes per request beside `bytes-per-token`: the state of recurrent layers. Default 0 (our choice).
    #[serde(default)]
    pub bytes_per_request: Bytes,
}

/// Keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct KvConfig {
    /// Bytes of a value. Default 2 B (BF16).
    pub value: Bytes,
    /// Tokens of a block; blocks are sent and stored as a whole. Default 16 (vLLM's block size on GPUs).
    pub block: u64,
    /// Which ranks get the latent of multi-head latent attention. `"one"`: it crosses once, an equal share by each rank; `"tp"`: every rank
    /// gets all of it, and stores it in `decode.memory`. Default `"one"` (our choice: which connector sends which is unknown, and the bytes differ by the number of
    /// ranks).
    pub copies: Copies,
}

impl Default for KvConfig {
    fn default() -> Self {
        KvConfig { value: Bytes(2), block: 16, copies: Copies::One }
    }
}

/// Which ranks get a latent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// It crosses once.
    #[default]
    One,
    /// Every rank gets all of it.
    Tp,
}

/// Prefill instances: prompts wait in the order of their arrival and are computed in batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prefill {
    /// Their servers, by number: `"0..3"` with both ends, or a list. No default.
    pub servers: Servers,
    /// GPUs of each of these servers, by number: `"0..3"`, or a list. The other side may have the rest of the same servers. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Servers>,
    /// GPUs of an instance; a server has as many instances as fit. Default: all GPUs of the side on a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<u64>,
    /// Speed of computation.
    pub compute: PrefillCompute,
    /// Most tokens of a batch, those in the cache not counted; a longer prompt is a batch of its own. Default 16384 (our choice; vLLM's
    /// and SGLang's defaults depend on the GPU).
    #[serde(default = "batch_tokens")]
    pub batch_tokens: u64,
    /// Tokens of prompts that an instance keeps, and does not compute again. Only with a trace that has ids of blocks. Default 0: no cache
    /// (our choice).
    #[serde(default)]
    pub cache_tokens: u64,
}

/// Decode instances: in every step each of their requests gets a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Decode {
    /// Their servers, as of prefill instances. No default.
    pub servers: Servers,
    /// GPUs of each of these servers, as of prefill instances. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Servers>,
    /// GPUs of an instance. Default: all GPUs of the side on a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<u64>,
    /// Memory of an instance for KV. A request takes whole blocks for its prompt and its answer, from its grant to its end. No default.
    pub memory: Bytes,
    /// Most requests of a step. Default 256 (our choice).
    #[serde(default = "slots")]
    pub slots: u32,
    /// Speed of computation.
    pub compute: DecodeCompute,
    /// Tokens of prompts that an instance keeps beside `memory`, and that are not sent to it again. Only with a trace that has ids of blocks.
    /// Default 0: no cache, so the whole prompt is sent (our choice).
    #[serde(default)]
    pub cache_tokens: u64,
}

/// Choice of instances for each request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Place {
    /// Prefill instance: `"round-robin"`, `"least-loaded"` (fewest tokens that wait or are computed), or `"cache-aware"`. Default
    /// `"least-loaded"` (our choice).
    pub prefill: PlaceBy,
    /// Decode instance, chosen when memory is asked for: the same (load: tokens that its requests hold), or one of three more.
    /// `"network-aware"`: the shortest wait for a slot and memory, plus the time of the missing bytes beside all KV of both NICs that the
    /// program has placed and that has not arrived, times what earlier transfers over as many switches took beyond their NICs' time. It
    /// follows NetKV (arXiv 2606.03910), whose exact formula we do not know. `"oracle"`: the same without that factor, and beside
    /// all KV that has started. It is no bound: jobs beside it and links inside the fabric count for nothing. `"same-tier"`: of the instances over the fewest switches, the one with the least load (llm-d's
    /// `topology-affinity-scorer` prefers such ones). Default `"least-loaded"` (our choice).
    pub decode: PlaceBy,
    /// Weight w of `"cache-aware"`, which takes the instance with the most tokens of the prompt's start in its cache, less w times its load.
    /// Default 1 (our choice).
    pub weight: f64,
    /// Period after which `"network-aware"` learns new factors. They are stale on purpose. Default 1 s (our choice).
    pub refresh: Time,
}

impl Default for Place {
    fn default() -> Self {
        let least = PlaceBy::LeastLoaded;
        Place { prefill: least, decode: least, weight: 1.0, refresh: Time::from_ms(1000) }
    }
}

/// A way to choose an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceBy {
    /// One after the other.
    RoundRobin,
    /// The fewest tokens.
    LeastLoaded,
    /// The most cached tokens, less the load.
    CacheAware,
    /// The soonest start, transfer included.
    NetworkAware,
    /// The same, with the bytes under way known.
    Oracle,
    /// The nearest.
    SameTier,
}

/// Whether the network moves the starts of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loop {
    /// It does.
    #[default]
    Closed,
    /// It does not.
    Open,
}

/// Limits that requests should keep. Goodput counts those that keep all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Slo {
    /// Longest time to the first token. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Time>,
    /// Longest mean time of the tokens after the first. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot: Option<Time>,
}

/// What counts as the first token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstToken {
    /// The end of the first step of decoding.
    #[default]
    Decode,
    /// The end of the prefill.
    Prefill,
}

fn batch_tokens() -> u64 {
    16_384
}

fn slots() -> u32 {
    256
}

impl Generate for Serving {
    /// Adds a message for each queue pair, as a program does, and counts those that will be posted.
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let laid = self.lay(draft.ranks, draft.fabric, (draft.key, draft.start))?;
        let messages = laid.expected_messages();
        let program = laid.program();
        draft.reserve(messages, 0, "decode")?;
        draft.warnings.extend(laid.findings);
        program.generate(draft)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        self.trace
            .as_mut()
            .map_or(Ok(()), |trace| trace.read(folder).map_err(|error| error.within("trace")))?;
        self.prefill.compute.read(folder).map_err(|error| error.within("prefill.compute"))?;
        self.decode.compute.read(folder).map_err(|error| error.within("decode.compute"))
    }
}
