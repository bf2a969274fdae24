//! Times of computations: a prefill by its operations, a step of decoding by the bytes that it reads.

use crate::models::Model;
use model::Time;

/// The compute model of a prefill instance: operations over a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefill {
    /// The model.
    pub model: Model,
    /// Operations per second of all ranks of the instance.
    pub flops: u128,
}

impl Prefill {
    /// Time of a prompt of `tokens` tokens, of which `cached` at its start are known: `2 P (n - p) + 2 L d (n^2 - p^2)` operations for P
    /// active parameters, L layers and width d.
    pub fn time(&self, tokens: u64, cached: u64) -> Time {
        let Model { layers, hidden, active, .. } = self.model;
        let square = |n: u64| u128::from(n) * u128::from(n);
        let new = u128::from(tokens.saturating_sub(cached));
        let attention = 2 * u128::from(layers) * u128::from(hidden);
        let operations = (2 * u128::from(active) * new)
            .saturating_add(attention.saturating_mul(square(tokens).saturating_sub(square(cached))));
        over(operations, self.flops)
    }
}

/// The compute model of a decode instance: bytes over the bandwidth of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decode {
    /// Bytes of the weights that a token uses.
    pub weights: u64,
    /// Bytes of KV per token of context, of all ranks.
    pub token: u64,
    /// Bytes per second that all ranks together read.
    pub bandwidth: u128,
    /// Least time of a step.
    pub floor: Time,
}

impl Decode {
    /// Time of a step whose requests have so many tokens of context together.
    pub fn step(&self, context: u64) -> Time {
        let bytes = u128::from(self.weights) + u128::from(context) * u128::from(self.token);
        over(bytes, self.bandwidth).max(self.floor)
    }
}

/// The time of `work` at a rate per second, rounded up to a picosecond.
fn over(work: u128, rate: u128) -> Time {
    let ps = work.saturating_mul(1_000_000_000_000).div_ceil(rate.max(1));
    Time(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    /// 32,768 tokens of Llama-3-70B on 8 GPUs of 400 TFLOPS: 2 x 70.55e9 x 32,768 operations of matrices, and 2 x 80 x 8192 x 32,768^2 of
    /// attention.
    #[test]
    fn a_long_prompt_computes_for_seconds_and_a_known_start_saves_its_share() {
        let prefill =
            Prefill { model: models::named("llama-3-70b").unwrap(), flops: 8 * 400_000_000_000_000 };
        let operations: u128 = 2 * 70_550_000_000 * 32_768 + 2 * 80 * 8192 * 32_768 * 32_768;
        let whole = prefill.time(32_768, 0);
        assert_eq!(u128::from(whole.ps()), operations.div_ceil(3200));
        assert_eq!(prefill.time(32_768, 16_384), Time(whole.ps() - prefill.time(16_384, 0).ps()));
        assert_eq!(prefill.time(100, 100), Time::ZERO);
    }

    #[test]
    fn a_step_of_decoding_reads_weights_once_and_the_context_of_every_request() {
        let decode =
            Decode { weights: 2_000_000, token: 1000, bandwidth: 1_000_000_000, floor: Time::from_us(500) };
        assert_eq!(decode.step(0), Time::from_us(2000));
        assert_eq!(decode.step(3000), Time::from_us(5000));
        assert_eq!(
            Decode { weights: 1, ..decode }.step(0),
            Time::from_us(500),
            "launching kernels takes time"
        );
    }
}
