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
    #[serde(rename = "llama-3-405b")]
    Llama405b,
    /// Mixtral with 8 experts of 7 billion parameters (Jiang et al. 2024, table 1).
    #[serde(rename = "mixtral-8x7b")]
    Mixtral,
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
    /// Whether the feed-forward network has a gate: three matrices, no biases, as in Llama. Default false, as in GPT.
    #[serde(default)]
    pub gated: bool,
    /// Number of tokens of the vocabulary.
    pub vocab: u64,
    /// Longest sequence with learned positions, as in GPT. Default 0: none.
    #[serde(default)]
    pub positions: u64,
    /// Mixture of experts. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moe: Option<Moe>,
}

/// Mixture of experts: the feed-forward network of every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Moe {
    /// Number of experts of a layer.
    pub experts: u64,
    /// Number of experts that a token goes to.
    pub top_k: u64,
    /// Number of experts that all tokens go to. Default 0.
    #[serde(default)]
    pub shared: u64,
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
                moe: Some(Moe { experts: 8, top_k: 2, shared: 0 }),
                ..llama(4096, 32, 32, 14_336)
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

    /// Width of all heads of keys, or of values.
    pub(crate) fn kv_width(&self) -> u64 {
        self.kv() * (self.hidden / self.heads.max(1))
    }

    /// Matrix parameters of a layer's attention.
    pub(crate) fn attention(&self) -> u64 {
        2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_width()
    }

    /// Matrix parameters of a feed-forward network, or of an expert.
    pub(crate) fn expert(&self) -> u64 {
        (if self.gated { 3 } else { 2 }) * self.hidden * self.ffn
    }

    /// Matrix parameters of a layer's feed-forward part that all tokens use: the network, or router and shared experts.
    pub(crate) fn dense(&self) -> u64 {
        self.moe.map_or(self.expert(), |moe| moe.experts * self.hidden + moe.shared * self.expert())
    }

    /// Matrix parameters of all experts of a layer; 0 without experts.
    pub(crate) fn experts(&self) -> u64 {
        self.moe.map_or(0, |moe| moe.experts * self.expert())
    }

    /// Norms and biases of a layer, which tensor parallelism does not divide, except for the biases that belong to columns.
    pub(crate) fn norms(&self) -> u64 {
        if self.gated { 2 * self.hidden } else { 4 * self.hidden }
    }

    fn biases(&self) -> u64 {
        if self.gated { 0 } else { 4 * self.hidden + self.ffn + self.hidden }
    }

    /// Parameters of a layer.
    #[cfg(test)]
    fn layer(&self) -> u64 {
        self.attention() + self.dense() + self.experts() + self.norms() + self.biases()
    }

    /// Parameters of a layer that a rank holds with tensor parallelism `tp` and without experts.
    pub(crate) fn layer_of_rank(&self, tp: u64) -> u64 {
        (self.attention() + self.dense() + self.biases()).div_ceil(tp) + self.norms()
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
        u64::from(self.layers) * self.layer() + self.embedding() + self.head() + self.last_norm()
    }

    /// Floating-point operations of the forward pass of `tokens` tokens in one layer's attention, in sequences of `sequence` tokens
    /// with a causal mask.
    pub(crate) fn attention_flops(&self, tokens: u64, sequence: u64) -> u128 {
        let (tokens, sequence) = (u128::from(tokens), u128::from(sequence));
        2 * tokens * (u128::from(self.attention()) + sequence * u128::from(self.hidden))
    }

    /// The same for the feed-forward part.
    pub(crate) fn ffn_flops(&self, tokens: u64) -> u128 {
        let routed = self.moe.map_or(0, |moe| moe.top_k * self.expert());
        2 * u128::from(tokens) * u128::from(self.dense() + routed)
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
        ] {
            assert_eq!(name.sizes().parameters(), parameters, "{name:?}");
        }
    }

    #[test]
    fn a_middle_stage_of_llama_70b_does_37_8_tera_operations_per_rank_and_micro_batch() {
        let model = ModelName::Llama70b.sizes();
        let layer = model.attention_flops(8192, 8192) + model.ffn_flops(8192);
        assert_eq!(20 * layer / 8, 37_795_712_204_800);
        assert_eq!(20 * model.layer_of_rank(8), 2_139_422_720);
        assert_eq!(model.embedding() / 8, 131_334_144);
    }
}
