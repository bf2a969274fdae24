//! Language models: their sizes, and what follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A transformer, by its name or by its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelChoice {
    /// A model of the list.
    Named(ModelName),
    /// Sizes.
    Sizes(Model),
}

/// A published model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ModelName {
    /// GPT with 13 billion parameters (Brown et al. 2020, table 2.1).
    #[serde(rename = "gpt-13b")]
    Gpt13b,
    /// GPT-3 with 175 billion parameters (Brown et al. 2020, table 2.1).
    #[serde(rename = "gpt-175b")]
    Gpt175b,
    /// Llama 3 with 8 billion parameters (Llama team 2024, table 3).
    #[serde(rename = "llama-3-8b")]
    Llama8b,
    /// Llama 3 with 70 billion parameters (Llama team 2024, table 3).
    #[serde(rename = "llama-3-70b")]
    Llama70b,
    /// Llama 3 with 405 billion parameters (Llama team 2024, table 3).
    #[serde(rename = "llama-3.1-405b", alias = "llama-3-405b")]
    Llama405b,
    /// Mixtral with 8 experts of 7 billion parameters (Jiang et al. 2024, table 1).
    #[serde(rename = "mixtral-8x7b")]
    Mixtral,
    /// DeepSeek-V3 with 671 billion parameters, without its module that predicts two tokens (DeepSeek-AI 2024, section 4.2).
    #[serde(rename = "deepseek-v3")]
    DeepSeekV3,
}

/// Sizes of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Model {
    /// Width of the hidden state.
    pub hidden: u64,
    /// Number of layers.
    pub layers: u32,
    /// Number of attention heads.
    pub heads: u64,
    /// Number of heads of keys and values. Default: `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u64>,
    /// Width of the feed-forward network, or of one expert.
    pub ffn: u64,
    /// Whether the feed-forward network has a gate: three matrices, no biases, as in Llama. Default false (GPT).
    #[serde(default)]
    pub gated: bool,
    /// Number of tokens of the vocabulary.
    pub vocab: u64,
    /// Longest sequence with learned positions, as in GPT. Default 0 (our choice: none).
    #[serde(default)]
    pub positions: u64,
    /// Multi-head latent attention, in place of heads of width `hidden` / `heads`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mla: Option<Mla>,
    /// Mixture of experts. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moe: Option<Moe>,
}

/// Widths of multi-head latent attention, in which queries, keys and values are products of two narrow matrices (DeepSeek-AI 2024,
/// section 2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mla {
    /// Width of the compressed query.
    pub query_rank: u64,
    /// Width of the compressed keys and values.
    pub kv_rank: u64,
    /// Width of a head's query and key without positions.
    pub head: u64,
    /// Width of a head's query and key with rotary positions; all heads share this part of the key.
    pub rotary: u64,
    /// Width of a head's value.
    pub value: u64,
}

/// Mixture of experts: the feed-forward network of all layers but the first `dense-layers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Moe {
    /// Number of experts of a layer.
    pub experts: u64,
    /// Number of experts that a token goes to.
    pub top_k: u64,
    /// Number of experts that all tokens go to. Default 0 (our choice).
    #[serde(default)]
    pub shared: u64,
    /// Number of layers at the start of the model that have a network without experts. Default 0 (our choice).
    #[serde(default)]
    pub dense_layers: u32,
    /// Width of the network without experts. Default: `ffn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dense_ffn: Option<u64>,
}

impl ModelName {
    fn sizes(self) -> Model {
        let gpt = |hidden, layers, heads| Model {
            hidden,
            layers,
            heads,
            kv_heads: None,
            ffn: 4 * hidden,
            gated: false,
            vocab: 50_257,
            positions: 2048,
            mla: None,
            moe: None,
        };
        let llama = |hidden, layers, heads, ffn| Model {
            hidden,
            layers,
            heads,
            kv_heads: Some(8),
            ffn,
            gated: true,
            vocab: 128_256,
            positions: 0,
            mla: None,
            moe: None,
        };
        match self {
            ModelName::Gpt13b => gpt(5120, 40, 40),
            ModelName::Gpt175b => gpt(12_288, 96, 96),
            ModelName::Llama8b => llama(4096, 32, 32, 14_336),
            ModelName::Llama70b => llama(8192, 80, 64, 28_672),
            ModelName::Llama405b => llama(16_384, 126, 128, 53_248),
            ModelName::Mixtral => Model {
                vocab: 32_000,
                moe: Some(Moe { experts: 8, top_k: 2, shared: 0, dense_layers: 0, dense_ffn: None }),
                ..llama(4096, 32, 32, 14_336)
            },
            ModelName::DeepSeekV3 => Model {
                kv_heads: None,
                vocab: 129_280,
                mla: Some(Mla { query_rank: 1536, kv_rank: 512, head: 128, rotary: 64, value: 128 }),
                moe: Some(Moe {
                    experts: 256,
                    top_k: 8,
                    shared: 1,
                    dense_layers: 3,
                    dense_ffn: Some(18_432),
                }),
                ..llama(7168, 61, 128, 2048)
            },
        }
    }
}

impl ModelChoice {
    pub(crate) fn model(&self) -> Model {
        match self {
            ModelChoice::Named(name) => name.sizes(),
            ModelChoice::Sizes(model) => *model,
        }
    }
}

impl Model {
    fn kv(&self) -> u64 {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Width of the keys and values of all heads that have keys and values of their own. For latent attention it is the width of
    /// the uncompressed heads, which Megatron-LM exchanges, too.
    pub(crate) fn kv_width(&self) -> u64 {
        match self.mla {
            Some(mla) => self.heads * (mla.head + mla.rotary + mla.value),
            None => 2 * self.kv() * (self.hidden / self.heads.max(1)),
        }
    }

    /// Matrix parameters of a layer's attention.
    pub(crate) fn attention(&self) -> u64 {
        let Some(Mla { query_rank, kv_rank, head, rotary, value }) = self.mla else {
            return 2 * self.hidden * self.hidden + self.hidden * self.kv_width();
        };
        let query = query_rank * (self.hidden + self.heads * (head + rotary));
        let kv = self.hidden * (kv_rank + rotary) + kv_rank * self.heads * (head + value);
        query + kv + self.heads * value * self.hidden
    }

    /// The experts of a layer of the model, which is counted from 0.
    pub(crate) fn moe_of(&self, layer: u32) -> Option<Moe> {
        self.moe.filter(|moe| layer >= moe.dense_layers)
    }

    /// Matrix parameters of a feed-forward network of this width.
    fn network(&self, width: u64) -> u64 {
        (if self.gated { 3 } else { 2 }) * self.hidden * width
    }

    /// Width of the feed-forward network of a layer without experts.
    fn dense_width(&self) -> u64 {
        self.moe.and_then(|moe| moe.dense_ffn).unwrap_or(self.ffn)
    }

    /// Matrix parameters of a layer's feed-forward part that all tokens use: the network, or router and shared experts.
    pub(crate) fn dense(&self, layer: u32) -> u64 {
        let shared = |moe: Moe| moe.experts * self.hidden + moe.shared * self.network(self.ffn);
        self.moe_of(layer).map_or_else(|| self.network(self.dense_width()), shared)
    }

    /// Matrix parameters of all experts of a layer; 0 without experts.
    pub(crate) fn experts(&self, layer: u32) -> u64 {
        self.moe_of(layer).map_or(0, |moe| moe.experts * self.network(self.ffn))
    }

    /// Norms and biases of a layer, which tensor parallelism does not divide, except for the biases that belong to columns.
    pub(crate) fn norms(&self) -> u64 {
        let latent = self.mla.map_or(0, |mla| mla.query_rank + mla.kv_rank);
        latent + if self.gated { 2 * self.hidden } else { 4 * self.hidden }
    }

    fn biases(&self) -> u64 {
        if self.gated { 0 } else { 4 * self.hidden + self.ffn + self.hidden }
    }

    /// Parameters of a layer.
    #[cfg(test)]
    fn layer(&self, layer: u32) -> u64 {
        self.attention() + self.dense(layer) + self.experts(layer) + self.norms() + self.biases()
    }

    /// Parameters of a layer that a rank holds with tensor parallelism `tp` and without experts.
    pub(crate) fn layer_of_rank(&self, tp: u64, layer: u32) -> u64 {
        (self.attention() + self.dense(layer) + self.biases()).div_ceil(tp) + self.norms()
    }

    /// Parameters of the embedding of tokens and positions.
    pub(crate) fn embedding(&self) -> u64 {
        (self.vocab + self.positions) * self.hidden
    }

    /// Parameters of the head; 0 if it shares the embedding's, as in GPT.
    pub(crate) fn head(&self) -> u64 {
        if self.gated { self.vocab * self.hidden } else { 0 }
    }

    /// Parameters of the last norm.
    pub(crate) fn last_norm(&self) -> u64 {
        if self.gated { self.hidden } else { 2 * self.hidden }
    }

    /// All parameters.
    #[cfg(test)]
    fn parameters(&self) -> u64 {
        (0..self.layers).map(|layer| self.layer(layer)).sum::<u64>()
            + self.embedding()
            + self.head()
            + self.last_norm()
    }

    /// Floating-point operations of the forward pass of `tokens` tokens in one layer's attention, in sequences of `sequence` tokens
    /// with a causal mask.
    pub(crate) fn attention_flops(&self, tokens: u64, sequence: u64) -> u128 {
        let (tokens, sequence) = (u128::from(tokens), u128::from(sequence));
        // Scores take the width of queries, their sums the width of values. The mask halves both.
        let width = self.mla.map_or(2 * self.hidden, |mla| self.heads * (mla.head + mla.rotary + mla.value));
        tokens * (2 * u128::from(self.attention()) + sequence * u128::from(width))
    }

    /// The same for the feed-forward part.
    pub(crate) fn ffn_flops(&self, tokens: u64, layer: u32) -> u128 {
        let routed = self.moe_of(layer).map_or(0, |moe| moe.top_k * self.network(self.ffn));
        2 * u128::from(tokens) * u128::from(self.dense(layer) + routed)
    }

    /// The same for the head.
    pub(crate) fn head_flops(&self, tokens: u64) -> u128 {
        2 * u128::from(tokens) * u128::from(self.vocab) * u128::from(self.hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_their_published_sizes() {
        for (name, parameters) in [
            (ModelName::Gpt13b, 12_853_386_240),
            (ModelName::Gpt175b, 174_604_259_328),
            (ModelName::Llama8b, 8_030_261_248),
            (ModelName::Llama70b, 70_553_706_496),
            (ModelName::Llama405b, 405_853_388_800),
            (ModelName::Mixtral, 46_702_792_704),
            // Besides, the 58 routers have a bias for each of 256 experts, which no gradient changes.
            (ModelName::DeepSeekV3, 671_026_419_200 - 58 * 256),
        ] {
            assert_eq!(name.sizes().parameters(), parameters, "{name:?}");
        }
    }

    #[test]
    fn latent_attention_of_deepseek_has_187_million_parameters_and_a_token_uses_37_5_billion_of_all() {
        let model = ModelName::DeepSeekV3.sizes();
        assert_eq!(model.attention() + 1536 + 512, 187_107_328);
        let idle =
            |layer| model.moe_of(layer).map_or(0, |moe| (moe.experts - moe.top_k) * model.network(2048));
        let active = model.parameters() - (0..61).map(idle).sum::<u64>();
        assert_eq!(active / 10_000_000, 3755);
        assert_eq!((model.moe_of(2), model.dense(2)), (None, 3 * 7168 * 18_432));
    }

    #[test]
    fn a_middle_stage_of_llama_70b_does_37_8_tera_operations_per_rank_and_micro_batch() {
        let model = ModelName::Llama70b.sizes();
        let layer = model.attention_flops(8192, 8192) + model.ffn_flops(8192, 0);
        assert_eq!(20 * layer / 8, 37_795_712_204_800);
        assert_eq!(20 * model.layer_of_rank(8, 0), 2_139_422_720);
        assert_eq!(model.embedding() / 8, 131_334_144);
    }
}
