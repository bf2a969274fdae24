//! Sizes of keys and values (KV): bytes per token, whole blocks, and what each pair of ranks exchanges.

use serde::Deserialize;

/// Heads of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heads {
    /// Number of heads of keys and values: all heads (MHA), some (GQA) or one (MQA).
    pub kv: u64,
    /// Width of a head.
    pub width: u64,
}

/// Multi-head latent attention (MLA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latent {
    /// Width of the latent, from which keys and values follow.
    pub width: u64,
    /// Width of the part of the key that has rotary positions.
    pub rotary: u64,
}

/// Bytes that a user states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// Bytes per token.
    pub token: u64,
    /// Bytes per request, whatever its length: the state of a recurrent layer, a window.
    pub request: u64,
}

/// What a model keeps of every token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Keys and values of heads.
    Heads(Heads),
    /// One latent for keys and values.
    Latent(Latent),
    /// Bytes that a user states for all ranks together.
    ByHand(ByHand),
}

/// Which ranks get a latent over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// The latent crosses once; every rank carries an equal share.
    #[default]
    One,
    /// Every rank of an instance gets the whole latent.
    Tp,
}

/// The keys and values of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kv {
    /// Number of layers.
    pub layers: u64,
    /// What each layer keeps.
    pub keeps: Keeps,
    /// Bytes of a value: 2 for BF16.
    pub value: u64,
    /// Tokens of a block, which is sent and stored as a whole.
    pub block: u64,
    /// Who gets a latent.
    pub copies: Copies,
}

impl Kv {
    /// Bytes of one token in all layers that an instance of `tp` ranks keeps, and gets over the network. If there are fewer heads than
    /// ranks, every rank keeps a whole head.
    pub fn token(&self, tp: u64) -> u64 {
        match self.keeps {
            Keeps::Heads(Heads { kv, width }) => product(&[2, self.layers, kv.max(tp), width, self.value]),
            Keeps::Latent(Latent { width, rotary }) => {
                let copies = if self.copies == Copies::Tp { tp } else { 1 };
                product(&[self.layers, width + rotary, self.value, copies])
            }
            Keeps::ByHand(ByHand { token, .. }) => token,
        }
    }

    /// Blocks of so many tokens.
    pub fn blocks(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block)
    }

    /// Bytes of so many blocks for an instance of `tp` ranks.
    pub fn bytes(&self, blocks: u64, tp: u64) -> u64 {
        let request = if let Keeps::ByHand(ByHand { request, .. }) = self.keeps { request } else { 0 };
        blocks.saturating_mul(self.block).saturating_mul(self.token(tp)).saturating_add(request)
    }
}

/// A product, or the largest number if it is larger.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |all, factor| all.saturating_mul(*factor))
}

/// The pairs of ranks between which KV goes from an instance of `from` ranks to one of `to`: rank i to rank i if both have as many; else the
/// heads are split, and each rank of the larger instance has one partner.
pub fn pairs(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = from.max(to);
    (0..most).map(move |i| (i * from / most, i * to / most))
}

/// An equal part of some bytes: part `i` of `parts`. All parts together are the whole.
pub fn part(bytes: u64, i: u64, parts: u64) -> u64 {
    bytes / parts + u64::from(i < bytes % parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    fn kv(name: &str) -> Kv {
        models::named(name).unwrap_or_else(|| panic!("{name}")).kv(2, 16, Copies::One)
    }

    /// Sizes by the formulas of the models' papers: a factor of 2 for keys and values, and none for a latent.
    #[test]
    fn models_keep_the_bytes_per_token_of_their_papers() {
        for (name, token, block_of_a_layer) in [
            ("llama-3-8b", 131_072, 65_536),
            ("llama-3-70b", 327_680, 65_536),
            ("llama-3.1-405b", 516_096, 65_536),
            ("qwen3-8b", 147_456, 65_536),
            ("qwen3-235b-a22b", 192_512, 32_768),
            ("deepseek-v3", 70_272, 18_432),
            ("opt-66b", 2_359_296, 589_824),
        ] {
            let kv = kv(name);
            assert_eq!((kv.token(1), kv.bytes(1, 1) / kv.layers), (token, block_of_a_layer), "{name}");
        }
    }

    /// kvcache-ai/Mooncake, docs/source/performance: vllm/vllm-v1-pd-performance.md prints GiB as GB, and
    /// sglang/sglang-benchmark-results-v1.md has 385,024 B per token, twice the heads, because 8 ranks share 4 heads.
    #[test]
    fn transfers_have_the_sizes_that_mooncake_printed() {
        let (small, large) = (kv("qwen3-8b"), kv("qwen3-235b-a22b"));
        let of = |kv: &Kv, tokens| kv.bytes(kv.blocks(tokens), 8);
        assert_eq!(of(&small, 32_768), 4_831_838_208);
        assert_eq!(of(&small, 32_768) as f64 / f64::from(1 << 30), 4.5);
        // A prompt of 128 tokens and the words around it take nine blocks, printed as 20 MB.
        assert_eq!((of(&small, 129), of(&small, 129) / (1 << 20)), (21_233_664, 20));
        assert_eq!(of(&large, 32_768), 12_616_466_432);
        assert_eq!((of(&large, 128) + 500_000) / 1_000_000, 49);
    }

    /// DistServe (Zhong et al., OSDI'24, section 3.3) has 1.13 GB for 512 tokens of OPT-66B, and 90 Gb/s for ten requests per second.
    #[test]
    fn opt_66b_moves_1_13_gibibytes_for_512_tokens() {
        let bytes = kv("opt-66b").bytes(32, 1);
        assert_eq!(bytes, 1_207_959_552);
        assert_eq!(bytes as f64 / f64::from(1 << 30), 1.125);
        assert_eq!((bytes * 8 * 10 + 500_000_000) / 1_000_000_000, 97);
        assert_eq!(bytes * 8 * 10 / (1 << 30), 90, "in binary units");
    }

    #[test]
    fn a_latent_goes_to_one_rank_or_to_all_of_them() {
        let one = kv("deepseek-v3");
        let all = Kv { copies: Copies::Tp, ..one };
        assert_eq!((one.token(8), all.token(8)), (70_272, 8 * 70_272));
    }

    #[test]
    fn what_a_user_states_is_taken_for_all_ranks_and_the_state_of_a_request_counts_once() {
        let keeps = Keeps::ByHand(ByHand { token: 1000, request: 50 });
        let kv = Kv { keeps, ..kv("qwen3-8b") };
        assert_eq!((kv.token(8), kv.bytes(2, 8)), (1000, 32 * 1000 + 50));
    }

    #[test]
    fn ranks_of_unequal_instances_are_paired_and_every_byte_is_sent_once() {
        assert!(pairs(8, 8).eq((0..8).map(|i| (i, i))));
        assert!(pairs(2, 4).eq([(0, 0), (0, 1), (1, 2), (1, 3)]));
        assert!(pairs(4, 1).eq([(0, 0), (1, 0), (2, 0), (3, 0)]));
        let parts: Vec<u64> = (0..3).map(|i| part(11, i, 3)).collect();
        assert_eq!(parts, [4, 4, 3]);
    }
}
