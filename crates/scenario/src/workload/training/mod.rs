//! Steps of training a language model: computation, and the communication of every kind of parallelism.

mod dimension;
mod model;
mod pipeline;
mod step;

pub use super::routing::{Gini, Kernel, Routing, SeedBy, Skew, TokenMessage};
pub use dimension::{Dimension, Dimensions};
use finding::{Finding, code};
pub use model::{Mla, Model, ModelChoice, ModelName, Moe};
pub use pipeline::Schedule;

use super::Generate;
use super::draft::Draft;
use crate::values::Flops;
use ::model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Training steps of a language model on all GPUs.
///
/// Rank r has the place `tp + TP (cp + CP (dp + DP pp))`, as in Megatron-LM: tensor parallelism is between neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Training {
    /// The model: `"gpt-13b"`, `"gpt-175b"`, `"llama-3-8b"`, `"llama-3-70b"`, `"llama-3.1-405b"`, `"mixtral-8x7b"`,
    /// `"deepseek-v3"`, or its sizes. No default.
    pub model: ModelChoice,
    /// How the model and the batch are divided among GPUs.
    #[serde(default)]
    pub parallel: Parallel,
    /// The batch.
    pub batch: Batch,
    /// What ranks of data parallelism exchange. `"replicated"`: an all-reduce of gradients; `"distributed"`: a reduce-scatter of
    /// gradients and an all-gather of parameters at the end of the step (ZeRO-1); `"zero-3"`: an all-gather of a layer's parameters
    /// before each of its passes, while the layer before computes, and a reduce-scatter after each backward pass.
    /// Default `"distributed"` (Megatron-LM's distributed optimizer).
    #[serde(default)]
    pub optimizer: Optimizer,
    /// Bytes of a gradient on the wire. Default 4 B (FP32, Megatron-LM's default).
    #[serde(default = "four")]
    pub gradient: Bytes,
    /// Bytes of gradients that are exchanged at once. Default 100 MB (our choice; PyTorch's default is 25 MB).
    #[serde(default = "bucket")]
    pub bucket: Bytes,
    /// Order of passes in a pipeline: `"1f1b"`, `"gpipe"` or `{ interleaved = 2 }`. Default `"1f1b"` (our choice).
    #[serde(default)]
    pub schedule: Schedule,
    /// Time of computations. No default.
    pub compute: Compute,
    /// Algorithm and tuning of each kind of parallelism: `tp`, `cp`, `dp`, `ep`, and `"*"` for those of which nothing is set.
    /// Default: see each.
    #[serde(default)]
    pub collectives: Dimensions,
    /// Communication behind which a rank goes on. `"none"`: a rank waits for every collective of a layer; `"tp"`: a
    /// collective of tensor parallelism hides behind the next computation. Default `"none"` (our choice).
    #[serde(default)]
    pub overlap: Overlap,
    /// Routing of tokens to experts.
    #[serde(default)]
    pub routing: Routing,
    /// Number of steps, one after another. Default 1 (our choice).
    #[serde(default = "one")]
    pub steps: u32,
    /// Share of the model's layers and of the micro-batches that is run, from 0 to 1; every stage keeps at least one layer
    /// and as many micro-batches as stages. Results speak of the smaller step. Default 1 (our choice).
    #[serde(default = "whole")]
    pub scale: f64,
}

/// How the model and the batch are divided among GPUs. The product of all sizes but `ep` is the number of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parallel {
    /// Tensor parallelism: ranks that share every layer. Default 1 (our choice).
    pub tp: u32,
    /// Context parallelism: ranks that share every sequence. Default 1 (our choice).
    pub cp: u32,
    /// Pipeline parallelism: stages. Default 1 (our choice).
    pub pp: u32,
    /// Data parallelism: replicas. Default: all GPUs that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dp: Option<u32>,
    /// Expert parallelism: replicas that share the experts of a layer; a divisor of `dp`. Default 1 (our choice).
    pub ep: u32,
    /// Whether activations between layers are divided by tensor parallelism, so that all-gathers and reduce-scatters replace
    /// all-reduces. Default true (Megatron-LM's usual setting for large models).
    pub sequence_parallel: bool,
}

impl Default for Parallel {
    fn default() -> Self {
        Parallel { tp: 1, cp: 1, pp: 1, dp: None, ep: 1, sequence_parallel: true }
    }
}

/// The batch of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Batch {
    /// Sequences of all replicas.
    pub global: u32,
    /// Sequences of a micro-batch. Default 1 (our choice).
    #[serde(default = "one")]
    pub micro: u32,
    /// Tokens of a sequence.
    pub sequence: u64,
}

/// What ranks of data parallelism exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// As `distributed`; besides, parameters are gathered before each pass of a layer, and gradients are reduced after each
    /// backward pass.
    #[serde(rename = "zero-3")]
    Zero3,
    /// All-reduce of gradients.
    Replicated,
    /// Reduce-scatter of gradients, all-gather of parameters.
    #[default]
    Distributed,
}

/// Communication that hides behind computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// None inside a pass.
    #[default]
    None,
    /// Collectives of tensor parallelism.
    Tp,
}

/// Time of computations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Compute {
    /// From the operations of the model.
    Flops(ByFlops),
    /// As times of one micro-batch on one stage.
    Times(ByTime),
    /// As times of one micro-batch on each layer.
    Layers(ByLayer),
}

/// Computation at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ByFlops {
    /// Operations per second that a GPU attains, such as `"400TFLOPS"`. A backward pass has twice the operations of a forward pass.
    pub flops: Flops,
}

/// Times of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ByTime {
    /// Forward pass of a micro-batch over all layers of a stage, or over one layer in `per-layer`.
    pub forward: Time,
    /// Backward pass of a micro-batch over all layers of a stage, or over one layer in `per-layer`.
    pub backward: Time,
}

/// Times of the passes of each layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ByLayer {
    /// Times of the passes of a micro-batch over each layer of the model, from the first layer to the last, such as
    /// `[{ forward = "4ms", backward = "8ms" }, ...]`. One time counts for all layers.
    pub per_layer: Vec<ByTime>,
}

fn one() -> u32 {
    1
}

fn four() -> Bytes {
    Bytes(4)
}

fn bucket() -> Bytes {
    Bytes(100_000_000)
}

fn whole() -> f64 {
    1.0
}

/// Sizes of a step, checked.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) model: Model,
    pub(super) tp: u32,
    pub(super) cp: u32,
    pub(super) dp: u32,
    pub(super) pp: u32,
    pub(super) ep: u32,
    /// Layers of each part of each stage, in the order of the model: the first parts of all stages come first.
    pub(super) layers: Vec<u32>,
    pub(super) micros: u32,
    /// Tokens of a micro-batch on a rank.
    pub(super) tokens: u64,
}

/// Bytes of an activation or parameter on the wire: BF16.
const VALUE: u64 = 2;

impl Training {
    /// Checks the number of times of layers.
    fn times_of_layers(&self, layers: u32) -> Result<(), Finding> {
        match &self.compute {
            Compute::Layers(ByLayer { per_layer }) if ![1, layers as usize].contains(&per_layer.len()) => {
                let text =
                    format!("expected 1 time or {layers}, one for each layer, found {}", per_layer.len());
                Err(code::FIT.at("compute.per-layer", text))
            }
            _ => Ok(()),
        }
    }

    /// Checks the sizes on this many ranks.
    fn sizes(&self, ranks: usize) -> Result<Sizes, Finding> {
        let Parallel { tp, cp, pp, dp, ep, .. } = self.parallel;
        let mut model = self.model.model();
        for (key, size) in [("tp", tp), ("cp", cp), ("pp", pp), ("ep", ep), ("dp", dp.unwrap_or(1))] {
            if size == 0 {
                return Err(code::RANGE.at(&format!("parallel.{key}"), "expected at least 1, found 0"));
            }
        }
        let others = u64::from(tp) * u64::from(cp) * u64::from(pp);
        let dp = dp.map_or((ranks as u64 / others).max(1), u64::from);
        if others * dp != ranks as u64 {
            let text =
                format!("tp x cp x pp x dp = {tp} x {cp} x {pp} x {dp} = {} of {ranks} GPUs", others * dp);
            return Err(code::FIT.at("parallel", text).with_help("the product must be the number of GPUs"));
        }
        let dp = dp as u32;
        if !dp.is_multiple_of(ep) {
            return Err(code::FIT.at("parallel.ep", format!("expected a divisor of dp = {dp}, found {ep}")));
        }
        match model.moe {
            None if ep > 1 => return Err(code::NEEDS.at("parallel.ep", "the model has no experts to divide")),
            Some(moe) if !moe.experts.is_multiple_of(ep.into()) => {
                let text = format!("expected a divisor of the {} experts, found {ep}", moe.experts);
                return Err(code::FIT.at("parallel.ep", text));
            }
            _ => {}
        }
        let parts = self.schedule.parts();
        if parts == 0 {
            return Err(code::RANGE.at("schedule.interleaved", "expected at least 1 part, found 0"));
        }
        let slots = pp.saturating_mul(parts);
        if model.layers < slots {
            let text = format!("{slots} parts of the pipeline share {} layers", model.layers);
            return Err(code::FIT.at("parallel.pp", text).with_help("every part needs a layer"));
        }
        self.times_of_layers(model.layers)?;
        let Batch { global, micro, sequence } = self.batch;
        let replicas = u64::from(dp) * u64::from(micro);
        if micro == 0 || global == 0 || !u64::from(global).is_multiple_of(replicas) {
            let text = format!("expected a multiple of dp x micro = {replicas}, found {global}");
            return Err(code::FIT.at("batch.global", text));
        }
        if sequence == 0 || sequence > 1 << 24 || !sequence.is_multiple_of(u64::from(cp) * u64::from(tp)) {
            let text = format!("expected a multiple of cp x tp = {} up to 2^24, found {sequence}", cp * tp);
            return Err(code::FIT.at("batch.sequence", text));
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return Err(code::RANGE
                .at("scale", format!("expected a share above 0 and up to 1, found {}", self.scale)));
        }
        let scaled =
            |count: u32, least: u32| ((f64::from(count) * self.scale).round() as u32).clamp(least, count);
        let micros = (u64::from(global) / replicas) as u32;
        let micros = scaled(micros, pp.min(micros));
        if parts > 1 && !micros.is_multiple_of(pp) {
            let text = format!("interleaving needs a multiple of pp = {pp} micro-batches, found {micros}");
            return Err(code::FIT.at("schedule", text));
        }
        if self.steps == 0 || self.steps > 1000 {
            return Err(code::RANGE.at("steps", format!("expected 1 to 1000, found {}", self.steps)));
        }
        if self.routing.file.is_some() {
            let text = "measured routing is for the workload `experts`, whose micro-batches have all tokens of a step";
            return Err(code::UNSUITED.at("routing.file", text));
        }
        self.routing.check(model.moe, ep).map_err(|error| error.within("routing"))?;
        for (key, bytes) in [("gradient", self.gradient), ("bucket", self.bucket)] {
            super::draft::some_bytes(bytes, key)?;
        }
        let tokens = u64::from(micro) * sequence / u64::from(cp);
        // If the layers cannot be divided evenly, the first parts have one layer more.
        let (each, more) = (model.layers / slots, model.layers % slots);
        let layers: Vec<u32> = (0..slots).map(|slot| scaled(each + u32::from(slot < more), 1)).collect();
        if let Some(moe) = model.moe.as_mut().filter(|moe| moe.dense_layers > 0) {
            moe.dense_layers = scaled(moe.dense_layers, 1);
        }
        Ok(Sizes { model, tp, cp, dp, pp, ep, layers, micros, tokens })
    }
}

impl Generate for Training {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let sizes = self.sizes(draft.ranks.count())?;
        if self.scale < 1.0 {
            let text = format!(
                "`scale = {}` runs {} layers of each stage and {} micro-batches; step times are those of the smaller step",
                self.scale, sizes.layers[0], sizes.micros
            );
            draft.warnings.push(code::SCALED.at("scale", text));
        } else {
            draft.tokens = u64::from(self.batch.global) * self.batch.sequence;
        }
        let (least, most) = (sizes.layers.iter().min(), sizes.layers.iter().max());
        if let (Some(least), Some(most)) = (least, most)
            && least < most
        {
            let text = format!(
                "the layers cannot be divided evenly: parts of the pipeline have {most} or {least} layers, so stages wait for each other"
            );
            draft.warnings.push(code::UNEVEN.at("", text));
        }
        step::lay(self, &sizes, draft)
    }
}
